//! Conformance: what every database must do, checked on a live one. The main function is [`conformance`]; tests call it for
//! each member of the registry.
//!
//! Invariant: a check uses tables of its own names, emptied before it, and connections of its own.

mod driven;
mod reading;
mod sample;
mod undoing;

use super::dialect::{create_table, drop_table};
use super::{Answer, Capability, Database, DatabaseError, Session};
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{
    ColumnRef, Comparison, Condition, Expect, Miscount, Program, Request, Select, Statement, Step, Table, TableColumn,
};

/// What a check found; the text says what was expected.
#[derive(Debug)]
struct Failure(String);

type Outcome = Result<(), Failure>;

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Failure(error.to_string())
    }
}

/// Checks a database that listens and is empty. What it fails, in sentences; empty when it conforms.
pub fn conformance(database: &dyn Database) -> Vec<String> {
    let mut failures = conformance_prepared(database);
    if super::find(database.name()).is_some_and(|entry| entry.capabilities.has(Capability::Text)) {
        let program = Program { as_text: true, ..program() };
        failures.extend(failures_of(&Bench { database, program }, "statements as text: "));
    }
    // What a database cannot pipeline it sends as it can, and keeps to the same rules.
    let program = Program { pipelines: true, ..program() };
    failures.extend(failures_of(&Bench { database, program }, "pipelined: "));
    failures
}

/// What one way to send statements fails of the checks that concern it.
fn failures_of(bench: &Bench<'_>, way: &str) -> Vec<String> {
    let name = bench.database.name();
    let mut failures = Vec::new();
    for (claim, check) in [reading::CHECKS, undoing::CHECKS].concat() {
        if let Err(Failure(found)) = bench.fresh_tables().and_then(|()| check(bench)) {
            failures.push(format!("{name}, {way}{claim}: {found}"));
        }
    }
    let dropped = bench.drop_tables();
    failures.extend(dropped.err().map(|Failure(found)| format!("{name}: tables are dropped: {found}")));
    failures
}

/// The same for prepared statements alone: bytes in a text are written as twice as many digits, which a server with small packets
/// cannot take.
pub fn conformance_prepared(database: &dyn Database) -> Vec<String> {
    let bench = Bench { database, program: program() };
    let checks = [reading::CHECKS, undoing::CHECKS, driven::CHECKS].concat();
    let mut failures = Vec::new();
    for (claim, check) in checks {
        if let Err(Failure(found)) = bench.fresh_tables().and_then(|()| check(&bench)) {
            failures.push(format!("{}: {claim}: {found}", database.name()));
        }
    }
    if let Err(Failure(found)) = bench.drop_tables() {
        failures.push(format!("{}: tables are dropped: {found}", database.name()));
    }
    failures
}

/// A claim and what checks it.
type Check = (&'static str, fn(&Bench<'_>) -> Outcome);

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure(otherwise())) }
}

/// Places of the program's statements.
const INSERT_SAMPLE: u16 = 0;
const READ_SAMPLE: u16 = 1;
const UPDATE_SAMPLE: u16 = 2;
const INSERT_WIDE: u16 = 3;
const READ_WIDE: u16 = 4;
const COUNT_SAMPLES: u16 = 5;

const SAMPLE: &str = "conformance_sample";
const WIDE: &str = "conformance_wide";
/// With the key, as many columns as a QoS row.
const WIDE_COLUMNS: usize = 61;
const ROWS_MAX: usize = 3000;

struct Bench<'a> {
    database: &'a dyn Database,
    program: Program,
}

impl Bench<'_> {
    /// A connection with the program prepared.
    fn connect(&self) -> Result<Box<dyn Session>, Failure> {
        let mut session = self.database.connect()?;
        session.prepare(&self.program)?;
        Ok(session)
    }

    fn fresh_tables(&self) -> Outcome {
        self.drop_tables()?;
        let mut session = self.database.connect()?;
        for table in &self.program.tables {
            for sql in create_table(self.database.dialect(), table) {
                session.run(&sql)?;
            }
        }
        Ok(())
    }

    fn drop_tables(&self) -> Outcome {
        let mut session = self.database.connect()?;
        for table in self.program.tables.iter().rev() {
            session.run(&drop_table(self.database.dialect(), &table.name))?;
        }
        Ok(())
    }

    /// How many of these samples a connection of its own sees.
    fn seen_by_others(&self, ids: std::ops::Range<i64>) -> Result<u64, Failure> {
        let mut request = Request::default();
        step(&mut request, COUNT_SAMPLES, 1, Expect::Anything, |cells| {
            cells.int(ids.start);
            cells.int(ids.end);
        });
        Ok(self.connect()?.execute(&request, None)?.rows)
    }
}

/// Appends a step to a request, with the values that `fill` appends.
fn step(request: &mut Request, statement: u16, rows: u32, expect: Expect, fill: impl FnOnce(&mut Cells)) {
    let first_cell = request.cells.len() as u32;
    fill(&mut request.cells);
    request.steps.push(Step { statement, rows, first_cell, expect });
}

/// A request of one step.
fn one(statement: u16, rows: u32, expect: Expect, fill: impl FnOnce(&mut Cells)) -> Request {
    let mut request = Request::default();
    step(&mut request, statement, rows, expect, fill);
    request
}

/// Inserts one plain sample.
fn insert(id: i64) -> Request {
    one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::plain(id, cells))
}

/// Reads one sample, which should be there.
fn read(id: i64) -> Request {
    one(READ_SAMPLE, 1, Expect::Rows, |cells| cells.int(id))
}

/// Executes a request that must be refused, or undone for its number of rows; the code, which the latter have none of, and the message.
fn refused(session: &mut dyn Session, request: &Request) -> Result<(String, String), Failure> {
    match session.execute(request, None) {
        Err(DatabaseError::Refused { code, message }) => Ok((code, message)),
        Err(DatabaseError::Miscounted(found)) => Ok((String::new(), found.to_string())),
        other => Err(Failure(format!("expected a refusal and got {other:?}"))),
    }
}

/// Executes a request that must have this answer.
fn answered(session: &mut dyn Session, request: &Request, right: Answer) -> Outcome {
    let answer = session.execute(request, None)?;
    ensure(answer == right, || format!("expected {right:?} and got {answer:?}"))
}

/// Checks that values are those expected; numbers are the same when they are equal, so a zero may lose its sign.
fn same(found: &Cells, right: &Cells) -> Outcome {
    ensure(found.len() == right.len(), || format!("expected {} values and got {}", right.len(), found.len()))?;
    for (place, cell) in right.as_slice().iter().enumerate() {
        let other = found.get(place);
        let equal = match (*cell, other) {
            (Cell::Text(a), Cell::Text(b)) | (Cell::Blob(a), Cell::Blob(b)) => right.bytes_of(a) == found.bytes_of(b),
            (a, b) => a == b,
        };
        ensure(equal, || {
            let shown = |cells: &Cells, cell: Cell| format!("{:.80}", format!("{cell:?} {}", cells.to_json(cell)));
            format!("value {place}: expected {} and got {}", shown(right, *cell), shown(found, other))
        })?;
    }
    Ok(())
}

fn program() -> Program {
    let column = |name: &str, kind, nullable| TableColumn { name: name.into(), kind, nullable };
    let mut samples = vec![column("id", ColumnKind::Int64, false)];
    samples.extend(sample::KINDS.iter().map(|(name, kind)| column(name, *kind, true)));
    let mut wide = vec![column("id", ColumnKind::Int64, false)];
    wide.extend((1..WIDE_COLUMNS).map(|number| column(&format!("c{number}"), sample::wide_kind(number), true)));
    let insert =
        |table: &str, columns: &[TableColumn]| Statement::Insert { table: table.into(), columns: columns.into() };
    let read = |table: &str, columns: &[TableColumn], comparisons: &[Comparison]| {
        let at = |name: &str| ColumnRef { table: table.into(), column: name.into() };
        Statement::Select(Select {
            columns: columns.iter().map(|column| at(&column.name)).collect(),
            from: table.into(),
            conditions: comparisons
                .iter()
                .map(|comparison| Condition { column: at("id"), kind: ColumnKind::Int64, comparison: *comparison })
                .collect(),
            order: vec![(at("id"), false)],
            ..Select::default()
        })
    };
    let range = [Comparison::GreaterOrEqual, Comparison::Less];
    let statements = vec![
        insert(SAMPLE, &samples),
        read(SAMPLE, &samples, &[Comparison::Equal]),
        Statement::Update { table: SAMPLE.into(), set: vec![samples[1].clone()], key: vec![samples[0].clone()] },
        insert(WIDE, &wide),
        read(WIDE, &wide, &range),
        read(SAMPLE, &samples[..1], &range),
    ];
    let table = |name: &str, columns| Table {
        name: name.into(),
        columns,
        primary_key: vec!["id".into()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
    };
    Program {
        tables: vec![table(SAMPLE, samples), table(WIDE, wide)],
        statements,
        rows_max: ROWS_MAX,
        ..Program::default()
    }
}
