//! Admission: which requests may come in, and how fast the database is fed.
//!
//! [`gate`] stands in front of the spool: it closes when head-room is short, opens again when there is enough, and before that asks
//! the greediest sources to wait. [`limit`] and [`rate`] stand in front of the database: a window of rows in flight and a rate.
//! All of them are state machines, values in, values out, and time is one of the values; [`Gate`] and [`Governor`] share them
//! between threads.
//!
//! Invariant: a request that is turned away was not acknowledged.

mod fairness;
pub mod gate;
pub mod governor;
pub mod limit;
pub mod rate;
#[cfg(test)]
mod simulation;

pub use gate::{Gate, Turn, Usage};
pub use governor::{Governor, ModelLine};
