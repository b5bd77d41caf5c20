//! What becomes of blocks that wait: stored once, in each layout, with images in a folder or in the database; or kept in quarantine.

use loadline::recorder::config;
use loadline::recorder::inbox::{list, replay};
use loadline::recorder::processing::image_path;

use crate::centre::{Camera, Centre, open_database, process, rows, sha256, start_server};

/// Sends what a data centre sees: good blocks of two cameras, one of them twice under another name, a number with two contents, and one
/// of a stranger.
fn send_all(centre: &Centre) -> [Camera; 2] {
    let cameras = [centre.camera(1), centre.camera(2)];
    for camera in &cameras {
        for sequence in 0..5 {
            centre.upload(&camera.name, &format!("{sequence}.block"), &camera.block(sequence).2);
        }
    }
    let [first, second] = &cameras;
    centre.upload(&first.name, "again.block", &first.block(3).2);
    let (mut violation, image, _) = first.block(4);
    violation.speed_kmh += 1.0;
    centre.upload(&first.name, "other-speed.block", &first.sealer.seal(&violation, &image).unwrap());
    centre.upload(&first.name, "of-another.block", &second.block(9).2);
    cameras
}

const CONFLICT: &str = "is stored with other content";

fn check(centre: &Centre, layout: &str, processing: &str) {
    let config = config::read(&centre.text(layout, processing, ""), "test.toml").unwrap();
    let [first, second] = send_all(centre);
    let counts = process(&config);
    assert_eq!((counts.committed, counts.replayed, counts.waiting, counts.quarantined), (10, 1, 0, 2), "{counts:?}");
    let database = open_database(&config);
    let from = match layout {
        "wide" => "violation v",
        _ => "violation_values v JOIN violation_identity i ON i.measurement = v.measurement",
    };
    let sql = format!("SELECT camera, sequence, plate, image_sha256 FROM {from} ORDER BY camera, sequence");
    let stored = rows(&*database, &sql);
    let expected = |camera: &Camera, sequence| {
        let (violation, image, _) = camera.block(sequence);
        let hash = sha256(&image);
        (format!("{}|{sequence}|{}|{hash}", camera.name, violation.plate), image, hash)
    };
    let all: Vec<_> =
        [&first, &second].into_iter().flat_map(|camera| (0..5).map(move |sequence| (camera, sequence))).collect();
    for ((camera, sequence), stored) in all.iter().zip(&stored) {
        let (row, image, hash) = expected(camera, *sequence);
        assert_eq!(*stored, row);
        if processing.contains("images =") {
            assert_eq!(std::fs::read(image_path(&centre.directory.join("images"), &hash)).unwrap(), image);
        }
    }
    assert_eq!(stored.len(), all.len());
    if processing.contains("database") {
        assert_eq!(rows(&*database, "SELECT COUNT(*) FROM violation_image"), ["10"]);
    }
    let refused = list(&centre.inbox()).unwrap();
    let reason = |name: &str| refused.iter().find(|one| one.name == name).unwrap().reason.clone();
    assert!(reason("other-speed.block").contains(CONFLICT), "{refused:?}");
    assert!(reason("of-another.block").contains("its key is none of camera"), "{refused:?}");
    // Given back they are refused again, and nothing is counted twice.
    assert_eq!(replay(&centre.inbox(), None).unwrap(), 2);
    let again = process(&config);
    assert_eq!((again.committed, again.replayed, again.quarantined), (10, 1, 2), "{again:?}");
}

#[test]
fn blocks_are_stored_once_in_sqlite_with_images_in_a_folder() {
    for layout in ["star", "wide"] {
        let centre = Centre::new();
        check(&centre, layout, &format!("images = \"{}\"", centre.path("images")));
    }
}

#[test]
fn blocks_are_stored_once_in_sqlite_with_images_in_the_database() {
    check(&Centre::new(), "star", "images_in = \"database\"\nbatch = 3\nworkers = 3");
}

#[test]
fn blocks_are_stored_once_in_servers() {
    for name in ["mariadb", "postgres"] {
        let mut centre = Centre::new();
        let (_server, database) = start_server(name);
        centre.database = database;
        let images = match name {
            "mariadb" => format!("images = \"{}\"", centre.path("images")),
            _ => "images_in = \"database\"".to_owned(),
        };
        check(&centre, if name == "mariadb" { "star" } else { "wide" }, &images);
    }
}

#[test]
fn cameras_are_let_in_and_shut_out_while_blocks_are_processed() {
    let centre = Centre::new();
    let first = centre.camera(1);
    centre.upload(&first.name, "a", &first.block(1).2);
    let config = centre.config("star");
    assert_eq!(process(&config).committed, 1);
    let second = centre.camera(2);
    centre.upload(&second.name, "a", &second.block(1).2);
    assert_eq!(process(&config).committed, 2);
    std::fs::write(centre.directory.join("signers"), "# nobody\n").unwrap();
    centre.upload(&first.name, "b", &first.block(2).2);
    let counts = process(&config);
    assert_eq!((counts.committed, counts.quarantined), (2, 1));
    let error = std::fs::write(centre.directory.join("signers"), "CAM-1 ssh-rsa AAAA\n")
        .map(|()| {
            loadline::recorder::processing::Processing::start(
                &config,
                config.processing.as_ref().unwrap(),
                open_database(&config),
            )
        })
        .unwrap()
        .unwrap_err();
    assert!(error.contains("processing.signers: ") && error.contains("line 1"), "{error}");
}

#[test]
fn what_a_camera_dates_years_away_is_not_stored_until_somebody_says_so() {
    let centre = Centre::new();
    let camera = centre.camera(1);
    let day_ns = 86_400 * 1_000_000_000_i64;
    let now_ns = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as i64;
    let send = |sequence: u64, days: i64| {
        let (mut violation, image, _) = camera.block(sequence);
        violation.time_ns = now_ns + days * day_ns;
        centre.upload(&camera.name, &format!("{sequence}-{days}"), &camera.sealer.seal(&violation, &image).unwrap());
    };
    // A clock that stands at 1970, one that is years ahead, and dates at the edges.
    for (sequence, days) in [(1, -19_000), (2, 1_000), (3, -360), (4, -368), (5, 0)] {
        send(sequence, days);
    }
    let config = |age: &str| {
        let images = format!("images = \"{}\"\n{age}", centre.path("images"));
        config::read(&centre.text("star", &images, ""), "test.toml").unwrap()
    };
    let usual = config("# age = as it is without\n");
    let counts = process(&usual);
    assert_eq!((counts.committed, counts.quarantined, counts.waiting), (2, 3, 0), "{counts:?}");
    let refused = list(&centre.inbox()).unwrap();
    let reason = |begins: &str| refused.iter().find(|one| one.name.starts_with(begins)).unwrap().reason.clone();
    for (name, setting, bound) in [("1-", "age", "8784 h"), ("2-", "ahead", "24 h"), ("4-", "age", "8784 h")] {
        let reason = reason(name);
        let says = format!("this machine's clock, and processing.{setting} is {bound}: set the camera's clock");
        assert!(reason.starts_with("its time is ") && reason.contains(&says), "{reason}");
    }
    // One that is right is given back under another bound, and what was stored before is no news whatever the bound is.
    assert_eq!(replay(&centre.inbox(), None).unwrap(), 3);
    let counts = process(&config("age = \"400d\"\n"));
    assert_eq!((counts.committed, counts.quarantined), (3, 2), "{counts:?}");
    let (mut violation, image, _) = camera.block(4);
    violation.time_ns = now_ns - 368 * day_ns;
    centre.upload(&camera.name, "4-again", &camera.sealer.seal(&violation, &image).unwrap());
    let counts = process(&usual);
    assert_eq!((counts.committed, counts.replayed, counts.quarantined), (3, 1, 2), "{counts:?}");
}
