//! Activity of others while a writer is at work: other writers, and people who undo what they have done to the database. Main type: [`Others`].

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::clock::MadeClock;
use super::failing::Failing;
use crate::random::Stream;

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
pub(super) fn record_tables(other: &rusqlite::Connection) -> Vec<String> {
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
