//! A connection to a SQLite file. Main type: [`SqliteSession`].

use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi};

use super::checkpoints::Checkpoints;
use super::deadline::Deadline;
use super::dialect::{SqliteDialect, SqliteLiterals};
use super::prepared::Prepared;
use super::refusal;
use crate::database::carrying::Carrying;
use crate::database::dialect::statement_text;
use crate::database::literal::TextStatement;
use crate::database::stepwise::{Done, Kept, Stepwise};
use crate::database::{Answer, DatabaseError, Dialect, Session, SessionLimits, TargetSession, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Program, Request, Statement, Step};

/// A text with many rows ends after this many bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A connection with its prepared statements. Statements precede the connection, so that they are dropped first; the checkpoints, which
/// the connection calls after a commit, follow it.
pub(super) struct SqliteSession {
    statements: Vec<Prepared>,
    /// The statements where none is prepared: they are written, compiled and dropped each time.
    texts: Vec<TextStatement>,
    /// For each of them, true if it is an insert, which changes as many rows as it is given or none.
    inserts: Vec<bool>,
    begin: Prepared,
    commit: Prepared,
    rollback: Prepared,
    /// Sets a savepoint before an attempt; the next statements keep and undo what follows it.
    savepoint: Prepared,
    release: Prepared,
    go_back: Prepared,
    carrying: Carrying,
    connection: Connection,
    checkpoints: Option<Checkpoints>,
    /// The deadline of statements, which the connection asks for while it works.
    deadline: Option<Deadline>,
}

impl SqliteSession {
    pub(super) fn new(connection: Connection) -> Result<Self, DatabaseError> {
        // SAFETY: the session drops its statements before its connection, in the order of its fields.
        let prepare = |sql: &str| unsafe { Prepared::new(&connection, sql) };
        Ok(SqliteSession {
            statements: Vec::new(),
            texts: Vec::new(),
            inserts: Vec::new(),
            // Taking the write lock at the start avoids the deadlock of two readers that both want to write.
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            savepoint: prepare("SAVEPOINT attempt")?,
            release: prepare("RELEASE attempt")?,
            go_back: prepare("ROLLBACK TO attempt")?,
            carrying: Carrying::default(),
            connection,
            checkpoints: None,
            deadline: None,
        })
    }

    /// Leaves checkpoints to a thread with its own connection.
    pub(super) fn checkpoint_beside(&mut self, own: Connection) {
        // SAFETY: the session drops its connection before its checkpoints, in the order of its fields.
        self.checkpoints = unsafe { Checkpoints::start(&self.connection, own) };
    }

    /// Ends each statement at the deadline of these limits.
    pub(super) fn end_within(&mut self, limits: &Arc<SessionLimits>) {
        // SAFETY: the session drops its connection before its deadline, in the order of its fields.
        self.deadline = Some(unsafe { Deadline::set(&self.connection, limits) });
    }

    /// Returns whether a request is executed whole or not at all without a transaction around it. An update that misses its expected
    /// number of rows must be undone, so it is not.
    fn is_atomic(&self, request: &Request) -> bool {
        match request.steps.as_slice() {
            [] => true,
            [
                Step {
                    rows: 0 | 1,
                    expect: Expect::Rows | Expect::RowCount(_) | Expect::RowsAtLeast(_) | Expect::Anything,
                    ..
                },
            ] => true,
            [Step { rows: 0 | 1, statement, .. }] => self.inserts.get(usize::from(*statement)).is_some_and(|is| *is),
            _ => false,
        }
    }
}

impl Stepwise for SqliteSession {
    fn carrying(&mut self) -> &mut Carrying {
        &mut self.carrying
    }

    #[inline]
    fn step(&mut self, request: &Request, step: &Step, kept: Kept<'_>) -> Result<Done, DatabaseError> {
        let values = self.carrying.values(request);
        let before = total_changes(&self.connection);
        let (read, is_query) = if let Some(text) = self.texts.get(usize::from(step.statement)) {
            execute_text(&self.connection, text, step, values, kept)?
        } else {
            let Some(statement) = self.statements.get_mut(usize::from(step.statement)) else {
                let message = format!("statement {} was never prepared", step.statement);
                return Err(DatabaseError::refused("SQLITE_MISUSE", message));
            };
            let outcome = repeat(statement, step, values, kept);
            statement.release();
            (outcome?, statement.is_query())
        };
        Ok(Done { read, changed: total_changes(&self.connection) - before, is_query })
    }
}

/// Executes a step whose statement is sent as text, in as many texts as its rows need. Returns the rows read and whether it is a query.
fn execute_text(
    connection: &Connection,
    text: &TextStatement,
    step: &Step,
    cells: &Cells,
    mut kept: Kept<'_>,
) -> Result<(u64, bool), DatabaseError> {
    let (mut read, mut is_query, mut done) = (0, false, 0);
    let none = Cells::new();
    while done < step.rows {
        let mut sql = Vec::new();
        let first = step.first_cell as usize + done as usize * text.values();
        let taken = text.append::<SqliteLiterals>(cells, first, step.rows - done, TEXT_BYTES_MAX, &mut sql);
        done += taken.map_err(|why| DatabaseError::refused("SQLITE_MISUSE", why))?;
        // SAFETY: the statement is dropped at the end of this turn, and the connection is borrowed for longer.
        let mut statement = unsafe { Prepared::new(connection, &String::from_utf8_lossy(&sql)) }?;
        read += statement.execute_keeping(&none, 0, &mut kept)?;
        is_query = statement.is_query();
    }
    Ok((read, is_query))
}

/// Executes a step once for each of its rows.
fn repeat(statement: &mut Prepared, step: &Step, cells: &Cells, mut kept: Kept<'_>) -> Result<u64, DatabaseError> {
    let mut read = 0;
    let mut first = step.first_cell as usize;
    for _ in 0..step.rows {
        read += statement.execute_keeping(cells, first, &mut kept)?;
        first += statement.parameters();
    }
    Ok(read)
}

/// Returns the number of rows changed since the connection was opened, including those changed by triggers.
fn total_changes(connection: &Connection) -> u64 {
    // SAFETY: the handle is that of an open connection, and the call only reads a counter.
    unsafe { ffi::sqlite3_total_changes64(connection.handle()) as u64 }
}

/// Executes a statement. Returns the rows as text, null as `None`.
pub(super) fn query(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<Vec<Option<String>>>> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut answer = Vec::new();
    while let Some(row) = rows.next()? {
        let texts = (0..columns).map(|column| Ok(text(row.get_ref(column)?)));
        answer.push(texts.collect::<rusqlite::Result<_>>()?);
    }
    Ok(answer)
}

fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string()),
        ValueRef::Real(value) => Some(value.to_string()),
        ValueRef::Text(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        ValueRef::Blob(bytes) => Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()),
    }
}

impl TargetSession for SqliteSession {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.inserts =
            program.statements.iter().map(|statement| matches!(statement, Statement::Insert { .. })).collect();
        (self.statements, self.texts) = (Vec::new(), Vec::new());
        if program.as_text {
            self.texts = program.statements.iter().map(|text| TextStatement::new(&SqliteDialect, text)).collect();
            return Ok(());
        }
        // SAFETY: as in `new`.
        let prepare = |sql: String| unsafe { Prepared::new(&self.connection, &sql) };
        let texts = program.statements.iter().map(|statement| statement_text(&SqliteDialect, statement, 1));
        self.statements = texts.map(prepare).collect::<Result<_, _>>()?;
        Ok(())
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        if self.is_atomic(request) {
            return self.steps(request, rows);
        }
        let none = Cells::new();
        self.begin.execute(&none, 0, None)?;
        let outcome = self.steps(request, rows).and_then(|answer| {
            self.commit.execute(&none, 0, None)?;
            Ok(answer)
        });
        // Some errors, a full disk among them, have undone the transaction already.
        if outcome.is_err() && !self.connection.is_autocommit() {
            let undone = self.rollback.execute(&none, 0, None);
            undone.map_err(|error| DatabaseError::Lost(format!("a transaction could not be undone: {error}")))?;
        }
        outcome
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        Ok(format!("SQLite {}", rusqlite::version()))
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        Some(self)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

impl Session for SqliteSession {
    fn dialect(&self) -> &dyn Dialect {
        &SqliteDialect
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.execute_batch(sql).map_err(|error| refusal::of(&error))
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        query(&self.connection, sql).map_err(|error| refusal::of(&error))
    }

    fn begin_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.begin.execute(&Cells::new(), 0, None).map(drop)
    }

    fn attempt(&mut self, request: &Request) -> Result<Answer, DatabaseError> {
        let none = Cells::new();
        self.savepoint.execute(&none, 0, None)?;
        let outcome = self.steps(request, None);
        // A trigger may have undone the whole transaction.
        if outcome.is_err() && self.is_dry_run() {
            self.go_back.execute(&none, 0, None)?;
        }
        if self.is_dry_run() {
            self.release.execute(&none, 0, None)?;
        }
        outcome
    }

    fn has_round_trips(&self) -> bool {
        false
    }

    fn is_dry_run(&self) -> bool {
        !self.connection.is_autocommit()
    }

    fn keep_dry_run(&mut self) -> Result<(), DatabaseError> {
        if !self.is_dry_run() {
            return Err(DatabaseError::Lost("an error has ended the transaction".to_owned()));
        }
        let committed = self.commit.execute(&Cells::new(), 0, None).map(drop);
        if committed.is_err() {
            self.end_dry_run()?;
        }
        committed
    }

    fn end_dry_run(&mut self) -> Result<(), DatabaseError> {
        if !self.is_dry_run() {
            return Ok(());
        }
        let undone = self.rollback.execute(&Cells::new(), 0, None);
        undone.map(drop).map_err(|error| DatabaseError::Lost(format!("a dry run could not be undone: {error}")))
    }
}
