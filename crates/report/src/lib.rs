//! Interprets measurements: findings, and reports of them. See [`report`].
//!
//! Invariant: nothing is measured here.

#![cfg(not(fuzzing))]

use loadline_base::{
    csv, finding, histogram, imported, measurement, operation, queueing, reason, said, scoring, statement, statistics,
    trial, units, written,
};
use loadline_bench::{metric, store, study};
use loadline_database::database;
use loadline_tables::workload;

pub mod report;
