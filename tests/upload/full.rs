//! No room, and disks that fail.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loadline::recorder::inbox::{Faults, Step};

use crate::client::{CAMERA, PASSWORD, Try, block};

#[test]
fn a_full_inbox_refuses_before_and_while_a_block_is_sent_and_takes_in_again() {
    let inbox = "bound = \"2MiB\"\nbound_per_camera = \"1MiB\"\nblock = \"500KiB\"";
    let tried = Try::with(inbox, "", "", "", Faults::default());
    let mut ftp = tried.log_in();
    for number in 0..2 {
        assert!(ftp.store(&format!("{number}.block"), &block(number, 500_000)).starts_with("226 "));
    }
    let reply = ftp.store("2.block", &block(2, 500_000));
    assert!(reply.starts_with("452 ") && reply.contains("send again later"), "{reply}");
    // Another camera has room.
    let mut other = tried.connect();
    other.log_in("GDA-018", PASSWORD);
    assert!(other.store("0.block", &block(0, 500_000)).starts_with("226 "));
    let reply = ftp.store("large.block", &block(3, 600_000));
    assert!(reply.starts_with("552 ") || reply.starts_with("452 "), "{reply}");
    tried.assert_nothing_half();
    let received = tried.inbox.path().join("cameras").join(CAMERA).join("received");
    std::fs::remove_file(received.join("0.block")).unwrap();
    crate::client::wait_until("there is room again", || ftp.store("2.block", &block(2, 500_000)).starts_with("226 "));
    assert_eq!(tried.names(CAMERA), ["1.block", "2.block"]);
}

#[test]
fn a_block_that_is_too_large_is_refused_by_its_announcement_or_by_its_bytes() {
    let tried = Try::with("block = \"100KiB\"", "", "", "", Faults::default());
    let mut ftp = tried.log_in();
    ftp.passive();
    ftp.expect("ALLO 102401", "200 ");
    ftp.expect("STOR a.block", "552 ");
    assert!(ftp.store("a.block", &block(1, 102_401)).starts_with("552 "));
    assert!(ftp.store("a.block", &block(1, 102_400)).starts_with("226 "));
    tried.assert_nothing_half();
    assert_eq!(tried.metric("loadline_uploads_refused_total{reason=\"large\"}"), 2);
}

/// A disk whose next step of a kind fails.
fn failing(step: Step, kind: io::ErrorKind) -> (Faults, Arc<AtomicBool>) {
    let fails = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&fails);
    let faults = Faults::new(move |now| match now == step && told.load(Ordering::Relaxed) {
        true => Err(io::Error::from(kind)),
        false => Ok(()),
    });
    (faults, fails)
}

#[test]
fn a_disk_that_is_full_refuses_a_block_and_takes_the_next_when_there_is_room() {
    for step in [Step::Write, Step::Name] {
        let (faults, fails) = failing(step, io::ErrorKind::StorageFull);
        let tried = Try::with("", "", "", "", faults);
        let mut ftp = tried.log_in();
        fails.store(true, Ordering::Relaxed);
        let reply = ftp.store("a.block", &block(1, 300_000));
        assert!(reply.starts_with("452 "), "{step:?}: {reply}");
        assert_eq!(tried.names(CAMERA), [""; 0]);
        tried.assert_nothing_half();
        fails.store(false, Ordering::Relaxed);
        assert!(ftp.store("a.block", &block(1, 300_000)).starts_with("226 "));
        assert_eq!(tried.station().failure(), None);
    }
}

#[test]
fn after_a_sync_that_failed_nothing_is_acknowledged_until_a_new_start() {
    for step in [Step::SyncFile, Step::SyncDirectory] {
        let (faults, fails) = failing(step, io::ErrorKind::Other);
        let mut tried = Try::with("", "", "", "", faults);
        let mut ftp = tried.log_in();
        assert!(ftp.store("before.block", &block(1, 1_000)).starts_with("226 "));
        fails.store(true, Ordering::Relaxed);
        assert!(ftp.store("a.block", &block(2, 1_000)).starts_with("451 "));
        fails.store(false, Ordering::Relaxed);
        let reply = ftp.store("b.block", &block(3, 1_000));
        assert!(reply.starts_with("451 ") && reply.contains("start again"), "{step:?}: {reply}");
        assert!(tried.station().failure().is_some(), "the process is to end");
        assert_eq!(tried.metric("loadline_inbox_broken"), 1);
        drop(ftp);
        tried.restart();
        assert!(tried.log_in().store("a.block", &block(2, 1_000)).starts_with("226 "));
        let stored = tried.received(CAMERA);
        assert!(stored.contains(&("before.block".to_owned(), block(1, 1_000))), "what was acknowledged is there");
        assert!(!stored.iter().any(|(name, _)| name == "b.block"));
    }
}
