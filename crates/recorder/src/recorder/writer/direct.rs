//! Offers that wait for their commit: written together, each answered. The other half of [`Lane`] for lanes that are fed by the intake.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::feed::{Direct, DirectAnswer};
use super::lane::{Found, Lane, Leave};
use super::messages;
use super::store::News;
use crate::database::DatabaseError;
use crate::layout::recorded::hash_hex;
use crate::recorder::log;
use crate::recorder::spool::{Entry, IdClock, LaneNews};

/// The clocks of two recorders are never further apart: each catches up once a minute.
const CLOCKS_APART: Duration = Duration::from_secs(300);

impl Lane {
    /// Writes offers that wait for their commit, and answers them.
    pub(super) fn store_direct(&mut self, directs: Vec<Direct>) -> Result<(), Leave> {
        let directs = still_waiting(directs);
        if directs.is_empty() {
            return Ok(());
        }
        self.until = directs.iter().map(|direct| direct.until).max();
        let oldest = directs.iter().map(|direct| direct.offer.received_ns).min();
        self.settings.meter.progress.note_waiting(self.settings.lane, oldest);
        let outcome = self.store_and_answer(directs);
        self.settings.meter.progress.note_waiting(self.settings.lane, None);
        outcome
    }

    fn store_and_answer(&mut self, directs: Vec<Direct>) -> Result<(), Leave> {
        let committed = loop {
            match self.connected() {
                Ok(sequence) => break sequence,
                Err(Leave::Found(found)) => match self.say_that_records_are_lost(found) {
                    Ok(()) => {}
                    Err(leave) => return answer_all(directs, leave),
                },
                Err(leave) => return answer_all(directs, leave),
            }
        };
        let directs = still_waiting(directs);
        let (mut entries, mut answers) = (Vec::with_capacity(directs.len()), Vec::with_capacity(directs.len()));
        for (sequence, direct) in (committed + 1..).zip(directs) {
            entries.push(Arc::new(Entry { sequence, offer: direct.offer }));
            answers.push(direct.answer);
        }
        let mut batch = Batch::new(entries);
        let stored = self.leave_out_duplicates(&mut batch).and_then(|duplicates| {
            self.follow_apart(&mut batch)?;
            self.store(&mut batch)?;
            Ok(duplicates)
        });
        self.until = None;
        let unavailable = |reason: String| Err(DirectAnswer::Unavailable(reason));
        let (outcome, leave) = match stored {
            Ok(duplicates) => (Ok(duplicates), None),
            Err(Leave::GaveUp(reason)) => (unavailable(reason), None),
            Err(Leave::Found(found)) => {
                let leave = self.say_that_records_are_lost(found).err();
                (unavailable("the database has forgotten what it had committed".to_owned()), leave)
            }
            Err(Leave::Failed(reason)) => (Err(DirectAnswer::Unknown(reason.clone())), Some(Leave::Failed(reason))),
            Err(leave) => (unavailable("the recorder is stopping".to_owned()), Some(leave)),
        };
        for (place, answer) in answers.into_iter().enumerate() {
            let answered = match &outcome {
                Ok(duplicates) if duplicates.contains(&place) => DirectAnswer::Duplicate,
                Ok(_) => DirectAnswer::Committed,
                Err(answer) => answer.clone(),
            };
            // Whoever asked may have gone away meanwhile.
            let _ = answer.send(answered);
        }
        leave.map_or(Ok(()), Err)
    }

    /// The ledger has gone back, and what was committed behind it was acknowledged and is kept nowhere.
    fn say_that_records_are_lost(&mut self, found: Found) -> Result<(), Leave> {
        self.settings.meter.forgotten.add(1);
        let facts = [("writer", self.settings.lane.to_string()), ("behind_entry", found.sequence.to_string())];
        let facts = facts.each_ref().map(|(name, value)| (*name, value.as_str()));
        log::error("records are lost: the database has forgotten commits that its settings said would last", &facts);
        let Some(news) = found.news else { return Ok(()) };
        self.note(&news.news)?;
        self.disconnect();
        Ok(())
    }

    /// Notes what there is to know of the lane's opening, while a batch is on its way. Where a copy of the spool has taken the row, this lane
    /// goes on with another one.
    pub(super) fn note_directly(&mut self, news: &News) -> Result<(), Leave> {
        if news.news == LaneNews::Checked {
            return self.note(&news.news);
        }
        self.disconnect();
        if !news.is_of_copy {
            return self.note(&news.news);
        }
        self.say_that_a_copy_works(news.through);
        let own = &self.settings.opening;
        let recorder = hash_hex(&[&own.recorder, own.token()]);
        self.note(&LaneNews::Parted { through: 0, recorder })?;
        self.written = 0;
        self.came_to = Some(news.through);
        Ok(())
    }

    /// Another opening has registered, and this lane's own commits had come to an entry.
    pub(super) fn say_that_a_copy_works(&self, sequence: i64) {
        self.settings.meter.copies.add(1);
        let (lane, sequence) = (self.settings.lane.to_string(), sequence.to_string());
        let remedy = "stop one of the two recorders; until then each stores what only it has";
        log::error(
            "another recorder works with a copy of this spool",
            &[("writer", &lane), ("own_through_entry", &sequence), ("remedy", remedy)],
        );
    }

    /// Reads how far time has come for the ids in the database, unless that is known.
    fn keep_id_clock(&mut self) -> Result<(), DatabaseError> {
        if self.id_clock.is_none() {
            let stored_ns = self.with_connection(|connection, _| connection.move_id_clock(None))?;
            self.id_clock = Some(IdClock::new(stored_ns));
        }
        Ok(())
    }

    /// Forgets the ids in the database that are old enough, by a clock that all recorders which write there have in common.
    pub(super) fn forget_messages(&mut self) -> Result<(), DatabaseError> {
        self.keep_id_clock()?;
        let Some(mut clock) = self.id_clock else { return Ok(()) };
        clock.catch_up(self.with_connection(|connection, _| connection.move_id_clock(Some(clock.now_ns())))?);
        self.id_clock = Some(clock);
        let remember_ns = i64::try_from((self.settings.remember + CLOCKS_APART).as_nanos()).unwrap_or(i64::MAX);
        let before_ns = clock.now_ns().saturating_sub(remember_ns);
        self.with_connection(|connection, _| connection.forget_messages(before_ns))
    }

    /// Leaves out what was committed before; the places of those entries.
    pub(super) fn leave_out_duplicates(&mut self, batch: &mut Batch) -> Result<HashSet<usize>, Leave> {
        let keys: Vec<_> = batch.entries.iter().map(|entry| messages::key(&entry.offer)).collect();
        let mut duplicates = HashSet::new();
        if keys.iter().all(Option::is_none) {
            return Ok(duplicates);
        }
        let asked: Vec<_> = keys.iter().flatten().cloned().collect();
        let found = loop {
            let found = self
                .keep_id_clock()
                .and_then(|()| self.with_connection(|connection, _| connection.find_messages(&asked)));
            match found {
                Ok(found) => break found,
                Err(error) => self.wait_out(&error)?,
            }
        };
        let known: HashSet<_> = asked.iter().zip(found).filter(|(_, found)| *found).map(|(key, _)| key).collect();
        let mut seen = HashSet::new();
        for (place, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            if known.contains(key) || !seen.insert(key) {
                duplicates.insert(place);
                batch.leave_out_entry(place);
            }
        }
        Ok(duplicates)
    }
}

/// The offers that somebody still waits for. Whoever has given up sends again, and what is written for nobody would be written each time.
fn still_waiting(directs: Vec<Direct>) -> Vec<Direct> {
    let now = Instant::now();
    let mut waiting = Vec::with_capacity(directs.len());
    for direct in directs {
        if direct.answer.is_closed() {
            continue;
        }
        if direct.until > now {
            waiting.push(direct);
            continue;
        }
        let reason = "other records took the time that there was for these; nothing of them is stored".to_owned();
        let _ = direct.answer.send(DirectAnswer::Unavailable(reason));
    }
    waiting
}

/// Answers offers that nothing was done for.
fn answer_all(directs: Vec<Direct>, leave: Leave) -> Result<(), Leave> {
    let (reason, leave) = match leave {
        Leave::GaveUp(reason) => (reason, None),
        Leave::Failed(reason) => (reason.clone(), Some(Leave::Failed(reason))),
        Leave::Stopped | Leave::Found(_) | Leave::Changed => {
            ("the recorder is stopping".to_owned(), Some(Leave::Stopped))
        }
    };
    for direct in directs {
        let _ = direct.answer.send(DirectAnswer::Unavailable(reason.clone()));
    }
    leave.map_or(Ok(()), Err)
}
