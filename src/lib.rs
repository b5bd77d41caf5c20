//! loadline finds the load line of a database that records measurement data, the highest load it carries while it still
//! answers in time, and then holds the load there.
//!
//! Data flows one way; the modules stand in that order:
//! study file → [`study`] → trials → [`load`] → measurements → [`store`] → findings → [`report`].

// The vocabulary: plain types that every part shares.
pub mod fault;
pub mod finding;
#[cfg(any(test, fuzzing))]
pub mod fuzzed;
pub mod histogram;
pub mod imported;
pub mod measurement;
pub mod operation;
pub mod query;
pub mod quote;
pub mod random;
pub mod reason;
pub mod record;
pub mod said;
pub mod statement;
pub mod trial;
pub mod units;

// Files that people write, and the tables of their settings.
pub mod written;

// Pure calculations: values in, values out.
pub mod queueing;
pub mod scoring;
pub mod sizing;
pub mod statistics;

// What is recorded, how it is laid out, what is done with it.
pub mod block;
pub mod data;
pub mod layout;
pub mod workload;

// Where it goes.
pub mod database;

// What is to be found out.
pub mod study;

// The machine, the evidence, and what people see of it.
pub mod import;
#[cfg(not(fuzzing))]
pub mod link;
#[cfg(not(fuzzing))]
pub mod monitor;
#[cfg(not(fuzzing))]
pub mod report;
#[cfg(not(fuzzing))]
pub mod server;
#[cfg(not(fuzzing))]
pub mod store;

// The engine.
#[cfg(not(fuzzing))]
pub mod load;

// What takes measurement data in, and holds the load at the line.
pub mod recorder;

// The command line; the only place that knows every part.
#[cfg(not(fuzzing))]
pub mod cli;
#[cfg(not(fuzzing))]
pub mod commands;

// What is tried with bytes that nobody expects.
#[cfg(any(test, fuzzing))]
pub mod fuzzing;
