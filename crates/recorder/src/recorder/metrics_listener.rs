//! `/metrics` at a separate address, with a separate token. Main type: [`MetricsListener`].
//!
//! Invariant: where a token is configured, nothing is shown without it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};

use super::access::{Strangers, TokenHash, Why};
use super::config::MetricsConfig;
use super::intake::anteroom::Place;
use super::intake::exchange::{TOO_MANY, exchange};
use super::intake::listen::{Stream, serve};
use super::intake::request::given_token;
use super::intake::response::{Answer, error, text, unauthorised};
use super::intake::{Renewal, Running};
use super::program;
use super::stop::Stop;
use super::threads;

/// How long answers under way may take after a stop.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// A function that writes the page, or a part of it.
pub type Shown = Box<dyn Fn() -> String + Send + Sync>;

/// The server of `/metrics`.
pub struct MetricsListener {
    runtime: tokio::runtime::Runtime,
    running: Running,
    stop: Arc<Stop>,
}

struct Shared {
    token: Option<TokenHash>,
    shown: Vec<Shown>,
    strangers: Strangers,
    patience: Duration,
    stop: Arc<Stop>,
}

impl MetricsListener {
    /// Starts the server; its page contains all parts in `shown`.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &MetricsConfig, shown: Vec<Shown>) -> Result<Self, String> {
        let runtime = threads::runtime("metrics", 1, 4).map_err(|error| format!("metrics cannot be shown: {error}"))?;
        let stop = Arc::new(Stop::default());
        let (strangers, patience) = (Strangers::default(), config.listen.patience);
        let shared = Shared { token: config.token, shown, strangers, patience, stop: Arc::clone(&stop) };
        let (shared, is_open) = (Arc::new(shared), config.token.is_none());
        let inside = runtime.enter();
        let running = serve("metrics", &config.listen, is_open, &stop, TOO_MANY, move |stream, ends, place| {
            connection(stream, ends.peer, place, Arc::clone(&shared))
        });
        drop(inside);
        Ok(MetricsListener { running: running?, runtime, stop })
    }

    /// Reads the certificate again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        Renewal::read([&self.running])
    }

    /// Returns the address on which it listens; `None` if there is none.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// Stops; answers under way are still sent.
    pub fn stop(self) {
        self.stop.ask(LAST_ANSWERS);
        let task = self.running.task;
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(LAST_ANSWERS + Duration::from_secs(1), task).await;
        });
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}

async fn connection(stream: Box<dyn Stream>, peer: SocketAddr, place: Arc<Place>, shared: Arc<Shared>) {
    let (of_place, patience, stop) = (Arc::clone(&place), shared.patience, Arc::clone(&shared.stop));
    let answer = move |request| {
        let answer = answer(&request, peer, &of_place, &shared);
        async move { answer }
    };
    exchange(stream, &place, patience, stop, answer).await;
}

fn answer<B>(request: &Request<B>, peer: SocketAddr, place: &Place, shared: &Shared) -> Answer {
    if let Some(token) = &shared.token
        && !given_token(request).is_some_and(|given| token.is(&given))
    {
        shared.strangers.refuse("metrics", Why::Token, peer.ip());
        return unauthorised("send the token of [metrics]: Authorization: Bearer ...");
    }
    if !place.let_in() {
        return error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "others came before; ask again");
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
