//! Imports as a user makes them: samples of other tools' output become runs that report, fit, score and export work on.
//!
//! The samples of sysbench 1.0.20 and pgbench 15.18 are real ones of short runs; those of YCSB follow the form that its sources
//! document.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "imports/command.rs"]
mod command;
#[path = "imports/pgbench.rs"]
mod pgbench;
#[path = "imports/refusals.rs"]
mod refusals;
#[path = "imports/sysbench.rs"]
mod sysbench;
#[path = "imports/ycsb.rs"]
mod ycsb;
