//! A transaction that leaves out the rows that the database refuses: the part of [`Lane`] for a batch with such rows, and of
//! [`Connection`] in it.
//!
//! Invariant: a refused row is durable in quarantine before the others are committed; if it cannot be, nothing of the transaction is committed.

use std::collections::HashSet;
use std::ops::Range;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::identity::Times;
use super::lane::Lane;
use super::leave::Leave;
use super::ledger::Ledger;
use super::refusal::is_dangling;
use super::store::{Connection, Context, Ready};
use crate::database::DatabaseError;
use crate::recorder::quote::quoted;

/// Rows that were written and are not committed yet.
pub(super) struct Taken {
    ready: Ready,
    /// The numbers in the batch of the rows that were refused, with the reasons.
    bad: Vec<(usize, DatabaseError)>,
    /// The lane's row after the commit.
    next: Ledger,
    begun: Instant,
}

impl Taken {
    /// Returns whether a refused row brings a new identity, or points to one that is gone: what is known of identities may be wrong, and others may begin
    /// with what the refused row said.
    fn has_doubtful_identities(&self) -> bool {
        let is_bad: HashSet<_> = self.bad.iter().map(|(row, _)| *row).collect();
        let is_fresh = |number: Option<i64>| self.ready.fresh.iter().any(|(_, fresh)| Some(*fresh) == number);
        self.bad.iter().any(|(_, error)| is_dangling(error))
            || self.ready.bound.units.iter().any(|unit| is_bad.contains(&unit.row) && is_fresh(unit.identity))
    }
}

/// The result of a transaction.
pub(super) enum Came {
    /// It is committed.
    Committed,
    /// It is undone, and it is known now which rows to leave out.
    Undone,
    /// It is undone, and what is known of identities and messages must be looked up again.
    Doubtful,
}

impl Connection {
    /// Writes rows, with the ids of their messages and the lane's row moved to `sequence`, in a transaction that stays open and leaves out rows that the
    /// database refuses. [`Connection::commit_taken`] or [`Connection::undo`] ends it.
    ///
    /// # Errors
    /// Returns the database's error if it is about something other than a row. Nothing is open then.
    fn take(
        &mut self,
        ready: Ready,
        head: (i64, &[(String, i64)]),
        context: &mut Context<'_>,
    ) -> Result<Taken, DatabaseError> {
        let begun = self.clock.now();
        let next = self.append_head(&ready, head, context);
        let head = std::mem::take(&mut self.request);
        let tried = self.way_of(&ready, context).and_then(|way| {
            self.session.begin_dry_run()?;
            self.session.attempt(&head).and_then(|_| self.try_rows((&ready, way), Some(&head), context))
        });
        self.request = head;
        match tried {
            Ok(bad) => Ok(Taken { ready, bad, next, begun }),
            Err(error) => {
                if !error.is_lost() {
                    self.session.end_dry_run()?;
                }
                Err(error)
            }
        }
    }

    /// Undoes the open transaction.
    fn undo(&mut self) -> Result<(), DatabaseError> {
        self.session.end_dry_run()
    }

    /// Commits the open transaction.
    ///
    /// # Errors
    /// As for [`Connection::commit`].
    fn commit_taken(&mut self, taken: &Taken, context: &mut Context<'_>) -> Result<Duration, DatabaseError> {
        // Some errors end a transaction, and what follows is the beginning of another one, in which the row is where it was.
        let last = Ledger { edited_ns: taken.next.edited_ns.saturating_add(1), ..taken.next };
        self.request.clear();
        taken.next.append(&last, self.ledger_statement, &mut self.request);
        if let Err(error) = self.session.attempt(&self.request) {
            if !error.is_lost() {
                self.session.end_dry_run()?;
            }
            return Err(error);
        }
        self.session.keep_dry_run()?;
        let is_bad: HashSet<_> = taken.bad.iter().map(|(row, _)| *row).collect();
        let mut times = Times::new();
        for unit in taken.ready.bound.units.iter().filter(|unit| !is_bad.contains(&unit.row)) {
            let Some(identity) = unit.identity else { continue };
            let newest = times.entry((unit.measurement, identity)).or_insert(unit.time_ns);
            *newest = (*newest).max(unit.time_ns);
        }
        self.note_commit(last, &taken.ready, &times, context);
        Ok(self.clock.since(taken.begun))
    }
}

impl Lane {
    /// Runs one transaction for some entries, which leaves out the rows that the database refuses, once they are in quarantine.
    pub(super) fn store_what_is_taken(
        &mut self,
        batch: &mut Batch,
        entries: Range<usize>,
        is_known: bool,
    ) -> Result<Result<Came, DatabaseError>, Leave> {
        let rows = batch.rows_of(entries.clone());
        let ready = match self.refused.take().filter(|(refused, _)| *refused == rows) {
            // The binder still holds them.
            Some((_, ready)) => Ok(ready),
            None => self.make_ready(batch, rows)?,
        };
        let ready = match ready {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        let keys = self.keys_of(batch, entries.clone());
        if ready.rows() == 0 && keys.is_empty() && !self.is_of_part() {
            // All of it is in quarantine, or was committed before.
            return Ok(Ok(Came::Committed));
        }
        self.came_to = None;
        let sequence = batch.entries[entries.end - 1].sequence;
        let taken = match self.with_connection(|connection, context| connection.take(ready, (sequence, &keys), context))
        {
            Ok(taken) => taken,
            Err(error) => return Ok(Err(error)),
        };
        self.expects_refusals = !taken.bad.is_empty();
        let is_doubtful = taken.has_doubtful_identities();
        self.has_open = true;
        if is_doubtful {
            self.undo_what_is_open();
            let made = |connection: &mut Connection| connection.were_made_meanwhile(&taken.ready);
            // If another writer has created an identity meanwhile, no record is to blame.
            if !is_known || self.with_connection(|connection, _| made(connection)).unwrap_or(false) {
                return Ok(Ok(Came::Doubtful));
            }
        }
        let bad = taken.bad.iter().map(|(row, reason)| (*row, quoted(&reason.to_string()).into_owned())).collect();
        let quarantined = self.quarantine_rows(batch, bad);
        if quarantined.is_err() {
            self.undo_what_is_open();
        }
        quarantined?;
        if !std::mem::take(&mut self.has_open) {
            return Ok(Ok(Came::Undone));
        }
        let outcome = self.with_connection(|connection, context| connection.commit_taken(&taken, context));
        if outcome.as_ref().is_err_and(DatabaseError::is_lost) {
            batch.doubt(entries.clone());
        }
        Ok(outcome.map(|took| {
            let count = taken.ready.rows() - taken.bad.len() as u64;
            // The time that refused rows take says nothing about the others.
            let usual = taken.bad.is_empty().then_some(count);
            self.note_stored(batch, entries, took, usual);
            Came::Committed
        }))
    }

    /// Undoes the transaction that is open, if there is one: its locks must not be held for long.
    pub(super) fn undo_what_is_open(&mut self) {
        if std::mem::take(&mut self.has_open) {
            let undone = self.with_connection(|connection, _| connection.undo());
            if undone.is_err() {
                // The next connection begins without it.
                self.disconnect();
            }
        }
    }
}
