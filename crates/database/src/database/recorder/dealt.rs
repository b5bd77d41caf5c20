//! Several recorders as one target. Main type: [`Recorders`].
//!
//! Invariant: a client is connected to the same recorder each time, because its records are in order in one recorder only.

use super::RecorderDatabase;
use crate::database::{DatabaseError, Target, TargetSession};

/// Recorders over which clients are dealt out.
pub struct Recorders {
    first: RecorderDatabase,
    others: Vec<RecorderDatabase>,
}

impl Recorders {
    /// Creates the target from all recorders in the order of their numbers. Returns `None` without recorders.
    pub fn new(recorders: Vec<RecorderDatabase>) -> Option<Self> {
        let mut all = recorders.into_iter();
        Some(Recorders { first: all.next()?, others: all.collect() })
    }

    /// Returns the place of the recorder of a client, from 0.
    fn place_of(&self, client: u32) -> usize {
        client as usize % (1 + self.others.len())
    }
}

impl Target for Recorders {
    fn name(&self) -> &'static str {
        self.first.name()
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        self.first.open()
    }

    fn open_for(&self, client: u32) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let place = self.place_of(client);
        place.checked_sub(1).map_or(&self.first, |other| &self.others[other]).open()
    }
}
