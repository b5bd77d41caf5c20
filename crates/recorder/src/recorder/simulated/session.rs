//! A connection to a database that fails. Main type: [`FailingSession`].

use std::sync::Arc;

use super::failing::{Blow, Failing};
use crate::database::{Answer, Database, DatabaseError, Dialect, PassingOver, Session, TargetSession, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Statement};

/// A connection, until it is lost.
pub(super) struct FailingSession {
    inner: Option<Box<dyn Session>>,
    /// Used for its SQL dialect, which is asked of a lost connection as well.
    plain: Arc<dyn Database>,
    failing: Failing,
    generation: u64,
    is_open: bool,
}

/// The kind of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    /// The call reads, or goes on in a transaction.
    Little,
    /// The call may commit.
    Commit,
    Begin,
    /// The call ends the open transaction.
    Undo,
    Keep,
}

impl FailingSession {
    pub(super) fn new(inner: Box<dyn Session>, plain: Arc<dyn Database>, failing: Failing, generation: u64) -> Self {
        FailingSession { inner: Some(inner), plain, failing, generation, is_open: false }
    }

    /// Loses the connection, with the transaction that was open in it.
    fn lose(&mut self) -> DatabaseError {
        self.inner = None;
        self.set_open(false);
        DatabaseError::Lost("the connection broke".to_owned())
    }

    fn set_open(&mut self, is_open: bool) {
        if self.is_open != is_open {
            self.is_open = is_open;
            self.failing.note_transaction(is_open);
        }
    }

    /// Runs a call on the connection, with the fault that befalls it.
    fn ask<T>(
        &mut self,
        does: Does,
        work: impl FnOnce(&mut dyn Session) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        let blow = match self.failing.call(self.generation) {
            Ok(blow) if self.inner.is_some() => blow,
            Ok(_) => return Err(self.lose()),
            Err(error) => {
                self.lose();
                return Err(error);
            }
        };
        match blow {
            // An undo is never refused.
            Blow::None => {}
            Blow::Refused(_) if does == Does::Undo => {}
            Blow::Refused(code) => {
                self.failing.strike(blow);
                if does == Does::Keep {
                    // A transaction that cannot be committed is undone.
                    self.set_open(false);
                    self.inner.as_mut().map_or(Ok(()), |inner| inner.end_dry_run())?;
                }
                return Err(DatabaseError::refused(code, "not now"));
            }
            Blow::Lost { is_done: false } | Blow::Crash { is_done: false } | Blow::Kill { is_done: false } => {
                self.inner = None;
                self.failing.strike(blow);
                return Err(self.lose());
            }
            Blow::Lost { .. } | Blow::Crash { .. } | Blow::Kill { .. } => {}
        }
        let Some(inner) = &mut self.inner else { return Err(self.lose()) };
        let outcome = work(&mut **inner);
        match does {
            Does::Begin => self.set_open(outcome.is_ok()),
            Does::Undo | Does::Keep => self.set_open(false),
            Does::Little | Does::Commit => {}
        }
        if matches!(does, Does::Commit | Does::Keep) {
            self.failing.note_commit();
        }
        if matches!(blow, Blow::None | Blow::Refused(_)) {
            return outcome;
        }
        // The call was done, and nobody is told.
        self.inner = None;
        self.failing.strike(blow);
        Err(self.lose())
    }
}

impl Drop for FailingSession {
    fn drop(&mut self) {
        self.inner = None;
        self.set_open(false);
    }
}

impl TargetSession for FailingSession {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.ask(Does::Little, |inner| inner.prepare(program))
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        self.ask(Does::Commit, |inner| inner.execute(request, rows))
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.ask(Does::Little, |inner| inner.version())
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        Some(self)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

impl Session for FailingSession {
    fn dialect(&self) -> &dyn Dialect {
        self.plain.dialect()
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.ask(Does::Commit, |inner| inner.run(sql))
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.ask(Does::Little, |inner| inner.query(sql))
    }

    fn prepare_passing_over(
        &mut self,
        insert: &Statement,
        rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        self.ask(Does::Little, |inner| inner.prepare_passing_over(insert, rows_max))
    }

    fn begin_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.ask(Does::Begin, |inner| inner.begin_dry_run())
    }

    fn attempt(&mut self, request: &Request) -> Result<Answer, DatabaseError> {
        self.ask(Does::Little, |inner| inner.attempt(request))
    }

    fn undo_attempt(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.undo_attempt();
        }
    }

    fn is_dry_run(&self) -> bool {
        self.inner.as_ref().is_some_and(|inner| inner.is_dry_run())
    }

    fn keep_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.ask(Does::Keep, |inner| inner.keep_dry_run())
    }

    fn end_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.ask(Does::Undo, |inner| inner.end_dry_run())
    }
}
