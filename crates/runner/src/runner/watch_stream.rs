//! Watches the stream that recorders share while a trial runs: how many records are in it that no recorder has stored.
//!
//! Main type: [`StreamWatch`]. Invariant: memory does not grow with the length of a trial.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Instant;

use super::watch::{EVERY, LOOKS_MAX};
use crate::database::Endpoint;
use crate::database::recorder::StreamSession;

/// A thread that asks for the number of messages until it is stopped.
pub struct StreamWatch {
    /// The connection that is asked at the end.
    session: StreamSession,
    /// Records of each message.
    records: u64,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<(Instant, u64)>>>,
}

impl StreamWatch {
    /// Connects to the NATS server, and starts the thread. Each message of the stream has this many records.
    ///
    /// # Errors
    /// Fails if the server does not answer.
    pub fn start((server, stream): (&Endpoint, &str), records: u64) -> anyhow::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (session, own) = (StreamSession::connect(server, stream)?, StreamSession::connect(server, stream)?);
        let seen = Arc::clone(&stop);
        let spawned = std::thread::Builder::new().name("watch".to_owned());
        let thread = spawned.spawn(move || watch(own, records, &seen)).ok();
        Ok(StreamWatch { session, records, stop, thread })
    }

    /// Returns the number of records in the stream now.
    ///
    /// # Errors
    /// Fails if the server does not answer any more.
    pub fn now(&mut self) -> anyhow::Result<u64> {
        Ok(self.session.messages()? * self.records)
    }

    /// Ends the thread, and returns how many records were in the stream at which times.
    pub fn end(mut self) -> Vec<(Instant, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().and_then(|thread| thread.join().ok()).unwrap_or_default()
    }
}

impl Drop for StreamWatch {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that panicked has nothing more to report.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn watch(mut session: StreamSession, records: u64, stop: &AtomicBool) -> Vec<(Instant, u64)> {
    let (mut seen, mut every) = (Vec::new(), EVERY);
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        // A server that does not answer ends the looks; the trial's end asks it again and fails.
        let Ok(messages) = session.messages() else { break };
        seen.push((Instant::now(), messages * records));
        if seen.len() >= LOOKS_MAX {
            let mut place = 0;
            seen.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            every *= 2;
        }
        std::thread::sleep(every.saturating_sub(begun.elapsed()));
    }
    seen
}
