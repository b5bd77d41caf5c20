//! In which runs rows are tried so that the bad ones are found with few tries. Main type: [`Sieve`], a state machine without a database.
//!
//! Invariant: each row is passed in a run that was taken, or refused in a run of its own.

use std::ops::Range;

/// Rows of the first run.
const FIRST: usize = 32;
/// The most rows of a run.
const MOST: usize = 1_024;

/// Goes through rows in runs: longer ones while they are taken, and halves of the one that is refused.
#[derive(Debug)]
pub(super) struct Sieve {
    count: usize,
    /// Everything before is decided.
    start: usize,
    size: usize,
    /// The end of the run from `start` that was refused.
    refused_end: Option<usize>,
    /// Behind the row that was refused last.
    behind_last: usize,
}

impl Sieve {
    pub(super) fn new(count: usize) -> Self {
        Sieve { count, start: 0, size: FIRST, refused_end: None, behind_last: 0 }
    }

    /// The run that is to be tried next.
    pub(super) fn next_run(&self) -> Option<Range<usize>> {
        let end = (self.start + self.size).min(self.refused_end.unwrap_or(self.count)).min(self.count);
        (self.start < end).then_some(self.start..end)
    }

    /// The run was taken.
    pub(super) fn take(&mut self, run: Range<usize>) {
        self.start = run.end;
        match self.refused_end {
            Some(end) if end > run.end => self.size = ((end - run.end) / 2).max(1),
            _ => {
                self.refused_end = None;
                self.size = (2 * run.len()).min(MOST);
            }
        }
    }

    /// The run was refused; the row that is to blame, once it is known.
    pub(super) fn refuse(&mut self, run: Range<usize>) -> Option<usize> {
        if run.len() > 1 {
            self.refused_end = Some(run.end);
            self.size = run.len() / 2;
            return None;
        }
        // The next bad row is about as far away as this one was from the last.
        self.size = ((run.start - self.behind_last) / 2).clamp(1, MOST);
        self.refused_end = None;
        self.start = run.end;
        self.behind_last = run.end;
        Some(run.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rows found, the tries, and the rows of all tries.
    fn sift(bad: &[bool]) -> (Vec<usize>, usize, usize) {
        let (mut sieve, mut found, mut tries, mut tried) = (Sieve::new(bad.len()), Vec::new(), 0, 0);
        while let Some(run) = sieve.next_run() {
            (tries, tried) = (tries + 1, tried + run.len());
            match bad[run.clone()].contains(&true) {
                true => found.extend(sieve.refuse(run)),
                false => sieve.take(run),
            }
        }
        (found, tries, tried)
    }

    fn work(bad: impl Fn(usize) -> bool) -> (usize, usize) {
        let bad: Vec<_> = (0..10_000).map(bad).collect();
        let (found, tries, tried) = sift(&bad);
        assert_eq!(found.len(), bad.iter().filter(|bad| **bad).count());
        (tries, tried)
    }

    #[test]
    fn the_work_is_a_small_multiple_of_the_rows_and_of_the_bad_ones_among_them() {
        assert!(work(|_| false).0 <= 16);
        assert!(work(|row| row == 7_777).0 <= 40);
        let (tries, tried) = work(|row| row % 100 == 50);
        assert!(tries <= 100 * 12 && tried <= 40_000, "{tries} tries of {tried} rows");
        let (tries, tried) = work(|row| row % 2 == 1);
        assert!(tries <= 16_000 && tried <= 25_000, "{tries} tries of {tried} rows");
        let (tries, tried) = work(|row| (row * 7_919 / 13) % 2 == 1);
        assert!(tries <= 20_000 && tried <= 30_000, "{tries} tries of {tried} rows");
        let (tries, tried) = work(|_| true);
        assert!(tries <= 10_010 && tried <= 10_100, "{tries} tries of {tried} rows");
    }

    proptest! {
        #[test]
        fn exactly_the_bad_rows_are_found(bad in proptest::collection::vec(proptest::bool::weighted(0.2), 0..300)) {
            let (found, tries, _) = sift(&bad);
            let expected: Vec<_> = bad.iter().enumerate().filter(|(_, bad)| **bad).map(|(row, _)| row).collect();
            prop_assert_eq!(found, expected);
            prop_assert!(tries <= 3 * bad.len() + 10, "{} tries", tries);
        }
    }
}
