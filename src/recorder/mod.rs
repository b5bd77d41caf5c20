//! The recorder: takes measurement data in, loses nothing that it has acknowledged, and feeds the database no faster than it
//! answers in time. Data flows one way: intake → admission → spool → writer → database.
//!
//! Invariant: at every moment, acknowledged = committed + spooled + quarantined.

pub mod config;
pub mod line;
pub mod spool;
