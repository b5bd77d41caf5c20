//! A log of segments, for what a recorder has acknowledged and not stored yet; the spool is to move onto it. See [`segments`].
//!
//! Invariant: nothing here knows what a frame means.

#[cfg(any(test, feature = "simulated"))]
use loadline_base::random;

pub mod segments;
