//! How fast a lane may write: what the writer asks before a transaction, and tells after it. Main type: [`Pace`].

use std::time::Duration;

use super::stop::Stop;

/// Paces the writers.
pub trait Pace: Send + Sync {
    /// The most rows of the next transaction; `most` is what the configuration permits.
    fn batch_rows(&self, most: u32) -> u32;

    /// Waits until these rows may be written, or the time is over.
    fn wait(&self, rows: u64, stop: &Stop);

    /// A transaction of these rows took this long, from its start to the answer to its COMMIT.
    fn observe(&self, rows: u64, took: Duration);
}

/// As fast as it goes.
#[derive(Debug, Default)]
pub struct Unlimited;

impl Pace for Unlimited {
    fn batch_rows(&self, most: u32) -> u32 {
        most
    }

    fn wait(&self, _: u64, _: &Stop) {}

    fn observe(&self, _: u64, _: Duration) {}
}
