//! Rows as line protocol. Main type: [`LinePlan`], the insert of one statement.
//!
//! `measurement,tag=value field=value,field=value time`, a line for each point. Whole numbers end with `i`, floating-point numbers have the fewest digits that mean the number, texts stand
//! in quotes, bytes are base64 in a text, and nulls are left out.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::shape::{At, Column, Rules, Shape};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells};
use crate::statement::{Again, TableColumn};

/// An insert.
#[derive(Debug, Clone)]
pub struct LinePlan {
    rules: &'static Rules,
    /// The measurement, escaped, with the tag that every point has.
    measurement: Vec<u8>,
    /// The columns in the order of the values.
    columns: Vec<Column>,
    /// The places of the tags, each with its name, escaped, between a comma and an equals sign.
    tags: Vec<(usize, Vec<u8>)>,
    /// The tag of the round, in the same form.
    again: Option<(Vec<u8>, Again)>,
    /// The places of the fields, each with its name, escaped, in front of an equals sign; the number of the row first.
    fields: Vec<(usize, Vec<u8>)>,
    number: usize,
    time: usize,
}

impl LinePlan {
    /// Returns the insert of rows with these columns.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where a column that every point has is missing.
    pub fn of(shape: &Shape, given: &[TableColumn]) -> Result<Self, DatabaseError> {
        let columns = given.iter().map(|column| shape.column(&column.name).cloned());
        let columns: Vec<Column> = columns.collect::<Result<_, _>>()?;
        let place = |is_it: &dyn Fn(&Column) -> bool| {
            let missing = || shape.rules.refused("a row without number, source or time is not told apart from others");
            columns.iter().position(is_it).ok_or_else(missing)
        };
        let number = place(&|column| column.name == shape.number)?;
        let time = place(&|column| matches!(column.at, At::Time | At::TimeAndField))?;
        if shape.columns.iter().any(|column| column.at == At::Tag) {
            place(&|column| column.at == At::Tag)?;
        }
        let named = |is_it: &dyn Fn(&Column) -> bool, before: &str| {
            let found = columns.iter().enumerate().filter(|(_, column)| is_it(column));
            found.map(|(place, column)| (place, format!("{before}{}=", escaped(&column.name)).into_bytes())).collect()
        };
        let tags = named(&|column| column.at == At::Tag, ",");
        let mut fields: Vec<(usize, Vec<u8>)> = named(&|column| matches!(column.at, At::Field | At::TimeAndField), "");
        fields.sort_by_key(|(place, _)| *place != number);
        let again = shape.again.as_ref().map(|(name, again)| (format!(",{}=", escaped(name)).into_bytes(), *again));
        let mut measurement = escaped(&shape.name);
        if let Some(label) = shape.rules.label {
            measurement = format!("{measurement},{}={measurement}", escaped(label));
        }
        let measurement = measurement.into_bytes();
        Ok(LinePlan { rules: shape.rules, measurement, columns, tags, again, fields, number, time })
    }

    /// Returns the number of values of a row.
    pub fn values(&self) -> usize {
        self.columns.len()
    }

    /// Appends the line of a row whose values begin at `first`.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Result<(), String> {
        for (place, column) in self.columns.iter().enumerate() {
            if let Some(why) = column.refusal(self.rules, cells.get(first + place)) {
                return Err(format!("the column {} is given {why}", column.name));
            }
        }
        let whole = |place: usize| match cells.get(first + place) {
            Cell::Int(value) => value,
            _ => 0,
        };
        out.extend_from_slice(&self.measurement);
        for (place, name) in &self.tags {
            out.extend_from_slice(name);
            digits(whole(*place), out);
        }
        if let Some((name, again)) = &self.again {
            out.extend_from_slice(name);
            digits((whole(self.number) as u64 / again.round.max(1) % again.rounds.max(1)) as i64, out);
        }
        let mut between = b' ';
        for (place, name) in &self.fields {
            let cell = cells.get(first + *place);
            if cell == Cell::Null {
                continue;
            }
            out.push(between);
            out.extend_from_slice(name);
            append_value(cells, cell, out);
            between = b',';
        }
        out.push(b' ');
        // A value without a time has been refused.
        digits(self.columns[self.time].time_of(self.rules, whole(self.time)).unwrap_or_default(), out);
        out.push(b'\n');
        Ok(())
    }
}

fn digits(value: i64, out: &mut Vec<u8>) {
    // Writing into a vector cannot fail.
    let _ = write!(out, "{value}");
}

/// Appends the value of a field.
fn append_value(cells: &Cells, cell: Cell, out: &mut Vec<u8>) {
    match cell {
        Cell::Null => {}
        Cell::Int(value) => {
            digits(value, out);
            out.push(b'i');
        }
        Cell::Float(value) => {
            let _ = write!(out, "{value:?}");
        }
        Cell::Text(span) => {
            out.push(b'"');
            append_escaped(cells.bytes_of(span), out);
            out.push(b'"');
        }
        Cell::Blob(span) => {
            let bytes = cells.bytes_of(span);
            out.push(b'"');
            let start = out.len();
            out.resize(start + bytes.len().div_ceil(3) * 4, 0);
            // There is room for all of it.
            let written = STANDARD.encode_slice(bytes, &mut out[start..]).unwrap_or(0);
            out.truncate(start + written);
            out.push(b'"');
        }
    }
}

/// Appends a text with backslashes in front of quotes and backslashes.
fn append_escaped(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(place) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) {
        out.extend_from_slice(&rest[..place]);
        out.extend_from_slice(&[b'\\', rest[place]]);
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
}

/// Returns the name of a measurement, tag or field as line protocol has it.
pub fn escaped(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for letter in name.chars() {
        if matches!(letter, ',' | '=' | ' ') {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::shape::tests::{RULES, readings};
    use super::*;

    fn line(again: Option<Again>, fill: impl FnOnce(&mut Cells)) -> Result<String, String> {
        let program = readings(again);
        let plan = LinePlan::of(&Shape::of(&RULES, &program, "t,1").unwrap(), &program.tables[0].columns).unwrap();
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        fill(&mut cells);
        plan.append(&cells, 0, &mut out).map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_row_is_a_line() {
        let row = |cells: &mut Cells| {
            cells.int(31);
            cells.int(4);
            cells.int(1_700);
            cells.float(-0.0);
            cells.text("a\"b\\c\nd,= ");
        };
        let right = "t\\,1,source=4 id=31i,v=-0.0,note=\"a\\\"b\\\\c\nd,= \" 1700\n";
        assert_eq!(line(None, row).unwrap(), right);
        let with_round = right.replace("source=4", "source=4,round=1");
        assert_eq!(line(Some(Again { round: 3, rounds: 9 }), row).unwrap(), with_round);
        let short = line(None, |cells| {
            cells.int(1);
            cells.int(2);
            cells.int(3);
            cells.float(5e-324);
            cells.null();
        });
        assert_eq!(short.unwrap(), "t\\,1,source=2 id=1i,v=5e-324 3\n");
    }

    #[test]
    fn a_row_that_is_none_is_refused() {
        let refused = line(None, |cells| {
            cells.int(1);
            cells.null();
        });
        assert!(refused.unwrap_err().contains("the column source is given a null"));
    }

    #[test]
    fn bytes_are_base64() {
        let (mut cells, mut out) = (Cells::new(), Vec::new());
        cells.blob(&[0, 255, 1, 2]);
        append_value(&cells, cells.get(0), &mut out);
        assert_eq!(out, b"\"AP8BAg==\"");
    }
}
