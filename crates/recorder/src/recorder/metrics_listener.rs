//! `/metrics` at a separate address, with a separate token. Main type: [`MetricsListener`].
//!
//! Invariant: where a token is configured, nothing is shown without it.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};

use super::config::MetricsConfig;
use super::guarded::{Guard, GuardedListener};
use super::intake::Renewal;
use super::intake::anteroom::Place;
use super::intake::response::{Answer, error, text};
use super::program;

/// A function that writes the page, or a part of it.
pub type Shown = Box<dyn Fn() -> String + Send + Sync>;

/// The server of `/metrics`.
pub struct MetricsListener(GuardedListener);

struct Shared {
    guard: Guard,
    shown: Vec<Shown>,
}

impl MetricsListener {
    /// Starts the server; its page contains all parts in `shown`.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &MetricsConfig, shown: Vec<Shown>) -> Result<Self, String> {
        let shared = Arc::new(Shared { guard: Guard::new("metrics", config.token), shown });
        let is_open = config.token.is_none();
        let listener = GuardedListener::start("metrics", (&config.listen, is_open), 4, move |request, peer, place| {
            let answer = answer(&request, peer, &place, &shared);
            async move { answer }
        })?;
        Ok(MetricsListener(listener))
    }

    /// Reads the certificate again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        self.0.read_certificates()
    }

    /// Returns the address on which it listens; `None` if there is none.
    pub fn address(&self) -> Option<SocketAddr> {
        self.0.address()
    }

    /// Stops; answers under way are still sent.
    pub fn stop(self) {
        self.0.stop();
    }
}

fn answer<B>(request: &Request<B>, peer: SocketAddr, place: &Place, shared: &Shared) -> Answer {
    if let Some(refusal) = shared.guard.refusal(request, peer, place) {
        return refusal;
    }
    match (request.uri().path(), request.method()) {
        ("/metrics", &Method::GET | &Method::HEAD) => {
            let page: String = shared.shown.iter().map(|shown| shown()).collect();
            text(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page + &program::text())
        }
        ("/metrics", _) => {
            let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", "use GET, HEAD");
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            answer
        }
        _ => error(StatusCode::NOT_FOUND, "not found", "there is /metrics"),
    }
}
