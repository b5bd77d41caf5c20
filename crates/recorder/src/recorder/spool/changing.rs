//! The changes that a group can make to entries, ids, and how far lanes are settled. Changes of the quarantine and of records that wait apart have files of their own.

use super::fact::{ENTRY, Fact, Id, StoredEntry, StoredRefusal};
use super::file::Stored;
use super::group::{FactList, Frame, Group, NOWHERE, Now, effect_of};
use super::holders::Change;
use super::ids::{BOUND_BYTES, id_of, seconds};
use super::index::{Effect, RefusalRef};
use super::logs::random_name;
use super::place::LogName;
use super::{Entry, LaneNews, LaneOpening, Offer, SpoolError};
use crate::recorder::access::owned_id;

/// The share of the bound that message ids may take, besides waiting entries and the quarantine: one part in so many.
const MESSAGES_SHARE: u64 = 4;

impl Group<'_> {
    /// Notes what a lane has found out, and returns what it shows to the ledger from here on.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn note(&mut self, lane: u32, news: &LaneNews) -> Result<LaneOpening, SpoolError> {
        if let LaneNews::Parted { through, .. } = news {
            self.settle(lane, *through)?;
            let through = self.settled.get(&lane).copied().unwrap_or(0);
            let noted = self.state_to_change().settled.entry(lane).or_insert(through);
            *noted = through.max(*noted);
        }
        Ok(self.state_to_change().note(lane, news, random_name()))
    }

    /// Stores an offer, unless its message was stored before.
    ///
    /// # Errors
    /// [`SpoolError::Full`] beyond the bound; otherwise the error of the disk.
    pub fn append(&mut self, offer: &Offer) -> Result<Stored, SpoolError> {
        if !self.has_room_for(offer) {
            let shown = crate::units::show_bytes;
            let (used, bound) = (shown(self.counts.spooled_bytes as f64), shown(self.file.bound_bytes as f64));
            let kept = match self.counts.quarantined_bytes.saturating_sub(self.file.quarantine_bound_bytes) {
                0 => String::new(),
                bytes => format!(", and {} more than quarantine.bound are in quarantine", shown(bytes as f64)),
            };
            return Err(SpoolError::Full(format!("{used} of {bound} wait for the database{kept}")));
        }
        let (id, id_s) = (self.id_of(offer), seconds(self.file.id_clock.now_ns()));
        if let Some(id) = &id {
            if self.knows(offer, id) {
                return Ok(Stored::Duplicate);
            }
            self.ids.insert(*id, id_s);
        }
        let sequence = self.next_sequence();
        // The body is copied once, into the frame.
        let mut body = Vec::new();
        let stored = StoredEntry { entry: Entry { sequence, offer: offer.without_body() }, version: 0, id_s };
        stored.append_to(&mut body);
        body.extend_from_slice(&offer.body);
        let effect = (self.new_entry(offer, sequence, 0), 0, body.len());
        let (tag, rows) = (offer.lane, offer.rows);
        self.frames.push(Frame { log: LogName::Entries, kind: ENTRY, tag, rows, body, effects: vec![effect], id });
        self.counts.acknowledged += u64::from(offer.rows);
        Ok(Stored::New(sequence))
    }

    /// Returns an offer as it is to be stored: compressed, if the spool compresses.
    pub(super) fn as_stored(&self, offer: Offer) -> Offer {
        if self.file.compresses { offer.packed() } else { offer }
    }

    /// Returns whether a message was taken in before.
    pub(super) fn is_known(&self, offer: &Offer) -> bool {
        self.id_of(offer).is_some_and(|id| self.knows(offer, &id))
    }

    fn id_of(&self, offer: &Offer) -> Option<Id> {
        (!offer.message_id.is_empty()).then(|| id_of(&offer.source, &offer.message_id))
    }

    fn knows(&self, offer: &Offer, id: &Id) -> bool {
        // A version without owners kept ids as clients sent them. No id is kept that way any more, so nobody can add to them.
        let unowned = owned_id(&offer.message_id).filter(|_| self.state().has_unowned);
        self.remembers(id) || unowned.is_some_and(|unowned| self.remembers(&id_of(&offer.source, unowned)))
    }

    pub(super) fn remembers(&self, id: &Id) -> bool {
        self.ids.contains_key(id) || self.file.ids.contains(id) || self.replayed.contains_key(id)
    }

    fn next_sequence(&mut self) -> i64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.newest = sequence;
        sequence
    }

    /// Counts a new entry, and returns its change of the index.
    fn new_entry(&mut self, offer: &Offer, sequence: i64, version: u32) -> Effect {
        let now = Now { version, rows: offer.rows, bytes: offer.stored_bytes() };
        self.counts.spooled += u64::from(offer.rows);
        self.counts.spooled_bytes += now.bytes;
        self.counts.entries += 1;
        self.unplaced.insert((offer.lane, sequence), now);
        effect_of(offer, sequence, now)
    }

    /// Stores an offer that was acknowledged before, in the list of facts that hold together with it.
    pub(super) fn insert(&mut self, offer: &Offer, list: &mut FactList) {
        let sequence = self.next_sequence();
        let effect = self.new_entry(offer, sequence, 0);
        let stored = StoredEntry { entry: Entry { sequence, offer: offer.clone() }, version: 0, id_s: 0 };
        list.push(&Fact::Entry(stored), Some(effect), offer.rows);
    }

    /// Keeps the rest of an entry from which records were taken.
    pub(super) fn amend(&mut self, sequence: i64, rest: &Offer, before: Now, list: &mut FactList) {
        let now = Now { version: before.version + 1, rows: rest.rows, bytes: rest.stored_bytes() };
        let stored = StoredEntry { entry: Entry { sequence, offer: rest.clone() }, version: now.version, id_s: 0 };
        self.is_over(rest.lane, sequence, now.version);
        match self.unplaced.get_mut(&(rest.lane, sequence)) {
            Some(unplaced) => *unplaced = now,
            None => drop(self.amended.insert(sequence, now)),
        }
        list.push(&Fact::Entry(stored), Some(effect_of(rest, sequence, now)), rest.rows);
    }

    /// Puts something damaged into quarantine.
    pub(super) fn put_damage(&mut self, entry: i64, row: i64, reason: &str, offer: Offer) {
        let quarantined_ns = self.file.clock.day_ns();
        let refusal = StoredRefusal { id: 0, entry, row, quarantined_ns, reason: reason.to_owned(), offer };
        let rows = u64::from(refusal.offer.rows);
        let bytes = refusal.stored_bytes();
        self.counts.quarantined += rows;
        self.counts.quarantined_bytes += bytes;
        self.counts.committed = self.counts.committed.saturating_sub(rows);
        let change = Change {
            rows: i64::from(refusal.offer.rows),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            deferred_bytes: 0,
            reason: reason.to_owned(),
        };
        let offer = refusal.offer.without_body();
        self.note_held(&offer, change);
        let mut list = FactList::default();
        self.put_refusal(refusal, &mut list);
        self.push(list);
    }

    /// Puts a record into quarantine, in the list of facts that hold together with it.
    pub(super) fn put_refusal(&mut self, mut refusal: StoredRefusal, list: &mut FactList) {
        if refusal.id == 0 {
            refusal.id = self.next_refusal;
            self.next_refusal += 1;
        }
        let bytes = u32::try_from(refusal.stored_bytes()).unwrap_or(u32::MAX);
        let (id, entry, row, rows) = (refusal.id, refusal.entry, refusal.row, refusal.offer.rows);
        self.refused.insert((entry, row), rows);
        let effect = RefusalRef { place: NOWHERE, entry, row, rows, bytes, is_damage: row < 0 };
        list.push(&Fact::Quarantined(refusal), Some(Effect::Quarantined { id, refusal: effect }), rows);
    }

    /// Forgets the entries of a lane up to a sequence: all their rows are committed or quarantined.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn settle(&mut self, lane: u32, through: i64) -> Result<(), SpoolError> {
        let through = through.min(self.next_sequence - 1);
        let before = self.settled.get(&lane).copied().unwrap_or(i64::MIN);
        if through <= before {
            return Ok(());
        }
        let (mut rows, mut refused, mut bytes, mut entries) = (0, 0, 0, 0);
        {
            let index = self.file.shelf.index();
            let of_group = self.unplaced.range((lane, before.saturating_add(1))..=(lane, through));
            let of_group = of_group.map(|((_, sequence), now)| (*sequence, *now));
            let of_before = index.between(lane, before, through.saturating_add(1));
            let of_before = of_before.map(|(sequence, entry)| {
                (sequence, self.amended.get(&sequence).copied().unwrap_or_else(|| Now::of(&entry)))
            });
            for (sequence, now) in of_before.chain(of_group).filter(|(_, now)| now.rows > 0) {
                let of_group = self.refused.range((sequence, i64::MIN)..=(sequence, i64::MAX));
                rows += u64::from(now.rows);
                refused += index.refused_rows(sequence) + of_group.map(|(_, rows)| u64::from(*rows)).sum::<u64>();
                bytes += now.bytes;
                entries += 1;
            }
        }
        let committed = rows.saturating_sub(refused);
        self.counts.committed += committed;
        self.counts.spooled = self.counts.spooled.saturating_sub(committed);
        self.counts.spooled_bytes = self.counts.spooled_bytes.saturating_sub(bytes);
        self.counts.entries = self.counts.entries.saturating_sub(entries);
        self.settled.insert(lane, through);
        Ok(())
    }

    /// Returns whether message ids take more room than they may; the oldest are then forgotten, however young they are.
    pub fn remembers_too_much(&self) -> bool {
        let most = self.forgotten.map_or(u64::MAX, |(_, most)| most);
        let of_group = self.ids.len() + self.replayed.len();
        let known = (self.file.ids.len() + of_group as u64).min(most);
        known * BOUND_BYTES > self.file.bound_bytes / MESSAGES_SHARE
    }

    /// Forgets message ids that are old enough, or too many.
    ///
    /// # Errors
    /// Returns an error if the disk fails.
    pub fn forget_messages(&mut self) -> Result<(), SpoolError> {
        self.forget_messages_at(self.file.id_clock.now_ns())
    }

    pub(super) fn forget_messages_at(&mut self, now_ns: i64) -> Result<(), SpoolError> {
        let remember_ns = i64::try_from(self.file.remember.as_nanos()).unwrap_or(i64::MAX);
        let most = self.file.bound_bytes / MESSAGES_SHARE / BOUND_BYTES;
        // Some more are forgotten, so that not every message has to make room for itself.
        let most = if self.remembers_too_much() { most - most / 8 } else { most };
        self.forgotten = Some((seconds(now_ns.saturating_sub(remember_ns)), most));
        Ok(())
    }
}
