//! Records that the database refused, each with its reason. [`list`] reads them;
//! [`SpoolFile::clear`] returns them to the queue or discards them.
//!
//! Invariant: a record is in quarantine or in the queue, never in both and never in neither: both change in one frame.

use std::collections::BTreeMap;
use std::path::Path;

use loadline_segments::segments;

use super::fact::{Fact, Moved, StoredRefusal, facts_of};
use super::group::{FactList, Group};
use super::holders::Change;
use super::index::{Effect, RefusalRef};
use super::place::LogName;
use super::{Entry, Offer, Quarantined, Refusal, SpoolError, SpoolFile, lane_of, logs, older};

impl Group<'_> {
    /// Puts a refused record into quarantine. Repeating this for the same record changes nothing.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn quarantine(&mut self, entry: &Entry, refusal: &Refusal, now_ns: i64) -> Result<(), SpoolError> {
        let mut list = FactList::default();
        self.put_aside(entry, refusal, now_ns, &mut list);
        self.push(list);
        Ok(())
    }

    fn put_aside(&mut self, entry: &Entry, refusal: &Refusal, now_ns: i64, list: &mut FactList) {
        if self.is_refused(entry.sequence, refusal.row) {
            return;
        }
        let offer = Offer {
            message_id: String::new(),
            rows: refusal.rows,
            body: refusal.body.clone(),
            ..entry.offer.without_body()
        };
        let stored = StoredRefusal {
            id: 0,
            entry: entry.sequence,
            row: refusal.row,
            quarantined_ns: now_ns,
            reason: refusal.reason.clone(),
            offer,
        };
        self.counts.quarantined += u64::from(refusal.rows);
        self.counts.spooled = self.counts.spooled.saturating_sub(u64::from(refusal.rows));
        let bytes = stored.stored_bytes();
        self.counts.quarantined_bytes += bytes;
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        let reason = refusal.reason.clone();
        self.note_held(&entry.offer, Change { rows: refusal.rows.into(), bytes, deferred_bytes: 0, reason });
        self.put_refusal(stored, list);
    }

    /// As [`Group::quarantine`], for a record that was never in the spool: being quarantined acknowledges it.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn quarantine_unspooled(&mut self, entry: &Entry, refusal: &Refusal, now_ns: i64) -> Result<(), SpoolError> {
        let before = self.counts;
        let mut list = FactList::default();
        self.put_aside(entry, refusal, now_ns, &mut list);
        let rows = self.counts.quarantined - before.quarantined;
        self.counts.acknowledged += rows;
        self.counts.spooled = before.spooled;
        if rows > 0 {
            self.change_base(i64::try_from(rows).unwrap_or(i64::MAX), &mut list);
        }
        self.push(list);
        Ok(())
    }
}

/// The most records that are replayed or discarded in one transaction, and their most bytes.
const PORTION_MAX: usize = 500;
const PORTION_BYTES_MAX: u64 = 4 << 20;

/// What to do with quarantined records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clearing {
    /// Return them to the queue. Records whose bytes have changed since stay.
    Replay,
    /// Give them up; they no longer count as acknowledged.
    Discard,
}

/// A range of quarantined records, by their numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The range begins behind this number.
    pub after: i64,
    /// The last number of the range; `None` for the last one there is.
    pub through: Option<i64>,
}

impl Span {
    /// All quarantined records.
    pub const ALL: Span = Span { after: 0, through: None };
}

/// The result of clearing a part of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portion {
    /// The number of records that were cleared.
    pub rows: u64,
    /// The rest of the span; `None` if nothing is left.
    pub next: Option<Span>,
    /// Why nothing more can be done now; `None` if it can.
    pub full: Option<String>,
}

impl Group<'_> {
    /// Replays or discards the next records of a span, the oldest first. A replay leaves this many bytes of the spool's bound to others.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub(super) fn clear(
        &mut self,
        what: Clearing,
        span: Span,
        (lanes, leave_bytes): (u32, u64),
    ) -> Result<Portion, SpoolError> {
        let through = span.through.unwrap_or_else(|| self.file.shelf.index().newest_refusal());
        let mut portion = Portion { rows: 0, next: None, full: None };
        // All discarded records and their count go into one frame: of two, a crash may leave only the second, with a count that includes the first.
        let mut given_up = FactList::default();
        for (id, refusal) in self.next_refusals(span.after, through) {
            portion.next = Some(Span { after: id, through: Some(through) });
            let (before, rows) = (self.counts, u64::from(refusal.rows));
            let stored = self.read_refusal(id)?;
            let mut list = FactList::default();
            match what {
                Clearing::Replay => {
                    // A damaged record is never replayed, and one that cannot be read cannot be.
                    let Some(stored) = stored.filter(|_| !refusal.is_damage) else { continue };
                    let offer = Offer { lane: lane_of(&stored.offer.source, lanes), ..stored.offer.clone() };
                    if !self.has_room_for_bytes(leave_bytes + offer.stored_bytes()) {
                        let reason = "there is no room for more in the spool; go on when it has drained".to_owned();
                        return Ok(Portion { full: Some(reason), ..portion });
                    }
                    // The record was acknowledged already.
                    self.insert(&offer, &mut list);
                    self.remember_replayed(&stored, &mut list);
                    self.let_go(id, &refusal, Some(&stored), &mut list);
                }
                Clearing::Discard => {
                    self.let_go(id, &refusal, stored.as_ref(), &mut given_up);
                    self.counts.acknowledged = before.acknowledged.saturating_sub(rows);
                    self.change_base(-i64::from(refusal.rows), &mut given_up);
                }
            }
            self.push(list);
            self.counts.quarantined = before.quarantined.saturating_sub(rows);
            portion.rows += rows;
        }
        self.push(given_up);
        Ok(portion)
    }

    /// Returns the next records of a span that may be cleared. Records whose entry still waits are decided with the entry, so they are left out.
    fn next_refusals(&self, after: i64, through: i64) -> Vec<(i64, RefusalRef)> {
        let (index, mut bytes) = (self.file.shelf.index(), 0);
        let is_decided = |refusal: &RefusalRef| refusal.is_damage || !index.is_waiting(refusal.entry);
        let refusals = index.refusals(after).take_while(|(id, _)| *id <= through);
        let decided = refusals.filter(|(id, refusal)| is_decided(refusal) && !self.let_go.contains(id));
        let some = decided.take(PORTION_MAX).take_while(|(_, refusal)| {
            let is_room = bytes < PORTION_BYTES_MAX;
            bytes += u64::from(refusal.bytes);
            is_room
        });
        some.map(|(id, refusal)| (id, *refusal)).collect()
    }

    fn let_go(&mut self, id: i64, refusal: &RefusalRef, stored: Option<&StoredRefusal>, list: &mut FactList) {
        // After a crash a writer may not know yet that the entry was settled, and would find the record in it once more.
        let settled = stored.and_then(|stored| {
            let through = *self.file.shelf.index().settled().get(&stored.offer.lane)?;
            (through >= refusal.entry).then_some((stored.offer.lane, through))
        });
        if let Some((lane, through)) = settled {
            list.push(&Fact::Settled { lane, through }, None, 0);
        }
        self.let_go.insert(id);
        self.counts.quarantined_bytes = self.counts.quarantined_bytes.saturating_sub(refusal.bytes.into());
        list.push(&Fact::LetGo(vec![id]), Some(Effect::LetGo(id)), 0);
        let until = (refusal.place.log, refusal.place.segment);
        self.moved.push(Moved { number: id, version: None, until });
        if let Some(stored) = stored {
            let change =
                Change { rows: -i64::from(refusal.rows), bytes: -i64::from(refusal.bytes), ..Change::default() };
            self.note_held(&stored.offer, change);
        }
    }
}

impl SpoolFile {
    /// Replays or discards all quarantined records, and returns how many.
    ///
    /// # Errors
    /// Returns an error if the disk fails, or if the spool is full; some records may be replayed then.
    pub fn clear(&mut self, what: Clearing) -> Result<u64, SpoolError> {
        let lanes = self.lanes();
        let (mut rows, mut next) = (0, Some(Span::ALL));
        while let Some(span) = next {
            let mut group = self.begin()?;
            let portion = group.clear(what, span, (lanes, 0))?;
            group.commit()?;
            rows += portion.rows;
            if let Some(reason) = portion.full {
                return Err(SpoolError::Full(format!("{rows} records are replayed; {reason}")));
            }
            next = portion.next;
        }
        Ok(rows)
    }
}

/// Returns the newest `limit` records in a spool's quarantine, in order of arrival, whether or not a recorder works on the spool.
///
/// # Errors
/// [`SpoolError::Unusable`] if the spool cannot be read.
pub fn list(directory: &Path, limit: u32) -> Result<Vec<Quarantined>, SpoolError> {
    let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
    if let Some(older) = older::list(directory, limit) {
        return older.map_err(|error| unusable(error.to_string()));
    }
    let lasting = logs::directory(directory, LogName::Lasting);
    // Opening the directory would create it.
    if !lasting.is_dir() {
        return Err(unusable(
            "there is no spool in it; name the directory that the recorder was started with".to_owned(),
        ));
    }
    let mut found = BTreeMap::new();
    let read = segments::Directory::open(&lasting).and_then(|disk| {
        segments::look(&disk, &mut |header, body| {
            for (fact, ..) in facts_of(header.kind, body) {
                match fact {
                    Fact::Quarantined(refusal) => drop(found.insert(refusal.id, refusal)),
                    Fact::LetGo(ids) => ids.iter().for_each(|id| drop(found.remove(id))),
                    _ => {}
                }
            }
        })
    });
    read.map_err(|error| unusable(error.to_string()))?;
    let surplus = found.len().saturating_sub(limit as usize);
    Ok(found.into_values().skip(surplus).map(Quarantined::of).collect())
}

impl Quarantined {
    fn of(refusal: StoredRefusal) -> Self {
        Quarantined {
            id: refusal.id,
            source: refusal.offer.source.to_string(),
            quarantined_ns: refusal.quarantined_ns,
            reason: refusal.reason,
            rows: refusal.offer.rows.into(),
            line: String::from_utf8_lossy(&refusal.offer.body).trim_end().to_owned(),
        }
    }
}

#[cfg(test)]
#[path = "quarantine_tests.rs"]
mod quarantine_tests;
