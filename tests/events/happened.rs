//! What the tests of events share.

use loadline::measurement::{EventsMeasurement, Measurement};

use crate::program::Scratch;

/// The only trial of a run, and what happened to its server.
pub fn happened(scratch: &Scratch, run: &str) -> (Measurement, EventsMeasurement) {
    let trial = scratch.stored(run).remove(0);
    assert_eq!(trial.invalid_because, [], "{:?}", trial.errors);
    let events = trial.events.clone().unwrap();
    (trial, events)
}
