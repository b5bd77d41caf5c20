//! Tests of the inbox: acknowledged blocks are kept, others are not, and nothing is replaced.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use super::*;

/// A directory that is removed on drop.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Directory(std::env::temp_dir().join(format!("loadline-inbox-{}-{number}", std::process::id())))
    }

    fn open(&self) -> Inbox {
        Inbox::open(&self.0, BOUNDS).unwrap()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const BOUNDS: Bounds = Bounds { all: 1_000, camera: 600, block: 200 };

fn upload(receiving: &Receiving, camera: &str, name: &str, content: &[u8]) -> Result<Acknowledged, InboxError> {
    let mut upload = receiving.begin(camera, name)?;
    content.chunks(7).try_for_each(|chunk| upload.write(chunk))?;
    upload.finish()
}

fn names(waiting: &[Waiting]) -> Vec<&str> {
    waiting.iter().map(|waiting| waiting.name.as_str()).collect()
}

#[test]
fn blocks_wait_in_order_of_arrival_until_they_are_settled() {
    let directory = Directory::new();
    let inbox = directory.open();
    let receiving = Receiving::start(&inbox).unwrap();
    for (camera, name) in [("b", "1"), ("a", "2"), ("b", "0")] {
        assert_eq!(upload(&receiving, camera, name, name.as_bytes()), Ok(Acknowledged::New));
        std::thread::sleep(std::time::Duration::from_millis(15));
    }
    let taking = Taking::start(&directory.open()).unwrap();
    let waiting = taking.next(10).unwrap();
    assert_eq!(names(&waiting), ["1", "2", "0"]);
    assert_eq!(names(&taking.next(2).unwrap()), ["1", "2"]);
    let mut content = b"before".to_vec();
    waiting[1].read(&mut content).unwrap();
    assert_eq!(content, b"2");
    taking.settle(&waiting[1]).unwrap();
    taking.settle(&waiting[1]).unwrap();
    assert_eq!(names(&taking.next(10).unwrap()), ["1", "0"]);
    assert_eq!(inbox.counts().unwrap(), Counts { waiting: 2, waiting_bytes: 2, bytes: 2, ..Counts::default() });
    assert_eq!(receiving.acknowledged(), 3);
}

#[test]
fn what_is_not_finished_is_never_seen_and_leaves_nothing() {
    let directory = Directory::new();
    let (inbox, taking) = (directory.open(), Taking::start(&directory.open()).unwrap());
    let receiving = Receiving::start(&inbox).unwrap();
    let mut begun = receiving.begin("a", "x").unwrap();
    begun.write(b"half").unwrap();
    assert_eq!((inbox.counts().unwrap().incoming, taking.next(9).unwrap().len()), (1, 0));
    // A second intake leaves those of the first alone as long as it lives.
    let other = Receiving::start(&inbox).unwrap();
    assert_eq!(inbox.counts().unwrap().incoming, 1);
    drop(begun);
    assert_eq!(inbox.counts().unwrap(), Counts::default());
    std::mem::forget(other.begin("a", "y").unwrap().write(b"half"));
    let leftover = inbox.incoming("a").join("gone-1-0.part");
    std::fs::write(&leftover, "of a process that was killed").unwrap();
    let _third = Receiving::start(&inbox).unwrap();
    assert!(!leftover.exists());
}

#[test]
fn a_name_is_never_given_to_two_contents() {
    let directory = Directory::new();
    let receiving = Receiving::start(&directory.open()).unwrap();
    assert_eq!(upload(&receiving, "a", "x", b"one"), Ok(Acknowledged::New));
    assert_eq!(upload(&receiving, "a", "x", b"one"), Ok(Acknowledged::Again), "its answer was lost");
    assert_eq!(upload(&receiving, "a", "x", b"two"), Err(InboxError::Exists("x".to_owned())));
    assert_eq!(upload(&receiving, "b", "x", b"two"), Ok(Acknowledged::New));
    assert_eq!(std::fs::read(directory.open().received("a").join("x")).unwrap(), b"one");
    assert_eq!(receiving.acknowledged(), 2);
    for (camera, name) in [("../a", "x"), ("a", "../x"), ("a", "/x"), ("a", "x\0"), ("", "x"), ("a", "")] {
        assert!(matches!(upload(&receiving, camera, name, b"x"), Err(InboxError::Name(_))), "{camera} {name}");
    }
    assert_eq!(directory.open().counts().unwrap().incoming, 0);
}

#[test]
fn it_is_full_at_its_bound_and_one_camera_leaves_room_for_the_others() {
    let directory = Directory::new();
    let inbox = directory.open();
    let receiving = Receiving::start(&inbox).unwrap();
    let block = [b'x'; 200];
    assert_eq!(upload(&receiving, "a", "large", &[b'x'; 201]), Err(InboxError::TooLarge(200)));
    for number in ["0", "1", "2"] {
        upload(&receiving, "a", number, &block).unwrap();
    }
    let error = upload(&receiving, "a", "3", &block).unwrap_err();
    assert!(error.is_temporary() && error.to_string().contains("camera a has 600 B"), "{error}");
    upload(&receiving, "b", "0", &block).unwrap();
    upload(&receiving, "b", "1", &block[..150]).unwrap();
    let error = upload(&receiving, "b", "2", &block[..1]).unwrap_err().to_string();
    assert!(error.contains("95 % full and takes in again at 75 %"), "{error}");
    let taking = Taking::start(&inbox).unwrap();
    let waiting = taking.next(9).unwrap();
    // What is in quarantine still counts.
    taking.quarantine(&waiting[0], "no").unwrap();
    taking.settle(&waiting[1]).unwrap();
    let later = Receiving::start(&inbox).unwrap();
    later.ask("b").unwrap();
    assert_eq!(inbox.counts().unwrap().bytes, 750);
}

#[test]
fn a_sync_that_fails_ends_acknowledgement_and_a_full_disk_does_not() {
    for step in [Step::SyncFile, Step::SyncDirectory, Step::Write, Step::Name] {
        let directory = Directory::new();
        let is_failing = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_failing);
        let faults = Faults::new(move |now| match now == step && flag.load(Ordering::Relaxed) {
            true => Err(std::io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        });
        let inbox = Inbox::open_with(&directory.0, BOUNDS, faults).unwrap();
        let receiving = Receiving::start(&inbox).unwrap();
        upload(&receiving, "a", "before", b"x").unwrap();
        is_failing.store(true, Ordering::Relaxed);
        let error = upload(&receiving, "a", "x", b"x").unwrap_err();
        assert!(error.is_temporary(), "{error}");
        is_failing.store(false, Ordering::Relaxed);
        let is_sync = matches!(step, Step::SyncFile | Step::SyncDirectory);
        assert_eq!(matches!(error, InboxError::Broken(_)), is_sync, "{error}");
        assert_eq!(upload(&receiving, "a", "later", b"x").is_err(), is_sync);
        assert_eq!(receiving.acknowledged(), if is_sync { 1 } else { 2 });
        assert_eq!(directory.open().counts().unwrap().incoming, 0, "{step:?}");
    }
}

#[test]
fn what_is_refused_is_kept_as_it_came_with_its_reason_and_can_be_given_back() {
    let directory = Directory::new();
    let inbox = directory.open();
    let receiving = Receiving::start(&inbox).unwrap();
    upload(&receiving, "a", "x-1", b"secret").unwrap();
    let taking = Taking::start(&inbox).unwrap();
    let waiting = taking.next(1).unwrap().remove(0);
    taking.quarantine(&waiting, "the signature is wrong").unwrap();
    assert!(taking.next(9).unwrap().is_empty());
    let listed = list(&inbox).unwrap();
    assert_eq!((listed[0].name.as_str(), listed[0].reason.as_str()), ("x-1", "the signature is wrong"));
    assert_eq!(listed[0].arrived_ns, waiting.arrived_ns);
    assert_eq!(inbox.counts().unwrap().quarantined, 1);
    // The same name may come again meanwhile, and is refused as well.
    upload(&receiving, "a", "x-1", b"other").unwrap();
    assert_eq!(replay(&inbox, None).unwrap(), 0, "the name waits");
    taking.quarantine(&taking.next(1).unwrap()[0], "this too").unwrap();
    assert_eq!(list(&inbox).unwrap().len(), 2);
    assert_eq!(replay(&inbox, Some("b")).unwrap(), 0);
    assert_eq!(replay(&inbox, Some("a")).unwrap(), 1, "one name, one at a time");
    assert_eq!(taking.next(9).unwrap(), [waiting], "the same upload as before");
    assert_eq!(list(&inbox).unwrap().len(), 1);
}

#[test]
fn a_block_of_another_inbox_keeps_its_time_and_is_one_upload_however_often_it_comes() {
    let directory = Directory::new();
    let inbox = directory.open();
    let (receiving, taking) = (Receiving::start(&inbox).unwrap(), Taking::start(&inbox).unwrap());
    let come = |block: &[u8], arrived_ns: i64| {
        let mut upload = receiving.begin("a", "x").unwrap();
        upload.write(block).unwrap();
        upload.set_arrived(arrived_ns);
        upload.finish()
    };
    assert_eq!(come(b"one", 1_000_000_007), Ok(Acknowledged::New));
    assert_eq!(come(b"one", 1_000_000_007), Ok(Acknowledged::Again));
    assert!(taking.has("a", "x", 1_000_000_007) && !taking.has("a", "x", 1) && !taking.has("a", "y", 1_000_000_007));
    // The same bytes under the same name are another upload when they arrived at another time: it waits for its turn.
    assert!(matches!(come(b"one", 2_000_000_000), Err(InboxError::Exists(_))));
    let waiting = taking.next(9).unwrap();
    assert_eq!((waiting.len(), waiting[0].id().as_str()), (1, "a/x@1000000007"));
    let mut whole = Vec::new();
    waiting[0].each_part(|part| whole.extend_from_slice(part)).unwrap();
    assert_eq!(whole, b"one");
    // Refused again, it takes its own place in quarantine, and no other's.
    for block in [b"one", b"one", b"two"] {
        taking.settle(&waiting[0]).unwrap();
        come(block, 1_000_000_007).unwrap();
        taking.quarantine(&taking.next(1).unwrap()[0], "no").unwrap();
    }
    let kept = list(&inbox).unwrap();
    assert_eq!(kept.iter().map(|one| one.arrived_ns).collect::<Vec<_>>(), [1_000_000_007, 1_000_000_008]);
    assert_eq!(replay(&inbox, None).unwrap(), 1, "one name, one at a time");
}

#[test]
fn the_number_of_an_inbox_is_drawn_once() {
    let directory = Directory::new();
    let station = || Taking::start(&directory.open()).unwrap().station();
    let number = station().unwrap();
    assert_eq!((number.len(), station().unwrap()), (32, number));
    std::fs::write(directory.0.join("station"), "x").unwrap();
    assert!(station().unwrap_err().to_string().contains("remove it, and another is drawn"));
}

#[test]
fn one_process_at_a_time_processes_an_inbox() {
    let directory = Directory::new();
    let taking = Taking::start(&directory.open()).unwrap();
    let error = Taking::start(&directory.open()).unwrap_err().to_string();
    assert!(error.contains("another process"), "{error}");
    drop(taking);
    Taking::start(&directory.open()).unwrap();
}

#[test]
fn nothing_is_acknowledged_in_a_folder_that_was_moved_or_replaced() {
    for is_replaced in [false, true] {
        let (directory, moved) = (Directory::new(), Directory::new());
        let inbox = directory.open();
        let (receiving, taking) = (Receiving::start(&inbox).unwrap(), Taking::start(&inbox).unwrap());
        assert_eq!(upload(&receiving, "a", "1", b"first"), Ok(Acknowledged::New));
        let mut begun = receiving.begin("a", "2").unwrap();
        begun.write(b"second").unwrap();
        std::fs::rename(&directory.0, &moved.0).unwrap();
        if is_replaced {
            directory.open();
            std::fs::create_dir_all(directory.0.join("cameras/a/received")).unwrap();
        }
        begun.finish().unwrap_err();
        let refused = upload(&receiving, "a", "3", b"third").unwrap_err().to_string();
        assert!(refused.contains("was moved, removed or replaced"), "{refused}");
        assert!(receiving.broken().is_some());
        let refused = taking.next(9).unwrap_err();
        assert!(matches!(&refused, InboxError::Broken(reason) if reason.contains("was moved")), "{refused}");
        // What was acknowledged before is where the folder is.
        let found = Taking::start(&moved.open()).unwrap_err().to_string();
        assert!(found.contains("another process"), "{found}");
        drop(taking);
        assert_eq!(names(&Taking::start(&moved.open()).unwrap().next(9).unwrap()), ["1"]);
    }
}
