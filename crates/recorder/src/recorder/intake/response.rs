//! HTTP responses: the outcome of a request, in the terms of InfluxDB's clients.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use hyper::{Response, StatusCode};
use serde_json::json;

use super::door::Taken;
use super::incoming::Refused;
use super::request::{Wrong, retry_after_s};
use crate::recorder::line::LineError;

/// A response.
pub(in crate::recorder) type Answer = Response<Full<Bytes>>;

/// Returns a response with a text.
pub(in crate::recorder) fn text(status: StatusCode, content_type: &'static str, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(content_type));
    answer
}

/// Returns a response without content.
pub(in crate::recorder) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// Returns an error in the form that both versions of InfluxDB use.
pub(in crate::recorder) fn error(status: StatusCode, code: &str, message: &str) -> Answer {
    let body = json!({ "code": code, "message": message, "error": message });
    text(status, "application/json", body.to_string())
}

/// Returns the response to a stored request: 204, or 400 if lines were left out.
pub(super) fn taken(taken: &Taken) -> Answer {
    match taken.bad_lines {
        0 => empty(StatusCode::NO_CONTENT),
        bad => bad_lines(
            &taken.errors,
            bad,
            &format!("partial write: {} points are stored and {bad} lines are not", taken.rows),
        ),
    }
}

fn bad_lines(errors: &[LineError], bad: usize, beginning: &str) -> Answer {
    let shown: Vec<_> = errors.iter().map(LineError::to_string).collect();
    let more = if bad > shown.len() { format!("; and {} more", bad - shown.len()) } else { String::new() };
    let message = format!("{beginning}: {}{more}", shown.join("; "));
    let first = errors.first();
    let body = json!({
        "code": "invalid", "message": message, "error": message,
        "line": first.map(|error| error.line), "column": first.map(|error| error.column),
    });
    text(StatusCode::BAD_REQUEST, "application/json", body.to_string())
}

/// Returns the response to a request of which nothing was stored.
pub(super) fn refused(wrong: &Wrong) -> Answer {
    match wrong {
        Wrong::Bad(message) => error(StatusCode::BAD_REQUEST, "invalid", message),
        Wrong::NoToken => unauthorised("send a token: Authorization: Token ..."),
        Wrong::UnknownToken => unauthorised("the token is not known here; send one that is: Authorization: Token ..."),
        Wrong::Source(sentence) => error(StatusCode::FORBIDDEN, "forbidden", sentence),
        Wrong::Slow => error(StatusCode::REQUEST_TIMEOUT, "request timeout", "the request took too long to arrive"),
        Wrong::TooLarge(bytes_max) => {
            let message = format!("the request has more than {bytes_max} bytes; send smaller batches");
            let body =
                json!({ "code": "request too large", "message": message, "error": message, "maxLength": bytes_max });
            text(StatusCode::PAYLOAD_TOO_LARGE, "application/json", body.to_string())
        }
        Wrong::Encoding(encoding) => {
            let message = format!("Content-Encoding {encoding} is not known; there are gzip, zstd and identity");
            error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid", &message)
        }
        Wrong::Refused(Refused::Bad(errors, bad)) => bad_lines(errors, *bad, "nothing is stored"),
        Wrong::Refused(Refused::Closed(reason)) => {
            error(StatusCode::BAD_REQUEST, "invalid", &format!("nothing of this request is stored: {reason}"))
        }
        Wrong::Refused(Refused::Forbidden(line, sentence)) => {
            let place = line.map_or(String::new(), |line| format!("line {line}: "));
            let message = format!("nothing is stored: {place}{sentence}");
            let body = json!({ "code": "forbidden", "message": message, "error": message, "line": line });
            text(StatusCode::FORBIDDEN, "application/json", body.to_string())
        }
        Wrong::Refused(Refused::TooFast(reason, wait)) => {
            let message = format!("{reason}; nothing is stored, send again later");
            again_later(StatusCode::TOO_MANY_REQUESTS, "too many requests", &message, retry_after_s(*wait))
        }
        Wrong::Refused(Refused::Unfair(wait)) => {
            let message = "this source has had more than its share while others wait; send again later";
            again_later(StatusCode::TOO_MANY_REQUESTS, "too many requests", message, retry_after_s(*wait))
        }
        Wrong::Refused(Refused::Full(reason, wait)) => {
            again_later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason, retry_after_s(*wait))
        }
        Wrong::Refused(Refused::Broken(reason)) => {
            again_later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", reason, 30)
        }
        Wrong::Refused(Refused::Unknown(reason)) => {
            let message = format!("whether it is stored is not known: {reason}; {SEND_AGAIN}");
            error(StatusCode::INTERNAL_SERVER_ERROR, "unknown", &message)
        }
    }
}

/// The advice for a request of which it is not known whether it is stored.
pub(super) const SEND_AGAIN: &str = "with an id it can be sent again and is stored once";

/// Returns the response to a client without a known token.
pub(in crate::recorder) fn unauthorised(message: &str) -> Answer {
    let mut answer = error(StatusCode::UNAUTHORIZED, "unauthorized", message);
    answer.headers_mut().insert(WWW_AUTHENTICATE, hyper::header::HeaderValue::from_static("Token"));
    answer
}

/// Returns an error that asks the client to send again after some seconds.
pub(in crate::recorder) fn again_later(status: StatusCode, code: &str, message: &str, after_s: u64) -> Answer {
    let mut answer = error(status, code, message);
    answer.headers_mut().insert(RETRY_AFTER, after_s.into());
    answer
}
