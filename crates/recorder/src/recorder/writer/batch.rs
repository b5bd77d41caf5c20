//! The rows of several entries, numbered consecutively. Main type: [`Batch`].

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use crate::recorder::spool::Entry;

/// The most bytes of entries that a lane holds at a time.
pub(super) const BATCH_BYTES: usize = 16 << 20;

/// Entries that are written together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub entries: Vec<Arc<Entry>>,
    /// The number of each entry's first row, and one more behind the last entry.
    firsts: Vec<usize>,
    /// Rows that are not to be written, because they are in quarantine or were written before.
    left_out: HashSet<usize>,
    /// Entries of which records are durable elsewhere, in quarantine or waiting apart, by place.
    kept: HashSet<usize>,
    /// Entries that were written before, by place.
    repeated: HashSet<usize>,
    /// Entries that are committed, by place.
    committed: Vec<Range<usize>>,
    /// Entries that may or may not have been committed, by place.
    doubtful: Vec<Range<usize>>,
}

impl Batch {
    /// Returns a batch of entries in order.
    pub(super) fn new(entries: Vec<Arc<Entry>>) -> Self {
        let mut firsts = vec![0];
        let mut rows = 0;
        for entry in &entries {
            rows += entry.offer.rows as usize;
            firsts.push(rows);
        }
        Batch { entries, firsts, ..Batch::default() }
    }

    /// Returns the rows of some entries, by place.
    pub(super) fn rows_of(&self, entries: Range<usize>) -> Range<usize> {
        self.firsts[entries.start]..self.firsts[entries.end]
    }

    /// Returns whether these are all rows of the batch, and each is to be written.
    pub(super) fn is_whole(&self, rows: &Range<usize>) -> bool {
        *rows == self.rows_of(0..self.entries.len()) && self.left_out.is_empty()
    }

    /// Returns the entry of a row, by place.
    pub(super) fn entry_of(&self, row: usize) -> usize {
        self.firsts.partition_point(|first| *first <= row).saturating_sub(1)
    }

    /// Returns the number of an entry's first row.
    pub(super) fn first_row(&self, place: usize) -> usize {
        self.firsts[place]
    }

    /// Leaves a row out of what is written.
    pub(super) fn leave_out(&mut self, row: usize) {
        self.left_out.insert(row);
    }

    /// Leaves a row out of what is written, because it is durable in quarantine or waits apart.
    pub(super) fn leave_kept(&mut self, row: usize) {
        self.leave_out(row);
        let place = self.entry_of(row);
        if !self.repeated.contains(&place) {
            self.kept.insert(place);
        }
    }

    /// Returns whether rows of an entry are durable elsewhere.
    pub(super) fn is_kept(&self, place: usize) -> bool {
        self.kept.contains(&place)
    }

    /// Notes that entries are committed.
    pub(super) fn note_committed(&mut self, entries: Range<usize>) {
        self.committed.push(entries);
    }

    /// Returns whether an entry is committed.
    pub(super) fn is_committed(&self, place: usize) -> bool {
        self.committed.iter().any(|entries| entries.contains(&place))
    }

    /// Notes that the ledger has gone back to a sequence: entries behind it are not committed.
    pub(super) fn forget_behind(&mut self, sequence: i64) {
        let end = self.entries.partition_point(|entry| entry.sequence <= sequence);
        self.committed.iter_mut().for_each(|entries| entries.end = entries.end.min(end));
        self.end_doubts();
    }

    /// Notes that the answer to a commit of entries was lost.
    pub(super) fn doubt(&mut self, entries: Range<usize>) {
        self.doubtful.push(entries);
    }

    /// Notes that it is known again which entries are committed.
    pub(super) fn end_doubts(&mut self) {
        self.doubtful.clear();
    }

    /// Returns whether it is unknown if an entry is committed.
    pub(super) fn is_doubtful(&self, place: usize) -> bool {
        self.doubtful.iter().any(|entries| entries.contains(&place))
    }

    /// Leaves out the record with this number in the entry with this sequence, if the entry is in the batch.
    pub(super) fn leave_out_record(&mut self, sequence: i64, number: i64) {
        if let Ok(place) = self.entries.binary_search_by_key(&sequence, |entry| entry.sequence)
            && let Ok(number) = usize::try_from(number)
        {
            self.left_out.insert(self.firsts[place] + number);
        }
    }

    /// Leaves out a whole entry, because it was written before.
    pub(super) fn leave_out_entry(&mut self, place: usize) {
        self.repeated.insert(place);
        self.kept.remove(&place);
        self.left_out.extend(self.firsts[place]..self.firsts[place + 1]);
    }

    pub(super) fn is_left_out(&self, row: usize) -> bool {
        !self.left_out.is_empty() && self.left_out.contains(&row)
    }

    /// Returns the number of rows of a range that are to be written.
    pub(super) fn count(&self, rows: Range<usize>) -> usize {
        if self.left_out.is_empty() { rows.len() } else { rows.filter(|row| !self.is_left_out(*row)).count() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::spool::Offer;

    #[test]
    fn rows_are_numbered_through_all_entries() {
        let entry = |sequence, rows| Arc::new(Entry { sequence, offer: Offer::plain("s", rows, b"") });
        let mut batch = Batch::new(vec![entry(5, 2), entry(7, 3)]);
        assert_eq!((batch.rows_of(0..1), batch.rows_of(1..2), batch.rows_of(0..2)), (0..2, 2..5, 0..5));
        assert_eq!([0, 1, 2, 4].map(|row| batch.entry_of(row)), [0, 0, 1, 1]);
        batch.leave_out(3);
        assert_eq!((batch.count(0..5), batch.count(3..4)), (4, 0));
        batch.leave_out_entry(0);
        assert_eq!(batch.count(0..5), 2);
        batch.leave_out_record(7, 2);
        batch.leave_out_record(6, 0);
        batch.leave_out_record(7, -1);
        assert_eq!(batch.count(0..5), 1);
    }

    #[test]
    fn what_is_known_of_an_entry_follows_the_ledger() {
        let entry = |sequence| Arc::new(Entry { sequence, offer: Offer::plain("s", 1, b"") });
        let mut batch = Batch::new((5..9).map(entry).collect());
        batch.note_committed(0..2);
        batch.doubt(2..3);
        let known = |batch: &Batch| (0..4).map(|place| (batch.is_committed(place), batch.is_doubtful(place))).collect();
        let before: Vec<_> = known(&batch);
        assert_eq!(before, [(true, false), (true, false), (false, true), (false, false)]);
        batch.forget_behind(5);
        let after: Vec<_> = known(&batch);
        assert_eq!(after, [(true, false), (false, false), (false, false), (false, false)]);
        batch.leave_out_entry(3);
        batch.leave_kept(3);
        batch.leave_kept(2);
        assert_eq!(
            (batch.is_kept(2), batch.is_kept(3)),
            (true, false),
            "what was written before is not written for its sake"
        );
    }
}
