//! The recorder, which takes measurement data in and holds the load at the line. See [`recorder`].
//!
//! Invariant: nothing here knows the load engine.

#[cfg(any(test, fuzzing, feature = "fuzzed"))]
use loadline_base::fuzzed;
#[cfg(any(test, feature = "simulated"))]
use loadline_base::random;
use loadline_base::{fault, file, quote, record, statement, trial, units, written};
use loadline_database::database;
use loadline_tables::{block, data, layout};

pub mod recorder;
