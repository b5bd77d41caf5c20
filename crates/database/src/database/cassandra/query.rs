//! Statements as text and their preparation: what a session does around its load. Main functions: [`query`], [`change`] and [`prepare`].
//!
//! Invariant: an answer is taken in only as far as it is bounded; a server that says it prepared another statement breaks the connection.

use super::frame::{Body, Said, ask, broken, opcode};
use super::program::{Action, Plan};
use super::value::type_number;
use super::{Consistency, frame};
use crate::database::DatabaseError;
use crate::database::session::{Channel, size_in_memory};
use crate::record::ColumnKind;

/// The kinds of results.
const VOID: i32 = 1;
const ROWS: i32 = 2;
const SET_KEYSPACE: i32 = 3;
const PREPARED: i32 = 4;
const SCHEMA_CHANGE: i32 = 5;

/// The flags of the description of an answer's columns.
const ONE_TABLE: i32 = 1;
const MORE_PAGES: i32 = 2;
const NO_DESCRIPTION: i32 = 4;

/// The greatest number of columns that an answer may have.
const COLUMNS_MAX: u32 = 10_000;
/// The types within types that are followed.
const DEPTH_MAX: u32 = 8;

/// Rows in text form.
pub(super) type Rows = Vec<Vec<Option<String>>>;

/// The result of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum Outcome<'a> {
    /// Nothing, or a change of tables.
    Done,
    /// Rows.
    Rows(RowsOf<'a>),
}

/// Rows that were received.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsOf<'a> {
    /// The number of columns and rows.
    pub columns: u32,
    pub rows: u32,
    /// The values, row by row.
    pub values: Body<'a>,
}

/// A description of columns as far as it is needed.
#[derive(Debug, Default)]
struct Columns {
    count: u32,
    /// The type of each column; empty where they were not described.
    types: Vec<u16>,
}

/// Takes a result apart. The columns of rows are described only in `types`, where the server describes them.
///
/// # Errors
/// [`DatabaseError::Lost`] when it is none, or has further pages, which nobody asked for.
pub(super) fn read_result<'a>(body: &'a [u8], types: Option<&mut Vec<u16>>) -> Result<Outcome<'a>, DatabaseError> {
    let mut body = Body(body);
    match body.int()? {
        VOID => body.end().map(|()| Outcome::Done),
        // The names of what was set or changed are of no use.
        SET_KEYSPACE | SCHEMA_CHANGE => Ok(Outcome::Done),
        ROWS => {
            let columns = read_columns(&mut body, false)?;
            if let Some(types) = types {
                *types = columns.types;
            }
            let rows = body.count()?;
            Ok(Outcome::Rows(RowsOf { columns: columns.count, rows, values: body }))
        }
        _ => Err(broken("answers with another result than was asked for")),
    }
}

fn read_columns(body: &mut Body<'_>, has_keys: bool) -> Result<Columns, DatabaseError> {
    let flags = body.int()?;
    let count = body.count()?;
    if count > COLUMNS_MAX {
        return Err(broken("answers with more columns than a table may have"));
    }
    if has_keys {
        for _ in 0..body.count()? {
            body.short()?;
        }
    }
    if flags & MORE_PAGES != 0 {
        return Err(broken("answers in pages, which were not asked for"));
    }
    let mut columns = Columns { count, types: Vec::new() };
    if flags & NO_DESCRIPTION != 0 {
        return Ok(columns);
    }
    let is_of_one = flags & ONE_TABLE != 0;
    if is_of_one {
        body.string()?;
        body.string()?;
    }
    for _ in 0..count {
        if !is_of_one {
            body.string()?;
            body.string()?;
        }
        body.string()?;
        columns.types.push(read_type(body, DEPTH_MAX)?);
    }
    Ok(columns)
}

/// Takes a type and returns its number; the types that it consists of are passed over.
fn read_type(body: &mut Body<'_>, depth: u32) -> Result<u16, DatabaseError> {
    let depth = depth.checked_sub(1).ok_or_else(|| broken("answers with types within types without end"))?;
    let number = body.short()?;
    match number {
        // A class of the server's own.
        0x0000 => drop(body.string()?),
        // Lists and sets; maps; types of a user; tuples.
        0x0020 | 0x0022 => drop(read_type(body, depth)?),
        0x0021 => {
            read_type(body, depth)?;
            read_type(body, depth)?;
        }
        0x0030 => {
            body.string()?;
            body.string()?;
            for _ in 0..body.short()? {
                body.string()?;
                read_type(body, depth)?;
            }
        }
        0x0031 => {
            for _ in 0..body.short()? {
                read_type(body, depth)?;
            }
        }
        _ => {}
    }
    Ok(number)
}

/// Executes a text and returns its rows; for small answers.
///
/// # Errors
/// [`DatabaseError::Refused`] with the server's error; [`DatabaseError::Lost`] when the connection breaks.
pub(super) fn query(channel: &mut Channel, cql: &str, consistency: Consistency) -> Result<Rows, DatabaseError> {
    let kept = send(channel, cql, consistency)?;
    let mut types = Vec::new();
    let Outcome::Rows(found) = read_result(&kept, Some(&mut types))? else { return Ok(Vec::new()) };
    if types.len() != found.columns as usize || types.is_empty() {
        return Err(broken("does not say which columns its answer has"));
    }
    let (mut rows, mut values) = (Rows::new(), found.values);
    for _ in 0..found.rows {
        let row = types.iter().map(|number| Ok(values.value()?.map(|bytes| text_of(*number, bytes))));
        let row = row.collect::<Result<Vec<_>, DatabaseError>>()?;
        channel.keep(size_in_memory(&row))?;
        rows.push(row);
    }
    values.end().map(|()| rows)
}

/// Executes a text that changes something. An error says whether what was to be made exists.
///
/// # Errors
/// [`DatabaseError::Refused`] with the server's error; [`DatabaseError::Lost`] when the connection breaks.
pub(super) fn change(channel: &mut Channel, cql: &str, consistency: Consistency) -> Result<(), DatabaseError> {
    let kept = send(channel, cql, consistency)?;
    match read_result(&kept, None)? {
        Outcome::Done => Ok(()),
        Outcome::Rows(_) => Err(broken("answers with rows where nothing was read")),
    }
}

fn send(channel: &mut Channel, cql: &str, consistency: Consistency) -> Result<Vec<u8>, DatabaseError> {
    let mut body = Vec::with_capacity(cql.len() + 7);
    frame::long_bytes(cql.as_bytes(), &mut body);
    body.extend_from_slice(&consistency.number().to_be_bytes());
    body.push(0);
    let kept = ask(channel, opcode::QUERY, &body)?;
    match kept.opcode {
        opcode::RESULT => Ok(kept.body),
        opcode::ERROR => Err(Said::of(&kept.body)?.outcome(false)),
        _ => Err(broken("answers a statement with something else than a result")),
    }
}

/// Returns a value as text. Types that no question asks for are shown as their bytes.
fn text_of(number: u16, bytes: &[u8]) -> String {
    let whole = match (number, bytes.len()) {
        (0x0002 | 0x0005 | 0x0009 | 0x0013 | 0x0014, length @ 1..=8) => {
            let sign = if bytes[0] & 0x80 != 0 { 0xff } else { 0 };
            let mut wide = [sign; 8];
            wide[8 - length..].copy_from_slice(bytes);
            Some(i64::from_be_bytes(wide))
        }
        _ => None,
    };
    match (number, whole) {
        (_, Some(whole)) => whole.to_string(),
        (0x0001 | 0x000a | 0x000d, _) => String::from_utf8_lossy(bytes).into_owned(),
        (0x0004, _) => (bytes == [1]).to_string(),
        _ => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Prepares a statement and notes its name.
///
/// # Errors
/// [`DatabaseError::Refused`] with the server's error and the text; [`DatabaseError::Lost`] when the connection breaks, or when the statement was understood in
/// another way than it is meant.
pub(super) fn prepare(channel: &mut Channel, plan: &mut Plan) -> Result<(), DatabaseError> {
    let mut body = Vec::with_capacity(plan.cql.len() + 4);
    frame::long_bytes(plan.cql.as_bytes(), &mut body);
    let kept = ask(channel, opcode::PREPARE, &body)?;
    match kept.opcode {
        opcode::RESULT => {}
        opcode::ERROR => {
            let Said { code, message } = Said::of(&kept.body)?;
            return Err(DatabaseError::refused(format!("{code:#06x}"), format!("{message}, in: {}", plan.cql)));
        }
        _ => return Err(broken("answers a preparation with something else than a result")),
    }
    let mut body = Body(&kept.body);
    if body.int()? != PREPARED {
        return Err(broken("prepares a statement and does not name it"));
    }
    plan.id = body.short_bytes()?.to_vec();
    let values = read_columns(&mut body, true)?;
    let read = read_columns(&mut body, false)?;
    body.end()?;
    let numbers = |kinds: &[ColumnKind]| kinds.iter().map(|kind| type_number(*kind)).collect::<Vec<_>>();
    let stamp = type_number(ColumnKind::Int64);
    let mut right = numbers(&plan.kinds);
    let given = match &plan.action {
        Action::Insert => {
            right.push(stamp);
            &[][..]
        }
        Action::Update | Action::Delete => {
            right.insert(0, stamp);
            &[][..]
        }
        Action::Select(kinds) => kinds,
    };
    let is_right = values.types == right && read.count as usize == given.len() && read.types == numbers(given);
    if plan.id.is_empty() || !is_right {
        let why = format!("a table has other columns than the study says: {}", plan.cql);
        return Err(DatabaseError::refused("columns", why));
    }
    Ok(())
}
