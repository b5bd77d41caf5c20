//! Requests to the server, and its words. Main type: [`Lines`], the heads of a connection's requests; [`ask`] asks a query that has few answers.

use serde::Deserialize;

use super::answer::Vector;
use crate::database::error::{TOLD_MOST, shown};
use crate::database::http::request::{Told, account_line, append_encoded, exchange, host_line};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// Status of a request that is acknowledged without words.
pub(super) const DONE: u16 = 204;
/// Status of an answer.
pub(super) const ANSWERED: u16 = 200;

/// The heads of requests, up to the length of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    /// Of writes.
    pub write: Vec<u8>,
    /// Of points as they were written.
    pub export: Vec<u8>,
    /// Of queries at one time.
    pub query: Vec<u8>,
    /// Of queries at several times.
    pub range: Vec<u8>,
    flush: Vec<u8>,
    delete: Vec<u8>,
    flags: Vec<u8>,
    metrics: Vec<u8>,
}

impl Lines {
    /// Creates the heads for an endpoint's account.
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        let host = host_line(endpoint, "victoriametrics");
        let account = match endpoint.user.is_empty() {
            true => String::new(),
            false => account_line(&endpoint.user, &endpoint.password),
        };
        let head = |path: &str, more: &str| {
            format!("POST /{path} HTTP/1.1\r\n{host}{account}{more}Content-Length:").into_bytes()
        };
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        Lines {
            write: head("write?precision=ms", ""),
            export: head("api/v1/export", form),
            query: head("api/v1/query", form),
            range: head("api/v1/query_range", form),
            flush: head("internal/force_flush", form),
            delete: head("api/v1/admin/tsdb/delete_series", form),
            flags: head("flags", form),
            metrics: head("metrics", form),
        }
    }
}

/// The server's words about an error.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Words {
    error: Option<String>,
}

/// Asks a query at a time in seconds, and returns its answer.
///
/// # Errors
/// The server's error; [`DatabaseError::Lost`] when the connection breaks or the answer is none.
pub(super) fn ask(channel: &mut Channel, lines: &Lines, query: &str, time: &str) -> Result<Vector, DatabaseError> {
    let told = told(channel, query, &lines.query, &[("query", query), ("time", time)], ANSWERED)?;
    Vector::read(&told).map_err(|why| DatabaseError::Lost(format!("the server answers a query with no figures: {why}")))
}

/// Makes all that is acknowledged visible for queries, which takes the server a second for known series and several for new ones otherwise.
///
/// # Errors
/// As for [`ask`].
pub(super) fn flush(channel: &mut Channel, lines: &Lines) -> Result<(), DatabaseError> {
    told(channel, "/internal/force_flush", &lines.flush, &[], ANSWERED).map(drop)
}

/// Removes the series that a selector names.
///
/// # Errors
/// As for [`ask`].
pub(super) fn delete(channel: &mut Channel, lines: &Lines, selector: &str) -> Result<(), DatabaseError> {
    told(channel, "delete_series", &lines.delete, &[("match[]", selector)], DONE).map(drop)
}

/// Writes lines, and waits until they are acknowledged.
///
/// # Errors
/// As for [`ask`].
pub(super) fn put(channel: &mut Channel, lines: &Lines, text: &[u8]) -> Result<(), DatabaseError> {
    let Told { status, body, .. } = exchange(channel, "a write of lines", &lines.write, text)?;
    if status == DONE { Ok(()) } else { Err(refusal(status, &body)) }
}

/// Returns the value of a setting that is not the server's own, as it tells it; `None` where it is its own, or the server does not tell it.
///
/// # Errors
/// As for [`ask`].
pub(super) fn flag(channel: &mut Channel, lines: &Lines, name: &str) -> Result<Option<String>, DatabaseError> {
    let told = told(channel, "/flags", &lines.flags, &[], ANSWERED)?;
    let told = String::from_utf8_lossy(&told);
    let start = format!("-{name}=");
    let value = told.lines().find_map(|line| line.strip_prefix(&start));
    Ok(value.map(|value| shown(value.trim_matches('"'), TOLD_MOST)))
}

/// Returns what the server says of its version. Debian's build has none.
pub(super) fn version(channel: &mut Channel, lines: &Lines) -> Result<String, DatabaseError> {
    let told = match told(channel, "/metrics", &lines.metrics, &[], ANSWERED) {
        Err(error) if error.is_lost() => return Err(error),
        told => told.unwrap_or_default(),
    };
    let told = String::from_utf8_lossy(&told);
    let label = |metric: &str, label: &str| {
        let line = told.lines().find_map(|line| line.strip_prefix(metric)?.strip_prefix('{'))?;
        let (value, _) = line.split_once(&format!("{label}=\""))?.1.split_once('"')?;
        (!value.is_empty()).then(|| shown(value, 60))
    };
    Ok(match (label("vm_app_version", "version"), label("go_info", "version")) {
        (Some(version), _) => format!("VictoriaMetrics {version}"),
        (None, Some(built)) => format!("VictoriaMetrics, a build that tells no version (built with {built})"),
        (None, None) => "VictoriaMetrics, which tells no version".to_owned(),
    })
}

/// Sends a form and returns the body of the answer.
fn told(
    channel: &mut Channel,
    asked: &str,
    head: &[u8],
    form: &[(&str, &str)],
    right: u16,
) -> Result<Vec<u8>, DatabaseError> {
    let mut body = Vec::new();
    for (name, value) in form {
        if !body.is_empty() {
            body.push(b'&');
        }
        append_encoded(name.as_bytes(), &mut body);
        body.push(b'=');
        append_encoded(value.as_bytes(), &mut body);
    }
    let Told { status, body: told, .. } = exchange(channel, asked, head, &body)?;
    if status == right { Ok(told) } else { Err(refusal(status, &told)) }
}

/// Returns the error that the server's words say: `{"error": "…"}`, or a sentence behind the address of the client and of the request. What a status of 500 and above leaves behind is not known.
pub(super) fn refusal(status: u16, told: &[u8]) -> DatabaseError {
    let words: Words = serde_json::from_slice(told).unwrap_or_default();
    let told = words.error.unwrap_or_else(|| String::from_utf8_lossy(told).into_owned());
    let told =
        told.split_once("; requestURI: ").and_then(|(_, rest)| rest.split_once("; ")).map_or(&*told, |(_, own)| own);
    let told = shown(told.trim(), TOLD_MOST);
    if (400..500).contains(&status) {
        return DatabaseError::refused(status.to_string(), told);
    }
    DatabaseError::Lost(format!("the server answers with status {status}: {told}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heads_have_the_account() {
        let endpoint = Endpoint {
            tcp: Some(("::1".to_owned(), 8428)),
            user: "me\r\nX: y".to_owned(),
            password: "p:w".to_owned(),
            ..Endpoint::default()
        };
        let text = String::from_utf8(Lines::new(&endpoint).write).unwrap();
        let right = "POST /write?precision=ms HTTP/1.1\r\nHost: [::1]:8428\r\n\
                     Authorization: Basic bWUNClg6IHk6cDp3\r\nContent-Length:";
        assert_eq!(text, right);
    }

    #[test]
    fn errors_are_the_servers_words() {
        let of_json = refusal(422, b"{\"status\":\"error\",\"errorType\":\"422\",\"error\":\"no \\u001b\"}");
        assert_eq!(of_json, DatabaseError::refused("422", "no ?"));
        let of_text = b"remoteAddr: \"1.2.3.4:5\"; requestURI: /api/v1/export?match=x; cannot parse matches\n";
        assert_eq!(refusal(400, of_text), DatabaseError::refused("400", "cannot parse matches"));
        assert!(refusal(503, b"full").is_lost());
    }
}
