//! The pace of a lane: the writer asks before a transaction, and reports after it. Main type: [`Pace`].

use std::time::Duration;

use super::stop::Stop;

/// Paces the writers.
pub trait Pace: Send + Sync {
    /// Returns the most rows of the next transaction; `most` is what the configuration permits.
    fn batch_rows(&self, most: u32) -> u32;

    /// Waits until these rows may be written, or the deadline of `stop` has passed.
    fn wait(&self, rows: u64, stop: &Stop);

    /// Reports a transaction of `rows` rows that took this long, from its start to the answer to its COMMIT.
    fn observe(&self, rows: u64, took: Duration);
}

/// A pace without limits.
#[derive(Debug, Default)]
pub struct Unlimited;

impl Pace for Unlimited {
    fn batch_rows(&self, most: u32) -> u32 {
        most
    }

    fn wait(&self, _: u64, _: &Stop) {}

    fn observe(&self, _: u64, _: Duration) {}
}
