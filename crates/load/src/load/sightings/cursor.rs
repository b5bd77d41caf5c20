//! Decides which keys of a table a reader asks for next. Pure: times are passed in.
//!
//! Databases assign keys when rows are inserted and show rows when they are committed: with several writers a key can appear after a higher one. A
//! reader that asks only for keys above the highest one seen never sees that row. A [`Cursor`] therefore remembers keys that were passed over and
//! asks from the first of them on until they appear. Some never do, because their transaction was rolled back or the database left them out (InnoDB
//! reserves keys for bulk inserts by powers of two). A writer commits its rows in the order of their keys, so a key that was passed over is given up
//! as soon as a higher one of every writer of the table was seen, and at the latest after the look-back time, because a writer may have nothing to
//! write.
//!
//! Invariant: a key is reported as new at most once.

use std::collections::VecDeque;

use super::intervals::Intervals;

/// A reader's position in a table.
#[derive(Debug, Clone)]
pub struct Cursor {
    look_back_ns: u64,
    /// Highest key seen.
    highest: u64,
    /// Highest key that is not asked for any more; neither are the keys below it.
    floor: u64,
    /// Keys seen above the floor.
    seen: Intervals,
    /// Ranges of keys that were passed over: first, last, and the time when that was noticed; in ascending order.
    passed: VecDeque<(u64, u64, u64)>,
    /// Highest key seen of each writer of the table; writers are identified by their numbers.
    highest_of: Vec<(usize, u64)>,
    /// Highest key of an answer that was cut off: the next question begins after it.
    cut_at: Option<u64>,
}

impl Cursor {
    /// Makes a cursor before the first key, which is 1.
    pub fn new(look_back_ns: u64, writers: impl IntoIterator<Item = usize>) -> Self {
        Cursor {
            look_back_ns,
            highest: 0,
            floor: 0,
            seen: Intervals::default(),
            passed: VecDeque::new(),
            highest_of: writers.into_iter().map(|writer| (writer, 0)).collect(),
            cut_at: None,
        }
    }

    /// Returns the key after which to ask now.
    pub fn behind(&mut self, now_ns: u64) -> u64 {
        if let Some(key) = self.cut_at.take() {
            return key;
        }
        let of_all = self.highest_of.iter().map(|(_, highest)| *highest).min().unwrap_or(0);
        while let Some((first, last, since_ns)) = self.passed.front().copied() {
            let missing = self.seen.first_missing(first);
            if missing > last || last < of_all || now_ns.saturating_sub(since_ns) >= self.look_back_ns {
                self.passed.pop_front();
                continue;
            }
            self.forget_through(missing - 1);
            return self.floor;
        }
        self.forget_through(self.highest);
        self.floor
    }

    /// Notes a key that was read of a writer. Returns whether it is new.
    #[inline]
    pub fn take(&mut self, key: u64, writer: usize, now_ns: u64) -> bool {
        if let Some((_, highest)) = self.highest_of.iter_mut().find(|(known, _)| *known == writer) {
            *highest = key.max(*highest);
        }
        if key <= self.floor || !self.seen.insert(key) {
            return false;
        }
        if key > self.highest {
            if key > self.highest + 1 && self.look_back_ns > 0 {
                self.passed.push_back((self.highest + 1, key - 1, now_ns));
            }
            self.highest = key;
        }
        true
    }

    /// Notes that the answer was cut off after this key: there are more rows.
    pub fn cut(&mut self, key: u64) {
        self.cut_at = Some(key);
    }

    /// Notes a key of the latest rows, in any order. Returns whether it is new. No key is passed over: a row missing
    /// now is seen in the next answer.
    #[inline]
    pub fn take_of_window(&mut self, key: u64) -> bool {
        key > self.floor && self.seen.insert(key)
    }

    /// Notes that the latest rows begin with this key: lower ones are not shown any more.
    pub fn window_begins(&mut self, key: u64) {
        self.forget_through(key.saturating_sub(1));
    }

    fn forget_through(&mut self, key: u64) {
        if key > self.floor {
            self.floor = key;
            self.seen.forget_through(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(cursor: &mut Cursor, keys: impl IntoIterator<Item = u64>, now_ns: u64) -> Vec<u64> {
        keys.into_iter().filter(|key| cursor.take(*key, 0, now_ns)).collect()
    }

    #[test]
    fn keys_in_order_are_asked_for_once() {
        let mut cursor = Cursor::new(100, [0, 1]);
        assert_eq!(cursor.behind(0), 0);
        assert_eq!(take(&mut cursor, 1..=5, 0), [1, 2, 3, 4, 5]);
        assert_eq!(cursor.behind(1), 5);
        assert_eq!(take(&mut cursor, 6..=7, 1), [6, 7]);
        assert_eq!(cursor.behind(1), 7);
        assert_eq!(cursor.seen.count(), 0, "nothing has to be remembered");
    }

    #[test]
    fn a_key_that_appears_after_a_higher_one_is_found_while_looking_back() {
        let mut cursor = Cursor::new(100, [0, 1]);
        take(&mut cursor, [1, 2, 5, 6], 10);
        assert_eq!(cursor.behind(20), 2);
        assert_eq!(take(&mut cursor, [4, 5, 6, 7], 20), [4, 7]);
        assert_eq!(cursor.behind(109), 2);
        assert_eq!(take(&mut cursor, [3, 4, 5, 6, 7], 109), [3]);
        assert_eq!(cursor.behind(109), 7);
    }

    #[test]
    fn a_key_that_never_appears_is_given_up_and_without_looking_back_at_once() {
        let mut cursor = Cursor::new(100, [0, 1]);
        take(&mut cursor, [1, 4], 10);
        assert_eq!(cursor.behind(109), 1);
        assert_eq!(cursor.behind(110), 4);
        assert_eq!(take(&mut cursor, [2], 111), Vec::<u64>::new(), "what is given up is not new any more");
        let mut hasty = Cursor::new(0, [0, 1]);
        take(&mut hasty, [1, 4], 10);
        assert_eq!(hasty.behind(10), 4);
    }

    #[test]
    fn a_key_is_given_up_once_a_higher_one_of_every_writer_was_seen() {
        let mut cursor = Cursor::new(1_000_000, [0, 1]);
        assert!(cursor.take(1, 0, 0) && cursor.take(4, 0, 0));
        assert_eq!(cursor.behind(1), 1, "the other writer may have taken 2 or 3");
        assert!(cursor.take(6, 1, 1));
        assert_eq!(cursor.behind(2), 4, "its rows come in order: only 5 may still come, of the first one");
        assert!(cursor.take(7, 0, 3));
        assert_eq!(cursor.behind(4), 7);
    }

    #[test]
    fn an_answer_that_was_cut_off_goes_on_where_it_ended() {
        let mut cursor = Cursor::new(1_000, [0, 1]);
        take(&mut cursor, [1, 3, 4, 5], 0);
        cursor.cut(5);
        assert_eq!(cursor.behind(1), 5, "not with the key passed over: that answer would be cut off again");
        assert_eq!(take(&mut cursor, [6], 1), [6]);
        assert_eq!(cursor.behind(2), 1);
    }

    #[test]
    fn of_a_window_each_key_is_new_once_in_whatever_order_they_appear() {
        let mut cursor = Cursor::new(0, [0, 1]);
        let mut take = |keys: &[u64]| -> Vec<u64> {
            let new = keys.iter().copied().filter(|key| cursor.take_of_window(*key)).collect();
            cursor.window_begins(*keys.iter().min().unwrap());
            new
        };
        assert_eq!(take(&[5, 4, 2]), [5, 4, 2]);
        assert_eq!(take(&[6, 5, 4, 3]), [6, 3]);
        assert_eq!(take(&[6, 5, 4, 2]), Vec::<u64>::new(), "below the window's begin");
    }
}
