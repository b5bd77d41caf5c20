//! A log of segments: what the recorder acknowledges waits in it. See [`segments`].
//!
//! Invariant: nothing here knows what a record means.

pub mod segments;
