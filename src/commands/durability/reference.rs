//! The reference: carries out the same operations on a different database that loses nothing, so that the content of each record after each operation is known.
//!
//! Main types: [`Reference`] and [`Content`]. Invariant: contents are compared as values: numbers and documents compare by their value, however
//! a database writes them.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use super::oracle::{Holds, Sent};
use crate::database::{self, DatabaseError, TargetSession};
use crate::operation::Operation;
use crate::record::{Cell, Cells};
use crate::runner::database_file::remove_database_file;
use crate::statement::Request;
use crate::trial::{DatabaseSettings, Settings};
use crate::workload::{Client, Work};

/// A database that loses nothing.
pub struct Reference {
    work: Work,
    session: Box<dyn TargetSession>,
}

impl Reference {
    /// Creates a reference with the empty tables of a case, in a file in `directory` that replaces the previous reference.
    ///
    /// # Errors
    /// Fails if SQLite refuses the tables.
    pub fn new(directory: &Path, settings: &Settings) -> anyhow::Result<Self> {
        let file = directory.join("reference.db");
        remove_database_file(&file);
        let config = [("journal_mode", "memory"), ("synchronous", "off")];
        let own = DatabaseSettings {
            name: "sqlite".to_owned(),
            path: Some(file.display().to_string()),
            config: config.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            ..DatabaseSettings::default()
        };
        let entry = database::find("sqlite").context("the reference")?;
        let work = Work::with_reads(settings).map_err(anyhow::Error::msg)?;
        let mut session = entry.open(&own, None)?.open()?;
        work.program().tables.iter().try_for_each(|table| session.create_table(table))?;
        session.prepare(work.program())?;
        if !work.program().first.steps.is_empty() {
            session.execute(&work.program().first, None)?;
        }
        Ok(Reference { work, session })
    }

    /// Returns a client's operations with the records' contents after each: one operation for each answer, and one more that may be on its way.
    ///
    /// # Errors
    /// Fails if the reference refuses an operation.
    pub fn sent(&mut self, client: Client, answers: &[Option<u64>]) -> anyhow::Result<Vec<Sent<Content>>> {
        let mut workload = self.work.workload(client).map_err(anyhow::Error::msg)?;
        let mut request = Request { client: client.number, ..Request::default() };
        let mut sent = Vec::with_capacity(answers.len() + 1);
        for acknowledged_ns in answers.iter().copied().chain([None]) {
            request.clear();
            let operation = self.work.next(&mut *workload, &mut request);
            self.session.execute(&request, None).with_context(|| format!("the reference: {operation:?}"))?;
            let mut effects = Vec::new();
            for record in touched(&operation) {
                effects.push((record, self.content(record)?));
            }
            sent.push(Sent { effects, acknowledged_ns });
        }
        Ok(sent)
    }

    fn content(&mut self, record: u64) -> anyhow::Result<Option<Content>> {
        match holds(&mut *self.session, &self.work, record).context("the reference")? {
            Holds::Content(content) => Ok(Some(content)),
            Holds::Nothing | Holds::Unreadable => Ok(None),
        }
    }
}

/// Returns the records that an operation of the workload touches.
fn touched(operation: &Operation) -> std::ops::Range<u64> {
    match *operation {
        Operation::Insert { first, records } => first..first + u64::from(records),
        Operation::Update { record, .. } | Operation::Delete { record } => record..record + 1,
        _ => 0..0,
    }
}

/// Reads the content of a record.
///
/// # Errors
/// Returns the database's error.
pub fn holds(session: &mut dyn TargetSession, work: &Work, record: u64) -> Result<Holds<Content>, DatabaseError> {
    let (mut request, mut cells) = (Request::default(), Cells::new());
    work.bind(&Operation::Read { record }, &mut request);
    let answer = session.execute(&request, Some(&mut cells))?;
    Ok(if answer.empty > 0 { Holds::Nothing } else { Holds::Content(content(&cells, answer.rows)) })
}

/// The content of a record: its values, row by row, in an order that does not depend on the database's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Content(Vec<Vec<Token>>);

/// A value or a part of a document.
#[derive(Debug, Clone)]
enum Token {
    Text(String),
    Number(f64),
}

/// Largest relative difference of equal numbers, as their last digits depend on how a database writes a number into a document.
const SAME_NUMBER: f64 = 1e-12;

impl PartialEq for Token {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Token::Text(a), Token::Text(b)) => a == b,
            (Token::Number(a), Token::Number(b)) => (a - b).abs() <= SAME_NUMBER * a.abs().max(b.abs()),
            _ => false,
        }
    }
}

fn content(cells: &Cells, rows: u64) -> Content {
    let width = cells.len().checked_div(usize::try_from(rows).unwrap_or(1)).unwrap_or(0).max(1);
    let places: Vec<usize> = (0..cells.len()).collect();
    let row = |places: &[usize]| {
        let mut tokens = Vec::new();
        places.iter().for_each(|place| append(cells, cells.get(*place), &mut tokens));
        tokens
    };
    let mut rows: Vec<Vec<Token>> = places.chunks(width).map(row).collect();
    // Rows of one record differ in a text, if at all.
    let key = |row: &Vec<Token>| {
        let texts =
            row.iter().filter_map(|token| if let Token::Text(text) = token { Some(text.clone()) } else { None });
        texts.collect::<Vec<String>>()
    };
    rows.sort_by_cached_key(key);
    Content(rows)
}

fn append(cells: &Cells, cell: Cell, tokens: &mut Vec<Token>) {
    match cell {
        Cell::Null => tokens.push(Token::Text("null".to_owned())),
        Cell::Int(number) => tokens.push(of_int(number)),
        Cell::Float(number) => tokens.push(Token::Number(number)),
        Cell::Text(span) | Cell::Blob(span) => append_bytes(cells.bytes_of(span), tokens),
    }
}

/// Returns the token of an integer. Integers that a float does not hold exactly are compared digit by digit.
fn of_int(number: i64) -> Token {
    const EXACT: u64 = 1 << 53;
    if number.unsigned_abs() < EXACT { Token::Number(number as f64) } else { Token::Text(number.to_string()) }
}

fn append_bytes(bytes: &[u8], tokens: &mut Vec<Token>) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        tokens.push(Token::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect()));
        return;
    };
    if let Ok(document @ (Value::Object(_) | Value::Array(_))) = serde_json::from_str::<Value>(text) {
        append_document(&document, tokens);
        return;
    }
    tokens.push(match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) => of_int(number),
        (_, Ok(number)) if number.is_finite() => Token::Number(number),
        _ => Token::Text(text.to_owned()),
    });
}

/// Appends a document with its members in sorted order.
fn append_document(document: &Value, tokens: &mut Vec<Token>) {
    match document {
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            for (name, member) in members {
                tokens.push(Token::Text(name.clone()));
                append_document(member, tokens);
            }
        }
        Value::Array(members) => members.iter().for_each(|member| append_document(member, tokens)),
        Value::Number(number) => tokens.push(match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => of_int(whole),
            (None, Some(float)) => Token::Number(float),
            (None, None) => Token::Text(number.to_string()),
        }),
        Value::String(text) => tokens.push(Token::Text(text.clone())),
        other => tokens.push(Token::Text(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(fill: impl Fn(&mut Cells)) -> Content {
        let mut cells = Cells::new();
        fill(&mut cells);
        content(&cells, 1)
    }

    #[test]
    fn what_databases_make_of_a_value_is_the_same_value() {
        let three = tokens(|cells| cells.int(3));
        assert_eq!(three, tokens(|cells| cells.float(3.0)));
        assert_eq!(three, tokens(|cells| cells.text("3")));
        assert_eq!(three, tokens(|cells| cells.blob(b"3.0")));
        assert_ne!(three, tokens(|cells| cells.text("3.000001")));
        assert_ne!(three, tokens(|cells| cells.text("three")));
        let large = |text: &'static str| tokens(|cells| cells.text(text));
        assert_eq!(large("1146096100506284900"), tokens(|cells| cells.int(1_146_096_100_506_284_900)));
        assert_ne!(large("1146096100506284900"), large("1146096100506284901"));
    }

    #[test]
    fn documents_are_the_same_whatever_the_order_of_their_members_and_the_last_digit_of_a_number() {
        let document = |text: &'static str| tokens(|cells| cells.text(text));
        assert_eq!(document("{\"b\": 1.0, \"a\": [true, null]}"), document("{\"a\":[true,null],\"b\":1}"));
        assert_eq!(document("{\"a\":7.955285176033755}"), document("{\"a\":7.9552851760337555}"));
        assert_ne!(document("{\"a\":7.95528517603}"), document("{\"a\":7.95528517604}"));
        assert_ne!(document("{\"a\":1}"), document("{\"b\":1}"));
    }

    #[test]
    fn rows_are_the_same_in_any_order_and_other_rows_with_another_width() {
        let rows = |texts: [&'static str; 4], rows| {
            let mut cells = Cells::new();
            texts.iter().for_each(|text| cells.text(text));
            content(&cells, rows)
        };
        assert_eq!(rows(["x", "1", "y", "2"], 2), rows(["y", "2", "x", "1"], 2));
        assert_ne!(rows(["x", "1", "y", "2"], 2), rows(["x", "1", "y", "2"], 1));
    }
}
