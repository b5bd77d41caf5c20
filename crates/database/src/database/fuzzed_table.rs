//! The table of the fuzzing targets of stores without SQL, and statements on it.

use crate::record::ColumnKind;
use crate::statement::{ColumnRef, Comparison, Condition, Program, Select, Statement, Table, TableColumn};

/// Returns a table of a number as its key, and a text that may be null.
pub fn table() -> Table {
    let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: name != "id" };
    Table {
        name: "t".to_owned(),
        columns: vec![column("id", ColumnKind::Int64), column("note", ColumnKind::Text(40))],
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
