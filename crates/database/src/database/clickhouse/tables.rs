//! Tables: made with an engine of ClickHouse, counted, measured and removed.

use super::Engine;
use super::dialect::ClickhouseDialect;
use super::exchange::{Line, ask};
use super::settings::Own;
use crate::database::session::Channel;
use crate::database::{DatabaseError, Dialect};
use crate::statement::{Partitions, SchemaChange, Table};

/// The first version whose tables are removed in the background unless they are asked for it at once.
const SYNC_SINCE: u32 = 21;

/// Makes a table. A table that is there already is refused, and stays.
pub(super) fn create(
    channel: &mut Channel,
    line: &Line,
    engine: Engine,
    own: &Own,
    table: &Table,
) -> Result<(), DatabaseError> {
    if table.numbered {
        return Err(DatabaseError::refused("clickhouse", "it does not number rows itself"));
    }
    if engine != Engine::MergeTree && spans_of(table).is_some() {
        return Err(DatabaseError::refused(
            "clickhouse",
            "only tables of the engine MergeTree have partitions; leave database.engine or layout.partition out",
        ));
    }
    ask(channel, line, &text(engine, own, table)).map(drop)
}

/// Returns the column with the time and the partitions by it; `None` for a table that is one piece.
fn spans_of(table: &Table) -> Option<(&str, Partitions)> {
    table.time.as_ref().and_then(|time| Some((time.name.as_str(), time.partitions?)))
}

/// Changes the partitions of a table. Those for readings to come make themselves. Returns the statement, if one was needed.
pub(super) fn change(
    channel: &mut Channel,
    line: &Line,
    change: &SchemaChange,
) -> Result<Option<String>, DatabaseError> {
    match change {
        SchemaChange::AddPartition { .. } => Ok(None),
        SchemaChange::DropPartition { table, partition } => {
            let sql = format!("ALTER TABLE {} DROP PARTITION {partition}", ClickhouseDialect.quote(table));
            ask(channel, line, &sql).map(|_| Some(sql))
        }
        _ => Err(DatabaseError::refused("clickhouse", "loadline changes nothing but the partitions of its tables")),
    }
}

fn text(engine: Engine, own: &Own, table: &Table) -> String {
    let dialect = ClickhouseDialect;
    let columns = table.columns.iter().map(|column| {
        let kind = dialect.column_type(column.kind);
        let kind = if column.nullable { format!("Nullable({kind})") } else { kind };
        format!("{} {kind}", dialect.quote(&column.name))
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    let key = table.primary_key.iter().map(|name| dialect.quote(name)).collect::<Vec<_>>().join(", ");
    let mut sql = format!("CREATE TABLE {} ({columns}) ENGINE = {}", dialect.quote(&table.name), engine.name());
    if engine == Engine::MergeTree {
        // Its number is the value by which a partition is dropped.
        sql += &spans_of(table).map_or(String::new(), |(time, spans)| {
            format!(" PARTITION BY intDiv({}, {})", ClickhouseDialect.quote(time), spans.span_ns)
        });
        sql += &if key.is_empty() { " ORDER BY tuple()".to_owned() } else { format!(" ORDER BY ({key})") };
        let settings = own.of_tables.iter().map(|(name, value)| format!("{name} = {}", setting(value)));
        let settings = settings.collect::<Vec<_>>().join(", ");
        if !settings.is_empty() {
            sql += &format!(" SETTINGS {settings}");
        }
    }
    sql
}

/// Returns a setting's value as a literal: numbers as they are.
fn setting(value: &str) -> String {
    let is_number = value.parse::<f64>().is_ok_and(f64::is_finite);
    if is_number { value.trim().to_owned() } else { ClickhouseDialect.literal(value) }
}

/// Removes a table with its rows, if it exists, so that its files are gone, too.
pub(super) fn remove(channel: &mut Channel, line: &Line, version: &str, table: &str) -> Result<(), DatabaseError> {
    ask(channel, line, &removal(table, version)).map(drop)
}

/// Returns the statement that removes a table, for a version; at least for newer ones where it is not known.
pub(super) fn removal(table: &str, version: &str) -> String {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    let sync = if major.is_some_and(|major| major >= SYNC_SINCE) { " SYNC" } else { "" };
    format!("DROP TABLE IF EXISTS {}{sync}", ClickhouseDialect.quote(table))
}

/// Returns the number of rows of a table.
pub(super) fn count(channel: &mut Channel, line: &Line, table: &str) -> Result<u64, DatabaseError> {
    let told = ask(channel, line, &format!("SELECT count() FROM {}", ClickhouseDialect.quote(table)))?;
    told.parse().map_err(|_| DatabaseError::Lost("the server counts rows with something else than a number".to_owned()))
}

/// Returns the sum of a column of whole numbers.
pub(super) fn sum(channel: &mut Channel, line: &Line, table: &str, column: &str) -> Result<u64, DatabaseError> {
    let quote = |name: &str| ClickhouseDialect.quote(name);
    let told = ask(channel, line, &format!("SELECT sum({}) FROM {}", quote(column), quote(table)))?;
    told.parse().map_err(|_| DatabaseError::Lost("the server sums rows up to something else than a number".to_owned()))
}

/// Returns the bytes on the disk of these tables' active parts; `None` where the server does not tell this user, or the engine has no parts.
pub(super) fn bytes(channel: &mut Channel, line: &Line, tables: &[&str]) -> Option<u64> {
    let names = tables.iter().map(|table| ClickhouseDialect.literal(table)).collect::<Vec<_>>().join(", ");
    let here = format!("database = currentDatabase() AND table IN ({names}) AND active");
    let told =
        ask(channel, line, &format!("SELECT uniqExact(table), sum(bytes_on_disk) FROM system.parts WHERE {here}"));
    let told = told.ok()?;
    let (found, bytes) = told.split_once('\t')?;
    // A table without parts is empty, or has none because of its engine.
    if found.parse() == Ok(tables.len()) { bytes.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;
    use crate::statement::TableColumn;

    #[test]
    fn tables_are_ordered_by_their_key() {
        let column = |name: &str, nullable| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable };
        let table = Table {
            name: "t`".to_owned(),
            columns: vec![column("a", false), column("b", true)],
            primary_key: vec!["a".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: None,
        };
        let own = Own {
            of_tables: [("x", "1"), ("y", "it's")].map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..Own::default()
        };
        let head = "CREATE TABLE `t\\`` (`a` Int64, `b` Nullable(Int64)) ENGINE = ";
        let right = format!("{head}MergeTree ORDER BY (`a`) SETTINGS x = 1, y = 'it\\'s'");
        assert_eq!(text(Engine::MergeTree, &own, &table), right);
        assert_eq!(text(Engine::Log, &own, &table), format!("{head}Log"));
        let without = Table { primary_key: Vec::new(), ..table };
        assert_eq!(text(Engine::MergeTree, &Own::default(), &without), format!("{head}MergeTree ORDER BY tuple()"));
    }

    #[test]
    fn tables_are_removed_at_once() {
        assert_eq!(removal("t", "18.16.1"), "DROP TABLE IF EXISTS `t`");
        assert_eq!(removal("t", "24.8.1.1"), "DROP TABLE IF EXISTS `t` SYNC");
    }
}
