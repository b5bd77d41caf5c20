//! Entries of the spool: read in order, written, and settled once the database cannot forget them. The half of [`Lane`] for lanes that are fed
//! by the spool.
//!
//! Invariant: an entry that was settled in the spool is in the database for good, as far as the database's own settings say.

use std::sync::Arc;
use std::time::Duration;

use super::batch::{BATCH_BYTES, Batch};
use super::lane::{IDLE, Lane};
use super::leave::{Found, LaneEnd, Leave};
use super::store::News;
use crate::recorder::log;
use crate::recorder::spool::{Entry, LaneNews, Reader, Refusal, Refused};

/// How long a lane waits for others before it looks again.
const SHORT: Duration = Duration::from_millis(10);

impl Lane {
    /// Writes the lane's entries of the spool until the lane is told to stop.
    pub(super) fn run_spooled(&mut self) -> Result<LaneEnd, Leave> {
        let (mut course, reader) = (Course::default(), self.settings.reader.clone());
        loop {
            if let Some(end) = self.turn(&reader, &mut course)? {
                return Ok(end);
            }
        }
    }

    /// Writes what comes next, or waits a little; returns how the lane has ended, if it has.
    pub(super) fn turn(&mut self, reader: &Reader, course: &mut Course) -> Result<Option<LaneEnd>, Leave> {
        self.settings.pulse.wait_for(IDLE);
        if self.settings.stop.is_over() {
            return Ok(Some(LaneEnd::Stopped));
        }
        if self.is_occasional() && !self.is_connected() && !self.has_work(reader)? {
            if self.settings.stop.is_asked() {
                return Ok(Some(LaneEnd::Drained));
            }
            self.settings.stop.wait(IDLE);
            return Ok(None);
        }
        let done = course.done;
        let round = match done {
            // What the ledger has was committed before a crash, and only the spool does not know it yet.
            None => self.connected().map(Round::Wrote),
            Some(done) => self.round(reader, done),
        };
        if !matches!(round, Ok(Round::Wrote(_))) {
            // What waits may have changed.
            self.ahead.forget();
        }
        match round {
            Ok(Round::Wrote(through)) => {
                self.settings.meter.progress.note_through(self.settings.lane, through);
                course.done = Some(through);
            }
            Ok(Round::Idle) if self.is_occasional() => {
                let is_over = if self.is_of_greedy() { self.rest_of_greedy(reader)? } else { self.rest(reader)? };
                course.done = if is_over { None } else { done };
                self.settings.stop.wait(if self.is_of_greedy() { SHORT } else { IDLE });
            }
            Ok(Round::Waited) => drop(self.settings.stop.wait(SHORT)),
            // The newest entry may be another lane's, so wait for one behind it.
            Ok(Round::Idle) => {
                course.seen = self.settings.spool.wait_for_more(course.seen.max(done.unwrap_or(0)), IDLE);
            }
            Ok(Round::Drained) => return Ok(Some(LaneEnd::Drained)),
            Err(Leave::Changed) => course.done = None,
            Err(Leave::Found(found)) => {
                course.done = self.deal_with(reader, &found, done.unwrap_or(0))?;
                self.settings.meter.progress.note_through(self.settings.lane, course.done.unwrap_or(0));
            }
            Err(leave) => return Err(leave),
        }
        Ok(None)
    }

    /// Returns whether the spool holds anything for this lane.
    pub(super) fn has_work(&self, reader: &Reader) -> Result<bool, Leave> {
        Ok(reader.first(self.settings.lane, 0)?.is_some())
    }

    /// Returns whether this lane has a connection only while something waits for it: a lane for records that wait apart or for greedy sources and, if
    /// records are written straight from the intake, the lane of replayed ones.
    pub(super) fn is_occasional(&self) -> bool {
        self.is_apart() || self.is_of_greedy() || self.settings.database.is_embedded()
    }

    /// Closes the connection when nothing waits here any more, and lets measurements that waited apart go with all others again. Returns false if entries
    /// are kept, or have come meanwhile.
    fn rest(&mut self, reader: &Reader) -> Result<bool, Leave> {
        if self.has_work(reader)? {
            return Ok(false);
        }
        self.write_ends_if_due(true)?;
        if self.is_apart() {
            self.settings.spool.rejoin(self.settings.lane)?;
            log::info("what waited apart is stored or in quarantine", &[("writer", &self.settings.lane.to_string())]);
        }
        self.suspected = None;
        self.disconnect();
        Ok(true)
    }

    /// Deals with news from the ledger when everything up to `done` was committed; returns how far the lane has come, if that is known.
    fn deal_with(&mut self, reader: &Reader, found: &Found, done: i64) -> Result<Option<i64>, Leave> {
        if found.has_forgotten {
            self.say_what_was_forgotten(reader, found.sequence, done)?;
        }
        let Some(news) = &found.news else { return Ok(Some(found.sequence)) };
        if news.is_of_copy {
            self.say_whose_row_it_is(news, found.sequence);
        }
        self.note(&news.news)?;
        if news.news == LaneNews::Checked {
            return Ok(Some(found.sequence));
        }
        if let LaneNews::Parted { .. } = news.news {
            (self.written, self.settled_written) = (0, 0);
        }
        self.disconnect();
        Ok(None)
    }

    fn say_whose_row_it_is(&self, news: &News, sequence: i64) {
        let LaneNews::Parted { through, .. } = news.news else { return self.say_that_a_copy_works(news.through) };
        self.settings.meter.copies.add(1);
        let numbers = [i64::from(self.settings.lane), sequence, through].map(|number| number.to_string());
        let [lane, sequence, through] = numbers.each_ref().map(String::as_str);
        log::error(
            "the database has entries that this spool does not have: the spool was restored from a copy, has lost its newest entries, or \
             has a copy that is at work; what it takes in is stored under a new number in loadline_writer",
            &[
                ("writer", lane),
                ("ledger_at_entry", sequence),
                ("same_through_entry", through),
                (
                    "remedy",
                    "look whether another recorder runs on a copy of this spool; if one does, stop one of the two",
                ),
            ],
        );
    }

    /// Writes what comes next, if there is anything, and settles entries that cannot be forgotten any more.
    fn round(&mut self, reader: &Reader, done: i64) -> Result<Round, Leave> {
        self.settle(reader, done, 0)?;
        let begun = self.settings.clock.now();
        let before = if self.is_of_greedy() { self.may_write_before(reader)? } else { Some(i64::MAX) };
        let Some(before) = before else { return Ok(Round::Waited) };
        let Some((mut batch, through)) = self.next_batch(reader, (done, before))? else {
            if before < i64::MAX && reader.first(self.settings.lane, done)?.is_some() {
                return Ok(Round::Waited);
            }
            if self.settings.stop.is_asked() && self.kept.is_empty() {
                self.write_ends_if_due(true)?;
                return Ok(Round::Drained);
            }
            if let Some(broken) = self.settings.spool.broken() {
                return Err(broken.into());
            }
            self.write_ends_if_due(false)?;
            return Ok(Round::Idle);
        };
        // An earlier recorder may have put some of them into quarantine, and a replay of those must not store them twice.
        for (entry, row) in reader.quarantined(done + 1, through)? {
            batch.leave_out_record(entry, row);
        }
        self.follow_apart(&mut batch)?;
        self.store(&mut batch)?;
        let rows = batch.count(batch.rows_of(0..batch.entries.len())) as u64;
        self.settle(reader, through, rows)?;
        self.write_ends_if_due(false)?;
        self.note_turn(begun);
        Ok(Round::Wrote(through))
    }

    /// Returns the number of rows that make a batch full.
    pub(super) fn batch_rows(&self) -> u64 {
        u64::from(self.settings.pace.batch_rows(self.settings.writer.batch))
    }

    fn next_batch(&mut self, reader: &Reader, between: (i64, i64)) -> Result<Option<(Batch, i64)>, Leave> {
        let lane = self.settings.lane;
        let rows_max = self.batch_rows();
        if let Some(entries) = self.ahead.take(between.0, rows_max)
            && let Some(last) = entries.last().map(|entry| entry.sequence)
        {
            return Ok(Some((Batch::new(entries), last)));
        }
        let mut found = reader.read(lane, between, BATCH_BYTES, rows_max)?;
        let rows: u64 = found.iter().flatten().map(|entry| u64::from(entry.offer.rows)).sum();
        if !found.is_empty() && rows < rows_max && !self.settings.stop.is_asked() {
            self.settings.pulse.wait_for(self.settings.writer.within);
            self.settings.clock.sleep(self.settings.writer.within);
            found = reader.read(lane, between, BATCH_BYTES, rows_max)?;
        }
        let through = found.last().map(|entry| entry.as_ref().unwrap_or_else(|(entry, _)| entry).sequence);
        let Some(through) = through else { return Ok(None) };
        Ok(Some((Batch::new(self.set_damage_aside(found)?), through)))
    }

    /// Settles entries whose rows are committed or in quarantine: all up to `through`, of which `rows` rows were committed by the last batch. Entries that
    /// the database may forget are kept until it cannot.
    fn settle(&mut self, reader: &Reader, through: i64, mut rows: u64) -> Result<(), Leave> {
        let lane = self.settings.lane;
        if std::mem::take(&mut self.is_new_connection) {
            // How far a log had come says nothing about the log behind a new connection.
            self.kept.clear();
            rows = reader.rows_through(lane, through)?;
            self.settled = if rows == 0 { through } else { self.settled.min(through) };
        }
        let Some(keep) = self.keep_now else {
            self.kept.clear();
            return self.give_back(through);
        };
        let now = self.settings.clock.now();
        if rows > 0 || (through > self.settled && self.kept.is_empty()) {
            self.kept.add(through, rows, keep, now);
        }
        if !self.kept.wants_look(keep, now) {
            return Ok(());
        }
        loop {
            match self.with_connection(|connection, context| connection.log_position(context)) {
                Ok(position) => {
                    let durable = self.kept.give_back(position, keep, now);
                    return durable.map_or(Ok(()), |through| self.give_back(through));
                }
                Err(error) => {
                    self.wait_out(&error)?;
                    self.connected()?;
                }
            }
        }
    }

    fn give_back(&mut self, through: i64) -> Result<(), Leave> {
        if through > self.settled {
            self.settings.spool.settle(self.settings.lane, through)?;
            self.settled = through;
        }
        self.settled_written = self.settled_written.max(through.min(self.written));
        Ok(())
    }

    /// Reports that the ledger has gone back to `sequence`, after everything up to `done` was committed.
    fn say_what_was_forgotten(&mut self, reader: &Reader, sequence: i64, done: i64) -> Result<(), Leave> {
        let lane = self.settings.lane;
        let kept = reader.rows_through(lane, done)?.saturating_sub(reader.rows_through(lane, sequence)?);
        self.settings.meter.rewritten.add(kept);
        self.settings.meter.forgotten.add(1);
        let facts =
            [("writer", lane.to_string()), ("behind_entry", sequence.to_string()), ("records", kept.to_string())];
        let facts = facts.each_ref().map(|(name, value)| (*name, value.as_str()));
        log::warning("the database has forgotten what it had committed; what the spool keeps is written again", &facts);
        if self.settled_written > sequence {
            let through = self.settled_written.to_string();
            let facts = [facts[0], facts[1], ("through_entry", through.as_str())];
            log::error(
                "records are lost: the database has forgotten commits that its settings said would last",
                &facts,
            );
            self.settled_written = sequence;
        }
        Ok(())
    }

    /// Quarantines damaged entries, and returns the others.
    fn set_damage_aside(&mut self, found: Vec<Result<Entry, (Entry, Refusal)>>) -> Result<Vec<Arc<Entry>>, Leave> {
        let (mut entries, mut refused) = (Vec::with_capacity(found.len()), Vec::new());
        for found in found {
            match found {
                Ok(entry) => entries.push(Arc::new(entry)),
                Err((entry, refusal)) => {
                    log::error("an entry of the spool is damaged", &[("entry", &entry.sequence.to_string())]);
                    self.settings.meter.damaged.add(u64::from(refusal.rows));
                    refused.push(Refused { entry: Arc::new(entry), refusal, is_spooled: true });
                }
            }
        }
        if !refused.is_empty() {
            self.keep(&refused)?;
        }
        Ok(entries)
    }
}

/// The progress of a lane that is fed by the spool.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// The entry up to which everything is committed or in quarantine; `None` while that is not known.
    done: Option<i64>,
    /// The newest entry that was seen.
    seen: i64,
}

/// The result of a round.
enum Round {
    /// Everything up to this entry is committed or in quarantine.
    Wrote(i64),
    /// Nothing waits.
    Idle,
    /// Others must write first.
    Waited,
    /// Nothing waits, nothing is kept, and nothing more will come.
    Drained,
}
