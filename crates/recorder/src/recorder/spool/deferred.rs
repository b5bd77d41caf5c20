//! Refused records that find no room in quarantine, because their sender holds more than its share of it or it is full. They wait in the spool,
//! as lines without their reasons, in a lane that no writer writes. When there is room again they go to the end of their source's lane and are
//! tried again.
//!
//! Invariant: a record is in its entry or in one of the deferred lane, never in both and never in neither: both change in one frame.

use std::sync::Arc;

use super::entry::DEFERRED_LANE;
use super::group::{FactList, Group};
use super::holders::{Change, holder_of};
use super::{Entry, Offer, SpoolError, lane_of};

/// The most bytes and records that go back at a time.
const BACK_BYTES_MAX: usize = 4 << 20;
const BACK_ROWS_MAX: u64 = 100_000;

/// Refused records of an entry of the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// The entry as it is now.
    pub entry: Arc<Entry>,
    /// The numbers of the records within the entry, ascending.
    pub rows: Vec<i64>,
    /// The lines of the records.
    pub body: Vec<u8>,
    /// The lines that are left in the entry.
    pub rest: Vec<u8>,
}

impl Group<'_> {
    /// Takes refused records out of an entry, to wait for room. If the entry has changed or gone meanwhile, nothing happens.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn defer(&mut self, deferred: &Deferred) -> Result<(), SpoolError> {
        let Deferred { entry, rows, body, rest } = deferred;
        let offer = self.as_stored(Offer {
            lane: DEFERRED_LANE,
            message_id: String::new(),
            rows: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            body: body.clone(),
            ..entry.offer.without_body()
        });
        let mut list = FactList::default();
        if !self.take_out(entry, rows, rest, &mut list)? {
            return Ok(());
        }
        // The records were acknowledged before.
        self.insert(&offer, &mut list);
        self.push(list);
        self.counts.deferred += u64::from(offer.rows);
        self.counts.deferred_bytes += offer.stored_bytes();
        let deferred_bytes = i64::try_from(offer.stored_bytes()).unwrap_or(i64::MAX);
        self.note_held(&offer, Change { deferred_bytes, ..Change::default() });
        Ok(())
    }

    /// Returns some deferred records to their sources' lanes, as far as there is room in quarantine, and in the spool, whose bound they count
    /// against then.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub(super) fn bring_back(&mut self, lanes: u32) -> Result<(), SpoolError> {
        if self.counts.deferred == 0
            || !self.is_quarantine_below_half()
            || !self.has_room_for_bytes(self.half_of_bound())
        {
            return Ok(());
        }
        self.take_back(lanes)
    }

    fn take_back(&mut self, lanes: u32) -> Result<(), SpoolError> {
        let found = self.file.reader().read(DEFERRED_LANE, (i64::MIN, i64::MAX), BACK_BYTES_MAX, BACK_ROWS_MAX)?;
        let mut list = FactList::default();
        for found in found {
            let (entry, damage) = found.map_or_else(|(entry, damage)| (entry, Some(damage)), |entry| (entry, None));
            let (sequence, mut offer) = (entry.sequence, entry.offer.clone());
            let Some(now) = self.entry(DEFERRED_LANE, sequence) else { continue };
            let (rows, bytes) = (u64::from(now.rows), now.bytes);
            match damage {
                None => {
                    offer.lane = lane_of(&offer.source, lanes);
                    let before = self.counts;
                    self.insert(&self.as_stored(offer.clone()), &mut list);
                    let added = self.counts.spooled_bytes - before.spooled_bytes;
                    self.counts = before;
                    self.counts.spooled_bytes = (before.spooled_bytes + added).saturating_sub(bytes);
                }
                // A damaged entry goes to quarantine as such.
                Some(damage) => {
                    self.quarantine(&entry, &damage, self.day_ns())?;
                    self.counts.spooled_bytes = self.counts.spooled_bytes.saturating_sub(bytes);
                    self.counts.entries = self.counts.entries.saturating_sub(1);
                }
            }
            self.counts.deferred = self.counts.deferred.saturating_sub(rows);
            self.counts.deferred_bytes = self.counts.deferred_bytes.saturating_sub(bytes);
            let deferred_bytes = i64::try_from(bytes).map_or(i64::MIN, |bytes| -bytes);
            self.note_held(&offer, Change { deferred_bytes, ..Change::default() });
            self.take_from_lane(DEFERRED_LANE, sequence, &mut list);
        }
        self.push(list);
        Ok(())
    }

    /// Returns whether any sender's share of the quarantine changes.
    pub(super) fn changes_quarantine(&self) -> bool {
        !self.held.is_empty()
    }

    /// Notes a change of what a sender holds.
    pub(super) fn note_held(&mut self, offer: &Offer, change: Change) {
        let noted = self.held.entry(holder_of(&offer.sender, &offer.source)).or_default();
        noted.rows += change.rows;
        noted.bytes += change.bytes;
        noted.deferred_bytes = noted.deferred_bytes.saturating_add(change.deferred_bytes);
        if !change.reason.is_empty() {
            noted.reason = change.reason;
        }
    }
}
