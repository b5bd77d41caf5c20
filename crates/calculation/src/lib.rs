//! Pure calculations: statistics, queueing models and their fits, scores and sizes, with the units, histograms and random numbers that they need.
//!
//! Invariant: values in, values out. Nothing here knows a study, a trial or a database. It is a crate of its own because tests of everything above it
//! calculate for minutes unless it is optimised (`profile.dev` in the root's Cargo.toml).

pub mod csv;
pub mod fault;
pub mod histogram;
pub mod queueing;
pub mod quote;
pub mod random;
pub mod said;
pub mod scoring;
pub mod sizing;
pub mod statistics;
pub mod units;
