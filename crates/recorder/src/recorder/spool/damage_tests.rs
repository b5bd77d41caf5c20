//! Tests of damage: whatever part of a spool is cut, flipped or gone, acknowledged records are there unchanged or counted as damaged.

use super::tests::{Directory, append, assert_conserved, assert_counted, offer, waiting};
use super::*;
use crate::recorder::spool::{Clearing, Entry, LaneNews, Offer, Refusal, list};

/// Returns the files of a spool's log, except marks and reserves.
fn segments(directory: &Directory, log: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(directory.0.join(log)).unwrap().map(|file| file.unwrap().path());
    let mut segments: Vec<_> = files.filter(|path| path.to_string_lossy().contains("segment-")).collect();
    segments.sort();
    segments
}

/// Returns a copy as a kill of the process leaves it.
fn copy(from: &Directory) -> Directory {
    let to = Directory::new();
    for log in ["entries", "lasting"] {
        std::fs::create_dir_all(to.0.join(log)).unwrap();
        for file in std::fs::read_dir(from.0.join(log)).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), to.0.join(log).join(file.file_name())).unwrap();
        }
    }
    to
}

fn flip(path: &Path, at: usize) {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

/// Returns the offset of a text in a file.
fn find(path: &Path, text: &str) -> usize {
    let bytes = std::fs::read(path).unwrap();
    bytes.windows(text.len()).position(|window| window == text.as_bytes()).unwrap()
}

#[test]
fn an_entry_that_is_damaged_while_it_waits_gives_a_refusal_and_those_beside_it_are_read() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1), offer(2), offer(3)]);
    let segment = segments(&directory, "entries").remove(0);
    flip(&segment, find(&segment, "m f=2\n"));
    let found = file.reader().read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap();
    assert!(found[0].is_ok() && found[2].is_ok());
    let (entry, refusal) = found[1].as_ref().unwrap_err();
    assert_eq!((entry.sequence, refusal.row, refusal.rows, &*entry.offer.source), (2, -1, 2, "tests"));
    // Damage is noticed before the writer comes to it, and reported once.
    append(&mut file, &[Offer { lane: 7, ..offer(4) }]);
    flip(&segment, find(&segment, "m f=4\n"));
    let mut look = || file.scrub.look_at_some(&file.shelf);
    assert_eq!((look(), look()), (vec![2, 4], vec![]));
}

/// For a killed spool with flipped bytes in its entries, or with the file cut there: damage is counted, everything else is there, and the spool goes on.
#[test]
fn damage_of_a_byte_costs_what_it_hits_and_is_counted() {
    let origin = Directory::new();
    let mut file = origin.open();
    let all = [offer(1), offer(2), offer(3), offer(4)];
    for one in &all {
        append(&mut file, std::slice::from_ref(one));
    }
    file.mark().unwrap();
    let segment = segments(&origin, "entries").remove(0);
    let end = find(&segment, "m f=4\n") + 2 * "m f=4\n".len();
    for at in (72..end).step_by(5).chain(72..80) {
        for is_cut in [false, true] {
            let damaged = copy(&origin);
            let own = damaged.0.join("entries").join(segment.file_name().unwrap());
            if is_cut {
                std::fs::File::options().write(true).open(&own).unwrap().set_len(at as u64).unwrap();
            } else {
                flip(&own, at);
            }
            let mut file = damaged.open();
            let found: Vec<_> = waiting(&file).into_iter().map(|entry| entry.offer).collect();
            let is_there = |offer: &&Offer| found.contains(offer);
            let gone = all.iter().filter(|offer| !is_there(offer)).count() as u64;
            assert_eq!(found.len() as u64 + gone, 4, "{at}: nothing is there that was not stored");
            let (counts, damage) = (file.counts(), file.damage().clone());
            assert_eq!(
                (damage.rows, counts.quarantined, counts.acknowledged),
                (2 * gone, 2 * gone, 8),
                "{at} {is_cut} {damage:?}"
            );
            assert!(is_cut || gone <= 1, "{at}: one bit costs one entry");
            assert_counted(&mut file);
            append(&mut file, &[offer(5)]);
            drop(file);
            // The damage is reported once.
            let mut file = damaged.open();
            assert_eq!((file.damage().rows, file.counts().quarantined), (0, 2 * gone), "{at} {is_cut}");
            assert_eq!(file.counts().acknowledged, 10);
            assert_eq!(file.clear(Clearing::Replay).unwrap(), 0, "damage is never given back");
            assert_eq!(file.clear(Clearing::Discard).unwrap(), 2 * gone);
            assert_counted(&mut file);
        }
    }
}

#[test]
fn what_was_settled_before_it_was_damaged_is_no_damage() {
    let origin = Directory::new();
    let mut file = origin.open();
    append(&mut file, &[offer(1), offer(2), offer(3), offer(4)]);
    let mut group = file.begin().unwrap();
    group.settle(0, 2).unwrap();
    group.commit().unwrap();
    file.mark().unwrap();
    let segment = segments(&origin, "entries").remove(0);
    for (number, is_damage) in [(1, false), (2, false), (3, true)] {
        let damaged = copy(&origin);
        let own = damaged.0.join("entries").join(segment.file_name().unwrap());
        flip(&own, find(&own, &format!("m f={number}\n")));
        let mut file = damaged.open();
        assert_eq!((file.damage().rows, file.counts().quarantined), if is_damage { (2, 2) } else { (0, 0) });
        assert_eq!(waiting(&file).len(), if is_damage { 1 } else { 2 });
        assert_counted(&mut file);
    }
}

#[test]
fn a_bit_of_what_is_kept_costs_one_record_and_never_what_the_ledger_knows_it_by() {
    let origin = Directory::new();
    let mut file = origin.open();
    append(&mut file, &[offer(1), offer(2)]);
    let opening = file.lane_opening(0).unwrap();
    let entries = waiting(&file);
    let mut group = file.begin().unwrap();
    for (number, entry) in entries.iter().enumerate() {
        let refusal =
            Refusal { row: 0, rows: 1, body: format!("bad f={number}\n").into_bytes(), reason: "no".to_owned() };
        group.quarantine(entry, &refusal, 9).unwrap();
    }
    group.settle(0, 2).unwrap();
    group.commit().unwrap();
    file.mark().unwrap();
    let segment = segments(&origin, "lasting").remove(0);
    let end = find(&segment, "bad f=1\n") + "bad f=1\n".len();
    for at in (72..end).step_by(5).chain(end - 200..end) {
        let damaged = copy(&origin);
        flip(&damaged.0.join("lasting").join(segment.file_name().unwrap()), at);
        let mut file = damaged.open();
        assert!(!file.damage().is_state_lost && file.damage().rows <= 1, "{at}: {:?}", file.damage());
        let now = file.lane_opening(0).unwrap();
        assert_eq!((now.recorder, &now.openings[0]), (opening.recorder.clone(), &opening.openings[0]), "{at}");
        let (counts, listed) = (file.counts(), list(&damaged.0, 10).unwrap());
        assert_eq!((counts.quarantined, listed.len(), counts.acknowledged), (2, 2, 4), "{at}");
        assert_eq!(listed.iter().filter(|one| one.reason == "no").count() as u64, 2 - file.damage().rows);
        assert_counted(&mut file);
    }
}

/// A spool with 64 KiB segments that is changed at random.
struct Worked {
    file: SpoolFile,
    directory: Directory,
    random: crate::random::Stream,
    /// How far each lane is settled.
    done: [i64; 2],
    number: u32,
}

impl Worked {
    fn new(seed: u64) -> Self {
        let directory = Directory::new();
        let mut file = open_small(&directory);
        file.set_lanes(2).unwrap();
        Worked { file, directory, random: crate::random::Stream::new(seed, 1, 0), done: [0; 2], number: 0 }
    }

    fn take_in(&mut self) {
        let mut group = self.file.begin().unwrap();
        for _ in 0..self.random.below(6) {
            self.number += 1;
            let (number, lane) = (self.number, self.random.below(2) as u32);
            let body = format!("m f={number}\n").repeat(1 + self.random.below(40) as usize);
            let rows = body.lines().count() as u32;
            let message_id = if self.random.below(2) == 0 { format!("access a\n{number}") } else { String::new() };
            let one = Offer { lane, message_id, ..Offer::plain(&format!("s{lane}"), rows, body.as_bytes()) };
            drop(group.append(&one));
        }
        group.commit().unwrap();
    }

    fn write(&mut self, lane: u32) {
        let found = self.file.reader().read(lane, (self.done[lane as usize], i64::MAX), 3_000, 50).unwrap();
        let found: Vec<Entry> = found.into_iter().map(Result::unwrap).collect();
        // One of the lanes is slow.
        let (Some(first), Some(last)) = (found.first(), found.last()) else { return };
        if lane == 1 && self.random.below(4) > 0 {
            return;
        }
        let mut group = self.file.begin().unwrap();
        if self.random.below(3) == 0 {
            let body = first.offer.body.split_inclusive(|byte| *byte == b'\n').next().unwrap().to_vec();
            group.quarantine(first, &Refusal { row: 0, rows: 1, body, reason: "no".to_owned() }, 1).unwrap();
        }
        group.settle(lane, last.sequence).unwrap();
        group.commit().unwrap();
        self.done[lane as usize] = last.sequence;
    }

    fn operate(&mut self) {
        if self.random.below(40) == 0 {
            let what = if self.random.below(2) == 0 { Clearing::Replay } else { Clearing::Discard };
            drop(self.file.clear(what));
        }
        if self.random.below(30) == 0 {
            let mut group = self.file.begin().unwrap();
            group.note(0, &LaneNews::Superseded).unwrap();
            group.commit().unwrap();
        }
        self.file.tidy().unwrap();
        assert_conserved(self.file.counts());
    }

    /// Asserts that a kill leaves exactly what is there.
    fn assert_same_when_killed(&mut self) {
        assert_counted(&mut self.file);
        self.file.mark().unwrap();
        let copied = copy(&self.directory);
        let mut again = open_small(&copied);
        assert!(again.damage().is_none(), "{:?}", again.damage());
        assert_eq!(again.counts(), self.file.counts());
        let all = |file: &SpoolFile| -> Vec<Entry> {
            let of = |lane| file.reader().read(lane, (0, i64::MAX), usize::MAX, u64::MAX).unwrap();
            (0..2).flat_map(of).map(Result::unwrap).collect()
        };
        assert_eq!(all(&again), all(&self.file));
        let message_id = format!("access a\n{}", self.number);
        let newest = Offer { message_id, ..Offer::plain("s0", 1, b"m f=1\n") };
        let is_known = |file: &mut SpoolFile| matches!(file.begin().unwrap().append(&newest), Ok(Stored::Duplicate));
        assert_eq!(is_known(&mut again), is_known(&mut self.file));
    }

    fn assert_room_is_given_back(&self) {
        let files = ["entries", "lasting"].iter().flat_map(|log| segments(&self.directory, log));
        let bytes: u64 = files.map(|path| path.metadata().unwrap().len()).sum();
        let counts = self.file.counts();
        let held = counts.spooled_bytes + counts.quarantined_bytes + 64 * self.file.ids.len();
        assert!(bytes < 2 * held + 16 * (64 << 10), "{bytes} bytes of files for {held}");
    }
}

fn open_small(directory: &Directory) -> SpoolFile {
    SpoolFile::open(&directory.0, 1 << 20, Duration::from_secs(3_600)).unwrap()
}

#[test]
fn whatever_is_done_a_spool_that_is_opened_again_is_the_same() {
    for seed in 0..6 {
        let mut worked = Worked::new(seed);
        for round in 0..400 {
            worked.take_in();
            worked.write(0);
            worked.write(1);
            worked.operate();
            if round % 40 == 39 {
                worked.assert_same_when_killed();
            }
        }
        let waiting: Vec<i64> = waiting(&worked.file).iter().map(|entry| entry.sequence).collect();
        assert!(waiting.iter().all(|sequence| *sequence > worked.done[0]));
        worked.assert_room_is_given_back();
    }
}

#[test]
fn what_waits_for_ever_holds_no_room_of_what_passes_by() {
    let directory = Directory::new();
    let mut file = open_small(&directory);
    append(&mut file, &[Offer { lane: 1, ..offer(1) }]);
    for number in 0..620 {
        let long = "x".repeat(60_000);
        let one = Offer::plain("s", 1, format!("m f={number},t=\"{long}\"\n").as_bytes());
        let mut group = file.begin().unwrap();
        let Stored::New(sequence) = group.append(&one).unwrap() else { panic!("it is new") };
        group.settle(0, sequence).unwrap();
        group.commit().unwrap();
        file.tidy().unwrap();
    }
    let left = segments(&directory, "entries").len();
    assert!(left < 10, "{left} segments are left of 620");
    let waiting = file.reader().read(1, (0, i64::MAX), usize::MAX, u64::MAX).unwrap();
    assert_eq!(waiting[0].as_ref().unwrap().offer, Offer { lane: 1, ..offer(1) });
    assert_counted(&mut file);
}

#[test]
fn a_directory_that_is_moved_or_removed_ends_the_spool() {
    for is_moved in [true, false] {
        let directory = Directory::new();
        let place = directory.0.join("spool");
        let mut file = SpoolFile::open(&place, 1 << 20, Duration::ZERO).unwrap();
        append(&mut file, &[offer(1)]);
        if is_moved {
            std::fs::rename(&place, directory.0.join("elsewhere")).unwrap();
        } else {
            std::fs::remove_dir_all(&place).unwrap();
        }
        file.looked = Instant::now().checked_sub(LOOK_AFTER).unwrap();
        let mut group = file.begin().unwrap();
        group.append(&offer(2)).unwrap();
        let error = group.commit().unwrap_err();
        assert!(matches!(&error, SpoolError::Broken(reason) if reason.contains("moved, removed")), "{error}");
    }
}

/// A segment that was cut ends where the next one will begin: a later loss of the next one is another damage, even if it has the same size.
#[test]
fn two_damages_of_as_many_records_at_one_place_are_both_told() {
    let directory = Directory::new();
    let mut file = directory.open();
    let mut all = (1..).map(offer);
    let mut store = |file: &mut SpoolFile, requests| {
        all.by_ref().take(requests).for_each(|one| drop(append(file, &[one])));
        file.mark().unwrap();
    };
    store(&mut file, 1);
    let first = segments(&directory, "entries").remove(0);
    let kept_bytes = find(&first, "m f=1\n") + 2 * "m f=1\n".len();
    store(&mut file, 3);
    drop(file);
    directory.open().abandon();
    std::fs::File::options().write(true).open(&first).unwrap().set_len(kept_bytes as u64).unwrap();
    let mut file = directory.open();
    assert_eq!((file.damage().rows, file.counts().quarantined), (6, 6));
    store(&mut file, 3);
    file.abandon();
    let newest = segments(&directory, "entries").pop().unwrap();
    assert_ne!(newest, first);
    std::fs::remove_file(newest).unwrap();
    let mut file = directory.open();
    assert_eq!((file.damage().rows, file.counts().quarantined), (6, 12));
    assert_eq!(file.counts().acknowledged, 14);
    assert_counted(&mut file);
}
