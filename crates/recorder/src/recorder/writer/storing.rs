//! From a batch to committed rows and quarantined ones: the part of [`Lane`] that stores what it was given.
//!
//! Invariant: a refused row is durable in quarantine before anything is committed that should have contained it.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::batch::Batch;
use super::deferring::RefusedRow;
use super::lane::Lane;
use super::leave::Leave;
use super::messages;
use super::refusal::{Meaning, is_dangling, is_duplicate, is_of_database};
use super::store::{Connection, Context, Ready};
use super::taking::Came;
use crate::database::DatabaseError;
use crate::recorder::log;
use crate::recorder::quote::{quoted, shortened};
use crate::recorder::spool::{Entry, IdClock, Refusal, Refused, SpoolError, unspooled_number};

/// The most characters of a reason; a quotation in it is shorter.
const REASON_MAX: usize = 1_000;
/// The number of rows that go to quarantine at a time.
const PORTION_ROWS: usize = 1_000;
/// How often an entry is tried again that is refused although each of its rows is taken.
const TRIES_MAX: u32 = 8;

/// The longest time that a model may make a transaction wait.
const PACED_MAX: Duration = Duration::from_secs(3_600);

/// The cause that a refusal of entries is put down to.
enum Blame {
    /// Some rows, which are in quarantine now.
    Rows,
    /// None of the rows of a single entry: the entry is tried again.
    Nobody,
    /// None of the rows of several entries, as far as is known.
    Unknown,
    /// The database, which could not be asked about rows.
    Database(DatabaseError),
}

/// What was already tried with some entries.
#[derive(Debug, Default)]
struct Tries {
    /// Whether identities and messages were looked up again.
    again: bool,
    /// Whether refused rows are to be left out of the next transaction, and whether that was tried.
    leaves_out: bool,
    has_left_out: bool,
    /// How often the entries were refused although each row was taken.
    count: u32,
    /// Whether the database has refused the entries for another reason than a record.
    was_refused: bool,
}

impl Lane {
    /// Writes all rows of a batch, or quarantines those that the database refuses.
    pub(super) fn store(&mut self, batch: &mut Batch) -> Result<(), Leave> {
        let mut ranges: Vec<_> = std::iter::once(0..batch.entries.len()).collect();
        let mut tries = Tries { leaves_out: self.expects_refusals, ..Tries::default() };
        while let Some(range) = ranges.pop() {
            if range.is_empty() {
                continue;
            }
            let outcome = self.try_once(batch, range.clone(), &mut tries)?;
            if !matches!(outcome, Ok(Came::Committed)) {
                // What is done about it may change what comes next.
                self.ahead.forget();
            }
            let error = match outcome {
                Ok(Came::Committed) => {
                    tries = Tries::default();
                    continue;
                }
                Ok(Came::Undone) => {
                    ranges.push(range);
                    continue;
                }
                Ok(Came::Doubtful) => None,
                Err(error) => Some(error),
            };
            let is_doubtful = |error: &DatabaseError| !tries.again && (is_duplicate(error) || is_dangling(error));
            match error.map(|error| (self.meaning(&error), error)) {
                None => {
                    self.look_again(batch, &mut tries)?;
                    ranges.push(range);
                }
                // Another recorder wrote the same identity or message, or somebody removed one; now the numbers are found.
                Some((Meaning::Record, error)) if is_doubtful(&error) => {
                    self.look_again(batch, &mut tries)?;
                    ranges.push(range);
                }
                Some((Meaning::Record, _)) if !tries.has_left_out => {
                    tries.leaves_out = true;
                    ranges.push(range);
                }
                Some((Meaning::Record, error)) => {
                    match self.find_bad_rows(batch, range.clone(), &error, tries.count >= TRIES_MAX)? {
                        Blame::Rows => ranges.push(range),
                        Blame::Nobody => {
                            tries.count += 1;
                            ranges.push(range);
                        }
                        Blame::Unknown => {
                            let middle = range.start + range.len() / 2;
                            ranges.extend([middle..range.end, range.start..middle]);
                        }
                        Blame::Database(error) => ranges.push(self.stand_back(batch, range, &error, &mut tries)?),
                    }
                }
                Some((_, error)) => ranges.push(self.stand_back(batch, range, &error, &mut tries)?),
            }
        }
        Ok(())
    }

    /// Runs one transaction for some entries, when it is their turn.
    fn try_once(
        &mut self,
        batch: &mut Batch,
        range: Range<usize>,
        tries: &mut Tries,
    ) -> Result<Result<Came, DatabaseError>, Leave> {
        self.settings.pulse.wait_for(PACED_MAX);
        self.settings.pace.wait(batch.count(batch.rows_of(range.clone())) as u64, &self.settings.stop);
        self.settings.pulse.beat();
        self.check_hold()?;
        tries.has_left_out |= tries.leaves_out;
        let outcome = match std::mem::take(&mut tries.leaves_out) {
            true => self.store_what_is_taken(batch, range, tries.again)?,
            false => self.try_to_store(batch, range)?.map(|()| Came::Committed),
        };
        if outcome.as_ref().is_err_and(is_duplicate) && self.were_made_meanwhile() {
            self.find_anew(batch)?;
            return Ok(Ok(Came::Undone));
        }
        Ok(outcome)
    }

    /// Handles a refusal that is no record's fault: sets apart records of a measurement that the database keeps refusing, or waits. Returns the entries to try next.
    fn stand_back(
        &mut self,
        batch: &mut Batch,
        range: Range<usize>,
        error: &DatabaseError,
        tries: &mut Tries,
    ) -> Result<Range<usize>, Leave> {
        if self.meaning(error) == Meaning::Wait {
            if tries.was_refused && !is_of_database(error) && self.set_refused_apart(batch, range.clone())? {
                return Ok(range);
            }
            tries.was_refused = true;
            self.note_refusal_apart(error);
            // What is known of the tables may no longer hold.
            self.forget_connection();
        }
        self.left_behind(batch, range, error)
    }

    /// Waits before the next try; returns the entries that were not committed by the transaction whose answer was lost.
    fn left_behind(
        &mut self,
        batch: &mut Batch,
        range: Range<usize>,
        error: &DatabaseError,
    ) -> Result<Range<usize>, Leave> {
        self.wait_out(error)?;
        let committed = self.connected()?;
        batch.end_doubts();
        let first = batch.entries[range.clone()].iter().filter(|entry| entry.sequence <= committed).count();
        if first > 0 {
            let through = committed.to_string();
            log::info("a commit whose answer was lost is found in the ledger", &[("through", &through)]);
            self.count(batch, range.start..range.start + first);
        }
        Ok(range.start + first..range.end)
    }

    /// Runs one transaction for some entries.
    fn try_to_store(&mut self, batch: &mut Batch, entries: Range<usize>) -> Result<Result<(), DatabaseError>, Leave> {
        self.refused = None;
        let rows = batch.rows_of(entries.clone());
        let ready = match self.make_ready(batch, rows.clone())? {
            Ok(ready) => ready,
            Err(error) => return Ok(Err(error)),
        };
        let sequence = batch.entries[entries.end - 1].sequence;
        let keys = self.keys_of(batch, entries.clone());
        if ready.rows() == 0 && keys.is_empty() && !self.is_of_part() {
            // All of it is in quarantine, or was committed before.
            return Ok(Ok(()));
        }
        self.came_to = None;
        let count = ready.rows();
        if entries.end == batch.entries.len() {
            self.want_next(sequence);
        }
        let outcome = self.with_connection(|connection, context| connection.commit(&ready, sequence, &keys, context));
        if outcome.as_ref().is_err_and(|error| self.meaning(error) == Meaning::Record) {
            self.refused = Some((rows, ready));
        }
        if outcome.as_ref().is_err_and(DatabaseError::is_lost) {
            batch.doubt(entries.clone());
        }
        Ok(outcome.map(|took| self.note_stored(batch, entries, took, Some(count))))
    }

    /// Returns the ids of the messages of some entries, which are stored with their rows, each with the time from which it ages.
    pub(super) fn keys_of(&self, batch: &Batch, entries: Range<usize>) -> Vec<(String, i64)> {
        let received_ns = self.id_clock.as_ref().map_or_else(|| self.settings.clock.day_ns(), IdClock::now_ns);
        (if self.is_spooled() { 0..0 } else { entries })
            .filter(|place| batch.count(batch.rows_of(*place..place + 1)) > 0 || batch.is_kept(*place))
            .filter_map(|place| Some((messages::key(&batch.entries[place].offer)?, received_ns)))
            .collect()
    }

    /// Notes that some entries were committed, and how long it took. A number of rows is given if that time is usual for it.
    pub(super) fn note_stored(&mut self, batch: &mut Batch, entries: Range<usize>, took: Duration, usual: Option<u64>) {
        self.settings.meter.commit_times.add(took);
        self.settings.meter.commits.add(1);
        self.refusals = 0;
        self.settings.meter.progress.note_success(self.settings.lane);
        if let Some(rows) = usual {
            self.settings.pace.observe(rows, took);
        }
        self.backoff.reset();
        self.limits.note_done();
        self.was_told = None;
        self.count(batch, entries);
    }

    /// Binds rows. Those that cannot be bound are quarantined before anything is committed without them.
    pub(super) fn make_ready(
        &mut self,
        batch: &mut Batch,
        rows: Range<usize>,
    ) -> Result<Result<Ready, DatabaseError>, Leave> {
        loop {
            let prepared = self.ahead.take_rows(batch.is_whole(&rows));
            let make = |connection: &mut Connection, context: &mut Context<'_>| {
                let used = prepared.and_then(|prepared| connection.use_prepared(prepared, context));
                used.map_or_else(|| connection.make_ready(batch, rows.clone(), context), Ok)
            };
            let mut ready = match self.with_connection(make) {
                Ok(ready) => ready,
                Err(error) => return Ok(Err(error)),
            };
            let refused = ready.refused();
            self.quarantine(batch, refused)?;
            if !ready.is_cut() {
                return Ok(Ok(ready));
            }
        }
    }

    pub(super) fn quarantine(&mut self, batch: &mut Batch, refused: Vec<RefusedRow>) -> Result<(), Leave> {
        let mut refused = refused.into_iter();
        while refused.len() > 0 {
            // After each portion it is checked which senders have no room left.
            let portion = if self.is_spooled() { refused.len().min(PORTION_ROWS) } else { refused.len() };
            if self.is_spooled() {
                self.defer(batch, refused.as_slice(), portion)?;
            }
            self.quarantine_portion(batch, refused.by_ref().take(portion).collect())?;
        }
        Ok(())
    }

    fn quarantine_portion(&mut self, batch: &mut Batch, refused: Vec<RefusedRow>) -> Result<(), Leave> {
        let (is_spooled, records) = (self.is_spooled(), refused.len());
        let (mut kept, mut rows) = (Vec::with_capacity(records), Vec::with_capacity(records));
        for (row, reason, body) in refused {
            let place = batch.entry_of(row);
            let mut entry = Arc::clone(&batch.entries[place]);
            let number = (row - batch.first_row(place)) as i64;
            rows.push(row);
            if kept.is_empty() {
                let (source, records) = (&*entry.offer.source, records.to_string());
                log::warning(
                    "records are quarantined",
                    &[("records", &records), ("source", source), ("reason", &shortened(&reason, REASON_MAX))],
                );
            }
            if !is_spooled {
                // With an id, it is the same record when the message is sent again.
                let sequence =
                    messages::number(&entry.offer).unwrap_or_else(|| unspooled_number(&*self.settings.clock));
                entry = Arc::new(Entry { sequence, offer: entry.offer.without_body() });
            }
            let reason = shortened(&reason, REASON_MAX).into_owned();
            kept.push(Refused { entry, refusal: Refusal { row: number, rows: 1, body, reason }, is_spooled });
        }
        self.keep(&kept)?;
        rows.into_iter().for_each(|row| batch.leave_kept(row));
        Ok(())
    }

    /// Keeps refused records, and waits for room if the spool's disk is full.
    pub(super) fn keep(&mut self, refused: &[Refused]) -> Result<(), Leave> {
        loop {
            match self.settings.spool.quarantine(refused.to_vec()) {
                Err(SpoolError::Full(reason)) => {
                    self.undo_what_is_open();
                    self.wait_out(&DatabaseError::refused("SQLITE_FULL", reason))?;
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    /// Looks up identities and messages again, and has rows left out that the database refuses all the same.
    fn look_again(&mut self, batch: &mut Batch, tries: &mut Tries) -> Result<(), Leave> {
        (tries.again, tries.leaves_out) = (true, true);
        self.find_anew(batch)
    }

    /// Finds the rows of some entries that the database refuses, and quarantines them; returns what the refusal is put down to.
    ///
    /// All rows are tried in the order in which they would be stored, in one transaction that is undone: each behind the good ones before it,
    /// because of two rows that must differ, the second is good when alone. If all rows of a single entry are taken and the entry is refused all the same, it is tried again,
    /// because another recorder's transaction may have been the cause; if that does not help, all its rows go to quarantine.
    fn find_bad_rows(
        &mut self,
        batch: &mut Batch,
        entries: Range<usize>,
        error: &DatabaseError,
        is_last: bool,
    ) -> Result<Blame, Leave> {
        let all = batch.rows_of(entries.clone());
        let mut bad = match self.sift(batch, all.clone())? {
            Ok(bad) => bad,
            Err(error) => return Ok(Blame::Database(error)),
        };
        if bad.is_empty() && entries.len() > 1 {
            return Ok(Blame::Unknown);
        }
        if bad.is_empty() && !is_last {
            self.identities.clear();
            self.wait_out(error)?;
            return Ok(Blame::Nobody);
        }
        if bad.is_empty() {
            let good = all.filter(|row| !batch.is_left_out(*row));
            let reason = format!("refused together with its entry: {}", quoted(&error.to_string()));
            bad = good.map(|row| (row, reason.clone())).collect();
        }
        self.quarantine_rows(batch, bad)?;
        Ok(Blame::Rows)
    }

    /// Quarantines rows, in any order, with the reasons.
    pub(super) fn quarantine_rows(&mut self, batch: &mut Batch, mut bad: Vec<(usize, String)>) -> Result<(), Leave> {
        bad.sort_by_key(|(row, _)| *row);
        let mut refused = Vec::with_capacity(bad.len());
        let mut bad = bad.into_iter().peekable();
        while let Some((row, _)) = bad.peek() {
            let place = batch.entry_of(*row);
            let end = batch.rows_of(place..place + 1).end;
            let of_entry = std::iter::from_fn(|| bad.next_if(|(row, _)| *row < end)).collect();
            refused.extend(lines_of(&batch.entries[place], batch.first_row(place), of_entry));
        }
        self.quarantine(batch, refused)
    }

    /// Returns the rows of a range that the database refuses, with the reasons; its error if it could not be asked.
    fn sift(
        &mut self,
        batch: &mut Batch,
        rows: Range<usize>,
    ) -> Result<Result<Vec<(usize, String)>, DatabaseError>, Leave> {
        let mut refused = self.refused.take().filter(|(refused, _)| *refused == rows);
        loop {
            let ready = match refused.take() {
                // The binder still holds them.
                Some((_, ready)) => Ok(ready),
                None => self.make_ready(batch, rows.clone())?,
            };
            let outcome = match ready {
                Ok(ready) => self.with_connection(|connection, context| connection.sift(&ready, context)),
                Err(error) => Err(error),
            };
            match outcome {
                // Another writer inserted the identities meanwhile, which is no record's fault.
                Ok(None) => self.identities.clear(),
                Ok(Some(bad)) => {
                    let quote = |(row, reason): (usize, DatabaseError)| (row, quoted(&reason.to_string()).into_owned());
                    return Ok(Ok(bad.into_iter().map(quote).collect()));
                }
                // The refusal was about something other than a row.
                Err(error) if self.meaning(&error) == Meaning::Record => return Ok(Ok(Vec::new())),
                Err(error) => return Ok(Err(error)),
            }
        }
    }

    /// Counts entries that are committed.
    fn count(&mut self, batch: &mut Batch, entries: Range<usize>) {
        batch.note_committed(entries.clone());
        let now = self.settings.clock.day_ns();
        let mut rows = 0;
        for place in entries {
            let entry = &batch.entries[place];
            rows += batch.count(batch.rows_of(place..place + 1)) as u64;
            let lag = u64::try_from(now - entry.offer.received_ns).unwrap_or(0);
            self.settings.meter.sources.note_lag(&entry.offer.source, Duration::from_nanos(lag));
        }
        self.settings.meter.rows.add(rows);
        if !self.is_spooled() {
            self.settings.spool.count_unspooled(rows);
            self.note_unspooled();
        }
    }
}

/// Returns the bad rows of an entry, in their order, with the reasons and their lines, each with its line end.
fn lines_of(entry: &Entry, first_row: usize, bad: Vec<(usize, String)>) -> Vec<(usize, String, Vec<u8>)> {
    let mut parser = crate::recorder::line::Parser::new(&entry.offer.body, entry.offer.precision);
    let mut point = crate::recorder::line::Point::default();
    let mut bad = bad.into_iter().map(|(row, reason)| (row, reason, Vec::new())).collect::<Vec<_>>();
    let mut row = first_row;
    let mut next = 0;
    while let Some(read) = parser.next(&mut point) {
        if let Some((_, _, line)) = bad.get_mut(next).filter(|(bad, _, _)| *bad == row) {
            if read.is_ok() {
                *line = [point.bytes, b"\n"].concat();
            }
            next += 1;
        }
        row += 1;
    }
    bad
}
