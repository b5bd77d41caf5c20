//! Statements that the server has prepared, and the messages that execute them. Main type: [`Prepared`].
//!
//! One row is a Bind and an Execute. Many rows of an insert go through a binary COPY within the same pipeline: the backend
//! enters copy-in at the Execute and leaves it at CopyDone, and after an error it discards everything up to the next Sync, including
//! COPY data, so no wait is needed. A binary COPY does not state the types of its values: it takes the eight bytes of an integer for
//! a floating-point number or a time. Therefore an empty query of the same columns precedes it: the server refuses the query where
//! their types have changed since it was prepared, and otherwise its lock keeps the types until the transaction ends.
//!
//! Invariant: a message is copied from parts made when preparing; only values and lengths are filled in.

use super::dialect::{PostgresDialect, PostgresLiterals};
use super::encode::{Encoding, Misfit};
use super::message::{self, COPY_DONE, EXECUTE, MESSAGE_BYTES_MAX};
use crate::database::DatabaseError;
use crate::database::literal::TextStatement;
use crate::record::{Cell, Cells};
use crate::statement::Statement;

/// Inserts of at least this many rows go through COPY. CPU time of client and server together for rows of 61 columns, on
/// version 15: 1 row takes 77 µs by Bind and Execute, 96 by COPY, 72 by an INSERT of all rows; 3 rows 65, 53 and 49; 10 rows 180, 93
/// and 120; 1000 rows 14127, 5806 and 17494. Rows of 3 columns break even at 2 to 3 rows. (Measured before the query of the columns was added.)
pub const COPY_ROWS_MIN: usize = 3;

/// A CopyData message is closed after the row that exceeds this many bytes.
const COPY_DATA_BYTES: usize = 128 << 10;

/// The signature, flags and length of the header extension at the start of a binary COPY.
const COPY_HEADER: [u8; 19] = *b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A prepared statement.
#[derive(Debug)]
pub struct Prepared {
    text: String,
    parameters: Vec<Encoding>,
    columns: Vec<Encoding>,
    can_miss: bool,
    /// The Bind message from its name to the number of values.
    bind_head: Vec<u8>,
    /// The end of the Bind message with the format codes of the result columns, and the Execute message.
    bind_tail: Vec<u8>,
    /// Bind and Execute of the query of the same columns, and of the COPY; `None` where COPY is not used.
    copy: Option<Vec<u8>>,
    /// The array form of a statement whose parameters are arrays, one for each column.
    arrays: Option<Arrays>,
    /// The statement for sending as text, where none is prepared: with all its rows in one text, as an unnamed statement.
    sent_as_text: Option<TextStatement>,
}

/// The parts of the messages around the values of arrays.
#[derive(Debug)]
struct Arrays {
    /// Bind and Execute of the query of the same columns.
    types: Vec<u8>,
    /// The types of the elements, column by column.
    elements: Vec<u32>,
}

impl Prepared {
    /// Creates a statement prepared as `name`, with the types that the server reports for its parameters and columns. `can_miss` is
    /// true if it may change another number of rows than it was given.
    pub fn new(name: &str, text: String, parameters: &[u32], columns: &[u32], can_miss: bool) -> Self {
        let forms = |types: &[u32]| types.iter().copied().map(Encoding::of).collect::<Vec<_>>();
        let (parameters, columns) = (forms(parameters), forms(columns));
        let mut bind_head = vec![b'B', 0, 0, 0, 0, 0];
        message::write_text(&mut bind_head, name);
        append_formats(&parameters, &mut bind_head);
        bind_head.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
        let mut bind_tail = Vec::new();
        append_formats(&columns, &mut bind_tail);
        bind_tail.extend_from_slice(&EXECUTE);
        let (copy, arrays, sent_as_text) = (None, None, None);
        Prepared { text, parameters, columns, can_miss, bind_head, bind_tail, copy, arrays, sent_as_text }
    }

    /// Creates a statement prepared as `name` that takes all rows at once, each column as an array of elements of these types, after the query of the
    /// same columns that is prepared as `types`. All types must have a binary form.
    pub fn of_arrays(name: &str, text: String, elements: &[u32], types: &str) -> Self {
        let mut messages = Vec::new();
        append_execution(types, &mut messages);
        let arrays = Arrays { types: messages, elements: elements.to_vec() };
        Prepared { arrays: Some(arrays), ..Prepared::new(name, text, elements, &[], true) }
    }

    /// Creates a statement that is sent as text each time.
    pub fn as_text(statement: &Statement, can_miss: bool) -> Self {
        let text = TextStatement::new(&PostgresDialect, statement);
        Prepared { sent_as_text: Some(text), ..Prepared::new("", String::new(), &[], &[], can_miss) }
    }

    /// Returns whether the statement is sent as text each time.
    pub fn is_text(&self) -> bool {
        self.sent_as_text.is_some()
    }

    /// Returns whether the values can go through a binary COPY into columns of the parameters' types.
    pub fn is_fit_for_copy(&self) -> bool {
        !self.parameters.is_empty() && self.parameters.iter().all(|parameter| parameter.is_binary())
    }

    /// Enables the COPY prepared as `copy`, after the query of its columns that is prepared as `types`, for requests with enough
    /// rows.
    pub fn set_copy(&mut self, types: &str, copy: &str) {
        let mut messages = Vec::new();
        [types, copy].iter().for_each(|name| append_execution(name, &mut messages));
        self.copy = Some(messages);
    }

    /// Returns the encodings of the answer's columns.
    pub fn columns(&self) -> &[Encoding] {
        &self.columns
    }

    /// Returns whether the statement may change another number of rows than it was given.
    pub fn can_miss(&self) -> bool {
        self.can_miss
    }

    /// Returns how many completions the server reports for an execution with this many rows of values.
    #[inline]
    pub fn completions(&self, rows: u32) -> u32 {
        match self.copy(rows as usize) {
            Some(_) => 2,
            None if self.arrays.is_some() => 2 * rows.min(1),
            None if self.is_text() => 1,
            None => rows,
        }
    }

    /// Returns whether this many rows go through COPY.
    pub fn is_copied(&self, rows: usize) -> bool {
        self.copy(rows).is_some()
    }

    #[inline]
    fn copy(&self, rows: usize) -> Option<&[u8]> {
        self.copy.as_deref().filter(|_| rows >= COPY_ROWS_MIN)
    }

    /// Appends the messages that execute the statement with each of the rows, whose values start at `first`.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] when values are missing, do not fit, or are too many for one message.
    #[inline]
    pub fn append(&self, rows: usize, first: usize, cells: &Cells, out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        if let Some(text) = &self.sent_as_text {
            return append_text(text, rows as u32, first, cells, out);
        }
        let width = self.parameters.len();
        let Some(values) = cells.as_slice().get(first..).and_then(|values| values.get(..rows * width)) else {
            return Err(self.shortage(rows, cells.len().saturating_sub(first)));
        };
        if let Some(copy) = self.copy(rows) {
            out.extend_from_slice(copy);
            return self.append_copy(values, cells, out);
        }
        if let Some(arrays) = &self.arrays {
            return if rows == 0 { Ok(()) } else { self.append_arrays(arrays, values, cells, out) };
        }
        for row in 0..rows {
            self.append_bind(&values[row * width..][..width], cells, out)?;
        }
        Ok(())
    }

    #[inline]
    fn append_bind(&self, values: &[Cell], cells: &Cells, out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        let start = out.len();
        out.extend_from_slice(&self.bind_head);
        self.append_values(values, cells, out)?;
        out.extend_from_slice(&self.bind_tail);
        self.close(start, out.len() - EXECUTE.len(), out)
    }

    fn append_arrays(
        &self,
        arrays: &Arrays,
        values: &[Cell],
        cells: &Cells,
        out: &mut Vec<u8>,
    ) -> Result<(), DatabaseError> {
        out.extend_from_slice(&arrays.types);
        let (start, width) = (out.len(), self.parameters.len());
        out.extend_from_slice(&self.bind_head);
        for (column, (encoding, element)) in self.parameters.iter().zip(&arrays.elements).enumerate() {
            let at = out.len();
            let of_column = || values.iter().skip(column).step_by(width);
            let has_null = of_column().any(|value| *value == Cell::Null);
            // The array's length in bytes, filled in later; then one dimension, whether it has nulls, the type, the number of elements and the first index.
            let head = [0, 1, u32::from(has_null), *element, (values.len() / width) as u32, 1];
            head.iter().for_each(|number| out.extend_from_slice(&number.to_be_bytes()));
            for value in of_column() {
                if let Err(misfit) = encoding.encode(*value, cells, out) {
                    return Err(self.refusal(column, *encoding, cells, *value, misfit));
                }
            }
            let length = out.len() - at - 4;
            if length > MESSAGE_BYTES_MAX {
                return Err(self.excess(length));
            }
            out[at..at + 4].copy_from_slice(&(length as u32).to_be_bytes());
        }
        out.extend_from_slice(&self.bind_tail);
        self.close(start, out.len() - EXECUTE.len(), out)
    }

    fn append_copy(&self, values: &[Cell], cells: &Cells, out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        let mut start = out.len();
        out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
        out.extend_from_slice(&COPY_HEADER);
        for row in values.chunks_exact(self.parameters.len()) {
            if out.len() - start > COPY_DATA_BYTES {
                self.close(start, out.len(), out)?;
                start = out.len();
                out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
            }
            out.extend_from_slice(&(row.len() as u16).to_be_bytes());
            self.append_values(row, cells, out)?;
        }
        out.extend_from_slice(&(-1_i16).to_be_bytes());
        self.close(start, out.len(), out)?;
        out.extend_from_slice(&COPY_DONE);
        Ok(())
    }

    #[inline]
    fn append_values(&self, values: &[Cell], cells: &Cells, out: &mut Vec<u8>) -> Result<(), DatabaseError> {
        for (number, (value, parameter)) in values.iter().zip(&self.parameters).enumerate() {
            if let Err(misfit) = parameter.encode(*value, cells, out) {
                return Err(self.refusal(number, *parameter, cells, *value, misfit));
            }
        }
        Ok(())
    }

    /// Fills in the length of the message from `start` to `end`.
    #[inline]
    fn close(&self, start: usize, end: usize, out: &mut [u8]) -> Result<(), DatabaseError> {
        if end - start > MESSAGE_BYTES_MAX {
            return Err(self.excess(end - start));
        }
        message::set_length(&mut out[..end], start + 1);
        Ok(())
    }

    #[cold]
    fn refusal(&self, number: usize, place: Encoding, cells: &Cells, value: Cell, misfit: Misfit) -> DatabaseError {
        let shown: String = match cells.to_json(value) {
            serde_json::Value::String(text) => format!("{:?}", text.chars().take(40).collect::<String>()),
            // JSON has no NaN or infinity: such a number arrives here as null.
            serde_json::Value::Null => "not a number".to_owned(),
            plain => plain.to_string(),
        };
        let (code, why) = match misfit {
            Misfit::Range => ("22003", "does not fit into"),
            Misfit::Kind => ("22018", "cannot be given to"),
            Misfit::Zero => ("22021", "holds a zero character, which PostgreSQL cannot store; it is for"),
        };
        let (place, text) = (place.description(), &self.text);
        DatabaseError::refused(code, format!("value {shown} {why} parameter {}, {place}, of: {text}", number + 1))
    }

    #[cold]
    fn shortage(&self, rows: usize, given: usize) -> DatabaseError {
        let needed = rows * self.parameters.len();
        let text = &self.text;
        DatabaseError::refused("07001", format!("{rows} rows need {needed} values but there are {given}, of: {text}"))
    }

    #[cold]
    fn excess(&self, length: usize) -> DatabaseError {
        let text = &self.text;
        DatabaseError::refused("54000", format!("a row of {length} bytes exceeds PostgreSQL's 1 GiB, of: {text}"))
    }
}

/// Appends Bind and Execute of a statement without parameters that is prepared as `name`.
fn append_execution(name: &str, out: &mut Vec<u8>) {
    message::write(out, b'B', |out| {
        out.push(0);
        message::write_text(out, name);
        out.extend_from_slice(&[0; 6]);
    });
    out.extend_from_slice(&EXECUTE);
}

/// Bind without values that asks for all columns as text.
const BIND_TEXT: [u8; 13] = [b'B', 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0];

/// Describe of the unnamed portal.
pub const DESCRIBE: [u8; 7] = [b'D', 0, 0, 0, 6, b'P', 0];

/// Appends the messages that parse a text and execute it once.
fn append_text(
    text: &TextStatement,
    rows: u32,
    first: usize,
    cells: &Cells,
    out: &mut Vec<u8>,
) -> Result<(), DatabaseError> {
    let start = out.len();
    out.extend_from_slice(&[b'P', 0, 0, 0, 0, 0]);
    let appended = text.append::<PostgresLiterals>(cells, first, rows, usize::MAX, out);
    appended.map_err(|why| DatabaseError::refused("22021", why))?;
    out.extend_from_slice(&[0; 3]);
    if out.len() - start > MESSAGE_BYTES_MAX {
        return Err(DatabaseError::refused(
            "54000",
            format!("a statement of {} bytes exceeds 1 GiB", out.len() - start),
        ));
    }
    message::set_length(out, start + 1);
    out.extend_from_slice(&BIND_TEXT);
    // The columns' description is only read where rows are kept; a Describe costs the server little.
    out.extend_from_slice(&DESCRIBE);
    out.extend_from_slice(&EXECUTE);
    Ok(())
}

/// Appends the format codes of values: one code for all where they agree, else one for each.
fn append_formats(values: &[Encoding], out: &mut Vec<u8>) {
    let code = |value: &Encoding| u16::from(value.is_binary());
    let codes: Vec<u16> = match values {
        [] => Vec::new(),
        [first, rest @ ..] if rest.iter().all(|value| code(value) == code(first)) => vec![code(first)],
        _ => values.iter().map(code).collect(),
    };
    out.extend_from_slice(&(codes.len() as u16).to_be_bytes());
    for code in codes {
        out.extend_from_slice(&code.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::super::types;
    use super::*;

    fn split(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
        let mut messages = Vec::new();
        while let Some(message) = message::read(bytes).unwrap() {
            messages.push((message.tag, message.body.to_vec()));
            bytes = &bytes[message.length()..];
        }
        assert!(bytes.is_empty(), "nothing but whole messages");
        messages
    }

    #[test]
    fn a_row_is_a_bind_in_binary_and_an_execute() {
        let prepared = Prepared::new("s0", "SELECT".into(), &[types::INT4], &[types::INT4, types::TEXT], false);
        let mut cells = Cells::new();
        cells.int(9);
        cells.int(258);
        let mut out = vec![7];
        prepared.append(1, 1, &cells, &mut out).unwrap();
        let bind = [&b"\0s0\0"[..], &[0, 1, 0, 1, 0, 1, 0, 0, 0, 4, 0, 0, 1, 2, 0, 1, 0, 1]].concat();
        assert_eq!(out[0], 7, "bytes of before stay");
        assert_eq!(split(&out[1..]), [(b'B', bind), (b'E', vec![0; 5])]);
    }

    #[test]
    fn types_without_a_binary_form_are_written_out() {
        let numeric = 1700;
        let prepared = Prepared::new("s0", String::new(), &[numeric, types::INT4], &[numeric], false);
        assert!(!prepared.is_fit_for_copy());
        let mut cells = Cells::new();
        cells.float(1.5);
        cells.int(1);
        let mut out = Vec::new();
        prepared.append(1, 0, &cells, &mut out).unwrap();
        let bind = b"\0s0\0\0\x02\0\0\0\x01\0\x02\0\0\0\x031.5\0\0\0\x04\0\0\0\x01\0\x01\0\0".to_vec();
        assert_eq!(split(&out)[0], (b'B', bind));
    }

    #[test]
    fn many_rows_are_copied_in_messages_of_limited_size() {
        let mut prepared = Prepared::new("s0", String::new(), &[types::INT4, types::TEXT], &[], false);
        prepared.set_copy("t0", "c0");
        let mut cells = Cells::new();
        for row in 0..1000 {
            cells.int(row);
            cells.text(&"x".repeat(500));
        }
        let mut out = Vec::new();
        prepared.append(1000, 0, &cells, &mut out).unwrap();
        let messages = split(&out);
        assert_eq!(prepared.completions(1000), 2);
        assert_eq!(messages[0], (b'B', b"\0t0\0\0\0\0\0\0\0".to_vec()));
        assert_eq!(messages[2], (b'B', b"\0c0\0\0\0\0\0\0\0".to_vec()));
        let tags: Vec<_> = messages.iter().map(|message| message.0).collect();
        assert_eq!(tags, *b"BEBEddddc");
        let data: Vec<u8> = messages[4..8].iter().flat_map(|message| message.1.clone()).collect();
        assert_eq!(data.len(), 19 + 1000 * (2 + 8 + 504) + 2);
        assert_eq!((&data[..11], &data[data.len() - 2..]), (&b"PGCOPY\n\xff\r\n\0"[..], &[255, 255][..]));
    }

    #[test]
    fn rows_that_may_be_passed_over_go_as_an_array_for_each_column() {
        let prepared = Prepared::of_arrays("s0", String::new(), &[types::INT4, types::TEXT], "t0");
        let mut cells = Cells::new();
        cells.int(1);
        cells.text("a");
        cells.int(2);
        cells.null();
        let mut out = Vec::new();
        prepared.append(2, 0, &cells, &mut out).unwrap();
        let messages = split(&out);
        assert_eq!(messages.iter().map(|message| message.0).collect::<Vec<_>>(), b"BEBE");
        assert_eq!((prepared.completions(2), prepared.completions(0)), (2, 0));
        let numbers =
            [&[0, 0, 0, 36][..], &[0, 0, 0, 1], &[0; 4], &[0, 0, 0, 23], &[0, 0, 0, 2], &[0, 0, 0, 1]].concat();
        let numbers = [&numbers[..], &[0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 2]].concat();
        let texts =
            [&[0, 0, 0, 29][..], &[0, 0, 0, 1], &[0, 0, 0, 1], &[0, 0, 0, 25], &[0, 0, 0, 2], &[0, 0, 0, 1]].concat();
        let texts = [&texts[..], &[0, 0, 0, 1], b"a", &[255; 4]].concat();
        assert_eq!(messages[2].1, [&b"\0s0\0"[..], &[0, 1, 0, 1, 0, 2], &numbers, &texts, &[0, 0]].concat());
        out.clear();
        prepared.append(0, 0, &cells, &mut out).unwrap();
        assert!(out.is_empty(), "an array of no rows has no dimension");
    }

    #[test]
    fn few_rows_are_executed_one_by_one() {
        let mut prepared = Prepared::new("s0", String::new(), &[types::INT4], &[], false);
        prepared.set_copy("t0", "c0");
        let mut cells = Cells::new();
        cells.int(1);
        cells.int(2);
        let mut out = Vec::new();
        prepared.append(2, 0, &cells, &mut out).unwrap();
        assert_eq!(prepared.completions(2), 2);
        assert_eq!(split(&out).iter().map(|message| message.0).collect::<Vec<_>>(), b"BEBE");
    }

    #[test]
    fn what_does_not_fit_is_refused_by_place_and_value() {
        let prepared = Prepared::new("s0", "INSERT".into(), &[types::INT4, types::INT2], &[], false);
        let mut cells = Cells::new();
        cells.int(1);
        cells.int(70_000);
        let refused = |rows| prepared.append(rows, 0, &cells, &mut Vec::new()).unwrap_err().to_string();
        let place = "value 70000 does not fit into parameter 2, smallint (-32768 to 32767), of: INSERT (22003)";
        assert_eq!(refused(1), place);
        assert_eq!(refused(2), "2 rows need 4 values but there are 2, of: INSERT (07001)");
    }
}
