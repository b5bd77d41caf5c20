//! Reports: what the measurements of a run mean, for people and for other programs.
//!
//! Main function: [`analyse()`], from measurements to [`crate::finding::Findings`]; [`terminal()`] and [`html()`] show them,
//! [`export`] writes the trials. Invariant: a report reads only what it is given, and the same input gives the same text.

pub mod analyse;
pub mod claims;
pub mod compare;
mod contest;
mod disk;
pub mod evolution;
pub mod export;
pub mod factors;
pub mod freshness;
pub mod growth;
pub mod html;
pub mod limits;
mod links;
pub mod load_lines;
pub mod metric;
pub mod plans;
pub mod points;
pub mod recorded;
pub mod samples;
pub mod score;
pub mod scored;
pub mod terminal;
mod uploads;
pub mod verdicts;

pub use analyse::{analyse, is_settled};
pub use export::{jsonl, table};
pub use html::html;
pub use terminal::terminal;
