//! Offers that wait for their commit: written together, each answered. The other half of [`Lane`] for lanes that are fed by the intake.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::batch::Batch;
use super::feed::{Direct, DirectAnswer};
use super::lane::Lane;
use super::leave::{Found, Leave};
use super::messages;
use super::store::News;
use crate::database::DatabaseError;
use crate::layout::recorded::hash_hex;
use crate::recorder::log;
use crate::recorder::spool::{Entry, IdClock, LaneNews};

/// The most that an id's time is behind the clock of another writer that forgets ids; more than [`IdClock::AHEAD_NS_MOST`].
const CLOCKS_APART: Duration = Duration::from_secs(300);

/// Entries of a batch that are not to be written again, by place, each with the place of the first one if that is in the batch as well.
type Duplicates = HashMap<usize, Option<usize>>;

impl Lane {
    /// Writes offers that wait for their commit, and answers them.
    pub(super) fn store_direct(&mut self, directs: Vec<Direct>) -> Result<(), Leave> {
        let directs = still_waiting(directs, self.settings.clock.now());
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
        let directs = still_waiting(directs, self.settings.clock.now());
        let (mut entries, mut answers) = (Vec::with_capacity(directs.len()), Vec::with_capacity(directs.len()));
        for (sequence, direct) in (committed + 1..).zip(directs) {
            entries.push(Arc::new(Entry { sequence, offer: direct.offer }));
            answers.push(direct.answer);
        }
        let mut batch = Batch::new(entries);
        let found = self.leave_out_duplicates(&mut batch);
        let (duplicates, stored) = match found {
            Ok(duplicates) => (duplicates, self.store_what_is_new(&mut batch)),
            Err(leave) => (Duplicates::new(), Err(leave)),
        };
        self.until = None;
        let (others, leave) = match stored {
            Ok(()) => (DirectAnswer::Committed, None),
            Err(Leave::GaveUp(reason)) => (DirectAnswer::Unavailable(reason), None),
            Err(Leave::Found(found)) => {
                batch.forget_behind(found.sequence);
                let leave = self.say_that_records_are_lost(found).err();
                let reason = "the database has forgotten what it had committed".to_owned();
                (DirectAnswer::Unavailable(reason), leave)
            }
            Err(Leave::Failed(reason)) => (DirectAnswer::Unknown(reason.clone()), Some(Leave::Failed(reason))),
            Err(leave) => (DirectAnswer::Unavailable("the recorder is stopping".to_owned()), Some(leave)),
        };
        for (place, answer) in answers.into_iter().enumerate() {
            let answered = match duplicates.get(&place) {
                None => answer_to(&batch, place, &others),
                Some(None) => DirectAnswer::Duplicate,
                Some(Some(first)) => match answer_to(&batch, *first, &others) {
                    DirectAnswer::Committed => DirectAnswer::Duplicate,
                    answer => answer,
                },
            };
            // The caller may have gone away meanwhile.
            let _ = answer.send(answered);
        }
        leave.map_or(Ok(()), Err)
    }

    pub(super) fn store_what_is_new(&mut self, batch: &mut Batch) -> Result<(), Leave> {
        self.leave_out_quarantined(batch)?;
        self.leave_out_kept(batch)?;
        self.follow_apart(batch)?;
        self.store(batch)
    }

    /// Leaves out records in quarantine: a message that was sent before may have come no further, and a replay must not store its records twice.
    fn leave_out_quarantined(&mut self, batch: &mut Batch) -> Result<(), Leave> {
        // Numbers of messages are below 0.
        if !self.settings.reader.has_quarantined(i64::MIN, -1) {
            return Ok(());
        }
        for place in 0..batch.entries.len() {
            let Some(number) = messages::number(&batch.entries[place].offer) else { continue };
            let (first, rows) = (batch.first_row(place), batch.rows_of(place..place + 1));
            for (_, row) in self.settings.reader.quarantined(number, number)? {
                let row = usize::try_from(row).ok().map(|row| first + row).filter(|row| rows.contains(row));
                row.into_iter().for_each(|row| batch.leave_kept(row));
            }
        }
        Ok(())
    }

    /// Reports that the ledger has gone back: commits behind it were acknowledged, and their records are kept nowhere.
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

    /// Notes news about the lane's opening while a batch is on its way. If a copy of the spool has taken the row, this lane
    /// goes on with another one.
    pub(super) fn note_directly(&mut self, news: &News) -> Result<(), Leave> {
        if news.news == LaneNews::Checked || self.is_of_part() {
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

    /// Reports that another opening has registered, and the entry that this lane's own commits had come to.
    pub(super) fn say_that_a_copy_works(&self, sequence: i64) {
        self.settings.meter.copies.add(1);
        let (lane, sequence) = (self.settings.lane.to_string(), sequence.to_string());
        let remedy = "stop one of the two recorders; until then each stores what only it has";
        log::error(
            "another recorder works with a copy of this spool",
            &[("writer", &lane), ("own_through_entry", &sequence), ("remedy", remedy)],
        );
    }

    /// Reads the clock of the ids in the database, unless it is known.
    fn keep_id_clock(&mut self) -> Result<(), DatabaseError> {
        if self.id_clock.is_none() {
            let stored_ns = self.with_connection(|connection, _| connection.move_id_clock(None))?;
            self.id_clock = Some(IdClock::new(stored_ns, &self.settings.clock));
        }
        Ok(())
    }

    /// Forgets the ids in the database that are old enough, by a clock that all recorders which write there share.
    pub(super) fn forget_messages(&mut self) -> Result<(), DatabaseError> {
        self.keep_id_clock()?;
        let Some(mut clock) = self.id_clock.clone() else { return Ok(()) };
        clock.agree(self.with_connection(|connection, _| connection.move_id_clock(Some(clock.now_ns())))?);
        let remember_ns = i64::try_from((self.settings.remember + CLOCKS_APART).as_nanos()).unwrap_or(i64::MAX);
        let before_ns = clock.now_ns().saturating_sub(remember_ns);
        self.id_clock = Some(clock);
        self.with_connection(|connection, _| connection.forget_messages(before_ns))
    }

    /// Leaves out messages that were committed before, and repetitions within the batch.
    pub(super) fn leave_out_duplicates(&mut self, batch: &mut Batch) -> Result<Duplicates, Leave> {
        let keys: Vec<_> = batch.entries.iter().map(|entry| messages::key(&entry.offer)).collect();
        let mut duplicates = Duplicates::new();
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
        let mut seen = HashMap::new();
        for (place, key) in keys.iter().enumerate() {
            let Some(key) = key else { continue };
            let first = seen.entry(key).or_insert(place);
            if known.contains(key) || *first < place {
                duplicates.insert(place, Some(*first).filter(|_| !known.contains(key)));
                batch.leave_out_entry(place);
            }
        }
        Ok(duplicates)
    }
}

/// Returns the answer for an entry's sender; `others` is the answer for entries that are not committed.
fn answer_to(batch: &Batch, place: usize, others: &DirectAnswer) -> DirectAnswer {
    match others {
        _ if batch.is_committed(place) => DirectAnswer::Committed,
        // A sender that is told that nothing is stored sends again.
        DirectAnswer::Unavailable(reason) if batch.is_doubtful(place) || batch.is_kept(place) => {
            DirectAnswer::Unknown(reason.clone())
        }
        others => others.clone(),
    }
}

/// Returns the offers that somebody still waits for. A sender that has given up sends again, so an offer nobody waits for would be written each time.
fn still_waiting(directs: Vec<Direct>, now: Instant) -> Vec<Direct> {
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

/// Answers offers for which nothing was done.
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
