//! Chooses the runs in which rows are tried so that bad ones are found in few tries. Main type: [`Sieve`], a state machine without a database.
//!
//! Trying many rows in one statement costs much less for each row than trying it apart, but says only whether all are good; the rows of a refused run are
//! tried again. Rows that are tried apart are sent together: one round trip says of each whether it is good. So long runs are halved while
//! they are refused, and short ones taken apart; if bad rows are many, all rows are. A database without round trips, which executes a statement for each
//! row anyhow, tries all rows apart from the start. If the database has inserts that pass over what a unique key forbids, long runs are tried with these,
//! until one is refused for another reason.
//!
//! Invariant: each row was in a run that was taken, or was tried apart, or was passed over.

use std::ops::Range;

/// The number of rows in the first run.
const FIRST: usize = 32;
/// The number of rows in the first run that passes over bad rows: it shows whether they are many.
const FIRST_PASSED: usize = 128;
/// The most rows of a run.
const MOST: usize = 1_024;
/// A refused run of at most this many rows is tried apart.
const SHORT: usize = 8;
/// The most rows that are tried apart at a time.
const APART_MOST: usize = 256;
/// If at least one row in this many is bad, all are tried apart.
const DENSE: usize = 16;

/// The way in which rows are tried as long as nothing is known of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// In runs that are halved when they are refused.
    Halving,
    /// Each row by itself.
    Apart,
    /// In runs that pass over bad rows.
    PassingOver,
}

/// The next try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Try {
    /// All rows of the run at once, passing over those that a unique key forbids.
    PassingOver(Range<usize>),
    /// All rows of the run at once.
    Together(Range<usize>),
    /// Each row of the run by itself, behind the good ones before it.
    Apart(Range<usize>),
}

/// Goes through rows in runs: longer ones while they are taken, and shorter ones when they are refused.
#[derive(Debug)]
pub(super) struct Sieve {
    count: usize,
    /// Every row before this place is decided.
    start: usize,
    size: usize,
    is_apart: bool,
    way: Way,
    /// The end of the run from `start` that was refused.
    refused_end: Option<usize>,
    /// The place behind the row that was refused last.
    behind_last: usize,
}

/// Returns whether so many of the rows are bad that all are better tried apart.
pub(super) fn is_dense(bad: usize, rows: usize) -> bool {
    bad * DENSE >= rows
}

impl Sieve {
    /// Returns a sieve for this many rows, of which none is decided.
    pub(super) fn new(count: usize, way: Way) -> Self {
        let size = match way {
            Way::Halving => FIRST,
            Way::Apart => APART_MOST,
            Way::PassingOver => FIRST_PASSED,
        };
        Sieve { count, start: 0, size, is_apart: way == Way::Apart, way, refused_end: None, behind_last: 0 }
    }

    pub(super) fn next_try(&self) -> Option<Try> {
        let end = (self.start + self.size).min(self.refused_end.unwrap_or(self.count)).min(self.count);
        let run = self.start..end;
        match (run.is_empty(), self.is_apart) {
            (true, _) => None,
            (false, _) if self.way == Way::PassingOver => Some(Try::PassingOver(run)),
            (false, true) => Some(Try::Apart(run)),
            (false, false) => Some(Try::Together(run)),
        }
    }

    /// Notes that a run that should pass over rows was refused: from here on runs are halved.
    pub(super) fn halve(&mut self, run: Range<usize>) {
        self.pass_over_no_more();
        self.look_into(run.end);
    }

    /// From here on tries runs that are halved, or rows apart.
    pub(super) fn pass_over_no_more(&mut self) {
        self.way = Way::Halving;
    }

    /// Notes that the run was taken as a whole.
    pub(super) fn take(&mut self, run: Range<usize>) {
        self.start = run.end;
        match self.refused_end {
            Some(end) if end > run.end => self.look_into(end),
            _ => {
                self.refused_end = None;
                self.size = (2 * run.len()).min(MOST);
            }
        }
    }

    /// Notes that the run was refused as a whole.
    pub(super) fn refuse(&mut self, run: Range<usize>) {
        self.look_into(run.end);
    }

    /// Notes that there is a bad row between `start` and this end.
    fn look_into(&mut self, end: usize) {
        let length = end - self.start;
        self.refused_end = Some(end);
        self.is_apart = length <= SHORT;
        self.size = if self.is_apart { length } else { length / 2 };
    }

    /// Notes that the rows from `start` up to this place are decided, each by itself, and which of them are bad.
    pub(super) fn decide(&mut self, end: usize, bad: &[usize]) {
        let tried = end - self.start;
        self.start = end;
        if self.way == Way::PassingOver {
            self.size = MOST;
            return;
        }
        if end < self.refused_end.unwrap_or(end) && bad.is_empty() {
            // The refused run ends behind them.
            return;
        }
        self.refused_end = None;
        let distance = match bad.last() {
            Some(last) => (last + 1 - self.behind_last).div_ceil(bad.len()),
            None => 2 * tried,
        };
        self.behind_last = bad.last().map_or(self.behind_last, |last| last + 1);
        self.is_apart = self.way == Way::Apart || distance <= DENSE;
        self.size = if self.is_apart { APART_MOST } else { (distance / 2).clamp(1, MOST) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The result of sifting.
    #[derive(Debug, Default)]
    struct Sifted {
        found: Vec<usize>,
        /// The number of round trips.
        tries: usize,
        together: usize,
        apart: usize,
    }

    /// Sifts rows of which some are bad; those from a place on for a reason that no insert passes over.
    fn sift(bad: &[bool], way: Way, other_from: usize) -> Sifted {
        let (mut sieve, mut sifted) = (Sieve::new(bad.len(), way), Sifted::default());
        while let Some(next) = sieve.next_try() {
            sifted.tries += 1;
            match next {
                Try::PassingOver(run) => {
                    sifted.together += run.len();
                    let found: Vec<_> = run.clone().filter(|row| bad[*row]).collect();
                    match found.iter().any(|row| *row >= other_from) {
                        true => sieve.halve(run),
                        false => {
                            sieve.decide(run.end, &found);
                            sifted.apart += found.len();
                            sifted.found.extend(found);
                        }
                    }
                }
                Try::Together(run) => {
                    sifted.together += run.len();
                    match bad[run.clone()].contains(&true) {
                        true => sieve.refuse(run),
                        false => sieve.take(run),
                    }
                }
                Try::Apart(run) => {
                    sifted.apart += run.len();
                    let found: Vec<_> = run.clone().filter(|row| bad[*row]).collect();
                    sieve.decide(run.end, &found);
                    sifted.found.extend(found);
                }
            }
        }
        sifted
    }

    fn work(bad: impl Fn(usize) -> bool) -> Sifted {
        let bad: Vec<_> = (0..10_000).map(bad).collect();
        let sifted = sift(&bad, Way::Halving, 0);
        assert_eq!(sifted.found.len(), bad.iter().filter(|bad| **bad).count());
        sifted
    }

    #[test]
    fn the_work_is_a_small_multiple_of_the_rows_and_of_the_bad_ones_among_them() {
        let at_most = |sifted: Sifted, tries, together, apart| {
            assert!(sifted.tries <= tries && sifted.together <= together && sifted.apart <= apart, "{sifted:?}");
        };
        at_most(work(|_| false), 16, 10_000, 0);
        at_most(work(|row| row == 7_777), 30, 15_000, 8);
        at_most(work(|row| row % 1_000 == 50), 130, 25_000, 80);
        at_most(work(|row| row % 100 == 50), 900, 25_000, 800);
        at_most(work(|row| row % 20 == 3), 4_000, 25_000, 4_000);
        for dense in [work(|row| row % 2 == 1), work(|row| (row * 7_919 / 13) % 2 == 1), work(|_| true)] {
            at_most(dense, 50, 100, 10_000);
        }
        let every_second: Vec<_> = (0..10_000).map(|row| row % 2 == 1).collect();
        at_most(sift(&every_second, Way::PassingOver, usize::MAX), 11, 10_000, 5_000);
    }

    proptest! {
        #[test]
        fn exactly_the_bad_rows_are_found(
            way in prop_oneof![Just(Way::Halving), Just(Way::Apart), Just(Way::PassingOver)], share in 0.0..1.0_f64,
            bad in proptest::collection::vec(0.0..1.0_f64, 0..3_000), other_from in 0..3_000_usize,
        ) {
            let bad: Vec<_> = bad.into_iter().map(|drawn| drawn < share * share * share).collect();
            let sifted = sift(&bad, way, other_from);
            let expected: Vec<_> = bad.iter().enumerate().filter(|(_, bad)| **bad).map(|(row, _)| row).collect();
            prop_assert_eq!(sifted.found, expected);
            prop_assert!(sifted.tries <= bad.len() / 2 + 10, "{} tries", sifted.tries);
        }
    }
}
