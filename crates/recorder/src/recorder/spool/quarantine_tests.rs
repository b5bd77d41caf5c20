//! Tests of the quarantine: senders' shares, records that wait for room, and clearing while a recorder works.

use std::sync::Arc;

use super::*;
use crate::recorder::spool::file::tests::{Directory, append, assert_conserved, offer, refusal, waiting};
use crate::recorder::spool::{Committer, Deferred};

/// Quarantines the first record of each entry.
fn quarantine_first(file: &mut SpoolFile, entries: &[Entry]) {
    let mut group = file.begin().unwrap();
    entries.iter().for_each(|entry| group.quarantine(entry, &refusal(0), 9).unwrap());
    group.settle(0, i64::MAX).unwrap();
    group.commit().unwrap();
}

#[test]
fn who_holds_what_is_known_again_when_the_spool_is_opened_again() {
    let directory = Directory::new();
    let mut file = directory.open().with_quarantine(1 << 10);
    let named = |sender: &str, source: &str| Offer { sender: sender.into(), source: source.into(), ..offer(1) };
    append(&mut file, &[named("n", "a"), named("n", "b"), named("", "n"), offer(1)]);
    let entries = waiting(&file);
    assert_eq!((&*entries[0].offer.sender, &*entries[2].offer.sender), ("n", ""));
    let deferred = Deferred {
        entry: Arc::new(entries[3].clone()),
        rows: vec![1],
        body: b"m f=1\n".into(),
        rest: b"m f=1\n".into(),
    };
    let mut group = file.begin().unwrap();
    group.defer(&deferred).unwrap();
    group.defer(&deferred).unwrap();
    group.commit().unwrap();
    assert_eq!((file.counts().deferred, file.counts().spooled, file.counts().entries), (1, 8, 5), "twice is once");
    quarantine_first(&mut file, &entries[..3]);
    assert_eq!((file.counts().spooled, file.counts().quarantined, file.counts().committed), (1, 3, 4));
    let (view, counts) = (file.quarantine_view(), file.counts());
    let mut held: Vec<_> = view.largest.iter().map(|(holder, held)| (holder.as_str(), held.rows)).collect();
    held.sort_unstable();
    assert_eq!(held, [("sender \"n\"", 2), ("source \"n\"", 1), ("source \"tests\"", 0)]);
    drop(file);
    let mut file = directory.open().with_quarantine(1 << 10);
    assert_eq!((file.quarantine_view(), file.counts()), (view, counts));
    // Replayed records are where they were sent from.
    assert_eq!(file.clear(Clearing::Replay).unwrap(), 3);
    assert_eq!(waiting(&file).iter().filter(|entry| &*entry.offer.sender == "n").count(), 2);
    assert!(file.quarantine_view().largest.iter().all(|(holder, _)| holder == "source \"tests\""));
    let mut group = file.begin().unwrap();
    group.bring_back(1).unwrap();
    group.commit().unwrap();
    assert_eq!((file.counts().deferred, file.counts().deferred_bytes, file.counts().spooled), (0, 0, 4));
    assert_eq!(waiting(&file).last().unwrap().offer, Offer { rows: 1, body: b"m f=1\n".into(), ..offer(1) });
    assert!(file.quarantine_view().largest.is_empty());
    assert_conserved(file.counts());
}

#[test]
fn a_recorder_that_works_replays_in_portions_and_leaves_room_to_others() {
    let directory = Directory::new();
    let mut file = directory.open();
    let offers: Vec<_> = (0..1_200).map(offer).collect();
    append(&mut file, &offers);
    let entries = waiting(&file);
    quarantine_first(&mut file, &entries);
    let (committer, handle) = Committer::start(file).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (mut next, mut portions) = (Some(Span::ALL), Vec::new());
    while let Some(span) = next {
        let portion = runtime.block_on(handle.clear(Clearing::Replay, span)).unwrap();
        assert_eq!(portion.full, None);
        (next, portions) = (portion.next, [portions, vec![portion.rows]].concat());
        assert_conserved(handle.counts());
    }
    assert_eq!(portions, [500, 500, 200, 0]);
    assert_eq!((handle.counts().quarantined, handle.counts().spooled, handle.counts().committed), (0, 1_200, 1_200));
    let discarded = runtime.block_on(handle.clear(Clearing::Discard, Span::ALL)).unwrap();
    assert_eq!((discarded.rows, discarded.next), (0, None));
    drop(handle);
    committer.join();
    assert_conserved(directory.open().counts());
}

thread_local! {
    /// The newest entry that a writer found while only the lasting log had the group.
    static SEEN: std::cell::Cell<Option<i64>> = const { std::cell::Cell::new(None) };
}

#[test]
fn what_comes_back_is_not_seen_before_an_older_entry_of_its_group() {
    let directory = Directory::new();
    let mut file = directory.open();
    append(&mut file, &[offer(1)]);
    let entry = Arc::new(waiting(&file).remove(0));
    let deferred = Deferred { entry, rows: vec![1], body: b"m f=1\n".into(), rest: b"m f=1\n".into() };
    let mut group = file.begin().unwrap();
    group.defer(&deferred).unwrap();
    group.commit().unwrap();
    file.looks_between_logs =
        Some(|shelf| SEEN.set(shelf.index().between(0, 0, i64::MAX).last().map(|(sequence, _)| sequence)));
    let mut group = file.begin().unwrap();
    group.append(&offer(2)).unwrap();
    group.bring_back(1).unwrap();
    group.commit().unwrap();
    let sequences: Vec<i64> = waiting(&file).iter().map(|entry| entry.sequence).collect();
    // A writer that saw only the last entry would commit it, settle all up to it, and never look at the one before.
    assert_eq!(sequences.len(), 3, "{sequences:?}");
    assert_eq!(SEEN.get(), Some(sequences[0]), "{sequences:?}");
}
