//! Finds the rows of a batch that the database refuses, in one dry run of all rows: the half of [`Connection`] for refused batches.
//!
//! Invariant: a dry run is undone, whatever its result.

use std::collections::HashSet;
use std::ops::Range;

use super::bind::Unit;
use super::refusal::{Meaning, is_duplicate, meaning_where};
use super::sieve::{Sieve, Try, Way};
use super::store::{Connection, Context, Ready, append_identity, insert};
use crate::database::{DatabaseError, PassingOver};
use crate::record::Cells;
use crate::statement::{Expect, Request, Step};

/// A unit, with the places of its rows among those of its measurement.
pub(super) struct Piece {
    pub unit: Unit,
    pub main: usize,
    second: usize,
    /// The place of its identity among the new ones.
    fresh: Option<usize>,
}

/// The result of a dry run.
pub(super) struct Found {
    /// The places of the pieces that were refused, with the reasons.
    pub bad: Vec<(usize, DatabaseError)>,
    /// Runs that were taken, none longer than [`TAKEN_MOST`] unless it was tried that way.
    taken: Vec<Range<usize>>,
    /// For each new identity, whether it is stored.
    pub is_stored: Vec<bool>,
}

/// Pieces that were taken one by one are joined to runs of at most this length.
const TAKEN_MOST: usize = 1_024;

impl Found {
    pub fn take(&mut self, run: Range<usize>) {
        match self.taken.last_mut().filter(|last| last.end == run.start && run.end - last.start <= TAKEN_MOST) {
            Some(last) => last.end = run.end,
            None => self.taken.push(run),
        }
    }
}

impl Connection {
    /// Tries rows in the order in which they would be stored, and undoes it. Returns the rows that the database refuses, with the reasons; `None` if another
    /// writer has meanwhile created an identity that was to be inserted, so that its number has to be found first.
    ///
    /// # Errors
    /// Returns the database's error if it is about something other than a row.
    pub(super) fn sift(
        &mut self,
        ready: &Ready,
        context: &mut Context<'_>,
    ) -> Result<Option<Vec<(usize, DatabaseError)>>, DatabaseError> {
        let way = self.way_of(ready, context)?;
        self.session.begin_dry_run()?;
        let outcome = self.try_rows((ready, way), None, context);
        if !outcome.as_ref().is_err_and(DatabaseError::is_lost) {
            self.session.end_dry_run()?;
        }
        let bad = outcome?;
        let is_doubtful = bad.iter().any(|(_, error)| is_duplicate(error));
        Ok(if is_doubtful && self.were_made_meanwhile(ready)? { None } else { Some(bad) })
    }

    /// Writes rows and undoes it, to find out whether the database would take them.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn probe(&mut self, ready: &Ready, context: &mut Context<'_>) -> Result<(), DatabaseError> {
        self.request.clear();
        self.append_rows(ready, context);
        self.try_dry()
    }

    /// Writes something that is no record and undoes it, to find out whether the database takes anything at all.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn probe_without_rows(&mut self) -> Result<(), DatabaseError> {
        self.request.clear();
        let key = format!("probe-{}", self.ledger.writer);
        self.messages.append_insert(&[(key, self.clock.day_ns())], &mut self.request);
        self.try_dry()
    }

    fn try_dry(&mut self) -> Result<(), DatabaseError> {
        self.session.begin_dry_run()?;
        let outcome = self.session.attempt(&self.request);
        if !outcome.as_ref().is_err_and(DatabaseError::is_lost) {
            self.session.end_dry_run()?;
        }
        outcome.map(drop)
    }

    /// Tries rows in the dry run that has begun, with `head` before them if it has been attempted; returns the rows that the database refuses, with the reasons.
    ///
    /// # Errors
    /// Returns the database's error if it is about something other than a row.
    pub(super) fn try_rows(
        &mut self,
        (ready, way): (&Ready, Way),
        head: Option<&Request>,
        context: &mut Context<'_>,
    ) -> Result<Vec<(usize, DatabaseError)>, DatabaseError> {
        let pieces = &arranged(ready)[..];
        let mut sieve = Sieve::new(pieces.len(), way);
        let mut found = Found { bad: Vec::new(), taken: Vec::new(), is_stored: vec![false; ready.fresh.len()] };
        while let Some(next) = sieve.next_try() {
            match next {
                Try::PassingOver(run) => {
                    let before = found.bad.len();
                    if self.attempt_passing_over(pieces, run.clone(), ready, &mut found, context)? {
                        let places: Vec<_> = found.bad[before..].iter().map(|(place, _)| *place).collect();
                        if self.prefers_apart(&pieces[run.clone()], places.len()) {
                            sieve.pass_over_no_more();
                        }
                        sieve.decide(run.end, &places);
                    } else {
                        self.passable.give_up(measurements_of(&pieces[run.clone()]));
                        sieve.halve(run);
                    }
                }
                Try::Together(run) => match self.attempt(&pieces[run.clone()], ready, &mut found.is_stored, context) {
                    Ok(()) => {
                        found.take(run.clone());
                        sieve.take(run);
                    }
                    Err(error) if meaning_where(&error, context.suspected) != Meaning::Record => return Err(error),
                    Err(_) => sieve.refuse(run),
                },
                Try::Apart(run) => {
                    let before = found.bad.len();
                    let each: Vec<_> = run.clone().collect();
                    let end = run.start + self.attempt_each(pieces, &each, ready, &mut found, context)?;
                    let places: Vec<_> = found.bad[before..].iter().map(|(place, _)| *place).collect();
                    sieve.decide(end, &places);
                }
            }
            if !self.session.is_dry_run() {
                self.begin_again((pieces, head), ready, &mut found, context)?;
            }
        }
        Ok(found.bad.into_iter().map(|(place, error)| (pieces[place].unit.row, error)).collect())
    }

    /// Begins the dry run again: everything that was taken is undone, and goes before what follows.
    fn begin_again(
        &mut self,
        (pieces, head): (&[Piece], Option<&Request>),
        ready: &Ready,
        found: &mut Found,
        context: &Context<'_>,
    ) -> Result<(), DatabaseError> {
        self.session.begin_dry_run()?;
        head.map_or(Ok(()), |head| self.session.attempt(head).map(drop))?;
        found.is_stored.fill(false);
        for run in &found.taken {
            self.attempt(&pieces[run.clone()], ready, &mut found.is_stored, context)?;
        }
        Ok(())
    }

    /// Tries some pieces, with the new identities that they need and that are not stored in this dry run.
    fn attempt(
        &mut self,
        pieces: &[Piece],
        ready: &Ready,
        is_stored: &mut [bool],
        context: &Context<'_>,
    ) -> Result<(), DatabaseError> {
        let with = self.append_attempt(pieces, (ready, Way::Halving), is_stored, context);
        let outcome = self.session.attempt(&self.request).map(drop);
        if outcome.is_ok() {
            with.iter().for_each(|place| is_stored[*place] = true);
        }
        outcome
    }

    /// Tries each of some pieces by itself, as many in one round trip as possible; returns how many were tried, which are not all if an error undid the dry run.
    pub(super) fn attempt_each(
        &mut self,
        pieces: &[Piece],
        places: &[usize],
        ready: &Ready,
        found: &mut Found,
        context: &Context<'_>,
    ) -> Result<usize, DatabaseError> {
        let mut tried = 0;
        while tried < places.len() && self.session.is_dry_run() {
            let (mut requests, mut with) = (Vec::new(), Vec::new());
            for piece in places[tried..].iter().map(|place| &pieces[*place]) {
                // It is not known yet whether an identity is stored that another piece of the same round trip brings.
                if piece.fresh.is_some_and(|fresh| with.contains(&fresh)) {
                    break;
                }
                let own = (ready, Way::Apart);
                with.extend(self.append_attempt(std::slice::from_ref(piece), own, &found.is_stored, context));
                requests.push(std::mem::take(&mut self.request));
            }
            for outcome in self.session.attempt_each(&requests) {
                let place = places[tried];
                match outcome {
                    Ok(()) => {
                        found.take(place..place + 1);
                        pieces[place].fresh.iter().for_each(|fresh| found.is_stored[*fresh] = true);
                    }
                    Err(error) if meaning_where(&error, context.suspected) != Meaning::Record => return Err(error),
                    Err(error) => found.bad.push((place, error)),
                }
                tried += 1;
            }
        }
        Ok(tried)
    }

    /// Builds the request that stores some pieces, with the new identities that are not stored yet; returns the places of those identities.
    pub(super) fn append_attempt(
        &mut self,
        pieces: &[Piece],
        (ready, way): (&Ready, Way),
        is_stored: &[bool],
        context: &Context<'_>,
    ) -> Vec<usize> {
        self.request.clear();
        let mut seen = HashSet::new();
        let needed = pieces.iter().filter_map(|piece| piece.fresh).filter(|place| !is_stored[*place]);
        let mut with: Vec<usize> = needed.filter(|place| seen.insert(*place)).collect();
        with.sort_unstable();
        for places in with.chunk_by(|a, b| ready.fresh[*a].0.measurement == ready.fresh[*b].0.measurement) {
            self.append_identities(places, ready);
        }
        for pieces in pieces.chunk_by(|a, b| a.unit.measurement == b.unit.measurement) {
            self.append_pieces(pieces, way, context);
        }
        with
    }

    fn append_identities(&mut self, places: &[usize], ready: &Ready) {
        let first_cell = self.request.cells.len() as u32;
        let Some(first) = places.first().map(|place| ready.fresh[*place].0.measurement) else { return };
        let Some(statement) = self.statements.get(first).and_then(|statements| statements.begin) else { return };
        for place in places {
            let (identity, number) = &ready.fresh[*place];
            append_identity(
                (identity, *number),
                &self.catalogue.measurements()[first],
                self.clock.day_ns(),
                &mut self.request.cells,
            );
        }
        insert(&mut self.request, statement, places.len() as u32, first_cell);
    }

    fn append_pieces(&mut self, pieces: &[Piece], way: Way, context: &Context<'_>) {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return };
        let (rows, statements) =
            (&context.binder.rows[first.unit.measurement], &self.statements[first.unit.measurement]);
        let second = first.second..last.second + last.unit.second_rows as usize;
        let first_cell = self.request.cells.len() as u32;
        copy(&rows.main, rows.main_rows, first.main..last.main + 1, &mut self.request.cells);
        match self.passable.of(first.unit.measurement).filter(|_| way == Way::PassingOver) {
            Some(PassingOver { statement, .. }) => {
                let (rows, expect) = (pieces.len() as u32, Expect::Anything);
                self.request.steps.push(Step { statement, rows, first_cell, expect });
            }
            None => insert(&mut self.request, statements.main, pieces.len() as u32, first_cell),
        }
        if let Some(statement) = statements.second.filter(|_| !second.is_empty()) {
            let first_cell = self.request.cells.len() as u32;
            copy(&rows.second, rows.second_rows, second.clone(), &mut self.request.cells);
            insert(&mut self.request, statement, second.len() as u32, first_cell);
        }
    }
}

/// Returns the measurements of some pieces, by place.
pub(super) fn measurements_of(pieces: &[Piece]) -> impl Iterator<Item = usize> {
    pieces.iter().map(|piece| piece.unit.measurement)
}

/// Returns the units in the order in which they are stored: measurement by measurement.
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
