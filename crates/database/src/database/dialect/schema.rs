//! Changes of tables in use, and tables in partitions by time.
//!
//! Main: [`schema_change_text`], [`PartitionForm`]. Invariant: a partition's name follows from its number, so that whoever drops it need not ask for it.

use super::Dialect;
use crate::record::ColumnKind;
use crate::statement::{Partitions, SchemaChange, Table};

/// How a database writes partitions by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PartitionForm {
    /// Each is a table of its own, as in PostgreSQL.
    #[default]
    Tables,
    /// They are listed in the statement that makes the table, as in MariaDB and MySQL.
    Listed,
}

/// Returns what stands behind CREATE TABLE for a table in partitions, and the statements behind it; both are empty for a table that is one piece.
pub(super) fn partitions(dialect: &dyn Dialect, table: &Table) -> (String, Vec<String>) {
    let found = table.time.as_ref().and_then(|time| Some((&time.name, time.partitions?)));
    let Some((time, spans)) = found else { return (String::new(), Vec::new()) };
    let quote = |name: &str| dialect.quote(name);
    let by = format!(" PARTITION BY RANGE ({})", quote(time));
    let numbers = spans.first..spans.end;
    match dialect.partition_form() {
        PartitionForm::Tables => (by, numbers.map(|number| own_table(&table.name, number, spans, &quote)).collect()),
        PartitionForm::Listed => {
            let parts: Vec<String> = numbers.map(|number| listed(number, spans, &quote)).collect();
            (format!("{by} ({})", parts.join(", ")), Vec::new())
        }
    }
}

fn own_table(table: &str, number: i64, spans: Partitions, quote: &impl Fn(&str) -> String) -> String {
    let [from_ns, to_ns] = [number, number.saturating_add(1)].map(|number| spans.begin_ns(number));
    let (own, whole) = (quote(&table_of(table, number)), quote(table));
    format!("CREATE TABLE {own} PARTITION OF {whole} FOR VALUES FROM ({from_ns}) TO ({to_ns})")
}

fn listed(number: i64, spans: Partitions, quote: &impl Fn(&str) -> String) -> String {
    format!("PARTITION {} VALUES LESS THAN ({})", quote(&name_of(number)), spans.begin_ns(number.saturating_add(1)))
}

fn name_of(number: i64) -> String {
    format!("p{number}")
}

fn table_of(table: &str, number: i64) -> String {
    format!("{table}_{}", name_of(number))
}

/// Returns a schema change in the SQL that most databases share.
pub fn schema_change_text(
    change: &SchemaChange,
    quote: impl Fn(&str) -> String,
    column_type: impl Fn(ColumnKind) -> String,
    form: PartitionForm,
) -> String {
    let table = quote(change.table());
    match change {
        SchemaChange::AddColumn { column, default, .. } => {
            let of_null = if column.nullable { "" } else { " NOT NULL" };
            let default =
                default.as_ref().map_or(String::new(), |text| format!(" DEFAULT '{}'", text.replace('\'', "''")));
            let (name, kind) = (quote(&column.name), column_type(column.kind));
            format!("ALTER TABLE {table} ADD COLUMN {name} {kind}{of_null}{default}")
        }
        SchemaChange::DropColumn { column, .. } => format!("ALTER TABLE {table} DROP COLUMN {}", quote(column)),
        SchemaChange::AddIndex { name, column, .. } => {
            format!("CREATE INDEX {} ON {table} ({})", quote(name), quote(column))
        }
        SchemaChange::AddPartition { table: whole, partition, span_ns } => {
            let spans = Partitions { span_ns: *span_ns, first: *partition, end: partition.saturating_add(1) };
            match form {
                PartitionForm::Tables => own_table(whole, *partition, spans, &quote),
                PartitionForm::Listed => {
                    format!("ALTER TABLE {table} ADD PARTITION ({})", listed(*partition, spans, &quote))
                }
            }
        }
        SchemaChange::DropPartition { table: whole, partition } => match form {
            PartitionForm::Tables => format!("DROP TABLE {}", quote(&table_of(whole, *partition))),
            PartitionForm::Listed => format!("ALTER TABLE {table} DROP PARTITION {}", quote(&name_of(*partition))),
        },
        SchemaChange::DropIndex { name, .. } => format!("DROP INDEX {}", quote(name)),
    }
}
