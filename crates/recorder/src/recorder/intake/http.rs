//! HTTP: the write requests of InfluxDB, and the pages for operators and their tools.
//!
//! `POST /api/v2/write`, `/api/v3/write_lp` and `/write` take line protocol, plain, gzip or zstd, with `precision`; the answer is 204 only when it
//! is durable.
//! `X-Loadline-Source` names the source, otherwise its address does; `Idempotency-Key` is the id by which a request that is sent
//! again is recognised. `GET /health`, `/ready`, `/metrics` and `/ping` report the state; `/query` answers clients that create a database first.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming as HttpBody;
use hyper::header::{ALLOW, CONNECTION, HeaderValue};
use hyper::{Method, Request, StatusCode, Version};

use super::anteroom::Place;
use super::exchange::{TOO_MANY, exchange};
use super::incoming::Refused;
use super::listen::{Stream, serve};
use super::request::{WRITE_3, Wrong, authorise, parameter, pass_over, read_write};
use super::response::{Answer, empty, error, refused, taken, text};
use super::{Entry, Running, Surroundings};
use crate::recorder::access::{Sender, Why};
use crate::recorder::config::ListenConfig;
use crate::recorder::program;

/// Registry entry.
pub(super) static HTTP: Entry = Entry {
    name: "http",
    start: |surroundings| {
        let config = surroundings.config.http.clone()?;
        Some(start(config, surroundings))
    },
};

fn start(config: ListenConfig, surroundings: &Surroundings) -> Result<Running, String> {
    let shared = Arc::new((config.clone(), surroundings.clone()));
    let is_open = surroundings.live.senders("http").are_all();
    serve("http", &config, is_open, &surroundings.stop, TOO_MANY, move |stream, ends, place| {
        connection(stream, ends.peer, place, Arc::clone(&shared))
    })
}

type Shared = Arc<(ListenConfig, Surroundings)>;

/// The sender: its address, and the place of its connection.
type Client<'a> = (SocketAddr, &'a Place);

async fn connection(stream: Box<dyn Stream>, peer: SocketAddr, place: Arc<Place>, shared: Shared) {
    let (patience, stop) = (shared.0.patience, Arc::clone(&shared.1.stop));
    let answer = {
        let place = Arc::clone(&place);
        move |request| {
            let (place, shared) = (Arc::clone(&place), Arc::clone(&shared));
            async move { answer(request, (peer, &place), &shared).await }
        }
    };
    exchange(stream, &place, patience, stop, answer).await;
}

/// Serves a connection that comes from no socket.
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub(super) async fn fuzzed_connection(stream: Box<dyn Stream>, peer: SocketAddr, surroundings: Surroundings) {
    let Some(config) = surroundings.config.http.clone() else { return };
    let place = super::anteroom::lone_place(&config, surroundings.live.senders("http").are_all(), peer.ip());
    connection(stream, peer, place, Arc::new((config, surroundings))).await;
}

async fn answer(request: Request<HttpBody>, client: Client<'_>, shared: &Shared) -> Answer {
    let (config, surroundings) = &**shared;
    let path = request.uri().path().to_owned();
    let (is_write, is_read) =
        (request.method() == Method::POST, [Method::GET, Method::HEAD].contains(request.method()));
    match path.as_str() {
        "/api/v2/write" | WRITE_3 | "/write" if is_write => {
            let mut answer = write(request, client, config, surroundings).await;
            if answer.status().is_client_error() && answer.status() != StatusCode::BAD_REQUEST {
                // The rest of the body is not read.
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            answer
        }
        "/health" if is_read => {
            let version = env!("CARGO_PKG_VERSION");
            let body =
                serde_json::json!({ "name": "loadline", "status": "pass", "message": "running", "version": version });
            text(StatusCode::OK, "application/json", body.to_string())
        }
        "/ready" if is_read => ready((surroundings.readiness)(), (surroundings.quarantine)()),
        "/metrics" if is_read && surroundings.config.shows_metrics => {
            let metrics = (surroundings.metrics)() + &program::text();
            text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", metrics)
        }
        "/ping" if is_read => {
            let mut answer = empty(StatusCode::NO_CONTENT);
            let version = HeaderValue::from_static(concat!("loadline-", env!("CARGO_PKG_VERSION")));
            answer.headers_mut().insert("x-influxdb-version", version);
            answer
        }
        "/query" => query(request, client, surroundings).await,
        "/api/v2/write" | WRITE_3 | "/write" => not_allowed("POST"),
        "/metrics" if !surroundings.config.shows_metrics => {
            error(StatusCode::NOT_FOUND, "not found", "/metrics is answered where [metrics] says")
        }
        "/health" | "/ready" | "/metrics" | "/ping" => not_allowed("GET, HEAD"),
        _ => error(
            StatusCode::NOT_FOUND,
            "not found",
            "there are /api/v2/write, /api/v3/write_lp, /write, /query, /health, /ready, /metrics and /ping",
        ),
    }
}

/// Returns the answer of `/ready`: whether the recorder is ready, and if not why; and the content of the quarantine, which delays no records.
fn ready(why_not: Option<String>, quarantine: Option<serde_json::Value>) -> Answer {
    let (status, mut body) = match why_not {
        None => (StatusCode::OK, serde_json::json!({ "status": "ready" })),
        Some(reason) => {
            let body = serde_json::json!({ "code": "unavailable", "message": reason, "error": reason });
            (StatusCode::SERVICE_UNAVAILABLE, body)
        }
    };
    if let Some(quarantine) = quarantine {
        body["quarantine"] = quarantine;
    }
    text(status, "application/json", body.to_string())
}

/// Answers a query: clients of InfluxDB 1 create their database before they write; whatever its name, it exists.
async fn query(request: Request<HttpBody>, (peer, place): Client<'_>, surroundings: &Surroundings) -> Answer {
    const BYTES_MAX: usize = 8 << 10;
    if let Err(wrong) = let_in(&request, (peer, place), surroundings) {
        count(&wrong, peer, surroundings);
        return refused(&wrong);
    }
    let in_path = parameter(request.uri().query().unwrap_or_default(), "q");
    let asked = match in_path {
        Some(asked) => asked,
        None => {
            let body = Limited::new(request.into_body(), BYTES_MAX).collect();
            let body = tokio::time::timeout(Duration::from_secs(5), body).await;
            let bytes = body.ok().and_then(Result::ok).map(|body| body.to_bytes()).unwrap_or_default();
            parameter(&String::from_utf8_lossy(&bytes), "q").unwrap_or_default()
        }
    };
    if asked.trim_start().to_ascii_lowercase().starts_with("create database") {
        return text(StatusCode::OK, "application/json", "{\"results\":[{\"statement_id\":0}]}".to_owned());
    }
    let message = "the recorder only takes data in; ask the database that it writes into";
    error(StatusCode::BAD_REQUEST, "invalid", message)
}

fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", &format!("use {allowed}"));
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Counts a client that was refused.
fn count(wrong: &Wrong, peer: SocketAddr, surroundings: &Surroundings) {
    let why = match wrong {
        Wrong::NoToken | Wrong::UnknownToken => Why::Token,
        Wrong::Source(_) => Why::Source,
        Wrong::Refused(Refused::Forbidden(..)) => Why::Measurement,
        Wrong::Refused(Refused::TooFast(..)) => Why::Rate,
        _ => return,
    };
    surroundings.meter.strangers.refuse("http", why, peer.ip());
}

/// Identifies the sender; once it is known, its connection is no stranger any more.
fn let_in<B>(
    request: &Request<B>,
    (peer, place): Client<'_>,
    surroundings: &Surroundings,
) -> Result<Arc<Sender>, Wrong> {
    let sender = authorise(request, &surroundings.live.senders("http"), peer)?;
    match place.let_in() {
        true => Ok(sender),
        false => Err(Wrong::Refused(Refused::Full("others came before".to_owned(), Duration::from_secs(1)))),
    }
}

async fn write(
    request: Request<HttpBody>,
    (peer, place): Client<'_>,
    config: &ListenConfig,
    surroundings: &Surroundings,
) -> Answer {
    let meter = &surroundings.meter;
    let bytes_max = surroundings.config.request_bytes;
    let (head, mut body) = request.into_parts();
    let request = Request::from_parts(head, ());
    let read = match let_in(&request, (peer, place), surroundings) {
        Ok(sender) => read_write((&request, &mut body), (sender, peer), &surroundings.door, config, bytes_max).await,
        Err(wrong) => Err(wrong),
    };
    let (incoming, memory) = match read {
        Ok(read) => read,
        Err(wrong) => {
            count(&wrong, peer, surroundings);
            if wrong == Wrong::Slow {
                place.count_slow();
            }
            match wrong {
                Wrong::Refused(Refused::TooFast(..)) => meter.turned_away.add(1),
                Wrong::Refused(_) => {}
                _ => meter.refused_requests.add(1),
            }
            if request.version() == Version::HTTP_2 {
                pass_over(&mut body).await;
            }
            return refused(&wrong);
        }
    };
    let door = Arc::clone(&surroundings.door);
    // A task of its own, which goes on when the client hangs up: a request that waits to be made durable keeps its memory until it is.
    let taking = tokio::spawn(async move {
        let outcome = door.take(incoming).await;
        drop(memory);
        outcome
    });
    match taking.await {
        Ok(Ok(what)) => taken(&what),
        Ok(Err(reason)) => {
            let wrong = Wrong::Refused(reason);
            count(&wrong, peer, surroundings);
            refused(&wrong)
        }
        // The outcome is not known.
        Err(_) => refused(&Wrong::Refused(Refused::Unknown("the recorder is stopping".to_owned()))),
    }
}
