//! A connection to a DuckDB file. Main type: [`DuckdbSession`].

use std::sync::Arc;

use super::api::{Appender, Connection, Library, Rows, Statement as Prepared};
use super::dialect::{DuckdbDialect, DuckdbLiterals};
use super::open::Lease;
use crate::database::carrying::Carrying;
use crate::database::dialect::statement_text;
use crate::database::literal::TextStatement;
use crate::database::stepwise::{Done, Kept, Stepwise};
use crate::database::{Answer, DatabaseError, Dialect, Session, TargetSession, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request, Statement, Step};

/// A text with many rows ends after this many bytes.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// A connection with its prepared statements.
pub(super) struct DuckdbSession {
    statements: Vec<Compiled>,
    begin: Prepared,
    commit: Prepared,
    rollback: Prepared,
    carrying: Carrying,
    is_read_only: bool,
    connection: Arc<Connection>,
    library: &'static Library,
    /// The last: the file may be closed only when nothing uses it any more.
    _lease: Lease,
}

/// A statement of the program, as it is executed.
enum Compiled {
    Prepared(Prepared),
    /// Prepared for single rows; several rows are given to the appender.
    Insert(Prepared, Sink),
    /// Written, compiled and dropped each time, because the program says so.
    Text(TextStatement),
}

/// The place that an appender stores rows in.
struct Sink {
    table: String,
    /// The columns that have values; `None` where these are all columns in the order of the table.
    columns: Option<Vec<String>>,
    /// Made when it is first needed.
    appender: Option<Appender>,
}

impl DuckdbSession {
    pub(super) fn new(lease: Lease, library: &'static Library) -> Result<Self, DatabaseError> {
        let connection = lease.connect()?;
        let prepare = |sql: &str| Prepared::new(&connection, sql);
        Ok(DuckdbSession {
            statements: Vec::new(),
            begin: prepare("BEGIN TRANSACTION")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            carrying: Carrying::default(),
            is_read_only: false,
            connection,
            library,
            _lease: lease,
        })
    }

    fn compile(&self, program: &Program, statement: &Statement) -> Result<Compiled, DatabaseError> {
        // DuckDB plans groupings and orders by the values that columns have when a statement is prepared. When other values came in since, it fails or
        // answers with wrong values (docs/targets/duckdb.md), so that questions are planned each time.
        let is_planned_each_time = program.as_text || matches!(statement, Statement::Ask(_));
        if is_planned_each_time && !self.is_read_only {
            return Ok(Compiled::Text(TextStatement::new(&DuckdbDialect, statement)));
        }
        let sql = statement_text(&DuckdbDialect, statement, 1);
        let prepared = Prepared::new(&self.connection, &sql)?;
        if self.is_read_only && !prepared.only_reads() {
            let message = format!("the connection is read-only, and this statement may change something: {sql}");
            return Err(DatabaseError::refused("read-only", message));
        }
        Ok(match statement {
            Statement::Insert { table, columns } => {
                let given: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
                let known = program.tables.iter().find(|known| known.name == *table && !known.numbered);
                let is_whole = known.is_some_and(|known| known.columns.iter().map(|c| c.name.as_str()).eq(given));
                let names = || columns.iter().map(|column| column.name.clone()).collect();
                let columns = if is_whole { None } else { Some(names()) };
                Compiled::Insert(prepared, Sink { table: table.clone(), columns, appender: None })
            }
            _ => Compiled::Prepared(prepared),
        })
    }

    /// Returns whether a request is executed without a transaction around it, which would take a third of the time of a short statement: it is one statement, or rows that the
    /// appender stores as a whole.
    fn is_atomic(&self, request: &Request) -> bool {
        let [step] = request.steps.as_slice() else { return request.steps.is_empty() };
        match self.statements.get(usize::from(step.statement)) {
            Some(Compiled::Insert(..)) => step.rows as usize <= Appender::ROWS_AT_ONCE,
            _ => step.rows <= 1,
        }
    }

    fn undo(&mut self) -> Result<(), DatabaseError> {
        let undone = self.rollback.execute(&Cells::new(), 0);
        undone.map(drop).map_err(|error| DatabaseError::Lost(format!("a transaction could not be undone: {error}")))
    }
}

impl Stepwise for DuckdbSession {
    fn carrying(&mut self) -> &mut Carrying {
        &mut self.carrying
    }

    #[inline]
    fn step(&mut self, request: &Request, step: &Step, mut kept: Kept<'_>) -> Result<Done, DatabaseError> {
        let (values, first) = (self.carrying.values(request), step.first_cell as usize);
        let Some(statement) = self.statements.get_mut(usize::from(step.statement)) else {
            let message = format!("statement {} was never prepared", step.statement);
            return Err(DatabaseError::refused("Invalid Input Error", message));
        };
        let mut done = Done::default();
        match statement {
            Compiled::Insert(insert, sink) if step.rows > 1 => {
                sink.store(&self.connection, values, (first, step.rows as usize), insert.parameters())?;
                done.changed = u64::from(step.rows);
            }
            Compiled::Insert(prepared, _) | Compiled::Prepared(prepared) => {
                for row in 0..step.rows as usize {
                    add(&mut done, prepared.execute(values, first + row * prepared.parameters())?, &mut kept)?;
                }
            }
            Compiled::Text(text) => execute_text(&self.connection, text, (step, values), &mut kept, &mut done)?,
        }
        Ok(done)
    }
}

/// Returns the error of a statement that no transaction was around: what it has changed stays.
fn that_stays(error: DatabaseError) -> DatabaseError {
    match error {
        DatabaseError::Miscounted(mut found) => {
            found.stays = found.is_of_changes && found.rows > 0;
            DatabaseError::Miscounted(found)
        }
        other => other,
    }
}

/// Reads rows and adds their numbers to what the step has done.
fn add(done: &mut Done, rows: Rows, kept: &mut Kept<'_>) -> Result<(), DatabaseError> {
    done.is_query = rows.is_query();
    let (read, changed) = rows.read(kept)?;
    (done.read, done.changed) = (done.read + read, done.changed + changed);
    Ok(())
}

impl Sink {
    /// Stores rows of `width` values: `rows.1` of them, whose first value has the number `rows.0`.
    fn store(
        &mut self,
        connection: &Arc<Connection>,
        cells: &Cells,
        rows: (usize, usize),
        width: usize,
    ) -> Result<(), DatabaseError> {
        let mut appender = match self.appender.take() {
            Some(appender) => appender,
            None => Appender::new(connection, &self.table, self.columns.as_deref())?,
        };
        appender.store(cells, rows.0, rows.1, width)?;
        self.appender = Some(appender);
        Ok(())
    }
}

/// Executes a step whose statement is sent as text, in as many texts as its rows need.
fn execute_text(
    connection: &Arc<Connection>,
    text: &TextStatement,
    (step, cells): (&Step, &Cells),
    kept: &mut Kept<'_>,
    done: &mut Done,
) -> Result<(), DatabaseError> {
    let mut taken = 0;
    while taken < step.rows {
        let mut sql = Vec::new();
        let first = step.first_cell as usize + taken as usize * text.values();
        let rows = text.append::<DuckdbLiterals>(cells, first, step.rows - taken, TEXT_BYTES_MAX, &mut sql);
        taken += rows.map_err(|why| DatabaseError::refused("Invalid Input Error", why))?;
        let mut statement = Prepared::new(connection, &String::from_utf8_lossy(&sql))?;
        add(done, statement.execute(&Cells::new(), 0)?, kept)?;
    }
    Ok(())
}

impl TargetSession for DuckdbSession {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.statements = Vec::new();
        let compiled = program.statements.iter().map(|statement| self.compile(program, statement));
        self.statements = compiled.collect::<Result<_, _>>()?;
        Ok(())
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        if self.is_atomic(request) {
            return self.steps(request, rows).map_err(that_stays);
        }
        let none = Cells::new();
        self.begin.execute(&none, 0)?;
        match self.steps(request, rows) {
            // A commit that is refused has undone the transaction.
            Ok(answer) => self.commit.execute(&none, 0).map(|_| answer),
            Err(error) => self.undo().and(Err(error)),
        }
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        Ok(format!("DuckDB {}", self.library.version()))
    }

    /// What is still in the log is written into the file first, since the file's blocks are counted.
    fn table_bytes(&mut self, tables: &[&str]) -> Option<u64> {
        self.run("CHECKPOINT").ok()?;
        crate::database::in_sql::table_bytes(self, tables)
    }

    fn sql(&mut self) -> Option<&mut dyn Session> {
        Some(self)
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

impl Session for DuckdbSession {
    fn dialect(&self) -> &dyn Dialect {
        &DuckdbDialect
    }

    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.connection.query(sql).map(drop)
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.connection.query(sql)?.texts()
    }

    /// DuckDB makes transactions read-only, and no connections: statements that are prepared later are checked here.
    fn make_read_only(&mut self) -> Result<(), DatabaseError> {
        self.is_read_only = true;
        Ok(())
    }

    fn has_round_trips(&self) -> bool {
        false
    }
}
