//! How long a writer's session waits for its server. Main type: [`WriterLimits`].
//!
//! Invariant: a limit holds for the whole answer to a statement, however many pieces it comes in, and none outlasts the writer's own time.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long opening a socket may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long each answer may take until we are let in.
const LOGIN_MAX: Duration = Duration::from_secs(10);
/// How long the server may wait for a lock that another session holds.
const LOCK_MAX: Duration = Duration::from_secs(5);
/// Making tables and columns may take this many times as long as other statements.
const CHANGE_FACTOR: u32 = 20;
/// After so many answers that were late in a row the limit stays as it is; each doubles it.
const DOUBLINGS_MAX: u32 = 3;

/// When somebody's time is over, once that is known.
pub type OverAt = Box<dyn Fn() -> Option<Instant> + Send + Sync>;
/// Is told, before the server is waited for, how long that may take.
pub type Waits = Box<dyn Fn(Duration) + Send + Sync>;

/// The limits of a writer's sessions, one after the other.
pub struct WriterLimits {
    name: String,
    answer: Duration,
    over_at: OverAt,
    late: AtomicU32,
    waits: Option<Waits>,
}

impl WriterLimits {
    /// Limits of sessions that wait at most `answer` for the answer to a statement, and for nothing behind `over_at`. Sessions of the same
    /// name follow each other: one that is opened ends the one before it. The name has letters, digits and `-`, at most 60; a session without
    /// a name ends nobody.
    pub fn new(name: &str, answer: Duration, over_at: OverAt) -> Self {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
        let name = name.chars().filter(is_plain).take(60).collect();
        WriterLimits { name, answer, over_at, late: AtomicU32::new(0), waits: None }
    }

    /// The same, with somebody who is told each time the server is waited for.
    #[must_use]
    pub fn telling(self, waits: Waits) -> Self {
        WriterLimits { waits: Some(waits), ..self }
    }

    /// From now on the server is waited for, at most this long.
    pub(super) fn note_wait(&self, at_most: Duration) {
        if let Some(waits) = &self.waits {
            waits(at_most);
        }
    }

    /// What the sessions are called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long opening a socket may take.
    pub fn connect(&self) -> Duration {
        CONNECT_MAX.min(self.answer)
    }

    /// How long the answer to a statement may take. A server that is late again and again may only be slow: with each try it gets twice
    /// the time, up to eight times as much, so that it comes to an end.
    pub fn answer(&self) -> Duration {
        self.answer * (1 << self.late.load(Ordering::Relaxed).min(DOUBLINGS_MAX))
    }

    /// How long the other side may take to let us in.
    pub fn login(&self) -> Duration {
        LOGIN_MAX.min(self.answer)
    }

    /// How long it may take where a table is changed, or much is deleted.
    pub fn change(&self) -> Duration {
        self.answer * CHANGE_FACTOR
    }

    /// How long the server may wait for a lock: less than we wait for the server, in whole seconds.
    pub fn lock_s(&self) -> u64 {
        (self.answer / 2).min(LOCK_MAX).as_secs().max(1)
    }

    /// When everything is over, once that is known.
    pub fn over_at(&self) -> Option<Instant> {
        (self.over_at)()
    }

    /// A session was given up, maybe because an answer was late.
    pub fn note_lost(&self) {
        let more = |late: u32| Some((late + 1).min(DOUBLINGS_MAX));
        let _ = self.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// The server has done what it was to do in time.
    pub fn note_done(&self) {
        self.late.store(0, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for WriterLimits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WriterLimits").field("name", &self.name).field("answer", &self.answer).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_late_again_and_again_gets_more_time_up_to_a_bound() {
        let limits = WriterLimits::new("a'b c-1", Duration::from_secs(4), Box::new(|| None));
        assert_eq!((limits.name(), limits.lock_s()), ("abc-1", 2));
        let mut times = Vec::new();
        for _ in 0..5 {
            times.push(limits.answer().as_secs());
            limits.note_lost();
        }
        assert_eq!(times, [4, 8, 16, 32, 32]);
        limits.note_done();
        assert_eq!(limits.answer(), Duration::from_secs(4));
    }
}
