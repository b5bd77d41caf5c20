//! Tables: series with the table's name in a label, made, counted and removed.
//!
//! A table is there when it has a series. One that was made has a series that names the column that every row has; no query of rows finds it.

use super::exchange::{Lines, ask, delete, flush, put};
use super::metricsql::{ALL, END, named, of_table};
use super::rules::{FIRST_MS, LABEL, RULES, refused};
use crate::database::DatabaseError;
use crate::database::points::lines::escaped;
use crate::database::points::shape::{MADE, is_plain, number_of};
use crate::database::session::Channel;
use crate::statement::Table;

/// The label that names the column that every row has.
const NUMBER: &str = "number";

/// Makes a table. One whose series are there already is refused, and stays.
pub(super) fn create(channel: &mut Channel, lines: &Lines, table: &Table) -> Result<(), DatabaseError> {
    let number = number_of(&RULES, table)?;
    if !is_plain(&table.name) || !is_plain(number) {
        return Err(refused(&format!("the name {:?} or {number:?} cannot be written", table.name)));
    }
    flush(channel, lines)?;
    if figure(channel, lines, &format!("sum(count_over_time({}[{ALL}]))", of_table(&table.name)))? > 0 {
        return Err(refused(&format!("series with the label {LABEL}=\"{}\" are there already", table.name)));
    }
    let (name, number) = (escaped(&table.name), escaped(number));
    put(channel, lines, format!("{name},{LABEL}={name},{NUMBER}={number} {MADE}=1i {}\n", FIRST_MS - 1).as_bytes())?;
    flush(channel, lines)?;
    match figure(channel, lines, &format!("sum(count_over_time({}[{ALL}]))", of_table(&table.name)))? {
        0 => Err(refused(
            "the server drops points of the year 2001, where records without a time are; start it with a longer -retentionPeriod, as in 100y",
        )),
        _ => Ok(()),
    }
}

/// Removes the series of a table, if they are there.
pub(super) fn remove(channel: &mut Channel, lines: &Lines, table: &str) -> Result<(), DatabaseError> {
    // What is not visible yet is not removed.
    flush(channel, lines)?;
    delete(channel, lines, &of_table(table))
}

/// Returns the request that removes the series of a table.
pub(super) fn removal(table: &str) -> String {
    format!("curl --data-urlencode 'match[]={}' http://host:8428/api/v1/admin/tsdb/delete_series", of_table(table))
}

/// Returns the number of rows of a table, of all that are acknowledged.
pub(super) fn count(channel: &mut Channel, lines: &Lines, table: &str) -> Result<u64, DatabaseError> {
    flush(channel, lines)?;
    let made = format!("last_over_time({}[{ALL}])", named(table, MADE, None));
    let made = ask(channel, lines, &made, END)?;
    let number = made.result.first().and_then(|series| series.metric.get(NUMBER));
    let number = number.ok_or_else(|| refused(&format!("there is no table {table}")))?;
    figure(channel, lines, &format!("sum(count_over_time({}[{ALL}]))", named(table, number, None)))
}

/// Returns the sum of a column of whole numbers.
pub(super) fn sum(channel: &mut Channel, lines: &Lines, table: &str, column: &str) -> Result<u64, DatabaseError> {
    flush(channel, lines)?;
    figure(channel, lines, &format!("sum(sum_over_time({}[{ALL}]))", named(table, column, None)))
}

/// Returns the figure that a query has; 0 where it has none.
fn figure(channel: &mut Channel, lines: &Lines, query: &str) -> Result<u64, DatabaseError> {
    let found = ask(channel, lines, query, END)?;
    let Some(series) = found.result.first() else { return Ok(0) };
    let whole = series.figure().and_then(super::rules::whole).and_then(|whole| u64::try_from(whole).ok());
    whole.ok_or_else(|| DatabaseError::Lost("a query for a count is answered with something else".to_owned()))
}
