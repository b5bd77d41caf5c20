//! Identities, which say who measured: their numbers, and when each was last heard of. Main types: [`Identities`], a cache of bounded size,
//! and [`Ends`], the times that are to be brought up to date.

use std::collections::HashMap;

use crate::layout::recorded::hash_hex;
use crate::recorder::line::Point;

/// Numbers of recently used identities, by measurement and tags as they are sent.
///
/// There are two generations: when the young one is full it becomes the old one, and the old one is forgotten. An identity that is still used
/// moves to the young one when it is looked up.
#[derive(Debug)]
pub(super) struct Identities {
    young: HashMap<Box<[u8]>, i64>,
    old: HashMap<Box<[u8]>, i64>,
    generation_max: usize,
    /// Bytes of the young generation's keys.
    young_bytes: usize,
    /// How often all were forgotten.
    forgotten: u64,
}

/// The bytes that an identity may take on average; if they are longer, fewer are kept.
const BYTES_EACH: usize = 512;

impl Identities {
    /// Returns a cache of at most this many identities.
    pub(super) fn new(most: u32) -> Self {
        let generation_max = (most as usize / 2).max(1);
        Identities { young: HashMap::new(), old: HashMap::new(), generation_max, young_bytes: 0, forgotten: 0 }
    }

    /// Returns the number of an identity, if it is known.
    pub(super) fn find(&mut self, series: &[u8]) -> Option<i64> {
        if let Some(number) = self.young.get(series) {
            return Some(*number);
        }
        let (series, number) = self.old.remove_entry(series)?;
        self.keep(series, number);
        Some(number)
    }

    /// Notes the number of an identity that is in the database.
    pub(super) fn keep(&mut self, series: Box<[u8]>, number: i64) {
        if self.young.len() >= self.generation_max || self.young_bytes >= self.generation_max * BYTES_EACH {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += series.len();
        self.young.insert(series, number);
    }

    /// Forgets all identities: another connection's transactions may have been undone.
    pub(super) fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.young_bytes = 0;
        self.forgotten += 1;
    }

    /// Returns how often all identities were forgotten: numbers that were found before the last time may be wrong.
    pub(super) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

/// An identity that the cache does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NewIdentity {
    /// The place of its measurement in the catalogue.
    pub measurement: usize,
    /// The measurement and tags as they are sent.
    pub series: Box<[u8]>,
    /// The key of the identity in the database: the same for the same tags in any order.
    pub hash: String,
    /// Names and values of its tags.
    pub tags: Vec<(String, String)>,
    /// The time of its first record, in nanoseconds since 1970.
    pub begin_ns: i64,
}

impl NewIdentity {
    pub(super) fn of(point: &Point<'_>, measurement: usize, begin_ns: i64) -> Self {
        let text = |text: &crate::recorder::line::Text<'_>| text.resolve().into_owned();
        let mut tags: Vec<_> = point.tags.iter().map(|(key, value)| (text(key), text(value))).collect();
        tags.sort();
        let parts: Vec<_> = tags.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]).collect();
        NewIdentity { measurement, series: point.series.into(), hash: hash_hex(&parts), tags, begin_ns }
    }
}

/// The newest time of each identity, by the measurement's place and the identity's number.
pub(super) type Times = HashMap<(usize, i64), i64>;

/// The newest times that are not in the identity tables yet.
#[derive(Debug, Default)]
pub(super) struct Ends {
    times: Times,
}

impl Ends {
    /// Notes the times of a batch that was committed.
    pub(super) fn merge(&mut self, times: &Times) {
        for (identity, time_ns) in times {
            let known = self.times.entry(*identity).or_insert(*time_ns);
            *known = (*known).max(*time_ns);
        }
    }

    /// Returns some that are to be written now, in the order in which all writers write them, so that no two transactions wait for each other.
    pub(super) fn some(&self, most: usize) -> Vec<((usize, i64), i64)> {
        let some = self.times.iter().take(most).map(|(identity, time_ns)| (*identity, *time_ns));
        let mut some: Vec<_> = some.collect();
        some.sort_unstable();
        some
    }

    /// Forgets times that were written.
    pub(super) fn forget(&mut self, written: &[((usize, i64), i64)]) {
        for (identity, time_ns) in written {
            if self.times.get(identity) == Some(time_ns) {
                self.times.remove(identity);
            }
        }
    }

    pub(super) fn into_times(self) -> Times {
        self.times
    }

    pub(super) fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Returns the number of times that are not written yet.
    pub(super) fn len(&self) -> usize {
        self.times.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_is_bounded_and_keeps_what_is_in_use() {
        let mut identities = Identities::new(10);
        for number in 0..1_000_i64 {
            identities.keep(number.to_le_bytes().into(), number);
            assert_eq!(identities.find(&0_i64.to_le_bytes()), Some(0), "{number}");
            assert!(identities.young.len() + identities.old.len() <= 11);
        }
        assert_eq!(identities.find(&5_i64.to_le_bytes()), None);
        for number in 0..100_i64 {
            identities.keep(vec![number as u8; 10_000].into(), number);
            assert!(number < 5 || identities.young.len() + identities.old.len() <= 3, "long ones are fewer");
        }
    }

    #[test]
    fn an_end_that_moved_on_while_it_was_written_is_written_again() {
        let mut ends = Ends::default();
        ends.merge(&HashMap::from([((0, 1), 5), ((0, 2), 5)]));
        let written = ends.some(10);
        ends.merge(&HashMap::from([((0, 1), 4)]));
        ends.merge(&HashMap::from([((0, 2), 6)]));
        ends.forget(&written);
        assert_eq!(ends.some(10), [((0, 2), 6)]);
    }
}
