//! The values of a statement's parameters: each from a fill of its own, from an earlier parameter, or from an answer of the database.
//!
//! Main type: [`Parameters`]. Invariant: a parameter depends only on earlier ones, so that one pass makes all of them.

use std::sync::Arc;

use super::Filler;
use crate::random::{Stream, derive};
use crate::record::{Cell, Cells, ColumnKind, Span};
use crate::trial::{Asked, Fill, TimeBlocks};
use crate::units::times::{parse_time, write_time};

/// Makes the values of all parameters of an operation.
#[derive(Debug, Clone)]
pub struct Parameters(Vec<Parameter>);

#[derive(Debug, Clone)]
enum Parameter {
    Own(Filler),
    /// The value of the parameter at this index.
    Same(usize),
    Plus(usize, Filler),
    /// A value of a row drawn by the parameter at index `drawn_by`, which may be this one.
    Row {
        rows: Arc<Vec<Vec<Option<String>>>>,
        column: usize,
        drawn_by: usize,
    },
    /// A value of an answer; null until the answer arrives.
    Answer,
    /// First and step.
    Sequence(i64, i64),
    /// Number of elements, and the parameter that makes each.
    Array(u32, Box<Parameter>),
    /// Number of letters, and the parameter that gives the number.
    TextOf(u32, Box<Parameter>),
    /// First time in microseconds since 1970, step in seconds, and the zone in which times are written.
    Times(i64, i64, String),
    /// First value, step, and the number of times that each value is repeated.
    Blocks(i64, i64, u64),
    TimeBlocks(TimeBlocks),
    /// First value, step, and the number of values after which it begins again.
    Cycle(i64, i64, u64),
}

impl Parameters {
    /// Creates the parameters with these fills, in order. Queries that have not been asked yet give no values.
    ///
    /// # Errors
    /// A sentence that names the parameter and the remedy.
    pub fn new<'f>(fills: impl Iterator<Item = &'f Fill>, asked: &Asked) -> Result<Self, String> {
        let fills: Vec<&Fill> = fills.collect();
        let of_place = |place: usize| {
            parameter(&fills, place, asked).map_err(|error| format!("params, number {}: {error}", place + 1))
        };
        (0..fills.len()).map(of_place).collect::<Result<_, _>>().map(Parameters)
    }

    /// Returns the answer that a parameter takes its value from: the number of the statement, and which value of its first row, both from 1. `None` for a value that
    /// is known before.
    pub fn answer_of(fills: &[&Fill], place: usize) -> Option<(u32, u32)> {
        match fills.get(place)? {
            Fill::AnswerOf(statement, value) => Some((*statement, *value)),
            // Only earlier parameters count, so that this recursion ends.
            Fill::Same(number) => {
                let earlier = (*number as usize).checked_sub(1).filter(|earlier| *earlier < place)?;
                Parameters::answer_of(fills, earlier)
            }
            _ => None,
        }
    }

    /// Returns the number of parameters.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends the values of an index. Values of different lanes are independent of each other.
    pub fn fill(&self, seed: u64, index: u64, lane: u64, out: &mut Cells) {
        let first = out.len();
        for (place, parameter) in self.0.iter().enumerate() {
            let (parameter, letters) = match parameter {
                Parameter::TextOf(letters, number) => (&**number, Some(*letters)),
                parameter => (parameter, None),
            };
            match parameter {
                Parameter::TextOf(..) | Parameter::Answer => out.null(),
                Parameter::Array(count, element) => array(*count, element, (seed, index, lane | place as u64), out),
                Parameter::Own(filler) => filler.fill(seed, index, lane | place as u64, out),
                Parameter::Same(earlier) => out.again(first + earlier),
                Parameter::Plus(earlier, filler) => {
                    filler.fill(seed, index, lane | place as u64, out);
                    add(first + earlier, out);
                }
                Parameter::Row { rows, column, drawn_by } => {
                    draw(rows, *column, (seed, index, lane | *drawn_by as u64), out);
                }
                Parameter::Sequence(start, step) => {
                    out.int(start.wrapping_add(step.wrapping_mul(index as i64)));
                }
                Parameter::Blocks(first, step, times) => {
                    out.int(first.wrapping_add(step.wrapping_mul((index / times) as i64)));
                }
                Parameter::Cycle(first, step, count) => {
                    out.int(first.wrapping_add(step.wrapping_mul((index % count) as i64)));
                }
                Parameter::TimeBlocks(TimeBlocks { first_us, step_us, times, zone }) => {
                    let us = first_us.saturating_add(step_us.saturating_mul((index / times) as i64));
                    out.text_of(|bytes| write_time(us, step_us % 1_000_000 != 0, zone, bytes));
                }
                Parameter::Times(start_us, step, zone) => {
                    let us = start_us.saturating_add(step.saturating_mul(index as i64).saturating_mul(1_000_000));
                    out.text_of(|bytes| write_time(us, false, zone, bytes));
                }
            }
            if let Some(letters) = letters {
                spell(letters, out);
            }
        }
    }
}

/// Replaces the last value, a whole number, by a text of `letters` letters; any other value becomes null.
fn spell(letters: u32, out: &mut Cells) {
    /// Texts of up to this many letters encode the number in all letters; longer ones are padded in front.
    const TOLD_MOST: u32 = 13;
    /// Multiplier that keeps neighbouring numbers from being neighbouring texts; it has no divisor in common with 26.
    const APART: u128 = 0x9e37_79b9_7f4a_7c15;
    let Some(Cell::Int(number)) = out.pop() else { return out.null() };
    let told = letters.min(TOLD_MOST);
    let count = 26_u128.pow(told);
    let mut left = (u128::from(number as u64) * APART) % count;
    out.text_of(|bytes| {
        bytes.resize(bytes.len() + (letters - told) as usize, b'x');
        for _ in 0..told {
            bytes.push(b'a' + (left % 26) as u8);
            left /= 26;
        }
    });
}

/// Appends a value of a row that is drawn by these random numbers.
fn draw(rows: &[Vec<Option<String>>], column: usize, (seed, index, lane): (u64, u64, u64), out: &mut Cells) {
    let row = Stream::new(seed, index, lane).below(rows.len() as u64);
    match rows.get(row as usize).and_then(|row| row.get(column)?.as_deref()) {
        Some(text) => write(text, out),
        None => out.null(),
    }
}

/// Appends several values as one text, such as `{1,"a"}`. Each has random numbers of its own.
fn array(count: u32, element: &Parameter, (seed, index, lane): (u64, u64, u64), out: &mut Cells) {
    let mut text = vec![b'{'];
    for number in 0..count {
        let own = derive(seed, u64::from(number) + 1);
        match element {
            Parameter::Own(filler) => filler.fill(own, index, lane, out),
            Parameter::Row { rows, column, .. } => draw(rows, *column, (own, index, lane), out),
            _ => out.null(),
        }
        if number > 0 {
            text.push(b',');
        }
        match out.pop() {
            Some(Cell::Int(value)) => text.extend(value.to_string().bytes()),
            Some(Cell::Float(value)) => text.extend(value.to_string().bytes()),
            Some(Cell::Text(span)) => {
                text.push(b'"');
                for byte in out.bytes_of(span) {
                    text.extend(matches!(byte, b'"' | b'\\').then_some(b'\\'));
                    text.push(*byte);
                }
                text.push(b'"');
            }
            _ => text.extend(b"NULL"),
        }
    }
    text.push(b'}');
    out.text_of(|bytes| bytes.append(&mut text));
}

fn parameter(fills: &[&Fill], place: usize, asked: &Asked) -> Result<Parameter, String> {
    let earlier = |number: u32| match (number as usize).checked_sub(1) {
        Some(earlier) if earlier < place => Ok(earlier),
        _ => Err(format!(
            "it is made of parameter {number}, which does not stand before it; name an earlier one, from 1"
        )),
    };
    match fills[place] {
        Fill::Same(number) => earlier(*number).map(Parameter::Same),
        Fill::AnswerOf(..) => Ok(Parameter::Answer),
        Fill::Plus(number, more) => {
            let filler = Filler::for_parameter(more)?;
            if filler.is_text() {
                return Err(
                    "plus adds a number, or a duration as in \"1h\" to a time; a text cannot be added".to_owned()
                );
            }
            let earlier = earlier(*number)?;
            check_sum(fills[earlier], asked).map(|()| Parameter::Plus(earlier, filler))
        }
        Fill::From(_) | Fill::FromCsv(_) => row(fills[place], 1, place, asked),
        Fill::RowOf(number, column) => {
            let earlier = earlier(*number)?;
            if !matches!(fills[earlier], Fill::From(_) | Fill::FromCsv(_)) {
                return Err(format!("row_of names parameter {number}, which is filled by neither from nor from_csv"));
            }
            row(fills[earlier], *column, earlier, asked)
        }
        Fill::TextOf(letters, number) => {
            let number = match &**number {
                Fill::Blocks(..) | Fill::Cycle(..) => parameter(&[&**number], 0, asked)?,
                number => match Filler::for_parameter(number)? {
                    filler if filler.kind() == ColumnKind::Int64 => Parameter::Own(filler),
                    _ => return Err("text_of takes a fill that gives whole numbers".to_owned()),
                },
            };
            Ok(Parameter::TextOf(*letters, Box::new(number)))
        }
        Fill::Blocks(first, step, times) => Ok(Parameter::Blocks(*first, *step, (*times).max(1))),
        Fill::TimeBlocks(blocks) => {
            Ok(Parameter::TimeBlocks(TimeBlocks { times: blocks.times.max(1), ..blocks.clone() }))
        }
        Fill::Cycle(first, step, count) => Ok(Parameter::Cycle(*first, *step, (*count).max(1))),
        Fill::SequenceFrom(sql, step) => sequence(sql, *step, asked),
        Fill::Array(count, element) => {
            let element = match &**element {
                Fill::From(_) => row(element, 1, place, asked)?,
                element => Parameter::Own(Filler::for_parameter(element)?),
            };
            Ok(Parameter::Array(*count, Box::new(element)))
        }
        fill => Filler::for_parameter(fill).map(Parameter::Own),
    }
}

/// Creates a parameter that counts up from the number or time that a query returns; from 1 for an empty table, whose maximum is null.
fn sequence(sql: &str, step: i64, asked: &Asked) -> Result<Parameter, String> {
    let first = asked.rows(sql).and_then(|rows| rows.first()?.first()?.as_deref());
    match first.map(|text| (text.parse(), parse_time(text))) {
        None => Ok(Parameter::Sequence(1, step)),
        Some((Ok(start), _)) => Ok(Parameter::Sequence(start, step)),
        Some((_, Some(time))) => Ok(Parameter::Times(time.us, step, time.zone.to_owned())),
        Some(_) => Err(format!("the query {sql} gives no whole number and no time; a sequence starts at one")),
    }
}

/// Creates a parameter from the rows of a query or a file; `column` is the number of the value in a row, from 1.
fn row(fill: &Fill, column: u32, drawn_by: usize, asked: &Asked) -> Result<Parameter, String> {
    let source = fill.source().unwrap_or_default();
    let given = asked.rows(&source);
    let rows = given.map_or_else(Arc::default, Arc::clone);
    let what = if matches!(fill, Fill::FromCsv(_)) { "" } else { "query " };
    let column = (column as usize).checked_sub(1).ok_or("row_of counts the values of a row from 1")?;
    match rows.first().map(Vec::len) {
        None if given.is_some() => {
            Err(format!("the {what}{source} gives no row to take a value from; widen it, or write another fill"))
        }
        Some(width) if column >= width => {
            Err(format!("the {what}{source} gives rows of {width} values, and number {} is asked for", column + 1))
        }
        _ => Ok(Parameter::Row { rows, column, drawn_by }),
    }
}

/// Checks that something can be added to the values of a fill.
fn check_sum(base: &Fill, asked: &Asked) -> Result<(), String> {
    let is_addable = |text: &str| text.parse::<f64>().is_ok() || parse_time(text).is_some();
    let refused = match base {
        Fill::RandomBytes(_) | Fill::RandomText(_) | Fill::Text(_) | Fill::OneOf(_) | Fill::TextOf(..) => true,
        Fill::AnswerOf(..) => {
            return Err("plus cannot add to what a statement answers; add in the SQL, as in \"? + 1\"".to_owned());
        }
        Fill::From(_) | Fill::FromCsv(_) => asked
            .rows(&base.source().unwrap_or_default())
            .is_some_and(|rows| rows.iter().filter_map(|row| row.first()?.as_deref()).any(|text| !is_addable(text))),
        _ => false,
    };
    if refused { Err("plus needs an earlier parameter that is a number or a time".to_owned()) } else { Ok(()) }
}

/// Appends a value that the database returned as text, as an integer if it is a canonical one.
fn write(text: &str, out: &mut Cells) {
    // A number with a zero in front, or a plus, is a text that looks like one.
    match text.parse::<i64>() {
        Ok(number)
            if number.unsigned_abs().checked_ilog10().unwrap_or(0) as usize + 1 + usize::from(number < 0)
                == text.len() =>
        {
            out.int(number);
        }
        _ => out.text(text),
    }
}

/// Replaces the last value by the sum of itself and the value at `place`; by null if either is null or cannot be added.
fn add(place: usize, out: &mut Cells) {
    let base = out.get(place);
    let Some(more) = out.pop() else { return };
    match (base, more) {
        (Cell::Int(base), Cell::Int(more)) => out.int(base.saturating_add(more)),
        (Cell::Int(base), Cell::Float(more)) => out.float(base as f64 + more),
        (Cell::Float(base), Cell::Int(more)) => out.float(base + more as f64),
        (Cell::Float(base), Cell::Float(more)) => out.float(base + more),
        (Cell::Text(span), Cell::Int(more)) => add_to_text(span, more as f64, out),
        (Cell::Text(span), Cell::Float(more)) => add_to_text(span, more, out),
        _ => out.null(),
    }
}

fn add_to_text(text: Span, more: f64, out: &mut Cells) {
    let text = String::from_utf8_lossy(out.bytes_of(text)).into_owned();
    match (text.parse::<f64>(), parse_time(&text)) {
        (Ok(number), _) => out.float(number + more),
        (_, Some(time)) => {
            let us = time.us.saturating_add((more * 1e6) as i64);
            out.text_of(|bytes| write_time(us, text.contains('.'), time.zone, bytes));
        }
        _ => out.null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::Times;
    use serde_json::{Value, json};

    fn asked(rows: &[&[Option<&str>]]) -> Asked {
        let rows = rows.iter().map(|row| row.iter().map(|text| text.map(str::to_owned)).collect()).collect();
        Asked([("q".to_owned(), Arc::new(rows))].into())
    }

    fn values(fills: &[Fill], asked: &Asked, index: u64) -> Vec<Value> {
        let parameters = Parameters::new(fills.iter(), asked).unwrap();
        let mut cells = Cells::new();
        cells.int(99);
        parameters.fill(3, index, 1 << 32, &mut cells);
        cells.as_slice()[1..].iter().map(|cell| cells.to_json(*cell)).collect()
    }

    fn refusal(fills: &[Fill], asked: &Asked) -> String {
        Parameters::new(fills.iter(), asked).err().unwrap()
    }

    #[test]
    fn a_value_serves_in_several_places() {
        let fills = [Fill::Uniform(1.0, 1e6), Fill::Same(1), Fill::Plus(1, Box::new(Fill::Number(99.0)))];
        for index in 0..100 {
            let made = values(&fills, &Asked::default(), index);
            let first = made[0].as_i64().unwrap();
            assert_eq!(made[1..], [json!(first), json!(first + 99)]);
        }
        let texts = values(&[Fill::RandomText(5), Fill::Same(1)], &Asked::default(), 1);
        assert_eq!(texts[0], texts[1]);
    }

    #[test]
    fn seconds_are_added_to_times() {
        let times = Times { bounds_us: vec![1_795_674_175_000_000; 2], zone: "+00".to_owned() };
        let fills = [Fill::Times(times), Fill::Plus(1, Box::new(Fill::Number(3600.0)))];
        let made = values(&fills, &Asked::default(), 1);
        assert_eq!(made, ["2026-11-26 06:22:55+00", "2026-11-26 07:22:55+00"].map(|text| json!(text)));
        let drawn = asked(&[&[Some("2026-11-26 23:59:59.5")]]);
        let made = values(&[Fill::From("q".to_owned()), Fill::Plus(1, Box::new(Fill::Number(1.0)))], &drawn, 1);
        assert_eq!(made[1], json!("2026-11-27 00:00:00.500000"));
    }

    #[test]
    fn rows_of_a_query_stay_together_and_are_all_drawn() {
        let rows = asked(&[&[Some("1"), Some("a")], &[Some("2"), Some("b")], &[Some("007"), None]]);
        let fills = [Fill::From("q".to_owned()), Fill::RowOf(1, 2)];
        let mut counts = [0; 3];
        for index in 0..3_000 {
            let made = values(&fills, &rows, index);
            let row = [[json!(1), json!("a")], [json!(2), json!("b")], [json!("007"), Value::Null]]
                .iter()
                .position(|row| made == row);
            counts[row.unwrap()] += 1;
        }
        let chi2: f64 = counts.iter().map(|count| (f64::from(*count) - 1000.0).powi(2) / 1000.0).sum();
        assert!(chi2 < 18.5, "chi-square {chi2} of {counts:?}; 18.5 with 2 degrees has a probability of 0.0001");
    }

    #[test]
    fn sequences_go_on_where_the_table_ends() {
        let fills = [Fill::SequenceFrom("q".to_owned(), 1)];
        assert_eq!(values(&fills, &asked(&[&[Some("41")]]), 2), [json!(43)]);
        assert_eq!(values(&fills, &asked(&[&[None]]), 0), [json!(1)]);
        assert!(refusal(&fills, &asked(&[&[Some("x")]])).contains("gives no whole number"));
        let times = asked(&[&[Some("2026-12-31 23:59:58+00")]]);
        assert_eq!(values(&fills, &times, 3), [json!("2027-01-01 00:00:01+00")]);
    }

    #[test]
    fn rows_of_two_columns_are_counted_without_a_gap_and_without_a_double() {
        let blocks = TimeBlocks { first_us: 0, step_us: 500_000, times: 2, zone: "+00".to_owned() };
        let fills = [Fill::Blocks(10, 5, 3), Fill::Cycle(1, 1, 3), Fill::TimeBlocks(blocks)];
        let made: Vec<Vec<Value>> = (0..7).map(|index| values(&fills, &Asked::default(), index)).collect();
        let column = |place: usize| made.iter().map(|row| row[place].clone()).collect::<Vec<_>>();
        assert_eq!(column(0), [10, 10, 10, 15, 15, 15, 20].map(|number| json!(number)));
        assert_eq!(column(1), [1, 2, 3, 1, 2, 3, 1].map(|number| json!(number)));
        assert_eq!(made[6][2], json!("1970-01-01 00:00:01.500000+00"));
        assert_eq!(made[1][2], json!("1970-01-01 00:00:00.000000+00"));
    }

    #[test]
    fn texts_of_numbers_are_as_many_as_the_numbers() {
        let texts = |fill: Fill, rows: u64| -> std::collections::BTreeSet<String> {
            (0..rows)
                .map(|index| {
                    values(std::slice::from_ref(&fill), &Asked::default(), index)[0].as_str().unwrap().to_owned()
                })
                .collect()
        };
        let all = texts(Fill::TextOf(4, Box::new(Fill::Sequence(1, 1))), 20_000);
        assert!(all.len() == 20_000 && all.iter().all(|text| text.len() == 4));
        assert_eq!(texts(Fill::TextOf(20, Box::new(Fill::Cycle(1, 1, 100))), 1_000).len(), 100);
        assert_eq!(texts(Fill::TextOf(1, Box::new(Fill::Uniform(1.0, 26.0))), 2_000).len(), 26);
        assert_eq!(texts(Fill::TextOf(3, Box::new(Fill::Blocks(5, 2, 10))), 100).len(), 10);
        assert!(
            refusal(&[Fill::TextOf(3, Box::new(Fill::Uniform(0.5, 1.0)))], &Asked::default()).contains("whole numbers")
        );
    }

    #[test]
    fn arrays_have_so_many_values_each_drawn_by_itself() {
        let none = Asked::default();
        let numbers = Fill::Array(3, Box::new(Fill::Uniform(1.0, 1e9)));
        let made = values(&[numbers], &none, 1)[0].as_str().unwrap().to_owned();
        let drawn: Vec<u32> = made.trim_matches(['{', '}']).split(',').map(|number| number.parse().unwrap()).collect();
        assert!(drawn.len() == 3 && drawn[0] != drawn[1] && drawn[1] != drawn[2], "{made}");
        let rows = asked(&[&[Some("a\"b\\\\c")]]);
        let made = values(&[Fill::Array(2, Box::new(Fill::From("q".to_owned())))], &rows, 1);
        assert_eq!(made, [json!(r#"{"a\"b\\\\c","a\"b\\\\c"}"#)]);
    }

    #[test]
    fn what_cannot_be_made_is_refused_with_the_parameter() {
        let none = Asked::default();
        assert!(
            refusal(&[Fill::Same(1)], &none).starts_with("params, number 1: it is made of parameter 1, which does not")
        );
        let second = refusal(&[Fill::Number(1.0), Fill::RowOf(1, 2)], &none);
        assert_eq!(second, "params, number 2: row_of names parameter 1, which is filled by neither from nor from_csv");
        assert!(
            refusal(&[Fill::RandomText(2), Fill::Plus(1, Box::new(Fill::Number(1.0)))], &none)
                .contains("a number or a time")
        );
        assert!(refusal(&[Fill::From("q".to_owned())], &asked(&[])).contains("gives no row"));
        let wide = [Fill::From("q".to_owned()), Fill::RowOf(1, 3)];
        assert!(refusal(&wide, &asked(&[&[Some("1"), Some("2")]])).contains("rows of 2 values, and number 3"));
        let sum = [Fill::From("q".to_owned()), Fill::Plus(1, Box::new(Fill::Number(1.0)))];
        assert!(refusal(&sum, &asked(&[&[Some("word")]])).contains("a number or a time"));
    }
}
