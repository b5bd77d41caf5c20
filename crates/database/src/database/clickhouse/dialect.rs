//! How ClickHouse writes names, types and values in the text of a query.

use std::io::Write;

use crate::database::Dialect;
use crate::database::dialect::NewestOfEach;
use crate::database::literal::{Literals, hexadecimal};
use crate::question::MILLIONTHS;
use crate::record::ColumnKind;
use crate::statement::SourceIndex;

/// ClickHouse's SQL, as far as queries of a layout need it.
#[derive(Debug)]
pub(super) struct ClickhouseDialect;

impl Dialect for ClickhouseDialect {
    fn quote(&self, name: &str) -> String {
        format!("`{}`", name.replace('\\', "\\\\").replace('`', "\\`"))
    }

    /// Texts and bytes are String, which has no maximum length and any bytes.
    fn column_type(&self, kind: ColumnKind) -> String {
        match kind {
            ColumnKind::Int16 => "Int16",
            ColumnKind::Int32 => "Int32",
            ColumnKind::Int64 => "Int64",
            ColumnKind::Float64 => "Float64",
            ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => "String",
        }
        .to_owned()
    }

    fn numbered_type(&self) -> String {
        self.column_type(ColumnKind::Int64)
    }

    fn placeholder(&self, _: usize) -> String {
        "?".to_owned()
    }

    fn literal(&self, text: &str) -> String {
        let mut out = Vec::new();
        quoted(text.as_bytes(), &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    fn newest_of_each(&self, _index: SourceIndex) -> NewestOfEach {
        NewestOfEach::LimitBy
    }

    fn divided(&self, number: &str, by: i64) -> String {
        format!("intDiv({number}, {by})")
    }

    /// The count itself has no sign.
    fn count(&self) -> &'static str {
        "toInt64(COUNT(*))"
    }

    fn end_of(&self, column: &str, order: &[&str], is_last: bool) -> Option<String> {
        let function = if is_last { "argMax" } else { "argMin" };
        Some(match order {
            [time] => format!("{function}({column}, {time})"),
            _ => format!("{function}({column}, ({}))", order.join(", ")),
        })
    }

    /// `quantileExact` takes the value with a rank of the share rounded down.
    fn quantile_of(&self, column: &str, millionths: u32) -> Option<String> {
        let rank = format!("intDiv(COUNT(*) * {millionths} + {}, {MILLIONTHS})", MILLIONTHS - 1);
        Some(format!("arraySort(groupArray({column}))[{rank}]"))
    }

    /// Queries with locks are refused.
    fn row_lock(&self) -> &'static str {
        ""
    }
}

/// Appends a text in quotes, with backslashes before quotes, backslashes and zeros.
fn quoted(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for byte in value {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0 => out.extend_from_slice(b"\\0"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
}

/// Writer of values into the text of queries.
pub(super) struct ClickhouseLiterals;

impl Literals for ClickhouseLiterals {
    /// The bits of the number: versions read digits differently, some of them inexactly.
    fn float(value: f64, out: &mut Vec<u8>) {
        let is_short = value.is_finite()
            && value.abs() < 1e15
            && value.fract() == 0.0
            && !(value == 0.0 && value.is_sign_negative());
        // Writing into a vector cannot fail.
        if is_short {
            let _ = write!(out, "{value}.");
            return;
        }
        out.extend_from_slice(b"reinterpretAsFloat64(unhex('");
        hexadecimal(&value.to_le_bytes(), out);
        out.extend_from_slice(b"'))");
    }

    fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
        quoted(value, out);
        Ok(())
    }

    fn blob(value: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(b"unhex('");
        hexadecimal(value, out);
        out.extend_from_slice(b"')");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_say_exactly_the_value() {
        let of = |write: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            write(&mut out);
            String::from_utf8(out).unwrap()
        };
        let float = |value: f64| of(&|out| ClickhouseLiterals::float(value, out));
        assert_eq!([float(3.0), float(-17.0), float(0.0)], ["3.", "-17.", "0."]);
        assert_eq!(float(0.1), "reinterpretAsFloat64(unhex('9a9999999999b93f'))");
        assert_eq!(float(f64::NAN).len(), float(-0.0).len());
        assert_eq!(of(&|out| ClickhouseLiterals::text("it's\\ \0\né".as_bytes(), out).unwrap()), "'it\\'s\\\\ \\0\né'");
        assert_eq!(of(&|out| ClickhouseLiterals::blob(&[0, 255], out)), "unhex('00ff')");
        assert_eq!(ClickhouseDialect.quote("a`b\\"), "`a\\`b\\\\`");
    }
}
