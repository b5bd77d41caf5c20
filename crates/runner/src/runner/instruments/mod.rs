//! The instruments of a trial. Item: [`INSTRUMENTS`], a line for each; [`begin_all`] begins those that a study asks for.

mod disk;
mod instrument;
mod plans;
mod table_size;

use instrument::Begin;
pub(super) use instrument::{Beginning, Ending, Instrument};

/// All of them, in the order in which they are begun and tell what they saw.
const INSTRUMENTS: &[Begin] = &[plans::begin, disk::begin, table_size::begin];

/// Those that a trial has.
///
/// # Errors
/// When one cannot be begun.
pub(super) fn begin_all(beginning: &Beginning<'_>) -> anyhow::Result<Vec<Box<dyn Instrument>>> {
    INSTRUMENTS.iter().filter_map(|begin| begin(beginning).transpose()).collect()
}
