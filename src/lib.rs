//! loadline finds the load line of a database that records measurement data, the highest load it carries while it still
//! answers in time, and then holds the load there.
//!
//! Data flows one way; the crates and modules stand in that order:
//! study file → [`study`] → trials → [`load`] → measurements → [`store`] → findings → [`report`].

// The vocabulary, files that people write, and pure calculations: values in, values out.
#[cfg(any(test, fuzzing))]
pub use loadline_base::fuzzed;
pub use loadline_base::{
    csv, fault, file, finding, histogram, imported, measurement, operation, query, queueing, quote, random, reason,
    record, said, scoring, sizing, statement, statistics, trace, trial, units, written,
};

// What is recorded, how it is laid out, what is done with it.
pub use loadline_tables::{block, data, layout, workload};

// Where it goes.
pub use loadline_database::database;

// What is to be found out; the machine, and the evidence.
pub use loadline_bench::{import, metric, study};
#[cfg(not(fuzzing))]
pub use loadline_bench::{link, monitor, server, store};

// The engine.
#[cfg(not(fuzzing))]
pub use loadline_load::load;

// A study of what is there already.
pub use loadline_draft::draft;

// What people see of it.
#[cfg(not(fuzzing))]
pub use loadline_report::report;

// What takes measurement data in, and holds the load at the line.
pub use loadline_recorder::recorder;

// Trials, executed.
#[cfg(not(fuzzing))]
pub use loadline_runner::runner;

// The command line; the only place that knows every part.
#[cfg(not(fuzzing))]
pub mod cli;
#[cfg(not(fuzzing))]
pub mod commands;

// What is tried with bytes that nobody expects.
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
