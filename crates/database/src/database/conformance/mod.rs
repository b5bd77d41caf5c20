//! Conformance: checks on a live target of the duties of every target and of the capabilities that its registry entry claims. Main function:
//! [`conformance`]; tests call it for each member of the registry.
//!
//! Invariant: each check uses its own table names, emptied before it, and its own connections.

mod driven;
mod numbers;
mod reading;
mod sample;
mod tables;
mod undoing;
mod whole;

use super::{Answer, Capabilities, Capability, DatabaseError, Session, Target, TargetSession};
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{
    Carry, ColumnRef, Comparison, Condition, Expect, Miscount, Program, Request, Select, Statement, Step, Table,
    TableColumn,
};

/// The failure of a check; the text says what was expected.
#[derive(Debug)]
struct Failure(String);

type Outcome = Result<(), Failure>;

impl From<DatabaseError> for Failure {
    fn from(error: DatabaseError) -> Self {
        Failure(error.to_string())
    }
}

/// Checks all claimed capabilities of a member of the registry that is listening and empty. Returns its failures as sentences; empty when it conforms.
pub fn conformance(target: &dyn Target) -> Vec<String> {
    let mut failures = conformance_prepared(target);
    let bench = Bench::of(target);
    if bench.has(Capability::Text) {
        let program = Program { as_text: true, ..bench.program.clone() };
        failures.extend(failures_of(&Bench { program, ..bench }, "statements as text: "));
    }
    // A database that cannot pipeline sends requests as it can, under the same rules.
    let bench = Bench::of(target);
    let program = Program { pipelines: true, ..bench.program.clone() };
    failures.extend(failures_of(&Bench { program, ..bench }, "pipelined: "));
    failures
}

/// Returns the failures of the relevant checks for one way to send statements.
fn failures_of(bench: &Bench<'_>, way: &str) -> Vec<String> {
    failures_among(bench, &[reading::CHECKS, undoing::CHECKS].concat(), way)
}

/// Runs [`conformance`] for prepared statements only: bytes in a text are written as twice as many digits, which a server with small packets
/// cannot take.
pub fn conformance_prepared(target: &dyn Target) -> Vec<String> {
    let checks = [reading::CHECKS, undoing::CHECKS, tables::CHECKS, driven::CHECKS].concat();
    failures_among(&Bench::of(target), &checks, "")
}

fn failures_among(bench: &Bench<'_>, checks: &[Check], way: &str) -> Vec<String> {
    let name = bench.target.name();
    let mut failures = Vec::new();
    for (claim, needs, check) in checks {
        if !needs.iter().all(|need| bench.has(*need)) {
            continue;
        }
        if let Err(Failure(found)) = bench.fresh_tables().and_then(|()| check(bench)) {
            failures.push(format!("{name}, {way}{claim}: {found}"));
        }
    }
    if let Err(Failure(found)) = bench.drop_tables() {
        failures.push(format!("{name}, {way}tables are dropped: {found}"));
    }
    failures
}

/// A claim, the capabilities that it requires, and the function that checks it.
type Check = (&'static str, &'static [Capability], fn(&Bench<'_>) -> Outcome);

fn ensure(holds: bool, otherwise: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(Failure(otherwise())) }
}

/// Indexes of the program's statements.
const INSERT_SAMPLE: u16 = 0;
const READ_SAMPLE: u16 = 1;
const INSERT_WIDE: u16 = 2;
const READ_WIDE: u16 = 3;
const COUNT_SAMPLES: u16 = 4;
const UPDATE_SAMPLE: u16 = 5;
const DELETE_SAMPLE: u16 = 6;

const SAMPLE: &str = "conformance_sample";
const WIDE: &str = "conformance_wide";
/// With the key, as many columns as a QoS row.
const WIDE_COLUMNS: usize = 61;
const ROWS_MAX: usize = 3000;

struct Bench<'a> {
    target: &'a dyn Target,
    capabilities: Capabilities,
    program: Program,
    /// The values that were written to a target that stores numbers alone.
    known: numbers::Known,
}

impl<'a> Bench<'a> {
    /// Creates the bench for a target, with the capabilities of its entry.
    fn of(target: &'a dyn Target) -> Self {
        let said = super::find(target.name()).map_or(Capabilities::NONE, |entry| entry.capabilities);
        // Some of a database's engines have fewer capabilities.
        let undoes = target.sql().is_none_or(|database| database.dialect().has_transactions());
        let capabilities = if undoes { said } else { said.without(Capability::Transactions) };
        let program = program(capabilities);
        let program = if target.rounds_numbers() { whole::program(program) } else { program };
        let stores_all = capabilities.has(Capability::Values);
        let program = if stores_all { program } else { numbers::program(program) };
        Bench { target, capabilities, program, known: numbers::Known::default() }
    }

    fn has(&self, capability: Capability) -> bool {
        self.capabilities.has(capability)
    }

    /// Opens a connection and prepares the program.
    fn connect(&self) -> Result<Box<dyn TargetSession>, Failure> {
        let mut session = self.target.open()?;
        session.prepare(&self.program)?;
        if !self.has(Capability::Values) {
            let (program, is_seen_late) = (program(self.capabilities), !self.has(Capability::AtOnce));
            return Ok(Box::new(numbers::InNumbers { session, known: self.known.clone(), program, is_seen_late }));
        }
        Ok(if self.target.rounds_numbers() { Box::new(whole::InWhole(session)) } else { session })
    }

    fn fresh_tables(&self) -> Outcome {
        self.drop_tables()?;
        let mut session = self.target.open()?;
        Ok(self.program.tables.iter().try_for_each(|table| session.create_table(table))?)
    }

    fn drop_tables(&self) -> Outcome {
        let mut session = self.target.open()?;
        Ok(self.program.tables.iter().rev().try_for_each(|table| session.drop_table(&table.name))?)
    }

    /// Appends a sample at the limits of the types, as far as the target has them.
    fn edge(&self, id: i64, case: i64, cells: &mut Cells) {
        let first = cells.len();
        sample::edge(id, case, cells);
        if self.has(Capability::LeastNumbers) {
            return;
        }
        for (place, (_, kind)) in (first + 1..).zip(sample::KINDS) {
            let least = match kind {
                ColumnKind::Int32 => i64::from(i32::MIN),
                ColumnKind::Int64 => i64::MIN,
                _ => continue,
            };
            if cells.get(place) == Cell::Int(least) {
                cells.replace(place, Cell::Int(least + 1));
            }
        }
    }

    /// Returns a request for the rows with these numbers: in one read where the target has ranges, and one by one where it finds rows only by their whole key.
    fn read_range(&self, statement: u16, ids: std::ops::Range<i64>, expect: Expect) -> Request {
        let mut request = Request::default();
        if self.has(Capability::Ranges) {
            step(&mut request, statement, 1, expect, |cells| {
                cells.int(ids.start);
                cells.int(ids.end);
            });
        } else {
            ids.for_each(|id| step(&mut request, statement, 1, Expect::Anything, |cells| cells.int(id)));
        }
        request
    }

    /// Returns the number of these samples that a separate connection sees.
    fn seen_by_others(&self, ids: std::ops::Range<i64>) -> Result<u64, Failure> {
        Ok(self.connect()?.execute(&self.read_range(COUNT_SAMPLES, ids, Expect::Anything), None)?.rows)
    }
}

/// Returns a connection as one that takes SQL, which its entry says it is.
fn in_sql(session: &mut Box<dyn TargetSession>) -> Result<&mut dyn Session, Failure> {
    session.sql().ok_or_else(|| Failure("its entry says SQL, and its connections take none".into()))
}

/// Appends a step to a request, with the values that `fill` appends.
fn step(request: &mut Request, statement: u16, rows: u32, expect: Expect, fill: impl FnOnce(&mut Cells)) {
    let first_cell = request.cells.len() as u32;
    fill(&mut request.cells);
    request.steps.push(Step { statement, rows, first_cell, expect });
}

/// Returns a request of one step.
fn one(statement: u16, rows: u32, expect: Expect, fill: impl FnOnce(&mut Cells)) -> Request {
    let mut request = Request::default();
    step(&mut request, statement, rows, expect, fill);
    request
}

/// Returns a request that inserts one plain sample.
fn insert(id: i64) -> Request {
    one(INSERT_SAMPLE, 1, Expect::Changed(1), |cells| sample::plain(id, cells))
}

/// Returns a request that reads one sample, which should exist.
fn read(id: i64) -> Request {
    one(READ_SAMPLE, 1, Expect::Rows, |cells| cells.int(id))
}

/// Executes a request that must be refused, or undone for its number of rows. Returns the code, which is empty in the latter case, and the message.
fn refused(session: &mut dyn TargetSession, request: &Request) -> Result<(String, String), Failure> {
    match session.execute(request, None) {
        Err(DatabaseError::Refused { code, message }) => Ok((code, message)),
        Err(DatabaseError::Miscounted(found)) => Ok((String::new(), found.to_string())),
        other => Err(Failure(format!("expected a refusal and got {other:?}"))),
    }
}

/// Executes a request that must have this answer.
fn answered(session: &mut dyn TargetSession, request: &Request, right: Answer) -> Outcome {
    let answer = session.execute(request, None)?;
    ensure(answer == right, || format!("expected {right:?} and got {answer:?}"))
}

/// Checks that values are those expected; numbers are compared by value, so a zero may lose its sign.
fn same(found: &Cells, right: &Cells) -> Outcome {
    ensure(found.len() == right.len(), || format!("expected {} values and got {}", right.len(), found.len()))?;
    for (place, cell) in right.as_slice().iter().enumerate() {
        let other = found.get(place);
        let equal = match (*cell, other) {
            (Cell::Text(a), Cell::Text(b)) | (Cell::Blob(a), Cell::Blob(b)) => right.bytes_of(a) == found.bytes_of(b),
            // The bits of a number, in the place of one that the target would round.
            (Cell::Float(a), Cell::Int(b)) => a.to_bits() as i64 == b,
            (a, b) => a == b,
        };
        ensure(equal, || {
            let shown = |cells: &Cells, cell: Cell| format!("{:.80}", format!("{cell:?} {}", cells.to_json(cell)));
            format!("value {place}: expected {} and got {}", shown(right, *cell), shown(found, other))
        })?;
    }
    Ok(())
}

/// Returns the program of all checks. Where rows are found only by their whole key, statements that would read several rows read one.
fn program(capabilities: Capabilities) -> Program {
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
    let has = |capability| capabilities.has(capability);
    let several = [Comparison::GreaterOrEqual, Comparison::Less];
    let range: &[Comparison] = if has(Capability::Ranges) { &several } else { &[Comparison::Equal] };
    let mut statements = vec![
        insert(SAMPLE, &samples),
        read(SAMPLE, &samples, &[Comparison::Equal]),
        insert(WIDE, &wide),
        read(WIDE, &wide, range),
        read(SAMPLE, &samples[..1], range),
    ];
    let key = || vec![samples[0].clone()];
    if has(Capability::Updates) {
        statements.push(Statement::Update { table: SAMPLE.into(), set: vec![samples[1].clone()], key: key() });
    }
    if has(Capability::Deletes) {
        statements.push(Statement::Delete { table: SAMPLE.into(), key: key() });
    }
    let table = |name: &str, columns| Table {
        name: name.into(),
        columns,
        primary_key: vec!["id".into()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    };
    Program {
        tables: vec![table(SAMPLE, samples), table(WIDE, wide)],
        statements,
        rows_max: ROWS_MAX,
        ..Program::default()
    }
}
