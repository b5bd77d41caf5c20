//! Tests of spools of older versions.

use std::time::Duration;

use super::*;
use crate::recorder::spool::file::tests::{Directory, append, assert_counted, offer, waiting};
use crate::recorder::spool::{SpoolFile, Stored, list as list_any};

/// Creates the database of a spool as version 4 did, with this many entries.
fn database(directory: &Directory, entries: u32) -> Connection {
    let database = schema::connect(&directory.0.join(NAME)).unwrap();
    database.execute("UPDATE fact SET value = 1 WHERE name = 'lanes'", []).unwrap();
    database.execute("UPDATE fact SET value = 'r' WHERE name = 'recorder'", []).unwrap();
    for number in 1..=entries {
        put(&database, &offer(number));
    }
    database.execute("UPDATE fact SET value = 2 * ? WHERE name = 'acknowledged'", [entries]).unwrap();
    database
}

fn put(database: &Connection, offer: &Offer) {
    let insert = "INSERT INTO entry (lane, source, sender, message_id, received_ns, precision, rows, checksum, body) \
                  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)";
    let values = rusqlite::params![
        offer.lane,
        &*offer.source,
        &*offer.sender,
        offer.message_id,
        offer.received_ns,
        offer.precision.code(),
        offer.rows,
        checksum(offer),
        offer.body
    ];
    database.execute(insert, values).unwrap();
}

#[test]
fn everything_of_a_database_is_in_the_logs_before_it_is_removed() {
    let directory = Directory::new();
    let old = database(&directory, 3);
    old.execute("INSERT INTO lane VALUES (0, 'r', 1)", []).unwrap();
    old.execute("INSERT INTO opening VALUES (0, 1, 'token', 2)", []).unwrap();
    old.execute("INSERT INTO apart VALUES ('m', 501)", []).unwrap();
    old.execute("UPDATE entry SET body = x'00' WHERE sequence = 2", []).unwrap();
    let refuse = "INSERT INTO quarantine (entry, row, rows, source, received_ns, precision, quarantined_ns, reason, body, checksum) \
                  VALUES (1, 0, 1, 's', 5, 0, 6, 'no', x'6d0a', ?)";
    old.execute(refuse, [crc32fast::hash(b"m\n")]).unwrap();
    let ids = "INSERT INTO message VALUES ('tests', 'old', 5), ('tests', 'access a' || char(10) || 'new', 5)";
    old.execute(ids, []).unwrap();
    drop(old);
    assert_eq!(list_any(&directory.0, 5).unwrap()[0].line, "m");
    let mut file = SpoolFile::open(&directory.0, 1 << 20, Duration::from_secs(3_600)).unwrap();
    assert!(!directory.0.join(NAME).exists() && file.damage().is_none());
    let counts = file.counts();
    assert_eq!((counts.acknowledged, counts.committed, counts.spooled, counts.quarantined), (6, 0, 3, 3));
    assert_counted(&mut file);
    assert_eq!(waiting(&file).iter().map(|entry| entry.sequence).collect::<Vec<_>>(), [1, 3]);
    let opening = file.lane_opening(0).unwrap();
    assert_eq!((&*opening.recorder, &*opening.openings[0].token, opening.openings[1].newest), ("r", "token", 3));
    assert_eq!(file.apart()["m"], 501);
    let message = |id: &str| Offer { message_id: id.into(), ..offer(1) };
    // Ids that were kept without owners are recognised, and no new id is kept that way.
    let again = append(&mut file, &[message("access a\nold"), message("access a\nnew"), message("access b\nnew")]);
    assert_eq!(again, [Stored::Duplicate, Stored::Duplicate, Stored::New(4)]);
    drop(file);
    let listed = list_any(&directory.0, 5).unwrap();
    assert_eq!(listed.iter().map(|one| one.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(directory.open().counts().acknowledged, 8);
}

#[test]
fn an_attempt_that_was_cut_off_is_made_again_and_one_that_was_not_is_not() {
    let directory = Directory::new();
    drop(database(&directory, 3));
    std::fs::create_dir_all(directory.0.join("lasting")).unwrap();
    std::fs::write(directory.0.join("lasting/segment-0000000001"), b"half").unwrap();
    let mut file = directory.open();
    assert_eq!(waiting(&file).len(), 3);
    append(&mut file, &[offer(4)]);
    drop(file);
    // The power went before the database was removed.
    drop(database(&directory, 9));
    let file = directory.open();
    assert_eq!((waiting(&file).len(), directory.0.join(NAME).exists()), (4, false));
}

#[test]
fn older_versions_are_read_and_later_ones_refused() {
    let directory = Directory::new();
    let old = database(&directory, 1);
    let older = "DROP TABLE lane; DROP TABLE opening; DROP TABLE apart; UPDATE fact SET value = 1 WHERE name = 'version'; \
         ALTER TABLE entry DROP COLUMN sender; ALTER TABLE quarantine DROP COLUMN sender";
    old.execute_batch(older).unwrap();
    drop(old);
    let mut file = directory.open();
    assert_eq!((waiting(&file).len(), file.lane_opening(0).unwrap().openings[0].newest), (1, 1));
    drop(file);
    let directory = Directory::new();
    database(&directory, 1).execute("UPDATE fact SET value = 9 WHERE name = 'version'", []).unwrap();
    let refused = SpoolFile::open(&directory.0, 1 << 20, Duration::from_secs(1)).unwrap_err().to_string();
    assert!(refused.contains("version of its spool.db is 9 and this loadline reads those up to 4"), "{refused}");
    assert!(directory.0.join(NAME).exists());
}

#[test]
fn a_damaged_database_is_kept_aside_and_what_is_readable_goes_on() {
    let directory = Directory::new();
    let old = database(&directory, 0);
    for number in 0..200 {
        put(&old, &Offer { body: vec![b'x'; 2_000], ..offer(number) });
    }
    old.execute("INSERT INTO lane VALUES (0, 'r', 1)", []).unwrap();
    old.execute("INSERT INTO opening VALUES (0, 1, 'token', 0)", []).unwrap();
    drop(old);
    let path = directory.0.join(NAME);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 20_000].fill(0xa5);
    std::fs::write(&path, bytes).unwrap();
    let mut file = directory.open();
    let salvaged = file.damage().older.clone().unwrap();
    assert!(salvaged.kept.exists() && salvaged.read > 50 && salvaged.read < 200, "{salvaged:?}");
    let opening = file.lane_opening(0).unwrap();
    assert_eq!((&*opening.recorder, &*opening.openings[0].token, opening.openings[1].newest), ("r", "token", 200));
    let newest = append(&mut file, &[offer(1)]);
    assert!(matches!(newest[..], [Stored::New(sequence)] if sequence > 200), "{newest:?}");
    drop(file);
    assert!(directory.open().damage().is_none());
}

#[test]
fn every_part_of_an_entry_is_covered_by_its_checksum() {
    let offer = Offer {
        lane: 1,
        source: "s".into(),
        sender: "n".into(),
        message_id: "i".into(),
        received_ns: 5,
        precision: Precision::Seconds,
        rows: 1,
        body: b"m f=1\n".to_vec(),
        is_packed: false,
    };
    let others = [
        Offer { lane: 2, ..offer.clone() },
        Offer { source: "si".into(), message_id: String::new(), ..offer.clone() },
        Offer { sender: "m".into(), ..offer.clone() },
        Offer { message_id: "j".into(), ..offer.clone() },
        Offer { received_ns: 6, ..offer.clone() },
        Offer { precision: Precision::Hours, ..offer.clone() },
        Offer { rows: 2, ..offer.clone() },
        Offer { body: b"m f=2\n".to_vec(), ..offer.clone() },
    ];
    for other in others {
        assert_ne!(checksum(&other), checksum(&offer), "{other:?}");
    }
}
