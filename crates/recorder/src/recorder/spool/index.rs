//! The index of the spool: where everything in it stands. Main type: [`Index`].
//!
//! Invariant: an entry is in its lane until it is settled or everything was taken out of it; a record is in quarantine until it is released. A statement in an older frame
//! never replaces one in a newer frame.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry as Slot;

use super::counts::Counts;
use super::entry::DEFERRED_LANE;
use super::fact::Moved;
use super::lane::Lane;
use super::place::{EntryRef, LogName, Place};

/// The most entries that are searched for the first one of a log.
const SEARCHED_MAX: usize = 10_000;
/// Bytes of a frame besides the parts that the index points at.
const FRAME_BYTES: u64 = 80;

/// A record in quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RefusalRef {
    pub place: Place,
    pub entry: i64,
    pub row: i64,
    pub rows: u32,
    /// The bytes that the record counts against the quarantine's bound.
    pub bytes: u32,
    /// Whether the record stands for damage.
    pub is_damage: bool,
}

/// An entry from which all records were taken out.
#[derive(Debug, Clone, Copy)]
struct Gone {
    lane: u32,
    version: u32,
    place: Place,
}

/// The use of a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Use {
    pub epoch: u64,
    /// Bytes of the segment that are still needed; ids and state are not counted.
    pub bytes: u64,
}

/// The change that a fact of a frame makes to the index.
#[derive(Debug, Clone)]
pub(super) enum Effect {
    Entry { lane: u32, sequence: i64, entry: EntryRef },
    Quarantined { id: i64, refusal: RefusalRef },
    LetGo(i64),
    Settled { lane: u32, through: i64 },
    Moved { moved: Moved, place: Place },
}

impl Effect {
    /// Returns the same change with its subject at another place.
    pub(super) fn at(&self, place: Place) -> Effect {
        match self.clone() {
            Effect::Entry { lane, sequence, entry } => {
                Effect::Entry { lane, sequence, entry: EntryRef { place, ..entry } }
            }
            Effect::Quarantined { id, refusal } => Effect::Quarantined { id, refusal: RefusalRef { place, ..refusal } },
            Effect::Moved { moved, .. } => Effect::Moved { moved, place },
            other => other,
        }
    }
}

/// Returns the bytes of a segment that a place keeps in use.
fn held(place: &Place) -> u64 {
    FRAME_BYTES + u64::from(place.bytes)
}

#[derive(Debug, Default)]
pub(super) struct Index {
    lanes: BTreeMap<u32, Lane>,
    settled: BTreeMap<u32, i64>,
    gone: BTreeMap<i64, Gone>,
    quarantine: BTreeMap<i64, RefusalRef>,
    /// Numbers in quarantine, by entry and row.
    refused: BTreeMap<(i64, i64), i64>,
    uses: BTreeMap<(LogName, u32), Use>,
    damaged_rows: u64,
    /// Superseded statements, by number and whether it is an entry's, each with the place of the fact that says so.
    moved: BTreeMap<(i64, bool), (Moved, Place)>,
    /// While both logs are read: superseded statements that were found, whether or not a fact says so.
    over: Option<Vec<Moved>>,
}

impl Index {
    /// Notes that a segment exists.
    pub(super) fn note_segment(&mut self, log: LogName, segment: u32, epoch: u64) {
        self.uses.entry((log, segment)).or_default().epoch = epoch;
    }

    pub(super) fn forget_segment(&mut self, log: LogName, segment: u32) {
        self.uses.remove(&(log, segment));
        // Facts about what was superseded in it are no longer needed.
        let over: Vec<_> =
            self.moved.iter().filter(|(_, (moved, _))| moved.until == (log, segment)).map(|(key, _)| *key).collect();
        for key in over {
            if let Some((_, place)) = self.moved.remove(&key) {
                self.release(&place);
            }
        }
    }

    /// From here on, collects the superseded statements that are found.
    pub(super) fn note_over(&mut self) {
        self.over = Some(Vec::new());
    }

    /// Returns the superseded statements that no fact mentions, because a crash came between the two logs.
    pub(super) fn unsaid(&mut self) -> Vec<Moved> {
        let mut over = self.over.take().unwrap_or_default();
        over.retain(|moved| !self.moved.contains_key(&(moved.number, moved.version.is_some())));
        over
    }

    fn find_over(&mut self, number: i64, version: Option<u32>, place: &Place) {
        let until = (place.log, place.segment);
        self.over.iter_mut().for_each(|over| over.push(Moved { number, version, until }));
    }

    /// Returns the superseded statements that a segment mentions.
    pub(super) fn moved_in(&self, segment: u32) -> Vec<Moved> {
        let own = self.moved.values().filter(|(_, place)| place.segment == segment);
        own.map(|(moved, _)| *moved).collect()
    }

    /// Returns the segments that contain a statement known to be superseded.
    pub(super) fn outdated(&self) -> Vec<(LogName, u64)> {
        let until = self.moved.values().map(|(moved, _)| (moved.until.0, u64::from(moved.until.1)));
        until.collect()
    }

    fn put_moved(&mut self, moved: Moved, place: Place) {
        match moved.version {
            None => self.let_go(moved.number),
            Some(version) => {
                let is_over = |entry: &EntryRef| entry.version < version;
                let found = self.lanes.values_mut().find_map(|lane| {
                    let found = lane.get(moved.number).filter(is_over);
                    found.and_then(|_| lane.remove(moved.number))
                });
                found.iter().for_each(|entry| self.release(&entry.place));
            }
        }
        if !self.uses.contains_key(&moved.until) {
            return;
        }
        self.hold(&place);
        if let Some((_, before)) = self.moved.insert((moved.number, moved.version.is_some()), (moved, place)) {
            self.release(&before);
        }
    }

    pub(super) fn segment(&self, log: LogName, segment: u32) -> Use {
        self.uses.get(&(log, segment)).copied().unwrap_or_default()
    }

    /// Returns the bytes of a log that are still needed.
    pub(super) fn wanted_bytes(&self, log: LogName) -> u64 {
        self.uses.iter().filter(|((own, _), _)| *own == log).map(|(_, one)| one.bytes).sum()
    }

    fn hold(&mut self, place: &Place) {
        self.uses.entry(place.segment_of()).or_default().bytes += held(place);
    }

    fn release(&mut self, place: &Place) {
        self.release_bytes(place.segment_of(), held(place));
    }

    fn release_bytes(&mut self, segment: (LogName, u32), bytes: u64) {
        if let Some(one) = self.uses.get_mut(&segment) {
            one.bytes = one.bytes.saturating_sub(bytes);
        }
    }

    pub(super) fn apply(&mut self, effect: &Effect) {
        match *effect {
            Effect::Entry { lane, sequence, entry } => self.put_entry(lane, sequence, entry),
            Effect::Quarantined { id, refusal } => self.put_refusal(id, refusal),
            Effect::LetGo(id) => {
                if let Some(refusal) = self.refusal(id) {
                    self.find_over(id, None, &refusal.place);
                }
                self.let_go(id);
            }
            Effect::Settled { lane, through } => {
                let taken: Vec<_> = match lane {
                    DEFERRED_LANE => {
                        self.between(lane, i64::MIN, through.saturating_add(1)).map(|(s, e)| (s, e.place)).collect()
                    }
                    _ => Vec::new(),
                };
                taken.iter().for_each(|(sequence, place)| self.find_over(*sequence, Some(u32::MAX), place));
                self.settle(lane, through);
            }
            Effect::Moved { moved, place } => self.put_moved(moved, place),
        }
    }

    fn put_entry(&mut self, lane: u32, sequence: i64, entry: EntryRef) {
        if self.settled.get(&lane).is_some_and(|settled| sequence <= *settled) {
            return;
        }
        let is_over = |(moved, _): &(Moved, Place)| moved.version.is_some_and(|version| version > entry.version);
        if self.moved.get(&(sequence, true)).is_some_and(is_over) {
            return;
        }
        let known = self.entry(lane, sequence);
        let gone = self.gone.get(&sequence).copied();
        let newest = known.map(|known| known.version).max(gone.map(|gone| gone.version));
        if let Some(newest) = newest.filter(|newest| *newest > entry.version) {
            self.find_over(sequence, Some(newest), &entry.place);
            return;
        }
        if let Some(older) = known.filter(|known| known.version < entry.version) {
            self.find_over(sequence, Some(entry.version), &older.place);
        }
        let of_known = known.map(|known| known.place);
        of_known.iter().chain(gone.iter().map(|gone| &gone.place)).for_each(|place| self.release(place));
        self.hold(&entry.place);
        let entries = self.lanes.entry(lane).or_default();
        if entry.rows == 0 {
            entries.remove(sequence);
            self.gone.insert(sequence, Gone { lane, version: entry.version, place: entry.place });
        } else {
            entries.insert(sequence, entry);
        }
    }

    fn put_refusal(&mut self, id: i64, refusal: RefusalRef) {
        self.let_go(id);
        // A record that was put into quarantine twice is there once.
        if let Some(other) = self.refused.get(&(refusal.entry, refusal.row)).copied() {
            self.let_go(other);
        }
        self.hold(&refusal.place);
        self.damaged_rows += if refusal.is_damage { refusal.rows.into() } else { 0 };
        self.refused.insert((refusal.entry, refusal.row), id);
        self.quarantine.insert(id, refusal);
    }

    fn let_go(&mut self, id: i64) {
        let Some(refusal) = self.quarantine.remove(&id) else { return };
        self.release(&refusal.place);
        self.damaged_rows -= if refusal.is_damage { refusal.rows.into() } else { 0 };
        if let Slot::Occupied(slot) = self.refused.entry((refusal.entry, refusal.row))
            && *slot.get() == id
        {
            slot.remove();
        }
    }

    /// Removes everything in a lane up to an entry.
    pub(super) fn settle(&mut self, lane: u32, through: i64) {
        let settled = self.settled.entry(lane).or_insert(through);
        *settled = through.max(*settled);
        let through = *settled;
        let mut taken: BTreeMap<_, u64> = BTreeMap::new();
        if let Some(entries) = self.lanes.get_mut(&lane) {
            entries.take_through(through, |_, entry| {
                *taken.entry(entry.place.segment_of()).or_default() += held(&entry.place)
            });
        }
        taken.into_iter().for_each(|(segment, bytes)| self.release_bytes(segment, bytes));
        let of_lane: Vec<i64> =
            self.gone.range(..=through).filter(|(_, gone)| gone.lane == lane).map(|(sequence, _)| *sequence).collect();
        for sequence in of_lane {
            if let Some(gone) = self.gone.remove(&sequence) {
                self.release(&gone.place);
            }
        }
    }

    pub(super) fn settled(&self) -> &BTreeMap<u32, i64> {
        &self.settled
    }

    pub(super) fn entry(&self, lane: u32, sequence: i64) -> Option<EntryRef> {
        self.lanes.get(&lane)?.get(sequence)
    }

    /// Returns the entries of a lane between two sequences, both excluded.
    pub(super) fn between(&self, lane: u32, after: i64, before: i64) -> impl Iterator<Item = (i64, EntryRef)> {
        let behind = self.lanes.get(&lane).into_iter().flat_map(move |lane| lane.after(after));
        behind.take_while(move |(sequence, _)| *sequence < before)
    }

    /// Returns whether an entry waits in any lane.
    pub(super) fn is_waiting(&self, sequence: i64) -> bool {
        self.lanes.values().any(|lane| lane.get(sequence).is_some())
    }

    /// Returns the first entry of all lanes that stands in a log; if finding it would take a long search, an earlier one.
    pub(super) fn first_of(&self, log: LogName) -> Option<i64> {
        let first = |entries: &Lane| {
            let mut before = None;
            for (sequence, entry) in entries.all().take(SEARCHED_MAX) {
                if entry.place.log == log {
                    return Some(sequence);
                }
                before = Some(sequence);
            }
            before.filter(|_| entries.len() > SEARCHED_MAX as u64)
        };
        self.lanes.values().filter_map(first).min()
    }

    /// Returns the entry behind the given one, in its lane or in the next lane that has any.
    pub(super) fn next_entry(&self, (lane, sequence): (u32, i64)) -> Option<(u32, i64, EntryRef)> {
        self.lanes.range(lane..).find_map(|(own, entries)| {
            let after = if *own == lane { sequence } else { i64::MIN };
            entries.after(after).next().map(|(sequence, entry)| (*own, sequence, entry))
        })
    }

    /// Returns the number of entries that wait in lanes below the given one.
    pub(super) fn waiting_below(&self, lane: u32) -> u64 {
        self.lanes.range(..lane).map(|(_, entries)| entries.len()).sum()
    }

    /// Returns all entries of a segment, with their lanes and sequences.
    pub(super) fn entries_of(&self, log: LogName, segment: u32) -> Vec<(u32, i64, EntryRef)> {
        let is_of = |place: &Place| place.log == log && place.segment == segment;
        let all = self.lanes.iter().flat_map(|(lane, entries)| entries.all().map(move |one| (*lane, one.0, one.1)));
        all.filter(|(_, _, entry)| is_of(&entry.place)).collect()
    }

    /// Returns the change that moves the entry at this place, or the fact that nothing is left of it, elsewhere; `None` if the place is not the one that counts.
    pub(super) fn effect_at(&self, lane: u32, sequence: i64, place: &Place) -> Option<Effect> {
        if let Some(entry) = self.entry(lane, sequence).filter(|entry| entry.place == *place) {
            return Some(Effect::Entry { lane, sequence, entry });
        }
        let gone = self.gone.get(&sequence).filter(|gone| gone.place == *place)?;
        let (version, place) = (gone.version, gone.place);
        let entry = EntryRef { place, version, rows: 0, bytes: 0, received_us: 0 };
        Some(Effect::Entry { lane, sequence, entry })
    }

    pub(super) fn refusal(&self, id: i64) -> Option<RefusalRef> {
        self.quarantine.get(&id).copied()
    }

    /// Returns the records in quarantine behind a number, in the order of their numbers.
    pub(super) fn refusals(&self, after: i64) -> impl Iterator<Item = (i64, &RefusalRef)> {
        self.quarantine.range(after.saturating_add(1)..).map(|(id, refusal)| (*id, refusal))
    }

    pub(super) fn newest_refusal(&self) -> i64 {
        self.quarantine.last_key_value().map_or(0, |(id, _)| *id)
    }

    /// Returns the records in quarantine that belong to a range of entries, as entry, row and number in quarantine.
    pub(super) fn refused(&self, first: i64, last: i64) -> impl Iterator<Item = (i64, i64, i64)> {
        let range = (first <= last).then(|| self.refused.range((first, i64::MIN)..=(last, i64::MAX)));
        range.into_iter().flatten().map(|((entry, row), id)| (*entry, *row, *id))
    }

    /// Returns the number of rows of an entry that are in quarantine.
    pub(super) fn refused_rows(&self, entry: i64) -> u64 {
        self.refused(entry, entry).filter_map(|(_, _, id)| Some(u64::from(self.quarantine.get(&id)?.rows))).sum()
    }

    pub(super) fn is_refused(&self, entry: i64, row: i64) -> bool {
        self.refused.contains_key(&(entry, row))
    }

    /// Returns the number of rows in quarantine that stand for damage.
    pub(super) fn damaged_rows(&self) -> u64 {
        self.damaged_rows
    }

    /// Returns the counters, given the number of acknowledged rows.
    pub(super) fn count(&self, acknowledged: u64) -> Counts {
        let mut counts = Counts { acknowledged, ..Counts::default() };
        for (lane, entries) in &self.lanes {
            for (sequence, entry) in entries.all() {
                let (rows, bytes) = (u64::from(entry.rows), u64::from(entry.bytes));
                counts.entries += 1;
                counts.spooled += rows.saturating_sub(self.refused_rows(sequence));
                counts.spooled_bytes += bytes;
                if *lane == DEFERRED_LANE {
                    counts.deferred += rows;
                    counts.deferred_bytes += bytes;
                }
            }
        }
        for refusal in self.quarantine.values() {
            counts.quarantined += u64::from(refusal.rows);
            counts.quarantined_bytes += u64::from(refusal.bytes);
        }
        counts.committed = acknowledged.saturating_sub(counts.spooled + counts.quarantined);
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(segment: u32) -> Place {
        Place { log: LogName::Lasting, segment, offset: 72, length: 10, at: 0, bytes: 10 }
    }

    fn entry(version: u32, rows: u32, segment: u32) -> EntryRef {
        EntryRef { place: place(segment), version, rows, bytes: 100, received_us: 0 }
    }

    fn put(index: &mut Index, sequence: i64, entry: EntryRef) {
        index.apply(&Effect::Entry { lane: 1, sequence, entry });
    }

    #[test]
    fn the_newest_version_of_an_entry_counts_in_whatever_order_they_are_found() {
        let mut index = Index::default();
        put(&mut index, 5, entry(1, 2, 7));
        put(&mut index, 5, entry(0, 4, 3));
        assert_eq!(index.entry(1, 5).map(|entry| entry.rows), Some(2));
        put(&mut index, 5, entry(2, 0, 8));
        put(&mut index, 5, entry(1, 2, 7));
        assert_eq!(index.entry(1, 5), None);
        assert!(index.effect_at(1, 5, &place(8)).is_some() && index.effect_at(1, 5, &place(7)).is_none());
        assert_eq!((index.segment(LogName::Lasting, 7).bytes, index.segment(LogName::Lasting, 8).bytes), (0, 90));
        index.settle(1, 5);
        put(&mut index, 5, entry(3, 4, 3));
        assert_eq!((index.wanted_bytes(LogName::Lasting), index.is_waiting(5)), (0, false));
    }

    #[test]
    fn what_is_counted_is_what_is_there() {
        let mut index = Index::default();
        put(&mut index, 1, entry(0, 4, 1));
        put(&mut index, 2, entry(0, 4, 1));
        let refusal = |entry, row| RefusalRef { place: place(2), entry, row, rows: 1, bytes: 50, is_damage: row < 0 };
        for (id, entry, row) in [(1, 2, 3), (2, 2, 3), (3, 9, -1)] {
            index.apply(&Effect::Quarantined { id, refusal: refusal(entry, row) });
        }
        let counts = index.count(20);
        assert_eq!((counts.spooled, counts.quarantined, counts.committed, counts.entries), (7, 2, 11, 2));
        assert_eq!((index.damaged_rows(), index.refused(2, 2).collect::<Vec<_>>()), (1, vec![(2, 3, 2)]));
        index.apply(&Effect::LetGo(2));
        index.apply(&Effect::LetGo(1));
        index.settle(1, 1);
        let counts = index.count(20);
        assert_eq!((counts.spooled, counts.quarantined, counts.spooled_bytes), (4, 1, 100));
        assert_eq!(index.entries_of(LogName::Lasting, 1).len(), 1);
    }
}
