//! Fuzzing: an offer is read as it was stored, and any bytes of a frame are read as facts or as none. What is read is written again unchanged.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use super::fact::{ENTRY, FACTS, facts_of};
use super::{Offer, SpoolFile, Stored};
use crate::fuzzed::Target;
use crate::recorder::line::Precision;

/// The fuzz target for entries of the spool.
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
            b"\x03\x10\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x04\x0c\0\0\0\x05\0\0\0\x09\0\0\0\0\0\0\0".to_vec(),
        ]
    },
    words: &["\u{0}", "m f=1\n", "owner\nid"],
    memory: (256 << 10, 64),
    is_linear: true,
};

thread_local! {
    static PLACE: RefCell<Option<Place>> = const { RefCell::new(None) };
}

/// The spool that all inputs go through, one after another.
struct Place {
    file: SpoolFile,
    directory: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

/// Takes parts off the front of the input.
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
}

impl Place {
    fn new() -> Self {
        let name = format!("loadline-fuzzed-{}-{:?}", std::process::id(), std::thread::current().id());
        let memory = PathBuf::from("/dev/shm");
        let directory = if memory.is_dir() { memory } else { std::env::temp_dir() }.join(name);
        let file =
            SpoolFile::open(&directory, 1 << 24, Duration::from_secs(3600)).unwrap_or_else(|error| panic!("{error}"));
        Place { file, directory }
    }

    fn try_with(&mut self, input: &[u8]) {
        let mut parts = Parts(input);
        let (kind, precision, rows) = (parts.byte(), parts.byte(), parts.byte());
        let (source, sender, message_id) = (parts.text(), parts.text(), parts.text());
        let received_ns = i64::from_le_bytes(std::array::from_fn(|_| parts.byte()));
        let precision = Precision::from_code(precision % 7).unwrap_or_default();
        let (source, sender, rows) = (source.into(), sender.into(), u32::from(rows) + 1);
        let mut offer = Offer {
            lane: 0,
            source,
            sender,
            message_id,
            received_ns,
            precision,
            rows,
            body: Vec::new(),
            is_packed: false,
        };
        if kind % 2 == 0 {
            offer.body = parts.0.to_vec();
            self.store(&offer);
        } else {
            read_as_facts(input);
        }
    }

    /// Asserts that a stored offer is read again unchanged, and once.
    fn store(&mut self, offer: &Offer) {
        let mut group = self.file.begin().unwrap_or_else(|error| panic!("{error}"));
        let stored = group.append(offer).unwrap_or_else(|error| panic!("{error}"));
        assert!(matches!(stored, Stored::New(_)), "nothing is stored before");
        if !offer.message_id.is_empty() {
            assert_eq!(group.append(offer), Ok(Stored::Duplicate));
        }
        group.commit().unwrap_or_else(|error| panic!("{error}"));
        let reader = self.file.reader();
        let found = reader.read(0, (0, i64::MAX), usize::MAX, u64::MAX).unwrap_or_else(|error| panic!("{error}"));
        let [Ok(entry)] = &found[..] else { panic!("{found:?}") };
        assert_eq!(entry.offer, *offer);
        let mut group = self.file.begin().unwrap_or_else(|error| panic!("{error}"));
        group.settle(0, i64::MAX).unwrap_or_else(|error| panic!("{error}"));
        group.forget_messages_at(i64::MAX).unwrap_or_else(|error| panic!("{error}"));
        group.commit().unwrap_or_else(|error| panic!("{error}"));
        self.file.tidy().unwrap_or_else(|error| panic!("{error}"));
    }
}

/// Asserts that whatever is read from the bytes of a frame is read again when it is written.
fn read_as_facts(bytes: &[u8]) {
    for kind in [ENTRY, FACTS] {
        let found: Vec<_> = facts_of(kind, bytes).into_iter().map(|(fact, ..)| fact).collect();
        let mut again = Vec::new();
        for fact in &found {
            fact.append_to(&mut again);
        }
        let read: Vec<_> = facts_of(FACTS, &again).into_iter().map(|(fact, ..)| fact).collect();
        assert_eq!(read, found);
    }
}
