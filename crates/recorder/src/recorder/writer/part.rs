//! Lanes that write a part of a shared stream. The part's row of the ledger has come to a number of the stream, and belongs to the recorder that
//! took it last. The other half of [`Lane`] for these lanes.
//!
//! Invariant: messages are stored in their order; behind one that is not stored, nothing is stored and the lane ends.

use std::sync::Arc;

use super::batch::Batch;
use super::feed::{Direct, DirectAnswer};
use super::lane::Lane;
use super::leave::{Found, Leave};
use crate::recorder::log;
use crate::recorder::spool::{Entry, LaneNews};

impl Lane {
    /// Returns whether the lane is fed by a part of a shared stream.
    pub(super) fn is_of_part(&self) -> bool {
        self.settings.hold.is_some()
    }

    /// Returns an error once another recorder may have the lane's part.
    pub(super) fn check_hold(&self) -> Result<(), Leave> {
        match &self.settings.hold {
            Some(hold) if !hold.is_valid() => Err(Leave::Stopped),
            _ => Ok(()),
        }
    }

    /// Connects, however long it takes, takes the part's row of the ledger from whoever had it, and tells the intake how far it has come.
    pub(super) fn open_part(&mut self) -> Result<(), Leave> {
        self.check_hold()?;
        let through = self.connected().map_err(|leave| self.say_why_lost(leave))?;
        if let Some(hold) = &self.settings.hold {
            hold.note_open(through);
        }
        self.settings.meter.progress.note_success(self.settings.lane);
        Ok(())
    }

    /// Deals with news about the part's row: it was taken by this lane, or by another recorder after it.
    pub(super) fn note_part(&mut self, news: &LaneNews) -> Result<(), Leave> {
        if *news == LaneNews::Checked {
            self.settings.opening.is_checked = true;
            return Ok(());
        }
        if let Some(hold) = self.settings.hold.as_ref().filter(|hold| hold.is_valid()) {
            let remedy = "give all recorders of the stream that write into this database the same intake.nats.consumer";
            let part = hold.part().to_string();
            log::error(
                "a recorder that does not share the parts of the stream has taken one of them",
                &[("part", &part), ("remedy", remedy)],
            );
        }
        Err(Leave::Stopped)
    }

    /// Stores messages and answers them. Messages that are not answered are not stored, or are found in the ledger when the part is opened again.
    pub(super) fn store_messages(&mut self, directs: Vec<Direct>) -> Result<(), Leave> {
        let oldest = directs.iter().map(|direct| direct.offer.received_ns).min();
        self.settings.meter.progress.note_waiting(self.settings.lane, oldest);
        let stored = self.store_in_order(directs).map_err(|leave| self.say_why_lost(leave));
        self.settings.meter.progress.note_waiting(self.settings.lane, None);
        stored
    }

    fn store_in_order(&mut self, directs: Vec<Direct>) -> Result<(), Leave> {
        self.until = None;
        let mut through = self.connected()?;
        let (mut entries, mut answers) = (Vec::with_capacity(directs.len()), Vec::with_capacity(directs.len()));
        for Direct { offer, answer, number, .. } in directs {
            if number <= through {
                // Nobody need wait any more for any of these answers.
                let _ = answer.send(DirectAnswer::Duplicate);
                continue;
            }
            through = number;
            entries.push(Arc::new(Entry { sequence: number, offer }));
            answers.push(answer);
        }
        if entries.is_empty() {
            return Ok(());
        }
        let mut batch = Batch::new(entries);
        let duplicates = self.leave_out_duplicates(&mut batch)?;
        self.store_what_is_new(&mut batch)?;
        for (place, answer) in answers.into_iter().enumerate() {
            let is_known = duplicates.contains_key(&place);
            let _ = answer.send(if is_known { DirectAnswer::Duplicate } else { DirectAnswer::Committed });
        }
        Ok(())
    }

    /// Reports that the database has forgotten commits, if that is why the lane ends.
    fn say_why_lost(&self, leave: Leave) -> Leave {
        let Leave::Found(Found { sequence, has_forgotten: true, .. }) = &leave else { return leave };
        self.settings.meter.forgotten.add(1);
        let through = sequence.to_string();
        log::error(
            "the database has forgotten commits; the stream is read again from the message where the database is, as far as it still has them",
            &[("through_message", &through), ("writer", &self.settings.lane.to_string())],
        );
        leave
    }
}
