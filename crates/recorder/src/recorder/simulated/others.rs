//! Activity of others while a writer is at work: other writers, and people who undo what they have done to the database. Main type: [`Others`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::clock::MadeClock;
use super::failing::Failing;
use crate::random::Stream;
use crate::recorder::writer::writer_of;

/// The most seconds that a turn may take: one that waits for longer waits for ever.
const SECONDS_MAX: u64 = 8_000;

/// Writers that take turns while one of them waits for long.
pub(super) struct Others {
    pub clock: Arc<MadeClock>,
    pub failing: Failing,
    pub turning: Box<dyn Fn(usize) + Send>,
    pub random: Stream,
    pub lanes: u64,
    pub ticks: u64,
    pub is_over: Arc<AtomicBool>,
}

impl Others {
    /// Lets another writer take its turn once a second, until the one that waits has ended its turn.
    pub fn plan(mut self) {
        let clock = Arc::clone(&self.clock);
        clock.plan(Duration::from_secs(1), move || {
            if self.is_over.load(Ordering::Relaxed) {
                return;
            }
            self.ticks += 1;
            if self.ticks > SECONDS_MAX {
                self.failing.end_endless();
                return;
            }
            if self.failing.is_free() {
                let place = self.random.below(self.lanes) as usize;
                (self.turning)(place);
            }
            self.plan();
        });
    }
}

/// Returns the tables with records, under whatever name they have now.
pub(super) fn record_tables(other: &Connection) -> Vec<String> {
    let read = || -> rusqlite::Result<Vec<String>> {
        let sql = "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c ON c.name = 'time_ns' \
                   WHERE m.type = 'table' ORDER BY m.name";
        let mut select = other.prepare(sql)?;
        let rows = select.query_map([], |row| row.get(0))?;
        rows.collect()
    };
    read().unwrap_or_default()
}

/// Undoes somebody's change after a time, when no transaction is open.
pub(super) fn undo_later(clock: &Arc<MadeClock>, failing: Failing, sql: String, after: Duration) {
    let again = Arc::clone(clock);
    clock.plan(after, move || {
        if !failing.change(&sql) {
            undo_later(&again, failing, sql, (2 * after).clamp(Duration::from_millis(50), Duration::from_secs(600)));
        }
    });
}

/// Returns the records in the database, in the order in which they were stored by each writer: the writer's number, and the record's.
pub fn stored_records(database: &Connection) -> rusqlite::Result<Vec<(i64, i64)>> {
    let mut all: Vec<(i64, i64)> = Vec::new();
    for table in record_tables(database) {
        let mut select = database.prepare(&format!("SELECT record_id, time_ns FROM \"{table}\" ORDER BY record_id"))?;
        let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        all.extend(rows.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    all.sort_unstable();
    Ok(all.into_iter().map(|(record, number)| (writer_of(record), number)).collect())
}

/// Returns the lane of each writer in the database, by the writer's number.
pub fn lanes_of_writers(database: &Connection) -> rusqlite::Result<BTreeMap<i64, u32>> {
    let mut select = database.prepare("SELECT writer, lane FROM loadline_writer")?;
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
}
