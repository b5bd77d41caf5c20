//! Studies and what carries them out: servers, links, the load engine, monitors, and the files of a run.
//!
//! Invariant: a trial is measured here, and nothing is said about it.

#![cfg_attr(fuzzing, expect(unused_imports, reason = "what is not fuzzed is not compiled"))]

use loadline_base::{
    fault, histogram, imported, measurement, operation, query, queueing, random, reason, record, said, statement,
    statistics, trial, units, written,
};
use loadline_database::database;
use loadline_tables::{data, layout, workload};

pub mod import;
#[cfg(not(fuzzing))]
pub mod link;
#[cfg(not(fuzzing))]
pub mod load;
#[cfg(not(fuzzing))]
pub mod monitor;
#[cfg(not(fuzzing))]
pub mod server;
#[cfg(not(fuzzing))]
pub mod store;
pub mod study;
