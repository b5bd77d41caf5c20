//! The disk space of a trial's tables. Function: [`begin`].
//!
//! Invariant: nothing is reported if the number of records in the tables is unknown.

use super::instrument::{Beginning, Ending, Instrument};
use crate::measurement::{Measurement, TableSize};
use crate::workload;

/// The instrument; it queries the size when everything is over.
struct Asked;

/// Starts the instrument in every trial without a front, events to read or foreign records.
pub(super) fn begin(beginning: &Beginning<'_>) -> anyhow::Result<Option<Box<dyn Instrument>>> {
    let settings = beginning.settings;
    let is_asked = settings.recorded().is_none() && settings.freshness.is_none() && !settings.record.existing;
    Ok(is_asked.then(|| Box::new(Asked) as Box<dyn Instrument>))
}

impl Instrument for Asked {
    fn tell(self: Box<Self>, ending: &Ending<'_>, measurement: &mut Measurement) -> anyhow::Result<()> {
        measurement.table_size = table_size(ending);
        Ok(())
    }
}

/// Returns the bytes and records of the tables. The records are those counted in the tables, or for a workload that neither adds nor removes any, those
/// they were filled with. Returns `None` if the database does not report the size, which does not affect the trial.
fn table_size(ending: &Ending<'_>) -> Option<TableSize> {
    let Ending { settings, work, current, found, .. } = ending;
    if current.server.as_ref().is_some_and(|server| !server.is_running()) {
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
