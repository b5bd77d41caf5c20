//! Waits until what was acknowledged can be read. Main type: [`Awaited`]; [`wait`] blocks.
//!
//! QuestDB acknowledges a write when it is in the table's log, and applies the log to the table later, in order. `wal_tables()` tells the last transaction of each.
//!
//! Invariant: only what had been acknowledged when the wait began is waited for, so that writers that go on delay nobody for ever.

use std::time::{Duration, Instant};

use super::dialect::QuestdbDialect;
use crate::database::postgres::PostgresWire;
use crate::database::postgres::message::broken;
use crate::database::session::{Channel, Speak};
use crate::database::{DatabaseError, Dialect};
use crate::quote::in_quotes;

/// The longest time that the server may take to apply what it has acknowledged.
pub(super) const WITHIN: Duration = Duration::from_secs(60);
/// The time between two looks of a session that blocks.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// A row of an answer, as text.
pub(super) type Row = Vec<Option<String>>;

/// The transactions that are waited for.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    /// For each table its last acknowledged transaction, when it was first looked at.
    last: Option<Vec<(String, i64)>>,
}

impl Awaited {
    /// Returns the question about these tables.
    pub(super) fn question<'a>(tables: impl Iterator<Item = &'a str>) -> String {
        let names = tables.map(|table| QuestdbDialect::default().literal(table)).collect::<Vec<_>>().join(", ");
        format!(
            "SELECT name, suspended, writerTxn, sequencerTxn, errorTag, errorMessage FROM wal_tables() WHERE name IN ({names})"
        )
    }

    /// Takes in the answer. Returns whether all that is waited for has been applied.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where the server has given up applying a table's log; [`DatabaseError::Lost`] for another kind of answer.
    pub(super) fn take(&mut self, rows: &[Row]) -> Result<bool, DatabaseError> {
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let [Some(name), Some(suspended), Some(written), Some(acknowledged), kind, why] = &row[..] else {
                return Err(broken("it tells of a table's log in another form"));
            };
            let number = |text: &str| text.parse::<i64>().map_err(|_| broken("the number of a transaction is none"));
            if matches!(suspended.as_str(), "t" | "true") {
                let told: Vec<&str> =
                    [kind, why].into_iter().flatten().map(String::as_str).filter(|text| !text.is_empty()).collect();
                let told = if told.is_empty() { "its log says why".to_owned() } else { in_quotes(&told.join(": ")) };
                let why = format!(
                    "the server has stopped to apply what it has acknowledged to the table {name} ({told}); ALTER TABLE … RESUME WAL goes on"
                );
                return Err(DatabaseError::refused("suspended", why));
            }
            found.push((name, number(written)?, number(acknowledged)?));
        }
        let last = self.last.get_or_insert_with(|| {
            found.iter().map(|(name, _, acknowledged)| ((*name).clone(), *acknowledged)).collect()
        });
        // A table that is gone keeps nobody waiting.
        let is_applied = |(name, awaited): &(String, i64)| {
            found.iter().all(|(other, written, _)| *other != name || written >= awaited)
        };
        Ok(last.iter().all(is_applied))
    }
}

/// Returns the error for a server that takes too long.
pub(super) fn late() -> DatabaseError {
    let why = format!("the server has not applied what it has acknowledged within {} s", WITHIN.as_secs());
    DatabaseError::refused("late", why)
}

/// Waits until everything that was acknowledged for these tables can be read.
///
/// # Errors
/// The server's error, and [`DatabaseError::Refused`] where it takes too long.
pub(super) fn wait(channel: &mut Channel, wire: &mut PostgresWire, tables: &[&str]) -> Result<(), DatabaseError> {
    let (question, until) = (Awaited::question(tables.iter().copied()), Instant::now() + WITHIN);
    let mut awaited = Awaited::default();
    while !awaited.take(&wire.query(channel, &question)?)? {
        if Instant::now() >= until || channel.is_scripted() {
            return Err(late());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(told: &[[&str; 4]]) -> Vec<Row> {
        let row = |row: &[&str; 4]| row.iter().map(|value| Some((*value).to_owned())).chain([None, None]).collect();
        told.iter().map(row).collect()
    }

    #[test]
    fn what_was_acknowledged_first_is_waited_for_and_nothing_later() {
        let mut awaited = Awaited::default();
        assert!(!awaited.take(&rows(&[["a", "f", "3", "5"], ["b", "f", "1", "1"]])).unwrap());
        assert!(!awaited.take(&rows(&[["a", "f", "4", "9"], ["b", "f", "1", "7"]])).unwrap());
        assert!(awaited.take(&rows(&[["a", "f", "5", "99"], ["b", "f", "1", "8"]])).unwrap());
        assert!(awaited.take(&[]).unwrap(), "a table that is gone");
    }

    #[test]
    fn a_log_that_is_not_applied_any_more_is_told() {
        let told = Awaited::default().take(&rows(&[["a", "t", "3", "5"]])).unwrap_err().to_string();
        assert!(told.contains("table a (its log says why)") && told.contains("RESUME WAL"), "{told}");
        let mut full = rows(&[["a", "t", "3", "5"]]);
        full[0][4..].clone_from_slice(&["DISK FULL", "could not\n mmap"].map(|text| Some(text.to_owned())));
        let told = Awaited::default().take(&full).unwrap_err().to_string();
        assert!(told.contains("table a (\"DISK FULL: could not\\n mmap\")"), "{told}");
        assert!(Awaited::default().take(&rows(&[["a", "f", "x", "5"]])).unwrap_err().is_lost());
        assert!(Awaited::default().take(&[vec![None]]).unwrap_err().is_lost());
    }
}
