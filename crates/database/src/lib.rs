//! Databases, one folder each: connections, dialects and private servers. See [`database`].
//!
//! Invariant: nothing here knows a layout or a workload except through its statements.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
use loadline_base::fuzzed;
use loadline_base::{fault, file, measurement, question, quote, random, record, statement, trial, units, written};
use loadline_tables::{block, data};

pub mod database;
