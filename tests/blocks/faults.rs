//! Faults: the processing killed at random moments, a database that is away, a disk that is full. What was acknowledged is stored once; what is not
//! authorised is not stored; what is well is not held up.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loadline::recorder::config;
use loadline::recorder::inbox::{Receiving, Taking, list};
use loadline::recorder::processing::image_path;

use crate::centre::{Centre, process, start, upload, wait_until};

fn spawn(config: &str) -> Child {
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", config]).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// The files of a folder of images that have a name, by hash.
fn images(folder: &Path) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for directory in entries.filter(|path| path.is_dir()) {
        for file in std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()) {
            assert!(!directory.ends_with("new"), "{} was left", file.display());
            found.insert(file.file_stem().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

#[test]
fn killed_at_random_moments_everything_acknowledged_is_stored_once() {
    let centre = Centre::new();
    let camera = centre.camera(1);
    let images_in = format!("images = \"{}\"\nbatch = 5", centre.path("images"));
    std::fs::write(centre.path("c.toml"), centre.text("star", &images_in, "")).unwrap();
    let (inbox, ends) = (centre.inbox(), AtomicBool::new(false));
    let blocks: Vec<_> = (0..24).map(|sequence| camera.block(sequence).2).collect();
    let acknowledged = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let receiving = Receiving::start(&inbox).unwrap();
            let mut acknowledged = 0_u64;
            while !ends.load(Ordering::Relaxed) {
                // Each number comes again and again, under other names: the first is new, all others bring nothing new.
                let sequence = acknowledged as usize % blocks.len();
                upload(&receiving, &camera.name, &format!("{acknowledged}"), &blocks[sequence]);
                acknowledged += 1;
                std::thread::sleep(Duration::from_millis(2));
            }
            acknowledged
        });
        for round in 0..12 {
            let mut child = spawn(&centre.path("c.toml"));
            std::thread::sleep(Duration::from_millis(60 + 47 * (round % 5)));
            child.kill().unwrap();
            child.wait().unwrap();
        }
        ends.store(true, Ordering::Relaxed);
        sender.join().unwrap()
    });
    let counts = process(&config::read(&centre.text("star", &images_in, ""), "c.toml").unwrap());
    assert_eq!(counts.committed + counts.replayed, acknowledged, "{counts:?}");
    assert_eq!((counts.waiting, counts.quarantined), (0, 0));
    let distinct = acknowledged.min(24);
    let sequences = centre.query("SELECT sequence FROM violation_values ORDER BY sequence");
    assert_eq!(sequences, (0..distinct).map(|sequence| sequence.to_string()).collect::<Vec<_>>());
    let hashes = centre.query("SELECT image_sha256 FROM violation_values").into_iter().collect::<BTreeSet<_>>();
    assert_eq!(images(&centre.directory.join("images")), hashes, "every image is there, and no other");
}

#[test]
fn a_database_that_is_away_is_waited_for() {
    let centre = Centre::new();
    let camera = centre.camera(1);
    let config = centre.config("star");
    centre.upload(&camera.name, "0", &camera.block(0).2);
    process(&config);
    let other = rusqlite::Connection::open(centre.path("violations.db")).unwrap();
    other.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let processing = start(&config);
    for sequence in 1..4 {
        centre.upload(&camera.name, &format!("{sequence}"), &camera.block(sequence).2);
    }
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!((processing.counts().waiting, processing.failure()), (3, None));
    other.execute_batch("ROLLBACK").unwrap();
    wait_until(|| processing.counts().waiting == 0);
    let counts = processing.stop();
    assert_eq!((counts.committed, counts.quarantined), (4, 0));
}

#[test]
fn a_full_disk_for_images_is_waited_for_and_nothing_half_is_left() {
    let centre = Centre::new();
    let camera = centre.camera(1);
    let folder = centre.directory.join("images");
    std::fs::create_dir(&folder).unwrap();
    let text = |text: &str| CString::new(text).unwrap();
    let (target, kind, options) = (text(folder.to_str().unwrap()), text("tmpfs"), text("size=64k"));
    // SAFETY: all pointers are to zero-terminated texts that live until the call returns.
    let mounted = unsafe { libc::mount(kind.as_ptr(), target.as_ptr(), kind.as_ptr(), 0, options.as_ptr().cast()) };
    assert_eq!(mounted, 0, "this test mounts a tmpfs; run it as root");
    let filler = folder.join("filler");
    std::fs::write(&filler, vec![1; 60 << 10]).unwrap();
    centre.upload(&camera.name, "0", &camera.block(0).2);
    let processing = start(&centre.config("star"));
    std::thread::sleep(Duration::from_millis(300));
    let (waiting, failure) = (processing.counts().waiting, processing.failure());
    std::fs::remove_file(&filler).unwrap();
    wait_until(|| processing.counts().waiting == 0);
    let counts = processing.stop();
    // While it is tried again and again, a half may be there for a moment.
    let left = std::fs::read_dir(folder.join("new")).unwrap().count();
    let hash = centre.query("SELECT image_sha256 FROM violation_values").remove(0);
    let stored = std::fs::read(image_path(&folder, &hash)).unwrap();
    // SAFETY: the pointer is to a zero-terminated text that lives until the call returns.
    unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    assert_eq!((waiting, failure, left), (1, None, 0));
    assert_eq!((counts.committed, counts.quarantined), (1, 0));
    assert_eq!(stored, camera.block(0).1);
}

#[test]
fn what_is_not_authorised_is_kept_as_it_came_and_the_others_are_stored() {
    let (centre, elsewhere) = (Centre::new(), Centre::new());
    let (camera, other) = (centre.camera(1), elsewhere.camera(1));
    let good = camera.block(1).2;
    let mut bad = vec![
        ("wrong-key".to_owned(), other.block(2).2, "its key is none of camera"),
        ("empty".to_owned(), Vec::new(), "form: "),
        ("text".to_owned(), b"no block at all".to_vec(), "form: "),
        (
            "bomb".to_owned(),
            camera.sealer.seal_compressed(&zstd::bulk::compress(&vec![0; 64 << 20], 3).unwrap()).unwrap(),
            "unpacks to more",
        ),
        ("names".to_owned(), camera.sealer.seal_archive(b"../../etc/passwd").unwrap(), "archive: "),
        (
            "record".to_owned(),
            camera.sealer.seal_files(b"<!DOCTYPE x><violation/>", &camera.block(2).1, 0).unwrap(),
            "document type",
        ),
    ];
    for part in 1..=12 {
        let at = good.len() * part / 13;
        let mut flipped = good.clone();
        flipped[at] ^= 0x10;
        bad.push((format!("flipped-{at}"), flipped, ": "));
        bad.push((format!("cut-{at}"), good[..at].to_vec(), ": "));
    }
    for (name, block, _) in &bad {
        centre.upload(&camera.name, name, block);
    }
    centre.upload(&camera.name, "good", &good);
    let counts = process(&centre.config("star"));
    assert_eq!((counts.committed, counts.quarantined), (1, bad.len() as u64), "{:?}", list(&centre.inbox()));
    assert_eq!(images(&centre.directory.join("images")).len(), 1);
    for one in list(&centre.inbox()).unwrap() {
        let (_, block, expected) = bad.iter().find(|(name, _, _)| *name == one.name).unwrap();
        assert!(one.reason.contains(expected), "{}: {}", one.name, one.reason);
        let kept = centre
            .directory
            .join("inbox/quarantine")
            .join(&one.camera)
            .join(format!("{:020}-{}", one.arrived_ns, one.name));
        assert_eq!(std::fs::read(kept).unwrap(), *block);
    }
}

#[test]
fn a_second_processing_is_refused() {
    let centre = Centre::new();
    let _taking = Taking::start(&centre.inbox()).unwrap();
    std::fs::write(centre.path("c.toml"), centre.text("star", &format!("images = \"{}\"", centre.path("images")), ""))
        .unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &centre.path("c.toml")]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("another process processes it"));
}
