//! What the listeners for readers share, `/metrics` and questions: threads of their own, a token of their own, and an end. Main types: [`Guard`], [`GuardedListener`].
//!
//! Invariant: where a token is configured, nothing is shown without it.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::{Request, StatusCode};

use super::access::{Strangers, TokenHash, Why};
use super::config::ListenConfig;
use super::intake::anteroom::Place;
use super::intake::exchange::{TOO_MANY, exchange};
use super::intake::listen::serve;
use super::intake::request::given_token;
use super::intake::response::{Answer, error, unauthorised};
use super::intake::{Renewal, Running};
use super::stop::Stop;
use super::threads;

/// How long answers under way may take after a stop.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// Who may read.
pub(super) struct Guard {
    /// Name of the listener in counts and answers: `metrics`.
    name: &'static str,
    token: Option<TokenHash>,
    strangers: Strangers,
}

impl Guard {
    pub(super) fn new(name: &'static str, token: Option<TokenHash>) -> Self {
        Guard { name, token, strangers: Strangers::default() }
    }

    /// Returns the answer to a request without the right token, or one that comes when too many others are there; `None` for a request that is to be answered.
    pub(super) fn refusal<B>(&self, request: &Request<B>, peer: SocketAddr, place: &Place) -> Option<Answer> {
        if let Some(token) = &self.token
            && !given_token(request).is_some_and(|given| token.is(&given))
        {
            self.strangers.refuse(self.name, Why::Token, peer.ip());
            let name = self.name;
            return Some(unauthorised(&format!(
                "send the token of [{name}]: Authorization: Bearer ..., or as the password of Basic"
            )));
        }
        let others = || error(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "others came before; ask again");
        (!place.let_in()).then(others)
    }
}

/// A listener with threads of its own.
pub(super) struct GuardedListener {
    runtime: tokio::runtime::Runtime,
    running: Running,
    stop: Arc<Stop>,
}

impl GuardedListener {
    /// Starts it, with this many threads for work that may block. `answer` answers a request from an address, which has a place among the connections.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub(super) fn start<S, F>(
        name: &'static str,
        (config, is_open): (&ListenConfig, bool),
        blocking: usize,
        answer: S,
    ) -> Result<Self, String>
    where
        S: Fn(Request<Incoming>, SocketAddr, Arc<Place>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Answer> + Send + 'static,
    {
        let runtime =
            threads::runtime(name, 1, blocking).map_err(|error| format!("[{name}] cannot be started: {error}"))?;
        let (stop, patience) = (Arc::new(Stop::default()), config.patience);
        let of_connections = Arc::clone(&stop);
        let inside = runtime.enter();
        let running = serve(name, config, is_open, &stop, TOO_MANY, move |stream, ends, place| {
            let (answer, stop, peer) = (answer.clone(), Arc::clone(&of_connections), ends.peer);
            async move {
                let of_place = Arc::clone(&place);
                exchange(stream, &place, patience, stop, move |request| answer(request, peer, Arc::clone(&of_place)))
                    .await;
            }
        });
        drop(inside);
        Ok(GuardedListener { running: running?, runtime, stop })
    }

    /// Returns what runs, for its counts.
    pub(super) fn running(&self) -> &Running {
        &self.running
    }

    /// Reads the certificate again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub(super) fn read_certificates(&self) -> Result<Renewal, String> {
        Renewal::read([&self.running])
    }

    /// Returns the address on which it listens; `None` if there is none.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.running.address
    }

    /// Stops; answers under way are still sent.
    pub(super) fn stop(self) {
        self.stop.ask(LAST_ANSWERS);
        let task = self.running.task;
        self.runtime.block_on(async {
            let _ = tokio::time::timeout(LAST_ANSWERS + Duration::from_secs(1), task).await;
        });
        self.runtime.shutdown_timeout(Duration::from_secs(1));
    }
}
