//! Reads waiting entries. Main type: [`Reader`].

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use loadline_segments::segments::{self, ReadError};

use super::fact::StoredEntry;
use super::index::Index;
use super::place::{EntryRef, LogName, Place};
use super::refusal::{DAMAGED, Refusal};
use super::{Entry, Offer, SpoolError};
use crate::recorder::line::Precision;

/// The most entries that are looked up at a time.
const ENTRIES_MAX: usize = 10_000;

/// The data that the writing thread and the readers share.
pub(super) struct Shelf {
    index: Mutex<Index>,
    pub(super) entries: segments::Reader,
    pub(super) lasting: segments::Reader,
}

impl Shelf {
    pub(super) fn new(index: Index, entries: segments::Reader, lasting: segments::Reader) -> Self {
        Shelf { index: Mutex::new(index), entries, lasting }
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the part of a frame at a place, as it was written.
    pub(super) fn read(&self, place: &Place, epoch: u64) -> Result<Vec<u8>, ReadError> {
        let log = if place.log == LogName::Entries { &self.entries } else { &self.lasting };
        let part = |body: Vec<u8>| {
            if place.at == 0 && place.bytes == place.length { body } else { place.part(&body).to_vec() }
        };
        match log.read_at(place.position(), place.length, epoch) {
            Ok(body) => Ok(part(body)),
            Err(ReadError::Damaged(body)) => Err(ReadError::Damaged(part(body))),
            Err(error) => Err(error),
        }
    }
}

/// Reads the spool from any number of threads, beside the one that writes.
#[derive(Clone)]
pub struct Reader {
    pub(super) shelf: Arc<Shelf>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// An entry as it was read; `Err` for a damaged one, with the refusal to quarantine it with.
pub type Found = Result<Entry, (Entry, Refusal)>;

impl Reader {
    /// Returns the entries of a lane between two sequences, in order, up to this many bytes or rows; at least one if there is any.
    /// A damaged entry comes with the refusal that it is to be quarantined with.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn read(
        &self,
        lane: u32,
        between: (i64, i64),
        bytes_max: usize,
        rows_max: u64,
    ) -> Result<Vec<Found>, SpoolError> {
        let mut wanted = Vec::new();
        {
            let (index, mut bytes, mut rows) = (self.shelf.index(), 0_usize, 0);
            for (sequence, entry) in index.between(lane, between.0, between.1).take(ENTRIES_MAX) {
                wanted.push((sequence, entry, index.segment(entry.place.log, entry.place.segment).epoch));
                bytes = bytes.saturating_add(entry.place.bytes as usize);
                rows += u64::from(entry.rows);
                if bytes >= bytes_max || rows >= rows_max {
                    break;
                }
            }
        }
        let (mut found, mut plain_bytes) = (Vec::with_capacity(wanted.len()), 0);
        for (sequence, entry, epoch) in wanted {
            // A compressed body may be much larger in memory.
            if plain_bytes >= bytes_max {
                break;
            }
            if let Some(one) = self.read_one(lane, sequence, entry, epoch)? {
                plain_bytes += one.as_ref().map_or(0, |entry| entry.offer.body.len());
                found.push(one);
            }
        }
        Ok(found)
    }

    /// Returns one entry; `None` if it was settled meanwhile.
    fn read_one(
        &self,
        lane: u32,
        sequence: i64,
        mut entry: EntryRef,
        mut epoch: u64,
    ) -> Result<Option<Found>, SpoolError> {
        loop {
            match self.shelf.read(&entry.place, epoch) {
                Ok(bytes) => {
                    let stored = StoredEntry::of(&bytes).map(|stored| stored.entry);
                    let plain = stored
                        .filter(|stored| stored.sequence == sequence)
                        .and_then(|stored| Some(Entry { sequence, offer: stored.offer.unpacked().ok()? }));
                    return Ok(Some(plain.ok_or_else(|| damaged(lane, sequence, &entry, bytes))));
                }
                Err(ReadError::Damaged(left)) => return Ok(Some(Err(damaged(lane, sequence, &entry, left)))),
                Err(ReadError::Disk(reason)) => return Err(SpoolError::Broken(reason)),
                Err(ReadError::Gone) => {
                    // The entry has been moved to another segment, or was settled.
                    let index = self.shelf.index();
                    match index.entry(lane, sequence) {
                        Some(now) if now.place != entry.place => {
                            epoch = index.segment(now.place.log, now.place.segment).epoch;
                            entry = now;
                        }
                        Some(now) => return Ok(Some(Err(damaged(lane, sequence, &now, Vec::new())))),
                        None => return Ok(None),
                    }
                }
            }
        }
    }

    /// Returns the first entry of a lane behind a sequence; `None` if nothing waits there.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn first(&self, lane: u32, after: i64) -> Result<Option<i64>, SpoolError> {
        Ok(self.shelf.index().between(lane, after, i64::MAX).next().map(|(sequence, _)| sequence))
    }

    /// Returns whether at least this many rows of a lane wait behind a sequence, among the entries that [`Reader::read`] looks at.
    pub fn has_rows(&self, lane: u32, after: i64, rows_min: u64) -> bool {
        let (index, mut rows) = (self.shelf.index(), 0);
        index.between(lane, after, i64::MAX).take(ENTRIES_MAX).any(|(_, entry)| {
            rows += u64::from(entry.rows);
            rows >= rows_min
        })
    }

    /// Returns whether any record of the entries between two sequences, both included, is in quarantine.
    pub fn has_quarantined(&self, first: i64, last: i64) -> bool {
        self.shelf.index().refused(first, last).next().is_some()
    }

    /// Returns the records of these entries that are in quarantine, as entry and row. They were put there by a recorder
    /// that ended before it could settle the entry.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn quarantined(&self, first: i64, last: i64) -> Result<Vec<(i64, i64)>, SpoolError> {
        Ok(self.shelf.index().refused(first, last).map(|(entry, row, _)| (entry, row)).collect())
    }

    /// Returns the number of records in the spool of the entries of a lane up to a sequence.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn rows_through(&self, lane: u32, through: i64) -> Result<u64, SpoolError> {
        let index = self.shelf.index();
        let through = index.between(lane, i64::MIN, through.saturating_add(1));
        Ok(through.map(|(_, entry)| u64::from(entry.rows)).sum())
    }

    /// Returns the number of records in quarantine that stand for damage to the spool.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn damaged_rows(&self) -> Result<u64, SpoolError> {
        Ok(self.shelf.index().damaged_rows())
    }

    /// Returns the arrival time of the oldest entry of a lane behind a sequence, in nanoseconds since 1970; `None` if nothing waits there.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn oldest(&self, lane: u32, after: i64) -> Result<Option<i64>, SpoolError> {
        Ok(self
            .shelf
            .index()
            .between(lane, after, i64::MAX)
            .next()
            .map(|(_, entry)| entry.received_us.saturating_mul(1_000)))
    }
}

/// Returns a damaged entry with what is left of it, and its refusal.
fn damaged(lane: u32, sequence: i64, entry: &EntryRef, left: Vec<u8>) -> (Entry, Refusal) {
    // The sender is a guess; the refusal says that the entry is damaged.
    let guessed = StoredEntry::of(&left).map(|stored| stored.entry.offer.unpacked().unwrap_or_else(|packed| packed));
    let (source, sender, body) =
        guessed.map_or(("".into(), "".into(), left), |offer| (offer.source, offer.sender, offer.body));
    let refusal = Refusal { row: -1, rows: entry.rows, body: body.clone(), reason: DAMAGED.to_owned() };
    let offer = Offer {
        lane,
        source,
        sender,
        message_id: String::new(),
        received_ns: entry.received_us.saturating_mul(1_000),
        precision: Precision::default(),
        rows: entry.rows,
        body,
        is_packed: false,
    };
    (Entry { sequence, offer }, refusal)
}
