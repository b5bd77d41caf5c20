//! How long a session waits for its server. Main type: [`SessionLimits`].
//!
//! Invariant: a limit holds for the whole answer to a statement, however many pieces it comes in, and none outlasts the time of whoever set it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::channel::CONNECT_TIMEOUT;

/// How long opening a socket may take.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// How long each answer may take until a writer is let in.
const LOGIN_MAX: Duration = Duration::from_secs(10);
/// How long an answer may take to what is asked after loadline was told to end, or of a server that stands still: tables are removed where it still
/// answers.
const LAST_MAX: Duration = Duration::from_secs(10);
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

/// The limits of sessions.
pub struct SessionLimits {
    name: String,
    answer: Duration,
    login: Duration,
    /// The setting that says how long an answer may take.
    setting: &'static str,
    /// Whether the system is to notice when nobody is at the other end any more.
    notices_silence: bool,
    over_at: OverAt,
    is_told_to_end: fn() -> bool,
    /// Whether the last answer was late and nothing was heard since, where that counts.
    stands_still: Option<AtomicBool>,
    late: AtomicU32,
    waits: Option<Waits>,
}

impl SessionLimits {
    /// Limits of a writer's sessions, one after the other, that wait at most `answer` for the answer to a statement, and for nothing behind `over_at`. Sessions of the same
    /// name follow each other: one that is opened ends the one before it. The name has letters, digits and `-`, at most 60; a session without
    /// a name ends nobody.
    pub fn new(name: &str, answer: Duration, over_at: OverAt) -> Self {
        let is_plain = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '-';
        let name = name.chars().filter(is_plain).take(60).collect();
        SessionLimits {
            name,
            answer,
            login: LOGIN_MAX.min(answer),
            setting: "writer.statement_timeout",
            notices_silence: true,
            over_at,
            is_told_to_end: || false,
            stands_still: None,
            late: AtomicU32::new(0),
            waits: None,
        }
    }

    /// Limits of the sessions of a trial. Once loadline is told to end, nothing that was asked before is waited for, and what is asked after
    /// that for a moment only. So is a server that was late, until it answers again.
    pub fn of_trials(answer: Duration, is_told_to_end: fn() -> bool) -> Self {
        SessionLimits {
            login: CONNECT_TIMEOUT,
            setting: "database.statement_timeout",
            notices_silence: false,
            is_told_to_end,
            stands_still: Some(AtomicBool::new(false)),
            ..SessionLimits::new("", answer, Box::new(|| None))
        }
    }

    /// The same, with somebody who is told each time the server is waited for.
    #[must_use]
    pub fn telling(self, waits: Waits) -> Self {
        SessionLimits { waits: Some(waits), ..self }
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
        self.login
    }

    /// An answer was late.
    pub(super) fn note_late(&self) {
        self.stands_still.iter().for_each(|stands_still| stands_still.store(true, Ordering::Relaxed));
    }

    /// The server was heard.
    pub(super) fn note_heard(&self) {
        if self.stands_still() {
            self.stands_still.iter().for_each(|stands_still| stands_still.store(false, Ordering::Relaxed));
        }
    }

    /// Whether the last answer was late and nothing was heard since.
    pub(super) fn stands_still(&self) -> bool {
        self.stands_still.as_ref().is_some_and(|stands_still| stands_still.load(Ordering::Relaxed))
    }

    /// How long an answer may take to what is asked after loadline was told to end, or of a server that stands still.
    pub fn last(&self) -> Duration {
        LAST_MAX.min(self.answer)
    }

    /// The setting that says how long an answer may take.
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// Whether the system is to notice when nobody is at the other end any more.
    pub fn notices_silence(&self) -> bool {
        self.notices_silence
    }

    /// Whether loadline was told to end.
    pub fn is_told_to_end(&self) -> bool {
        (self.is_told_to_end)()
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

impl std::fmt::Debug for SessionLimits {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("SessionLimits").field("name", &self.name).field("answer", &self.answer).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_is_late_again_and_again_gets_more_time_up_to_a_bound() {
        let limits = SessionLimits::new("a'b c-1", Duration::from_secs(4), Box::new(|| None));
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
