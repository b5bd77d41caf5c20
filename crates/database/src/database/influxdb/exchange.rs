//! Requests to the server, and the server's words. Main type: [`Lines`], the heads of a connection's requests; [`ask`] sends a query and waits for its answer.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::msgpack::{Token, token};
use crate::database::error::{TOLD_MOST, shown};
use crate::database::http::request::{Told, account_line, append_encoded, encoded, exchange, host_line};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// The maximum characters of a version.
const VERSION_CHARACTERS_MAX: usize = 60;
/// Status of a write that is acknowledged.
pub(super) const WRITTEN: u16 = 204;
/// Status of an answer to a query.
pub(super) const ANSWERED: u16 = 200;

/// The heads of requests, up to the length of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// Of writes.
    pub write: Vec<u8>,
    /// Of queries whose rows are read.
    pub query: Vec<u8>,
    /// Of queries that are answered in JSON.
    words: Vec<u8>,
}

impl Lines {
    /// Creates the heads for an endpoint's account and database.
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let database = encoded(&endpoint.database);
        let host = host_line(endpoint, "influxdb");
        let account = match endpoint.user.is_empty() {
            true => String::new(),
            false => account_line(&endpoint.user, &endpoint.password),
        };
        let head = |path: &str, more: &str| {
            format!("POST /{path} HTTP/1.1\r\n{host}{account}{more}Content-Length:").into_bytes()
        };
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let query = format!("query?db={database}&epoch=ns");
        Lines {
            write: head(&format!("write?db={database}&precision=ns"), ""),
            query: head(&query, &format!("{form}Accept: application/x-msgpack\r\n")),
            words: head(&query, form),
        }
    }
}

/// A series of an answer.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Series {
    pub name: String,
    pub tags: BTreeMap<String, String>,
    pub columns: Vec<String>,
    pub values: Vec<Vec<Value>>,
}

impl Series {
    /// Returns the value of the first row in a column.
    pub(super) fn value(&self, column: &str) -> Option<&Value> {
        let place = self.columns.iter().position(|known| known == column)?;
        self.values.first()?.get(place)
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    results: Vec<Outcome>,
    error: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Outcome {
    series: Vec<Series>,
    error: Option<String>,
}

/// Sends a query and returns the series of its answer.
///
/// # Errors
/// The server's error; [`DatabaseError::Lost`] when the connection breaks or the answer is none.
pub(super) fn ask(channel: &mut Channel, lines: &Lines, query: &str) -> Result<Vec<Series>, DatabaseError> {
    asked(channel, lines, query).map(|(series, _)| series)
}

/// Sends a query like [`ask`], and also returns the server's version, as the head of its answer states it.
///
/// # Errors
/// As for [`ask`].
pub(super) fn asked(
    channel: &mut Channel,
    lines: &Lines,
    query: &str,
) -> Result<(Vec<Series>, Option<String>), DatabaseError> {
    let mut body = b"q=".to_vec();
    append_encoded(query.as_bytes(), &mut body);
    let Told { status, head, body: told } = exchange(channel, query, &lines.words, &body)?;
    if status != ANSWERED {
        return Err(refusal(status, &told));
    }
    let no_answer = |_| DatabaseError::Lost("the server answers a query with something else than JSON".to_owned());
    let words: Words = serde_json::from_slice(&told).map_err(no_answer)?;
    let error = words.error.or_else(|| words.results.iter().find_map(|outcome| outcome.error.clone()));
    match error {
        Some(told) => Err(DatabaseError::refused("influxdb", shown(&told, TOLD_MOST))),
        None => Ok((words.results.into_iter().flat_map(|outcome| outcome.series).collect(), version_of(&head))),
    }
}

/// Writes lines, and waits until they are acknowledged.
///
/// # Errors
/// As for [`ask`].
pub(super) fn put(channel: &mut Channel, lines: &Lines, text: &[u8]) -> Result<(), DatabaseError> {
    let Told { status, body, .. } = exchange(channel, "a write of lines", &lines.write, text)?;
    if status == WRITTEN { Ok(()) } else { Err(refusal(status, &body)) }
}

/// Returns the version that the head of an answer states.
fn version_of(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let (_, version) = fields.find(|(name, _)| name.eq_ignore_ascii_case("x-influxdb-version"))?;
    Some(shown(version.trim(), VERSION_CHARACTERS_MAX))
}

/// Returns the error that the server's words say: `{"error": "…"}` in JSON or MessagePack. What a status of 500 and above leaves behind is not known.
pub(super) fn refusal(status: u16, told: &[u8]) -> DatabaseError {
    let told = error_of(told).unwrap_or_else(|| String::from_utf8_lossy(told).into_owned());
    let told = shown(&told, TOLD_MOST);
    if told.starts_with("partial write") {
        return DatabaseError::refused(status.to_string(), format!("{told}; the other points of the request stay"));
    }
    // A full cache takes nothing in.
    if (400..500).contains(&status) || told.starts_with("engine: cache-max-memory-size exceeded") {
        return DatabaseError::refused(status.to_string(), told);
    }
    DatabaseError::Lost(format!("the server answers with status {status}: {told}"))
}

fn error_of(told: &[u8]) -> Option<String> {
    if let Ok(Words { error: Some(error), .. }) = serde_json::from_slice(told) {
        return Some(error);
    }
    let mut rest = told;
    let mut next = || {
        let (token, length) = token(rest).ok()?.ok()?;
        rest = &rest[length..];
        Some(token)
    };
    match [next()?, next()?, next()?] {
        [Token::Map(1), Token::Text(b"error"), Token::Text(error)] => Some(String::from_utf8_lossy(error).into_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_have_the_account_and_the_database() {
        let endpoint = Endpoint {
            tcp: Some(("::1".to_owned(), 8086)),
            user: "me\r\nX: y".to_owned(),
            password: "p:w".to_owned(),
            database: "a b".to_owned(),
            ..Endpoint::default()
        };
        let lines = Lines::new(&endpoint);
        let text = String::from_utf8(lines.write).unwrap();
        let right = "POST /write?db=a%20b&precision=ns HTTP/1.1\r\nHost: [::1]:8086\r\n\
                     Authorization: Basic bWUNClg6IHk6cDp3\r\nContent-Length:";
        assert_eq!(text, right);
        let open = Lines::new(&Endpoint { user: String::new(), ..endpoint });
        assert!(!String::from_utf8(open.query).unwrap().contains("Authorization"));
    }

    #[test]
    fn the_version_is_in_the_head() {
        assert_eq!(version_of(b"HTTP/1.1 200 OK\r\nX-Influxdb-Version: 1.6.7~rc0\r\n").as_deref(), Some("1.6.7~rc0"));
        assert_eq!(version_of(b"HTTP/1.1 200 OK\r\n"), None);
    }

    #[test]
    fn errors_are_the_servers_words() {
        let of_json = refusal(404, b"{\"error\":\"database not found: \\\"x\\\"\"}\n");
        assert_eq!(of_json, DatabaseError::refused("404", "database not found: \"x\""));
        assert_eq!(refusal(400, b"\x81\xa5error\xa2no"), DatabaseError::refused("400", "no"));
        assert!(
            refusal(400, b"{\"error\":\"partial write: x dropped=1\"}")
                .to_string()
                .contains("points of the request stay")
        );
        assert!(refusal(500, b"{\"error\":\"timeout\"}").is_lost());
        assert!(!refusal(500, b"{\"error\":\"engine: cache-max-memory-size exceeded: (1/1)\"}").is_lost());
        assert_eq!(refusal(403, b"no\x1b[0m"), DatabaseError::refused("403", "no?[0m"));
    }
}
