//! A spool in a world that fails, compared with what was really given to it. Main function: [`run`].
//!
//! The world includes a database's ledger: what is committed there stays committed whatever the spool knows. Everything follows from a seed.

mod inventory;
mod onlooker;
mod opened;
mod truth;

use std::sync::Arc;
use std::time::Duration;

use loadline_segments::segments::simulated::{Cut, Faults, MemoryDisk, Told};

use super::group::Group;
use super::refusal::Refusal;
use super::{
    APART_LANES, Apart, ApartPart, Clearing, Deferred, Entry, LaneNews, Offer, Span, SpoolError, SpoolFile, Stored,
};
use crate::random::Stream;
pub use inventory::{Inventory, inventory};
use onlooker::Onlooker;
use truth::{Fate, Truth, lines_of};

/// The number of steps in a run.
const STEPS: u64 = 60;
/// The room of each disk when it is not full, in bytes.
const ROOM: u64 = 8 << 20;
/// The spool's bound in bytes, so small that its segments have 64 KiB.
const BOUND: u64 = 256 << 10;
const LANES: u32 = 2;

struct World {
    random: Stream,
    /// The disk of the entries' log, and that of the lasting log.
    disks: [MemoryDisk; 2],
    file: Option<SpoolFile>,
    truth: Truth,
    faults: Faults,
    history: Vec<String>,
    /// A message that may or may not have been stored.
    unanswered: Option<Offer>,
    is_full: bool,
    /// Whether damage was reported while the disk was full, so that nothing could be moved away from it: it is then reported again.
    tells_again: bool,
}

/// Runs one life of a spool from a seed, and returns what was done to it.
///
/// # Errors
/// Returns an error if the spool has or reports something false.
pub fn run(seed: u64) -> Result<Faults, Told> {
    let mut world = World {
        random: Stream::seeded(seed),
        disks: [MemoryDisk::new(ROOM), MemoryDisk::new(ROOM)],
        file: None,
        truth: Truth::default(),
        faults: Faults::default(),
        history: Vec::new(),
        unanswered: None,
        is_full: false,
        tells_again: false,
    };
    let outcome = world.live();
    outcome.map(|()| world.faults).map_err(|why| format!("spool, seed {seed}: {why}\n{}", world.history.join("\n")))
}

impl World {
    fn live(&mut self) -> Result<(), Told> {
        self.open(false)?;
        for _ in 0..STEPS {
            self.step()?;
        }
        self.file = None;
        self.open(false)
    }

    fn step(&mut self) -> Result<(), Told> {
        match self.random.below(100) {
            0..40 => self.take_in(),
            40..62 => self.write(),
            62..68 => self.operate(),
            68..72 => self.change("tidy", |file| file.tidy()),
            72..75 => self.change("mark", |file| file.mark()),
            75..78 => {
                self.note("end in order");
                self.file = None;
                self.works_again();
                self.open(false)
            }
            78..82 => {
                self.note("kill");
                self.faults.kills += 1;
                self.kill();
                self.open(false)
            }
            82..88 => self.cut_power(),
            88..92 => {
                let (disk, after) = (self.random.below(2) as usize, self.random.below(14));
                self.note(format!("disk {disk} fails after {after}"));
                self.faults.failures += 1;
                self.disks[disk].fail_after(after);
                Ok(())
            }
            92..95 => {
                let room = [0, ROOM][self.random.below(2) as usize];
                self.note(format!("room for {room}"));
                self.faults.full += u64::from(room == 0);
                self.disks.iter().for_each(|disk| disk.set_room(room));
                self.is_full = room == 0;
                Ok(())
            }
            _ => self.damage(),
        }
    }

    fn happens(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn note(&mut self, what: impl Into<String>) {
        self.history.push(what.into());
    }

    /// Ends the process without noting anything.
    fn kill(&mut self) {
        if let Some(file) = self.file.take() {
            file.abandon();
        }
        self.works_again();
    }

    fn works_again(&mut self) {
        self.disks.iter().for_each(|disk| disk.fail_after(u64::MAX));
    }

    fn offer(&mut self) -> Offer {
        let (lane, rows) = (self.random.below(LANES.into()) as u32, 1 + self.random.below(5));
        let padding = "x".repeat(if self.happens(5) { 20_000 } else { self.random.below(300) as usize });
        let body: String = (0..rows).map(|_| format!("{} {padding}\n", self.truth.next_row())).collect();
        let message_id = if self.happens(50) { format!("tokens\n{}", self.truth.rows()) } else { String::new() };
        Offer { lane, message_id, ..Offer::plain(&format!("s{lane}"), rows as u32, body.as_bytes()) }
    }

    fn take_in(&mut self) -> Result<(), Told> {
        let mut offers: Vec<Offer> = (0..1 + self.random.below(5)).map(|_| self.offer()).collect();
        let again = self.unanswered.take();
        let replays = self.happens(15);
        let onlooker = self.watched();
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut group = begin(file)?;
        let mut stored = Vec::new();
        if let Some(again) = &again {
            match group.append(&as_stored(again)) {
                Ok(Stored::Duplicate) => self.truth.must_be_there(again)?,
                Ok(Stored::New(_)) => {
                    self.truth.must_not_be_there(again)?;
                    self.truth.offered(again);
                    stored.push(again.clone());
                }
                Err(_) => {}
            }
        }
        for offer in offers.drain(..) {
            if let Ok(Stored::New(_)) = group.append(&as_stored(&offer)) {
                self.truth.offered(&offer);
                stored.push(offer);
            }
        }
        // In the order in which the spool's thread makes its groups: requests first, then what others asked for, then what comes back.
        let others = if replays { group.clear(Clearing::Replay, Span::ALL, (LANES, 0)).map(drop) } else { Ok(()) };
        let outcome = others.and_then(|()| group.bring_back(LANES)).and_then(|()| group.commit());
        self.faults.frames += stored.len() as u64;
        match outcome {
            Ok(()) => stored.iter().for_each(|offer| self.truth.set(offer, Fate::Acknowledged)),
            Err(SpoolError::Full(_)) => stored.iter().for_each(|offer| self.truth.set(offer, Fate::Refused)),
            Err(_) => self.unanswered = stored.into_iter().rev().find(|offer| !offer.message_id.is_empty()),
        }
        self.note_seen(onlooker)?;
        self.after("take in", outcome)
    }

    /// Starts a writer that looks at the spool in the middle of every change from here on.
    fn watched(&mut self) -> Option<Onlooker> {
        let reader = self.file.as_ref()?.reader();
        let onlooker = Onlooker::new(self.random.below(u64::MAX), reader, LANES, self.truth.ledgers());
        for disk in &self.disks {
            let looking = onlooker.clone();
            disk.after_sync(Some(Arc::new(move || looking.look())));
        }
        Some(onlooker)
    }

    /// Counts as committed what the writer that looked on has committed.
    fn note_seen(&mut self, onlooker: Option<Onlooker>) -> Result<(), Told> {
        self.disks.iter().for_each(|disk| disk.after_sync(None));
        let seen = onlooker.map_or(Ok(Vec::new()), |onlooker| onlooker.seen());
        for seen in seen.map_err(|error| error.to_string())? {
            let sequences: Vec<i64> = seen.entries.iter().map(|entry| entry.sequence).collect();
            self.note(format!("meanwhile {sequences:?} of lane {} are written", seen.lane));
            self.faults.seen += 1;
            self.truth.commit(seen.lane, &seen.entries, &seen.quarantined)?;
        }
        Ok(())
    }

    /// A writer commits what it finds, or has some of it put into quarantine, deferred or set apart.
    fn write(&mut self) -> Result<(), Told> {
        let lanes: Vec<u32> = (0..LANES).chain(APART_LANES.take(2)).collect();
        let lane = lanes[self.random.below(lanes.len() as u64) as usize];
        let most = 1 + self.random.below(12);
        let Some(file) = &mut self.file else { return Ok(()) };
        let done = self.truth.ledger(lane);
        let found = file.reader().read(lane, (done, i64::MAX), 100_000, most).map_err(|error| error.to_string())?;
        let (mut entries, mut damaged): (Vec<Arc<Entry>>, Vec<_>) = (Vec::new(), Vec::new());
        for found in found {
            match found {
                Ok(entry) => entries.push(Arc::new(entry)),
                Err(one) => damaged.push(one),
            }
        }
        let (Some(first), Some(last)) = (entries.first().cloned(), entries.last().cloned()) else { return Ok(()) };
        if !damaged.is_empty() {
            return Err(format!("an entry of lane {lane} is damaged that nobody damaged"));
        }
        match self.random.below(10) {
            0..2 => self.refuse(&first),
            2 => self.defer(&first),
            3 => self.set_apart(&first),
            _ => {
                let quarantined = file.reader().quarantined(first.sequence, last.sequence).unwrap_or_default();
                self.truth.commit(lane, &entries, &quarantined)?;
                let outcome = self.group(|group| group.settle(lane, last.sequence));
                self.after(&format!("settle {lane} {}", last.sequence), outcome)
            }
        }
    }

    fn refuse(&mut self, entry: &Arc<Entry>) -> Result<(), Told> {
        let row = self.random.below(entry.offer.rows.into()) as usize;
        let line = lines_of(&entry.offer.body).nth(row).unwrap_or_default();
        let refusal = Refusal { row: row as i64, rows: 1, body: line.to_vec(), reason: "no".to_owned() };
        let outcome = self.group(|group| group.quarantine(entry, &refusal, 1));
        self.after(&format!("quarantine {} {row}", entry.sequence), outcome)
    }

    /// Splits the records of an entry: returns the numbers of those that are taken, their lines, and the other lines.
    fn split(&mut self, entry: &Entry) -> (Vec<i64>, Vec<u8>, Vec<u8>) {
        let (mut rows, mut taken, mut rest) = (Vec::new(), Vec::new(), Vec::new());
        let is_all = self.happens(30);
        for (number, line) in lines_of(&entry.offer.body).enumerate() {
            if is_all || number == 0 || self.happens(40) {
                rows.push(number as i64);
                taken.extend_from_slice(line);
            } else {
                rest.extend_from_slice(line);
            }
        }
        (rows, taken, rest)
    }

    fn has_refused(&self, entry: &Entry) -> bool {
        let found = self.file.as_ref().map(|file| file.reader().quarantined(entry.sequence, entry.sequence));
        found.is_some_and(|found| found.is_ok_and(|found| !found.is_empty()))
    }

    fn defer(&mut self, entry: &Arc<Entry>) -> Result<(), Told> {
        // Writers defer records that are newly refused, and a record in quarantine is not found again.
        if self.has_refused(entry) {
            return Ok(());
        }
        let (rows, body, rest) = self.split(entry);
        let deferred = Deferred { entry: Arc::clone(entry), rows, body, rest };
        let outcome = self.group(|group| group.defer(&deferred));
        self.after(&format!("defer of {}", entry.sequence), outcome)
    }

    fn set_apart(&mut self, entry: &Arc<Entry>) -> Result<(), Told> {
        if self.has_refused(entry) || APART_LANES.contains(&entry.offer.lane) {
            return Ok(());
        }
        let (rows, body, rest) = self.split(entry);
        let parts = vec![ApartPart { measurement: format!("m{}", self.random.below(2)), rows, body }];
        let apart = Apart { entry: Arc::clone(entry), is_spooled: true, parts, rest };
        let outcome = self.group(|group| group.set_apart(&apart));
        self.after(&format!("set apart of {}", entry.sequence), outcome)
    }

    fn operate(&mut self) -> Result<(), Told> {
        match self.random.below(5) {
            0 => {
                let outcome = self.group(|group| group.bring_back(LANES));
                self.after("bring back", outcome)
            }
            1 => {
                let outcome = self.group(|group| group.note(0, &LaneNews::Superseded).map(drop));
                self.after("superseded", outcome)
            }
            2 => {
                let lane = APART_LANES.start;
                let outcome = self.group(|group| group.rejoin(lane));
                self.after("rejoin", outcome)
            }
            3 => self.change("replay", |file| file.clear(Clearing::Replay).map(drop)),
            _ => {
                let quarantined: Vec<u64> = self.quarantined().into_iter().map(|(row, _)| row).collect();
                self.truth.may_be_discarded(&quarantined);
                let outcome = self.file.as_mut().map_or(Ok(0), |file| file.clear(Clearing::Discard));
                self.after("discard", outcome.map(drop))
            }
        }
    }

    /// Returns the records in quarantine, each with its entry.
    fn quarantined(&self) -> Vec<(u64, i64)> {
        let Some(file) = &self.file else { return Vec::new() };
        let ids: Vec<(i64, i64)> = {
            let index = file.shelf.index();
            let own = index.refusals(0).filter(|(_, refusal)| !refusal.is_damage);
            own.map(|(id, refusal)| (id, refusal.entry)).collect()
        };
        let read = |(id, entry): (i64, i64)| Some((file.read_refusal(id).ok()??, entry));
        let found = ids.into_iter().filter_map(read);
        found
            .flat_map(|(stored, entry)| truth::rows_of(&stored.offer.body).into_iter().map(move |row| (row, entry)))
            .collect()
    }

    fn group(&mut self, change: impl FnOnce(&mut Group<'_>) -> Result<(), SpoolError>) -> Result<(), SpoolError> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let mut group = file.begin()?;
        change(&mut group)?;
        group.commit()
    }

    fn change(
        &mut self,
        what: &str,
        change: impl FnOnce(&mut SpoolFile) -> Result<(), SpoolError>,
    ) -> Result<(), Told> {
        let onlooker = self.watched();
        let outcome = self.file.as_mut().map_or(Ok(()), change);
        self.note_seen(onlooker)?;
        self.after(what, outcome)
    }

    /// Checks the outcome of a step: a broken spool is opened again, and the counters must match the contents.
    fn after(&mut self, what: &str, outcome: Result<(), SpoolError>) -> Result<(), Told> {
        self.note(format!("{what}: {outcome:?}"));
        match outcome {
            Ok(()) | Err(SpoolError::Full(_)) => self.check_counts(),
            Err(_) if self.happens(50) => self.cut_power(),
            Err(_) => {
                self.kill();
                self.open(false)
            }
        }
    }

    fn check_counts(&mut self) -> Result<(), Told> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let counted = file.counts();
        file.count_again();
        match file.counts() {
            counts if counts == counted => Ok(()),
            counts => Err(format!("it counts {counted:?} where there are {counts:?}")),
        }
    }

    fn cut_power(&mut self) -> Result<(), Told> {
        self.faults.cuts += 1;
        self.kill();
        let cut = Cut {
            sectors: [0, 50, 90, 100][self.random.below(4) as usize],
            names: [0, 50, 100][self.random.below(3) as usize],
        };
        self.note(format!("{cut:?}"));
        for disk in &self.disks {
            disk.cut(&mut self.random, cut);
        }
        self.open(false)
    }

    /// Damages one place of a disk while nobody works on it and everything is known to be on it.
    fn damage(&mut self) -> Result<(), Told> {
        // The damage may hit ids.
        self.unanswered = None;
        if self.happens(50) {
            self.change("mark", |file| file.mark())?;
            self.kill();
        } else {
            self.file = None;
            self.works_again();
        }
        // What is there now can be missed later; what a failing disk's end has left cannot.
        self.open(false)?;
        self.file = None;
        self.faults.damages += 1;
        let disk = self.disks[self.random.below(2) as usize].clone();
        let names: Vec<String> = loadline_segments::segments::Disk::names(&disk).unwrap_or_default();
        let Some(name) = names.get(self.random.below(names.len() as u64) as usize).cloned() else {
            return self.open(false);
        };
        let bytes = disk.bytes_of(&name);
        let used = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        let from = self.random.below(bytes.len().min(used + 1).max(1) as u64) as usize;
        let kind =
            if bytes.is_empty() { 3 } else { self.random.below(if name.starts_with("segment") { 4 } else { 2 }) };
        let bit = 1 << self.random.below(8);
        self.note(format!("damage {kind} in {name} at {from}"));
        match kind {
            0 => disk.damage(&name, |bytes| bytes[from] ^= bit),
            1 => disk.damage(&name, |bytes| {
                let to = (from + 700).min(bytes.len());
                bytes[from..to].fill(bit);
            }),
            2 => disk.damage(&name, |bytes| bytes.truncate(from)),
            _ => disk.lose(&name),
        }
        self.open(true)
    }

    /// Opens the spool, and compares its contents with the truth.
    fn open(&mut self, is_damaged: bool) -> Result<(), Told> {
        let disks = self.disks.each_ref().map(|disk| Arc::new(disk.clone()) as _);
        let clock = crate::recorder::clock::machine();
        let mut file = loop {
            let [entries, lasting] = disks.clone();
            match SpoolFile::open_on(entries, lasting, BOUND, Duration::from_secs(3_600), &clock) {
                Ok(file) => break file.with_compression(self.random.below(2) == 1),
                Err(error) => {
                    self.note(format!("not opened: {error}"));
                    self.works_again();
                    self.disks.iter().for_each(|disk| disk.set_room(ROOM));
                    self.is_full = false;
                }
            }
        };
        if let Err(error) = file.set_lanes(LANES) {
            self.note(format!("lanes: {error}"));
        }
        let damage = file.damage().clone();
        let is_told = is_damaged || self.tells_again;
        self.tells_again = is_told && self.is_full;
        self.file = Some(file);
        // The writers learn from the ledger what they had committed.
        for (lane, through) in self.truth.ledgers() {
            let outcome = self.group(|group| group.settle(lane, through));
            if let Err(error) = outcome {
                self.note(format!("settle: {error}"));
            }
        }
        let quarantined = self.quarantined();
        let Some(file) = &self.file else { return Ok(()) };
        let mut waiting = Vec::new();
        for lane in (0..LANES).chain(APART_LANES).chain([super::entry::DEFERRED_LANE]) {
            for found in file
                .reader()
                .read(lane, (i64::MIN, i64::MAX), usize::MAX, u64::MAX)
                .map_err(|error| error.to_string())?
            {
                let entry = found.map_err(|_| format!("an entry of lane {lane} is damaged that nobody damaged"))?;
                waiting.push(entry);
            }
        }
        self.faults.damaged += self.truth.compare(&waiting, &quarantined, &damage, is_told)?;
        self.check_counts()
    }
}

fn begin(file: &mut SpoolFile) -> Result<Group<'_>, Told> {
    file.begin().map_err(|error| error.to_string())
}

/// Compresses some offers, always the same ones.
fn as_stored(offer: &Offer) -> Offer {
    if offer.rows.is_multiple_of(2) { offer.clone().packed() } else { offer.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spool_keeps_what_it_acknowledged_whatever_befalls_it() {
        let mut all = Faults::default();
        for seed in 0..400 {
            all.add(&run(seed).unwrap_or_else(|told| panic!("{told}")));
        }
        // A simulation in which little happens proves nothing.
        assert!(all.cuts > 800 && all.kills > 600 && all.failures > 600 && all.damages > 600, "{all:?}");
        assert!(all.full > 200 && all.damaged > 50 && all.frames > 20_000 && all.seen > 1_000, "{all:?}");
    }
}
