//! The right to write the messages of a part of a shared stream, which lasts for a time unless it is extended. Main types: [`Hold`], of one
//! part, and [`Holds`], of all parts that this recorder has.
//!
//! Invariant: a hold that has ended is never valid again.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::clock::SharedClock;
use super::stop::Stop;

/// The right to write the messages of a part.
#[derive(Debug)]
pub struct Hold {
    part: u32,
    /// The time until which it is valid; `None` once it has ended.
    until: Mutex<Option<Instant>>,
    /// Asked at once when the hold ends, so that its writer stops.
    stop: Arc<Stop>,
    standing: watch::Sender<Standing>,
    clock: SharedClock,
}

/// How far a hold has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Its writer has not taken the part's row of the ledger yet.
    Opening,
    /// The row was taken, and had come to this message.
    Open(i64),
    Ended,
}

impl Hold {
    /// Creates a hold that is valid until then.
    pub fn new(part: u32, until: Instant, clock: SharedClock) -> Self {
        let stop = Arc::new(Stop::by(SharedClock::clone(&clock)));
        Hold { part, until: Mutex::new(Some(until)), stop, standing: watch::Sender::new(Standing::Opening), clock }
    }

    /// Returns the part's number.
    pub fn part(&self) -> u32 {
        self.part
    }

    /// Returns what is asked to stop when the hold ends.
    pub fn stop(&self) -> &Arc<Stop> {
        &self.stop
    }

    fn until(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the hold last until then. One that has ended stays ended.
    pub fn extend(&self, until: Instant) {
        if let Some(known) = &mut *self.until() {
            *known = until.max(*known);
        }
    }

    /// Ends the hold: its writer stops, and begins nothing any more.
    pub fn end(&self) {
        *self.until() = None;
        self.stop.ask(Duration::ZERO);
        self.standing.send_replace(Standing::Ended);
    }

    /// Returns whether the part may be written now. Once this is false, the hold is over.
    pub fn is_valid(&self) -> bool {
        let is_valid = self.until().is_some_and(|until| until > self.clock.now());
        if !is_valid {
            self.end();
        }
        is_valid
    }

    /// Notes that the writer has taken the part's row of the ledger, which had come to this message.
    pub fn note_open(&self, number: i64) {
        self.standing.send_if_modified(|standing| {
            let is_first = *standing == Standing::Opening;
            if is_first {
                *standing = Standing::Open(number);
            }
            is_first
        });
    }

    /// Returns whether the part's row of the ledger belongs to this hold, so that no earlier holder can write any more.
    pub fn is_open(&self) -> bool {
        matches!(*self.standing.borrow(), Standing::Open(_))
    }

    /// Waits until the row is taken; returns the message that it had come to, or `None` if the hold ends before.
    pub async fn opened(&self) -> Option<i64> {
        let mut standing = self.standing.subscribe();
        let known = standing.wait_for(|standing| *standing != Standing::Opening).await;
        match known.map(|standing| *standing) {
            Ok(Standing::Open(number)) => Some(number),
            Ok(Standing::Opening | Standing::Ended) | Err(_) => None,
        }
    }
}

/// The holds of a recorder.
#[derive(Debug)]
pub struct Holds {
    parts: u32,
    held: Mutex<BTreeMap<u32, Arc<Hold>>>,
}

impl Holds {
    /// Creates the holds of a recorder that has none yet, of a stream with this many parts.
    pub fn new(parts: u32) -> Self {
        Holds { parts: parts.max(1), held: Mutex::default() }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Arc<Hold>>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a hold.
    pub fn add(&self, hold: Arc<Hold>) {
        self.held().insert(hold.part, hold);
    }

    /// Removes the hold of a part.
    pub fn remove(&self, part: u32) {
        self.held().remove(&part);
    }

    /// Returns the number of parts of the stream.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// Returns how many parts this recorder may write now, and no other recorder.
    pub fn open(&self) -> u32 {
        self.held().values().filter(|hold| hold.is_open() && hold.is_valid()).count() as u32
    }

    /// Returns the share of the stream's parts that this recorder may write now, within 0 and 1.
    pub fn share(&self) -> f64 {
        f64::from(self.open()) / f64::from(self.parts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::clock::machine;

    fn hold(part: u32, lasts: Duration) -> Arc<Hold> {
        Arc::new(Hold::new(part, Instant::now() + lasts, machine()))
    }

    #[test]
    fn a_hold_ends_by_itself_and_stays_ended() {
        let (lasting, over) = (hold(0, Duration::from_secs(3600)), hold(1, Duration::ZERO));
        assert!(lasting.is_valid() && !over.is_valid());
        assert!(over.stop().is_over(), "its writer is told");
        over.extend(Instant::now() + Duration::from_secs(3600));
        over.note_open(7);
        assert!(!over.is_valid() && !over.is_open());
        lasting.end();
        assert!(!lasting.is_valid() && lasting.stop().is_over());
    }

    #[test]
    fn only_parts_whose_row_is_taken_count() {
        let holds = Holds::new(4);
        let parts = [0, 1, 2].map(|part| hold(part, Duration::from_secs(3600)));
        parts.iter().for_each(|part| holds.add(Arc::clone(part)));
        assert_eq!(holds.share(), 0.0);
        parts[0].note_open(5);
        parts[2].note_open(9);
        assert_eq!(holds.share(), 0.5);
        parts[0].end();
        assert_eq!((holds.open(), holds.share()), (1, 0.25));
    }
}
