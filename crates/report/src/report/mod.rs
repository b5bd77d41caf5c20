//! Reports: what the measurements of a run mean, for people and for other programs.
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
mod disk;
pub mod durability;
pub mod durability_test;
pub mod events;
pub mod evolution;
pub mod export;
pub mod factors;
pub mod freshness;
pub mod growth;
pub mod html;
mod instrument;
mod instruments;
pub mod limits;
mod links;
pub mod load_lines;
pub mod plans;
pub mod points;
pub mod ramps;
pub mod recorded;
pub mod samples;
pub mod score;
pub mod scored;
mod statements;
mod table_sizes;
pub mod terminal;
mod uploads;
pub mod verdicts;
mod warming;

pub use analyse::analyse;
pub use export::{jsonl, table};
pub use html::html;
pub use terminal::terminal;
