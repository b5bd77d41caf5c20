//! Frees the room of segments in which nothing is needed any more, and moves what is left in those that are nearly so. Main function: [`SpoolFile::give_back`].
//!
//! Invariant: a segment is released only when everything in it that is needed is durable elsewhere. The lasting log is released from its oldest segment on, so that a statement
//! that something is superseded never goes before the thing it speaks of.

use std::collections::BTreeMap;
use std::time::Duration;

use loadline_segments::segments::{LogError, NOTE_MAX, look_at};

use super::fact::{Fact, Id, Moved, Parts, facts_of};
use super::file::SpoolFile;
use super::group::FactList;
use super::index::Effect;
use super::logs::error_of;
use super::place::{LogName, Place};
use super::{SpoolError, logs};

/// How often a mark is written that says how far everything is.
const MARK_AFTER: Duration = Duration::from_secs(1);
/// The unused segments that may exist before anything is moved.
const SPARE: u64 = 4;
/// The most ids in a frame.
const IDS_MAX: usize = 50_000;
/// Bytes of an id in a frame.
const ID_BYTES: u64 = 20;

/// The mark that is written beside the entries every second.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Note {
    pub id_clock_ns: i64,
    /// The sequence of the newest entry.
    pub newest: i64,
    /// No entry up to this one, in any lane, is still needed in the entries' log.
    pub all_settled: i64,
    pub settled: BTreeMap<u32, i64>,
}

impl Note {
    fn to_bytes(&self) -> Vec<u8> {
        let numbers = [self.id_clock_ns, self.newest, self.all_settled];
        let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        for (lane, through) in &self.settled {
            bytes.extend_from_slice(&lane.to_le_bytes());
            bytes.extend_from_slice(&through.to_le_bytes());
        }
        // Lanes that have no room in the note learn from the database how far they are settled.
        bytes.truncate(NOTE_MAX - (NOTE_MAX - 24) % 12);
        bytes
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let mut parts = Parts(bytes);
        let [id_clock_ns, newest, all_settled] = [parts.i64()?, parts.i64()?, parts.i64()?];
        let mut note = Note { id_clock_ns, newest, all_settled, settled: BTreeMap::new() };
        while let Some((lane, through)) = parts.u32().zip(parts.i64()) {
            note.settled.insert(lane, through);
        }
        Some(note)
    }
}

impl SpoolFile {
    pub(super) fn note(&self) -> Vec<u8> {
        let (index, newest) = (self.shelf.index(), self.next_sequence - 1);
        let all_settled = index.first_of(LogName::Entries).map_or(newest, |first| first - 1);
        let settled = index.settled().clone();
        Note { id_clock_ns: self.id_clock.now_ns(), newest, all_settled, settled }.to_bytes()
    }

    /// Writes a mark that says how far everything is.
    pub(super) fn mark(&mut self) -> Result<(), SpoolError> {
        let note = self.note();
        (self.marked, self.wants_mark) = (self.clock.now(), false);
        for (log, note) in [(LogName::Lasting, &[][..]), (LogName::Entries, &note)] {
            match self.logs()?.log(log).mark(note) {
                Ok(()) | Err(LogError::NoRoom(_) | LogError::TooLong(_)) => {}
                Err(error) => return Err(error_of(error)),
            }
        }
        Ok(())
    }

    /// Does the work beside the groups: frees the room of segments in which nothing is needed, and now and then writes a mark.
    ///
    /// # Errors
    /// [`SpoolError::Broken`].
    pub fn tidy(&mut self) -> Result<(), SpoolError> {
        self.check_place()?;
        match self.give_back() {
            // A full disk is tried again with the next group.
            Ok(()) | Err(SpoolError::Full(_)) => {}
            Err(error) => return Err(error),
        }
        self.scrub.look_if_due(&self.shelf, self.clock.now());
        if self.wants_mark && self.clock.since(self.marked) >= MARK_AFTER {
            self.mark()?;
            self.logs()?.reserve();
        }
        Ok(())
    }

    fn give_back(&mut self) -> Result<(), SpoolError> {
        let segments = self.segments(LogName::Entries)?;
        let (mut left, mut is_stuck) = (Vec::new(), false);
        for segment in segments {
            match self.shelf.index().segment(LogName::Entries, segment as u32).bytes {
                0 => {}
                bytes => {
                    left.push((bytes, segment));
                    continue;
                }
            }
            is_stuck |= !self.leave(segment)?;
        }
        // Entries that wait for long do not keep whole segments in use.
        let taken: u64 = left.iter().map(|(_, segment)| self.size(LogName::Entries, *segment)).sum();
        let wanted: u64 = left.iter().map(|(bytes, _)| bytes).sum();
        let spare = SPARE * logs::segment_bytes(self.bound_bytes, LogName::Entries);
        // A log remembers only a limited number of segments that were released behind one that was not.
        let first = left.first().copied().filter(|_| is_stuck);
        let least = left.into_iter().min().filter(|_| taken > wanted + wanted / 4 + spare);
        if let Some((_, segment)) = first.or(least) {
            self.leave(segment)?;
        }
        self.give_back_lasting()
    }

    /// Returns the segments that are no longer appended to.
    pub(super) fn segments(&mut self, log: LogName) -> Result<Vec<u64>, SpoolError> {
        let log = self.logs()?.log(log);
        let current = log.current();
        Ok(log.segments().filter(|segment| Some(*segment) != current).collect())
    }

    fn size(&mut self, log: LogName, segment: u64) -> u64 {
        if let Some(size) = self.sizes.get(&(log, segment)) {
            return *size;
        }
        // A segment that is gone takes no room.
        let size = self.logs.as_mut().and_then(|logs| logs.log(log).bytes_of(segment).ok()).unwrap_or(0);
        self.sizes.insert((log, segment), size);
        size
    }

    /// Releases a segment of the entries' log, after moving what is needed of it to the lasting log. Returns false if the segment stays.
    pub(super) fn leave(&mut self, segment: u64) -> Result<bool, SpoolError> {
        let waiting = {
            let index = self.shelf.index();
            let is_wanted = index.segment(LogName::Entries, segment as u32).bytes > 0;
            if is_wanted { index.entries_of(LogName::Entries, segment as u32) } else { Vec::new() }
        };
        let mut lists = Vec::new();
        for (lane, sequence, entry) in waiting {
            let epoch = self.shelf.index().segment(LogName::Entries, segment as u32).epoch;
            // A damaged entry stays where it is until its writer has put it into quarantine.
            let Ok(bytes) = self.shelf.read(&entry.place, epoch) else { return Ok(false) };
            let Some(stored) = super::fact::StoredEntry::of(&bytes) else { return Ok(false) };
            let mut list = FactList::default();
            list.push(&Fact::Entry(stored), Some(Effect::Entry { lane, sequence, entry }), entry.rows);
            lists.push(list);
        }
        let ids = self.ids_of.get(&segment).map_or(&[][..], Vec::as_slice);
        let known = ids.iter().flat_map(|first| self.ids.beginning_with(*first)).collect();
        lists.extend(ids_to_move(known));
        let moved = self.shelf.index().moved_in(segment as u32);
        self.move_on(lists, moved)?;
        self.give_up(LogName::Entries, segment)
    }

    fn move_on(&mut self, lists: Vec<FactList>, moved: Vec<Moved>) -> Result<(), SpoolError> {
        if lists.is_empty() && moved.is_empty() {
            return Ok(());
        }
        let mut group = self.begin()?;
        group.moved = moved;
        lists.into_iter().for_each(|list| group.push(list));
        group.commit()
    }

    fn give_up(&mut self, log: LogName, segment: u64) -> Result<bool, SpoolError> {
        let note = if log == LogName::Entries { self.note() } else { Vec::new() };
        if !self.logs()?.log(log).give_up(segment, &note).map_err(error_of)? {
            return Ok(false);
        }
        let reader = if log == LogName::Entries { &self.shelf.entries } else { &self.shelf.lasting };
        reader.forget(segment);
        self.shelf.index().forget_segment(log, segment as u32);
        self.sizes.remove(&(log, segment));
        if log == LogName::Entries {
            self.ids_of.remove(&segment);
        }
        Ok(true)
    }

    /// Releases the oldest segment of the lasting log if too little of the log is still needed.
    fn give_back_lasting(&mut self) -> Result<(), SpoolError> {
        let segments = self.segments(LogName::Lasting)?;
        let taken: u64 = segments.iter().map(|segment| self.size(LogName::Lasting, *segment)).sum();
        let wanted = self.shelf.index().wanted_bytes(LogName::Lasting) + ID_BYTES * self.ids.len();
        let spare = SPARE * logs::segment_bytes(self.bound_bytes, LogName::Lasting);
        match segments.first() {
            Some(first) if taken > 2 * wanted + spare => self.leave_lasting(*first),
            _ => Ok(()),
        }
    }

    /// Releases the segments of the lasting log from the oldest to the given one.
    pub(super) fn leave_lasting_through(&mut self, segment: u64) -> Result<(), SpoolError> {
        for older in self.segments(LogName::Lasting)?.into_iter().take_while(|older| *older <= segment) {
            self.leave_lasting(older)?;
        }
        Ok(())
    }

    fn leave_lasting(&mut self, segment: u64) -> Result<(), SpoolError> {
        let mut lists = Vec::new();
        let shelf = std::sync::Arc::clone(&self.shelf);
        let mut ids = Vec::new();
        let disk = std::sync::Arc::clone(self.logs()?.log(LogName::Lasting).disk());
        let looked = look_at(&*disk, segment, &mut |header, body| {
            for (fact, at, length) in facts_of(header.kind, body) {
                let place = Place::of(LogName::Lasting, header, at, length);
                let index = shelf.index();
                let mut list = FactList::default();
                match fact {
                    Fact::Entry(stored) => {
                        let (lane, sequence) = (stored.entry.offer.lane, stored.entry.sequence);
                        if let Some(effect) = index.effect_at(lane, sequence, &place) {
                            let rows = stored.entry.offer.rows;
                            list.push(&Fact::Entry(stored), Some(effect), rows);
                        }
                    }
                    Fact::Quarantined(stored) => {
                        if let Some(refusal) = index.refusal(stored.id).filter(|refusal| refusal.place == place) {
                            let (id, rows) = (stored.id, refusal.rows);
                            list.push(&Fact::Quarantined(stored), Some(Effect::Quarantined { id, refusal }), rows);
                        }
                    }
                    Fact::Ids(found) => ids.extend(found.into_iter().map(|(id, _)| id)),
                    Fact::LetGo(_) | Fact::Settled { .. } | Fact::State(_) | Fact::Base(_) | Fact::Moved(_) => {}
                }
                lists.push(list);
            }
        });
        looked.map_err(|error| SpoolError::Broken(error.to_string()))?;
        let known = ids.into_iter().filter_map(|id| Some((id, self.ids.time(&id)?))).collect();
        lists.extend(ids_to_move(known));
        let settled = self.shelf.index().settled().clone();
        let mut group = self.begin()?;
        group.state_to_change().settled = settled;
        lists.into_iter().for_each(|list| group.push(list));
        group.commit()?;
        self.give_up(LogName::Lasting, segment).map(drop)
    }
}

/// Returns frames with the ids that are still remembered.
fn ids_to_move(known: Vec<(Id, u32)>) -> Vec<FactList> {
    let list = |ids: &[(Id, u32)]| {
        let mut list = FactList::default();
        list.push(&Fact::Ids(ids.to_vec()), None, 0);
        list
    };
    known.chunks(IDS_MAX).map(list).collect()
}
