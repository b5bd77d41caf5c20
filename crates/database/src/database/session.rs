//! Blocking sessions over a [`Wire`], for every database with a codec of its own: they create, load and check tables.
//! Main type: [`WireSession`]; a [`Channel`] is the blocking end of its socket.
//!
//! A target implements [`Wire`] for the hot path and [`Prepare`] for the work around it, and thereby has connections; a target that speaks SQL
//! also implements [`Speak`], and thereby has sessions.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Answer, DatabaseError, Dialect, PassingOver, Session, SessionLimits, TargetSession, Wire, in_sql};
use crate::record::Cells;
use crate::statement::{Program, Request, SchemaChange, Statement, Table};

mod attempt;
mod beginning;
mod prepare;
mod rows;

pub use attempt::{Attempt, Before};
pub use prepare::{Prepare, Speak};
pub use rows::size_in_memory;

/// A message of this many bytes gives a server work for a while.
const LARGE_BYTES: usize = 16 << 10;

pub use super::channel::{ANSWER_BYTES_MAX, CONNECT_TIMEOUT, Channel, Pace, dial, dial_within};

/// A wire used in a blocking way.
#[derive(Debug)]
pub struct WireSession<W> {
    wire: W,
    channel: Channel,
    out: Vec<u8>,
    /// The fate of the last attempt.
    before: Before,
    /// The error because of which the last program could not be prepared: the wire has only a part of it, and none of it is executed.
    unprepared: Option<DatabaseError>,
}

impl<W: Prepare + 'static> WireSession<W> {
    /// Creates a session over a wire that is connected and idle: nothing from the server is unread.
    pub fn new(wire: W) -> Self {
        let channel = Channel::over(wire.fd(), wire.secure());
        WireSession { wire, channel, out: Vec::new(), before: Before::Kept, unprepared: None }
    }

    /// Creates a session as [`WireSession::new`] does, which waits for its server within limits if there are any.
    pub fn within(wire: W, limits: Option<&Arc<SessionLimits>>) -> Self {
        let mut session = WireSession::new(wire);
        limits.into_iter().for_each(|limits| session.set_limits(Arc::clone(limits)));
        session
    }

    /// Makes the session wait for its server within limits from now on.
    pub fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.channel.set_limits(limits, Pace::Usual);
    }

    /// Returns the wire inside.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    /// Returns the wire inside and its socket.
    pub(super) fn parts(&mut self) -> (&mut W, &mut Channel) {
        (&mut self.wire, &mut self.channel)
    }

    /// Executes an operation that may take long.
    fn changing<T>(
        &mut self,
        change: impl FnOnce(&mut W, &mut Channel) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        self.begin()?;
        self.channel.ask("");
        self.channel.set_pace(Pace::Change);
        let outcome = change(&mut self.wire, &mut self.channel);
        self.channel.set_pace(Pace::Usual);
        outcome
    }

    /// Executes a request; `keeps` says whether its rows are kept. Calls `beside` behind each large message.
    fn drive(&mut self, request: &Request, keeps: bool, beside: &mut dyn FnMut()) -> Result<Answer, DatabaseError> {
        if let Some(error) = &self.unprepared {
            return Err(error.clone());
        }
        self.begin()?;
        self.out.clear();
        self.channel.ask("");
        self.wire.start(request, &mut self.out);
        loop {
            // A server that refuses a request halfway says so and then hangs up: its refusal counts.
            let sent = self.channel.send(&self.out);
            if self.out.len() >= LARGE_BYTES {
                beside();
            }
            self.out.clear();
            loop {
                let progress = self.wire.advance(request, self.channel.input(), &mut self.out);
                self.channel.consume(progress.consumed);
                if let Some(outcome) = progress.outcome {
                    return outcome;
                }
                if keeps {
                    self.channel.keep(progress.consumed)?;
                }
                sent.clone()?;
                if !self.out.is_empty() {
                    break;
                }
                self.channel.receive()?;
            }
        }
    }
}

/// A request may be sent before the one in front of it is answered: it is sent together with the others and started once more when its answer is next.
impl<W: Speak + 'static> WireSession<W> {
    fn set_before(&mut self, before: Before) {
        self.before = before;
        self.wire.set_dry_run(Some(Attempt { before, is_of_many: false }));
    }

    /// Sends requests in one go and appends their outcomes, up to the one at which the connection was lost.
    fn attempt_together(&mut self, requests: &[Request], outcomes: &mut Vec<Result<(), DatabaseError>>) {
        if let Some(error) = &self.unprepared {
            outcomes.push(Err(error.clone()));
            return;
        }
        if let Err(error) = self.begin() {
            outcomes.push(Err(error));
            return;
        }
        let first = self.before;
        let before = |place: usize| if place == 0 { first } else { Before::AsAnswered };
        let part = |place: usize| Some(Attempt { before: before(place), is_of_many: true });
        self.out.clear();
        self.channel.ask("");
        for (place, request) in requests.iter().enumerate() {
            self.wire.set_dry_run(part(place));
            self.wire.start(request, &mut self.out);
        }
        let sent = self.channel.send(&self.out);
        for (place, request) in requests.iter().enumerate() {
            self.out.clear();
            self.wire.set_dry_run(part(place));
            self.wire.start(request, &mut self.out);
            self.channel.begin_answer();
            let outcome = self.answer(request, &sent);
            let is_over = outcome.as_ref().is_err_and(DatabaseError::is_lost);
            self.before = if self.wire.undoes_statements() { Before::Kept } else { Before::behind(&outcome) };
            outcomes.push(outcome.map(drop));
            if is_over {
                return;
            }
        }
        self.set_before(self.before);
    }

    /// Returns the outcome of a request that was sent.
    fn answer(&mut self, request: &Request, sent: &Result<(), DatabaseError>) -> Result<Answer, DatabaseError> {
        loop {
            self.out.clear();
            let progress = self.wire.advance(request, self.channel.input(), &mut self.out);
            self.channel.consume(progress.consumed);
            if let Some(outcome) = progress.outcome {
                return outcome;
            }
            if !self.out.is_empty() {
                return Err(DatabaseError::Lost(
                    "the server asks for more than a request that left with others has".to_owned(),
                ));
            }
            sent.clone()?;
            self.channel.receive()?;
        }
    }
}

impl<W: Prepare + 'static> TargetSession for WireSession<W> {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        let outcome = self.begin().and_then(|()| self.wire.prepare(&mut self.channel, program));
        self.unprepared = outcome.as_ref().err().cloned();
        outcome
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let Some(rows) = rows else {
            return self.drive(request, false, &mut || {});
        };
        self.wire.keep_rows(Some(std::mem::take(rows)));
        let outcome = self.drive(request, true, &mut || {});
        *rows = self.wire.keep_rows(None).unwrap_or_default();
        outcome
    }

    fn execute_beside(&mut self, request: &Request, beside: &mut dyn FnMut()) -> Result<Answer, DatabaseError> {
        self.drive(request, false, beside)
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.begin()?;
        self.wire.version(&mut self.channel)
    }

    fn create_table(&mut self, table: &Table) -> Result<(), DatabaseError> {
        match W::as_sql(self) {
            Some(session) => in_sql::create_table(session, table),
            None => self.changing(|wire, channel| wire.create_table(channel, table)),
        }
    }

    fn drop_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        match W::as_sql(self) {
            Some(session) => in_sql::drop_table(session, table),
            None => self.changing(|wire, channel| wire.drop_table(channel, table)),
        }
    }

    fn count_rows(&mut self, table: &str) -> Result<Option<u64>, DatabaseError> {
        match W::as_sql(self) {
            Some(session) => in_sql::count_rows(session, table),
            None => self.changing(|wire, channel| wire.count_rows(channel, table)),
        }
    }

    fn sum_column(&mut self, table: &str, column: &str) -> Result<Option<u64>, DatabaseError> {
        match W::as_sql(self) {
            Some(session) => in_sql::sum_column(session, table, column),
            None => self.changing(|wire, channel| wire.sum_column(channel, table, column)),
        }
    }

    fn table_bytes(&mut self, tables: &[&str]) -> Option<u64> {
        if let Some(session) = W::as_sql(self) {
            return in_sql::table_bytes(session, tables);
        }
        self.begin().ok()?;
        self.wire.table_bytes(&mut self.channel, tables)
    }

    fn change_schema(
        &mut self,
        change: &SchemaChange,
        algorithm: Option<&str>,
    ) -> Result<Option<String>, DatabaseError> {
        match W::as_sql(self) {
            Some(session) => in_sql::change_schema(session, change, algorithm),
            None => self.changing(|wire, channel| wire.change_schema(channel, change)),
        }
    }

    fn ask(&mut self, question: &str) -> Result<Option<String>, DatabaseError> {
        if let Some(session) = W::as_sql(self) {
            return in_sql::ask(session, question);
        }
        self.begin()?;
        self.wire.ask(&mut self.channel, question)
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        W::as_sql(self)
    }

    fn protection(&self) -> Option<String> {
        self.wire.secure().map(|secure| secure.agreed())
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        if self.channel.input().is_empty() { Ok(Box::new(self.wire)) } else { Err(self) }
    }
}

impl<W: Speak + 'static> Session for WireSession<W> {
    fn dialect(&self) -> &dyn Dialect {
        self.wire.dialect()
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.begin()?;
        self.channel.ask(sql);
        self.wire.run(&mut self.channel, sql)
    }

    fn run_change(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.channel.set_pace(Pace::Change);
        let outcome = self.run(sql);
        self.channel.set_pace(Pace::Usual);
        outcome
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.begin()?;
        self.channel.ask(sql);
        self.wire.query(&mut self.channel, sql)
    }

    fn begin_dry_run(&mut self) -> Result<(), DatabaseError> {
        let [texts, _, _] = self.wire.dry_run_texts();
        if texts.is_empty() {
            return Err(DatabaseError::Unavailable("the database has no dry runs".to_owned()));
        }
        if let Err(error) = texts.iter().try_for_each(|text| self.run(text)) {
            // A half-begun dry run must not stay: the next write would be part of a transaction that nobody ends.
            if !error.is_lost() {
                self.end_dry_run()?;
            }
            return Err(error);
        }
        self.set_before(Before::Kept);
        Ok(())
    }

    fn attempt(&mut self, request: &Request) -> Result<Answer, DatabaseError> {
        let outcome = self.drive(request, false, &mut || {});
        self.set_before(Before::behind(&outcome));
        outcome
    }

    fn undo_attempt(&mut self) {
        self.set_before(Before::Undone);
    }

    fn prepare_passing_over(
        &mut self,
        insert: &Statement,
        rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        self.begin()?;
        match self.wire.prepare_passing_over(&mut self.channel, insert, rows_max) {
            Err(DatabaseError::Refused { .. }) => Ok(None),
            outcome => outcome,
        }
    }

    fn attempt_each(&mut self, requests: &[Request]) -> Vec<Result<(), DatabaseError>> {
        let mut outcomes: Vec<Result<(), DatabaseError>> = Vec::with_capacity(requests.len());
        while let Some(next) = requests.get(outcomes.len()) {
            if outcomes.last().is_some_and(|last| last.as_ref().is_err_and(DatabaseError::is_lost)) {
                break;
            }
            let left = &requests[outcomes.len()..];
            match left.iter().take_while(|request| self.wire.can_follow(request)).count() {
                0 | 1 => outcomes.push(self.attempt(next).map(drop)),
                count => self.attempt_together(&left[..count], &mut outcomes),
            }
        }
        outcomes
    }

    fn keep_dry_run(&mut self) -> Result<(), DatabaseError> {
        let is_undone = self.before == Before::Undone;
        self.wire.set_dry_run(None);
        let [_, _, texts] = self.wire.dry_run_texts();
        // Where an error has ended the transaction its savepoint is gone, too, and COMMIT would commit nothing.
        let ready = match is_undone {
            true => self.run("ROLLBACK TO SAVEPOINT attempt"),
            false => self.run("RELEASE SAVEPOINT attempt"),
        };
        let committed = ready.and_then(|()| self.run(texts.first().copied().unwrap_or("COMMIT")));
        if let Err(error) = committed {
            if !error.is_lost() {
                self.end_dry_run()?;
            }
            return Err(error);
        }
        let is_committed =
            |error| DatabaseError::Lost(format!("behind a commit the session was not restored: {error}"));
        texts.iter().skip(1).try_for_each(|text| self.run(text)).map_err(is_committed)
    }

    fn end_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.wire.set_dry_run(None);
        let [_, texts, _] = self.wire.dry_run_texts();
        // A session that is still in a transaction must not be used.
        let undo = |error| DatabaseError::Lost(format!("a dry run could not be undone: {error}"));
        texts.iter().try_for_each(|text| self.run(text)).map_err(undo)
    }

    fn listen(&mut self, channel: &str) -> Result<(), DatabaseError> {
        self.begin()?;
        self.wire.listen(&mut self.channel, channel)
    }

    fn await_notice(&mut self, patience: Duration) -> Result<bool, DatabaseError> {
        let until = Instant::now() + patience;
        loop {
            if self.wire.take_notices(&mut self.channel)? {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.channel.receive_within(left)? {
                return Ok(false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
