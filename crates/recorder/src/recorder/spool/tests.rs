//! Tests of the spool: counters, survival of crashes, and damage.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::recorder::line::Precision;
use crate::recorder::spool::{Clearing, Committer, Entry, LaneNews, LaneOpening, Offer, Placed, Refusal, list};

/// A directory that is removed when it is dropped.
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

pub(in crate::recorder::spool) fn waiting(file: &SpoolFile) -> Vec<Entry> {
    file.reader().read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap().into_iter().map(Result::unwrap).collect()
}

pub(in crate::recorder::spool) fn refusal(row: i64) -> Refusal {
    Refusal { row, rows: 1, body: b"m f=1\n".to_vec(), reason: "no".to_owned() }
}

pub(in crate::recorder::spool) fn assert_conserved(counts: Counts) {
    assert_eq!(counts.acknowledged, counts.committed + counts.spooled + counts.quarantined, "{counts:?}");
}

/// Asserts that the running counters match what is there.
pub(in crate::recorder::spool) fn assert_counted(file: &mut SpoolFile) {
    let counts = file.counts();
    assert_conserved(counts);
    file.count_again();
    assert_eq!(file.counts(), counts);
}

#[test]
fn what_is_acknowledged_is_committed_spooled_or_quarantined_and_stays_so_when_opened_again() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1), offer(2), offer(3)]);
    let second = waiting(&file).remove(1);
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
    let entries = waiting(&file);
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
fn what_waits_compressed_is_counted_as_it_is_stored_and_read_as_it_was_offered() {
    let directory = Directory::new();
    let file = directory.open().with_compression(true);
    let (committer, handle) = Committer::start(file).unwrap();
    let body = "m,probe=p17 rtt=23.5,ok=true 1700000000000000000\n".repeat(2_000);
    let offers: Vec<Offer> = (1..=9).map(|rows| Offer::plain("tests", rows, body.as_bytes())).collect();
    for offer in &offers {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(handle.append(offer.clone(), false)).unwrap();
    }
    let counts = handle.into_last_counts(committer);
    assert!(counts.spooled_bytes < 9 * 2_000 && counts.entries == 9, "{counts:?}");
    let mut file = directory.open();
    assert_eq!(file.counts(), counts);
    assert_eq!(waiting(&file).into_iter().map(|entry| entry.offer).collect::<Vec<_>>(), offers);
    // An entry that is small on the disk and large in memory is read a part at a time.
    let read = |bytes_max: usize| file.reader().read(0, (0, i64::MAX), bytes_max, u64::MAX).unwrap().len();
    assert_eq!((read(1), read(body.len() * 2), read(usize::MAX)), (1, 2, 9));
    settle(&mut file, 4);
    for segment in file.segments(LogName::Entries).unwrap() {
        file.leave(segment).unwrap();
    }
    drop(file);
    assert_eq!(waiting(&directory.open()).into_iter().map(|entry| entry.offer).collect::<Vec<_>>(), offers[4..]);
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
    // In this test an id is remembered for an hour after its arrival.
    let (now_ns, hour_ns) = (file.id_clock.now_ns(), 3_600_000_000_000);
    let mut group = file.begin().unwrap();
    group.forget_messages().unwrap();
    group.commit().unwrap();
    assert_eq!(append(&mut file, &[message("a", "x")]), [Stored::Duplicate]);
    let mut group = file.begin().unwrap();
    group.forget_messages_at(now_ns + 2 * hour_ns).unwrap();
    group.commit().unwrap();
    assert_eq!(append(&mut file, &[message("a", "x")]), [Stored::New(4)]);
}

#[test]
fn ids_grow_old_with_the_time_that_passes_and_not_with_the_clock_of_the_day() {
    const DAY_NS: i64 = 86_400_000_000_000;
    let directory = Directory::new();
    let mut file = directory.open();
    // A message that was received a day ahead does not age faster, nor do those received behind it.
    let message = |id: &str, day: i64| Offer { message_id: id.into(), received_ns: day * DAY_NS, ..offer(1) };
    append(&mut file, &[message("a", 20_000), message("b", 20_001), message("c", 20_000)]);
    let mut group = file.begin().unwrap();
    group.forget_messages().unwrap();
    group.commit().unwrap();
    let before = file.id_clock.now_ns();
    drop(file);
    let mut file = directory.open();
    assert!(file.id_clock.now_ns() >= before && file.id_clock.now_ns() < before + DAY_NS / 24);
    let again = append(&mut file, &[message("a", 20_001), message("b", 20_000), message("c", 20_002)]);
    assert_eq!(again, [Stored::Duplicate; 3]);
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
    assert_eq!(waiting(&file).len(), 3);
}

#[test]
fn quarantined_records_are_listed_and_can_be_given_back() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1)]);
    let entry = waiting(&file).remove(0);
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
    assert_eq!(waiting(&file)[0].offer.body, b"m f=1\n");
}

#[test]
fn the_quarantine_has_a_bound_of_its_own_and_is_replayed_or_discarded() {
    let directory = Directory::new();
    let mut file = directory.open().with_quarantine(1 << 20);
    append(&mut file, &[offer(1), offer(2)]);
    let entries = waiting(&file);
    let mut group = file.begin().unwrap();
    group.quarantine(&entries[0], &Refusal { body: vec![b'x'; 3 << 20], ..refusal(0) }, 9).unwrap();
    group.quarantine(&entries[1], &refusal(0), 9).unwrap();
    group.settle(0, 1).unwrap();
    group.commit().unwrap();
    let bytes = file.counts().quarantined_bytes;
    assert!(bytes > 3 << 20 && file.is_half_quarantine());
    // What is beyond the quarantine's bound has as much room as the spool has; only what exceeds that is taken from others.
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
    assert_eq!(file.reader().quarantined(1, 2).unwrap(), [(2, 0)]);
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
    let (mut most, begun_ns) = (0, file.id_clock.now_ns());
    for round in 0..60 {
        // The oldest are told from the youngest by their seconds.
        file.id_clock = super::super::IdClock::new(begun_ns + round * 1_000_000_000, &file.clock.clone());
        let mut group = file.begin().unwrap();
        for number in 0..100 {
            group.append(&message(round * 100 + number)).unwrap();
        }
        group.settle(0, i64::MAX).unwrap();
        if group.remembers_too_much() {
            group.forget_messages().unwrap();
        }
        assert!(!group.remembers_too_much());
        group.commit().unwrap();
        file.tidy().unwrap();
        most = most.max(file.ids.len());
    }
    assert!(most <= (1 << 20) / 4 / 64 && most > 3_500, "{most}");
    drop(file);
    let mut file = directory.open();
    assert_eq!(append(&mut file, &[message(5_999)]), [Stored::Duplicate], "the youngest are remembered");
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
    assert_eq!(waiting(&file).len(), 1, "what was dealt with is given up");
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
