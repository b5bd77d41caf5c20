//! How PostgreSQL writes the statements that are neutral to databases.

use std::io::Write;

use crate::database::Dialect;
use crate::database::literal::{Literals, hexadecimal, quoted};
use crate::record::ColumnKind;

/// PostgreSQL's SQL.
#[derive(Debug, Clone, Copy, Default)]
pub struct PostgresDialect;

impl Dialect for PostgresDialect {
    fn quote(&self, name: &str) -> String {
        format!("\"{}\"", name.replace('"', "\"\""))
    }

    /// Texts of limited length are TEXT: it is stored as VARCHAR(n) is, and spares the check of the length.
    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 => "SMALLINT",
            ColumnKind::Int32 => "INTEGER",
            ColumnKind::Int64 => "BIGINT",
            ColumnKind::Float64 => "DOUBLE PRECISION",
            ColumnKind::Text(_) => "TEXT",
            ColumnKind::Blob(_) => "BYTEA",
            ColumnKind::Json => "JSONB",
        }
        .to_owned()
    }

    fn document_with(&self, document: &str, members: &[(&str, ColumnKind, String)]) -> String {
        let pairs = members.iter().map(|(name, kind, value)| {
            // A function of any type leaves the type of the value open, unless it is said.
            format!("{}, {value}::{}", self.literal(name), self.column_type(*kind))
        });
        format!("{document} || jsonb_build_object({})", pairs.collect::<Vec<_>>().join(", "))
    }

    fn document_without(&self, document: &str, member: &str) -> String {
        format!("{document} - {}", self.literal(member))
    }

    fn member_of(&self, document: &str, member: &str, kind: ColumnKind) -> String {
        let value = format!("{document} ->> {}", self.literal(member));
        match kind {
            ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64 => {
                format!("({value})::{}", self.column_type(kind))
            }
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => value,
        }
    }

    fn placeholder(&self, number: usize) -> String {
        format!("${}", number + 1)
    }

    fn explain(&self, query: &str) -> String {
        format!("EXPLAIN (COSTS OFF) {query}")
    }

    fn analyse(&self, table: &str) -> Option<String> {
        Some(format!("ANALYZE {}", self.quote(table)))
    }

    fn read_only(&self) -> Option<&'static str> {
        Some("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY")
    }
}

/// Values in the text of statements: in quotes, so that their place says of which type they are, as it does for parameters.
pub struct PostgresLiterals;

impl Literals for PostgresLiterals {
    fn int(value: i64, out: &mut Vec<u8>) {
        // Writing into a vector cannot fail.
        let _ = write!(out, "'{value}'");
    }

    fn float(value: f64, out: &mut Vec<u8>) {
        let _ = write!(out, "'{value:e}'");
    }

    fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        if value.contains(&0) {
            return Err("a text holds a zero character, which PostgreSQL cannot store");
        }
        if !value.contains(&b'\\') {
            quoted(value, out);
            return Ok(());
        }
        // Whether a backslash is one in plain quotes is a setting of the server.
        out.extend_from_slice(b" E'");
        for byte in value {
            if matches!(byte, b'\\' | b'\'') {
                out.push(*byte);
            }
            out.push(*byte);
        }
        out.push(b'\'');
        Ok(())
    }

    fn blob(value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b" E'\\\\x");
        hexadecimal(value, out);
        out.push(b'\'');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::dialect::statement_text;
    use crate::statement::{Statement, TableColumn};

    #[test]
    fn parameters_are_numbered_from_one_through_all_rows() {
        let columns =
            ["a", "b\"c"].map(|name| TableColumn { name: name.into(), kind: ColumnKind::Int16, nullable: false });
        let insert = Statement::Insert { table: "t".into(), columns: columns.into() };
        let text = statement_text(&PostgresDialect, &insert, 2);
        assert_eq!(text, "INSERT INTO \"t\" (\"a\", \"b\"\"c\") VALUES ($1, $2), ($3, $4)");
        let sql = Statement::Sql { sql: "SELECT '?' WHERE ? < ?".into(), allow_empty: false };
        assert_eq!(statement_text(&PostgresDialect, &sql, 1), "SELECT '?' WHERE $1 < $2");
    }
}
