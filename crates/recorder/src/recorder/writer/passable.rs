//! The inserts that pass over rows which a unique key forbids, as a connection has prepared them. Main type: [`Passable`].

use std::collections::HashMap;

use crate::database::PassingOver;

/// So many batches are sifted in another way behind one in which nothing could be passed over.
const PAUSE: u32 = 16;

/// The inserts of a connection that pass over rows.
#[derive(Debug, Default)]
pub(super) struct Passable {
    /// By the measurement's place, once it was asked for; none where there is none.
    prepared: Vec<Option<Option<PassingOver>>>,
    /// Batches that are to be sifted in another way, by the measurement's place.
    pauses: HashMap<usize, u32>,
}

impl Passable {
    /// The insert of a measurement, where there is one.
    pub(super) fn of(&self, measurement: usize) -> Option<PassingOver> {
        self.known(measurement).flatten()
    }

    /// Rows of some of these measurements are refused for reasons that no insert passes over.
    pub(super) fn give_up(&mut self, measurements: impl Iterator<Item = usize>) {
        self.pauses.extend(measurements.map(|measurement| (measurement, PAUSE)));
    }

    /// Whether a batch with rows of this measurement is to be sifted in another way.
    pub(super) fn pauses(&mut self, measurement: usize) -> bool {
        let Some(left) = self.pauses.get_mut(&measurement) else { return false };
        *left -= 1;
        if *left == 0 {
            self.pauses.remove(&measurement);
        }
        true
    }

    /// What is known of a measurement's insert, once it was asked for.
    pub(super) fn known(&self, measurement: usize) -> Option<Option<PassingOver>> {
        self.prepared.get(measurement).copied().flatten()
    }

    /// Notes what there is for a measurement.
    pub(super) fn note(&mut self, measurement: usize, found: Option<PassingOver>) {
        if self.prepared.len() <= measurement {
            self.prepared.resize(measurement + 1, None);
        }
        self.prepared[measurement] = Some(found);
    }

    /// The statements are prepared anew.
    pub(super) fn forget(&mut self) {
        self.prepared.clear();
        self.pauses.clear();
    }
}
