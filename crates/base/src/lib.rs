//! The vocabulary of loadline and files that people write, and with them the calculations of the crate below.
//!
//! Invariant: nothing here does I/O, except types that are read from and written to JSON, and `file`, which reads a file up to a size limit.

pub use loadline_calculation::{
    csv, fault, histogram, queueing, quote, random, said, scoring, sizing, statistics, units,
};

pub mod file;
pub mod finding;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub mod fuzzed;
pub mod imported;
pub mod measurement;
pub mod operation;
pub mod query;
pub mod question;
pub mod reason;
pub mod record;
pub mod statement;
pub mod trace;
pub mod trial;
pub mod written;
