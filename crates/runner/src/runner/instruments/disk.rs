//! A writer to the disk next to the load: `[disk]`. Function: [`begin`].

use super::instrument::{Beginning, Ending, Instrument};
use crate::load::DiskWriter;
use crate::measurement::{DiskMeasurement, Measurement};

/// The writer until the measured phase is over, then its result.
struct Disk {
    writer: Option<DiskWriter>,
    wrote: Option<Result<DiskMeasurement, String>>,
}

/// Starts writing to the disk, in the run directory, which also holds the database's files.
pub(super) fn begin(beginning: &Beginning<'_>) -> anyhow::Result<Option<Box<dyn Instrument>>> {
    let Some(disk) = beginning.settings.disk.as_ref().filter(|disk| disk.block_bytes > 0) else { return Ok(None) };
    let writer = DiskWriter::start(disk, beginning.current.directory()).map_err(anyhow::Error::msg)?;
    Ok(Some(Box::new(Disk { writer: Some(writer), wrote: None })))
}

impl Instrument for Disk {
    fn measure(&mut self) {
        self.writer.iter_mut().for_each(DiskWriter::measure);
    }

    fn drained(&mut self) {
        self.wrote = self.writer.take().map(DiskWriter::finish);
    }

    fn tell(self: Box<Self>, _: &Ending<'_>, measurement: &mut Measurement) -> anyhow::Result<()> {
        measurement.disk = self.wrote.transpose().map_err(anyhow::Error::msg)?;
        Ok(())
    }
}
