//! Limits on how long a session waits for its server. Main type: [`SessionLimits`].
//!
//! Invariant: a limit holds for the whole answer to a statement, however many pieces it comes in, and no wait outlasts the deadline of the caller that set it.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::channel::CONNECT_TIMEOUT;

/// The maximum time to open a socket.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// The maximum time for each answer until a writer is logged in.
const LOGIN_MAX: Duration = Duration::from_secs(10);
/// The maximum time for an answer to a statement sent after loadline was told to end, or to a server that stands still: tables are removed if it still
/// answers.
const LAST_MAX: Duration = Duration::from_secs(10);
/// The maximum time that the server may wait for a lock that another session holds.
const LOCK_MAX: Duration = Duration::from_secs(5);
/// The factor by which making tables and columns may take longer than other statements.
const CHANGE_FACTOR: u32 = 20;
/// The number of late answers in a row up to which each doubles the limit.
const DOUBLINGS_MAX: u32 = 3;

/// Returns the caller's deadline, once it is known.
pub type OverAt = Box<dyn Fn() -> Option<Instant> + Send + Sync>;
/// Called before each wait for the server, with the maximum time of the wait.
pub type Waits = Box<dyn Fn(Duration) + Send + Sync>;

/// The limits of sessions.
pub struct SessionLimits {
    name: String,
    answer: Duration,
    login: Duration,
    /// The name of the setting that limits the time for an answer.
    setting: &'static str,
    /// True if the operating system should detect a peer that is gone without closing the connection.
    notices_silence: bool,
    over_at: OverAt,
    is_told_to_end: fn() -> bool,
    /// True if the last answer was late and nothing has been received since; `None` where this is not tracked.
    stands_still: Option<AtomicBool>,
    late: AtomicU32,
    waits: Option<Waits>,
}

impl SessionLimits {
    /// Creates the limits of a writer's sessions, of which one is open at a time. They wait at most `answer` for the answer to a statement, and never beyond
    /// `over_at`. A new session ends the earlier session of the same name. The name keeps letters, digits and `-`, at most 60 of them; a session
    /// without a name ends no other.
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

    /// Creates the limits of a trial's sessions. Once loadline is told to end, statements sent before are no longer waited for, and later ones
    /// only briefly. A server whose last answer was late is also waited for only briefly, until it answers again.
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

    /// Returns the same limits for another setting than a writer's, which messages name.
    #[must_use]
    pub fn set_by(self, setting: &'static str) -> Self {
        SessionLimits { setting, ..self }
    }

    /// Returns the same limits with a function that is called each time the server is waited for.
    #[must_use]
    pub fn telling(self, waits: Waits) -> Self {
        SessionLimits { waits: Some(waits), ..self }
    }

    /// Reports that the server will be waited for, for at most this time.
    pub(super) fn note_wait(&self, at_most: Duration) {
        if let Some(waits) = &self.waits {
            waits(at_most);
        }
    }

    /// Returns the name of the sessions.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the maximum time to open a socket.
    pub fn connect(&self) -> Duration {
        CONNECT_MAX.min(self.answer)
    }

    /// Returns the maximum time for the answer to a statement. A server that is late repeatedly may only be slow: each try doubles
    /// the limit, up to eight times `answer`, so that the statement completes in the end.
    pub fn answer(&self) -> Duration {
        self.answer * (1 << self.late.load(Ordering::Relaxed).min(DOUBLINGS_MAX))
    }

    /// Returns the time for an answer that the setting states.
    pub fn answer_as_set(&self) -> Duration {
        self.answer
    }

    /// Returns the maximum time for each answer during login.
    pub fn login(&self) -> Duration {
        self.login
    }

    /// Records that an answer was late.
    pub(super) fn note_late(&self) {
        self.stands_still.iter().for_each(|stands_still| stands_still.store(true, Ordering::Relaxed));
    }

    /// Records that something was received from the server.
    pub(super) fn note_heard(&self) {
        if self.stands_still() {
            self.stands_still.iter().for_each(|stands_still| stands_still.store(false, Ordering::Relaxed));
        }
    }

    /// Returns whether the last answer was late and nothing has been received since.
    pub(super) fn stands_still(&self) -> bool {
        self.stands_still.as_ref().is_some_and(|stands_still| stands_still.load(Ordering::Relaxed))
    }

    /// Returns the maximum time for an answer to a statement sent after loadline was told to end, or to a server that stands still.
    pub fn last(&self) -> Duration {
        LAST_MAX.min(self.answer)
    }

    /// Returns the name of the setting that limits the time for an answer.
    pub fn setting(&self) -> &'static str {
        self.setting
    }

    /// Returns whether the operating system should detect a peer that is gone without closing the connection.
    pub fn notices_silence(&self) -> bool {
        self.notices_silence
    }

    /// Returns whether loadline was told to end.
    pub fn is_told_to_end(&self) -> bool {
        (self.is_told_to_end)()
    }

    /// Returns the maximum time for a statement that changes a table or deletes many rows.
    pub fn change(&self) -> Duration {
        self.answer * CHANGE_FACTOR
    }

    /// Returns how long the server may wait for a lock, in whole seconds; less than the session waits for the server.
    pub fn lock_s(&self) -> u64 {
        (self.answer / 2).min(LOCK_MAX).as_secs().max(1)
    }

    /// Returns the caller's deadline, once it is known.
    pub fn over_at(&self) -> Option<Instant> {
        (self.over_at)()
    }

    /// Records that a session was given up, perhaps because an answer was late.
    pub fn note_lost(&self) {
        let more = |late: u32| Some((late + 1).min(DOUBLINGS_MAX));
        let _ = self.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// Records that the server completed its work in time.
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
