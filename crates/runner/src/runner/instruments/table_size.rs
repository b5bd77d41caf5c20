//! What the tables of a trial take on the disk. Function: [`begin`].
//!
//! Invariant: nothing is said where nobody knows how many records the tables hold.

use super::instrument::{Beginning, Ending, Instrument};
use crate::measurement::{Measurement, TableSize};
use crate::workload;

/// Asked for when everything is over.
struct Asked;

/// Of every trial, unless something stands in front of the database, or the records are somebody else's.
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

/// The bytes and records of the tables. The records are those that were counted in them; those of a workload that adds and removes none are as many as they were filled
/// with. None where the database does not tell: the trial loses nothing by that.
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
