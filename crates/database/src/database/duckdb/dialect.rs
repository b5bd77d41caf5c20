//! The SQL dialect of DuckDB.

use std::io::Write;

use crate::database::Dialect;
use crate::database::dialect::NewestOfEach;
use crate::database::literal::{Literals, quoted};
use crate::question::{is_whole, share};
use crate::record::ColumnKind;
use crate::statement::SourceIndex;

/// DuckDB's SQL.
#[derive(Debug)]
pub(super) struct DuckdbDialect;

impl Dialect for DuckdbDialect {
    fn divided(&self, number: &str, by: i64) -> String {
        format!("{number} // {by}")
    }

    fn newest_of_each(&self, _index: SourceIndex) -> NewestOfEach {
        NewestOfEach::DistinctOn
    }

    /// The sum of whole numbers has 128 bits.
    fn sum_of(&self, column: &str, kind: ColumnKind) -> String {
        if is_whole(kind) { format!("CAST(SUM({column}) AS BIGINT)") } else { format!("SUM({column})") }
    }

    fn end_of(&self, column: &str, order: &[&str], is_last: bool) -> Option<String> {
        let function = if is_last { "ARG_MAX" } else { "ARG_MIN" };
        Some(match order {
            [time] => format!("{function}({column}, {time})"),
            _ => format!("{function}({column}, ROW({}))", order.join(", ")),
        })
    }

    fn quantile_of(&self, column: &str, millionths: u32) -> Option<String> {
        Some(format!("QUANTILE_DISC({column}, {})", share(millionths)))
    }

    fn quote(&self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// Texts of limited length are VARCHAR: DuckDB reads the length and ignores it.
    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 => "SMALLINT",
            ColumnKind::Int32 => "INTEGER",
            ColumnKind::Int64 => "BIGINT",
            ColumnKind::Float64 => "DOUBLE",
            ColumnKind::Text(_) => "VARCHAR",
            ColumnKind::Blob(_) => "BLOB",
            ColumnKind::Json => "JSON",
        }
        .to_owned()
    }

    fn numbered_type(&self) -> String {
        "BIGINT".to_owned()
    }

    /// DuckDB has no columns that number themselves.
    fn sequence_of(&self, table: &str) -> Option<String> {
        Some(format!("{table}_numbers"))
    }

    fn placeholder(&self, number: usize) -> String {
        format!("${}", number + 1)
    }

    /// A member that is set to null is removed; reading it gives null in both cases.
    fn document_with(&self, document: &str, members: &[(&str, ColumnKind, String)]) -> String {
        let pairs = members.iter().map(|(name, kind, value)| {
            // A function of any type leaves the type of the value open unless it is stated.
            format!("{}, CAST({value} AS {})", self.literal(name), self.column_type(*kind))
        });
        format!("json_merge_patch({document}, json_object({}))", pairs.collect::<Vec<_>>().join(", "))
    }

    fn document_without(&self, document: &str, member: &str) -> String {
        let patch = serde_json::json!({ member: null }).to_string();
        format!("json_merge_patch({document}, {})", self.literal(&patch))
    }

    fn member_of(&self, document: &str, member: &str, kind: ColumnKind) -> String {
        let value =
            format!("json_extract_string({document}, {})", self.literal(&crate::database::dialect::path(member)));
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64 => {
                format!("CAST({value} AS {})", self.column_type(kind))
            }
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => value,
        }
    }

    /// A transaction that changes a row which another one has changed since it began fails, so that what it has read needs no lock.
    fn row_lock(&self) -> &'static str {
        ""
    }

    /// In DuckDB, a transaction that deletes the rows which refer to a row cannot delete that row, too.
    fn has_foreign_keys(&self) -> bool {
        false
    }

    /// The plan is one text of several lines in the last column.
    fn plan_line(&self, row: &[Option<String>]) -> String {
        row.last().cloned().flatten().unwrap_or_default()
    }

    fn analyse(&self, table: &str) -> Option<String> {
        Some(format!("ANALYZE {}", self.quote(table)))
    }

    /// The blocks in use, of a file that holds nothing else: the blocks of indexes are not told by table.
    fn table_bytes(&self, tables: &[&str]) -> Vec<String> {
        let names: Vec<String> = tables.iter().map(|table| self.literal(table)).collect();
        vec![format!(
            "SELECT used_blocks * block_size FROM pragma_database_size() WHERE NOT EXISTS \
             (SELECT 1 FROM duckdb_tables() WHERE NOT internal AND table_name NOT IN ({}))",
            names.join(", ")
        )]
    }
}

/// Writer of values into the text of statements.
pub(super) struct DuckdbLiterals;

impl Literals for DuckdbLiterals {
    fn float(value: f64, out: &mut Vec<u8>) {
        // Writing into a vector cannot fail.
        let _ = match value {
            none if none.is_nan() => write!(out, "'nan'::DOUBLE"),
            infinite if infinite.is_infinite() => {
                write!(out, "'{}inf'::DOUBLE", if infinite < 0.0 { "-" } else { "" })
            }
            number => write!(out, "{number:e}"),
        };
    }

    /// A zero character would end the statement.
    fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if value.contains(&0) {
            out.extend_from_slice(b"decode(");
            Self::blob(value, out);
            out.push(b')');
        } else {
            quoted(value, out);
        }
        Ok(())
    }

    fn blob(value: &[u8], out: &mut Vec<u8>) {
        out.push(b'\'');
        for byte in value {
            let _ = write!(out, "\\x{byte:02X}");
        }
        out.extend_from_slice(b"'::BLOB");
    }
}
