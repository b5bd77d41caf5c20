//! Tables: how they are made, counted and removed.
//!
//! Invariant: a table that is made or removed is so on all nodes that can be reached before anything else is asked of the server.

use std::time::{Duration, Instant};

use super::Consistency;
use super::frame::broken;
use super::program::{quoted, refused, table_name};
use super::query::{change, query};
use super::value::type_of;
use crate::database::DatabaseError;
use crate::database::session::Channel;
use crate::statement::Table;

/// The maximum characters of the name of a table.
const NAME_MAX: usize = 48;
/// The time that nodes are given to agree on the tables, and the time between two looks.
const AGREED_WITHIN: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Makes a table. Of a key with several columns the last one orders the rows, and the others decide which rows lie together.
pub(super) fn create(channel: &mut Channel, keyspace: &str, table: &Table) -> Result<(), DatabaseError> {
    if table.numbered || !table.unique.is_empty() || !table.indexes.is_empty() || table.primary_key.is_empty() {
        let why = "it has tables with a key, without further unique columns, indexes, and rows that it numbers itself";
        return Err(refused(why));
    }
    if table.name.chars().count() > NAME_MAX {
        let why = format!("the name of the table {:?} has more than {NAME_MAX} characters", table.name);
        return Err(refused(&why));
    }
    change(channel, &text_of(keyspace, table), Consistency::LocalOne)?;
    agree(channel)
}

/// Returns the statement that makes a table.
fn text_of(keyspace: &str, table: &Table) -> String {
    let columns = table.columns.iter().map(|column| format!("{} {}", quoted(&column.name), type_of(column.kind)));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let mut key: Vec<String> = table.primary_key.iter().map(|name| quoted(name)).collect();
    let last = if key.len() > 1 { key.pop() } else { None };
    let last = last.map_or(String::new(), |last| format!(", {last}"));
    let name = table_name(keyspace, &table.name);
    format!("CREATE TABLE {name} ({columns}, PRIMARY KEY (({}){last}))", key.join(", "))
}

/// Removes a table with its rows, if it exists.
pub(super) fn remove(channel: &mut Channel, keyspace: &str, table: &str) -> Result<(), DatabaseError> {
    change(channel, &removal(keyspace, table), Consistency::LocalOne)?;
    agree(channel)
}

/// Returns the statement that a person types to remove a table.
pub(super) fn removal(keyspace: &str, table: &str) -> String {
    format!("DROP TABLE IF EXISTS {}", table_name(keyspace, table))
}

/// Returns the number of rows of a table.
pub(super) fn count(
    channel: &mut Channel,
    keyspace: &str,
    table: &str,
    consistency: Consistency,
) -> Result<u64, DatabaseError> {
    let rows = query(channel, &format!("SELECT count(*) FROM {}", table_name(keyspace, table)), consistency)?;
    let told = rows.first().and_then(|row| row.first()?.as_deref()?.parse().ok());
    told.ok_or_else(|| broken("answers with something else than a number of rows"))
}

/// Makes a keyspace of one copy, if it does not exist.
pub(super) fn create_keyspace(channel: &mut Channel, keyspace: &str) -> Result<(), DatabaseError> {
    let name = quoted(keyspace);
    let copies = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    let text = format!("CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = {copies}");
    change(channel, &text, Consistency::LocalOne)
}

/// Returns whether there is a keyspace of this name.
pub(super) fn has_keyspace(channel: &mut Channel, keyspace: &str) -> Result<bool, DatabaseError> {
    of_keyspace(channel, keyspace, "keyspace_name").map(|told| told.is_some())
}

/// The question whether the log has what is written into a keyspace.
pub(super) const DURABLE_WRITES: &str = "durable_writes";

/// Returns what the server says about a keyspace; `None` where there is no such keyspace.
pub(super) fn of_keyspace(
    channel: &mut Channel,
    keyspace: &str,
    column: &str,
) -> Result<Option<String>, DatabaseError> {
    let text = format!("SELECT {column} FROM system_schema.keyspaces WHERE keyspace_name = {}", literal(keyspace));
    Ok(query(channel, &text, Consistency::LocalOne)?
        .into_iter()
        .next()
        .and_then(|row| row.into_iter().next().flatten()))
}

/// Returns a text as a literal in CQL.
pub(super) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Waits until all nodes have the same tables.
fn agree(channel: &mut Channel) -> Result<(), DatabaseError> {
    let until = Instant::now() + AGREED_WITHIN;
    loop {
        let mut versions = Vec::new();
        for source in ["local", "peers"] {
            let rows = query(channel, &format!("SELECT schema_version FROM system.{source}"), Consistency::LocalOne)?;
            // A node that is gone may be without a version.
            versions.extend(rows.into_iter().flatten().flatten());
        }
        versions.sort_unstable();
        versions.dedup();
        if versions.len() <= 1 {
            return Ok(());
        }
        if Instant::now() >= until || channel.is_scripted() {
            let seconds = AGREED_WITHIN.as_secs();
            return Err(DatabaseError::refused(
                "schema",
                format!("the nodes do not agree on the tables within {seconds} s"),
            ));
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;
    use crate::statement::TableColumn;

    fn table(key: &[&str]) -> Table {
        let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: true };
        Table {
            name: "t".to_owned(),
            columns: vec![
                column("a", ColumnKind::Text(9)),
                column("b", ColumnKind::Int16),
                column("c", ColumnKind::Float64),
            ],
            primary_key: key.iter().map(|name| (*name).to_owned()).collect(),
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        }
    }

    #[test]
    fn the_last_column_of_a_key_orders_the_rows_of_a_partition() {
        let columns = r#""a" text, "b" smallint, "c" double"#;
        for (key, right) in
            [(&["a"][..], r#"(("a"))"#), (&["a", "b"], r#"(("a"), "b")"#), (&["a", "b", "c"], r#"(("a", "b"), "c")"#)]
        {
            let right = format!(r#"CREATE TABLE "k"."t" ({columns}, PRIMARY KEY {right})"#);
            assert_eq!(text_of("k", &table(key)), right);
        }
    }

    #[test]
    fn texts_end_where_they_end() {
        assert_eq!(literal("it's"), "'it''s'");
        assert_eq!(removal("k", "a\"b"), "DROP TABLE IF EXISTS \"k\".\"a\"\"b\"");
    }
}
