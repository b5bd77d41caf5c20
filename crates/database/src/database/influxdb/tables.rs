//! Tables: measurements that are made, counted, measured and removed.
//!
//! A measurement is there when it has a point. One that was made as a table has a point that says so, and that names the field that each row has; no query of rows finds it.

use super::exchange::{Lines, ask, put};
use super::influxql::name;
use super::rules::{MADE_NS, RULES, refused};
use crate::database::DatabaseError;
use crate::database::points::lines::escaped;
use crate::database::points::shape::{MADE, is_plain, number_of};
use crate::database::session::Channel;
use crate::statement::Table;

/// Makes a table. A measurement that is there already is refused, and stays.
pub(super) fn create(channel: &mut Channel, lines: &Lines, table: &Table) -> Result<(), DatabaseError> {
    let number = number_of(&RULES, table)?;
    if !is_plain(&table.name) || !is_plain(number) {
        return Err(refused(&format!("the name {:?} or {number:?} cannot be written", table.name)));
    }
    let is_there = format!("SHOW MEASUREMENTS WITH MEASUREMENT = {}", name(&table.name));
    if !ask(channel, lines, &is_there)?.is_empty() {
        return Err(refused(&format!("the measurement {} is there already", table.name)));
    }
    let text = number.replace('"', "\\\"");
    put(channel, lines, format!("{} {MADE}=\"{text}\" {MADE_NS}\n", escaped(&table.name)).as_bytes())
}

/// Removes a measurement with its points, if it is there.
pub(super) fn remove(channel: &mut Channel, lines: &Lines, table: &str) -> Result<(), DatabaseError> {
    ask(channel, lines, &removal(table)).map(drop)
}

/// Returns the statement that removes a measurement.
pub(super) fn removal(table: &str) -> String {
    format!("DROP MEASUREMENT {}", name(table))
}

/// Returns the number of rows of a table.
pub(super) fn count(channel: &mut Channel, lines: &Lines, table: &str) -> Result<u64, DatabaseError> {
    let made = format!("SELECT {} FROM {} WHERE time = {MADE_NS}", name(MADE), name(table));
    let made = ask(channel, lines, &made)?;
    let number = made.first().and_then(|series| series.value(MADE)?.as_str());
    let number = number.ok_or_else(|| refused(&format!("there is no table {table}")))?;
    figure(channel, lines, table, "count", number)
}

/// Returns the sum of a field of whole numbers.
pub(super) fn sum(channel: &mut Channel, lines: &Lines, table: &str, column: &str) -> Result<u64, DatabaseError> {
    figure(channel, lines, table, "sum", column)
}

/// Returns a figure of a field; 0 where no point has it.
fn figure(
    channel: &mut Channel,
    lines: &Lines,
    table: &str,
    function: &str,
    field: &str,
) -> Result<u64, DatabaseError> {
    let query = format!("SELECT {function}({}) FROM {}", name(field), name(table));
    let found = ask(channel, lines, &query)?;
    match found.first() {
        None => Ok(0),
        Some(series) => series.value(function).and_then(serde_json::Value::as_u64).ok_or_else(|| {
            DatabaseError::Lost(format!("{} is answered with something else than a number", shortened(&query)))
        }),
    }
}

fn shortened(query: &str) -> String {
    query.chars().take(100).collect()
}

/// Returns the bytes on the disk of the database, if it consists of these tables alone; `None` where it has others, or the server does not tell this user. The server does not tell measurements apart.
pub(super) fn bytes(channel: &mut Channel, lines: &Lines, database: &str, tables: &[&str]) -> Option<u64> {
    let measurements = ask(channel, lines, "SHOW MEASUREMENTS").ok()?;
    let mut names = measurements.iter().flat_map(|series| &series.values).flatten();
    if !names.all(|name| name.as_str().is_some_and(|name| tables.contains(&name))) {
        return None;
    }
    let shards = ask(channel, lines, "SHOW STATS FOR 'shard'").ok()?;
    let own = shards.iter().filter(|shard| shard.tags.get("database").is_some_and(|name| name == database));
    own.map(|shard| shard.value("diskBytes")?.as_u64()).sum()
}
