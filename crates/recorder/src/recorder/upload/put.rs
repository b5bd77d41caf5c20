//! HTTP: `PUT /blocks/<camera>/<name>`, answered with 201 when the block is durable.
//!
//! The camera's password is the token: `Authorization: Bearer …`, or `Basic` with the camera as the user. The length must be announced, so that
//! an upload that was cut is recognised. `GET /health`, `/ready` and `/metrics` say how it goes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, StatusCode};

use super::{Body, Entry, Expected, Login, NotTaken, Surroundings, Why, page};
use crate::recorder::config::ListenConfig;
use crate::recorder::inbox::{Acknowledged, InboxError};
use crate::recorder::intake::Running;
use crate::recorder::intake::anteroom::Place;
use crate::recorder::intake::exchange::{TOO_MANY, exchange};
use crate::recorder::intake::listen::{Stream, serve};
use crate::recorder::intake::request::retry_after_s;
use crate::recorder::intake::response::{Answer, again_later, error, text};
use crate::recorder::program;

/// HTTP PUT.
pub(super) static PUT: Entry = Entry {
    name: "put",
    start: |surroundings| {
        let config = surroundings.config.put.clone()?;
        Some(start(config, surroundings))
    },
};

type Shared = Arc<(ListenConfig, Surroundings)>;

fn start(config: ListenConfig, surroundings: &Surroundings) -> Result<Running, String> {
    let shared = Arc::new((config.clone(), surroundings.clone()));
    let is_open = surroundings.blocks.is_open();
    serve("put", &config, is_open, &surroundings.stop, TOO_MANY, move |stream, ends, place| {
        connection(stream, ends.peer, place, Arc::clone(&shared))
    })
}

/// The sender: its address, and the place of its connection.
type Client<'a> = (SocketAddr, &'a Place);

async fn connection(stream: Box<dyn Stream>, peer: SocketAddr, place: Arc<Place>, shared: Shared) {
    let (patience, stop) = (shared.0.patience, Arc::clone(&shared.1.stop));
    let _open = shared.1.blocks.meter.connection();
    let answer = {
        let place = Arc::clone(&place);
        move |request| {
            let (place, shared) = (Arc::clone(&place), Arc::clone(&shared));
            async move { answer(request, (peer, &place), &shared).await }
        }
    };
    exchange(stream, &place, patience, stop, answer).await;
}

async fn answer(request: Request<Incoming>, client: Client<'_>, shared: &Shared) -> Answer {
    let surroundings = &shared.1;
    let path = request.uri().path().to_owned();
    let is_read = [Method::GET, Method::HEAD].contains(request.method());
    match path.strip_prefix("/blocks/") {
        Some(rest) if request.method() == Method::PUT => {
            let mut answer = put(request, rest, client, shared).await.unwrap_or_else(|refusal| refusal);
            if !answer.status().is_success() {
                // The rest of the body is not read.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            answer
        }
        Some(_) => not_allowed("PUT"),
        None => match path.as_str() {
            "/health" | "/ready" | "/metrics" if !is_read => not_allowed("GET, HEAD"),
            "/health" => {
                text(StatusCode::OK, "application/json", "{\"name\":\"loadline\",\"status\":\"pass\"}".to_owned())
            }
            "/ready" => match surroundings.blocks.why_not_ready() {
                None => text(StatusCode::OK, "application/json", "{\"status\":\"ready\"}".to_owned()),
                Some(reason) => error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &reason),
            },
            "/metrics" if surroundings.config.shows_metrics => {
                let metrics = page::text(&surroundings.blocks) + &program::text();
                text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics)
            }
            "/metrics" => error(StatusCode::NOT_FOUND, "not found", "/metrics is answered where [metrics] says"),
            _ => error(
                StatusCode::NOT_FOUND,
                "not found",
                "there are PUT /blocks/<camera>/<name>, /health, /ready and /metrics",
            ),
        },
    }
}

fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", &format!("use {allowed}"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

async fn put(request: Request<Incoming>, rest: &str, client: Client<'_>, shared: &Shared) -> Result<Answer, Answer> {
    let (config, Surroundings { blocks, stop, .. }) = &**shared;
    let Some((camera, name)) = rest.split_once('/').and_then(|(camera, name)| Some((decode(camera)?, decode(name)?)))
    else {
        return Err(error(StatusCode::BAD_REQUEST, "invalid", "the path must be /blocks/<camera>/<name>"));
    };
    authorise(&request, &camera, client, shared).await?;
    let announced = request.headers().contains_key(CONTENT_LENGTH);
    let Some(bytes) = request.body().size_hint().exact().filter(|_| announced) else {
        let message = "send Content-Length, so that a block that was cut is recognised";
        return Err(error(StatusCode::LENGTH_REQUIRED, "length required", message));
    };
    if stop.is_asked() {
        return Err(refused(&NotTaken::Stopping));
    }
    let Some(_session) = blocks.session(&camera) else {
        let message = "this camera has as many connections as it may";
        return Err(again_later(StatusCode::TOO_MANY_REQUESTS, "too many requests", message, 1));
    };
    blocks.admit(&camera, &name, Some(bytes)).await.map_err(|refusal| refused(&refusal))?;
    let mut body = Frames { body: request.into_body(), left: Bytes::new() };
    let deposited = blocks.deposit(&camera, &name, Expected::Exactly(bytes), config.patience, &mut body).await;
    let (status, says) = match deposited.map_err(|refusal| refused(&refusal))? {
        Acknowledged::New => (StatusCode::CREATED, "{\"status\":\"durable\"}"),
        Acknowledged::Again => (StatusCode::OK, "{\"status\":\"durable\",\"again\":true}"),
    };
    Ok(text(status, "application/json", says.to_owned()))
}

/// Identifies the sender: the camera of the path, by its password.
async fn authorise(
    request: &Request<Incoming>,
    camera: &str,
    (peer, place): Client<'_>,
    shared: &Shared,
) -> Result<(), Answer> {
    let blocks = &shared.1.blocks;
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let given = match header.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => {
            Some((camera.to_owned(), token.trim().to_owned()))
        }
        Some((scheme, encoded)) if scheme.eq_ignore_ascii_case("basic") => basic(encoded.trim()),
        _ if blocks.is_open() => Some((camera.to_owned(), String::new())),
        _ => None,
    };
    let Some((user, password)) = given else {
        blocks.meter.refuse(Why::Login);
        return Err(unauthorised("send the camera's password: Authorization: Bearer ..."));
    };
    let login = if user == camera || blocks.is_open() {
        blocks.login(camera, &password, peer.ip()).await
    } else {
        blocks.meter.refuse(Why::Login);
        Login::Unknown
    };
    match login {
        Login::Known if place.let_in() => Ok(()),
        Login::Known => {
            let message = "others came before; send again";
            Err(again_later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message, 1))
        }
        Login::Unknown => Err(unauthorised("there is no such camera, or this is not its password; send the right one")),
        Login::TooMany => {
            let message = "too many wrong passwords came from this address";
            Err(again_later(StatusCode::TOO_MANY_REQUESTS, "too many requests", message, 30))
        }
    }
}

fn unauthorised(message: &str) -> Answer {
    let mut answer = error(StatusCode::UNAUTHORIZED, "unauthorized", message);
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer, Basic realm=\"blocks\""));
    answer
}

fn basic(encoded: &str) -> Option<(String, String)> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(encoded).ok()?;
    let text = String::from_utf8(decoded).ok()?;
    text.split_once(':').map(|(user, password)| (user.to_owned(), password.to_owned()))
}

/// Percent-decodes a segment of a path.
fn decode(part: &str) -> Option<String> {
    let mut out = Vec::with_capacity(part.len());
    let mut bytes = part.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'%' => {
                let hex = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?
            }
            plain => plain,
        });
    }
    String::from_utf8(out).ok()
}

fn refused(refusal: &NotTaken) -> Answer {
    let says = refusal.to_string();
    match refusal {
        NotTaken::Inbox(InboxError::Name(_)) => error(StatusCode::BAD_REQUEST, "invalid", &says),
        NotTaken::Inbox(InboxError::Exists(_)) => error(StatusCode::CONFLICT, "conflict", &says),
        NotTaken::Inbox(InboxError::TooLarge(_)) => error(StatusCode::PAYLOAD_TOO_LARGE, "too large", &says),
        NotTaken::Inbox(InboxError::Full(_)) => again_later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &says, 5),
        NotTaken::Inbox(InboxError::Broken(_) | InboxError::Unusable { .. }) => {
            again_later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &says, 30)
        }
        NotTaken::Stopping => again_later(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &says, 5),
        NotTaken::TooFast(wait) => {
            again_later(StatusCode::TOO_MANY_REQUESTS, "too many requests", &says, retry_after_s(*wait))
        }
        NotTaken::Cut(_) => error(StatusCode::BAD_REQUEST, "invalid", &says),
        NotTaken::Slow(_) => error(StatusCode::REQUEST_TIMEOUT, "request timeout", &says),
    }
}

/// A body that arrives in frames.
struct Frames {
    body: Incoming,
    left: Bytes,
}

impl Body for Frames {
    async fn read(&mut self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        while self.left.is_empty() {
            match self.body.frame().await {
                None => return Ok(0),
                Some(frame) => self.left = frame.map_err(io::Error::other)?.into_data().unwrap_or_default(),
            }
        }
        let taken = self.left.split_to(self.left.len().min(buffer.capacity() - buffer.len()));
        buffer.extend_from_slice(&taken);
        Ok(taken.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_path_are_decoded_once() {
        assert_eq!(decode("a%20b%2fc%2E%2e"), Some("a b/c..".to_owned()));
        assert_eq!(decode("a%252f"), Some("a%2f".to_owned()));
        assert_eq!((decode("a%2"), decode("a%zz"), decode("%ff")), (None, None, None));
        assert_eq!(basic("R0RBOnNlY3JldDp4"), Some(("GDA".to_owned(), "secret:x".to_owned())));
    }
}
