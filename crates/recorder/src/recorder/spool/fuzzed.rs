//! Fuzzing: an offer comes back as it was stored, and what somebody else wrote into the file is never taken for a whole entry.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::types::Value;
use rusqlite::{Connection, params};

use super::{Offer, Reader, SpoolFile, Stored};
use crate::fuzzed::Target;
use crate::recorder::line::Precision;

/// Entries of the spool.
pub static SPOOL: Target = Target {
    name: "spool",
    run: |input| {
        PLACE.with(|place| {
            let mut place = place.borrow_mut();
            place.get_or_insert_with(Place::new).try_with(input);
        });
    },
    seeds: || {
        vec![
            b"\0\x05\x01sourceid m f=1 5\n".to_vec(),
            b"\x01\x05\x02source\xffid m f=1 5\n".to_vec(),
            b"\x02\x07\x01\0\xff\xfe\x03body".to_vec(),
        ]
    },
    words: &["\u{0}", "m f=1\n", "owner\nid"],
    memory: (256 << 10, 64),
    is_linear: true,
};

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// A spool that all inputs go through, one after another.
struct Place {
    file: SpoolFile,
    reader: Reader,
    /// Somebody else who writes into the file.
    other: Connection,
    directory: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Takes parts off the front.
struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    fn take(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(most.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn text(&mut self) -> String {
        let length = usize::from(self.byte() % 32);
        String::from_utf8_lossy(self.take(length)).into_owned()
    }

    /// A value of any type that SQLite knows, whatever the column's is.
    fn value(&mut self) -> Value {
        match self.byte() % 6 {
            0 => Value::Null,
            1 => Value::Real(f64::from(self.byte()) * 1e18),
            2 => Value::Text(self.text()),
            3 => Value::Blob(self.take(8).to_vec()),
            4 => Value::Integer(i64::MIN + i64::from(self.byte())),
            _ => Value::Integer(i64::from(self.byte()) - 8),
        }
    }
}

impl Place {
    fn new() -> Self {
        let name = format!("loadline-fuzzed-{}-{:?}", std::process::id(), std::thread::current().id());
        let memory = PathBuf::from("/dev/shm");
        let directory = if memory.is_dir() { memory } else { std::env::temp_dir() }.join(name);
        let file =
            SpoolFile::open(&directory, 1 << 30, Duration::from_secs(3600)).unwrap_or_else(|error| panic!("{error}"));
        let reader = Reader::open(file.path()).unwrap_or_else(|error| panic!("{error}"));
        let other = Connection::open(file.path()).unwrap_or_else(|error| panic!("{error}"));
        let _ = other.execute_batch("PRAGMA synchronous = OFF; PRAGMA ignore_check_constraints = ON");
        let _ = file.connection().execute_batch("PRAGMA synchronous = OFF");
        Place { file, reader, other, directory }
    }

    fn try_with(&mut self, input: &[u8]) {
        let mut parts = Parts(input);
        let (kind, precision, rows) = (parts.byte(), parts.byte(), parts.byte());
        let (source, sender, message_id) = (parts.text(), parts.text(), parts.text());
        let received_ns = i64::from_le_bytes(std::array::from_fn(|_| parts.byte()));
        let precision = Precision::from_code(precision % 7).unwrap_or_default();
        let (source, sender, rows) = (source.into(), sender.into(), u32::from(rows) + 1);
        let mut offer = Offer { lane: 0, source, sender, message_id, received_ns, precision, rows, body: Vec::new() };
        if kind % 2 == 0 {
            offer.body = parts.0.to_vec();
            self.store(&offer);
        } else {
            self.write_otherwise(&offer, &mut parts);
        }
        let emptied = self.other.execute_batch("DELETE FROM entry; DELETE FROM message; DELETE FROM quarantine");
        emptied.unwrap_or_else(|error| panic!("{error}"));
    }

    /// What is stored is read again as it was, and once.
    fn store(&mut self, offer: &Offer) {
        let mut group = self.file.begin().unwrap_or_else(|error| panic!("{error}"));
        let stored = group.append(offer).unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(stored, Stored::New(_)), "nothing is stored before");
        if !offer.message_id.is_empty() {
            assert_eq!(group.append(offer), Ok(Stored::Duplicate));
        }
        group.commit().unwrap_or_else(|error| panic!("{error}"));
        let found = self.reader.read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap_or_else(|error| panic!("{error}"));
        let [Ok(entry)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(entry.offer, *offer);
    }

    /// Another value in one column, or all of them, with the checksum of the true ones.
    fn write_otherwise(&mut self, offer: &Offer, parts: &mut Parts<'_>) {
        let place = usize::from(parts.byte() % 9);
        let other = parts.value();
        let offer = Offer { body: parts.0.to_vec(), ..offer.clone() };
        let true_values = [
            Value::Text(offer.source.to_string()),
            Value::Text(offer.sender.to_string()),
            Value::Text(offer.message_id.clone()),
            Value::Integer(offer.received_ns),
            Value::Integer(offer.precision.code().into()),
            Value::Integer(offer.rows.into()),
            Value::Integer(offer.checksum().into()),
            Value::Blob(offer.body.clone()),
        ];
        let mut values = true_values.clone();
        if let Some(value) = values.get_mut(place) {
            *value = other;
        }
        let insert = "INSERT INTO entry (lane, source, sender, message_id, received_ns, precision, rows, checksum, body) \
                      VALUES (0, ?, ?, ?, ?, ?, ?, ?, ?)";
        let [a, b, c, d, e, f, g, h] = &values;
        // SQLite refuses null where there must be a value.
        if self.other.execute(insert, params![a, b, c, d, e, f, g, h]).is_err() {
            return;
        }
        let Ok(found) = self.reader.read(0, (0, i64::MAX), usize::MAX, u64::MAX) else { return };
        for entry in found.into_iter().flatten() {
            assert_eq!(entry.offer, offer, "another entry is taken for a whole one");
        }
    }
}
