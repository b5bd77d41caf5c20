//! Comparing: the published tables of the KTH study, runs of synthetic trials, and how often equal alternatives are told apart.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

#[path = "comparing/command.rs"]
mod command;
#[path = "comparing/equal.rs"]
mod equal;
#[path = "comparing/published.rs"]
mod published;
#[path = "comparing/settling.rs"]
mod settling;
#[path = "comparing/trials.rs"]
mod trials;
#[path = "comparing/two_runs.rs"]
mod two_runs;
