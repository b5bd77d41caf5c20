//! Statements with their values written into the text, as sent by programs that prepare nothing. Main type: [`TextStatement`].
//!
//! Invariant: the value that a database reads from the text is the one that a prepared statement would have been given.

use std::io::Write;

use super::dialect::{Dialect, parts_around_parameters, text_with};
use crate::record::{Cell, Cells};
use crate::statement::Statement;

/// The way in which a database writes values into statements.
pub trait Literals {
    /// Appends an integer.
    fn int(value: i64, out: &mut Vec<u8>) {
        // Writing into a vector cannot fail.
        let _ = write!(out, "{value}");
    }

    /// Appends a floating-point number, in digits that give the same number when they are read.
    fn float(value: f64, out: &mut Vec<u8>) {
        let _ = write!(out, "{value:e}");
    }

    /// Appends a text.
    ///
    /// # Errors
    /// The reason why it cannot be written.
    fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str>;

    /// Appends bytes.
    fn blob(value: &[u8], out: &mut Vec<u8>);
}

/// A statement's text, cut at its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextStatement {
    /// The texts before, between and behind the values of a row.
    pieces: Vec<Box<str>>,
    /// True if further rows can follow the first one.
    is_insert: bool,
}

impl TextStatement {
    /// Creates the text of a program's statement in a database's dialect.
    pub fn new(dialect: &dyn Dialect, statement: &Statement) -> Self {
        let is_insert = matches!(statement, Statement::Insert { columns, .. } if !columns.is_empty());
        let pieces = match statement {
            // A study's own text may contain something that looks like the database's placeholder.
            Statement::Sql { sql, .. } => {
                parts_around_parameters(sql).into_iter().map(String::into_boxed_str).collect()
            }
            _ => {
                let text = text_with(dialect, statement, 1, &|_| MARK.to_string());
                let places: Vec<usize> = text.match_indices(MARK).map(|(place, _)| place).collect();
                cut(&text, &places, MARK.len_utf8())
            }
        };
        TextStatement { pieces, is_insert }
    }

    /// Returns the number of values of a row.
    pub fn values(&self) -> usize {
        self.pieces.len() - 1
    }

    /// Appends the statement with the cells from `first` on. Takes at least one row of an insert, and as many as keep
    /// the text within `bytes_max`. Returns the number of rows taken. Missing values are null.
    ///
    /// # Errors
    /// The reason why a value cannot be written.
    pub fn append<L: Literals>(
        &self,
        cells: &Cells,
        first: usize,
        rows: u32,
        bytes_max: usize,
        out: &mut Vec<u8>,
    ) -> Result<u32, &'static str> {
        let start = out.len();
        out.extend_from_slice(self.pieces[0].as_bytes());
        self.append_row::<L>(cells, first, out)?;
        let mut taken = 1;
        while self.is_insert && taken < rows {
            let row = out.len();
            out.extend_from_slice(b", (");
            self.append_row::<L>(cells, first + taken as usize * self.values(), out)?;
            if out.len() - start > bytes_max {
                out.truncate(row);
                break;
            }
            taken += 1;
        }
        Ok(taken)
    }

    /// Appends the values of a row with the texts between and behind them.
    fn append_row<L: Literals>(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Result<(), &'static str> {
        for (place, piece) in (first..).zip(&self.pieces[1..]) {
            match cells.get(place) {
                Cell::Null => out.extend_from_slice(b"NULL"),
                Cell::Int(value) => L::int(value, out),
                Cell::Float(value) => L::float(value, out),
                Cell::Text(span) => L::text(cells.bytes_of(span), out)?,
                Cell::Blob(span) => L::blob(cells.bytes_of(span), out),
            }
            out.extend_from_slice(piece.as_bytes());
        }
        Ok(())
    }
}

/// Appends a text in quotes; quotes within it are doubled.
pub fn quoted(value: &[u8], out: &mut Vec<u8>) {
    out.push(b'\'');
    for part in value.split_inclusive(|byte| *byte == b'\'') {
        out.extend_from_slice(part);
        if part.ends_with(b"'") {
            out.push(b'\'');
        }
    }
    out.push(b'\'');
}

/// Appends bytes as hexadecimal digits.
pub fn hexadecimal(value: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    out.extend(value.iter().flat_map(|byte| [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]));
}

/// Returns the texts around the placeholders at `places`, each of `length` bytes.
fn cut(text: &str, places: &[usize], length: usize) -> Vec<Box<str>> {
    let ends = places.iter().copied().chain([text.len()]);
    let starts = std::iter::once(0).chain(places.iter().map(|place| place + length));
    starts.zip(ends).map(|(start, end)| text[start..end].into()).collect()
}

/// The mark for a value: a character that is in no name or text of a program.
const MARK: char = '\u{f8ff}';

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::postgres::PostgresDialect;
    use crate::record::ColumnKind;
    use crate::statement::{ColumnRef, Comparison, Condition, Select, TableColumn};

    struct Plain;

    impl Literals for Plain {
        fn text(value: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
            quoted(value, out);
            Ok(())
        }

        fn blob(value: &[u8], out: &mut Vec<u8>) {
            out.extend_from_slice(b"x'");
            hexadecimal(value, out);
            out.push(b'\'');
        }
    }

    fn written(statement: &Statement, rows: u32, bytes_max: usize, cells: &Cells) -> (u32, String) {
        let mut out = Vec::new();
        let text = TextStatement::new(&PostgresDialect, statement);
        let taken = text.append::<Plain>(cells, 0, rows, bytes_max, &mut out).unwrap();
        (taken, String::from_utf8(out).unwrap())
    }

    fn insert() -> Statement {
        let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: true };
        let columns = vec![column("a", ColumnKind::Int64), column("b?$1", ColumnKind::Text(9))];
        Statement::Insert { table: "t".to_owned(), columns }
    }

    #[test]
    fn values_stand_where_the_database_would_have_been_given_them() {
        let mut cells = Cells::new();
        cells.int(-7);
        cells.text("it's");
        cells.null();
        cells.blob(&[0, 0xaf]);
        let head = "INSERT INTO \"t\" (\"a\", \"b?$1\") VALUES (-7, 'it''s')";
        assert_eq!(written(&insert(), 2, 1000, &cells), (2, format!("{head}, (NULL, x'00af')")));
        assert_eq!(written(&insert(), 2, head.len(), &cells), (1, head.to_owned()), "the rest is for the next");
        let column = ColumnRef { table: "t".to_owned(), column: "a".to_owned() };
        let (kind, comparison) = (ColumnKind::Float64, Comparison::Less);
        let condition = Condition { column: column.clone(), kind, comparison };
        let select =
            Select { columns: vec![column], from: "t".to_owned(), conditions: vec![condition], ..Select::default() };
        cells.clear();
        cells.float(1.5e-300);
        let text = "SELECT \"t\".\"a\" FROM \"t\" WHERE \"t\".\"a\" < 1.5e-300";
        assert_eq!(written(&Statement::Select(select), 1, 0, &cells), (1, text.to_owned()));
    }

    #[test]
    fn a_studys_own_text_is_cut_at_its_question_marks_only() {
        let sql = "SELECT '?$1' WHERE a = ? -- ?".to_owned();
        let mut cells = Cells::new();
        cells.int(5);
        let right = "SELECT '?$1' WHERE a = 5 -- ?".to_owned();
        assert_eq!(
            written(&Statement::Sql { sql, allow_empty: true, form: Default::default() }, 1, 0, &cells),
            (1, right)
        );
    }
}
