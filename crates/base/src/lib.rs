//! The vocabulary of loadline, files that people write, and pure calculations: statistics, queueing models, scores, sizes.
//!
//! Invariant: nothing here does I/O, except types that are read from and written to JSON, and `file`, which reads a file up to a size limit.

pub mod csv;
pub mod fault;
pub mod file;
pub mod finding;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub mod fuzzed;
pub mod histogram;
pub mod imported;
pub mod measurement;
pub mod operation;
pub mod query;
pub mod question;
pub mod queueing;
pub mod quote;
pub mod random;
pub mod reason;
pub mod record;
pub mod said;
pub mod scoring;
pub mod sizing;
pub mod statement;
pub mod statistics;
pub mod trace;
pub mod trial;
pub mod units;
pub mod written;
