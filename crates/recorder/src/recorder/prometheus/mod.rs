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

use super::access::{Strangers, TokenHash, Why};
use super::config::QueryConfig;
use super::intake::anteroom::Place;
use super::intake::exchange::{TOO_MANY, exchange};
use super::intake::listen::{Stream, serve};
use super::intake::request::given_token;
use super::intake::response::{Answer, error, text, unauthorised};
use super::intake::{Renewal, Running, connections_page};
use super::meter::Count;
use super::metrics::Page;
use super::stop::Stop;
use super::threads;
use crate::database::Database;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use fuzzed::QUESTIONS;

use form::Form;
use reader::{Bounds, Readers};
use refusal::Refusal;

/// The most bytes of a body.
const BODY_BYTES_MAX: usize = 64 << 10;
/// How long answers under way may take after a stop.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// The server that answers questions.
pub struct PrometheusFront {
    runtime: tokio::runtime::Runtime,
    running: Running,
    stop: Arc<Stop>,
    shared: Arc<Shared>,
}

struct Shared {
    token: Option<TokenHash>,
    strangers: Strangers,
    patience: Duration,
    /// How long a question may wait for its turn.
    within: Duration,
    turns: Semaphore,
    readers: Readers,
    stop: Arc<Stop>,
    answered: Count,
    refused: Count,
}

impl PrometheusFront {
    /// Starts the server. The database need not answer yet.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &QueryConfig, database: Arc<dyn Database>) -> Result<Self, String> {
        let runtime = threads::runtime("query", 1, config.at_once as usize)
            .map_err(|error| format!("questions cannot be answered: {error}"))?;
        let stop = Arc::new(Stop::default());
        let bounds = Bounds { rows: config.rows, series: config.series as usize, within: config.within };
        let shared = Arc::new(Shared {
            token: config.token,
            strangers: Strangers::default(),
            patience: config.listen.patience,
            within: config.within,
            turns: Semaphore::new(config.at_once as usize),
            readers: Readers::new(database, bounds),
            stop: Arc::clone(&stop),
            answered: Count::default(),
            refused: Count::default(),
        });
        let (of_connections, is_open) = (Arc::clone(&shared), config.token.is_none());
        let inside = runtime.enter();
        let running = serve("query", &config.listen, is_open, &stop, TOO_MANY, move |stream, ends, place| {
            connection(stream, ends.peer, place, Arc::clone(&of_connections))
        });
        drop(inside);
        Ok(PrometheusFront { running: running?, runtime, stop, shared })
    }

    /// Reads the certificate again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        Renewal::read([&self.running])
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// Returns the function that writes the part of `/metrics` about questions.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let connections = connections_page("query_", std::slice::from_ref(&self.running));
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
        let (shared, place) = (Arc::clone(&shared), Arc::clone(&of_place));
        async move { answer(request, peer, &place, shared).await }
    };
    exchange(stream, &place, patience, stop, answer).await;
}

async fn answer(request: Request<Incoming>, peer: SocketAddr, place: &Place, shared: Arc<Shared>) -> Answer {
    if let Some(token) = &shared.token
        && !given_token(&request).is_some_and(|given| token.is(&given))
    {
        shared.strangers.refuse("query", Why::Token, peer.ip());
        return unauthorised("send the token of [query]: Authorization: Bearer ..., or as the password of Basic");
    }
    if !place.let_in() {
        return error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "others came before; ask again");
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
