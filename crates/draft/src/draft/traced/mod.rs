//! Makes a trace from logs: every statement with its time, its session and its values.
//!
//! Main type: [`Tracer`], which takes in the calls of logs; [`Tracer::finish`] makes the trace. Invariant: everything left out is counted.

mod does;
mod order;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::catalogue::MARK;
use super::seen::{Call, STATEMENT_BYTES_MOST, Takes};
use super::sql::{Grammar, Literal, Shape, shape_of};
use crate::statement::parameters_of;
use crate::trace::{Does, STATEMENTS_MOST, TracedStatement, Value};
use does::{Doing, doing, name_of};

pub use order::{Traced, TracedError};

/// The most statements that are taken in.
const CALLS_MOST: usize = 20_000_000;
/// The most bytes of their values.
const VALUES_BYTES_MOST: usize = 2 << 30;
/// The most sessions.
const SESSIONS_MOST: usize = 1_000_000;
/// The most databases that are distinguished.
const DATABASES_MOST: usize = 100;

/// Reasons for leaving a statement out.
mod why {
    pub const OTHER_KIND: &str = "settings, and changes of tables";
    pub const TOO_LONG: &str = "statements of more than 256 KiB";
    pub const NO_TIME: &str = "statements without a time";
    pub const NO_VALUES: &str = "statements whose values the log does not tell";
    pub const NOT_UNDERSTOOD: &str = "statements that are not understood";
    pub const TOO_MANY: &str = "statements of further shapes";
}

/// A statement that ran, as recorded in a log.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Told {
    /// The time in the log, in microseconds since 1970.
    log_us: i64,
    /// How long before that time the statement began, in microseconds.
    lead_us: u32,
    /// The duration of the statement in microseconds; 0 if unknown.
    took_us: u32,
    session: u32,
    statement: u16,
    /// The offset of its values.
    values_at: u64,
    values_bytes: u32,
}

/// The state of a session so far.
#[derive(Debug, Clone, Copy, Default)]
struct Session {
    is_inside: bool,
    /// Whether its statements begin a transaction by themselves, which stays open until it is ended.
    is_chained: bool,
}

/// Takes in the calls that logs record.
#[derive(Debug)]
pub struct Tracer {
    grammar: Grammar,
    numbers: HashMap<String, u32>,
    sessions: Vec<Session>,
    shapes: HashMap<String, u16>,
    statements: Vec<TracedStatement>,
    told: Vec<Told>,
    /// The values in the form of a trace's lines, one list behind the other.
    values: Vec<u8>,
    left_out: BTreeMap<&'static str, u64>,
    databases: BTreeSet<String>,
    /// Whether a statement had no session.
    is_without_sessions: bool,
    is_full: bool,
}

impl Takes for Tracer {
    fn grammar(&self) -> Grammar {
        self.grammar
    }

    fn pass_time(&mut self, _: Option<i64>) {}

    fn take(&mut self, call: &Call<'_>) {
        if call.sql.contains(MARK) || self.is_full {
            return;
        }
        if !call.database.is_empty() && self.databases.len() < DATABASES_MOST && !self.databases.contains(call.database)
        {
            self.databases.insert(call.database.to_owned());
        }
        if call.sql.len() > STATEMENT_BYTES_MOST {
            return self.leave_out(why::TOO_LONG);
        }
        let Some(log_us) = call.at_us else { return self.leave_out(why::NO_TIME) };
        self.is_without_sessions |= call.session.is_empty();
        let Some(session) = self.session(call.session) else { return self.is_full = true };
        // Durations beyond an hour are cut off.
        let took_us = call.seconds.map(|seconds| (seconds.clamp(0.0, 3_600.0) * 1e6) as u32);
        let told = Told {
            log_us,
            lead_us: took_us.unwrap_or_default(),
            took_us: took_us.unwrap_or_default(),
            session,
            statement: 0,
            values_at: 0,
            values_bytes: 0,
        };
        match doing(call.sql, self.grammar) {
            Doing::Chains(is_chained) => {
                self.leave_out(why::OTHER_KIND);
                self.sessions[session as usize].is_chained = is_chained;
            }
            Doing::Else => self.leave_out(why::OTHER_KIND),
            Doing::Traced(does) if does.is_control() => self.control(call.sql.trim(), does, told),
            Doing::Traced(does) => self.ask(call, does, told),
        }
    }
}

impl Tracer {
    /// Creates an empty tracer.
    pub fn new(grammar: Grammar) -> Self {
        Tracer {
            grammar,
            numbers: HashMap::new(),
            sessions: Vec::new(),
            shapes: HashMap::new(),
            statements: Vec::new(),
            told: Vec::new(),
            values: Vec::new(),
            left_out: BTreeMap::new(),
            databases: BTreeSet::new(),
            is_without_sessions: false,
            is_full: false,
        }
    }

    fn leave_out(&mut self, why: &'static str) {
        *self.left_out.entry(why).or_default() += 1;
    }

    /// Returns the number of a session; `None` if there are too many.
    fn session(&mut self, name: &str) -> Option<u32> {
        if let Some(number) = self.numbers.get(name) {
            return Some(*number);
        }
        if self.sessions.len() == SESSIONS_MOST {
            return None;
        }
        let number = self.sessions.len() as u32;
        self.sessions.push(Session::default());
        self.numbers.insert(name.to_owned(), number);
        Some(number)
    }

    /// Returns the number of a statement; `None` if there are too many.
    fn statement(&mut self, sql: &str, does: Does, parameters: usize) -> Option<u16> {
        if let Some(number) = self.shapes.get(sql) {
            return Some(*number);
        }
        if self.statements.len() == STATEMENTS_MOST {
            return None;
        }
        let number = self.statements.len() as u16;
        let name = name_of(sql, does, self.grammar);
        let parameters = parameters as u32;
        self.statements.push(TracedStatement { name, sql: sql.to_owned(), parameters, does });
        self.shapes.insert(sql.to_owned(), number);
        Some(number)
    }

    /// Takes in a statement that begins, divides or ends a transaction.
    fn control(&mut self, sql: &str, does: Does, told: Told) {
        let session = &mut self.sessions[told.session as usize];
        match does {
            Does::Begins => session.is_inside = true,
            Does::Ends => session.is_inside = false,
            _ => {}
        }
        // A question mark that is not a parameter is doubled.
        match self.statement(&sql.trim_end_matches(';').trim_end().replace('?', "??"), does, 0) {
            Some(statement) => self.push(Told { statement, ..told }, b"[]"),
            None => self.leave_out(why::TOO_MANY),
        }
    }

    /// Takes in a statement that reads or changes rows.
    fn ask(&mut self, call: &Call<'_>, does: Does, told: Told) {
        let Shape { text, literals } = shape_of(call.sql, self.grammar);
        let values: Option<Vec<Value>> =
            literals.iter().map(|literal| value_of(literal, call.parameters, self.grammar)).collect();
        let Some(values) = values else { return self.leave_out(why::NO_VALUES) };
        // Adjacent values are not valid SQL.
        if parameters_of(&text) != values.len() {
            return self.leave_out(why::NOT_UNDERSTOOD);
        }
        let Some(statement) = self.statement(&text, does, literals.len()) else { return self.leave_out(why::TOO_MANY) };
        let session = &mut self.sessions[told.session as usize];
        if session.is_chained && !session.is_inside {
            // The transaction began when this statement did, and its beginning took no time.
            self.control("BEGIN", Does::Begins, Told { took_us: 0, ..told });
        }
        // These values can always be written as JSON.
        let values = serde_json::to_vec(&values).unwrap_or_else(|_| b"[]".to_vec());
        self.push(Told { statement, ..told }, &values);
    }

    fn push(&mut self, told: Told, values: &[u8]) {
        if self.told.len() == CALLS_MOST || self.values.len() + values.len() > VALUES_BYTES_MOST {
            self.is_full = true;
            return;
        }
        let values_at = self.values.len() as u64;
        self.values.extend_from_slice(values);
        self.told.push(Told { values_at, values_bytes: values.len() as u32, ..told });
    }
}

/// Returns the value that a statement had at a place; `None` if the log does not contain it.
fn value_of(literal: &Literal, parameters: &[Option<String>], grammar: Grammar) -> Option<Value> {
    match literal {
        Literal::Number(text) => Some(number(text)),
        Literal::Text(text) => Some(text_or_bytes(text, grammar)),
        Literal::Parameter(Some(place)) => match parameters.get((*place as usize).checked_sub(1)?)? {
            Some(text) => Some(text_or_bytes(text, grammar)),
            None => Some(Value::Null(())),
        },
        Literal::Parameter(None) => None,
    }
}

/// Returns a number of a statement; one that does not fit 64 bits stays as it is written.
fn number(text: &str) -> Value {
    /// The number of digits that a 64-bit number always holds.
    const DIGITS: usize = 15;
    if let Ok(whole) = text.parse::<i64>() {
        return Value::Int(whole);
    }
    if let Some(hex) = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        let hex = if !hex.len().is_multiple_of(2) { format!("0{hex}") } else { hex.to_owned() };
        return Value::Bytes { hex };
    }
    let digits = text.bytes().filter(u8::is_ascii_digit).count();
    match text.parse::<f64>() {
        Ok(number) if digits <= DIGITS && number.is_finite() => Value::Float(number),
        _ => Value::Text(text.to_owned()),
    }
}

/// Returns a text, or the bytes that PostgreSQL writes within texts: `\x00ff`.
fn text_or_bytes(text: &str, grammar: Grammar) -> Value {
    let hex = text.strip_prefix("\\x").filter(|_| grammar == Grammar::POSTGRES);
    let is_hex =
        |hex: &&str| !hex.is_empty() && hex.len().is_multiple_of(2) && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    match hex.filter(is_hex) {
        Some(hex) => Value::Bytes { hex: hex.to_owned() },
        None => Value::Text(text.to_owned()),
    }
}

#[cfg(test)]
mod tests;
