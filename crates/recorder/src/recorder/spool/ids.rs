//! Ids of messages that were taken in, for a while, so that one that is sent again is not stored again. Main type: [`Ids`].
//!
//! An id is kept as the first half of the SHA-256 of its source and itself: nobody finds two that are taken for one, and all take the same room.

use std::collections::HashMap;

use super::fact::{ID_BYTES, Id};

/// Bytes that an id counts against the spool's bound: once on the disk and once in memory.
pub(super) const BOUND_BYTES: u64 = 64;
const NS: i64 = 1_000_000_000;

/// What an id is kept as.
pub(super) fn id_of(source: &str, message_id: &str) -> Id {
    let mut context = ring::digest::Context::new(&ring::digest::SHA256);
    context.update(&(source.len() as u64).to_le_bytes());
    context.update(source.as_bytes());
    context.update(message_id.as_bytes());
    let mut id = [0; ID_BYTES];
    id.copy_from_slice(&context.finish().as_ref()[..ID_BYTES]);
    id
}

/// A time of the clock of ids in whole seconds. What begins in one is taken for as young as its end.
pub(super) fn seconds(clock_ns: i64) -> u32 {
    u32::try_from(clock_ns.div_euclid(NS).saturating_add(1)).unwrap_or(if clock_ns < 0 { 0 } else { u32::MAX })
}

/// The ids, each with its time.
#[derive(Debug, Default)]
pub(super) struct Ids(HashMap<Id, u32>);

impl Ids {
    pub(super) fn contains(&self, id: &Id) -> bool {
        self.0.contains_key(id)
    }

    /// The time of an id.
    pub(super) fn time(&self, id: &Id) -> Option<u32> {
        self.0.get(id).copied()
    }

    /// Remembers an id; one that is known stays as young as it was.
    pub(super) fn remember(&mut self, id: Id, time: u32) {
        let known = self.0.entry(id).or_insert(time);
        *known = time.max(*known);
    }

    /// The youngest one's time.
    pub(super) fn newest(&self) -> Option<u32> {
        self.0.values().max().copied()
    }

    pub(super) fn len(&self) -> u64 {
        self.0.len() as u64
    }

    /// Forgets those that are older than a time; how many.
    pub(super) fn forget_before(&mut self, time: u32) -> usize {
        let before = self.0.len();
        self.0.retain(|_, own| *own >= time);
        self.give_memory_back();
        before - self.0.len()
    }

    /// Forgets the oldest until there are no more than so many; how many.
    pub(super) fn forget_oldest(&mut self, most: u64) -> usize {
        let surplus = self.0.len().saturating_sub(usize::try_from(most).unwrap_or(usize::MAX));
        if surplus == 0 {
            return 0;
        }
        let mut times: Vec<u32> = self.0.values().copied().collect();
        let (_, bound, _) = times.select_nth_unstable(surplus - 1);
        let bound = *bound;
        // Of those of one second, which ones does not matter.
        let older = self.0.values().filter(|own| **own < bound).count();
        let mut of_bound = surplus - older;
        self.0.retain(|_, own| {
            let is_forgotten = *own < bound || (*own == bound && of_bound > 0);
            of_bound -= usize::from(is_forgotten && *own == bound);
            !is_forgotten
        });
        self.give_memory_back();
        surplus
    }

    fn give_memory_back(&mut self) {
        if self.0.len() < self.0.capacity() / 4 {
            self.0.shrink_to_fit();
        }
    }
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
}
