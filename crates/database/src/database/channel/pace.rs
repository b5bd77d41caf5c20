//! Kinds of requests by the time that their answers may take. Main type: [`Pace`].

use std::time::Duration;

use crate::database::SessionLimits;

/// The kind of a request, which determines the limit for its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// A step of the login.
    Login,
    /// An ordinary statement.
    Usual,
    /// A statement that changes a table or deletes many rows.
    Change,
}

impl Pace {
    /// Returns the maximum time for an answer.
    pub(super) fn limit(self, limits: &SessionLimits) -> Duration {
        match self {
            Pace::Login => limits.login(),
            Pace::Usual => limits.answer(),
            Pace::Change => limits.change(),
        }
    }

    /// Returns how a limit follows from the setting, for a message; nothing where it does not.
    pub(super) fn set_by(self, limits: &SessionLimits, limit: Duration) -> String {
        let times = limit.as_secs_f64() / limits.answer_as_set().as_secs_f64();
        match self {
            Pace::Login => String::new(),
            _ if times < 1.0 => String::new(),
            _ if times > 1.0 => format!(", {times} times what {} sets", limits.setting()),
            _ => format!(", which {} sets", limits.setting()),
        }
    }
}
