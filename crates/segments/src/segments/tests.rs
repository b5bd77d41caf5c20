//! Tests of giving up segments, and of a full disk.

use std::sync::Arc;

use crate::segments::disk::Disk;
use crate::segments::log::{Log, LogError, segment_name};
use crate::segments::simulated::{End, MemoryDisk, SMALL, opened, small_log};

#[test]
fn what_was_given_up_is_no_damage_even_when_the_file_comes_back() {
    let (disk, all) = small_log(End::Killed).unwrap();
    let before = disk.copied();
    let (mut log, _) = Log::open(Arc::new(disk.clone()), SMALL, 78, &mut |_| {}).unwrap();
    let segments: Vec<u64> = log.segments().collect();
    let given_up = [segments[1], segments[0], segments[3]];
    for number in given_up {
        assert!(log.give_up(number, b"note").unwrap());
        assert!(!disk.names().unwrap().contains(&segment_name(number)));
    }
    drop(log);
    let left: Vec<_> = all.iter().filter(|(header, _)| !given_up.contains(&header.position.segment)).cloned().collect();
    let (found, recovered) = opened(&disk, 79).unwrap();
    assert_eq!((found, recovered.damaged_frames, recovered.uncertain_frames), (left.clone(), 0, 0));
    assert_eq!(recovered.note.as_deref(), Some(&b"note"[..]));
    // The removal was not durable.
    for number in given_up {
        let name = segment_name(number);
        let bytes = before.bytes_of(&name);
        drop(disk.create(&name, bytes.len() as u64).unwrap());
        disk.damage(&name, |own| own.clone_from(&bytes));
    }
    let (found, recovered) = opened(&disk, 80).unwrap();
    assert_eq!(
        (found, recovered.damaged_frames, recovered.rows),
        (left, 0, all.iter().map(|(header, _)| u64::from(header.rows)).sum())
    );
    assert!(!disk.names().unwrap().contains(&segment_name(segments[0])));
}

#[test]
fn a_full_disk_takes_nothing_and_gives_room_back() {
    let disk = MemoryDisk::new((32 << 10) + 3 * (4 << 10));
    let (mut log, _) = Log::open(Arc::new(disk.clone()), SMALL, 1, &mut |_| {}).unwrap();
    let body = [7; 1_000];
    let mut count = 0;
    while log.append(0, 0, 1, &[&body]).is_ok() {
        count += 1;
    }
    assert_eq!(count, 3 * ((4 << 10) / 1_080), "three segments are full");
    log.commit().unwrap();
    drop(log);
    // Another process finds the disk full, and can give up stored segments.
    let (mut log, recovered) = Log::open(Arc::new(disk.clone()), SMALL, 2, &mut |_| {}).unwrap();
    assert_eq!((recovered.rows, log.current()), (count, None));
    assert!(matches!(log.append(0, 0, 1, &[&body]), Err(LogError::NoRoom(_))));
    log.mark(b"a mark needs no room").unwrap();
    let first = log.segments().next().unwrap();
    assert!(log.give_up(first, b"").unwrap());
    log.append(0, 0, 1, &[&body]).unwrap();
    assert_eq!(log.commit().unwrap(), count + 1);
}
