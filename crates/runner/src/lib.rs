//! The execution of trials. See [`runner`].
//!
//! Invariant: nothing here knows the command line or interprets a measurement.

#![cfg(not(fuzzing))]

use loadline_base::{
    csv, fault, file, measurement, operation, random, reason, record, statement, trial, units, written,
};
use loadline_bench::{link, monitor, server, store, study};
use loadline_database::database;
use loadline_load::load;
use loadline_recorder::recorder;
use loadline_tables::{block, data, layout, workload};

pub mod runner;
