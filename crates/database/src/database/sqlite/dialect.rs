//! The SQL dialect of SQLite.

use std::io::Write;

use crate::database::Dialect;
use crate::database::dialect::{Erasing, NewestOfEach, StraightJoin};
use crate::database::literal::{Literals, hexadecimal, quoted};
use crate::record::ColumnKind;
use crate::statement::SourceIndex;

/// SQLite's dialect.
#[derive(Debug)]
pub(in crate::database) struct SqliteDialect;

impl Dialect for SqliteDialect {
    fn quote(&self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            // Exactly this type makes a primary key of one column the row's number, without an index of its own.
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => "INTEGER",
            ColumnKind::Float64 => "REAL",
            // Documents are texts, which the JSON functions read.
            ColumnKind::Text(_) | ColumnKind::Json => "TEXT",
            ColumnKind::Blob(_) => "BLOB",
        }
        .to_owned()
    }

    /// Deleted content is overwritten with zeros: in the file, and in the log once it is checkpointed and truncated.
    fn erasing(&self, _: &[&str]) -> Erasing {
        let of = |sql: &str| vec![sql.to_owned()];
        Erasing { before: of("PRAGMA secure_delete = ON"), after: of("PRAGMA wal_checkpoint(TRUNCATE)") }
    }

    fn row_lock(&self) -> &'static str {
        ""
    }

    /// A primary key of this type is the row's number; without AUTOINCREMENT it costs nothing, and rises as long as no row is
    /// deleted.
    fn numbered_type(&self) -> String {
        "INTEGER".to_owned()
    }

    fn placeholder(&self, _: usize) -> String {
        "?".to_owned()
    }

    fn value_of_text(&self, text: &str, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => format!("CAST({text} AS INTEGER)"),
            ColumnKind::Float64 => format!("CAST({text} AS REAL)"),
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => text.to_owned(),
        }
    }

    fn newest_of_each(&self, index: SourceIndex) -> NewestOfEach {
        if index.is_by_source() { NewestOfEach::Skipping } else { NewestOfEach::BareColumns }
    }

    fn straight_join(&self) -> Option<StraightJoin> {
        Some(StraightJoin::CrossJoin)
    }

    fn explain(&self, query: &str) -> String {
        format!("EXPLAIN QUERY PLAN {query}")
    }

    /// The last column describes the plan in words.
    fn plan_line(&self, row: &[Option<String>]) -> String {
        row.last().cloned().flatten().unwrap_or_default()
    }

    fn analyse(&self, table: &str) -> Option<String> {
        Some(format!("ANALYZE {}", self.quote(table)))
    }

    /// The pages in use, of a file that holds nothing else: the pages of single tables are not known without reading them all.
    fn table_bytes(&self, tables: &[&str]) -> Vec<String> {
        let names: Vec<String> = tables.iter().map(|table| self.literal(table)).collect();
        vec![format!(
            "SELECT (p.page_count - f.freelist_count) * s.page_size FROM pragma_page_count AS p, pragma_freelist_count AS f, \
             pragma_page_size AS s WHERE NOT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND substr(name, 1, 7) \
             <> 'sqlite_' AND name NOT IN ({}))",
            names.join(", ")
        )]
    }

    fn read_only(&self) -> Option<&'static str> {
        Some("PRAGMA query_only = ON")
    }

    fn beside_others(&self) -> &'static [&'static str] {
        &["PRAGMA synchronous = NORMAL"]
    }

    fn index_columns(&self, table: &str) -> Option<String> {
        Some(format!(
            "SELECT l.name, i.seqno, i.name FROM pragma_index_list({}) l, pragma_index_info(l.name) i \
             WHERE l.partial = 0 ORDER BY l.name, i.seqno",
            self.literal(table)
        ))
    }
}

/// Writer of values into the text of statements.
pub(super) struct SqliteLiterals;

impl Literals for SqliteLiterals {
    /// NaN becomes null, as it does where it is bound.
    fn float(value: f64, out: &mut Vec<u8>) {
        // Writing into a vector cannot fail.
        let _ = match value {
            infinite if infinite.is_infinite() => write!(out, "{}9e999", if infinite < 0.0 { "-" } else { "" }),
            none if none.is_nan() => write!(out, "NULL"),
            number => write!(out, "{number:e}"),
        };
    }

    /// A zero character would end the statement.
    fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if value.contains(&0) {
            out.extend_from_slice(b"CAST(");
            Self::blob(value, out);
            out.extend_from_slice(b" AS TEXT)");
        } else {
            quoted(value, out);
        }
        Ok(())
    }

    fn blob(value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"x'");
        hexadecimal(value, out);
        out.push(b'\'');
    }
}
