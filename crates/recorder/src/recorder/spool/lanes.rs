//! The lanes of a spool: how many there are, and what each shows to the ledger.

use super::entry::APART_LANES;
use super::file::SpoolFile;
use super::logs::random_name;
use super::state::State;
use super::{LaneOpening, SpoolError};

impl SpoolFile {
    /// Returns the number of lanes that entries are assigned to, after changing it to `wanted` if nothing waits.
    ///
    /// # Errors
    /// [`SpoolError::Unusable`] if entries wait in other lanes: their sources' order would be lost.
    pub fn set_lanes(&mut self, wanted: u32) -> Result<(), SpoolError> {
        let lanes = self.state.lanes;
        if lanes == wanted {
            return Ok(());
        }
        // Records wait apart in lanes that do not depend on the number of the others.
        let waiting = self.shelf.index().waiting_below(APART_LANES.start);
        if waiting > 0 && lanes != 0 {
            let reason = format!(
                "{waiting} entries wait for {lanes} writers and writer.count is {wanted}; let them drain with writer.count = {lanes} first"
            );
            return Err(SpoolError::Unusable { path: self.path.display().to_string(), reason });
        }
        self.change_state(|state| state.lanes = wanted)
    }

    /// Returns the number of lanes that sources are assigned to.
    pub(super) fn lanes(&self) -> u32 {
        self.state.lanes.max(1)
    }

    /// Returns what a lane shows to the ledger.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn lane_opening(&mut self, lane: u32) -> Result<LaneOpening, SpoolError> {
        if self.state.lane(lane).is_none() {
            self.change_state(|state| state.add_lane(lane, random_name()))?;
        }
        Ok(self.state.lane(lane).unwrap_or(LaneOpening {
            recorder: String::new(),
            openings: Vec::new(),
            is_checked: false,
        }))
    }

    /// Returns what lanes show to the ledger; lanes that are not known yet are made known with one sync.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn lane_openings(&mut self, lanes: &[u32]) -> Result<Vec<(u32, LaneOpening)>, SpoolError> {
        let unknown: Vec<u32> = lanes.iter().copied().filter(|lane| self.state.lane(*lane).is_none()).collect();
        if !unknown.is_empty() {
            self.change_state(|state| unknown.iter().for_each(|lane| state.add_lane(*lane, random_name())))?;
        }
        lanes.iter().map(|lane| Ok((*lane, self.lane_opening(*lane)?))).collect()
    }

    fn change_state(&mut self, change: impl FnOnce(&mut State)) -> Result<(), SpoolError> {
        let mut group = self.begin()?;
        change(group.state_to_change());
        group.commit()
    }
}
