//! The content of a trial's tables before it, which tells trials and runs whether existing tables can serve them.
//!
//! Main function: [`content_of`]. Invariant: tables with equal content can serve each other's trials.

use crate::trial::Settings;
use crate::workload::{self, Work};

/// Returns the content and the shape of tables with these settings before a trial: a layout may add an index for a case's queries.
///
/// # Errors
/// When the settings cannot be written as text.
pub fn content_of(settings: &Settings, work: &Work) -> Result<String, serde_json::Error> {
    let tables: Vec<_> = work.programs().iter().map(|program| &program.tables).collect();
    let tables = match tables[..] {
        [one] => format!("{one:?}"),
        _ => format!("{tables:?}"),
    };
    let records = (&settings.record, &settings.layout, tables, is_analysed(settings));
    match settings.tables.is_empty() {
        true => serde_json::to_string(&records),
        false => serde_json::to_string(&(records, &settings.tables)),
    }
}

/// Returns whether the database analyses the content before trials: query plans depend on its statistics.
pub fn is_analysed(settings: &Settings) -> bool {
    matches!(settings.workload.name.as_str(), "query" | "recent" | "questions")
}

/// Minimum number of records for which tables are kept: fewer are filled in faster than servers are stopped and started.
const KEPT_ROWS_MIN: u64 = 100_000;

/// Returns whether filled tables of these settings are kept for later runs: trials only read them, they are large, and the database is loadline's own.
pub fn is_kept(settings: &Settings) -> bool {
    let database = &settings.database;
    // The page cache of kept data counts as that of whoever put it there, and not within the server's limit.
    let is_whole = database.memory_bytes.is_none();
    let is_own = is_whole
        && settings.events.is_empty()
        && database.url.is_none()
        && database.path.is_none()
        && database.name != "simulated";
    is_own && settings.record.rows >= KEPT_ROWS_MIN && workload::only_reads(settings)
}
