//! Opens a spool: reads both logs, and counts the damage. Main function: [`SpoolFile::open`].
//!
//! Invariant: when opening returns, everything that was acknowledged is in a lane, in quarantine, or settled; damage is in quarantine as such.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use loadline_segments::segments::{self, Disk, Found, FrameHeader, Log, LogError, Recovered};

use super::clock::IdClock;
use super::counts::Counts;
use super::damage::Damage;
use super::entry::DEFERRED_LANE;
use super::fact::{ENTRY, EntryView, FACTS, Fact, StoredRefusal, facts_of};
use super::file::SpoolFile;
use super::greedy::{GREEDY_LANES, GreedySources};
use super::holders::{Change, Holders, holder_of};
use super::ids::{Ids, Prefix, id_of, prefix};
use super::index::{Effect, Index, RefusalRef};
use super::logs::{self, Logs, random_epoch, random_name};
use super::older;
use super::place::{EntryRef, LogName, Place};
use super::reader::Shelf;
use super::refusal::{DAMAGED, gone};
use super::retire::Note;
use super::scrub::Scrub;
use super::state::{State, VERSION};
use super::{Offer, SpoolError};
use crate::recorder::clock::{SharedClock, machine};
use crate::recorder::lock::Lock;

/// The most bytes of the remains of something damaged that are kept in quarantine.
const LEFT_MAX: usize = 1 << 20;
/// The number of sequences that are skipped where it is not known which were used.
const LEAP: i64 = 1 << 32;

/// Rows that are damaged or gone.
struct Lost {
    log: LogName,
    segment: u64,
    offset: u32,
    /// The number of the first frame.
    first: u64,
    rows: u64,
    /// The lane of the rows; `None` if it is not known.
    lane: Option<u32>,
    /// The bytes that are left of it.
    left: Vec<u8>,
}

/// What was found in the logs.
#[derive(Default)]
struct Replay {
    index: Index,
    ids: Ids,
    ids_of: BTreeMap<u64, Vec<Prefix>>,
    state: Option<State>,
    newest: i64,
    newest_quarantined: i64,
    /// The source and lane of each entry in the lanes of greedy sources, by sequence.
    greedy: BTreeMap<i64, (Arc<str>, u32)>,
    /// The holder of each record in quarantine or waiting for room there, and the reason of its refusal, by number.
    holders: HashMap<i64, (String, String)>,
    deferred: HashMap<i64, String>,
    lost: Vec<Lost>,
    /// The places, as segment and offset, of entries that do not directly follow another one, with their sequences.
    sequences: Vec<((u64, u32), i64)>,
    /// Where the frame behind the last entry begins, as segment and offset.
    behind: (u64, u64),
}

impl Replay {
    fn take(&mut self, log: LogName, header: &FrameHeader, body: &[u8]) {
        self.index.note_segment(log, header.position.segment as u32, header.epoch);
        if header.kind == ENTRY {
            if let Some(entry) = EntryView::of(body) {
                self.take_entry(&entry, Place::of(log, header, 0, body.len()));
            }
            return;
        }
        for (fact, at, length) in facts_of(header.kind, body) {
            let place = Place::of(log, header, at, length);
            match fact {
                Fact::Entry(_) => {
                    let entry = EntryView::of(body.get(at..at + length).unwrap_or_default());
                    entry.iter().for_each(|entry| self.take_entry(entry, place));
                }
                Fact::Quarantined(refusal) => self.take_refusal(refusal, place),
                Fact::LetGo(ids) => ids.into_iter().for_each(|id| self.index.apply(&Effect::LetGo(id))),
                Fact::Settled { lane, through } => self.index.apply(&Effect::Settled { lane, through }),
                Fact::Ids(ids) => ids.into_iter().for_each(|(id, time)| self.ids.remember(id, time)),
                Fact::State(state) => self.state = Some(*state),
                Fact::Moved(moved) => self.index.apply(&Effect::Moved { moved, place }),
                Fact::Base(rows) => self.state.iter_mut().for_each(|state| state.base = rows),
            }
        }
    }

    fn take_entry(&mut self, entry: &EntryView<'_>, place: Place) {
        let (sequence, offer) = (entry.sequence, &entry.offer);
        self.newest = self.newest.max(sequence);
        if place.log == LogName::Entries {
            let (segment, offset) = (u64::from(place.segment), place.offset);
            if (segment, offset.into()) != self.behind {
                self.sequences.push(((segment, offset), sequence));
            }
            self.behind = (segment, u64::from(offset) + segments::stored_bytes(place.length.into()));
            if !offer.message_id.is_empty() {
                let id = id_of(offer.source, offer.message_id);
                self.ids.remember(id, entry.id_s);
                self.ids_of.entry(place.segment.into()).or_default().push(prefix(&id));
            }
        }
        if GREEDY_LANES.contains(&offer.lane) {
            self.greedy.insert(sequence, (offer.source.into(), offer.lane));
        }
        if offer.lane == DEFERRED_LANE {
            self.deferred.insert(sequence, holder_of(offer.sender, offer.source));
        }
        let texts = offer.source.len() + offer.sender.len() + offer.message_id.len();
        let reference = EntryRef {
            place,
            version: entry.version,
            rows: offer.rows,
            bytes: u32::try_from(super::entry::stored_bytes(texts, offer.body.len())).unwrap_or(u32::MAX),
            received_us: offer.received_ns / 1_000,
        };
        self.index.apply(&Effect::Entry { lane: offer.lane, sequence, entry: reference });
    }

    fn take_refusal(&mut self, stored: StoredRefusal, place: Place) {
        self.newest_quarantined = self.newest_quarantined.max(stored.id);
        self.holders.insert(stored.id, (holder_of(&stored.offer.sender, &stored.offer.source), stored.reason.clone()));
        let refusal = RefusalRef {
            place,
            entry: stored.entry,
            row: stored.row,
            rows: stored.offer.rows,
            bytes: u32::try_from(stored.stored_bytes()).unwrap_or(u32::MAX),
            is_damage: stored.row < 0,
        };
        self.index.apply(&Effect::Quarantined { id: stored.id, refusal });
    }

    fn take_damaged(&mut self, log: LogName, header: &FrameHeader, left: &[u8]) {
        self.index.note_segment(log, header.position.segment as u32, header.epoch);
        self.lost.push(Lost {
            log,
            segment: header.position.segment,
            offset: header.position.offset,
            first: header.sequence,
            rows: header.rows.into(),
            lane: (log == LogName::Entries).then_some(header.tag),
            left: left[..left.len().min(LEFT_MAX)].to_vec(),
        });
    }

    /// Adds rows that are missing without a trace of their own.
    fn take_gaps(&mut self, log: LogName, recovered: &Recovered) {
        let seen = self.lost.iter().filter(|lost| lost.log == log);
        let known: Vec<(u64, u32)> = seen.map(|lost| (lost.segment, lost.offset)).collect();
        let mut rows: u64 = self.lost.iter().filter(|lost| lost.log == log).map(|lost| lost.rows).sum();
        let gaps = recovered.gaps.iter().filter(|gap| gap.is_certain && gap.rows > 0);
        for gap in gaps.filter(|gap| !known.contains(&(gap.position.segment, gap.position.offset))) {
            rows += gap.rows;
            let (segment, offset) = (gap.position.segment, gap.position.offset);
            self.lost.push(Lost {
                log,
                segment,
                offset,
                first: gap.first,
                rows: gap.rows,
                lane: None,
                left: Vec::new(),
            });
        }
        // Gaps are reported up to a maximum number, and some without their places.
        let rest = recovered.damaged_rows.saturating_sub(rows);
        if rest > 0 {
            self.lost.push(Lost { log, segment: 0, offset: 0, first: 0, rows: rest, lane: None, left: Vec::new() });
        }
    }

    /// Returns whether the lost rows had been settled: whether everything before the next entry was.
    fn was_settled(&self, lost: &Lost, note: &Note, is_clean: bool) -> bool {
        if lost.log != LogName::Entries || lost.segment == 0 {
            return false;
        }
        let behind = self.sequences.partition_point(|(place, _)| *place <= (lost.segment, lost.offset));
        // A spool that ended in order has noted its newest entry.
        let next = self.sequences.get(behind).map(|(_, next)| *next).or(is_clean.then_some(note.newest + 1));
        let Some(next) = next else { return false };
        let settled = match lost.lane {
            Some(lane) => self.index.settled().get(&lane).copied(),
            None => Some(note.all_settled),
        };
        settled.is_some_and(|settled| settled >= next - 1)
    }
}

fn open(directory: &Path, bound_bytes: u64, remember: Duration) -> Result<SpoolFile, SpoolError> {
    let unusable = |reason: String| SpoolError::Unusable { path: directory.display().to_string(), reason };
    // The directories that contain it must survive a power cut with it.
    segments::Directory::open(directory).map_err(|error| unusable(format!("cannot be made: {error}")))?;
    let path = directory.join("lock");
    let lock = Lock::take(&path).map_err(|error| unusable(format!("{} cannot be locked: {error}", path.display())))?;
    let lock = lock.ok_or_else(|| SpoolError::Held { path: directory.display().to_string() })?;
    if let Some(reason) = logs::why_too_large(bound_bytes) {
        return Err(unusable(reason));
    }
    let clock = machine();
    let of_older = older::bring_over(directory, bound_bytes, &*clock)?;
    let disk =
        |log| logs::open_directory(directory, log).map_err(|error| unusable(format!("cannot be opened: {error}")));
    let (entries_disk, lasting_disk) = (disk(LogName::Entries)?, disk(LogName::Lasting)?);
    // The directory's contents must survive a power cut, and so must its own entry.
    let synced = std::fs::File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(|error| unusable(format!("cannot be synced: {error}")))?;
    let mut file = open_on((entries_disk, lasting_disk), bound_bytes, remember, &clock, &unusable)?;
    file.lock = Some(lock);
    file.path = directory.to_owned();
    file.damage.older = of_older;
    Ok(file)
}

/// Opens a spool on two disks.
pub(super) fn open_on(
    (entries_disk, lasting_disk): (Arc<dyn Disk>, Arc<dyn Disk>),
    bound_bytes: u64,
    remember: Duration,
    clock: &SharedClock,
    unusable: &dyn Fn(String) -> SpoolError,
) -> Result<SpoolFile, SpoolError> {
    let unopened = |error: LogError| unusable(error.to_string());
    let mut replay = Replay::default();
    replay.index.note_over();
    let open = |log: LogName, disk: &Arc<dyn Disk>, replay: &mut Replay| {
        let settings = logs::settings(bound_bytes, log);
        let opened = Log::open(Arc::clone(disk), settings, random_epoch(), &mut |found| match found {
            Found::Frame(header, body) => replay.take(log, header, body),
            Found::Damaged(header, left) => replay.take_damaged(log, header, left),
        });
        opened.map_err(unopened)
    };
    let (lasting, of_lasting) = open(LogName::Lasting, &lasting_disk, &mut replay)?;
    check_version(&replay, unusable)?;
    let (entries, of_entries) = open(LogName::Entries, &entries_disk, &mut replay)?;
    let note = of_entries.note.as_deref().and_then(Note::of).unwrap_or_default();
    let settled = replay.state.iter().flat_map(|state| state.settled.clone()).chain(note.settled.clone());
    settled.for_each(|(lane, through)| replay.index.settle(lane, through));
    for lane in replay.index.settled().clone() {
        // Entries that were found before this was known are settled now.
        replay.index.settle(lane.0, lane.1);
    }
    replay.take_gaps(LogName::Lasting, &of_lasting);
    replay.take_gaps(LogName::Entries, &of_entries);
    let is_new = of_lasting.last == 0 && of_entries.last == 0;
    let mut damage = Damage {
        files: of_lasting.hurt_segments
            + of_entries.hurt_segments
            + u64::from(of_lasting.is_mark_lost)
            + u64::from(of_entries.is_mark_lost),
        uncertain_rows: of_lasting.uncertain_rows + of_entries.uncertain_rows,
        is_state_lost: replay.state.is_none() && !is_new,
        ..Damage::default()
    };
    let logs = Logs::new(entries, lasting, bound_bytes);
    let lost: Vec<Lost> = std::mem::take(&mut replay.lost);
    let mut lost: Vec<Lost> = lost
        .into_iter()
        .filter(|lost| lost.rows > 0 && !replay.was_settled(lost, &note, of_entries.is_clean))
        .collect();
    lost.sort_by_key(|lost| lost.log);
    let hurt = hurt_segments(&lost, &[(LogName::Entries, &of_entries), (LogName::Lasting, &of_lasting)], &replay.index);
    let is_hurt = !lost.is_empty() || damage.files > 0 || damage.uncertain_rows > 0 || of_lasting.damaged_frames > 0;
    let mut file = assemble(replay, logs, (entries_disk, lasting_disk), clock);
    (file.bound_bytes, file.quarantine_bound_bytes, file.remember) = (bound_bytes, bound_bytes, remember);
    file.id_clock = IdClock::new(clock_ns(&file, &note, is_new), clock);
    // No sequence is ever used twice, even that of a lost entry.
    file.next_sequence =
        1 + file.state.newest.max(note.newest).max(file.next_sequence - 1) + if is_hurt { LEAP } else { 0 };
    file.count_again();
    damage.rows = file.begin_with(&lost)?;
    file.damage = damage;
    file.leave_hurt(&hurt)?;
    file.is_opened = true;
    Ok(file)
}

/// Returns the segments that are damaged, or that contain something that damage could bring back.
fn hurt_segments(lost: &[Lost], logs: &[(LogName, &Recovered)], index: &Index) -> Vec<(LogName, u64)> {
    let mut hurt: Vec<_> = lost.iter().map(|lost| (lost.log, lost.segment)).collect();
    for (log, recovered) in logs {
        let gaps = recovered.gaps.iter().map(|gap| gap.position.segment);
        hurt.extend(gaps.chain(recovered.hurt.iter().copied()).map(|segment| (*log, segment)));
    }
    if hurt.iter().any(|(log, _)| *log == LogName::Lasting) {
        // A repeated statement that something is superseded may be the only one left: what it speaks of must not come back if the repetition is damaged, too.
        hurt.extend(index.outdated().into_iter().filter(|(log, _)| *log == LogName::Entries));
    }
    hurt.sort_unstable();
    hurt.dedup();
    hurt
}

fn check_version(replay: &Replay, unusable: &dyn Fn(String) -> SpoolError) -> Result<(), SpoolError> {
    match &replay.state {
        Some(state) if state.version > VERSION => Err(unusable(format!(
            "its version is {} and this loadline reads {VERSION}; use the loadline that made it",
            state.version
        ))),
        _ => Ok(()),
    }
}

/// Returns the value from which the ids' clock continues.
fn clock_ns(file: &SpoolFile, note: &Note, is_new: bool) -> i64 {
    let known = file.state.id_clock_ns.max(note.id_clock_ns);
    if known != 0 && !is_new {
        return known;
    }
    let newest = file.ids.newest().map(|newest| i64::from(newest).saturating_mul(1_000_000_000));
    IdClock::first_ns(newest, file.clock.day_ns())
}

fn assemble(
    mut replay: Replay,
    logs: Logs,
    (entries, lasting): (Arc<dyn Disk>, Arc<dyn Disk>),
    clock: &SharedClock,
) -> SpoolFile {
    let holders = holders(&replay);
    let index = std::mem::take(&mut replay.index);
    let is_waiting = |lane: u32, sequence: i64| index.entry(lane, sequence).is_some();
    let greedy = std::mem::take(&mut replay.greedy).into_iter();
    let greedy = greedy.filter(|(sequence, (_, lane))| is_waiting(*lane, *sequence));
    let greedy = GreedySources::of(greedy.map(|(sequence, (source, lane))| (source, lane, sequence)));
    let state = replay.state.unwrap_or_else(|| State::new(random_name()));
    let now = clock.now();
    SpoolFile {
        logs: Some(logs),
        shelf: Arc::new(Shelf::new(index, segments::Reader::new(entries), segments::Reader::new(lasting))),
        path: Default::default(),
        counts: Counts::default(),
        bound_bytes: 0,
        quarantine_bound_bytes: 0,
        holders,
        remember: Duration::ZERO,
        ids: replay.ids,
        ids_of: replay.ids_of,
        id_clock: IdClock::new(0, clock),
        clock: SharedClock::clone(clock),
        next_sequence: replay.newest + 1,
        next_refusal: 1 + replay.newest_quarantined.max(state.newest_quarantined),
        state,
        greedy: Some(greedy),
        damage: Damage::default(),
        sizes: HashMap::new(),
        looked: now,
        scrub: Scrub::new(now),
        marked: now,
        wants_mark: false,
        is_opened: false,
        compresses: false,
        #[cfg(test)]
        looks_between_logs: None,
        lock: None,
    }
}

fn holders(replay: &Replay) -> Holders {
    let mut holders = Holders::default();
    for (id, refusal) in replay.index.refusals(0) {
        if let Some((holder, reason)) = replay.holders.get(&id) {
            let (rows, bytes) = (refusal.rows.into(), refusal.bytes.into());
            holders.change(holder, &Change { rows, bytes, deferred_bytes: 0, reason: reason.clone() });
        }
    }
    for (sequence, entry) in replay.index.between(DEFERRED_LANE, i64::MIN, i64::MAX) {
        if let Some(holder) = replay.deferred.get(&sequence) {
            holders.change(holder, &Change { deferred_bytes: entry.bytes.into(), ..Change::default() });
        }
    }
    holders
}

impl SpoolFile {
    /// Opens the spool in a directory, which is created if it does not exist. Damage is counted, and everything readable is kept. The
    /// quarantine may be as large as the waiting entries until another bound is set.
    ///
    /// # Errors
    /// [`SpoolError::Unusable`] with the reason.
    pub fn open(directory: &Path, bound_bytes: u64, remember: Duration) -> Result<Self, SpoolError> {
        open(directory, bound_bytes, remember)
    }

    /// Begins another opening for the ledger and puts lost rows into quarantine: both, or neither if the disk is full. Returns the lost rows; those put there before stay.
    fn begin_with(&mut self, lost: &[Lost]) -> Result<u64, SpoolError> {
        let (settled, unsaid) = {
            let mut index = self.shelf.index();
            (index.settled().clone(), index.unsaid())
        };
        let mut group = self.begin()?;
        group.moved = unsaid;
        let state = group.state_to_change();
        state.settled = settled;
        state.begin(random_name);
        group.forget_messages()?;
        let mut all = 0;
        // No more can be lost than is missing. The number missing from the entries' log is known exactly, so it comes first, whatever was reported in excess before.
        let mut missing = group.counts().committed;
        for lost in lost {
            // The same damage gets the same numbers, so that it is put there once. Damage without a place gets a different number each time.
            let (kind, place) = match (lost.segment, lost.log) {
                (0, _) => (-3, group.next_refusal()),
                (_, LogName::Entries) => (-1, i64::try_from(lost.first).unwrap_or(i64::MAX / 4)),
                (_, LogName::Lasting) => (-2, i64::try_from(lost.first).unwrap_or(i64::MAX / 4)),
            };
            let rows_told = i64::try_from(lost.rows).unwrap_or(i64::MAX).min(1 << 28) << 32;
            let told = -2 - rows_told - i64::from(lost.segment as u32);
            let (entry, row) = (i64::MIN / 2 + 4 * place.min(i64::MAX / 16) + kind, told);
            let is_exact = lost.log == LogName::Entries && lost.segment > 0;
            let rows = if is_exact { lost.rows } else { lost.rows.min(missing) };
            if rows == 0 || group.is_refused(entry, row) {
                continue;
            }
            group.count_also(rows.saturating_sub(missing));
            (all, missing) = (all + rows, missing.saturating_sub(rows));
            let guessed = offer_of_left(lost, group.day_ns());
            let reason = match (lost.lane, lost.log) {
                (Some(_), _) => DAMAGED.to_owned(),
                (None, log) => gone(rows, log == LogName::Entries),
            };
            let offer =
                Offer { lane: 0, message_id: String::new(), rows: u32::try_from(rows).unwrap_or(u32::MAX), ..guessed };
            group.put_damage(entry, row, &reason, offer);
        }
        group.commit()?;
        self.mark()?;
        Ok(all)
    }

    /// Moves what is still needed out of damaged segments, so that their damage is reported once.
    fn leave_hurt(&mut self, segments: &[(LogName, u64)]) -> Result<(), SpoolError> {
        for (log, segment) in segments.iter().filter(|(_, segment)| *segment > 0) {
            let left = match log {
                // Damage reported at the beginning of a segment may have been the end of the one before.
                LogName::Entries => {
                    let before = self.segments(*log)?.into_iter().rfind(|before| before < segment);
                    before.map_or(Ok(true), |before| self.leave(before)).and_then(|_| self.leave(*segment)).map(drop)
                }
                LogName::Lasting => self.leave_lasting_through(*segment),
            };
            match left {
                // If the disk is full, the damage is reported again at the next opening.
                Ok(()) | Err(SpoolError::Full(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Returns an offer made from the remains of lost rows. It is a guess, and is marked as damaged.
fn offer_of_left(lost: &Lost, now_ns: i64) -> Offer {
    let kind = if lost.log == LogName::Entries { ENTRY } else { FACTS };
    let found = facts_of(kind, &lost.left).into_iter().find_map(|(fact, ..)| match fact {
        Fact::Entry(stored) => Some(stored.entry.offer),
        Fact::Quarantined(refusal) => Some(refusal.offer),
        _ => None,
    });
    // Where nothing can be read, the bytes are shown as they are.
    let found = found.map(|offer| offer.unpacked().unwrap_or_else(|packed| Offer { is_packed: false, ..packed }));
    found.unwrap_or_else(|| Offer {
        lane: 0,
        source: "".into(),
        sender: "".into(),
        message_id: String::new(),
        received_ns: now_ns,
        precision: Default::default(),
        rows: 0,
        body: lost.left.clone(),
        is_packed: false,
    })
}
