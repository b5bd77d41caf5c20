//! Tables: made, counted, measured and removed.
//!
//! Invariant: what is counted is everything that was acknowledged before.

use super::applied;
use super::dialect::QuestdbDialect;
use super::program::{arrival_of, refused};
use super::value::Guard;
use crate::database::dialect::drop_table;
use crate::database::postgres::PostgresWire;
use crate::database::session::{Channel, Speak};
use crate::database::{DatabaseError, Dialect};
use crate::statement::Table;

/// Makes a table. A table that is there already is refused, and stays.
pub(super) fn create(channel: &mut Channel, wire: &mut PostgresWire, table: &Table) -> Result<(), DatabaseError> {
    if table.numbered || !table.unique.is_empty() {
        return Err(refused("it has tables without further unique columns and without rows that it numbers itself"));
    }
    wire.run(channel, &text(table))
}

/// Returns the statement that makes a table with a log of its writes, ordered by time, in a folder for each day.
fn text(table: &Table) -> String {
    let dialect = QuestdbDialect::default();
    let mut columns: Vec<String> = Vec::with_capacity(table.columns.len() + 1);
    for column in &table.columns {
        let usual = dialect.column_type(column.kind);
        let kind = match &table.time {
            Some(time) if time.name == column.name => "TIMESTAMP_NS".to_owned(),
            _ => Guard::of(column, None).sql_type(usual),
        };
        columns.push(format!("{} {kind}", dialect.quote(&column.name)));
    }
    let arrival = arrival_of(table);
    columns.extend(arrival.iter().map(|name| format!("{} TIMESTAMP", dialect.quote(name))));
    let own = table.time.as_ref().map(|time| &time.name);
    let time = arrival.as_ref().or(own).map_or(String::new(), |name| dialect.quote(name));
    let name = dialect.quote(&table.name);
    format!("CREATE TABLE {name} ({}) TIMESTAMP({time}) PARTITION BY DAY WAL", columns.join(", "))
}

/// Removes a table with its rows, if it exists.
pub(super) fn remove(channel: &mut Channel, wire: &mut PostgresWire, table: &str) -> Result<(), DatabaseError> {
    wire.run(channel, &removal(table))
}

/// Returns the statement that removes a table.
pub(super) fn removal(table: &str) -> String {
    drop_table(&QuestdbDialect::default(), table)
}

/// Returns the number of rows of a table.
pub(super) fn count(channel: &mut Channel, wire: &mut PostgresWire, table: &str) -> Result<u64, DatabaseError> {
    number(channel, wire, table, "count()")
}

/// Returns the sum of a column of whole numbers.
pub(super) fn sum(
    channel: &mut Channel,
    wire: &mut PostgresWire,
    table: &str,
    column: &str,
) -> Result<u64, DatabaseError> {
    let sum = format!("coalesce(sum({}), 0)", QuestdbDialect::default().quote(column));
    number(channel, wire, table, &sum)
}

fn number(channel: &mut Channel, wire: &mut PostgresWire, table: &str, figure: &str) -> Result<u64, DatabaseError> {
    applied::wait(channel, wire, &[table])?;
    let sql = format!("SELECT {figure} FROM {}", QuestdbDialect::default().quote(table));
    let told = wire.query(channel, &sql)?.into_iter().flatten().flatten().next().unwrap_or_default();
    told.parse().map_err(|_| DatabaseError::Lost(format!("{sql} was answered with {told:?}, which is no number")))
}

/// Returns the bytes of these tables' partitions on the disk; `None` where the server does not tell.
pub(super) fn bytes(channel: &mut Channel, wire: &mut PostgresWire, tables: &[&str]) -> Option<u64> {
    applied::wait(channel, wire, tables).ok()?;
    let of_table = |table: &&str| {
        let name = QuestdbDialect::default().literal(table);
        format!("SELECT diskSize AS \"bytes\" FROM table_partitions({name})")
    };
    let all = tables.iter().map(of_table).collect::<Vec<_>>().join(" UNION ALL ");
    let sql = format!("SELECT coalesce(sum(\"bytes\"), 0) FROM ({all})");
    wire.query(channel, &sql).ok()?.into_iter().flatten().flatten().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;
    use crate::statement::{TableColumn, TimeColumn};

    #[test]
    fn tables_are_ordered_by_the_time_of_their_rows_or_of_their_arrival() {
        let column = |name: &str, nullable| TableColumn { name: name.to_owned(), kind: ColumnKind::Int16, nullable };
        let table = Table {
            name: "t\"".to_owned(),
            columns: vec![column("a", false), column("timestamp", true)],
            primary_key: vec!["a".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        };
        let right = "CREATE TABLE \"t\"\"\" (\"a\" SHORT, \"timestamp\" INT, \"timestamp_\" TIMESTAMP) TIMESTAMP(\"timestamp_\") PARTITION BY DAY WAL";
        assert_eq!(text(&table), right);
        let timed = Table { time: Some(TimeColumn { name: "a".to_owned(), partitions: None }), ..table };
        let right =
            "CREATE TABLE \"t\"\"\" (\"a\" TIMESTAMP_NS, \"timestamp\" INT) TIMESTAMP(\"a\") PARTITION BY DAY WAL";
        assert_eq!(text(&timed), right);
    }
}
