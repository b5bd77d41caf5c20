//! The next batch of a lane is read and bound while the database works on the one before it, so that the database does not wait for that. Main type: [`Ahead`].
//!
//! Invariant: what was prepared is written only if reading and binding it now would give the same: behind the same entry, with the same tables, and with
//! the same numbers of records and identities. Otherwise it is read and bound again.

use std::collections::HashMap;
use std::sync::Arc;

use super::batch::{BATCH_BYTES, Batch};
use super::bind::{Binder, Bound};
use super::catalogue::Catalogue;
use super::identity::Identities;
use crate::recorder::meter::Meter;
use crate::recorder::spool::{Entry, Reader};

/// The most bytes of entries that are prepared: they are in memory beside the batch that is being written.
const BYTES_MAX: usize = BATCH_BYTES / 2;

/// Where a lane prepares its next batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preparing {
    /// In a thread beside the writer.
    InThread,
    /// In the writer's own turn, before the database is asked: nothing depends on which thread is faster.
    #[cfg(any(test, feature = "simulated"))]
    InTurn,
}

/// A lane's next batch.
#[derive(Debug)]
pub(super) struct Ahead {
    preparing: Preparing,
    /// Binds the next batch. The lane's other binder holds the rows of the present one.
    binder: Binder,
    /// The tables that the binder knows.
    catalogue: Option<Arc<Catalogue>>,
    /// How many rows to prepare while the next transaction is committed; `None` if there is nothing to prepare.
    wanted: Option<u64>,
    prepared: Option<Prepared>,
    /// The rows of the batch that is due, until they are used.
    due: Option<PreparedRows>,
    meter: Arc<Meter>,
}

/// Entries that were read, and their rows.
#[derive(Debug)]
struct Prepared {
    /// The entry behind which they were read.
    after: i64,
    /// The number of rows that was asked for.
    rows_max: u64,
    entries: Vec<Arc<Entry>>,
    rows: PreparedRows,
}

/// The rows of a whole batch, and what they were bound with.
#[derive(Debug)]
pub(super) struct PreparedRows {
    pub bound: Bound,
    /// Holds the cells.
    pub binder: Binder,
    pub catalogue: Arc<Catalogue>,
    /// The number of the first record.
    pub first_record: i64,
    /// How often identities had been forgotten.
    pub forgotten: u64,
}

/// What is needed to prepare a batch.
pub(super) struct Task<'a> {
    pub ahead: &'a mut Ahead,
    pub reader: &'a Reader,
    pub lane: u32,
    /// The last entry of the batch before.
    pub after: i64,
    pub catalogue: &'a Arc<Catalogue>,
    pub identities: &'a mut Identities,
    /// The number of the first record, if everything before it is committed.
    pub first_record: i64,
}

impl PreparedRows {
    /// Returns whether binding them with these tables, numbers and identities would give the same.
    pub(super) fn are_as_bound(&self, catalogue: &Arc<Catalogue>, first_record: i64, identities: &Identities) -> bool {
        Arc::ptr_eq(&self.catalogue, catalogue)
            && self.first_record == first_record
            && self.forgotten == identities.forgotten()
    }
}

impl Ahead {
    /// Returns a lane's first state, with a binder like the lane's own.
    pub(super) fn new(preparing: Preparing, binder: Binder, meter: Arc<Meter>) -> Self {
        Ahead { preparing, binder, catalogue: None, wanted: None, prepared: None, due: None, meter }
    }

    /// Says how many rows are to be prepared while the next transaction is committed.
    pub(super) fn want(&mut self, rows: Option<u64>) {
        self.wanted = rows;
    }

    /// Returns whether anything is to be prepared.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.is_some()
    }

    /// Forgets the prepared batch, and prepares none.
    pub(super) fn forget(&mut self) {
        (self.wanted, self.due) = (None, None);
        if let Some(prepared) = self.prepared.take() {
            self.binder = prepared.rows.binder;
        }
    }

    /// Returns the entries of the batch behind an entry, if it was prepared with this many rows. Its rows are due then.
    pub(super) fn take(&mut self, after: i64, rows_max: u64) -> Option<Vec<Arc<Entry>>> {
        self.due = None;
        if self.prepared.as_ref().is_some_and(|prepared| (prepared.after, prepared.rows_max) != (after, rows_max)) {
            self.forget();
        }
        let Prepared { entries, rows, .. } = self.prepared.take()?;
        self.due = Some(rows);
        Some(entries)
    }

    /// Returns the rows of the batch that is due, once. If they are not to be written as they are, only their memory is used again.
    pub(super) fn take_rows(&mut self, are_wanted: bool) -> Option<PreparedRows> {
        let rows = self.due.take()?;
        if are_wanted {
            return Some(rows);
        }
        self.give_back(rows.binder);
        None
    }

    /// Counts a prepared batch that is written.
    pub(super) fn note_used(&self) {
        self.meter.prepared.add(1);
    }

    /// Takes back a binder whose memory can be used again; it knows the tables that the last batch was prepared with.
    pub(super) fn give_back(&mut self, binder: Binder) {
        self.binder = binder;
    }
}

impl Task<'_> {
    /// Does some work, and prepares the batch from the moment on at which the work calls the function that it is given. The database, this thread and the one
    /// that prepares share the processors: if preparing began first, the database would wait for it.
    pub(super) fn beside<T>(self, work: impl FnOnce(&mut dyn FnMut()) -> T) -> T {
        let preparing = self.ahead.preparing;
        let mut task = Some(self);
        match preparing {
            Preparing::InThread => std::thread::scope(|scope| {
                let mut thread = None;
                let done = work(&mut || {
                    if let Some(task) = task.take() {
                        let builder = std::thread::Builder::new().name("preparing".to_owned());
                        // If the system has no thread left, the batch is read when it is due.
                        thread = builder.spawn_scoped(scope, move || task.run()).ok();
                    }
                });
                if let Some(Err(panicked)) = thread.map(|thread| thread.join()) {
                    std::panic::resume_unwind(panicked);
                }
                done
            }),
            #[cfg(any(test, feature = "simulated"))]
            Preparing::InTurn => work(&mut || task.take().map(Task::run).unwrap_or_default()),
        }
    }

    fn run(self) {
        let ahead = self.ahead;
        let wanted = ahead.wanted.take();
        ahead.forget();
        let Some(rows_max) = wanted else { return };
        // Trouble is found again, and dealt with, when the batch is due.
        let Ok(found) = self.reader.read(self.lane, (self.after, i64::MAX), BYTES_MAX, rows_max) else { return };
        let entries: Option<Vec<_>> = found.into_iter().map(|found| found.ok().map(Arc::new)).collect();
        let Some(batch) = entries.map(Batch::new) else { return };
        let rows = batch.rows_of(0..batch.entries.len());
        // More may come until a batch is due that is not full.
        if (rows.len() as u64) < rows_max {
            return;
        }
        if ahead.catalogue.as_ref().is_none_or(|known| !Arc::ptr_eq(known, self.catalogue)) {
            ahead.binder.forget();
            ahead.catalogue = Some(Arc::clone(self.catalogue));
        }
        let (catalogue, nothing) = (Arc::clone(self.catalogue), HashMap::new());
        let bound = ahead.binder.bind(&batch, rows, &catalogue, self.identities, &nothing, self.first_record);
        if !bound.is_complete() {
            return;
        }
        let fresh = ahead.binder.like();
        let rows = PreparedRows {
            bound,
            binder: std::mem::replace(&mut ahead.binder, fresh),
            catalogue,
            first_record: self.first_record,
            forgotten: self.identities.forgotten(),
        };
        ahead.prepared = Some(Prepared { after: self.after, rows_max, entries: batch.entries, rows });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::config::NewColumns;
    use crate::recorder::spool::Offer;

    fn rows(catalogue: &Arc<Catalogue>, identities: &Identities) -> PreparedRows {
        PreparedRows {
            bound: Bound::default(),
            binder: Binder::new(NewColumns::Add, 10),
            catalogue: Arc::clone(catalogue),
            first_record: 101,
            forgotten: identities.forgotten(),
        }
    }

    #[test]
    fn rows_are_bound_again_when_tables_numbers_or_identities_are_others() {
        let (catalogue, other) = (Arc::new(Catalogue::default()), Arc::new(Catalogue::default()));
        let mut identities = Identities::new(10);
        let rows = rows(&catalogue, &identities);
        assert!(rows.are_as_bound(&catalogue, 101, &identities));
        assert!(!rows.are_as_bound(&other, 101, &identities), "other tables, although they look the same");
        assert!(!rows.are_as_bound(&catalogue, 102, &identities), "something else was committed before");
        identities.clear();
        assert!(!rows.are_as_bound(&catalogue, 101, &identities), "the numbers of identities may have changed");
    }

    #[test]
    fn a_prepared_batch_is_taken_once_behind_its_entry_and_with_as_many_rows() {
        let catalogue = Arc::new(Catalogue::default());
        let entries = || vec![Arc::new(Entry { sequence: 8, offer: Offer::plain("s", 1, b"m f=1 1\n") })];
        let mut ahead = Ahead::new(Preparing::InTurn, Binder::new(NewColumns::Add, 10), Arc::default());
        let mut take = |after, rows_max| {
            let rows = rows(&catalogue, &Identities::new(10));
            ahead.prepared = Some(Prepared { after: 7, rows_max: 50, entries: entries(), rows });
            let taken = ahead.take(after, rows_max).map(|entries| entries[0].sequence);
            assert!(ahead.take(7, 50).is_none(), "it is used or gone");
            taken
        };
        assert_eq!([take(7, 50), take(6, 50), take(8, 50), take(7, 49)], [Some(8), None, None, None]);
        ahead.prepared =
            Some(Prepared { after: 7, rows_max: 50, entries: entries(), rows: rows(&catalogue, &Identities::new(10)) });
        ahead.want(Some(50));
        ahead.forget();
        assert!(ahead.take(7, 50).is_none() && !ahead.is_wanted());
    }
}
