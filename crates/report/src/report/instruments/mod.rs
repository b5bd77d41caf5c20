//! Reports on what is measured beside operations and their times. Item: [`INSTRUMENTS`], an entry for each.

mod agents;
pub mod conflicts;
mod disk;
pub mod events;
pub mod evolution;
pub mod freshness;
pub mod instrument;
mod links;
pub mod plans;
pub mod recorded;
pub mod recorders;
pub mod retention;
mod table_sizes;
pub mod uploads;

use instrument::Instrument;

/// All instruments, in the order in which they are reported.
pub const INSTRUMENTS: &[Instrument] = &[
    events::INSTRUMENT,
    conflicts::INSTRUMENT,
    disk::INSTRUMENT,
    uploads::INSTRUMENT,
    evolution::INSTRUMENT,
    retention::INSTRUMENT,
    recorded::INSTRUMENT,
    recorders::INSTRUMENT,
    freshness::INSTRUMENT,
    table_sizes::INSTRUMENT,
    plans::INSTRUMENT,
    agents::INSTRUMENT,
    links::INSTRUMENT,
];
