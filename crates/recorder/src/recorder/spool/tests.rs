//! Tests of the spool: what it counts, what survives, and what becomes of damage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::recorder::line::Precision;
use crate::recorder::spool::{Clearing, Committer, Entry, LaneNews, LaneOpening, Placed, Reader, Refusal, list};

/// A directory that is removed at the end.
pub(in crate::recorder::spool) struct Directory(pub(in crate::recorder::spool) PathBuf);

impl Directory {
    pub(in crate::recorder::spool) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("loadline-spool-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub(in crate::recorder::spool) fn open(&self) -> SpoolFile {
        SpoolFile::open(&self.0, 1 << 20, Duration::from_secs(3600)).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub(in crate::recorder::spool) fn offer(number: u32) -> Offer {
    Offer { received_ns: 7, ..Offer::plain("tests", 2, format!("m f={number}\nm f={number}\n").as_bytes()) }
}

pub(in crate::recorder::spool) fn append(file: &mut SpoolFile, offers: &[Offer]) -> Vec<Stored> {
    let mut group = file.begin().unwrap();
    let stored = offers.iter().map(|offer| group.append(offer).unwrap()).collect();
    group.commit().unwrap();
    stored
}

fn settle(file: &mut SpoolFile, through: i64) {
    let mut group = file.begin().unwrap();
    group.settle(0, through).unwrap();
    group.commit().unwrap();
}

pub(in crate::recorder::spool) fn waiting(directory: &Directory) -> Vec<Entry> {
    let reader = Reader::open(&directory.0.join("spool.db")).unwrap();
    reader.read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap().into_iter().map(Result::unwrap).collect()
}

pub(in crate::recorder::spool) fn refusal(row: i64) -> Refusal {
    Refusal { row, rows: 1, body: b"m f=1\n".to_vec(), reason: "no".to_owned() }
}

pub(in crate::recorder::spool) fn assert_conserved(counts: Counts) {
    assert_eq!(counts.acknowledged, counts.committed + counts.spooled + counts.quarantined, "{counts:?}");
}

#[test]
fn what_is_acknowledged_is_committed_spooled_or_quarantined_and_stays_so_when_opened_again() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1), offer(2), offer(3)]);
    let second = waiting(&directory).remove(1);
    for _ in 0..2 {
        let mut group = file.begin().unwrap();
        group.quarantine(&second, &refusal(1), 9).unwrap();
        group.commit().unwrap();
        assert_conserved(file.counts());
        assert_eq!((file.counts().spooled, file.counts().quarantined), (5, 1), "twice is once");
    }
    settle(&mut file, 2);
    let counts = file.counts();
    assert_eq!((counts.acknowledged, counts.committed, counts.spooled, counts.quarantined), (6, 3, 2, 1));
    assert_eq!(counts.spooled_bytes, offer(3).stored_bytes());
    drop(file);
    assert_eq!(directory.open().counts(), counts);
}

#[test]
fn entries_are_read_in_order_and_as_they_were_offered() {
    let directory = Directory::new();
    let mut file = directory.open();
    let offers = [offer(1), Offer { message_id: "a".into(), precision: Precision::Seconds, ..offer(2) }];
    assert_eq!(append(&mut file, &offers), [Stored::New(1), Stored::New(2)]);
    let entries = waiting(&directory);
    assert_eq!(entries.iter().map(|entry| entry.offer.clone()).collect::<Vec<_>>(), offers);
    settle(&mut file, 2);
    assert_eq!(append(&mut file, &[offer(3)]), [Stored::New(3)], "a sequence is never used twice");
    drop(file);
    let mut file = directory.open();
    settle(&mut file, 3);
    drop(file);
    assert_eq!(append(&mut directory.open(), &[offer(3)]), [Stored::New(4)]);
}

#[test]
fn a_message_that_is_sent_again_is_not_stored_again_until_it_is_forgotten() {
    let directory = Directory::new();
    let mut file = directory.open();
    let message = |id: &str, source: &str| Offer { message_id: id.into(), source: source.into(), ..offer(1) };
    let first = append(&mut file, &[message("a", "x"), message("a", "x"), message("a", "y"), message("b", "x")]);
    assert_eq!(first, [Stored::New(1), Stored::Duplicate, Stored::New(2), Stored::New(3)]);
    settle(&mut file, 3);
    drop(file);
    let mut file = directory.open();
    assert_eq!(append(&mut file, &[message("a", "x")]), [Stored::Duplicate]);
    // In this test an id is remembered for an hour, from when it came.
    let (now_ns, hour_ns) = (file.clock.now_ns(), 3_600_000_000_000);
    let mut group = file.begin().unwrap();
    assert_eq!(group.forget_messages().unwrap(), 0);
    assert_eq!(group.forget_messages_at(now_ns + 2 * hour_ns).unwrap(), 3);
    group.commit().unwrap();
    assert_eq!(append(&mut file, &[message("a", "x")]), [Stored::New(4)]);
}

#[test]
fn ids_grow_old_with_the_time_that_passes_and_not_with_the_clock_of_the_day() {
    const DAY_NS: i64 = 86_400_000_000_000;
    let directory = Directory::new();
    let mut file = directory.open();
    // What a day ahead was received stays as young as it is, and so does what is received behind it.
    let message = |id: &str, day: i64| Offer { message_id: id.into(), received_ns: day * DAY_NS, ..offer(1) };
    append(&mut file, &[message("a", 20_000), message("b", 20_001), message("c", 20_000)]);
    let mut group = file.begin().unwrap();
    assert_eq!(group.forget_messages().unwrap(), 0);
    group.commit().unwrap();
    let before = file.clock.now_ns();
    drop(file);
    // A file of before there was this clock, whose newest id came when the clock of the day was far ahead.
    let spool = Connection::open(directory.0.join("spool.db")).unwrap();
    spool.execute("DELETE FROM fact WHERE name = 'id_clock_ns'", []).unwrap();
    spool
        .execute("UPDATE message SET received_ns = received_ns + 25 * 3600000000000 WHERE message_id = 'b'", [])
        .unwrap();
    drop(spool);
    let mut file = directory.open();
    assert!(file.clock.now_ns() >= before && file.clock.now_ns() < before + DAY_NS / 24);
    let again = append(&mut file, &[message("a", 20_001), message("b", 20_000), message("c", 20_002)]);
    assert_eq!(again, [Stored::Duplicate; 3]);
}

#[test]
fn ids_that_were_kept_without_owners_are_recognised_and_no_new_one_is_kept_so() {
    let directory = Directory::new();
    let mut file = directory.open();
    let message = |id: &str| Offer { message_id: id.into(), ..offer(1) };
    append(&mut file, &[message("old"), message("access a\nnew")]);
    drop(file);
    let mut file = directory.open();
    let again = append(&mut file, &[message("access a\nold"), message("tokens\nold"), message("tokens\nnew")]);
    assert_eq!(again, [Stored::Duplicate, Stored::Duplicate, Stored::New(3)]);
    assert_eq!(append(&mut file, &[message("access a\nnew"), message("access b\nnew")])[0], Stored::Duplicate);
}

#[test]
fn a_full_spool_refuses_and_takes_again_when_there_is_room() {
    let directory = Directory::new();
    let mut file = SpoolFile::open(&directory.0, 3 * offer(1).stored_bytes(), Duration::ZERO).unwrap();
    append(&mut file, &[offer(1), offer(2), offer(3)]);
    let mut group = file.begin().unwrap();
    let error = group.append(&offer(4)).unwrap_err();
    assert!(matches!(&error, SpoolError::Full(text) if text.contains("wait for the database")), "{error}");
    drop(group);
    settle(&mut file, 1);
    append(&mut file, &[offer(4)]);
    assert_eq!(waiting(&directory).len(), 3);
}

#[test]
fn quarantined_records_are_listed_and_can_be_given_back() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1)]);
    let entry = waiting(&directory).remove(0);
    let mut group = file.begin().unwrap();
    group.quarantine(&entry, &refusal(0), 9).unwrap();
    group.quarantine(&entry, &Refusal { row: -1, ..refusal(0) }, 9).unwrap();
    group.settle(0, 1).unwrap();
    group.commit().unwrap();
    let listed = list(&directory.0, 10).unwrap();
    assert_eq!((listed.len(), &*listed[0].reason, &*listed[0].line), (2, "no", "m f=1"));
    assert_eq!(file.clear(Clearing::Replay).unwrap(), 1, "what is damaged stays");
    assert_eq!((file.counts().quarantined, file.counts().spooled), (1, 1));
    assert_conserved(file.counts());
    assert_eq!(waiting(&directory)[0].offer.body, b"m f=1\n");
}

#[test]
fn the_quarantine_has_a_bound_of_its_own_and_is_replayed_or_discarded() {
    let directory = Directory::new();
    let mut file = directory.open().with_quarantine(1 << 20);
    append(&mut file, &[offer(1), offer(2)]);
    let entries = waiting(&directory);
    let mut group = file.begin().unwrap();
    group.quarantine(&entries[0], &Refusal { body: vec![b'x'; 3 << 20], ..refusal(0) }, 9).unwrap();
    group.quarantine(&entries[1], &refusal(0), 9).unwrap();
    group.settle(0, 1).unwrap();
    group.commit().unwrap();
    let bytes = file.counts().quarantined_bytes;
    assert!(bytes > 3 << 20 && file.is_half_quarantine());
    // What is beyond its bound has as much room as the spool has, and only what is beyond that is taken from others.
    let counts = file.counts();
    assert_eq!(counts.held_bytes(1 << 20, bytes), counts.spooled_bytes);
    assert_eq!(counts.held_bytes(1 << 20, bytes - (1 << 20)), counts.spooled_bytes);
    assert_eq!(counts.held_bytes(1 << 20, bytes - (1 << 20) - 7), counts.spooled_bytes + 7);
    let full = file.begin().unwrap().append(&offer(3)).unwrap_err().to_string();
    assert!(full.contains("more than quarantine.bound are in quarantine"), "{full}");
    drop(file);
    let mut file = directory.open();
    assert_eq!(file.counts().quarantined_bytes, bytes);
    assert_eq!(file.clear(Clearing::Discard).unwrap(), 1, "what belongs to an entry that waits is decided with it");
    let counts = file.counts();
    assert_eq!((counts.acknowledged, counts.committed, counts.spooled, counts.quarantined), (3, 1, 1, 1));
    assert_conserved(counts);
    assert_eq!(file.clear(Clearing::Replay).unwrap(), 0, "nor is it given back");
    let reader = Reader::open(file.path()).unwrap();
    assert_eq!(reader.quarantined(1, 2).unwrap(), [(2, 0)]);
    append(&mut file, &[offer(3)]);
    drop(file);
    let reopened = directory.open().counts();
    assert_eq!(reopened.quarantined_bytes, (96 + "tests".len() + "no".len() + "m f=1\n".len()) as u64);
    assert_conserved(reopened);
}

#[test]
fn ids_of_messages_take_a_quarter_of_the_bound_at_most() {
    let directory = Directory::new();
    let mut file = directory.open();
    let message = |number: i64| Offer { message_id: format!("{number:0100}"), received_ns: number, ..offer(1) };
    let mut forgotten = 0;
    for round in 0..30 {
        let mut group = file.begin().unwrap();
        for number in 0..100 {
            group.append(&message(round * 100 + number)).unwrap();
        }
        group.settle(0, i64::MAX).unwrap();
        if group.remembers_too_much() {
            forgotten += group.forget_messages().unwrap();
        }
        assert!(!group.remembers_too_much());
        group.commit().unwrap();
    }
    assert!(forgotten > 500, "{forgotten}");
    drop(file);
    let mut file = directory.open();
    assert_eq!(append(&mut file, &[message(2_999)]), [Stored::Duplicate], "the youngest are remembered");
    assert!(matches!(append(&mut file, &[message(0)])[..], [Stored::New(_)]), "the oldest are not");
}

#[test]
fn one_recorder_at_a_time_works_on_a_spool() {
    let directory = Directory::new();
    let file = directory.open();
    let error = SpoolFile::open(&directory.0, 1, Duration::ZERO).unwrap_err().to_string();
    assert!(error.contains("another recorder"), "{error}");
    drop(file);
    directory.open();
}

#[test]
fn lanes_change_only_when_nothing_waits() {
    let directory = Directory::new();
    let mut file = directory.open();
    file.set_lanes(2).unwrap();
    append(&mut file, &[offer(1)]);
    file.set_lanes(2).unwrap();
    assert!(file.set_lanes(1).unwrap_err().to_string().contains("writer.count = 2"));
    settle(&mut file, 1);
    file.set_lanes(1).unwrap();
}

#[test]
fn a_wrong_checksum_gives_a_refusal_and_the_entries_beside_it_are_read() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1), offer(2), offer(3)]);
    file.connection().execute("UPDATE entry SET body = x'6d20663d3909' WHERE sequence = 2", []).unwrap();
    let reader = Reader::open(file.path()).unwrap();
    let found = reader.read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap();
    assert!(found[0].is_ok() && found[2].is_ok());
    let (entry, refusal) = found[1].as_ref().unwrap_err();
    assert_eq!((entry.sequence, refusal.row, refusal.rows), (2, -1, 2));
}

/// The newest bytes of the log cut or flipped, byte by byte: what is read is a prefix of what was stored, all but the last
/// group is always there, and the spool goes on.
#[test]
fn damage_of_the_newest_bytes_costs_at_most_the_newest_group() {
    let origin = Directory::new();
    let mut file = origin.open();
    append(&mut file, &[offer(1)]);
    append(&mut file, &[offer(2)]);
    let before = std::fs::metadata(origin.0.join("spool.db-wal")).unwrap().len();
    append(&mut file, &[offer(3)]);
    let (database, log) =
        (std::fs::read(origin.0.join("spool.db")).unwrap(), std::fs::read(origin.0.join("spool.db-wal")).unwrap());
    let newest = usize::try_from(before).unwrap()..log.len();
    assert!(newest.len() > 1_000);
    // Every byte of the frame's head and of what ends it, and some of the page between them.
    let all = (newest.start..newest.start + 40).chain(newest.clone().step_by(97)).chain(newest.end - 40..newest.end);
    for (round, at) in all.flat_map(|at| [at, at]).enumerate() {
        let damaged = Directory::new();
        let mut bytes = log.clone();
        if round % 2 == 0 {
            bytes.truncate(at)
        } else {
            bytes[at] ^= 0x40
        }
        std::fs::write(damaged.0.join("spool.db"), &database).unwrap();
        std::fs::write(damaged.0.join("spool.db-wal"), &bytes).unwrap();
        let mut file = damaged.open();
        let found: Vec<_> = waiting(&damaged).into_iter().map(|entry| entry.offer).collect();
        assert!(found.len() >= 2 && found == [offer(1), offer(2), offer(3)][..found.len()], "{at}: {}", found.len());
        assert_conserved(file.counts());
        append(&mut file, &[offer(4)]);
    }
}

/// Overwrites the middle of the file; the file.
fn damage(directory: &Directory) -> PathBuf {
    let path = directory.0.join("spool.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    path
}

#[test]
fn a_damaged_file_is_kept_aside_and_what_is_readable_goes_on() {
    let directory = Directory::new();
    let mut file = directory.open();
    let many: Vec<_> = (0..200).map(|number| Offer { body: vec![b'x'; 2_000], ..offer(number) }).collect();
    append(&mut file, &many);
    let recorder = file.lane_opening(0).unwrap().recorder;
    drop(file);
    let path = damage(&directory);
    let mut file = directory.open();
    let salvaged = file.salvaged().cloned().unwrap();
    assert!(salvaged.kept.exists() && salvaged.read > 50 && salvaged.read < 200, "{salvaged:?}");
    assert_eq!(file.lane_opening(0).unwrap().recorder, recorder, "the ledger still knows it");
    let newest = append(&mut file, &[offer(1)]);
    assert!(matches!(newest[..], [Stored::New(sequence)] if sequence > 200), "{newest:?}");
    drop(file);
    assert!(directory.open().salvaged().is_none());
    std::fs::write(&path, vec![0x5a; 10_000]).unwrap();
    assert!(directory.open().salvaged().is_some(), "not even a database");
}

#[test]
fn a_disk_that_is_full_refuses_and_recovers() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1)]);
    let pages: i64 = file.connection().query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    file.connection().query_row(&format!("PRAGMA max_page_count = {}", pages + 1), [], |_| Ok(())).unwrap();
    let big = Offer { body: vec![b'x'; 100_000], ..offer(2) };
    let mut group = file.begin().unwrap();
    assert!(matches!(group.append(&big), Err(SpoolError::Full(_))));
    drop(group);
    assert_conserved(file.counts());
    file.connection().query_row("PRAGMA max_page_count = 1000000", [], |_| Ok(())).unwrap();
    append(&mut file, &[big]);
    assert_eq!(waiting(&directory).len(), 2);
}

#[test]
fn many_requests_share_a_sync_and_each_is_answered_after_it() {
    let directory = Directory::new();
    let (committer, handle) = Committer::start(directory.open()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let answers = runtime.block_on(async {
        let tasks: Vec<_> = (0..50)
            .map(|number| {
                let handle = handle.clone();
                tokio::spawn(async move { handle.append(offer(number), false).await })
            })
            .collect();
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers
    });
    assert!(answers.iter().all(|answer| matches!(answer, Ok(Placed { stored: Stored::New(_), lane: 0 }))));
    assert_eq!(handle.counts().spooled, 100);
    handle.settle(0, 50).unwrap();
    let entry = Entry { sequence: 60, offer: offer(60) };
    let refused = super::super::Refused { entry: Arc::new(entry), refusal: refusal(0), is_spooled: false };
    handle.quarantine(vec![refused]).unwrap();
    let counts = handle.counts();
    assert_eq!((counts.acknowledged, counts.committed, counts.spooled, counts.quarantined), (101, 100, 0, 1));
    drop(handle);
    committer.join();
    assert_eq!(directory.open().counts().acknowledged, 101);
}

#[test]
fn each_opening_is_another_one_until_the_ledger_has_registered_it() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1)]);
    let first = file.lane_opening(0).unwrap();
    assert_eq!((first.openings.len(), first.openings[0].newest, first.is_checked), (1, 1, false));
    assert_eq!(file.lane_opening(0).unwrap(), first);
    append(&mut file, &[offer(2)]);
    let checked = note(&mut file, &LaneNews::Checked);
    assert_eq!(checked, LaneOpening { is_checked: true, ..first.clone() });
    drop(file);
    let mut file = directory.open();
    let second = file.lane_opening(0).unwrap();
    assert_eq!((&second.openings[..1], second.openings[1].newest, second.is_checked), (&first.openings[..], 2, false));
    assert_ne!(second.token(), first.token());
    let parted = note(&mut file, &LaneNews::Parted { through: 1, recorder: "other".to_owned() });
    assert_eq!(parted, LaneOpening { recorder: "other".to_owned(), ..second.clone() });
    assert_eq!(waiting(&directory).len(), 1, "what was dealt with is given up");
    assert_eq!(file.lane_opening(1).unwrap().recorder, first.recorder, "the other lane goes by its own name");
    note(&mut file, &LaneNews::Checked);
    let third = note(&mut file, &LaneNews::Superseded);
    assert_eq!((third.openings.len(), third.openings[2].newest, third.is_checked), (3, 2, false));
}

fn note(file: &mut SpoolFile, news: &LaneNews) -> LaneOpening {
    let mut group = file.begin().unwrap();
    let opening = group.note(0, news).unwrap();
    group.commit().unwrap();
    opening
}

#[test]
fn a_spool_of_the_version_before_is_brought_up_and_one_of_a_later_version_is_refused() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1)]);
    let older = "DROP TABLE lane; DROP TABLE opening; DROP TABLE apart; UPDATE fact SET value = 1 WHERE name = 'version'; \
         ALTER TABLE entry DROP COLUMN sender; ALTER TABLE quarantine DROP COLUMN sender";
    file.connection().execute_batch(older).unwrap();
    drop(file);
    let mut file = directory.open();
    assert_eq!(waiting(&directory).len(), 1);
    assert_eq!(file.lane_opening(0).unwrap().openings[0].newest, 1);
    file.connection().execute("UPDATE fact SET value = 5 WHERE name = 'version'", []).unwrap();
    drop(file);
    let refused = SpoolFile::open(&directory.0, 1 << 20, Duration::from_secs(1)).unwrap_err().to_string();
    assert!(refused.contains("its version is 5 and this loadline reads 4"), "{refused}");
}

#[test]
fn a_damaged_file_keeps_its_openings_as_far_as_they_can_be_read() {
    let directory = Directory::new();
    let mut file = directory.open();
    let many: Vec<_> = (0..200).map(|number| Offer { body: vec![b'x'; 2_000], ..offer(number) }).collect();
    let before = file.lane_opening(0).unwrap();
    append(&mut file, &many);
    drop(file);
    damage(&directory);
    let mut file = directory.open();
    assert!(file.salvaged().is_some());
    let after = file.lane_opening(0).unwrap();
    assert_eq!((after.recorder, &after.openings[..1]), (before.recorder, &before.openings[..]));
    assert_eq!((after.openings.len(), after.openings[1].newest), (2, 200));
}
