//! The instruments of a trial. Item: [`INSTRUMENTS`], one line for each; [`begin_all`] starts those that a study asks for.

mod conflicts;
mod disk;
mod instrument;
mod plans;
mod table_size;

use instrument::Begin;
pub(super) use instrument::{Beginning, Ending, Instrument};

/// All instruments, in the order in which they start and report.
const INSTRUMENTS: &[Begin] = &[plans::begin, disk::begin, table_size::begin, conflicts::begin];

/// Starts the instruments of a trial.
///
/// # Errors
/// Fails if an instrument cannot be started.
pub(super) fn begin_all(beginning: &Beginning<'_>) -> anyhow::Result<Vec<Box<dyn Instrument>>> {
    INSTRUMENTS.iter().filter_map(|begin| begin(beginning).transpose()).collect()
}
