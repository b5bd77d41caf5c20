//! What the tables of a trial take on the disk.
//!
//! Main function: [`table_size`]. Invariant: nothing is said where nobody knows how many records the tables hold.

use crate::measurement::TableSize;
use crate::trial::Settings;
use crate::workload::{self, Work};

use super::stage::Current;

/// The bytes and records of the tables behind a trial, unless something stands in front of the database. `found` are the records that were counted
/// in them; those of a workload that adds and removes none are as many as they were filled with. None where the database does not tell: the
/// trial loses nothing by that.
pub fn table_size(settings: &Settings, work: &Work, current: &Current, found: Option<u64>) -> Option<TableSize> {
    let is_away = current.server.as_ref().is_some_and(|server| !server.is_running());
    if settings.recorded().is_some() || settings.record.existing || is_away {
        return None;
    }
    let kept = workload::keeps_records(settings).then_some(settings.record.rows);
    let records = found.or(kept).filter(|records| *records > 0)?;
    let tables: Vec<&str> =
        work.programs().iter().flat_map(|program| &program.tables).map(|table| table.name.as_str()).collect();
    if tables.is_empty() {
        return None;
    }
    let bytes = current.target.open().ok()?.table_bytes(&tables)?;
    Some(TableSize { bytes, records })
}
