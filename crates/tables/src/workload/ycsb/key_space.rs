//! The existing records as all clients of a trial know them: YCSB's acknowledged counter. Main type: [`KeySpace`].
//!
//! Invariant: every number below [`KeySpace::count`] has been inserted, or an attempt to do so has ended.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Numbers of records: handed out for inserts, and known as existing once all inserts before them have ended, too.
#[derive(Debug)]
pub struct KeySpace {
    /// The next number to insert.
    next: AtomicU64,
    /// Numbers below this exist.
    count: AtomicU64,
    /// Numbers at or above the count whose inserts have ended, while one before them is still running: at most as many as are inserted
    /// while the slowest insert runs.
    ahead: Mutex<BTreeSet<u64>>,
}

impl KeySpace {
    /// Creates the numbers of a table in which records 0 to `count` - 1 exist.
    pub fn new(count: u64) -> Self {
        KeySpace { next: AtomicU64::new(count), count: AtomicU64::new(count), ahead: Mutex::default() }
    }

    /// Returns the number of records that exist without a gap.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Claims `records` consecutive numbers that no other client gets, and returns the first.
    #[inline]
    pub fn claim(&self, records: u32) -> u64 {
        self.next.fetch_add(u64::from(records), Ordering::Relaxed)
    }

    /// Records that the insert of these numbers has ended. A failed insert counts, too, as in YCSB: otherwise the numbers behind it would never be known.
    pub fn settle(&self, first: u64, records: u32) {
        // A holder that panicked left the set consistent.
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        let mut count = self.count.load(Ordering::Relaxed);
        let end = first + u64::from(records);
        if first == count {
            count = end;
        } else {
            ahead.extend(first..end);
        }
        while ahead.first() == Some(&count) {
            ahead.pop_first();
            count += 1;
        }
        self.count.store(count, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_known_when_all_before_it_are() {
        let keys = KeySpace::new(10);
        assert_eq!([keys.claim(1), keys.claim(1), keys.claim(2), keys.claim(1)], [10, 11, 12, 14]);
        keys.settle(11, 1);
        keys.settle(14, 1);
        assert_eq!(keys.count(), 10);
        keys.settle(10, 1);
        assert_eq!(keys.count(), 12);
        keys.settle(12, 2);
        assert_eq!(keys.count(), 15);
        assert!(keys.ahead.lock().unwrap().is_empty());
    }

    #[test]
    fn many_threads_are_given_each_number_once_and_all_are_known_in_the_end() {
        let keys = KeySpace::new(0);
        let mut claimed: Vec<u64> = std::thread::scope(|scope| {
            let client = || {
                let numbers: Vec<u64> = (0..1000).map(|_| keys.claim(1)).collect();
                numbers.iter().rev().for_each(|number| keys.settle(*number, 1));
                numbers
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(client)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        claimed.sort_unstable();
        assert_eq!(claimed, (0..4000).collect::<Vec<_>>());
        assert_eq!(keys.count(), 4000);
    }
}
