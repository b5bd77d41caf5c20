//! Refused records that find no room in quarantine, because their sender holds more than its share of it or it is full: they wait in the spool,
//! as lines without their reasons, in a lane that nobody writes. When there is room again they go back to their source's lane, at the end, and are
//! tried again.
//!
//! Invariant: a record is in its entry or in one of this lane, never in both and never in neither: both change in one transaction.

use std::sync::Arc;

use rusqlite::params;

use super::file::Group;
use super::holders::{Change, holder_of};
use super::reader::offer_of;
use super::schema::{DEFERRED_LANE, fact_number};
use super::{Entry, Offer, SpoolError, SpoolFile, lane_of};

/// Entries that go back at a time, and their bytes.
const BACK_MAX: u32 = 1_000;
const BACK_BYTES_MAX: u64 = 4 << 20;

/// Refused records of an entry of the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// The entry as it is.
    pub entry: Arc<Entry>,
    /// Their numbers within the entry, ascending.
    pub rows: Vec<i64>,
    /// Their lines.
    pub body: Vec<u8>,
    /// The lines that are left.
    pub rest: Vec<u8>,
}

impl Group<'_> {
    /// Takes refused records out of an entry, to wait for room. An entry that is not there any more as it was is left alone.
    ///
    /// # Errors
    /// As the disk fails.
    pub fn defer(&mut self, deferred: &Deferred) -> Result<(), SpoolError> {
        let Deferred { entry, rows, body, rest } = deferred;
        let offer = Offer {
            lane: DEFERRED_LANE,
            message_id: String::new(),
            rows: u32::try_from(rows.len()).unwrap_or(u32::MAX),
            body: body.clone(),
            ..entry.offer.without_body()
        };
        let mut defer = || -> rusqlite::Result<()> {
            if !self.take_out(entry, rows, rest)? {
                return Ok(());
            }
            // It was acknowledged before.
            let acknowledged = self.counts.acknowledged;
            self.insert(&offer)?;
            self.counts.acknowledged = acknowledged;
            self.counts.deferred += u64::from(offer.rows);
            self.counts.deferred_bytes += offer.stored_bytes();
            let deferred_bytes = i64::try_from(offer.stored_bytes()).unwrap_or(i64::MAX);
            self.note_held(&offer, Change { deferred_bytes, ..Change::default() });
            Ok(())
        };
        defer().map_err(|error| SpoolError::of(&error))
    }

    /// Gives some of what waits for room back to its sources' lanes, where there is room: in quarantine, and in the spool, which they
    /// count against then.
    ///
    /// # Errors
    /// As the disk fails.
    pub(super) fn bring_back(&mut self, lanes: u32) -> Result<(), SpoolError> {
        if self.counts.deferred == 0
            || !self.is_quarantine_below_half()
            || !self.has_room_for_bytes(self.half_of_bound())
        {
            return Ok(());
        }
        self.take_back(lanes).map_err(|error| SpoolError::of(&error))
    }

    fn take_back(&mut self, lanes: u32) -> rusqlite::Result<()> {
        let select = "SELECT sequence, source, sender, message_id, received_ns, precision, rows, checksum, body FROM entry \
                      WHERE lane = ? ORDER BY sequence LIMIT ?";
        let (mut found, mut bytes) = (Vec::new(), 0);
        {
            let mut select = self.transaction.prepare_cached(select)?;
            let mut entries = select.query(params![DEFERRED_LANE, BACK_MAX])?;
            while let Some(row) = entries.next()? {
                let (sequence, offer, is_whole) = offer_of(row, DEFERRED_LANE)?;
                bytes += offer.stored_bytes();
                found.push((sequence, offer, is_whole, row.get::<_, u32>(7)?));
                if bytes >= BACK_BYTES_MAX {
                    break;
                }
            }
        }
        for (sequence, mut offer, is_whole, checksum) in found {
            self.transaction.prepare_cached("DELETE FROM entry WHERE sequence = ?")?.execute([sequence])?;
            let before = self.counts;
            offer.lane = lane_of(&offer.source, lanes);
            self.insert(&offer)?;
            if !is_whole {
                // What is damaged goes to quarantine as such.
                let keep = "UPDATE entry SET checksum = ? WHERE sequence = ?";
                self.transaction.prepare_cached(keep)?.execute(params![checksum, self.newest()])?;
            }
            let bytes = offer.stored_bytes();
            let (deferred, deferred_bytes) =
                (before.deferred.saturating_sub(u64::from(offer.rows)), before.deferred_bytes.saturating_sub(bytes));
            self.counts = super::Counts { deferred, deferred_bytes, ..before };
            let deferred_bytes = i64::try_from(bytes).map_or(i64::MIN, |bytes| -bytes);
            self.note_held(&offer, Change { deferred_bytes, ..Change::default() });
        }
        Ok(())
    }

    /// Whether any sender holds more or less of the quarantine.
    pub(super) fn changes_quarantine(&self) -> bool {
        !self.held.is_empty()
    }

    /// Notes what a sender holds more or less.
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

impl SpoolFile {
    /// The number of lanes that sources are assigned to.
    pub(super) fn lanes(&self) -> Result<u32, SpoolError> {
        let lanes = fact_number(self.connection(), "lanes").map_err(|error| SpoolError::of(&error))?;
        Ok(u32::try_from(lanes).unwrap_or(1).max(1))
    }
}
