//! Checks waiting entries slowly, so that bits that changed at rest are noticed before the database takes entries again. Main type: [`Scrub`].

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use loadline_segments::segments::ReadError;

use super::reader::Shelf;
use crate::recorder::log;

/// How often a part is checked, and how many bytes of it.
const EVERY: Duration = Duration::from_secs(1);
const BYTES: u64 = 1 << 20;
/// The number of damaged entries that are remembered, so that each is reported once.
const KNOWN_MAX: usize = 1_000;

/// The progress of the checks.
#[derive(Debug)]
pub(super) struct Scrub {
    /// The lane and the entry that were checked last.
    at: (u32, i64),
    looked: Instant,
    known: BTreeSet<i64>,
}

impl Scrub {
    pub(super) fn new(now: Instant) -> Self {
        Scrub { at: (0, i64::MIN), looked: now, known: BTreeSet::new() }
    }

    /// Checks some more waiting entries, if it is time. A damaged entry stays where it is: its writer puts it into quarantine.
    pub(super) fn look_if_due(&mut self, shelf: &Shelf, now: Instant) {
        if now.saturating_duration_since(self.looked) < EVERY {
            return;
        }
        self.looked = now;
        for sequence in self.look_at_some(shelf) {
            let remedy =
                "look at the disk of spool.path; the writer puts the entry into quarantine when it comes to it";
            log::error(
                "an entry that waits in the spool is damaged",
                &[("entry", &sequence.to_string()), ("remedy", remedy)],
            );
        }
    }

    /// Returns the entries that are found damaged in the next MiB.
    pub(super) fn look_at_some(&mut self, shelf: &Shelf) -> Vec<i64> {
        let (mut bytes, mut damaged) = (0, Vec::new());
        while bytes < BYTES {
            let next = {
                let index = shelf.index();
                index.next_entry(self.at).map(|(lane, sequence, entry)| {
                    (lane, sequence, entry.place, index.segment(entry.place.log, entry.place.segment).epoch)
                })
            };
            let Some((lane, sequence, place, epoch)) = next else {
                self.at = (0, i64::MIN);
                break;
            };
            self.at = (lane, sequence);
            bytes += u64::from(place.length);
            let is_damaged = matches!(shelf.read(&place, epoch), Err(ReadError::Damaged(_)));
            if is_damaged && self.known.len() < KNOWN_MAX && self.known.insert(sequence) {
                damaged.push(sequence);
            }
        }
        damaged
    }
}
