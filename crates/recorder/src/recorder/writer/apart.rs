//! Keeps trouble with one measurement from the others: records that the database refuses, while it takes those of others, wait apart, and the
//! others go on. The part of [`Lane`] that finds out which measurements they are, and sets their records apart.
//!
//! Invariant: while records of a measurement wait apart, no newer one of it is written past them: all go the same way, in order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::batch::Batch;
use super::lane::Lane;
use super::leave::Leave;
use super::messages;
use super::refusal::{Meaning, is_of_database, may_pass, meaning_where};
use crate::database::DatabaseError;
use crate::recorder::line::{Parser, Point};
use crate::recorder::log;
use crate::recorder::spool::{APART_LANES, Apart, ApartPart, Asked, Entry, Offer, SpoolError, WasKept};

/// How often a refusal that seems to be no record's fault is tried before it is put down to a record: with the pauses
/// that takes about a quarter of a minute.
const TRIES_APART: u32 = 10;

/// The records of an entry by their measurement, and the entry's other lines.
struct Split {
    parts: BTreeMap<String, ApartPart>,
    rest: Vec<u8>,
}

impl Lane {
    /// Returns whether this is a lane for records that wait apart.
    pub(super) fn is_apart(&self) -> bool {
        APART_LANES.contains(&self.settings.lane)
    }

    /// Returns what an error means here: where records wait apart, a refusal that does not pass is finally put down to a record.
    pub(super) fn meaning(&self, error: &DatabaseError) -> Meaning {
        meaning_where(error, self.suspected.as_deref())
    }

    /// Notes another refusal of records that wait apart.
    pub(super) fn note_refusal_apart(&mut self, error: &DatabaseError) {
        let DatabaseError::Refused { code, .. } = error else { return };
        if !self.is_apart() || may_pass(error) {
            return;
        }
        self.refusals += 1;
        if self.refusals >= TRIES_APART {
            self.suspected = Some(code.clone());
        }
    }

    /// Sets apart the records of measurements that the database refuses while it takes others; returns false if the trouble is the database's own.
    pub(super) fn set_refused_apart(&mut self, batch: &mut Batch, entries: Range<usize>) -> Result<bool, Leave> {
        if self.is_apart() || self.settings.stop.is_asked() {
            return Ok(false);
        }
        let refused = self.refused_measurements(batch, entries.clone());
        if refused.is_empty() {
            return Ok(false);
        }
        for (measurement, reason) in &refused {
            let remedy = "mend what the reason names; what waits is written then, in order";
            let facts = [("measurement", measurement.as_str()), ("reason", reason), ("remedy", remedy)];
            log::warning("the database refuses a measurement: its records wait apart, and all others go on", &facts);
        }
        self.settings.meter.set_apart.add(refused.len() as u64);
        self.set_apart(batch, entries, &|measurement| refused.contains_key(measurement))
    }

    /// Sets apart the records of measurements whose earlier records wait; returns whether there were any.
    pub(super) fn follow_apart(&mut self, batch: &mut Batch) -> Result<bool, Leave> {
        let apart = self.settings.spool.apart();
        if apart.is_empty() || self.is_apart() {
            return Ok(false);
        }
        self.set_apart(batch, 0..batch.entries.len(), &|measurement| apart.contains_key(measurement))
    }

    /// Leaves out records that are kept here already: when their message was sent before, they may have been set apart, or have gone to quarantine and been replayed
    /// from there, without the message going any further.
    pub(super) fn leave_out_kept(&mut self, batch: &mut Batch) -> Result<(), Leave> {
        if !self.settings.spool.has_ids() {
            return Ok(());
        }
        let (mut asked, mut rows_of) = (Vec::new(), Vec::new());
        for place in 0..batch.entries.len() {
            let message = batch.entries[place].offer.without_body();
            let Some(number) = messages::number(&message) else { continue };
            let (measurements, rows): (Vec<_>, Vec<_>) =
                split(batch, place, &|_| true).parts.into_values().map(|part| (part.measurement, part.rows)).unzip();
            asked.push(Asked { message, number, measurements });
            rows_of.push((batch.first_row(place), rows));
        }
        let were = if asked.is_empty() { Vec::new() } else { self.settings.spool.were_kept(asked)? };
        for ((first, rows), WasKept { apart, replayed }) in rows_of.into_iter().zip(were) {
            let of_apart = rows.into_iter().zip(apart).filter(|(_, was)| *was).flat_map(|(rows, _)| rows);
            of_apart.chain(replayed).for_each(|row| batch.leave_kept(first + row as usize));
        }
        Ok(())
    }

    /// Returns the measurements among some entries whose records the database does not take, with its messages; `None` if it takes nothing at all.
    fn refused_measurements(&mut self, batch: &Batch, entries: Range<usize>) -> BTreeMap<String, String> {
        let mut by_measurement: BTreeMap<String, Vec<Arc<Entry>>> = BTreeMap::new();
        for place in entries {
            let entry = &batch.entries[place];
            for (measurement, part) in split(batch, place, &|_| true).parts {
                let rows = u32::try_from(part.rows.len()).unwrap_or(u32::MAX);
                let offer = Offer { rows, body: part.body, ..entry.offer.without_body() };
                let part = Arc::new(Entry { sequence: entry.sequence, offer });
                by_measurement.entry(measurement).or_default().push(part);
            }
        }
        let mut refused = BTreeMap::new();
        if self.with_connection(|connection, _| connection.probe_without_rows()).is_err() {
            return refused;
        }
        for (measurement, entries) in by_measurement {
            let part = Batch::new(entries);
            let rows = part.rows_of(0..part.entries.len());
            let tried = self.with_connection(|connection, context| {
                let ready = connection.make_ready(&part, rows, context)?;
                if ready.rows() == 0 || ready.is_cut() { Ok(()) } else { connection.probe(&ready, context) }
            });
            match tried {
                Err(error) if self.meaning(&error) == Meaning::Wait && !is_of_database(&error) => {
                    refused.insert(measurement, error.to_string());
                }
                // What a record causes is found when it is written.
                Ok(()) => {}
                Err(error) if error.is_refusal() => {}
                Err(_) => return BTreeMap::new(),
            }
        }
        refused
    }

    /// Takes records out of a batch, durably, to wait apart; returns whether there were any.
    fn set_apart(
        &mut self,
        batch: &mut Batch,
        entries: Range<usize>,
        is_chosen: &dyn Fn(&str) -> bool,
    ) -> Result<bool, Leave> {
        let (mut apart, mut rows) = (Vec::new(), Vec::new());
        for place in entries {
            let Split { parts, rest } = split(batch, place, is_chosen);
            let parts: Vec<_> = parts.into_values().collect();
            if !parts.is_empty() {
                let first = batch.first_row(place);
                rows.extend(parts.iter().flat_map(|part| &part.rows).map(|row| first + *row as usize));
                apart.push(Apart {
                    entry: Arc::clone(&batch.entries[place]),
                    is_spooled: self.is_spooled(),
                    parts,
                    rest,
                });
            }
        }
        if apart.is_empty() {
            return Ok(false);
        }
        loop {
            match self.settings.spool.set_apart(apart.clone()) {
                Err(SpoolError::Full(reason)) => self.wait_out(&DatabaseError::refused("SQLITE_FULL", reason))?,
                outcome => {
                    outcome?;
                    break;
                }
            }
        }
        if self.is_spooled() {
            // The entries have changed.
            return Err(Leave::Changed);
        }
        rows.into_iter().for_each(|row| batch.leave_kept(row));
        Ok(true)
    }
}

/// Splits an entry's records: those of chosen measurements that are to be written, and all other lines.
fn split(batch: &Batch, place: usize, is_chosen: &dyn Fn(&str) -> bool) -> Split {
    let offer = &batch.entries[place].offer;
    let mut parser = Parser::new(&offer.body, offer.precision);
    let mut point = Point::default();
    let mut split = Split { parts: BTreeMap::new(), rest: Vec::new() };
    let mut number = 0;
    while let Some(read) = parser.next(&mut point) {
        let is_wanted = read.is_ok() && !batch.is_left_out(batch.first_row(place) + number as usize);
        let measurement = if is_wanted { point.measurement().resolve() } else { "".into() };
        let body = if is_wanted && is_chosen(&measurement) {
            let name =
                || ApartPart { measurement: measurement.clone().into_owned(), rows: Vec::new(), body: Vec::new() };
            if !split.parts.contains_key(&*measurement) {
                split.parts.insert(measurement.clone().into_owned(), name());
            }
            let Some(part) = split.parts.get_mut(&*measurement) else { continue };
            part.rows.push(number);
            &mut part.body
        } else {
            &mut split.rest
        };
        body.extend_from_slice(point.bytes);
        body.push(b'\n');
        number += 1;
    }
    split
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_split_without_losing_a_line_or_its_order() {
        let offer = Offer::plain("s", 6, b"a f=1 1\nb f=2 2\na f=\"x\ny\" 3\nc f=3\nb f=4 4\na f=5 5\n");
        let mut batch = Batch::new(vec![Arc::new(Entry { sequence: 9, offer })]);
        // It is in quarantine already, and stays at its number.
        batch.leave_out(5);
        let Split { parts, rest } = split(&batch, 0, &|measurement| measurement != "c");
        assert_eq!(parts["a"].rows, [0, 2]);
        assert_eq!(parts["a"].body, b"a f=1 1\na f=\"x\ny\" 3\n");
        assert_eq!((&parts["b"].rows[..], &parts["b"].body[..]), (&[1, 4][..], &b"b f=2 2\nb f=4 4\n"[..]));
        assert_eq!(rest, b"c f=3\na f=5 5\n");
    }
}
