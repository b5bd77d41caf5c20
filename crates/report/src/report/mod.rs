//! Creates reports: the meaning of a run's measurements, for people and for other programs.
//!
//! Main function: [`analyse()`], from measurements to [`crate::finding::Findings`]; [`terminal()`] and [`html()`] show them,
//! [`export`] writes the trials. Invariant: a report reads only what it is given, and the same input gives the same text.

pub mod analyse;
mod answers;
pub mod case_trials;
pub mod claims;
mod client;
pub mod compare;
mod contest;
pub mod durability;
pub mod durability_test;
pub mod export;
pub mod factors;
pub mod growth;
pub mod html;
pub mod instruments;
pub mod limits;
pub mod load_lines;
pub mod points;
pub mod ramps;
pub mod samples;
pub mod score;
pub mod scored;
mod statements;
pub mod terminal;
pub mod verdicts;
mod warming;

pub use analyse::analyse;
pub use export::{jsonl, table};
pub use html::html;
pub use terminal::terminal;
