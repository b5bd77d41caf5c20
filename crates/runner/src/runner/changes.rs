//! Timing of a change that is made beside a load. Main type: [`Change`].
//!
//! Invariant: the load is told of the change for as long as its clock runs.

use crate::database::DatabaseError;
use crate::load::Changing;
use crate::measurement::ChangeMeasurement;

/// A change that is being timed.
pub struct Change<'a> {
    what: &'static str,
    changing: &'a Changing,
    begun_ns: u64,
    start_ns: u64,
    /// Time before the last pause, in nanoseconds.
    took_ns: u64,
    /// Start of the current stretch; `None` during a pause.
    since_ns: Option<u64>,
}

impl<'a> Change<'a> {
    /// Begins a change of a kind now, in a measured phase that began at `begun_ns`.
    pub fn begin(what: &'static str, changing: &'a Changing, begun_ns: u64) -> Self {
        let start_ns = changing.begin(what);
        Change { what, changing, begun_ns, start_ns, took_ns: 0, since_ns: Some(start_ns) }
    }

    /// Stops the clock.
    pub fn pause(&mut self) {
        if let Some(since_ns) = self.since_ns.take() {
            self.took_ns += self.changing.end() - since_ns;
        }
    }

    /// Lets the clock go on.
    pub fn resume(&mut self) {
        self.since_ns = Some(self.changing.begin(self.what));
    }

    /// Ends the change with its outcome: the statement that the database accepted, or its error.
    pub fn end(mut self, outcome: Result<Option<String>, DatabaseError>) -> ChangeMeasurement {
        self.pause();
        let (statement, error) = match outcome {
            Ok(statement) => (statement, None),
            Err(error) => (None, Some(error.to_string())),
        };
        ChangeMeasurement {
            what: self.what.to_owned(),
            start_s: self.start_ns.saturating_sub(self.begun_ns) as f64 / 1e9,
            took_s: self.took_ns as f64 / 1e9,
            records: 0,
            failed: u64::from(error.is_some()),
            outlasted: false,
            statement,
            error,
        }
    }
}
