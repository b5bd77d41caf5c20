//! A connection through an ODBC driver. Main type: [`OdbcSession`].

use std::sync::Arc;

use super::api::{Connection, Info, Statement as Prepared};
use super::system::System;
use crate::database::carrying::Carrying;
use crate::database::channel::ANSWER_BYTES_MAX;
use crate::database::mysql::program::{Rows, size_for, sizes};
use crate::database::session::size_in_memory;
use crate::database::stepwise::{Done, Kept, Stepwise};
use crate::database::{Answer, DatabaseError, Dialect, Session, TargetSession, Wire};
use crate::record::Cells;
use crate::statement::{Expect, Program, Request, Statement, Step};

/// A connection with its prepared statements.
pub(super) struct OdbcSession {
    statements: Vec<Compiled>,
    carrying: Carrying,
    system: System,
    connection: Arc<Connection>,
}

/// A statement of the program: prepared in several sizes, in falling order of rows, the last for one row.
struct Compiled {
    sizes: Vec<(u32, Prepared)>,
    is_insert: bool,
    /// Whether rows that it returns are rows that it changed.
    returns_changes: bool,
}

impl OdbcSession {
    pub(super) fn new(connection: Arc<Connection>, system: System) -> Self {
        if system.takes_utf8() {
            connection.take_utf8();
        }
        OdbcSession { statements: Vec::new(), carrying: Carrying::default(), system, connection }
    }

    fn compile(&self, statement: &Statement, rows: Rows) -> Result<Compiled, DatabaseError> {
        let kinds = statement.kinds();
        let is_insert = matches!(statement, Statement::Insert { .. });
        let mut counts = if is_insert { sizes(rows, kinds.len(), self.system.parameters_max()) } else { Vec::new() };
        counts.push(1);
        let prepare = |count: usize| {
            let all = kinds.iter().copied().cycle().take(count * kinds.len()).collect();
            let text = self.system.text_of(statement, count);
            Ok((count as u32, Prepared::prepared(&self.connection, &text, all, !self.system.prepares_late())?))
        };
        if self.system.prepares_late() {
            self.look_for_errors(&self.system.text_of(statement, 1), kinds.len())?;
        }
        let sizes = counts.into_iter().map(prepare).collect::<Result<_, DatabaseError>>()?;
        let returns_changes = matches!(statement, Statement::Sql { sql, .. } if may_change(sql));
        Ok(Compiled { sizes, is_insert, returns_changes })
    }

    /// Has the database compile a text, with null for each value, without executing it.
    fn look_for_errors(&self, text: &str, values: usize) -> Result<(), DatabaseError> {
        let mut nulls = Cells::new();
        (0..values).for_each(|_| nulls.null());
        let mut explained =
            Prepared::prepared(&self.connection, &format!("EXPLAIN {text}"), vec![None; values], false)?;
        let outcome = explained.execute(&nulls, 0).and_then(|()| explained.close());
        outcome.map_err(|error| match error {
            DatabaseError::Refused { code, message } => DatabaseError::refused(code, format!("{message} in: {text}")),
            other => other,
        })
    }

    /// Returns whether a request is executed whole or not at all without a transaction around it: it is one statement whose number of changes cannot be a wrong one.
    fn is_atomic(&self, request: &Request) -> bool {
        let [step] = request.steps.as_slice() else { return request.steps.is_empty() };
        let Some(statement) = self.statements.get(usize::from(step.statement)) else { return false };
        if statement.is_insert {
            return statement.sizes.iter().any(|(rows, _)| *rows == step.rows);
        }
        let is_of_reads =
            matches!(step.expect, Expect::Rows | Expect::RowCount(_) | Expect::RowsAtLeast(_) | Expect::Anything);
        step.rows <= 1 && is_of_reads
    }

    /// Executes a request as a transaction.
    fn in_transaction(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        self.connection.commit_each(false)?;
        match self.steps(request, rows).and_then(|answer| self.connection.end(true).map(|()| answer)) {
            Err(error) if error.is_refusal() => {
                let undone = self.connection.end(false);
                undone.map_err(|why| DatabaseError::Lost(format!("a transaction could not be undone: {why}")))?;
                Err(error)
            }
            outcome => outcome,
        }
    }
}

/// Returns whether a text written by the user may change rows and return them.
fn may_change(sql: &str) -> bool {
    let first = sql.trim_start().split(|letter: char| !letter.is_ascii_alphabetic()).next().unwrap_or_default();
    ["insert", "update", "delete", "replace", "merge"].iter().any(|verb| first.eq_ignore_ascii_case(verb))
}

impl Stepwise for OdbcSession {
    fn carrying(&mut self) -> &mut Carrying {
        &mut self.carrying
    }

    fn step(&mut self, request: &Request, step: &Step, mut kept: Kept<'_>) -> Result<Done, DatabaseError> {
        let values = self.carrying.values(request);
        let Some(statement) = self.statements.get_mut(usize::from(step.statement)) else {
            let message = format!("statement {} was never prepared", step.statement);
            return Err(DatabaseError::refused("HY010", message));
        };
        let (mut done, mut left, mut first) = (Done::default(), step.rows, step.first_cell as usize);
        while left > 0 {
            let place = size_for(statement.sizes.iter().map(|(rows, _)| *rows), left);
            let Some((rows, prepared)) = statement.sizes.get_mut(place) else { break };
            prepared.execute(values, first)?;
            let outcome = take_in(prepared, &mut kept, self.system.rounds(), &mut done);
            // An error of the answer says more than one of closing it.
            prepared.close().and(outcome)?;
            first += prepared.parameters();
            left = left.saturating_sub(*rows);
        }
        if statement.returns_changes && done.is_query {
            done.changed = done.read;
        }
        Ok(done)
    }
}

/// Takes in the answer to an execution. Rows that nobody keeps are only counted.
fn take_in(prepared: &mut Prepared, kept: &mut Kept<'_>, rounds: bool, done: &mut Done) -> Result<(), DatabaseError> {
    done.is_query = prepared.is_query()?;
    if !done.is_query {
        done.changed += prepared.changed()?;
        return Ok(());
    }
    while prepared.fetch()? {
        done.read += 1;
        if kept.is_none() {
            continue;
        }
        for rows in kept.all.as_deref_mut().into_iter().chain(kept.first.take()) {
            prepared.read(rows, rounds)?;
        }
    }
    Ok(())
}

impl TargetSession for OdbcSession {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.statements.clear();
        if let Some(why) = super::refusal_of(program, self.system.rounds()) {
            return Err(DatabaseError::refused("0A000", why));
        }
        let rows = Rows { max: program.rows_max, usual: program.rows_usual };
        let statements = program.statements.iter().map(|statement| self.compile(statement, rows));
        self.statements = statements.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        if !self.is_atomic(request) {
            return self.in_transaction(request, rows);
        }
        self.connection.commit_each(true)?;
        self.steps(request, rows)
    }

    /// The version of the database as the driver states it, with those of the driver and the driver manager.
    fn version(&mut self) -> Result<String, DatabaseError> {
        let info = |what| self.connection.info(what);
        let system = info(Info::System);
        let version = match self.system {
            // The driver states the version that it was built for.
            System::Sqlite => {
                let told = self.query("SELECT sqlite_version()")?;
                told.into_iter().flatten().flatten().next().unwrap_or_default()
            }
            _ => info(Info::SystemVersion),
        };
        let info = |what| self.connection.info(what);
        let [driver, of_driver, odbc, loader] =
            [Info::DriverName, Info::DriverVersion, Info::DriverOdbc, Info::Loader].map(info);
        Ok(format!("{system} {version}, driver {driver} {of_driver} (ODBC {odbc}), driver manager {loader}"))
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        Some(self)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

impl Session for OdbcSession {
    fn dialect(&self) -> &dyn Dialect {
        self.system.dialect()
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.commit_each(true)?;
        self.connection.execute_text(sql)?.finish()
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.connection.commit_each(true)?;
        let mut statement = self.connection.execute_text(sql)?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        if !statement.is_query()? {
            return Ok(rows);
        }
        while statement.fetch()? {
            let row = statement.texts()?;
            bytes += size_in_memory(&row);
            if bytes > ANSWER_BYTES_MAX {
                let most = ANSWER_BYTES_MAX >> 20;
                return Err(DatabaseError::Lost(format!(
                    "the driver answers with rows of more than {most} MiB, to: {sql}"
                )));
            }
            rows.push(row);
        }
        Ok(rows)
    }

    fn has_round_trips(&self) -> bool {
        !self.system.is_embedded()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_that_may_return_what_they_changed_are_known_by_their_verb() {
        for sql in ["INSERT INTO t VALUES (1) RETURNING a", " update t set a = 1", "DELETE FROM t"] {
            assert!(may_change(sql), "{sql}");
        }
        for sql in ["SELECT 1", "(SELECT 1)", "", "inserted"] {
            assert!(!may_change(sql), "{sql}");
        }
    }
}
