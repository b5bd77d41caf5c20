//! Durability of the database: whether it keeps what it commits, and for how long it may forget it. Main functions: [`terms`], for one
//! connection, and [`check`], before anything is accepted.
//!
//! Invariant: nothing is written into a database that may forget it for good, and what it may forget for a while is kept for that long.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use crate::database::durability::Lasts;
use crate::database::{Database, DatabaseError, Session, SessionLimits, Weakness};

/// How long the database may take to answer the check; after that it is checked only when something is written.
const PATIENCE: Duration = Duration::from_secs(3);
/// Factor on the promised delay of the log, for a server that does not tell how far its log has come.
const SLACK: u32 = 3;
const SLACK_LEAST: Duration = Duration::from_secs(2);

/// The reason why a database is not written into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It may forget what it commits: setting, value and remedy.
    Forgets(String),
    /// It does not answer as it should.
    Silent(DatabaseError),
}

impl From<DatabaseError> for Unfit {
    fn from(error: DatabaseError) -> Self {
        Unfit::Silent(error)
    }
}

impl From<Unfit> for DatabaseError {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::Forgets(reason) => DatabaseError::Unavailable(reason),
            Unfit::Silent(error) => error,
        }
    }
}

/// The terms under which a connection writes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Terms {
    /// How long an entry stays in the spool after its commit, at least; `None` if commits last.
    pub(super) keep: Option<Duration>,
    /// The setting that the session was given.
    pub(super) hardened: Option<String>,
    /// The settings because of which commits may be forgotten all the same.
    pub(super) weaknesses: Vec<Weakness>,
}

/// Returns the terms of a session that commits into these tables. The session sets what it can set itself, unless all that is written is kept anyway.
///
/// # Errors
/// [`Unfit::Forgets`] with setting, value and remedy if the database may forget what is kept nowhere else.
pub(super) fn terms(
    database: &dyn Database,
    session: &mut dyn Session,
    keep: Option<Duration>,
    is_own: &dyn Fn(&str) -> bool,
) -> Result<Terms, Unfit> {
    let hardened = if keep.is_none() { database.harden(session)? } else { None };
    let weaknesses = database.weaknesses(session, is_own)?;
    let refused = |weak: Vec<&Weakness>, remedy: &str| {
        let weak: Vec<String> = weak.into_iter().map(ToString::to_string).collect();
        let weak = weak.join(". ");
        Err(Unfit::Forgets(format!("the database may forget what it has committed: {weak}{remedy}")))
    };
    let always: Vec<_> = weaknesses.iter().filter(|weakness| weakness.lasts == Lasts::Always).collect();
    if !always.is_empty() {
        return refused(always, "");
    }
    let until = |weakness: &Weakness| match weakness.lasts {
        Lasts::Until(time) => Some(time),
        Lasts::Always | Lasts::OnTornPages => None,
    };
    let Some(longest) = weaknesses.iter().filter_map(until).max() else {
        return Ok(Terms { keep: None, hardened, weaknesses });
    };
    let Some(keep) = keep else {
        let weak = weaknesses.iter().filter(|weakness| until(weakness).is_some()).collect();
        return refused(weak, "; or let the spool keep it for that time, as with writer.keep = \"10s\"");
    };
    let is_told = database.log_position(session)?.is_some();
    let least = if is_told { Duration::ZERO } else { SLACK * longest + SLACK_LEAST };
    Ok(Terms { keep: Some(keep.max(least)), hardened, weaknesses })
}

/// Checks a database before anything is accepted for it. One that does not answer within a few seconds is checked once it does, before anything is
/// written. A statement may take as long as `within`.
pub(super) fn check(database: &Arc<dyn Database>, keep: Option<Duration>, within: Duration) -> Result<(), String> {
    let (answer, answered) = channel();
    let database = Arc::clone(database);
    let limits = Arc::new(SessionLimits::new("", within, Box::new(|| None)));
    let look = move || {
        let Ok(mut session) = database.connect_writer(&limits) else { return };
        let found = terms(&*database, &mut *session, keep, &|table| table.starts_with("loadline_"));
        // Nobody may be waiting any more.
        let _ = answer.send(found.map(drop));
    };
    std::thread::Builder::new().name("look".to_owned()).spawn(look).map_err(|error| error.to_string())?;
    match answered.recv_timeout(PATIENCE) {
        Ok(Err(Unfit::Forgets(reason))) => Err(reason),
        Ok(Ok(()) | Err(Unfit::Silent(_))) | Err(_) => Ok(()),
    }
}
