//! The queries for a program's statements. Main type: [`Plan`].
//!
//! A statement that ClickHouse does not execute at once is refused here, and already during planning.

use super::dialect::{ClickhouseDialect, ClickhouseLiterals};
use super::value::{self, Column};
use crate::database::literal::TextStatement;
use crate::database::{DatabaseError, Dialect};
use crate::record::Cells;
use crate::statement::{Program, Select, Statement, Step, Table, TableColumn};

/// The maximum number of rows of one insert: the server makes one block of so many, which is stored whole or not at all.
pub(super) const ROWS_MAX: usize = 1_000_000;

/// The query for a statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plan {
    /// An insert, with the text in front of its rows.
    Insert { text: String, columns: Vec<Column> },
    /// A query of rows of these columns.
    Select { text: Box<TextStatement>, columns: Vec<Column> },
}

impl Plan {
    /// Returns the queries for a program's statements.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that there is no query for.
    pub(super) fn of(program: &Program) -> Result<Vec<Plan>, DatabaseError> {
        if program.as_text {
            return Err(refused("rows are sent in binary form, not as text"));
        }
        if program.rows_max > ROWS_MAX {
            return Err(refused(&format!("more than {ROWS_MAX} rows are not stored whole or not at all")));
        }
        program.statements.iter().map(|statement| plan(statement, program)).collect()
    }

    /// Appends the query for a step of a request.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub(super) fn append(&self, cells: &Cells, step: &Step, out: &mut Vec<u8>) -> Result<(), String> {
        let first = step.first_cell as usize;
        match self {
            Plan::Insert { text, columns } => {
                out.extend_from_slice(text.as_bytes());
                for row in 0..step.rows as usize {
                    let first = first + row * columns.len();
                    for (place, column) in columns.iter().enumerate() {
                        value::append(column, cells, cells.get(first + place), out)?;
                    }
                }
            }
            Plan::Select { text, .. } => {
                text.append::<ClickhouseLiterals>(cells, first, 1, usize::MAX, out)?;
                out.extend_from_slice(b" FORMAT RowBinary");
            }
        }
        Ok(())
    }
}

fn plan(statement: &Statement, program: &Program) -> Result<Plan, DatabaseError> {
    let table_of = |name: &str| {
        let found = program.tables.iter().find(|table| table.name == name);
        let table = found.ok_or_else(|| refused(&format!("the table {name} is none of the study's")))?;
        if table.numbered { Err(refused("it does not number rows itself")) } else { Ok(table) }
    };
    let quote = |name: &str| ClickhouseDialect.quote(name);
    match statement {
        Statement::Insert { table, columns } if !columns.is_empty() => {
            let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            let list = names.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
            let text = format!("INSERT INTO {} ({list}) FORMAT RowBinary\n", quote(table));
            Ok(Plan::Insert { text, columns: columns_of(table_of(table)?, names.into_iter())? })
        }
        Statement::Select(select) => {
            check_select(select)?;
            let names = select.columns.iter().map(|column| column.column.as_str());
            let columns = columns_of(table_of(&select.from)?, names)?;
            Ok(Plan::Select { text: Box::new(TextStatement::new(&ClickhouseDialect, statement)), columns })
        }
        // Written without a join: some versions join only with a word that others do not need.
        Statement::SelectGroups { table, columns, key } => {
            let list = columns.iter().map(|name| quote(name)).collect::<Vec<_>>().join(", ");
            let (from, by) = (quote(table), quote(&key.name));
            let sql = format!(
                "SELECT {list} FROM {from} WHERE {by} IN (SELECT DISTINCT {by} FROM {from} WHERE {by} >= ? ORDER BY {by} LIMIT ?) \
                 ORDER BY {by}"
            );
            let columns = columns_of(table_of(table)?, columns.iter().map(String::as_str))?;
            let own = Statement::Sql { sql, allow_empty: true, form: Default::default() };
            Ok(Plan::Select { text: Box::new(TextStatement::new(&ClickhouseDialect, &own)), columns })
        }
        Statement::Ask(asking) if !asking.joins.is_empty() => Err(refused("it reads rows of one table at a time here")),
        Statement::Ask(asking) => {
            let kinds = asking.answer_kinds().into_iter();
            let column = |kind| Column::from(&TableColumn { name: String::new(), kind, nullable: false });
            let columns = kinds.map(column).collect();
            Ok(Plan::Select { text: Box::new(TextStatement::new(&ClickhouseDialect, statement)), columns })
        }
        Statement::Update { .. } | Statement::Delete { .. } => {
            Err(refused("it changes and removes rows some time later, and does not say when"))
        }
        _ => Err(refused("it has no query for such a statement")),
    }
}

fn check_select(select: &Select) -> Result<(), DatabaseError> {
    match select {
        Select { joins, .. } if !joins.is_empty() => Err(refused("it reads rows of one table at a time here")),
        Select { for_update: true, .. } => Err(refused("it has no transactions, and locks no rows")),
        _ => Ok(()),
    }
}

/// Returns the columns of a table with these names.
fn columns_of<'a>(table: &Table, names: impl Iterator<Item = &'a str>) -> Result<Vec<Column>, DatabaseError> {
    let column = |name: &str| {
        let found = table.columns.iter().find(|column| column.name == name);
        found.map(Column::from).ok_or_else(|| refused(&format!("the table {} has no column {name}", table.name)))
    };
    names.map(column).collect()
}

fn refused(why: &str) -> DatabaseError {
    DatabaseError::refused("clickhouse", why)
}
