//! Requests to the server, and the server's words. Main type: [`Line`], the head of each request of a connection; [`ask`] sends one and waits for its text.

use crate::database::error::{TOLD_MOST, shown};
use crate::database::http::request::{account_line, append, encoded, exchange, host_line};
use crate::database::session::Channel;
use crate::database::{DatabaseError, Endpoint};

/// The head of each request, up to the length of the body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    head: Vec<u8>,
}

impl Line {
    /// Creates the head for an endpoint's account and database, with these settings of ClickHouse's own for each query. Answers wait until a query has ended, so that their status
    /// tells its outcome.
    pub(super) fn new(endpoint: &Endpoint, settings: &[(String, String)]) -> Self {
        let mut head = String::from("POST /?wait_end_of_query=1");
        let database = Some(("database".to_owned(), endpoint.database.clone())).filter(|(_, name)| !name.is_empty());
        for (name, value) in database.iter().chain(settings) {
            head += &format!("&{}={}", encoded(name), encoded(value));
        }
        let user = if endpoint.user.is_empty() { "default" } else { &endpoint.user };
        let (host, account) = (host_line(endpoint, "clickhouse"), account_line(user, &endpoint.password));
        head += &format!(" HTTP/1.1\r\n{host}{account}Content-Length:");
        Line { head: head.into_bytes() }
    }

    /// Appends a request whose body `write` appends. If that fails, nothing is appended.
    ///
    /// # Errors
    /// The error of `write`.
    pub(super) fn append<E>(
        &self,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
        append(&self.head, out, write)
    }
}

/// Sends a query and returns the text of its answer, without the last line break.
///
/// # Errors
/// The server's error; [`DatabaseError::Lost`] when the connection breaks or the answer is none.
pub(super) fn ask(channel: &mut Channel, line: &Line, query: &str) -> Result<String, DatabaseError> {
    let told = exchange(channel, query, &line.head, query.as_bytes())?;
    if told.status != 200 {
        return Err(refusal(told.status, &told.body));
    }
    let text = String::from_utf8(told.body).map_err(|_| DatabaseError::Lost("the answer is no text".to_owned()))?;
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

/// Returns the error that the server's words say, with its code: `Code: 60, e.displayText() = DB::Exception: Table …` or, in newer versions, `Code: 60. DB::Exception: Table …`. Whatever
/// stands before the server, such as a proxy, has no such code; whether a query was carried out then is known only if the request itself was refused.
pub(super) fn refusal(status: u16, told: &[u8]) -> DatabaseError {
    let told = String::from_utf8_lossy(told);
    let code = told.trim_start().strip_prefix("Code: ").map(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        (&rest[..digits], rest[digits..].trim_start_matches([',', '.', ' ']))
    });
    match code {
        Some((code, rest)) if !code.is_empty() => {
            let rest = rest.strip_prefix("e.displayText() = ").unwrap_or(rest);
            let rest = rest.split(", e.what() = ").next().unwrap_or(rest);
            let rest = rest.strip_prefix("DB::Exception: ").unwrap_or(rest);
            DatabaseError::refused(code, shown(rest, TOLD_MOST))
        }
        _ if (400..500).contains(&status) => DatabaseError::refused(status.to_string(), shown(&told, TOLD_MOST)),
        _ => DatabaseError::Lost(format!("the server answers with status {status}: {}", shown(&told, TOLD_MOST))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_has_the_account_the_database_and_the_settings() {
        let endpoint = Endpoint {
            tcp: Some(("::1".to_owned(), 8123)),
            user: "me\r\nX: y".to_owned(),
            password: "p:w".to_owned(),
            database: "a b".to_owned(),
            ..Endpoint::default()
        };
        let line = Line::new(&endpoint, &[("max_threads".to_owned(), "1&x=2".to_owned())]);
        let right = "POST /?wait_end_of_query=1&database=a%20b&max_threads=1%26x%3D2 HTTP/1.1\r\nHost: [::1]:8123\r\n\
                     Authorization: Basic bWUNClg6IHk6cDp3\r\nContent-Length:";
        assert_eq!(String::from_utf8(line.head).unwrap(), right);
    }

    #[test]
    fn errors_of_old_and_new_versions_have_their_code() {
        for told in [
            "Code: 60, e.displayText() = DB::Exception: Table t doesn't exist., e.what() = DB::Exception\n",
            "Code: 60. DB::Exception: Table t doesn't exist.",
        ] {
            assert_eq!(refusal(404, told.as_bytes()), DatabaseError::refused("60", "Table t doesn't exist."));
        }
        assert!(refusal(502, b"Bad Gateway").is_lost());
        assert_eq!(refusal(403, b"no\x1b[0m"), DatabaseError::refused("403", "no?[0m"));
        assert!(refusal(500, b"Code: none").is_lost());
    }
}
