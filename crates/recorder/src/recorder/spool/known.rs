//! Messages that were never in the spool, but some of whose records came here: to wait apart, or to quarantine and from there back to the queue. Those records are
//! written from here, so whoever writes such a message when it is sent again must leave them out. Main types: [`Asked`] and [`WasKept`].
//!
//! Invariant: a record of such a message is known here for as long as ids are remembered, from the frame on that makes it an entry.

use std::ops::Range;

use super::Offer;
use super::apart::part_id;
use super::fact::{Fact, Id, StoredRefusal};
use super::group::{FactList, Group};
use super::ids::{id_of, seconds};

/// The numbers that stand for an entry's in quarantine, for messages that were never in the spool: the same number for the same message.
pub const MESSAGE_NUMBERS: Range<i64> = i64::MIN..i64::MIN + (1 << 60);

/// A message that is about to be written and was never in the spool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The message, without its body.
    pub message: Offer,
    /// The message's number in quarantine, one of [`MESSAGE_NUMBERS`].
    pub number: i64,
    /// The measurements of the message's records.
    pub measurements: Vec<String>,
}

/// The records of a message that came to the spool when the message was sent before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WasKept {
    /// For each measurement, whether all its records that were to be written then have waited apart since.
    pub apart: Vec<bool>,
    /// Numbers within the message of the records that were replayed from quarantine, ascending.
    pub replayed: Vec<i64>,
}

/// Returns the id that stands for a replayed record of a message; without a row, for any record of the message. No id from a client equals it: those have a
/// line end behind their owner.
fn replayed_id(source: &str, number: i64, row: Option<i64>) -> Id {
    id_of(source, &row.map_or_else(|| format!("replayed {number}"), |row| format!("replayed {number} {row}")))
}

impl Group<'_> {
    /// Returns which records of a message are known here.
    pub(super) fn was_kept(&self, asked: &Asked) -> WasKept {
        let Asked { message, number, measurements } = asked;
        let was_apart = |measurement: &String| {
            self.is_known(&Offer { message_id: part_id(message, measurement), ..message.without_body() })
        };
        let is_replayed = |row: Option<i64>| self.remembers(&replayed_id(&message.source, *number, row));
        let replayed = match is_replayed(None) {
            true => (0..i64::from(message.rows)).filter(|row| is_replayed(Some(*row))).collect(),
            false => Vec::new(),
        };
        WasKept { apart: measurements.iter().map(was_apart).collect(), replayed }
    }

    /// Remembers that a record goes from quarantine to the queue, in the list of facts that hold together with it, if its message may be sent again.
    pub(super) fn remember_replayed(&mut self, stored: &StoredRefusal, list: &mut FactList) {
        if !MESSAGE_NUMBERS.contains(&stored.entry) {
            return;
        }
        let (source, time) = (&stored.offer.source, seconds(self.file.id_clock.now_ns()));
        let ids = [None, Some(stored.row)].map(|row| (replayed_id(source, stored.entry, row), time));
        list.push(&Fact::Ids(ids.to_vec()), None, 0);
        self.replayed.extend(ids);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::recorder::spool::{Clearing, Entry, Refusal, SpoolFile};

    #[test]
    fn a_replayed_record_of_a_message_is_known_and_its_neighbours_are_not_also_after_a_crash() {
        let directory = std::env::temp_dir().join(format!("loadline-known-{}", std::process::id()));
        let open = || SpoolFile::open(&directory, 1 << 20, Duration::from_secs(60)).unwrap();
        let message = Offer { message_id: "owner\n1".to_owned(), ..Offer::plain("s", 3, b"") };
        let number = MESSAGE_NUMBERS.start + 77;
        let entry = Entry { sequence: number, offer: message.clone() };
        let mut file = open();
        let mut group = file.begin().unwrap();
        for row in [0, 2] {
            let refusal = Refusal { row, rows: 1, body: format!("m f={row}\n").into_bytes(), reason: "no".to_owned() };
            group.quarantine_unspooled(&entry, &refusal, 5).unwrap();
        }
        group.commit().unwrap();
        let asked = Asked { message: message.clone(), number, measurements: vec!["m".to_owned()] };
        let kept = |file: &mut SpoolFile, asked: &Asked| file.begin().unwrap().was_kept(asked);
        let nothing = WasKept { apart: vec![false], replayed: Vec::new() };
        assert_eq!(kept(&mut file, &asked), nothing);
        assert_eq!(file.clear(Clearing::Replay), Ok(2));
        for _ in 0..2 {
            assert_eq!(kept(&mut file, &asked).replayed, [0, 2]);
            let of_other = Asked { message: Offer { source: "other".into(), ..message.clone() }, ..asked.clone() };
            assert_eq!(kept(&mut file, &of_other), nothing);
            assert_eq!(kept(&mut file, &Asked { number: number + 1, ..asked.clone() }), nothing);
            file.abandon();
            file = open();
        }
        drop(file);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
