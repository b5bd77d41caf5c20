//! The contents of the frames of the spool's logs, as bytes. Main type: [`Fact`].
//!
//! A frame of kind [`ENTRY`] is one entry. A frame of kind [`FACTS`] is a list of facts that hold together or not at all; each is `kind u8`, `length u32` and its
//! bytes. All numbers are little-endian; a text is preceded by its length as `u32`.
//!
//! Invariant: reading takes bounded memory and linear time, whatever the bytes are.

use super::place::LogName;
use super::state::State;
use super::{Entry, Offer};
use crate::recorder::line::Precision;

/// The kind of a frame that is one entry.
pub(super) const ENTRY: u8 = 1;
/// The kind of a frame that is a list of facts.
pub(super) const FACTS: u8 = 2;

/// Bytes of a stored message id.
pub(super) const ID_BYTES: usize = 16;

/// A message id as it is stored: the first half of a SHA-256.
pub(super) type Id = [u8; ID_BYTES];

/// An entry as it is stored in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredEntry {
    pub entry: Entry,
    /// How often records were taken out of the entry: of two entries with one sequence, the one with the higher version counts.
    pub version: u32,
    /// The time of the ids' clock when the entry was taken in, in seconds.
    pub id_s: u32,
}

/// A record in quarantine as it is stored in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StoredRefusal {
    pub id: i64,
    /// The sequence of the record's entry.
    pub entry: i64,
    /// The record's number within the entry, from 0; negative for damage.
    pub row: i64,
    pub quarantined_ns: i64,
    pub reason: String,
    /// The record, with what is known of its entry.
    pub offer: Offer,
}

/// States that an older statement about an entry or a record in quarantine no longer holds. It stands in the log of the entries, so that damage to the lasting log alone does not
/// bring back what has been moved from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moved {
    /// The entry's sequence, or the record's number in quarantine.
    pub number: i64,
    /// Versions of the entry below this one no longer hold; `None` for a record in quarantine.
    pub version: Option<u32>,
    /// The log and segment of the superseded statement: this fact must be kept as long as that segment exists.
    pub until: (LogName, u32),
}

/// One statement that the spool remembers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fact {
    Entry(StoredEntry),
    Quarantined(StoredRefusal),
    /// The numbers of records that are no longer in quarantine.
    LetGo(Vec<i64>),
    /// Nothing in the lane up to this entry is needed any more.
    Settled {
        lane: u32,
        through: i64,
    },
    /// Message ids, each with its time.
    Ids(Vec<(Id, u32)>),
    /// The rest of what the spool knows; the newest state counts.
    State(Box<State>),
    /// The value of [`State::base`] from here on.
    Base(i64),
    Moved(Moved),
}

impl Fact {
    fn kind(&self) -> u8 {
        match self {
            Fact::Entry(_) => 1,
            Fact::Quarantined(_) => 2,
            Fact::LetGo(_) => 3,
            Fact::Settled { .. } => 4,
            Fact::Ids(_) => 5,
            Fact::State(_) => 6,
            Fact::Base(_) => 7,
            Fact::Moved(_) => 8,
        }
    }

    /// Appends the fact to a list, and returns where its own bytes stand there, as start and length.
    pub(super) fn append_to(&self, list: &mut Vec<u8>) -> (usize, usize) {
        list.push(self.kind());
        let length_at = list.len();
        list.extend_from_slice(&[0; 4]);
        let begin = list.len();
        match self {
            Fact::Entry(stored) => stored.append_to(list),
            Fact::Quarantined(refusal) => refusal.append_to(list),
            Fact::LetGo(ids) => ids.iter().for_each(|id| list.extend_from_slice(&id.to_le_bytes())),
            Fact::Settled { lane, through } => {
                list.extend_from_slice(&lane.to_le_bytes());
                list.extend_from_slice(&through.to_le_bytes());
            }
            Fact::Ids(ids) => ids.iter().for_each(|(id, time)| {
                list.extend_from_slice(id);
                list.extend_from_slice(&time.to_le_bytes());
            }),
            Fact::State(state) => list.extend_from_slice(&state.to_bytes()),
            Fact::Base(rows) => list.extend_from_slice(&rows.to_le_bytes()),
            Fact::Moved(Moved { number, version, until: (log, segment) }) => {
                list.extend_from_slice(&number.to_le_bytes());
                list.extend_from_slice(&version.unwrap_or(0).to_le_bytes());
                list.extend_from_slice(&segment.to_le_bytes());
                list.extend_from_slice(&[log.code(), u8::from(version.is_some())]);
            }
        }
        let length = list.len() - begin;
        list[length_at..begin].copy_from_slice(&(length as u32).to_le_bytes());
        (begin, length)
    }

    fn of(kind: u8, bytes: &[u8]) -> Option<Fact> {
        let mut parts = Parts(bytes);
        let fact = match kind {
            1 => return StoredEntry::of(bytes).map(Fact::Entry),
            2 => return StoredRefusal::of(bytes).map(Fact::Quarantined),
            3 => Fact::LetGo(bytes.chunks_exact(8).filter_map(|id| Parts(id).i64()).collect()),
            4 => Fact::Settled { lane: parts.u32()?, through: parts.i64()? },
            5 => {
                let one = |bytes: &[u8]| {
                    let mut parts = Parts(bytes);
                    Some((parts.take(ID_BYTES)?.try_into().ok()?, parts.u32()?))
                };
                Fact::Ids(bytes.chunks_exact(ID_BYTES + 4).filter_map(one).collect())
            }
            6 => Fact::State(Box::new(State::of(bytes)?)),
            7 => Fact::Base(parts.i64()?),
            8 => {
                let (number, version, segment) = (parts.i64()?, parts.u32()?, parts.u32()?);
                let (log, is_entry) = (LogName::of(parts.u8()?)?, parts.u8()? == 1);
                Fact::Moved(Moved { number, version: is_entry.then_some(version), until: (log, segment) })
            }
            _ => return None,
        };
        Some(fact)
    }
}

/// Returns the facts in a frame's body, each with the position of its bytes. Reading ends at the first bytes that are no fact.
pub(super) fn facts_of(kind: u8, body: &[u8]) -> Vec<(Fact, usize, usize)> {
    if kind == ENTRY {
        let entry = StoredEntry::of(body);
        return entry.map(|entry| (Fact::Entry(entry), 0, body.len())).into_iter().collect();
    }
    let (mut facts, mut parts) = (Vec::new(), Parts(body));
    while let Some((kind, length)) = parts.u8().zip(parts.u32()) {
        let at = body.len() - parts.0.len();
        let Some(fact) = parts.take(length as usize).and_then(|bytes| Fact::of(kind, bytes)) else { break };
        facts.push((fact, at, length as usize));
    }
    facts
}

/// An entry as it stands in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryView<'a> {
    pub sequence: i64,
    pub version: u32,
    pub id_s: u32,
    pub offer: OfferView<'a>,
}

/// A bit beside the code of the precision: the body is compressed.
const PACKED: u8 = 0x80;

/// An offer as it stands in a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfferView<'a> {
    pub lane: u32,
    pub source: &'a str,
    pub sender: &'a str,
    pub message_id: &'a str,
    pub received_ns: i64,
    pub precision: Precision,
    pub rows: u32,
    pub body: &'a [u8],
    pub is_packed: bool,
}

impl<'a> EntryView<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut parts = Parts(bytes);
        let (sequence, version, id_s) = (parts.i64()?, parts.u32()?, parts.u32()?);
        Some(EntryView { sequence, version, id_s, offer: parts.offer()? })
    }
}

impl OfferView<'_> {
    fn to_offer(self) -> Offer {
        Offer {
            lane: self.lane,
            source: self.source.into(),
            sender: self.sender.into(),
            message_id: self.message_id.to_owned(),
            received_ns: self.received_ns,
            precision: self.precision,
            rows: self.rows,
            body: self.body.to_vec(),
            is_packed: self.is_packed,
        }
    }
}

impl StoredEntry {
    pub(super) fn append_to(&self, bytes: &mut Vec<u8>) {
        let offer = &self.entry.offer;
        bytes.reserve(64 + offer.source.len() + offer.sender.len() + offer.message_id.len() + offer.body.len());
        bytes.extend_from_slice(&self.entry.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.version.to_le_bytes());
        bytes.extend_from_slice(&self.id_s.to_le_bytes());
        append_offer(offer, bytes);
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let entry = EntryView::of(bytes)?;
        let offer = entry.offer.to_offer();
        Some(StoredEntry { entry: Entry { sequence: entry.sequence, offer }, version: entry.version, id_s: entry.id_s })
    }
}

impl StoredRefusal {
    fn append_to(&self, bytes: &mut Vec<u8>) {
        for number in [self.id, self.entry, self.row, self.quarantined_ns] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        append_text(self.reason.as_bytes(), bytes);
        append_offer(&self.offer, bytes);
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let mut parts = Parts(bytes);
        let [id, entry, row, quarantined_ns] = [parts.i64()?, parts.i64()?, parts.i64()?, parts.i64()?];
        let reason = parts.text()?.to_owned();
        Some(StoredRefusal { id, entry, row, quarantined_ns, reason, offer: parts.offer()?.to_offer() })
    }

    /// Returns the bytes that the record counts against the quarantine's bound.
    pub(super) fn stored_bytes(&self) -> u64 {
        let texts = self.offer.source.len() + self.offer.sender.len() + self.reason.len();
        (96 + texts + self.offer.body.len()) as u64
    }
}

fn append_offer(offer: &Offer, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&offer.received_ns.to_le_bytes());
    bytes.extend_from_slice(&offer.lane.to_le_bytes());
    bytes.extend_from_slice(&offer.rows.to_le_bytes());
    bytes.push(offer.precision.code() | if offer.is_packed { PACKED } else { 0 });
    for text in [&*offer.source, &*offer.sender, &offer.message_id] {
        append_text(text.as_bytes(), bytes);
    }
    bytes.extend_from_slice(&offer.body);
}

fn append_text(text: &[u8], bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
    bytes.extend_from_slice(text);
}

/// Takes parts off the front of a byte slice.
pub(super) struct Parts<'a>(pub &'a [u8]);

impl<'a> Parts<'a> {
    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    pub(super) fn i64(&mut self) -> Option<i64> {
        Some(i64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.u32()? as usize;
        std::str::from_utf8(self.take(length)?).ok()
    }

    fn offer(&mut self) -> Option<OfferView<'a>> {
        let (received_ns, lane, rows) = (self.i64()?, self.u32()?, self.u32()?);
        let code = self.u8()?;
        let (precision, is_packed) = (Precision::from_code(code & !PACKED)?, code & PACKED != 0);
        let (source, sender, message_id) = (self.text()?, self.text()?, self.text()?);
        let body = std::mem::take(&mut self.0);
        Some(OfferView { lane, source, sender, message_id, received_ns, precision, rows, body, is_packed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_read_as_they_were_written_and_a_part_of_one_is_none() {
        let offer =
            Offer { message_id: "owner\nid".to_owned(), sender: "n".into(), ..Offer::plain("s", 2, b"m f=1\nm f=2\n") };
        let entry = StoredEntry { entry: Entry { sequence: 9, offer: offer.clone() }, version: 3, id_s: 77 };
        let refusal =
            StoredRefusal { id: 4, entry: 9, row: 1, quarantined_ns: 5, reason: "no".to_owned(), offer: offer.clone() };
        let all = [
            Fact::Entry(entry.clone()),
            Fact::Quarantined(refusal),
            Fact::LetGo(vec![4, 5]),
            Fact::Settled { lane: 2, through: 9 },
            Fact::Ids(vec![([7; ID_BYTES], 1), ([8; ID_BYTES], 2)]),
            Fact::State(Box::new(State::new("r".to_owned()))),
            Fact::Base(-3),
            Fact::Moved(Moved { number: 7, version: Some(3), until: (LogName::Lasting, 5) }),
            Fact::Moved(Moved { number: 7, version: None, until: (LogName::Entries, 5) }),
        ];
        let mut body = Vec::new();
        let places: Vec<_> = all.iter().map(|fact| fact.append_to(&mut body)).collect();
        let found = facts_of(FACTS, &body);
        assert_eq!(found.iter().map(|(fact, ..)| fact.clone()).collect::<Vec<_>>(), all);
        assert_eq!(found.iter().map(|(_, at, length)| (*at, *length)).collect::<Vec<_>>(), places);
        for cut in 0..body.len() {
            let found = facts_of(FACTS, &body[..cut]);
            assert!(found.len() < all.len() && found.iter().zip(&all).all(|(found, fact)| found.0 == *fact));
        }
        let mut alone = Vec::new();
        entry.append_to(&mut alone);
        assert_eq!(facts_of(ENTRY, &alone), [(Fact::Entry(entry), 0, alone.len())]);
    }
}
