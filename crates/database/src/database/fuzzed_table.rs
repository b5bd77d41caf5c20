//! The table of the fuzzing targets of stores without SQL, and statements on it.

use super::session::{Prepare, WireSession};
use super::{DatabaseError, TargetSession, Wire};
use crate::fuzzed::assert_told;
use crate::record::{Cells, ColumnKind};
use crate::statement::{
    ColumnRef, Comparison, Condition, Expect, Program, Request, Select, Statement, Step, Table, TableColumn,
};

/// The maximum bytes of an error that quotes an answer.
const TOLD_BYTES_MAX: usize = 2 << 10;

/// Returns a table of a number as its key, and a text that may be null.
pub fn table() -> Table {
    table_of(ColumnKind::Text(40))
}

/// Returns the same table with values of another kind.
fn table_of(note: ColumnKind) -> Table {
    let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: name != "id" };
    Table {
        name: "t".to_owned(),
        columns: vec![column("id", ColumnKind::Int64), column("note", note)],
        primary_key: vec!["id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    }
}

/// Returns a column of the table.
pub fn at(name: &str) -> ColumnRef {
    ColumnRef { table: "t".to_owned(), column: name.to_owned() }
}

/// Returns the statement that inserts a row.
pub fn insert() -> Statement {
    Statement::Insert { table: "t".to_owned(), columns: table().columns }
}

/// Returns a query of rows whose column compares with a number in this way.
pub fn select(columns: [&str; 2], by: &str, comparison: Comparison) -> Select {
    let condition = Condition { column: at(by), kind: ColumnKind::Int64, comparison };
    Select { columns: columns.map(at).to_vec(), from: "t".to_owned(), conditions: vec![condition], ..Select::default() }
}

/// Returns the statement that changes the text of a row.
pub fn update() -> Statement {
    let columns = table().columns;
    Statement::Update { table: "t".to_owned(), set: columns[1..].to_vec(), key: columns[..1].to_vec() }
}

/// Returns a program of statements on a table of this form.
pub fn program(table: Table, statements: Vec<Statement>) -> Program {
    Program { tables: vec![table], statements, rows_max: 10, ..Program::default() }
}

/// Returns a program that inserts a row, and reads those from a number on.
fn readings(table: Table) -> Program {
    let from_id = Statement::Select(select(["id", "note"], "id", Comparison::GreaterOrEqual));
    let insert = Statement::Insert { table: table.name.clone(), columns: table.columns.clone() };
    program(table, vec![insert, from_id])
}

/// Counts an answer that is no error. Returns whether the connection is there for the next request. An error is told in bounds, whatever the server says.
pub fn goes_on(outcome: Result<(), DatabaseError>, answered: &mut u32) -> bool {
    if let Err(error) = &outcome {
        assert_told(&error.to_string(), TOLD_BYTES_MAX);
    }
    *answered += u32::from(outcome.is_ok());
    !matches!(outcome, Err(DatabaseError::Lost(_)))
}

/// The bits of the first byte besides those that select requests: the rows that are read are only counted; a client that sends before it looks at answers.
const COUNTS: u8 = 4;
const UNSCRIPTED: u8 = 32;

/// Makes a table, writes a row, reads and counts, as the first byte selects; `setting` is one that the server may be asked for. Returns the number of requests that were answered.
pub fn converse<W: Wire + Prepare + 'static>(session: WireSession<W>, first: u8, setting: &str) -> u32 {
    converse_of(session, first, setting, ColumnKind::Text(40))
}

/// Does the same with a number in the place of the text, where there are no texts.
pub fn converse_of<W: Wire + Prepare + 'static>(
    mut session: WireSession<W>,
    first: u8,
    setting: &str,
    note: ColumnKind,
) -> u32 {
    session.parts().1.follow_script(first & UNSCRIPTED == 0);
    let mut answered = 0;
    let mut goes_on = |outcome| goes_on(outcome, &mut answered);
    if first & 3 == 3 {
        if goes_on(session.count_rows("t").map(drop)) {
            goes_on(session.ask(setting).map(drop));
        }
        return answered;
    }
    if !goes_on(session.create_table(&table_of(note))) || !goes_on(session.prepare(&readings(table_of(note)))) {
        return answered;
    }
    if first & 2 != 0 {
        goes_on(session.count_rows("t").map(drop));
        return answered;
    }
    let mut request = Request::default();
    request.cells.int(1);
    match note {
        ColumnKind::Text(_) => request.cells.text("x"),
        _ => request.cells.int(7),
    }
    request.cells.int(1);
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    if first & 1 != 0 {
        request.steps.push(Step { statement: 1, rows: 1, first_cell: 2, expect: Expect::Rows });
    }
    let mut rows = Cells::new();
    let kept = (first & COUNTS == 0).then_some(&mut rows);
    let outcome = session.execute(&request, kept);
    if let Ok(answer) = &outcome {
        assert_eq!(answer.changed, 1, "an answer to one row");
        assert!(first & COUNTS != 0 || rows.len() as u64 == 2 * answer.rows);
    }
    goes_on(outcome.map(drop));
    answered
}
