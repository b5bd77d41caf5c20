//! Ids of recent messages, so that a message that is sent again is not stored again. Main type: [`Ids`].
//!
//! An id is kept as the first half of the SHA-256 of its source and itself: nobody can find two that collide, and all take the same room.

use super::fact::{ID_BYTES, Id};

/// Bytes that an id counts against the spool's bound: its room on the disk and in memory.
pub(super) const BOUND_BYTES: u64 = 64;
const NS: i64 = 1_000_000_000;

/// Returns the form in which an id is kept.
pub(super) fn id_of(source: &str, message_id: &str) -> Id {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(&(source.len() as u64).to_le_bytes());
    context.update(source.as_bytes());
    context.update(message_id.as_bytes());
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&context.finish().as_ref()[..ID_BYTES]);
    id
}

/// Returns a time of the ids' clock in whole seconds, rounded up to the end of its second.
pub(super) fn seconds(clock_ns: i64) -> u32 {
    u32::try_from(clock_ns.div_euclid(NS).saturating_add(1)).unwrap_or(if clock_ns < 0 { 0 } else { u32::MAX })
}

/// The average number of ids in a bucket. They are searched one by one.
const BUCKET_IDS: usize = 24;
/// The number of ids by which a bucket grows.
const STEP: usize = 4;

/// An id and its time: 20 bytes.
#[derive(Debug, Clone, Copy)]
struct Known {
    id: Id,
    time: u32,
}

/// The ids, each with its time, in at most 27 bytes each.
///
/// Linear hashing (Litwin 1980): buckets are split and joined one at a time, so that no request waits until all ids have moved, and there is never room for twice as many
/// ids as there are.
#[derive(Debug, Default)]
pub(super) struct Ids {
    buckets: Vec<Vec<Known>>,
    count: usize,
}

/// The part of an id that suffices to find it again.
pub(super) type Prefix = u64;

/// Returns the first 8 bytes of an id.
pub(super) fn prefix(id: &Id) -> Prefix {
    let [a, b, c, d, e, f, g, h, ..] = *id;
    u64::from_le_bytes([a, b, c, d, e, f, g, h])
}

/// Returns the bucket of a prefix, given the number of buckets.
fn bucket_of(prefix: Prefix, buckets: usize) -> usize {
    let mask = buckets.next_power_of_two() - 1;
    let place = prefix as usize & mask;
    if place < buckets { place } else { place & (mask >> 1) }
}

impl Ids {
    fn bucket(&self, prefix: Prefix) -> &[Known] {
        if self.buckets.is_empty() { &[] } else { &self.buckets[bucket_of(prefix, self.buckets.len())] }
    }

    pub(super) fn contains(&self, id: &Id) -> bool {
        self.time(id).is_some()
    }

    /// Returns the time of an id; `None` if it is not known.
    pub(super) fn time(&self, id: &Id) -> Option<u32> {
        self.bucket(prefix(id)).iter().find(|known| known.id == *id).map(|known| known.time)
    }

    /// Returns all ids with a prefix, with their times.
    pub(super) fn beginning_with(&self, first: Prefix) -> impl Iterator<Item = (Id, u32)> {
        self.bucket(first).iter().filter(move |known| prefix(&known.id) == first).map(|known| (known.id, known.time))
    }

    /// Remembers an id; a known id stays as young as it was.
    pub(super) fn remember(&mut self, id: Id, time: u32) {
        if self.buckets.is_empty() {
            self.buckets.push(Vec::new());
        }
        let place = bucket_of(prefix(&id), self.buckets.len());
        if let Some(known) = self.buckets[place].iter_mut().find(|known| known.id == id) {
            known.time = time.max(known.time);
            return;
        }
        push(&mut self.buckets[place], Known { id, time });
        self.count += 1;
        if self.count > self.buckets.len() * BUCKET_IDS {
            self.split();
        }
    }

    /// Splits the bucket whose turn it is.
    fn split(&mut self) {
        let next = self.buckets.len();
        let place = next - (1 << next.ilog2());
        self.buckets.push(Vec::new());
        for known in std::mem::take(&mut self.buckets[place]) {
            let place = bucket_of(prefix(&known.id), next + 1);
            push(&mut self.buckets[place], known);
        }
    }

    /// Returns the time of the youngest id.
    pub(super) fn newest(&self) -> Option<u32> {
        self.times().max()
    }

    fn times(&self) -> impl Iterator<Item = u32> {
        self.buckets.iter().flatten().map(|known| known.time)
    }

    pub(super) fn len(&self) -> u64 {
        self.count as u64
    }

    /// Forgets ids that are older than a time, and returns how many.
    pub(super) fn forget_before(&mut self, time: u32) -> usize {
        let before = self.count;
        self.retain(|own| own >= time);
        before - self.count
    }

    /// Forgets the oldest ids until no more than `most` are left, and returns how many.
    pub(super) fn forget_oldest(&mut self, most: u64) -> usize {
        let surplus = self.count.saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        if surplus == 0 {
            return 0;
        }
        let mut times: Vec<u32> = self.times().collect();
        let (_, bound, _) = times.select_nth_unstable(surplus - 1);
        let bound = *bound;
        // Which of the ids of one second are forgotten does not matter.
        let older = self.times().filter(|own| *own < bound).count();
        let mut of_bound = surplus - older;
        self.retain(|own| {
            let is_forgotten = own < bound || (own == bound && of_bound > 0);
            of_bound -= usize::from(is_forgotten && own == bound);
            !is_forgotten
        });
        surplus
    }

    fn retain(&mut self, mut is_kept: impl FnMut(u32) -> bool) {
        for bucket in &mut self.buckets {
            bucket.retain(|known| is_kept(known.time));
        }
        self.count = self.buckets.iter().map(Vec::len).sum();
        while self.buckets.len() > 1 && self.count <= (self.buckets.len() - 1) * BUCKET_IDS {
            self.join();
        }
        for bucket in &mut self.buckets {
            if bucket.capacity() - bucket.len() >= 2 * STEP {
                bucket.shrink_to_fit();
            }
        }
        if self.buckets.len() < self.buckets.capacity() / 4 {
            self.buckets.shrink_to_fit();
        }
    }

    /// Joins the last bucket with the one that it was split from.
    fn join(&mut self) {
        for known in self.buckets.pop().unwrap_or_default() {
            let place = bucket_of(prefix(&known.id), self.buckets.len());
            push(&mut self.buckets[place], known);
        }
    }
}

fn push(bucket: &mut Vec<Known>, known: Known) {
    if bucket.len() == bucket.capacity() {
        bucket.reserve_exact(STEP);
    }
    bucket.push(known);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_ids_are_told_apart() {
        assert_eq!(id_of("a", "b"), id_of("a", "b"));
        assert_ne!(id_of("a", "b"), id_of("ab", ""));
        assert_ne!(id_of("a", "b"), id_of("", "ab"));
    }

    #[test]
    fn the_oldest_are_forgotten_first_and_none_too_early() {
        let mut ids = Ids::default();
        (0..100_u32)
            .for_each(|number| ids.remember(id_of("s", &number.to_string()), seconds(i64::from(number / 10) * NS)));
        assert_eq!(ids.newest(), Some(10));
        assert_eq!((ids.forget_before(3), ids.len()), (20, 80));
        assert_eq!((ids.forget_oldest(75), ids.len()), (5, 75));
        assert_eq!((ids.forget_oldest(75), ids.forget_oldest(40), ids.len()), (0, 35, 40));
        assert!((60..100).all(|number| ids.contains(&id_of("s", &number.to_string()))));
        assert_eq!((seconds(-5), seconds(0), seconds(i64::MAX)), (0, 1, u32::MAX));
    }

    #[test]
    fn ids_are_kept_as_a_map_would_keep_them() {
        let mut random = crate::random::Stream::seeded(7);
        let (mut ids, mut truth) = (Ids::default(), std::collections::HashMap::new());
        for step in 0..30_000_u32 {
            let id = id_of("s", &random.below(6_000).to_string());
            let time = step / 100;
            ids.remember(id, time);
            truth.insert(id, time);
            if random.below(3_000) == 0 {
                let before = time.saturating_sub(random.below(60) as u32);
                truth.retain(|_, own| *own >= before);
                ids.forget_before(before);
            }
            assert_eq!(ids.len(), truth.len() as u64);
        }
        assert!(truth.iter().all(|(id, time)| ids.beginning_with(prefix(id)).any(|found| found == (*id, *time))));
        assert!(truth.keys().all(|id| ids.contains(id)));
        assert!((6_000..7_000).all(|number: u32| !ids.contains(&id_of("s", &number.to_string()))));
        ids.forget_oldest(0);
        assert_eq!((ids.len(), ids.newest(), ids.buckets.len()), (0, None, 1));
    }

    /// Returns the bytes that the ids take from the system, with the 8 bytes that it needs for each allocation.
    fn memory(ids: &Ids) -> usize {
        let of_buckets = ids.buckets.iter().map(|bucket| bucket.capacity() * size_of::<Known>() + 8).sum::<usize>();
        of_buckets + ids.buckets.capacity() * size_of::<Vec<Known>>()
    }

    #[test]
    fn an_id_takes_a_few_bytes_more_than_it_has_at_any_number_of_them() {
        let mut ids = Ids::default();
        for number in 1..=200_000_u32 {
            ids.remember(id_of("s", &number.to_string()), number / 1_000);
            if number % 5_000 == 0 {
                let each = memory(&ids) as f64 / f64::from(number);
                assert!(each < 27.0, "{each} bytes each, of {number}");
            }
        }
        ids.forget_before(150);
        let each = memory(&ids) as f64 / ids.len() as f64;
        assert!(each < 27.0, "{each} bytes each, of {}", ids.len());
    }
}
