//! statistics.
