//! The statements in SQL for a program. Main type: [`Plan`].
//!
//! A statement that QuestDB does not execute at once is refused here, and already during planning.

use super::dialect::QuestdbDialect;
use super::value::{Guard, oid};
use crate::database::dialect::statement_text;
use crate::database::{DatabaseError, Dialect};
use crate::record::ColumnKind;
use crate::statement::{Program, Select, Statement, Table};

/// A statement as it is prepared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The text, with a placeholder for each value.
    pub text: String,
    /// The types of the values.
    pub types: Vec<u32>,
    /// What each value of a row that is inserted must be; `None` for a statement that reads.
    pub guards: Option<Vec<Guard>>,
}

impl Plan {
    /// Returns the statements for a program's.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that QuestDB does not have.
    pub(super) fn of(program: &Program) -> Result<Vec<Plan>, DatabaseError> {
        if program.as_text {
            return Err(refused("its statements are prepared, and not sent as text"));
        }
        let dialect = QuestdbDialect::of(&program.tables);
        program.statements.iter().map(|statement| plan(statement, program, &dialect)).collect()
    }
}

fn plan(statement: &Statement, program: &Program, dialect: &QuestdbDialect) -> Result<Plan, DatabaseError> {
    let table_of = |name: &str| {
        let found = program.tables.iter().find(|table| table.name == name);
        let table = found.ok_or_else(|| refused(&format!("the table {name} is none of the study's")))?;
        if table.numbered { Err(refused("it does not number rows itself")) } else { Ok(table) }
    };
    match statement {
        Statement::Insert { table, columns } if !columns.is_empty() => {
            let guards: Vec<_> = columns.iter().map(Guard::of).collect();
            let types = guards.iter().map(Guard::oid).collect();
            Ok(Plan { text: insert(table_of(table)?, statement, dialect), types, guards: Some(guards) })
        }
        Statement::Select(select) => {
            check_select(select)?;
            table_of(&select.from)?;
            read(statement_text(dialect, statement, 1), &statement.kinds())
        }
        Statement::SelectGroups { table, columns, key } => {
            table_of(table)?;
            let list = columns.iter().map(|name| dialect.quote(name)).collect::<Vec<_>>().join(", ");
            let (from, by) = (dialect.quote(table), dialect.quote(&key.name));
            let text = format!(
                "SELECT {list} FROM {from} WHERE {by} IN (SELECT DISTINCT {by} FROM {from} WHERE {by} >= $1 ORDER BY {by} LIMIT $2) \
                 ORDER BY {by}"
            );
            read(text, &statement.kinds())
        }
        Statement::Ask(asking) if !asking.joins.is_empty() => Err(refused("it reads rows of one table at a time here")),
        Statement::Ask(asking) => {
            table_of(&asking.from)?;
            read(statement_text(dialect, statement, 1), &statement.kinds())
        }
        Statement::Update { .. } | Statement::Delete { .. } => {
            Err(refused("it changes rows some time later and removes none, and neither is told"))
        }
        _ => Err(refused("it has no statement of this kind")),
    }
}

/// Returns the statement that inserts a row. The server gives the time of its arrival to a row that has no time of its own.
fn insert(table: &Table, statement: &Statement, dialect: &QuestdbDialect) -> String {
    let text = statement_text(dialect, statement, 1);
    let Some(arrival) = arrival_of(table) else { return text };
    let arrival = dialect.quote(&arrival);
    text.replacen(") VALUES (", &format!(", {arrival}) VALUES ("), 1).trim_end_matches(')').to_owned()
        + ", systimestamp())"
}

/// Returns the name of the column with the time at which a row has arrived; `None` where rows have a time of their own.
pub(super) fn arrival_of(table: &Table) -> Option<String> {
    if table.time.is_some() {
        return None;
    }
    let mut name = "timestamp".to_owned();
    while table.columns.iter().any(|column| column.name.eq_ignore_ascii_case(&name)) {
        name.push('_');
    }
    Some(name)
}

fn read(text: String, kinds: &[Option<ColumnKind>]) -> Result<Plan, DatabaseError> {
    let types: Option<Vec<u32>> = kinds.iter().map(|kind| kind.map(oid)).collect();
    let types = types.ok_or_else(|| refused("a value has no type of its own"))?;
    Ok(Plan { text, types, guards: None })
}

fn check_select(select: &Select) -> Result<(), DatabaseError> {
    match select {
        Select { joins, .. } if !joins.is_empty() => Err(refused("it reads rows of one table at a time here")),
        Select { for_update: true, .. } => Err(refused("it locks no rows")),
        _ => Ok(()),
    }
}

pub(super) fn refused(why: &str) -> DatabaseError {
    DatabaseError::refused("questdb", why)
}
