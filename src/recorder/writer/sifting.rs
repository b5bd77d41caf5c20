//! Which rows of a batch the database refuses: one dry run of all of them. The half of [`Connection`] for batches that are refused.
//!
//! Invariant: a dry run is undone, whatever it came to.

use std::ops::Range;

use super::bind::Unit;
use super::refusal::{Meaning, meaning_where};
use super::sieve::Sieve;
use super::store::{Connection, Context, Ready, append_identity, insert};
use crate::database::DatabaseError;
use crate::record::Cells;
use crate::recorder::spool::now_ns;

/// A unit with the places of its rows among those of its measurement.
struct Piece {
    unit: Unit,
    main: usize,
    second: usize,
    /// Its identity's place among those that are new.
    fresh: Option<usize>,
}

impl Connection {
    /// Tries rows in the order in which they would be stored, and undoes it: those that the database refuses, with the reasons.
    ///
    /// # Errors
    /// As the database answers, about something else than a row.
    pub(super) fn sift(
        &mut self,
        ready: &Ready,
        context: &mut Context<'_>,
    ) -> Result<Vec<(usize, DatabaseError)>, DatabaseError> {
        let pieces = arranged(ready);
        self.session.begin_dry_run()?;
        let outcome = self.try_pieces(&pieces, ready, context);
        if !matches!(&outcome, Err(DatabaseError::Lost(_) | DatabaseError::Unavailable(_))) {
            self.session.end_dry_run()?;
        }
        outcome
    }

    /// Writes rows and undoes it: whether the database would take them.
    ///
    /// # Errors
    /// As the database answers.
    pub(super) fn probe(&mut self, ready: &Ready, context: &mut Context<'_>) -> Result<(), DatabaseError> {
        self.request.clear();
        self.append_rows(ready, context);
        self.try_dry()
    }

    /// Writes something that is no record, and undoes it: whether the database takes anything at all.
    ///
    /// # Errors
    /// As the database answers.
    pub(super) fn probe_without_rows(&mut self) -> Result<(), DatabaseError> {
        self.request.clear();
        let key = format!("probe-{}", self.ledger.writer);
        self.messages.append_insert(&[(key, now_ns())], &mut self.request);
        self.try_dry()
    }

    fn try_dry(&mut self) -> Result<(), DatabaseError> {
        self.session.begin_dry_run()?;
        let outcome = self.session.attempt(&self.request);
        if !matches!(&outcome, Err(DatabaseError::Lost(_) | DatabaseError::Unavailable(_))) {
            self.session.end_dry_run()?;
        }
        outcome
    }

    fn try_pieces(
        &mut self,
        pieces: &[Piece],
        ready: &Ready,
        context: &mut Context<'_>,
    ) -> Result<Vec<(usize, DatabaseError)>, DatabaseError> {
        let (mut sieve, mut bad) = (Sieve::new(pieces.len()), Vec::new());
        let mut is_stored = vec![false; ready.fresh.len()];
        let mut taken: Vec<Range<usize>> = Vec::new();
        while let Some(run) = sieve.next_run() {
            match self.attempt(&pieces[run.clone()], ready, &mut is_stored, context) {
                Ok(()) => {
                    taken.push(run.clone());
                    sieve.take(run);
                }
                Err(error) if meaning_where(&error, context.suspected) != Meaning::Record => return Err(error),
                Err(error) => {
                    bad.extend(sieve.refuse(run).map(|place| (pieces[place].unit.row, error)));
                    if !self.session.is_dry_run() {
                        // All that was taken is undone, and goes before what follows.
                        self.session.begin_dry_run()?;
                        is_stored.fill(false);
                        for run in &taken {
                            self.attempt(&pieces[run.clone()], ready, &mut is_stored, context)?;
                        }
                    }
                }
            }
        }
        Ok(bad)
    }

    /// Tries some pieces, with the new identities that they need and that are not stored in this dry run.
    fn attempt(
        &mut self,
        pieces: &[Piece],
        ready: &Ready,
        is_stored: &mut [bool],
        context: &Context<'_>,
    ) -> Result<(), DatabaseError> {
        self.request.clear();
        let mut with: Vec<usize> = Vec::new();
        for place in pieces.iter().filter_map(|piece| piece.fresh) {
            if !std::mem::replace(&mut is_stored[place], true) {
                with.push(place);
            }
        }
        for places in with.chunk_by(|a, b| ready.fresh[*a].0.measurement == ready.fresh[*b].0.measurement) {
            self.append_identities(places, ready);
        }
        for pieces in pieces.chunk_by(|a, b| a.unit.measurement == b.unit.measurement) {
            self.append_pieces(pieces, context);
        }
        let outcome = self.session.attempt(&self.request);
        if outcome.is_err() {
            with.iter().for_each(|place| is_stored[*place] = false);
        }
        outcome
    }

    fn append_identities(&mut self, places: &[usize], ready: &Ready) {
        let first_cell = self.request.cells.len() as u32;
        let Some(first) = places.first().map(|place| ready.fresh[*place].0.measurement) else { return };
        let Some(statement) = self.statements.get(first).and_then(|statements| statements.begin) else { return };
        for place in places {
            let (identity, number) = &ready.fresh[*place];
            append_identity(identity, *number, &self.catalogue.measurements()[first], &mut self.request.cells);
        }
        insert(&mut self.request, statement, places.len() as u32, first_cell);
    }

    fn append_pieces(&mut self, pieces: &[Piece], context: &Context<'_>) {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return };
        let (rows, statements) =
            (&context.binder.rows[first.unit.measurement], &self.statements[first.unit.measurement]);
        let second = first.second..last.second + last.unit.second_rows as usize;
        let first_cell = self.request.cells.len() as u32;
        copy(&rows.main, rows.main_rows, first.main..last.main + 1, &mut self.request.cells);
        insert(&mut self.request, statements.main, pieces.len() as u32, first_cell);
        if let Some(statement) = statements.second.filter(|_| !second.is_empty()) {
            let first_cell = self.request.cells.len() as u32;
            copy(&rows.second, rows.second_rows, second.clone(), &mut self.request.cells);
            insert(&mut self.request, statement, second.len() as u32, first_cell);
        }
    }
}

/// The units in the order in which they are stored: measurement by measurement.
fn arranged(ready: &Ready) -> Vec<Piece> {
    let mut behind: Vec<(usize, usize)> = Vec::new();
    let first_fresh = ready.fresh.first().map_or(0, |(_, number)| *number);
    let mut pieces: Vec<_> = Vec::with_capacity(ready.bound.units.len());
    for unit in &ready.bound.units {
        if behind.len() <= unit.measurement {
            behind.resize(unit.measurement + 1, (0, 0));
        }
        let (main, second) = behind[unit.measurement];
        behind[unit.measurement] = (main + 1, second + unit.second_rows as usize);
        let fresh = unit.identity.and_then(|number| usize::try_from(number - first_fresh).ok());
        let fresh = fresh.filter(|place| ready.fresh.get(*place).is_some_and(|(_, own)| Some(*own) == unit.identity));
        pieces.push(Piece { unit: *unit, main, second, fresh });
    }
    pieces.sort_by_key(|piece| piece.unit.measurement);
    pieces
}

/// Copies some rows of a table's cells.
fn copy(from: &Cells, rows: u32, range: Range<usize>, to: &mut Cells) {
    let width = from.len() / (rows as usize).max(1);
    for cell in &from.as_slice()[range.start * width..range.end * width] {
        to.copy_from(from, *cell);
    }
}
