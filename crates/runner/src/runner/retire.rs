//! Retires old readings while a load runs: step by step it deletes their rows, or drops their partitions, and makes partitions for readings to come.
//!
//! Main type: [`Retirer`]. It has a connection of its own, like a job of the database's operator. Invariant: a step is begun only when all of it is old, so that every reading that is younger than
//! `retention.keep` stays.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use anyhow::Context;

use super::changes::Change;
use crate::database::{DatabaseError, Target, TargetSession};
use crate::load::{Changing, Observed};
use crate::measurement::{ChangeMeasurement, EvolutionMeasurement, Measurement, RetentionMeasurement};
use crate::statement::{Expect, Program, Request, SchemaChange, SqlForm, Statement, Step};
use crate::trial::RetireBy;
use crate::workload::{Retirement, Work};

/// How often it is looked whether a step is old.
const LOOK: Duration = Duration::from_millis(2);

/// The share of the partitions kept ready above whose absence one is made before anything is retired.
const URGENT: f64 = 0.5;

/// How long to wait before what failed is tried again.
const AGAIN: Duration = Duration::from_millis(50);

/// Failures after which nothing more is tried: the trial is invalid anyway.
const FAILURES_MOST: usize = 5;

/// Largest number of changes that are reported one by one.
const CHANGES_MAX: usize = 1000;

/// Retires the readings of a trial.
pub struct Retirer<'a> {
    target: &'a dyn Target,
    retirement: &'a Retirement,
    session: Option<Box<dyn TargetSession>>,
    /// All readings before this time are retired, in nanoseconds since 1970.
    done_ns: i64,
    /// Number of the partition behind the last one that is there.
    made: i64,
    /// Where the data's own clock stood before the load began, in nanoseconds since 1970.
    begun_ns: i64,
    failures: usize,
}

/// What became of the readings of a trial.
pub struct Retired {
    /// The figures of the measured phase, but for what the load itself observed.
    measured: RetentionMeasurement,
    /// All readings before this time are retired, in nanoseconds since 1970.
    done_ns: i64,
}

/// The measured phase, and what was done in it.
struct Phase<'p> {
    changing: &'p Changing,
    begun_ns: u64,
    measured: RetentionMeasurement,
}

impl<'a> Retirer<'a> {
    /// Retires what is old before the load begins; `None` where all readings stay in a table that is one piece.
    ///
    /// # Errors
    /// Fails with the database's error.
    pub fn new(work: &'a Work, target: &'a dyn Target) -> anyhow::Result<Option<Self>> {
        let Some(retirement) = work.retirement() else { return Ok(None) };
        let (done_ns, made) = (retirement.first_ns(), retirement.partitions_made().unwrap_or(0));
        let begun_ns = retirement.clock_ns();
        let mut retirer = Retirer { target, retirement, session: None, done_ns, made, begun_ns, failures: 0 };
        if let Some(add) = retirement.add(made) {
            let told = retirer.change_table(Some(&add)).context("making a partition for readings to come")?;
            // Without a statement, partitions make themselves.
            retirer.made = if told.is_some() { made.saturating_add(1) } else { i64::MAX };
        }
        while retirer.is_due() {
            retirer.retire_step().context("retiring what is old before the load begins")?;
        }
        Ok(Some(retirer))
    }

    /// Retires what becomes old until the load has ended.
    pub fn run(mut self, begin: &Receiver<Arc<Changing>>) -> Retired {
        let begun = loop {
            match begin.recv_timeout(LOOK) {
                Ok(changing) => break Some(changing),
                Err(RecvTimeoutError::Disconnected) => break None,
                Err(RecvTimeoutError::Timeout) => {
                    self.look(None);
                }
            }
        };
        let Some(changing) = begun else {
            return Retired { measured: RetentionMeasurement::default(), done_ns: self.done_ns };
        };
        let mut phase =
            Phase { changing: &changing, begun_ns: changing.now_ns(), measured: RetentionMeasurement::default() };
        let mut wait = LOOK;
        while let Err(RecvTimeoutError::Timeout) = begin.recv_timeout(wait) {
            // What has fallen behind does not wait.
            wait = if self.look(Some(&mut phase)) { Duration::ZERO } else { LOOK };
        }
        let mut measured = phase.measured;
        let behind_ns = self.retirement.due_ns().saturating_sub(self.done_ns).max(0);
        measured.behind_s = seconds(behind_ns);
        measured.advanced_s = seconds(self.retirement.clock_ns().saturating_sub(self.begun_ns));
        measured.is_held = self.is_held();
        // Operations still unanswered when the load ended are waited for, and end their silence.
        while begin.recv().is_ok() {}
        measured.meanwhile.silences_s = changing.silences_s();
        Retired { measured, done_ns: self.done_ns }
    }

    /// Returns whether a whole step is old, and nobody asks about its readings.
    fn is_due(&self) -> bool {
        let next_ns = self.next_ns();
        next_ns <= self.retirement.due_ns() && next_ns <= self.retirement.asked_from_ns()
    }

    /// Returns whether a whole step is old, but questions are about its readings.
    fn is_held(&self) -> bool {
        let next_ns = self.next_ns();
        next_ns <= self.retirement.due_ns() && next_ns > self.retirement.asked_from_ns()
    }

    /// Returns the time behind the step that is retired next.
    fn next_ns(&self) -> i64 {
        self.done_ns.saturating_add(self.retirement.settings().step_ns)
    }

    /// Makes a partition for readings to come, or retires a step, whichever is more urgent. Returns whether it did one of them.
    fn look(&mut self, mut phase: Option<&mut Phase<'_>>) -> bool {
        if self.failures >= FAILURES_MOST {
            return false;
        }
        let missing = self.retirement.missing(self.made);
        if missing > URGENT || (missing > 0.0 && !self.is_due()) {
            let add = self.retirement.add(self.made);
            let adds = self.change("add", phase, |own| own.change_table(add.as_ref()).map(|told| (0, told)));
            self.made += i64::from(adds);
            return adds;
        }
        let what = if self.retirement.settings().by == RetireBy::Drop { "drop" } else { "delete" };
        let retires = self.is_due() && self.change(what, phase.as_deref_mut(), Self::retire_step);
        if let Some(phase) = phase.filter(|_| retires) {
            phase.measured.steps += 1;
        }
        retires
    }

    /// Makes a change of the tables, and notes it if the measured phase has begun. Returns whether it succeeded.
    fn change(
        &mut self,
        what: &'static str,
        phase: Option<&mut Phase<'_>>,
        make: impl FnOnce(&mut Self) -> Result<(u64, Option<String>), DatabaseError>,
    ) -> bool {
        let timed = phase.as_ref().map(|phase| Change::begin(what, phase.changing, phase.begun_ns));
        let outcome = make(self);
        let succeeded = outcome.is_ok();
        if let (Some(timed), Some(phase)) = (timed, phase) {
            let records = outcome.as_ref().map_or(0, |(records, _)| *records);
            let change = ChangeMeasurement { records, ..timed.end(outcome.map(|(_, statement)| statement)) };
            phase.measured.took_s += change.took_s;
            phase.measured.retired += change.records;
            let changes = &mut phase.measured.meanwhile.changes;
            if changes.len() < CHANGES_MAX || change.failed > 0 {
                changes.push(change);
            }
        }
        if !succeeded {
            self.failures += 1;
            self.session = None;
            std::thread::sleep(AGAIN);
        }
        succeeded
    }

    /// Retires the next step. Returns the number of rows that were deleted, and the statement.
    fn retire_step(&mut self) -> Result<(u64, Option<String>), DatabaseError> {
        let (from_ns, to_ns) = (self.done_ns, self.next_ns());
        let (mut rows, mut statement) = (0, None);
        if self.retirement.settings().by == RetireBy::Drop {
            statement = self.change_table(Some(&self.retirement.drop_at(from_ns)))?;
        } else {
            let transaction_ns = self.retirement.settings().transaction_ns.max(1);
            let mut before_ns = from_ns;
            while before_ns < to_ns {
                before_ns = before_ns.saturating_add(transaction_ns).min(to_ns);
                let deleted;
                (deleted, statement) = self.delete_before(before_ns)?;
                rows += deleted;
            }
        }
        self.done_ns = to_ns;
        Ok((rows, statement))
    }

    fn change_table(&self, change: Option<&SchemaChange>) -> Result<Option<String>, DatabaseError> {
        change.map_or(Ok(None), |change| self.target.open()?.change_schema(change, None))
    }

    /// Deletes the rows of all readings before a time. Returns their number, and the statement.
    fn delete_before(&mut self, time_ns: i64) -> Result<(u64, Option<String>), DatabaseError> {
        let mut session = match self.session.take() {
            Some(session) => session,
            None => self.target.open()?,
        };
        let (table, column) = self.retirement.table();
        let no_sql = || DatabaseError::Unavailable("it takes no SQL".to_owned());
        let sql = {
            let dialect = session.sql().ok_or_else(no_sql)?.dialect();
            format!("DELETE FROM {} WHERE {} < ?", dialect.quote(table), dialect.quote(column))
        };
        let statement = Statement::Sql { sql: sql.clone(), allow_empty: true, form: SqlForm::Prepared };
        session.prepare(&Program { statements: vec![statement], rows_max: 1, ..Program::default() })?;
        let mut request = Request::default();
        request.cells.int(time_ns);
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Anything });
        let answer = session.execute(&request, None)?;
        self.session = Some(session);
        Ok((answer.changed, Some(sql)))
    }
}

impl Retired {
    /// Puts the figures into a measurement.
    pub fn tell(self, measurement: &mut Measurement, observed: &Observed) {
        let settings = &measurement.trial.case.settings;
        if settings.retention.as_ref().is_none_or(|retention| retention.by == RetireBy::None) {
            return;
        }
        let names = settings.workload.kind_names();
        let mut measured = self.measured;
        measured.meanwhile =
            EvolutionMeasurement { intended: observed.tally.asides.parts(&names), ..measured.meanwhile };
        measurement.retention = Some(measured);
    }

    /// Deletes what came behind its time, which was on its way when its step was retired. Returns how many of the acknowledged records must not be in the table any more: of the first `records` that
    /// were there, and of those of the load. `None` where the load's records are not known.
    ///
    /// # Errors
    /// Fails with the database's error.
    pub fn settle(
        &self,
        work: &Work,
        (records, observed): (u64, &[&Observed]),
        target: &dyn Target,
    ) -> anyhow::Result<Option<u64>> {
        let Some(retirement) = work.retirement() else { return Ok(Some(0)) };
        if retirement.settings().by == RetireBy::Delete {
            let mut last =
                Retirer { target, retirement, session: None, done_ns: self.done_ns, made: 0, begun_ns: 0, failures: 0 };
            last.delete_before(self.done_ns).context("retiring what came behind its time")?;
        }
        let clients = || observed.iter().flat_map(|seen| &seen.acknowledged);
        if clients().any(|client| client.is_cut) {
            return Ok(None);
        }
        let all = std::iter::once(0..records).chain(clients().flat_map(|client| client.stored.iter()));
        Ok(Some(retirement.count_before(all, self.done_ns)))
    }
}

fn seconds(time_ns: i64) -> f64 {
    time_ns as f64 / 1e9
}
