//! The entries of a lane, stored in a few bytes each. Main type: [`Lane`].
//!
//! Entries are kept in pages, in order of their sequences. All pages but one are packed: an entry is stored as its differences from what the entry before it lets
//! expect, which for small requests of one sender takes 4 to 7 bytes instead of 56. The unpacked page is the one that was changed last.
//!
//! Invariant: no two pages overlap, a packed page is never empty, and unpacking a page returns what was packed.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

use loadline_segments::segments::stored_bytes;

use super::place::{EntryRef, LogName, Place};

/// The number of entries in a packed page.
const PAGE: usize = 128;

/// The entries of a lane by their sequences.
#[derive(Debug, Default)]
pub(super) struct Lane {
    packed: BTreeMap<i64, Page>,
    /// The unpacked page, in order. It may be empty.
    clear: Vec<(i64, EntryRef)>,
    count: u64,
}

/// A packed page of entries.
#[derive(Debug)]
struct Page {
    last: i64,
    bytes: Box<[u8]>,
}

impl Lane {
    /// Returns the number of entries.
    pub(super) fn len(&self) -> u64 {
        self.count
    }

    pub(super) fn get(&self, sequence: i64) -> Option<EntryRef> {
        if let Ok(at) = self.clear_at(sequence) {
            return Some(self.clear[at].1);
        }
        let (_, page) = self.packed.range(..=sequence).next_back().filter(|(_, page)| sequence <= page.last)?;
        page.entries().find(|(own, _)| *own == sequence).map(|(_, entry)| entry)
    }

    /// Inserts an entry, replacing one with the same sequence.
    pub(super) fn insert(&mut self, sequence: i64, entry: EntryRef) {
        self.clear_page_for(sequence);
        match self.clear_at(sequence) {
            Ok(at) => self.clear[at].1 = entry,
            Err(at) => {
                self.clear.insert(at, (sequence, entry));
                self.count += 1;
            }
        }
        if self.clear.len() >= 2 * PAGE {
            let rest = self.clear.split_off(PAGE);
            let full = std::mem::replace(&mut self.clear, rest);
            self.pack(&full);
        }
    }

    pub(super) fn remove(&mut self, sequence: i64) -> Option<EntryRef> {
        self.get(sequence)?;
        self.clear_page_for(sequence);
        let at = self.clear_at(sequence).ok()?;
        self.count -= 1;
        Some(self.clear.remove(at).1)
    }

    /// Removes every entry up to a sequence and passes each to `show`, in no particular order.
    pub(super) fn take_through(&mut self, through: i64, mut show: impl FnMut(i64, &EntryRef)) {
        while let Some(first) = self.packed.first_entry().filter(|first| *first.key() <= through) {
            let page = first.remove();
            let (taken, rest): (Vec<_>, Vec<_>) = page.entries().partition(|(sequence, _)| *sequence <= through);
            taken.iter().for_each(|(sequence, entry)| show(*sequence, entry));
            self.count -= taken.len() as u64;
            if !rest.is_empty() {
                self.pack(&rest);
                break;
            }
        }
        let at = self.clear.partition_point(|(sequence, _)| *sequence <= through);
        self.count -= at as u64;
        self.clear.drain(..at).for_each(|(sequence, entry)| show(sequence, &entry));
    }

    /// Returns the entries behind a sequence, in order.
    pub(super) fn after(&self, after: i64) -> impl Iterator<Item = (i64, EntryRef)> {
        let begin = self.packed.range(..=after).next_back().filter(|(_, page)| page.last > after);
        let begin = begin.map_or(Excluded(after), |(first, _)| std::ops::Bound::Included(*first));
        let clear_from = self.clear.first().map_or(i64::MAX, |(sequence, _)| *sequence);
        let pages = self.packed.range((begin, Unbounded));
        let before = pages.clone().take_while(move |(first, _)| **first < clear_from);
        let behind = pages.skip_while(move |(first, _)| **first < clear_from);
        let all = before.flat_map(|(_, page)| page.entries()).chain(self.clear.iter().copied());
        all.chain(behind.flat_map(|(_, page)| page.entries())).skip_while(move |(sequence, _)| *sequence <= after)
    }

    /// Returns all entries, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = (i64, EntryRef)> {
        // No entry has the lowest possible number.
        self.after(i64::MIN)
    }

    fn clear_at(&self, sequence: i64) -> Result<usize, usize> {
        self.clear.binary_search_by_key(&sequence, |(own, _)| *own)
    }

    /// Unpacks the page that a sequence belongs to, so that it can be changed.
    fn clear_page_for(&mut self, sequence: i64) {
        let before = self.packed.range(..=sequence).next_back();
        let is_in_page = before.is_some_and(|(_, page)| sequence <= page.last);
        if let Some((first, last)) = self.clear.first().map(|first| first.0).zip(self.clear.last().map(|last| last.0)) {
            // No other page lies between the unpacked page and the sequence.
            let (low, high) = (first.min(sequence), last.max(sequence));
            if !is_in_page && self.packed.range((Excluded(low), Excluded(high))).next().is_none() {
                return;
            }
            let clear = std::mem::take(&mut self.clear);
            self.pack(&clear);
        }
        let first = self.packed.range(..=sequence).next_back().map(|(first, _)| *first);
        let first = first.or_else(|| self.packed.first_key_value().map(|(first, _)| *first));
        if let Some(page) = first.and_then(|first| self.packed.remove(&first)) {
            self.clear = page.entries().collect();
        }
    }

    fn pack(&mut self, entries: &[(i64, EntryRef)]) {
        if let Some(((first, _), (last, _))) = entries.first().zip(entries.last()) {
            self.packed.insert(*first, Page { last: *last, bytes: pack(entries) });
        }
    }
}

impl Page {
    fn entries(&self) -> impl Iterator<Item = (i64, EntryRef)> {
        Unpacking { bytes: &self.bytes, before: (0, NONE) }
    }
}

/// The entry from which the first entry of a page is predicted.
const NONE: EntryRef = EntryRef {
    place: Place { log: LogName::Entries, segment: 0, offset: 0, length: 0, at: 0, bytes: 0 },
    version: 0,
    rows: 0,
    bytes: 0,
    received_us: 0,
};

// The fields of an entry that are not as expected: one bit for each, and the numbers of those fields follow in this order.
const SEQUENCE: u8 = 1;
const SEGMENT: u8 = 1 << 1;
const OFFSET: u8 = 1 << 2;
const LENGTH: u8 = 1 << 3;
const PART: u8 = 1 << 4;
const ROWS: u8 = 1 << 5;
const BYTES: u8 = 1 << 6;
const RECEIVED: u8 = 1 << 7;

/// Returns where the next frame is expected to begin, and how many bytes an entry has beyond those of its part.
fn expected(before: &EntryRef) -> (i64, i64) {
    let behind = i64::from(before.place.offset) + stored_bytes(before.place.length.into()) as i64;
    (behind, i64::from(before.bytes) - i64::from(before.place.bytes))
}

fn pack(entries: &[(i64, EntryRef)]) -> Box<[u8]> {
    let (mut packed, mut before) = (Vec::with_capacity(entries.len() * 6), (0_i64, NONE));
    for (sequence, entry) in entries {
        let (place, of_before) = (&entry.place, &before.1.place);
        let (behind, more) = expected(&before.1);
        let flags_at = packed.len();
        packed.push(0);
        let mut put = |flag: u8, numbers: &[i64]| {
            packed[flags_at] |= flag;
            numbers.iter().for_each(|number| put_number(&mut packed, *number));
        };
        let mut put_if = |is_other: bool, flag: u8, numbers: &[i64]| {
            if is_other {
                put(flag, numbers);
            }
        };
        // Differences wrap, so that none is too large.
        let step = sequence.wrapping_sub(before.0);
        put_if(step != 1, SEQUENCE, &[step]);
        let is_elsewhere = (place.log, place.segment) != (of_before.log, of_before.segment);
        let segment = i64::from(place.segment) - i64::from(of_before.segment);
        put_if(is_elsewhere, SEGMENT, &[place.log.code().into(), segment]);
        let offset = i64::from(place.offset) - behind;
        put_if(offset != 0, OFFSET, &[offset]);
        let length = i64::from(place.length) - i64::from(of_before.length);
        put_if(length != 0, LENGTH, &[length]);
        put_if((place.at, place.bytes) != (0, place.length), PART, &[place.at.into(), place.bytes.into()]);
        let is_changed = (entry.version, entry.rows) != (before.1.version, before.1.rows);
        put_if(is_changed, ROWS, &[entry.version.into(), entry.rows.into()]);
        let bytes = i64::from(entry.bytes) - i64::from(place.bytes) - more;
        put_if(bytes != 0, BYTES, &[bytes]);
        let later = entry.received_us.wrapping_sub(before.1.received_us);
        put_if(later != 0, RECEIVED, &[later]);
        before = (*sequence, *entry);
    }
    packed.into_boxed_slice()
}

/// An iterator over the entries of a packed page.
struct Unpacking<'a> {
    bytes: &'a [u8],
    before: (i64, EntryRef),
}

impl Iterator for Unpacking<'_> {
    type Item = (i64, EntryRef);

    fn next(&mut self) -> Option<Self::Item> {
        let (flags, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let has = |flag: u8| flags & flag != 0;
        let (sequence, before) = self.before;
        let (behind, more) = expected(&before);
        let mut entry = before;
        let step = if has(SEQUENCE) { self.number() } else { 1 };
        if has(SEGMENT) {
            entry.place.log = if self.number() == 0 { LogName::Entries } else { LogName::Lasting };
            entry.place.segment = (i64::from(before.place.segment) + self.number()) as u32;
        }
        entry.place.offset = (behind + if has(OFFSET) { self.number() } else { 0 }) as u32;
        entry.place.length = (i64::from(before.place.length) + if has(LENGTH) { self.number() } else { 0 }) as u32;
        let part = if has(PART) { (self.number(), self.number()) } else { (0, entry.place.length.into()) };
        (entry.place.at, entry.place.bytes) = (part.0 as u32, part.1 as u32);
        if has(ROWS) {
            (entry.version, entry.rows) = (self.number() as u32, self.number() as u32);
        }
        let unexpected = if has(BYTES) { self.number() } else { 0 };
        entry.bytes = (i64::from(entry.place.bytes) + more + unexpected) as u32;
        entry.received_us = before.received_us.wrapping_add(if has(RECEIVED) { self.number() } else { 0 });
        self.before = (sequence.wrapping_add(step), entry);
        Some(self.before)
    }
}

impl Unpacking<'_> {
    /// Reads the next number: seven bits in each byte, the lowest first, with the sign folded in so that small numbers take few bytes.
    fn number(&mut self) -> i64 {
        let (mut folded, mut shift) = (0_u64, 0);
        while let Some((byte, rest)) = self.bytes.split_first() {
            self.bytes = rest;
            folded |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 || shift > 63 {
                break;
            }
        }
        (folded >> 1) as i64 ^ -((folded & 1) as i64)
    }
}

fn put_number(packed: &mut Vec<u8>, number: i64) {
    let mut folded = (number << 1 ^ number >> 63) as u64;
    while folded >= 0x80 {
        packed.push(folded as u8 | 0x80);
        folded >>= 7;
    }
    packed.push(folded as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pseudo-random numbers from a seed.
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, below: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) % below
        }

        /// Returns a small number, or if wild one that may be as great as possible.
        fn number(&mut self, small: u64, is_wild: bool) -> u32 {
            if is_wild { self.below(1 << 31) as u32 * 2 + 1 } else { self.below(small) as u32 }
        }

        fn entry(&mut self) -> EntryRef {
            let wild = self.below(8) == 0;
            let length = self.number(90, wild);
            let (segment, offset) = (self.number(3, wild), self.number(16_000, wild));
            let place = Place { log: LogName::Entries, segment, offset, length, at: 0, bytes: length };
            let (rows, bytes) = (self.number(2, wild), self.number(200, wild));
            let received_us = self.below(1 << 30) as i64 - if wild { i64::MAX } else { 0 };
            let mut entry = EntryRef { place, version: 0, rows, bytes, received_us };
            if self.below(5) == 0 {
                (entry.place.at, entry.place.bytes) = (self.number(9, wild), self.number(9, wild));
                (entry.place.log, entry.version) = (LogName::Lasting, self.number(3, wild));
            }
            entry
        }
    }

    fn all(lane: &Lane) -> Vec<(i64, EntryRef)> {
        lane.all().collect()
    }

    #[test]
    fn a_lane_does_what_a_map_does_whatever_is_asked_of_it() {
        for seed in 0..60 {
            let (mut dice, mut lane, mut map) = (Dice(seed), Lane::default(), BTreeMap::new());
            let (mut newest, span) = (0_i64, if seed % 2 == 0 { 3_000 } else { 400 });
            for step in 0..6_000 {
                let any = dice.below(span) as i64 - 20;
                match dice.below(20) {
                    0..=11 => {
                        newest += if dice.below(50) == 0 { 1 << dice.below(40) } else { 1 };
                        let entry = dice.entry();
                        assert_eq!((lane.insert(newest, entry), map.insert(newest, entry)), ((), None));
                    }
                    12..=14 => {
                        let entry = dice.entry();
                        lane.insert(any, entry);
                        map.insert(any, entry);
                        newest = newest.max(any);
                    }
                    15..=17 => assert_eq!(lane.remove(any), map.remove(&any), "seed {seed}, step {step}"),
                    18 => assert_eq!(lane.get(any), map.get(&any).copied()),
                    _ if dice.below(10) == 0 => {
                        let (mut taken, rest) = (Vec::new(), map.split_off(&(any + 1)));
                        lane.take_through(any, |sequence, entry| taken.push((sequence, *entry)));
                        taken.sort_by_key(|(sequence, _)| *sequence);
                        assert_eq!(taken, std::mem::replace(&mut map, rest).into_iter().collect::<Vec<_>>());
                    }
                    _ => {
                        let behind: Vec<_> = map.range(any + 1..).take(9).map(|(own, entry)| (*own, *entry)).collect();
                        assert_eq!(lane.after(any).take(9).collect::<Vec<_>>(), behind, "seed {seed}, step {step}");
                    }
                }
                assert_eq!(lane.len(), map.len() as u64);
            }
            assert_eq!(all(&lane), map.into_iter().collect::<Vec<_>>(), "seed {seed}");
        }
    }

    #[test]
    fn the_greatest_numbers_are_what_they_were() {
        let place = Place {
            log: LogName::Lasting,
            segment: u32::MAX,
            offset: u32::MAX,
            length: u32::MAX,
            at: u32::MAX,
            bytes: u32::MAX,
        };
        let great = EntryRef { place, version: u32::MAX, rows: u32::MAX, bytes: u32::MAX, received_us: i64::MAX };
        let least = EntryRef { received_us: i64::MIN, ..NONE };
        let entries = [(i64::MIN + 1, great), (-1, least), (0, great), (i64::MAX, least)];
        let mut lane = Lane::default();
        entries.iter().for_each(|(sequence, entry)| lane.insert(*sequence, *entry));
        let clear = std::mem::take(&mut lane.clear);
        lane.pack(&clear);
        assert_eq!(all(&lane), entries);
    }

    #[test]
    fn small_requests_take_few_bytes_each() {
        let (mut dice, mut lane, mut offset, mut received_us) = (Dice(1), Lane::default(), 64, 1_700_000_000_000_000);
        for sequence in 1..=100_000 {
            let length = 120 + dice.below(9) as u32;
            let place = Place {
                log: LogName::Entries,
                segment: 1 + sequence as u32 / 9_000,
                offset,
                length,
                at: 0,
                bytes: length,
            };
            lane.insert(sequence, EntryRef { place, version: 0, rows: 1, bytes: length + 90, received_us });
            // Frames of other lanes stand between.
            (offset, received_us) = (
                offset + 72 + length.next_multiple_of(8) + 200 * dice.below(4) as u32,
                received_us + dice.below(2_000) as i64,
            );
            offset %= 1 << 22;
        }
        let packed: usize = lane.packed.values().map(|page| page.bytes.len()).sum();
        let each = packed as f64 / 100_000.0;
        assert!(each < 7.0 && lane.packed.len() > 700, "{each} bytes each");
    }
}
