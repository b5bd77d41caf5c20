//! InfluxQL: names, values, and selections of rows. Main type: [`Text`], a query with places for its values, as it stands in the body of a request.
//!
//! Invariant: everything in a query is encoded for a form, so that no value ends it.

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::answer::{From, Out, Reads};
use super::rules::refused;
use crate::database::DatabaseError;
use crate::database::http::request::{append_encoded, encoded};
use crate::database::points::shape::{At, Column, Shape};
use crate::record::{Cell, Cells, ColumnKind};
use crate::statement::{Comparison, Limit, Select};

/// The mark for a value: a character that is in no name of a program.
const MARK: char = '\u{f8ff}';

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// As its type is.
    Plain,
    /// As the text of a tag.
    Tag,
    /// As a largest number of rows, of which 0 would mean no limit.
    Limit,
}

/// A query, cut at its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Text {
    /// The texts before, between and behind the values, encoded.
    pieces: Vec<Vec<u8>>,
    values: Vec<Value>,
}

impl Text {
    /// Creates a query from its text, with [`mark`]s in the places of its values.
    pub(super) fn new(text: &str, values: Vec<Value>) -> Self {
        Text { pieces: text.split(MARK).map(|piece| encoded(piece).into_bytes()).collect(), values }
    }

    /// Appends the body of a request, with the values from `first` on.
    ///
    /// # Errors
    /// A sentence: a value cannot be written.
    pub(super) fn append(&self, cells: &Cells, first: usize, out: &mut Vec<u8>) -> Result<(), String> {
        out.extend_from_slice(b"q=");
        out.extend_from_slice(self.pieces.first().map_or(&[], Vec::as_slice));
        for ((place, value), piece) in (first..).zip(&self.values).zip(self.pieces.iter().skip(1)) {
            append_value(*value, cells, cells.get(place), out)?;
            out.extend_from_slice(piece);
        }
        Ok(())
    }
}

/// Returns the mark in the place of a value.
pub(super) fn mark() -> String {
    MARK.to_string()
}

fn append_value(value: Value, cells: &Cells, cell: Cell, out: &mut Vec<u8>) -> Result<(), String> {
    // Writing into a vector cannot fail.
    match (value, cell) {
        (Value::Limit, Cell::Int(value)) if value < 1 => return Err("a query for no rows is none".to_owned()),
        (Value::Plain | Value::Limit, Cell::Int(value)) => drop(write!(out, "{value}")),
        (Value::Tag, Cell::Int(value)) => drop(write!(out, "%27{value}%27")),
        (Value::Plain, Cell::Float(value)) if value.is_finite() => {
            // Numbers have no exponent there, and one without a point is a whole one.
            let start = out.len();
            let _ = write!(out, "{value}");
            if !out[start..].contains(&b'.') {
                out.extend_from_slice(b".0");
            }
        }
        (Value::Plain, Cell::Text(span)) => append_encoded(&quoted(cells.bytes_of(span)), out),
        (Value::Plain, Cell::Blob(span)) => {
            append_encoded(&quoted(STANDARD.encode(cells.bytes_of(span)).as_bytes()), out);
        }
        _ => return Err("a query compares with a value that it cannot have".to_owned()),
    }
    Ok(())
}

/// Returns a text in quotes.
fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    out.push(b'\'');
    for byte in text {
        match byte {
            b'\'' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            byte => out.push(*byte),
        }
    }
    out.push(b'\'');
    out
}

/// Returns a text in quotes, for queries that are asked once.
pub(super) fn literal(text: &str) -> String {
    String::from_utf8_lossy(&quoted(text.as_bytes())).into_owned()
}

/// Returns the name of a measurement, tag or field in quotes.
pub(super) fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The columns of a query, as they are gathered.
pub(super) struct Selected<'a> {
    shape: &'a Shape,
    /// The fields and tags that are read, in the order of the query.
    pub named: Vec<String>,
    pub outs: Vec<Out>,
    has_field: bool,
}

impl<'a> Selected<'a> {
    pub(super) fn new(shape: &'a Shape) -> Self {
        Selected { shape, named: Vec::new(), outs: Vec::new(), has_field: false }
    }

    /// Adds a column of the answer.
    pub(super) fn read(&mut self, column: &Column) {
        let from = match column.at {
            At::Time | At::TimeAndField => From::Column(0),
            At::Tag | At::Field => From::Column(self.place(&column.name) + 1),
        };
        self.has_field |= column.at == At::Field && !column.nullable;
        self.outs.push(Out { from, kind: column.kind, nullable: column.nullable });
    }

    fn place(&mut self, name: &str) -> usize {
        self.named.iter().position(|known| known == name).unwrap_or_else(|| {
            self.named.push(name.to_owned());
            self.named.len() - 1
        })
    }

    /// Returns the list of columns, and what is read from a row. A row is in an answer if it has one of the fields that are named, so one of them must be there always.
    pub(super) fn finish(mut self) -> (String, Reads) {
        if !self.has_field {
            let number = self.shape.number.clone();
            self.place(&number);
        }
        let list = self.named.iter().map(|named| name(named)).collect::<Vec<_>>().join(", ");
        (list, Reads { width: self.named.len() + 1, outs: self.outs })
    }
}

/// Returns a comparison of a column with a value, and how the value is written.
///
/// # Errors
/// [`DatabaseError::Refused`] where InfluxQL has no such comparison.
pub(super) fn condition(column: &Column, comparison: Comparison) -> Result<(String, Value), DatabaseError> {
    let sign = match comparison {
        Comparison::Equal => "=",
        Comparison::NotEqual => "!=",
        Comparison::Less => "<",
        Comparison::LessOrEqual => "<=",
        Comparison::Greater => ">",
        Comparison::GreaterOrEqual => ">=",
    };
    let is_equal = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
    let is_text = matches!(column.kind, ColumnKind::Text(_) | ColumnKind::Json | ColumnKind::Blob(_));
    let told = || refused(&format!("{} {sign} ? is no condition there", column.name));
    match column.at {
        At::Time | At::TimeAndField if comparison == Comparison::NotEqual => Err(told()),
        At::Time | At::TimeAndField => Ok((format!("time {sign} {}", mark()), Value::Plain)),
        At::Tag | At::Field if (is_text || column.at == At::Tag) && !is_equal => Err(told()),
        At::Tag => Ok((format!("{} {sign} {}", name(&column.name), mark()), Value::Tag)),
        At::Field => Ok((format!("{} {sign} {}", name(&column.name), mark()), Value::Plain)),
    }
}

/// Returns the query for a selection of rows.
///
/// # Errors
/// [`DatabaseError::Refused`] for a selection that InfluxQL cannot say.
pub(super) fn select(shape: &Shape, select: &Select) -> Result<(Text, Reads), DatabaseError> {
    if !select.joins.is_empty() {
        return Err(refused("it reads points of one measurement at a time"));
    }
    if select.for_update {
        return Err(refused("it has no transactions, and locks no rows"));
    }
    if select.window.is_some() {
        return Err(refused("it has no rows with the highest numbers"));
    }
    let mut selected = Selected::new(shape);
    for column in &select.columns {
        selected.read(shape.column(&column.column)?);
    }
    let (list, reads) = selected.finish();
    let (mut conditions, mut values) = (Vec::new(), Vec::new());
    for asked in &select.conditions {
        let (text, value) = condition(shape.column(&asked.column.column)?, asked.comparison)?;
        conditions.push(text);
        values.push(value);
    }
    let mut text = format!("SELECT {list} FROM {}", name(&shape.name));
    if !conditions.is_empty() {
        text += &format!(" WHERE {}", conditions.join(" AND "));
    }
    match &select.order[..] {
        [] => {}
        [(by, falls)] if matches!(shape.column(&by.column)?.at, At::Time | At::TimeAndField) => {
            text += if *falls { " ORDER BY time DESC" } else { " ORDER BY time" };
        }
        [(by, _), ..] => return Err(refused(&format!("it orders rows by their time alone, and not by {}", by.column))),
    }
    match select.limit {
        None => {}
        Some(Limit::Fixed(0)) => return Err(refused("a query for no rows is none")),
        Some(Limit::Fixed(most)) => text += &format!(" LIMIT {most}"),
        Some(Limit::Bound) => {
            text += &format!(" LIMIT {}", mark());
            values.push(Value::Limit);
        }
    }
    Ok((Text::new(&text, values), reads))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::rules::RULES;
    use super::*;
    use crate::database::points::shape::tests::readings;
    use crate::statement::{ColumnRef, Condition};

    /// Returns the body of a query, decoded.
    pub fn body(text: &Text, cells: &Cells) -> Result<String, String> {
        let mut out = Vec::new();
        text.append(cells, 0, &mut out)?;
        let (mut bytes, mut rest) = (Vec::new(), out.iter());
        while let Some(byte) = rest.next() {
            bytes.push(match byte {
                b'%' => {
                    let digits = [*rest.next().unwrap(), *rest.next().unwrap()];
                    u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap()
                }
                byte => *byte,
            });
        }
        Ok(String::from_utf8(bytes).unwrap().strip_prefix("q=").unwrap().to_owned())
    }

    fn at(name: &str) -> ColumnRef {
        ColumnRef { table: "t,1".to_owned(), column: name.to_owned() }
    }

    fn asked(columns: &[&str], conditions: &[(&str, Comparison)]) -> Select {
        let conditions = conditions.iter().map(|(name, comparison)| Condition {
            column: at(name),
            kind: ColumnKind::Int64,
            comparison: *comparison,
        });
        let columns = columns.iter().map(|name| at(name)).collect();
        Select { columns, from: "t,1".to_owned(), conditions: conditions.collect(), ..Select::default() }
    }

    #[test]
    fn a_selection_names_a_field_that_is_always_there() {
        let shape = Shape::of(&RULES, &readings(None), "t,1").unwrap();
        let conditions = [
            ("source", Comparison::Equal),
            ("at ns", Comparison::Less),
            ("v", Comparison::Greater),
            ("note", Comparison::Equal),
        ];
        let mut one = asked(&["note", "at ns", "source"], &conditions);
        (one.order, one.limit) = (vec![(at("at ns"), true)], Some(Limit::Bound));
        let (text, reads) = select(&shape, &one).unwrap();
        let mut cells = Cells::new();
        cells.int(-4);
        cells.int(9);
        cells.float(1e21);
        cells.text("it's\n\\&+");
        cells.int(5);
        let right = "SELECT \"note\", \"source\", \"id\" FROM \"t,1\" WHERE \"source\" = '-4' AND time < 9 AND \"v\" > \
                     1000000000000000000000.0 AND \"note\" = 'it\\'s\\n\\\\&+' ORDER BY time DESC LIMIT 5";
        assert_eq!(body(&text, &cells).unwrap(), right);
        let places: Vec<From> = reads.outs.iter().map(|out| out.from).collect();
        assert_eq!((reads.width, places), (4, vec![From::Column(1), From::Column(0), From::Column(2)]));
        let (text, _) = select(&shape, &asked(&["v"], &[])).unwrap();
        assert_eq!(body(&text, &cells).unwrap(), "SELECT \"v\" FROM \"t,1\"");
    }

    #[test]
    fn what_it_cannot_say_is_refused() {
        let shape = Shape::of(&RULES, &readings(None), "t,1").unwrap();
        let refusal = |asked: &Select| select(&shape, asked).unwrap_err().to_string();
        let by_id = Select { order: vec![(at("id"), false)], ..asked(&["v"], &[]) };
        assert!(refusal(&by_id).contains("by their time alone, and not by id"));
        for (column, comparison) in
            [("source", Comparison::Less), ("note", Comparison::Greater), ("at ns", Comparison::NotEqual)]
        {
            assert!(refusal(&asked(&["v"], &[(column, comparison)])).contains("is no condition"), "{column}");
        }
        let (text, _) = select(&shape, &Select { limit: Some(Limit::Bound), ..asked(&["v"], &[]) }).unwrap();
        let mut cells = Cells::new();
        cells.int(0);
        assert!(body(&text, &cells).is_err());
    }
}
