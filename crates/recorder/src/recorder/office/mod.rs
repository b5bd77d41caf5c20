//! The ticket office: read-only HTTP access to the stored violations, for the people who write the tickets.
//!
//! Main type: [`Office`]. `GET /violations` lists, `GET /violations/<number>` gives a record, `GET /violations/<number>/image.jpg` its image.
//!
//! Invariant: nothing is answered without a token, and nothing before the access is on the disk in the audit file. No
//! request changes anything. If the audit file cannot be written, only the office stops answering.

mod audit;
mod filter;
mod reading;
mod strangers;

use std::net::SocketAddr;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};

use super::access::{Strangers, TokenHash, Why};
use super::config::OfficeConfig;
use super::intake::anteroom::Place;
use super::intake::exchange::{TOO_MANY, exchange};
use super::intake::listen::{Stream, serve};
use super::intake::response::{Answer, error};
use super::intake::{Renewal, Running, connections_page};
use super::processing::Form;
use super::stop::Stop;
use crate::database::Database;
use crate::recorder::threads;
pub use audit::{Erasure, note_erasure};

use audit::{Access, Audit};
use reading::{Reading, Refusal};

/// The most requests that read the database at the same time.
const READING_THREADS: usize = 4;
/// How long answers under way may take after a stop.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// A running ticket office.
pub struct Office {
    runtime: tokio::runtime::Runtime,
    running: Running,
    stop: Arc<Stop>,
    shared: Arc<Shared>,
}

/// The readers: names and tokens.
type Readers = Vec<(String, TokenHash)>;

struct Shared {
    readers: RwLock<Readers>,
    strangers: Strangers,
    patience: Duration,
    reading: Reading,
    audit: Audit,
    stop: Arc<Stop>,
}

impl Office {
    /// Starts the office. The database need not answer yet.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &OfficeConfig, form: Form, database: Arc<dyn Database>) -> Result<Self, String> {
        let reading = Reading::new(database, form, config)?;
        let audit = Audit::open(&config.audit)?;
        let runtime = threads::runtime("office", 1, READING_THREADS)
            .map_err(|error| format!("the office cannot be started: {error}"))?;
        let stop = Arc::new(Stop::default());
        let shared = Arc::new(Shared {
            readers: RwLock::new(readers_of(&config.readers)),
            strangers: Strangers::default(),
            patience: config.listen.patience,
            reading,
            audit,
            stop: Arc::clone(&stop),
        });
        let for_connections = Arc::clone(&shared);
        let inside = runtime.enter();
        let running = serve("office", &config.listen, false, &stop, TOO_MANY, move |stream, ends, place| {
            connection(stream, ends.peer, place, Arc::clone(&for_connections))
        });
        drop(inside);
        Ok(Office { running: running?, runtime, stop, shared })
    }

    /// Reads the certificate again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        Renewal::read([&self.running])
    }

    /// Replaces the readers for later requests: names and tokens.
    pub fn renew_readers(&self, readers: &[(String, String)]) {
        *self.shared.readers.write().unwrap_or_else(PoisonError::into_inner) = readers_of(readers);
    }

    /// Returns the function that writes the part of `/metrics` about its connections.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        connections_page("office_", std::slice::from_ref(&self.running))
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// Stops; answers under way are still sent. Returns what has gone wrong, if anything.
    pub fn stop(self) -> Option<String> {
        self.stop.ask(LAST_ANSWERS);
        let task = self.running.task;
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(LAST_ANSWERS + Duration::from_secs(1), task).await;
        });
        self.runtime.shutdown_timeout(Duration::from_secs(1));
        self.shared.audit.end();
        self.shared.audit.failure()
    }
}

async fn connection(stream: Box<dyn Stream>, peer: SocketAddr, place: Arc<Place>, shared: Arc<Shared>) {
    let (patience, stop) = (shared.patience, Arc::clone(&shared.stop));
    let of_place = Arc::clone(&place);
    let answer = move |request| {
        let (shared, place) = (Arc::clone(&shared), Arc::clone(&of_place));
        async move { answer(&request, peer, &place, shared).await }
    };
    exchange(stream, &place, patience, stop, answer).await;
}

/// Reads the requested data on a thread that may block, records the access, and answers.
async fn answer<B>(request: &Request<B>, peer: SocketAddr, place: &Place, shared: Arc<Shared>) -> Answer {
    let reader = reader(request, &shared.readers.read().unwrap_or_else(PoisonError::into_inner)).map(str::to_owned);
    match &reader {
        // A connection that was put out meanwhile gets no answer, and may be recorded all the same.
        Some(_) => {
            place.let_in();
        }
        None => shared.strangers.refuse("office", Why::Token, peer.ip()),
    }
    let (method, target) = (request.method().clone(), request.uri().to_string());
    let (path, query) = (request.uri().path().to_owned(), request.uri().query().unwrap_or_default().to_owned());
    let work = move || {
        let (answer, numbers) = match (&reader, &method) {
            (None, _) => (no_token(), Vec::new()),
            (Some(_), &Method::GET) => read(&path, &query, &shared.reading),
            (Some(_), _) => (not_allowed(), Vec::new()),
        };
        let access = Access {
            reader: reader.as_deref(),
            peer,
            request: format!("{method} {target}"),
            status: answer.status().as_u16(),
            numbers: &numbers,
        };
        match shared.audit.write(&access) {
            Ok(()) => answer,
            Err(reason) => error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", &reason),
        }
    };
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|_| error(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request could not be answered"))
}

fn readers_of(configured: &[(String, String)]) -> Readers {
    configured.iter().map(|(name, token)| (name.clone(), TokenHash::of(token))).collect()
}

/// Returns the name of the reader with the token of this request.
fn reader<'a, B>(request: &Request<B>, readers: &'a Readers) -> Option<&'a str> {
    let given = request.headers().get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    let given = TokenHash::of(given);
    // All tokens are compared, so that the time taken reveals nothing.
    readers.iter().fold(None, |known, (name, token)| match token.is(&given) {
        true => Some(name.as_str()),
        false => known,
    })
}

fn read(path: &str, query: &str, reading: &Reading) -> (Answer, Vec<i64>) {
    let parts: Vec<_> = path.trim_start_matches('/').split('/').collect();
    let number = |text: &str| text.parse::<i64>().map_err(|_| Refusal::NotFound);
    let read = match parts[..] {
        ["violations"] => reading.list(query).map(|(body, numbers)| (json(body), numbers)),
        ["violations", text] => number(text).and_then(|number| Ok((json(reading.record(number)?), vec![number]))),
        ["violations", text, "image.jpg"] => {
            number(text).and_then(|number| Ok((image(reading.image(number)?), vec![number])))
        }
        _ => Err(Refusal::NotFound),
    };
    read.unwrap_or_else(|refusal| (refused(&refusal), Vec::new()))
}

fn refused(refusal: &Refusal) -> Answer {
    match refusal {
        Refusal::Bad(message) => error(StatusCode::BAD_REQUEST, "invalid", message),
        Refusal::NotFound => {
            let there = "there are /violations, /violations/NUMBER and /violations/NUMBER/image.jpg";
            error(StatusCode::NOT_FOUND, "not found", there)
        }
        Refusal::Unavailable(message) => error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message),
        Refusal::Damaged(message) => error(StatusCode::INTERNAL_SERVER_ERROR, "damaged", message),
    }
}

fn no_token() -> Answer {
    let mut answer = error(StatusCode::UNAUTHORIZED, "unauthorized", "send a known token: Authorization: Bearer ...");
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

fn not_allowed() -> Answer {
    let mut answer = error(StatusCode::METHOD_NOT_ALLOWED, "method not allowed", "the office only reads: use GET");
    answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET"));
    answer
}

fn json(body: serde_json::Value) -> Answer {
    content("application/json", Bytes::from(body.to_string()))
}

fn image(bytes: Vec<u8>) -> Answer {
    content("image/jpeg", Bytes::from(bytes))
}

fn content(kind: &'static str, bytes: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(bytes));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    // Every access must be visible here, and no copy may stay in a cache.
    answer.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}
