//! A connection's prepared inserts that pass over rows which a unique key forbids. Main type: [`Passable`].

use std::collections::HashMap;

use crate::database::PassingOver;

/// The number of batches that are sifted in another way after one in which nothing could be passed over.
const PAUSE: u32 = 16;

/// The inserts of a connection that pass over rows.
#[derive(Debug, Default)]
pub(super) struct Passable {
    /// By the measurement's place: `None` until it was asked for, `Some(None)` if there is no such insert.
    prepared: Vec<Option<Option<PassingOver>>>,
    /// The number of batches that are still to be sifted in another way, by the measurement's place.
    pauses: HashMap<usize, u32>,
}

impl Passable {
    /// Returns the insert of a measurement, if there is one.
    pub(super) fn of(&self, measurement: usize) -> Option<PassingOver> {
        self.known(measurement).flatten()
    }

    /// Notes that rows of some of these measurements are refused for reasons that no insert passes over.
    pub(super) fn give_up(&mut self, measurements: impl Iterator<Item = usize>) {
        self.pauses.extend(measurements.map(|measurement| (measurement, PAUSE)));
    }

    /// Returns whether a batch with rows of this measurement is to be sifted in another way, and counts that batch.
    pub(super) fn pauses(&mut self, measurement: usize) -> bool {
        let Some(left) = self.pauses.get_mut(&measurement) else { return false };
        *left -= 1;
        if *left == 0 {
            self.pauses.remove(&measurement);
        }
        true
    }

    /// Returns what is known of a measurement's insert; `None` until it was asked for.
    pub(super) fn known(&self, measurement: usize) -> Option<Option<PassingOver>> {
        self.prepared.get(measurement).copied().flatten()
    }

    /// Notes the insert of a measurement, or that there is none.
    pub(super) fn note(&mut self, measurement: usize, found: Option<PassingOver>) {
        if self.prepared.len() <= measurement {
            self.prepared.resize(measurement + 1, None);
        }
        self.prepared[measurement] = Some(found);
    }

    /// Forgets the inserts, because the statements are prepared again.
    pub(super) fn forget(&mut self) {
        self.prepared.clear();
        self.pauses.clear();
    }
}
