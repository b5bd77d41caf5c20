//! What the tables of a trial hold before it, by which trials and runs know whether tables that are there can serve them.
//!
//! Main function: [`content_of`]. Invariant: tables with equal content serve each other.

use crate::trial::Settings;
use crate::workload::{self, Work};

/// What tables of these settings hold before a trial, and their shape: a layout may add an index for what a case asks.
///
/// # Errors
/// When settings have no text.
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

/// Whether the database is to look at the content before trials: plans of queries depend on what it knows.
pub fn is_analysed(settings: &Settings) -> bool {
    matches!(settings.workload.name.as_str(), "query" | "recent")
}

/// Fewer records than this are filled in faster than servers are stopped and started.
const KEPT_ROWS_MIN: u64 = 100_000;

/// Whether filled tables of these settings are kept for later runs: trials with them only read, they are large, and the database is loadline's own.
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
