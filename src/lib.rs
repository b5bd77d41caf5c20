//! loadline finds the load line of a database that records measurement data, the highest load it carries while it still
//! answers in time, and then holds the load there.
//!
//! Data flows one way; the crates and modules stand in that order:
//! study file → [`study`] → trials → [`load`] → measurements → [`store`] → findings → [`report`].

// The vocabulary, files that people write, and pure calculations: values in, values out.
#[cfg(any(test, fuzzing))]
pub use loadline_base::fuzzed;
pub use loadline_base::{
    csv, fault, file, finding, histogram, imported, measurement, operation, query, question, queueing, quote, random,
    reason, record, said, scoring, sizing, statement, statistics, trace, trial, units, written,
};

// The recorded data, its layouts and the workloads on it.
pub use loadline_tables::{block, data, layout, workload};

// The databases it is stored in.
pub use loadline_database::database;

// Studies, the machine, and the evidence.
pub use loadline_bench::{import, metric, study};
#[cfg(not(fuzzing))]
pub use loadline_bench::{link, monitor, server, store};

// The load engine.
#[cfg(not(fuzzing))]
pub use loadline_load::load;

// Drafts of studies from existing databases.
pub use loadline_draft::draft;

// The reports that people read.
#[cfg(not(fuzzing))]
pub use loadline_report::report;

// The recorder takes measurement data in and holds the load at the line.
pub use loadline_recorder::recorder;

// The execution of trials.
#[cfg(not(fuzzing))]
pub use loadline_runner::runner;

// The command line, the only part that knows every other.
#[cfg(not(fuzzing))]
pub mod cli;
#[cfg(not(fuzzing))]
pub mod commands;

// The parts that are tested with arbitrary bytes.
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
