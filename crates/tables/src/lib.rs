//! What is recorded, how it is laid out in tables, and what is done with it.
//!
//! Invariant: nothing here knows a database.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
use loadline_base::fuzzed;
use loadline_base::{fault, operation, query, quote, random, record, statement, trace, trial, units};

pub mod block;
pub mod data;
pub mod layout;
pub mod workload;
