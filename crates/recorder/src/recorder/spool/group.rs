//! Changes of the spool that are synced together. Main type: [`Group`].
//!
//! Invariant: nothing is changed before it is durable; a group that fails for want of room has changed nothing.

use std::collections::{BTreeMap, HashMap, HashSet};

use loadline_segments::segments::FrameHeader;

use super::fact::{FACTS, Fact, Id, Moved, StoredRefusal};
use super::file::SpoolFile;
use super::holders::Change;
use super::ids::prefix;
use super::index::Effect;
use super::logs;
use super::place::{EntryRef, LogName, Place};
use super::state::State;
use super::{Counts, Offer, SpoolError};

impl SpoolFile {
    /// Starts a group: everything that is stored, settled and quarantined with it is synced together.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn begin(&mut self) -> Result<Group<'_>, SpoolError> {
        Ok(Group {
            counts: self.counts,
            held: HashMap::new(),
            frames: Vec::new(),
            unplaced: BTreeMap::new(),
            amended: HashMap::new(),
            refused: BTreeMap::new(),
            let_go: HashSet::new(),
            settled: BTreeMap::new(),
            ids: HashMap::new(),
            replayed: HashMap::new(),
            forgotten: None,
            state: None,
            moved: Vec::new(),
            base: self.state.base,
            next_sequence: self.next_sequence,
            next_refusal: self.next_refusal,
            newest: 0,
            file: self,
        })
    }
}

/// A frame that is to be appended.
pub(super) struct Frame {
    pub log: LogName,
    pub kind: u8,
    pub tag: u32,
    pub rows: u32,
    pub body: Vec<u8>,
    /// The changes that the frame makes, each with where its bytes stand in the body, as start and length.
    pub effects: Vec<(Effect, usize, usize)>,
    pub id: Option<Id>,
}

/// An entry as it will be after the group.
#[derive(Debug, Clone, Copy)]
pub(super) struct Now {
    pub version: u32,
    pub rows: u32,
    pub bytes: u64,
}

/// Changes that are synced together. If it is dropped without [`Group::commit`], none of them is made.
pub struct Group<'a> {
    pub(super) file: &'a mut SpoolFile,
    pub(super) counts: Counts,
    /// How the shares of the quarantine that senders hold change.
    pub(super) held: HashMap<String, Change>,
    pub(super) frames: Vec<Frame>,
    /// Entries that this group adds, by lane and sequence.
    pub(super) unplaced: BTreeMap<(u32, i64), Now>,
    /// Earlier entries that this group changes, by sequence.
    pub(super) amended: HashMap<i64, Now>,
    /// Records that this group puts into quarantine, by entry and row, each with the number of records that it stands for.
    pub(super) refused: BTreeMap<(i64, i64), u32>,
    pub(super) let_go: HashSet<i64>,
    pub(super) settled: BTreeMap<u32, i64>,
    pub(super) ids: HashMap<Id, u32>,
    /// Ids that the lasting log has for records that this group replays.
    pub(super) replayed: HashMap<Id, u32>,
    /// The time before which ids are forgotten, and how many ids may remain.
    pub(super) forgotten: Option<(u32, u64)>,
    pub(super) state: Option<State>,
    /// The statements that this group supersedes.
    pub(super) moved: Vec<Moved>,
    /// [`State::base`] as it will be after the group.
    base: i64,
    pub(super) next_sequence: i64,
    pub(super) next_refusal: i64,
    /// The sequence of the group's newest entry; 0 for none.
    pub(super) newest: i64,
}

/// Facts that hold together or not at all.
#[derive(Default)]
pub(super) struct FactList {
    body: Vec<u8>,
    rows: u32,
    effects: Vec<(Effect, usize, usize)>,
}

impl Group<'_> {
    /// Returns the time of day, in nanoseconds since 1970.
    pub(super) fn day_ns(&self) -> i64 {
        self.file.clock.day_ns()
    }

    /// Returns the counters as they will be after the group.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Returns the sequence of the group's newest entry; 0 for none.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// Returns whether an offer fits within the spool's bound.
    pub fn has_room_for(&self, offer: &Offer) -> bool {
        self.has_room_for_bytes(offer.stored_bytes())
    }

    /// Returns whether this many more bytes fit within the spool's bound.
    pub fn has_room_for_bytes(&self, bytes: u64) -> bool {
        let bound = self.file.bound_bytes;
        self.counts.held_bytes(bound, self.file.quarantine_bound_bytes) + bytes <= bound
    }

    /// Returns half of the spool's bound, in bytes.
    pub(super) fn half_of_bound(&self) -> u64 {
        self.file.bound_bytes / 2
    }

    /// Returns whether less than half of the quarantine's bound is used.
    pub(super) fn is_quarantine_below_half(&self) -> bool {
        self.counts.quarantined_bytes < self.file.quarantine_bound_bytes / 2
    }

    /// Returns the spool's state as it will be after the group.
    pub(super) fn state(&self) -> &State {
        self.state.as_ref().unwrap_or(&self.file.state)
    }

    pub(super) fn state_to_change(&mut self) -> &mut State {
        let newest = self.next_sequence - 1;
        let state = self.state.get_or_insert_with(|| self.file.state.clone());
        state.newest = state.newest.max(newest);
        state
    }

    /// Returns an entry as it will be after the group; `None` if it will be gone.
    pub(super) fn entry(&self, lane: u32, sequence: i64) -> Option<Now> {
        if self.settled.get(&lane).is_some_and(|settled| sequence <= *settled) {
            return None;
        }
        let pending = self.unplaced.get(&(lane, sequence)).or_else(|| self.amended.get(&sequence)).copied();
        let now = pending.or_else(|| self.file.shelf.index().entry(lane, sequence).map(|entry| Now::of(&entry)));
        now.filter(|now| now.rows > 0)
    }

    /// Removes the oldest entry of a lane, whose records are elsewhere from here on.
    pub(super) fn take_from_lane(&mut self, lane: u32, through: i64, list: &mut FactList) {
        self.is_over(lane, through, u32::MAX);
        self.settled.insert(lane, through);
        list.push(&Fact::Settled { lane, through }, Some(Effect::Settled { lane, through }), 0);
    }

    /// Returns whether any entry waits in a lane.
    pub(super) fn has_waiting(&self, lane: u32) -> bool {
        let settled = self.settled.get(&lane).copied().unwrap_or(i64::MIN);
        let of_group = (lane, settled.saturating_add(1))..=(lane, i64::MAX);
        if self.unplaced.range(of_group).any(|(_, now)| now.rows > 0) {
            return true;
        }
        let index = self.file.shelf.index();
        let is_left = |sequence: i64| self.amended.get(&sequence).is_none_or(|now| now.rows > 0);
        index.between(lane, settled, i64::MAX).any(|(sequence, _)| is_left(sequence))
    }

    /// Returns a record in quarantine as it was stored; `None` if it can no longer be read.
    pub(super) fn read_refusal(&self, id: i64) -> Result<Option<StoredRefusal>, SpoolError> {
        self.file.read_refusal(id)
    }

    /// Counts rows as acknowledged that had been counted as something else.
    pub(super) fn count_also(&mut self, rows: u64) {
        if rows > 0 {
            self.base = self.base.saturating_add_unsigned(rows);
            self.counts.acknowledged += rows;
            self.counts.committed += rows;
            let mut list = FactList::default();
            self.change_base(0, &mut list);
            self.push(list);
        }
    }

    /// Changes the number of acknowledged rows that are in no frame of the entries.
    pub(super) fn change_base(&mut self, rows: i64, list: &mut FactList) {
        self.base += rows;
        list.push(&Fact::Base(self.base), None, 0);
    }

    /// Appends facts that hold together.
    pub(super) fn push(&mut self, list: FactList) {
        let FactList { body, rows, effects } = list;
        if !body.is_empty() {
            self.frames.push(Frame { log: LogName::Lasting, kind: FACTS, tag: 0, rows, body, effects, id: None });
        }
    }

    /// Returns the number that the next record in quarantine gets.
    pub(super) fn next_refusal(&self) -> i64 {
        self.next_refusal
    }

    /// Returns whether a record of an entry is in quarantine.
    pub(super) fn is_refused(&self, entry: i64, row: i64) -> bool {
        self.refused.contains_key(&(entry, row)) || self.file.shelf.index().is_refused(entry, row)
    }

    /// Makes the changes durable.
    ///
    /// # Errors
    /// [`SpoolError::Full`]: none of the changes was made. Otherwise the error of the disk.
    pub fn commit(mut self) -> Result<(), SpoolError> {
        self.file.check_place()?;
        if let Some(state) = self.state.take() {
            self.push_state(state);
        }
        let state = self.state.take();
        self.push_moved();
        let logs = self.file.logs()?;
        for log in [LogName::Lasting, LogName::Entries] {
            let lengths = self.frames.iter().filter(move |frame| frame.log == log);
            logs.make_room(log, lengths.map(|frame| frame.body.len() as u64))?;
        }
        let mut placed = self.write(LogName::Lasting)?;
        if let Some(state) = state {
            self.file.state = state;
        }
        self.file.state.base = self.base;
        #[cfg(test)]
        if let Some(look) = self.file.looks_between_logs {
            look(&self.file.shelf);
        }
        match self.write(LogName::Entries) {
            Ok(more) => placed.extend(more),
            Err(error) => {
                // The disk had promised room and gave none: what stands in the lasting log holds all the same.
                self.show(placed);
                self.replayed.drain().for_each(|(id, time)| self.file.ids.remember(id, time));
                self.file.next_sequence = self.next_sequence;
                self.file.next_refusal = self.next_refusal;
                self.file.count_again();
                return Err(error);
            }
        }
        self.show(placed);
        self.conclude();
        Ok(())
    }

    fn push_moved(&mut self) {
        let mut list = FactList::default();
        for moved in std::mem::take(&mut self.moved) {
            list.push(&Fact::Moved(moved), Some(Effect::Moved { moved, place: NOWHERE }), 0);
        }
        let FactList { body, effects, .. } = list;
        if !body.is_empty() {
            self.frames.push(Frame { log: LogName::Entries, kind: FACTS, tag: 0, rows: 0, body, effects, id: None });
        }
    }

    /// Notes that earlier versions of an entry no longer hold.
    pub(super) fn is_over(&mut self, lane: u32, sequence: i64, version: u32) {
        let place = self.file.shelf.index().entry(lane, sequence).map(|entry| entry.place);
        let until = place.map(|place| (place.log, place.segment));
        self.moved.extend(until.map(|until| Moved { number: sequence, version: Some(version), until }));
    }

    /// Adds the state, twice, so that no single damage takes it away.
    fn push_state(&mut self, mut state: State) {
        state.newest = state.newest.max(self.next_sequence - 1);
        state.newest_quarantined = state.newest_quarantined.max(self.next_refusal - 1);
        state.id_clock_ns = self.file.id_clock.now_ns();
        state.base = self.base;
        let mut list = FactList::default();
        list.push(&Fact::State(Box::new(state.clone())), None, 0);
        let frame =
            |body| Frame { log: LogName::Lasting, kind: FACTS, tag: 0, rows: 0, body, effects: Vec::new(), id: None };
        self.frames.insert(0, frame(list.body.clone()));
        self.frames.insert(0, frame(list.body));
        self.state = Some(state);
    }

    /// Appends the frames of a log and makes them durable; returns where they stand.
    fn write(&mut self, log: LogName) -> Result<Vec<(usize, FrameHeader)>, SpoolError> {
        let mut placed = Vec::new();
        for (number, frame) in self.frames.iter().enumerate().filter(|(_, frame)| frame.log == log) {
            let logs = self.file.logs.as_mut().ok_or_else(|| SpoolError::Broken("it is closed".to_owned()))?;
            let header = logs.append(log, (frame.kind, frame.tag, frame.rows), &frame.body)?;
            placed.push((number, header));
        }
        if !placed.is_empty() {
            self.file.logs()?.log(log).commit().map_err(logs::error_of)?;
        }
        Ok(placed)
    }

    /// Shows durable changes to the writers, all of a group at once. A writer that saw a returned entry, which is in the lasting log, before an older one of the same group
    /// would go on behind both, and the older one would be lost.
    fn show(&mut self, placed: Vec<(usize, FrameHeader)>) {
        let mut index = self.file.shelf.index();
        for (number, header) in placed {
            let frame = &self.frames[number];
            index.note_segment(frame.log, header.position.segment as u32, header.epoch);
            for (effect, at, length) in &frame.effects {
                index.apply(&effect.at(Place::of(frame.log, &header, *at, *length)));
            }
            if let Some(id) = frame.id.filter(|_| frame.log == LogName::Entries) {
                self.file.ids_of.entry(header.position.segment).or_default().push(prefix(&id));
            }
        }
    }

    /// Applies the changes to the spool in memory, once everything is durable.
    fn conclude(mut self) {
        let file = &mut *self.file;
        {
            let mut index = file.shelf.index();
            self.settled.iter().for_each(|(lane, through)| index.settle(*lane, *through));
        }
        let ids = self.ids.drain().chain(self.replayed.drain());
        ids.for_each(|(id, time)| file.ids.remember(id, time));
        if let Some((before, most)) = self.forgotten {
            let forgotten = file.ids.forget_before(before);
            let _ = (forgotten, file.ids.forget_oldest(most));
        }
        file.wants_mark |= !self.frames.is_empty() || !self.settled.is_empty();
        file.counts = self.counts;
        file.next_sequence = self.next_sequence;
        file.next_refusal = self.next_refusal;
        self.held.iter().for_each(|(holder, change)| file.holders.change(holder, change));
    }
}

/// The place of bytes that are not written yet.
pub(super) const NOWHERE: Place = Place { log: LogName::Lasting, segment: 0, offset: 0, length: 0, at: 0, bytes: 0 };

pub(super) fn effect_of(offer: &Offer, sequence: i64, now: Now) -> Effect {
    let entry = EntryRef {
        place: NOWHERE,
        version: now.version,
        rows: now.rows,
        bytes: u32::try_from(now.bytes).unwrap_or(u32::MAX),
        received_us: offer.received_ns / 1_000,
    };
    Effect::Entry { lane: offer.lane, sequence, entry }
}

impl Now {
    pub(super) fn of(entry: &EntryRef) -> Self {
        Now { version: entry.version, rows: entry.rows, bytes: entry.bytes.into() }
    }
}

impl FactList {
    /// Adds a fact, with the change that it makes to the index and the number of rows that it stands for.
    pub(super) fn push(&mut self, fact: &Fact, effect: Option<Effect>, rows: u32) {
        let (at, length) = fact.append_to(&mut self.body);
        self.rows = self.rows.saturating_add(rows);
        self.effects.extend(effect.map(|effect| (effect, at, length)));
    }
}
