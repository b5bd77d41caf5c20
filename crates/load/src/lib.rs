//! The load engine: what is sent when, over how many connections, and what was observed. See [`load`].
//!
//! Invariant: nothing here knows a study or a layout.

#![cfg(not(fuzzing))]

use loadline_base::{file, histogram, measurement, operation, random, reason, record, statement, trial, units};
#[cfg(test)]
use loadline_base::{queueing, statistics};
use loadline_bench::{server, store};
use loadline_database::database;

pub mod load;
