//! Checks of whether a database keeps what it commits. Main type: [`Weakness`], a setting because of which it may not.
//!
//! Invariant: a setting that is not known to lose commits is no weakness; what a server does not tell is not guessed.

use std::time::Duration;

use super::{DatabaseError, Session};

/// A setting because of which commits may be lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakness {
    /// The name of the setting or of the table.
    pub setting: String,
    /// The present value of the setting.
    pub value: String,
    /// The commits that are lost, and the event that loses them.
    pub loses: &'static str,
    /// The change with which the operator of the database can remedy it.
    pub remedy: String,
    /// The time for which a commit may still be lost.
    pub lasts: Lasts,
}

/// The time for which a commit may still be lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// Until the server writes its log by itself, about this time after the commit.
    Until(Duration),
    /// For an unknown time.
    Always,
    /// Only where the disk does not write a page as a whole; this is a warning.
    OnTornPages,
}

impl std::fmt::Display for Weakness {
    /// `innodb_flush_log_at_trx_commit is 0: …; …`
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} is {}: {}; {}", self.setting, self.value, self.loses, self.remedy)
    }
}

/// How far a server's log has come, as byte positions of its own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// The position in front of which all commits answered so far lie.
    pub written: u64,
    /// The position in front of which everything is on the disk.
    pub durable: u64,
}

/// Returns names with their values from rows of two columns; names in lower case.
pub(super) fn settings(
    session: &mut dyn Session,
    sql: &str,
) -> Result<std::collections::BTreeMap<String, String>, DatabaseError> {
    let rows = session.query(sql)?;
    let pair = |row: Vec<Option<String>>| {
        let mut row = row.into_iter().flatten();
        Some((row.next()?.to_lowercase(), row.next()?))
    };
    Ok(rows.into_iter().filter_map(pair).collect())
}

/// Returns the tables of the answer that are among those asked for, each as a weakness that lasts [`Lasts::Always`].
pub(super) fn weak_tables(
    session: &mut dyn Session,
    sql: &str,
    is_asked: &dyn Fn(&str) -> bool,
    loses: &'static str,
    remedy: impl Fn(&str) -> String,
) -> Result<Vec<Weakness>, DatabaseError> {
    let rows = session.query(sql)?;
    let weakness = |row: Vec<Option<String>>| {
        let mut row = row.into_iter().flatten();
        let (table, value) = (row.next()?, row.next()?);
        let remedy = remedy(&table);
        is_asked(&table).then(|| Weakness {
            setting: format!("table {table}"),
            value,
            loses,
            remedy,
            lasts: Lasts::Always,
        })
    };
    Ok(rows.into_iter().filter_map(weakness).collect())
}
