//! A log of segments for rows that a recorder has acknowledged and not stored yet: what the spool is kept in. See [`segments`].
//!
//! Invariant: this crate does not interpret frames.

#[cfg(any(test, feature = "simulated"))]
use loadline_base::random;

pub mod segments;
