//! The records, their layout in tables, and the workloads on them.
//!
//! Invariant: this crate knows no database.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
use loadline_base::fuzzed;
use loadline_base::{fault, operation, query, question, quote, random, record, statement, trace, trial, units};

pub mod block;
pub mod data;
pub mod layout;
pub mod workload;
