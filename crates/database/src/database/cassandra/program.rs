//! The statements in CQL for a program. Main type: [`Plan`].
//!
//! A row is found only by its whole key: a statement that needs more is refused here, and already during planning.
//!
//! Invariant: each statement that writes has its time of writing as a value, in front of the others or behind them, so that the steps of a batch take effect in their order.

use crate::database::DatabaseError;
use crate::record::ColumnKind;
use crate::statement::{Comparison, Program, Select, Statement, Table, TableColumn};

/// A statement as it is prepared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Plan {
    /// The text, with a question mark for each value.
    pub cql: String,
    /// The kinds of the values, without the time of writing.
    pub kinds: Vec<ColumnKind>,
    /// What the statement does.
    pub action: Action,
    /// The name that the server has given the prepared statement.
    pub id: Vec<u8>,
}

/// What a statement does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// Stores rows; the time of writing is the last value.
    Insert,
    /// Changes a row, or makes it; the time of writing is the first value.
    Update,
    /// Removes a row; the time of writing is the first value.
    Delete,
    /// Reads a row of these kinds.
    Select(Vec<ColumnKind>),
}

impl Plan {
    /// Returns whether the statement changes something.
    pub(super) fn writes(&self) -> bool {
        !matches!(self.action, Action::Select(_))
    }

    /// Returns the statements for a program's, in the tables of a keyspace.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] for a statement that Cassandra does not have.
    pub(super) fn of(program: &Program, keyspace: &str) -> Result<Vec<Plan>, DatabaseError> {
        if program.as_text {
            return Err(refused("its statements are prepared, and not sent as text"));
        }
        program.statements.iter().map(|statement| plan(statement, program, keyspace)).collect()
    }
}

/// Returns a name as a part of CQL: case and reserved words do not matter.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Returns the name of a table as a part of CQL.
pub(super) fn table_name(keyspace: &str, table: &str) -> String {
    format!("{}.{}", quoted(keyspace), quoted(table))
}

fn plan(statement: &Statement, program: &Program, keyspace: &str) -> Result<Plan, DatabaseError> {
    let table_of = |name: &str| {
        let found = program.tables.iter().find(|table| table.name == name);
        found.ok_or_else(|| refused(&format!("the table {name} is none of the study's")))
    };
    let kinds = |columns: &[TableColumn]| columns.iter().map(|column| column.kind).collect::<Vec<_>>();
    let equal = |columns: &[TableColumn], between: &str| {
        columns.iter().map(|column| format!("{} = ?", quoted(&column.name))).collect::<Vec<_>>().join(between)
    };
    let whole =
        |table: &str, key: &[TableColumn]| check_key(table_of(table)?, key.iter().map(|column| column.name.as_str()));
    Ok(match statement {
        Statement::Insert { table, columns } => {
            let of = table_of(table)?;
            if of.numbered {
                return Err(refused(&format!("it does not number rows, as those of {table} are to be")));
            }
            let names = columns.iter().map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ");
            let places = vec!["?"; columns.len()].join(", ");
            let name = table_name(keyspace, table);
            let cql = format!("INSERT INTO {name} ({names}) VALUES ({places}) USING TIMESTAMP ?");
            Plan { cql, kinds: kinds(columns), action: Action::Insert, id: Vec::new() }
        }
        Statement::Update { table, set, key } => {
            whole(table, key)?;
            let (name, set_to, by) = (table_name(keyspace, table), equal(set, ", "), equal(key, " AND "));
            let cql = format!("UPDATE {name} USING TIMESTAMP ? SET {set_to} WHERE {by}");
            let kinds = [kinds(set), kinds(key)].concat();
            Plan { cql, kinds, action: Action::Update, id: Vec::new() }
        }
        Statement::Delete { table, key } => {
            whole(table, key)?;
            let (name, by) = (table_name(keyspace, table), equal(key, " AND "));
            let cql = format!("DELETE FROM {name} USING TIMESTAMP ? WHERE {by}");
            Plan { cql, kinds: kinds(key), action: Action::Delete, id: Vec::new() }
        }
        Statement::Select(select) => select_of(select, table_of(&select.from)?, keyspace)?,
        _ => return Err(refused("it has no statement of this kind")),
    })
}

fn select_of(select: &Select, table: &Table, keyspace: &str) -> Result<Plan, DatabaseError> {
    let is_by_key = select.conditions.iter().all(|condition| condition.comparison == Comparison::Equal);
    let is_plain = select.joins.is_empty() && select.window.is_none() && select.limit.is_none() && !select.for_update;
    if !is_by_key || !is_plain {
        return Err(refused("it reads a row by its whole key, and nothing else"));
    }
    check_key(table, select.conditions.iter().map(|condition| condition.column.column.as_str()))?;
    let kind_of = |name: &String| table.columns.iter().find(|column| column.name == *name).map(|column| column.kind);
    let read: Option<Vec<ColumnKind>> = select.columns.iter().map(|wanted| kind_of(&wanted.column)).collect();
    let read = read.ok_or_else(|| refused("a column that is read is none of the table's"))?;
    let columns = select.columns.iter().map(|wanted| quoted(&wanted.column)).collect::<Vec<_>>().join(", ");
    let by = select.conditions.iter().map(|condition| format!("{} = ?", quoted(&condition.column.column)));
    let (name, by) = (table_name(keyspace, &table.name), by.collect::<Vec<_>>().join(" AND "));
    let kinds = select.conditions.iter().map(|condition| condition.kind).collect();
    // With its whole key given there is one row at most, and no order.
    Ok(Plan {
        cql: format!("SELECT {columns} FROM {name} WHERE {by}"),
        kinds,
        action: Action::Select(read),
        id: Vec::new(),
    })
}

/// Checks that these columns are the key of a table.
fn check_key<'a>(table: &Table, named: impl Iterator<Item = &'a str>) -> Result<(), DatabaseError> {
    let mut named: Vec<&str> = named.collect();
    let mut key: Vec<&str> = table.primary_key.iter().map(String::as_str).collect();
    named.sort_unstable();
    key.sort_unstable();
    match named == key && !key.is_empty() && !table.numbered {
        true => Ok(()),
        false => Err(refused(&format!("rows of {} are found by their whole key, and by nothing else", table.name))),
    }
}

/// Returns the error for what Cassandra does not do.
pub(super) fn refused(why: &str) -> DatabaseError {
    DatabaseError::refused("cassandra", why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::{ColumnRef, Condition};

    fn table() -> Table {
        let column = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
        Table {
            name: "t".to_owned(),
            columns: ["a", "b", "c"].map(column).into(),
            primary_key: vec!["a".to_owned(), "b".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        }
    }

    fn text(statement: Statement) -> Result<String, DatabaseError> {
        let program = Program { tables: vec![table()], statements: vec![statement], ..Program::default() };
        Plan::of(&program, "k").map(|plans| plans[0].cql.clone())
    }

    #[test]
    fn statements_are_in_cql_with_their_time_of_writing() {
        let columns = table().columns;
        let name = || "t".to_owned();
        let insert = text(Statement::Insert { table: name(), columns: columns.clone() });
        let right = r#"INSERT INTO "k"."t" ("a", "b", "c") VALUES (?, ?, ?) USING TIMESTAMP ?"#;
        assert_eq!(insert.unwrap(), right);
        let update = Statement::Update { table: name(), set: columns[2..].to_vec(), key: columns[..2].to_vec() };
        let right = r#"UPDATE "k"."t" USING TIMESTAMP ? SET "c" = ? WHERE "a" = ? AND "b" = ?"#;
        assert_eq!(text(update).unwrap(), right);
        let delete = Statement::Delete { table: name(), key: columns[..2].to_vec() };
        assert_eq!(text(delete).unwrap(), r#"DELETE FROM "k"."t" USING TIMESTAMP ? WHERE "a" = ? AND "b" = ?"#);
    }

    #[test]
    fn rows_are_found_by_their_whole_key_alone() {
        let columns = table().columns;
        let delete = Statement::Delete { table: "t".to_owned(), key: columns[..1].to_vec() };
        assert!(text(delete).unwrap_err().to_string().contains("whole key"));
        let at = |name: &str| ColumnRef { table: "t".to_owned(), column: name.to_owned() };
        let select = |comparison| {
            let by = |name: &str, comparison| Condition { column: at(name), kind: ColumnKind::Int64, comparison };
            let conditions = vec![by("a", Comparison::Equal), by("b", comparison)];
            text(Statement::Select(Select {
                columns: vec![at("c")],
                from: "t".to_owned(),
                conditions,
                ..Select::default()
            }))
        };
        assert_eq!(select(Comparison::Equal).unwrap(), r#"SELECT "c" FROM "k"."t" WHERE "a" = ? AND "b" = ?"#);
        assert!(select(Comparison::Greater).unwrap_err().is_refusal());
    }

    #[test]
    fn names_are_no_statements() {
        assert_eq!(table_name("a\"b", "select"), "\"a\"\"b\".\"select\"");
    }
}
