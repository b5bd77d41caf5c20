//! Questions about what is stored, over Prometheus's HTTP API, so that dashboards draw it. Main type: [`PrometheusFront`].
//!
//! A metric is a field, and its labels are the tags (`names`). A question (`language`) selects series, whose samples are read (`series`) over a connection that
//! only reads (`reader`); functions and aggregations are computed here (`window`, `evaluate`).
//!
//! Invariant: nothing is answered without the token, where there is one; no question changes anything, and none reads more rows, takes more time or
//! answers with more points than its bounds say. Recording does not wait for questions: they have their own threads and connections.

mod answer;
mod evaluate;
mod form;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod labels;
mod language;
mod names;
mod paths;
mod reader;
mod refusal;
mod series;
mod steps;
mod sum;
mod window;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::header::{ALLOW, HeaderValue};
use hyper::{Method, Request, StatusCode};
use tokio::sync::Semaphore;

use super::config::QueryConfig;
use super::guarded::{Guard, GuardedListener};
use super::intake::anteroom::Place;
use super::intake::response::{Answer, error, text};
use super::intake::{Renewal, connections_page};
use super::meter::Count;
use super::metrics::Page;
use crate::database::Database;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::QUESTIONS;

use form::Form;
use reader::{Bounds, Readers};
use refusal::Refusal;

/// The most bytes of a body.
const BODY_BYTES_MAX: usize = 64 << 10;

/// The server that answers questions.
pub struct PrometheusFront {
    listener: GuardedListener,
    shared: Arc<Shared>,
}

struct Shared {
    guard: Guard,
    patience: Duration,
    /// How long a question may wait for its turn.
    within: Duration,
    turns: Semaphore,
    readers: Readers,
    answered: Count,
    refused: Count,
}

impl PrometheusFront {
    /// Starts the server. The database need not answer yet.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &QueryConfig, database: Arc<dyn Database>) -> Result<Self, String> {
        let bounds = Bounds { rows: config.rows, series: config.series as usize, within: config.within };
        let shared = Arc::new(Shared {
            guard: Guard::new("query", config.token),
            patience: config.listen.patience,
            within: config.within,
            turns: Semaphore::new(config.at_once as usize),
            readers: Readers::new(database, bounds),
            answered: Count::default(),
            refused: Count::default(),
        });
        let (of_requests, listen) = (Arc::clone(&shared), (&config.listen, config.token.is_none()));
        let listener =
            GuardedListener::start("query", listen, config.at_once as usize, move |request, peer, place| {
                let shared = Arc::clone(&of_requests);
                async move { answer(request, peer, &place, shared).await }
            })?;
        Ok(PrometheusFront { listener, shared })
    }

    /// Reads the certificate again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        self.listener.read_certificates()
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listener.address()
    }

    /// Returns the function that writes the part of `/metrics` about questions.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let connections = connections_page("query_", std::slice::from_ref(self.listener.running()));
        let shared = Arc::clone(&self.shared);
        move || {
            let mut page = Page::default();
            let says = "Questions over Prometheus's HTTP API that were answered.";
            page.counter("query_answered_total", says, shared.answered.get());
            let says = "Questions over Prometheus's HTTP API that were refused.";
            page.counter("query_refused_total", says, shared.refused.get());
            let says = "Rows that were read from the database for questions.";
            page.counter("query_rows_total", says, shared.readers.rows.get());
            page.0 + &connections()
        }
    }

    /// Stops; answers under way are still sent.
    pub fn stop(self) {
        self.listener.stop();
    }
}

async fn answer(request: Request<Incoming>, peer: SocketAddr, place: &Place, shared: Arc<Shared>) -> Answer {
    if let Some(refusal) = shared.guard.refusal(&request, peer, place) {
        return refusal;
    }
    let outcome = ask(request, Arc::clone(&shared)).await;
    let counter = if outcome.status().is_success() { &shared.answered } else { &shared.refused };
    counter.add(1);
    outcome
}

/// Reads the request, waits for its turn, and answers it on a thread that may block.
async fn ask(request: Request<Incoming>, shared: Arc<Shared>) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::POST | Method::HEAD) {
        let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", "use GET, POST");
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, POST"));
        return answer;
    }
    let path = request.uri().path().to_owned();
    if let Some(said) = paths::at_once(&path) {
        return text(StatusCode::OK, "application/json", said);
    }
    let query = request.uri().query().unwrap_or_default().to_owned();
    let body = Limited::new(request.into_body(), BODY_BYTES_MAX).collect();
    let body = match tokio::time::timeout(shared.patience, body).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => {
            let says = format!("the body has more than {BODY_BYTES_MAX} bytes, or did not arrive whole");
            return answer::refused(&Refusal::Bad(says));
        }
        Err(_) => return error(StatusCode::REQUEST_TIMEOUT, "request timeout", "the request took too long to arrive"),
    };
    let form = match Form::read(&query, &String::from_utf8_lossy(&body)) {
        Ok(form) => form,
        Err(refusal) => return answer::refused(&refusal),
    };
    let turn = tokio::time::timeout(shared.within, shared.turns.acquire()).await;
    let Ok(Ok(_turn)) = turn else {
        let says = "as many questions as query.at_once are being answered, and none of them ended within query.within";
        return answer::refused(&Refusal::Timeout(says.to_owned()));
    };
    let of_work = Arc::clone(&shared);
    let work = move || match paths::answer(&path, &form, &of_work.readers) {
        Ok(said) => text(StatusCode::OK, "application/json", said),
        Err(refusal) => answer::refused(&refusal),
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| error(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the question could not be answered"))
}
