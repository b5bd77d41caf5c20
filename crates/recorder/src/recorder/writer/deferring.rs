//! Refused records of senders that hold more than their share of the quarantine: the part of [`Lane`] that takes them out of their entries to wait in
//! the spool, instead of quarantining them.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::batch::Batch;
use super::lane::Lane;
use super::leave::Leave;
use crate::database::DatabaseError;
use crate::recorder::line::{Parser, Point};
use crate::recorder::log;
use crate::recorder::spool::{Deferred, Entry, SpoolError, holder_of};

/// A refused row of a batch: its number, the reason and the line.
pub(super) type RefusedRow = (usize, String, Vec<u8>);

impl Lane {
    /// Lets refused rows of spooled entries wait for room in quarantine if any of the first `portion` must: then all that must wait do, and the entries
    /// change.
    pub(super) fn defer(&mut self, batch: &Batch, refused: &[RefusedRow], portion: usize) -> Result<(), Leave> {
        let view = self.settings.spool.quarantine_view();
        let must_wait = |place: usize| {
            let offer = &batch.entries[place].offer;
            view.defers(&holder_of(&offer.sender, &offer.source))
        };
        let by_entry = |refused: &[RefusedRow]| -> Vec<(usize, Vec<usize>)> {
            let mut by_entry: Vec<(usize, Vec<usize>)> = Vec::new();
            for (row, _, _) in refused {
                let place = batch.entry_of(*row);
                match by_entry.last_mut().filter(|(known, _)| *known == place) {
                    Some((_, rows)) => rows.push(*row),
                    None => by_entry.push((place, vec![*row])),
                }
            }
            by_entry.retain(|(place, _)| must_wait(*place));
            by_entry
        };
        if by_entry(&refused[..portion]).is_empty() {
            return Ok(());
        }
        let deferred = by_entry(refused);
        let Some((place, rows)) = deferred.first() else { return Ok(()) };
        let reason = refused.iter().find(|(row, _, _)| rows.first() == Some(row)).map_or("", |(_, reason, _)| reason);
        let records: usize = deferred.iter().map(|(_, rows)| rows.len()).sum();
        let (source, records) = (&*batch.entries[*place].offer.source, records.to_string());
        log::warning(
            "refused records wait in the spool: there is no room for them in quarantine",
            &[("records", &records), ("source", source), ("reason", reason)],
        );
        let taken_out = |(place, rows): &(usize, Vec<usize>)| {
            let first = batch.first_row(*place);
            take_out(&batch.entries[*place], &rows.iter().map(|row| row - first).collect())
        };
        self.let_wait(&deferred.iter().map(taken_out).collect::<Vec<_>>())
    }

    /// Takes records durably out of their entries, which change by that.
    fn let_wait(&mut self, deferred: &[Deferred]) -> Result<(), Leave> {
        loop {
            match self.settings.spool.defer(deferred.to_vec()) {
                Err(SpoolError::Full(reason)) => {
                    self.undo_what_is_open();
                    self.wait_out(&DatabaseError::refused("SQLITE_FULL", reason))?;
                }
                outcome => {
                    outcome?;
                    return Err(Leave::Changed);
                }
            }
        }
    }
}

/// Takes records out of an entry, by their numbers.
fn take_out(entry: &Arc<Entry>, numbers: &BTreeSet<usize>) -> Deferred {
    let mut parser = Parser::new(&entry.offer.body, entry.offer.precision);
    let mut point = Point::default();
    let (mut rows, mut body, mut rest, mut number) = (Vec::new(), Vec::new(), Vec::new(), 0);
    while parser.next(&mut point).is_some() {
        let is_taken = numbers.contains(&number);
        if is_taken {
            rows.push(number as i64);
        }
        let lines = if is_taken { &mut body } else { &mut rest };
        lines.extend_from_slice(point.bytes);
        lines.push(b'\n');
        number += 1;
    }
    Deferred { entry: Arc::clone(entry), rows, body, rest }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::spool::Offer;

    #[test]
    fn refused_lines_are_taken_out_and_the_others_keep_their_order() {
        let offer = Offer::plain("s", 4, b"a f=1 1\nb f=\"x\ny\" 2\na f=3 3\nc f=4 4");
        let Deferred { rows, body, rest, .. } = take_out(&Arc::new(Entry { sequence: 1, offer }), &[3, 1].into());
        assert_eq!(rows, [1, 3]);
        assert_eq!(body, b"b f=\"x\ny\" 2\nc f=4 4\n");
        assert_eq!(rest, b"a f=1 1\na f=3 3\n");
    }
}
