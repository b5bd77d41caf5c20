//! Studies and the surroundings of a trial: servers, links, monitors, the files of a run, and measurements of other tools.
//!
//! Invariant: nothing is sent to a database here, and nothing is said about what came of it.

#![cfg_attr(fuzzing, expect(unused_imports, reason = "what is not fuzzed is not compiled"))]

use loadline_base::{
    fault, file, histogram, imported, measurement, operation, query, question, queueing, quote, random, reason, record,
    said, statement, statistics, trace, trial, units, written,
};
use loadline_database::database;
use loadline_tables::{data, layout, workload};

pub mod import;
#[cfg(not(fuzzing))]
pub mod link;
pub mod metric;
#[cfg(not(fuzzing))]
pub mod monitor;
#[cfg(not(fuzzing))]
pub mod server;
#[cfg(not(fuzzing))]
pub mod store;
pub mod study;
