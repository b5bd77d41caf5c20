//! What is measured beside operations and their times. Item: [`INSTRUMENTS`], a line for each.

use super::instrument::Instrument;
use super::{disk, events, evolution, freshness, links, plans, recorded, table_sizes, uploads};

/// All of them, in the order in which they are spoken of.
pub const INSTRUMENTS: &[Instrument] = &[
    events::INSTRUMENT,
    disk::INSTRUMENT,
    uploads::INSTRUMENT,
    evolution::INSTRUMENT,
    recorded::INSTRUMENT,
    freshness::INSTRUMENT,
    table_sizes::INSTRUMENT,
    plans::INSTRUMENT,
    links::INSTRUMENT,
];
