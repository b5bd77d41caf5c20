//! Whether a database keeps what it commits. Main type: [`Weakness`], a setting because of which it may not.
//!
//! Invariant: a setting that is not known to forget anything is no weakness; what a server does not tell is not guessed.

use std::time::Duration;

use super::{DatabaseError, Session};

/// A setting because of which commits may be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Weakness {
    /// The setting, or the table.
    pub setting: String,
    /// What it is now.
    pub value: String,
    /// What is lost, and when.
    pub loses: &'static str,
    /// What whoever runs the database can do.
    pub remedy: String,
    /// How long it lasts.
    pub lasts: Lasts,
}

/// For how long a commit may be forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lasts {
    /// Until the server writes its log by itself, which takes it about so long.
    Until(Duration),
    /// Nothing says when it is over.
    Always,
    /// Only where the disk does not write a page as a whole: a warning.
    OnTornPages,
}

impl std::fmt::Display for Weakness {
    /// `innodb_flush_log_at_trx_commit is 0: …; …`
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} is {}: {}; {}", self.setting, self.value, self.loses, self.remedy)
    }
}

/// How far a server's log has come, in bytes of its own count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogPosition {
    /// All commits that were answered before lie in front of it.
    pub written: u64,
    /// All that lies in front of it is on the disk.
    pub durable: u64,
}

/// Names with their values, from rows of two columns; names in lower case.
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

/// Tables that are among those asked for, each as a weakness without end.
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
