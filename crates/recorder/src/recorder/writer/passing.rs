//! Finds bad rows with the database's own insert that passes over rows which a unique key forbids: the third way of [`Connection`], which tries each good
//! row once.
//!
//! The rows whose record numbers are missing after the insert were passed over. Each is tried once more, by itself, to get the reason that
//! the database gives for it alone.
//!
//! Invariant: good and bad rows of a run are told apart only if the counts say that nothing else happened; otherwise the run is undone.

use std::collections::HashSet;
use std::ops::Range;

use super::refusal::{Meaning, meaning_where};
use super::shape::described;
use super::sieve::{Way, is_dense};
use super::sifting::{Found, Piece, measurements_of};
use super::store::{Connection, Context, Ready};
use crate::database::{DatabaseError, PassingOver};
use crate::layout::RECORD_ID;
use crate::record::Cell;
use crate::statement::Statement;

impl Connection {
    /// Returns the way in which the rows are to be tried, and prepares its statements; must not be called within a transaction.
    ///
    /// # Errors
    /// Returns an error if the connection is lost.
    pub(super) fn way_of(&mut self, ready: &Ready, context: &Context<'_>) -> Result<Way, DatabaseError> {
        if !self.session.has_round_trips() {
            return Ok(Way::Apart);
        }
        let measurements: HashSet<_> = ready.bound.units.iter().map(|unit| unit.measurement).collect();
        for measurement in measurements {
            if self.passable.pauses(measurement) {
                return Ok(Way::Halving);
            }
            if self.prepare_passing_over(measurement, context)?.is_none() {
                return Ok(Way::Halving);
            }
        }
        Ok(Way::PassingOver)
    }

    fn prepare_passing_over(
        &mut self,
        place: usize,
        context: &Context<'_>,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        if let Some(known) = self.passable.known(place) {
            return Ok(known);
        }
        let measurement = &self.catalogue.measurements()[place];
        let has_second = self.statements.get(place).is_some_and(|statements| statements.second.is_some());
        // A row of a second table would be passed over there only, and would have to be found, too.
        let found = match has_second {
            true => None,
            false => {
                let described = described(measurement);
                let (table, columns) = (described.record_table(), described.record_columns());
                self.session.prepare_passing_over(&Statement::Insert { table, columns }, context.rows_max)?
            }
        };
        self.passable.note(place, found);
        Ok(found)
    }

    /// Tries a run so that rows which a unique key forbids are passed over, and tries those apart. Returns whether that decides the run: another constraint may
    /// refuse all of it, and if it changes somebody else's rows, or another number than it should, it has to be undone.
    ///
    /// # Errors
    /// Returns the database's error if it is about something other than a row.
    pub(super) fn attempt_passing_over(
        &mut self,
        pieces: &[Piece],
        run: Range<usize>,
        ready: &Ready,
        found: &mut Found,
        context: &Context<'_>,
    ) -> Result<bool, DatabaseError> {
        let own = &pieces[run.clone()];
        let counts_all = self.counts_all(own);
        // Somebody else's row with a record's number would be taken for that record after the insert. No other recorder gives these numbers,
        // as long as this transaction holds the lane's row.
        if counts_all && !self.stored_of(own, context)?.is_empty() {
            return Ok(false);
        }
        let with = self.append_attempt(own, (ready, Way::PassingOver), &found.is_stored, context);
        let changed = match self.session.attempt(&self.request) {
            Ok(answer) => answer.changed,
            Err(error) if is_unfit(&error) || meaning_where(&error, context.suspected) == Meaning::Record => {
                return Ok(false);
            }
            Err(error) => {
                self.passable.give_up(measurements_of(own));
                return Err(error);
            }
        };
        let all = (own.len() + with.len()) as u64;
        let over = match changed == all && !counts_all {
            true => Vec::new(),
            false => {
                let stored = self.stored_of(own, context)?;
                let is_over = |place: &usize| !stored.contains(&record_of(&pieces[*place], context));
                run.clone().filter(is_over).collect()
            }
        };
        let right = if counts_all { all } else { all - over.len() as u64 };
        if changed != right {
            self.session.undo_attempt();
            return Ok(false);
        }
        with.iter().for_each(|place| found.is_stored[*place] = true);
        let mut start = run.start;
        for end in over.iter().copied().chain([run.end]) {
            if start < end {
                found.take(start..end);
            }
            start = end + 1;
        }
        self.attempt_each(pieces, &over, ready, found, context)?;
        Ok(true)
    }

    /// Returns whether the rows behind these, of which this many were passed over, are better tried apart. MariaDB updates the rows that it passes over to
    /// their own values: if every second row is bad, that takes longer than trying each.
    pub(super) fn prefers_apart(&self, pieces: &[Piece], bad: usize) -> bool {
        is_dense(bad, pieces.len()) && self.counts_all(pieces)
    }

    /// Returns whether the count of changed rows does not tell how many were passed over.
    fn counts_all(&self, pieces: &[Piece]) -> bool {
        measurements_of(pieces).any(|place| self.passable.of(place).is_some_and(|passing_over| passing_over.counts_all))
    }

    /// Returns the numbers of those records of some pieces that are stored.
    fn stored_of(&mut self, pieces: &[Piece], context: &Context<'_>) -> Result<HashSet<i64>, DatabaseError> {
        let dialect = context.database.dialect();
        let id = dialect.quote(RECORD_ID);
        let ranges = pieces.chunk_by(|a, b| a.unit.measurement == b.unit.measurement).filter_map(|pieces| {
            let (first, last) = (pieces.first()?, pieces.last()?);
            let table =
                dialect.quote(&described(&self.catalogue.measurements()[first.unit.measurement]).record_table());
            let (first, last) = (record_of(first, context), record_of(last, context));
            Some(format!("SELECT {id} FROM {table} WHERE {id} BETWEEN {first} AND {last}"))
        });
        let sql = ranges.collect::<Vec<_>>().join(" UNION ALL ");
        let rows = self.session.query(&sql);
        if rows.is_err() {
            self.passable.give_up(measurements_of(pieces));
        }
        let rows = rows?;
        Ok(rows.iter().filter_map(|row| row.first()?.as_ref()?.parse().ok()).collect())
    }
}

/// Returns the number of a piece's record, which is the first value of its row.
fn record_of(piece: &Piece, context: &Context<'_>) -> i64 {
    let rows = &context.binder.rows[piece.unit.measurement];
    let width = rows.main.len() / (rows.main_rows as usize).max(1);
    match rows.main.as_slice().get(piece.main * width) {
        Some(Cell::Int(number)) => *number,
        _ => 0,
    }
}

/// Returns whether the table has a unique key that no insert can pass over: in PostgreSQL, one that is checked at the commit.
fn is_unfit(error: &DatabaseError) -> bool {
    matches!(error, DatabaseError::Refused { code, .. } if code == "55000")
}
