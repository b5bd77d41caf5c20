//! Makes fills from the contents of a column.
//!
//! Main functions: [`found`], [`stored`], [`from_spread`].

use super::numbers::fit_numbers;
use crate::draft::catalogue::{Column, Holds, MARK, Server, Table, Writer, leading, order_of, sampling};
use crate::trial::{Fill, Times};
use crate::units::times::parse_time;

/// The most rows from which values are drawn.
const DRAWN_MOST: u32 = 20_000;
/// The most distinct texts that are drawn from the table when texts are stored, because a column may accept no others.
const CHOICES_MOST: f64 = 200.0;
/// The share of a key's range that must be in use for any number in the range to be a suitable value.
const DENSE_SHARE: f64 = 0.9;
/// The greatest age in seconds of the newest value of a time column that is still being written.
const RECENT_S: f64 = 3_600.0;

/// The database and the time for which fills are made.
pub struct Place<'p> {
    /// The database.
    pub server: Server,
    /// The writer of names and literals in the database's syntax.
    pub writer: &'p Writer<'p>,
    /// The present, in microseconds since 1970, by the database's own clock.
    pub now_us: i64,
    /// How far the database's times without a zone are ahead of UTC, in seconds.
    pub offset_s: i64,
    /// Whether texts may be written into the study.
    pub keeps_values: bool,
}

/// Returns the least and the greatest value as numbers.
pub fn range_of(column: &Column) -> Option<(f64, f64)> {
    let (low, high) = column.spread.range.as_ref()?;
    Some((order_of(column.holds, low)?, order_of(column.holds, high)?))
}

/// Returns a fill of existing values, for a comparison by `=`. `rows` is the number of rows that a call finds, if known.
pub fn found(place: &Place<'_>, table: &Table, column: usize, rows: Option<f64>) -> Result<Fill, String> {
    let own = &table.columns[column];
    if own.holds == Holds::Truth {
        return Ok(truths(own));
    }
    let range = range_of(own).filter(|_| own.holds == Holds::Whole && table.is_unique(column));
    if let Some((low, high)) = range.filter(|(low, high)| table.rows >= DENSE_SHARE * (high - low + 1.0)) {
        return Ok(Fill::Uniform(low, high));
    }
    has_rows(table, &[column])?;
    let name = (place.writer.quote)(&own.name);
    if place.server != Server::Postgres && is_lead(table, column) {
        return Ok(Fill::From(leading(place.server, table, column, place.writer)));
    }
    let drawn = sampling(place.server, table, place.writer, (&name, &[column]), DRAWN_MOST);
    let is_once = is_each_as_often(table, own, rows) || (table.is_unique(column) && place.server != Server::Postgres);
    let distinct = if is_once { "DISTINCT " } else { "" };
    Ok(Fill::From(format!("SELECT {distinct}{name} FROM ({drawn}) AS {MARK} WHERE {name} IS NOT NULL")))
}

/// Returns an error if there are no rows from which values can be taken.
fn has_rows(table: &Table, columns: &[usize]) -> Result<(), String> {
    if table.is_view {
        let names: Vec<&str> = columns.iter().map(|column| table.columns[*column].name.as_str()).collect();
        let names = names.join(" and ");
        if table.definition.is_none() {
            return Err(format!(
                "{} is a table of another server, or a view whose SQL this user may not see (GRANT SHOW VIEW, in MySQL and MariaDB), so that no \
                 values of {names} are known; a log would tell them",
                table.name
            ));
        }
        return Err(format!(
            "{} is a view, and {names} of it is no column of a table, so that no values are known; a log would tell them",
            table.name
        ));
    }
    if table.rows < 1.0 { Err(format!("{} has no rows to find", table.name)) } else { Ok(()) }
}

/// Returns whether an index on the column finds all its values, and no other indexed column of whole numbers leads to rows from all over the table.
fn is_lead(table: &Table, column: usize) -> bool {
    let is_whole = |place: &usize| table.columns[*place].holds == Holds::Whole;
    let has_other = table.number_key().is_some() || table.indexed.iter().any(is_whole);
    table.indexed.contains(&column) && !has_other && table.columns[column].holds != Holds::Other
}

/// Returns whether calls use each distinct value equally often instead of each row: the assumption that better explains the rows found.
fn is_each_as_often(table: &Table, column: &Column, rows: Option<f64>) -> bool {
    let (Some(rows), Some(alike), Some(distinct)) = (rows, column.spread.share_alike(), column.spread.distinct) else {
        return false;
    };
    let (by_row, by_value) = (table.rows * alike, table.rows * (1.0 - column.spread.nulls) / distinct.max(1.0));
    let is_told = by_row > 1.5 * by_value && rows > 0.0;
    is_told && (rows / by_value).ln().abs() < (rows / by_row).ln().abs()
}

/// Returns a query for an existing row, which fills several columns at once.
pub fn row(place: &Place<'_>, table: &Table, columns: &[usize]) -> Result<String, String> {
    has_rows(table, columns)?;
    let names: Vec<String> = columns.iter().map(|column| (place.writer.quote)(&table.columns[*column].name)).collect();
    let drawn = sampling(place.server, table, place.writer, (&names.join(", "), columns), DRAWN_MOST);
    let are_there: Vec<String> = names.iter().map(|name| format!("{name} IS NOT NULL")).collect();
    Ok(format!("SELECT {} FROM ({drawn}) AS {MARK} WHERE {}", names.join(", "), are_there.join(" AND ")))
}

fn truths(column: &Column) -> Fill {
    let share = |is: bool| {
        let words: &[&str] = if is { &["t", "true", "1"] } else { &["f", "false", "0"] };
        let shares = column.spread.frequent.iter().filter(|(value, _)| words.contains(&value.as_str()));
        (1e5 * shares.map(|(_, share)| share).sum::<f64>()).round() / 1e3
    };
    match (share(true), share(false)) {
        (0.0, 0.0) => Fill::Uniform(0.0, 1.0),
        (0.0, _) => Fill::Number(0.0),
        (_, 0.0) => Fill::Number(1.0),
        (yes, no) => Fill::Weighted(vec![(Fill::Number(1.0), yes), (Fill::Number(0.0), no)]),
    }
}

/// Returns a fill with the distribution of the column's values, for bounds of ranges and for stored values. `None` if the column has no order.
pub fn from_spread(place: &Place<'_>, column: &Column) -> Option<Fill> {
    let values: Vec<f64> = sample_of(column);
    match column.holds {
        Holds::Whole | Holds::Fraction => fit_numbers(&values, range_of(column)),
        Holds::Time { .. } | Holds::Date => {
            let ends = range_of(column).into_iter().flat_map(|(low, high)| [low, high]);
            times(place, column.holds, values.into_iter().chain(ends).collect())
        }
        _ => None,
    }
}

/// Returns numbers distributed like the column's values.
fn sample_of(column: &Column) -> Vec<f64> {
    /// The approximate count of the numbers.
    const NUMBERS: f64 = 1_000.0;
    let order = |text: &String| order_of(column.holds, text);
    let bounds: Vec<f64> = column.spread.bounds.iter().filter_map(order).collect();
    let frequent: f64 = column.spread.frequent.iter().map(|(_, share)| share).sum();
    let rest = (1.0 - column.spread.nulls - frequent).max(0.0);
    let is_whole = column.holds == Holds::Whole;
    let mut values = Vec::new();
    for (value, share) in &column.spread.frequent {
        let Some(value) = order_of(column.holds, value) else { continue };
        values.extend(std::iter::repeat_n(value, (share * NUMBERS).round() as usize));
    }
    let count = if bounds.len() >= 2 { (rest * NUMBERS).round() as usize } else { 0 };
    let last = bounds.len().saturating_sub(1) as f64;
    for number in 0..count {
        let at = (number as f64 + 0.5) / count as f64 * last;
        let (stretch, part) = (at.floor() as usize, at.fract());
        let value = bounds[stretch] + part * (bounds[(stretch + 1).min(bounds.len() - 1)] - bounds[stretch]);
        values.push(if is_whole { value.floor() } else { value });
    }
    if values.is_empty() {
        let (low, high) = range_of(column).unwrap_or((0.0, 0.0));
        let evenly = |number: f64| low + (number + 0.5) / NUMBERS * (high - low);
        let is_known = column.spread.range.is_some();
        values.extend(
            (0..if is_known { NUMBERS as usize } else { 0 })
                .map(|number| evenly(number as f64))
                .map(|value| if is_whole { value.floor() } else { value }),
        );
    }
    values
}

/// Returns a fill of times by the quantiles of these values, in microseconds since 1970.
pub fn times(place: &Place<'_>, holds: Holds, mut values: Vec<f64>) -> Option<Fill> {
    /// The number of parts into which times are divided.
    const PARTS: usize = 10;
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1).filter(|last| *last >= 1)?;
    let parts = if values[0] == values[last] { 1 } else { PARTS.min(last) };
    let whole = |us: i64| us - us.rem_euclid(1_000_000);
    let bounds_us = (0..=parts).map(|part| whole(values[part * last / parts] as i64)).collect();
    Some(Fill::Times(Times { bounds_us, zone: zone(place, holds) }))
}

/// Returns the zone that is written behind a column's times; empty without one.
pub fn zone(place: &Place<'_>, holds: Holds) -> String {
    let has_zone = holds == (Holds::Time { has_zone: true }) && place.server == Server::Postgres;
    if has_zone { "+00".to_owned() } else { String::new() }
}

/// Returns whether a time column is being written now.
pub fn is_recent(place: &Place<'_>, column: &Column) -> bool {
    let newest = column.spread.range.as_ref().and_then(|(_, newest)| parse_time(newest));
    let now_us = present_us(place, column.holds);
    matches!(column.holds, Holds::Time { .. })
        && newest.is_some_and(|newest| (now_us - newest.us) as f64 / 1e6 <= RECENT_S)
}

/// Returns the present in the time zone of a column's times, in microseconds since 1970.
pub fn present_us(place: &Place<'_>, holds: Holds) -> i64 {
    let is_local = holds != (Holds::Time { has_zone: true });
    place.now_us + if is_local { place.offset_s * 1_000_000 } else { 0 }
}

/// Returns a fill of times between two distances from now, in seconds, in the form of a column.
pub fn now(place: &Place<'_>, holds: Holds, from_s: f64, to_s: f64) -> Fill {
    if zone(place, holds).is_empty() {
        let offset_s = if holds == (Holds::Time { has_zone: true }) { 0.0 } else { place.offset_s as f64 };
        return Fill::Now(from_s + offset_s, to_s + offset_s, String::new());
    }
    Fill::Now(from_s, to_s, zone(place, holds))
}

/// Returns a fill of new values for a column, similar to those that it holds.
pub fn stored(place: &Place<'_>, table: &Table, column: usize) -> Result<Fill, String> {
    let own = &table.columns[column];
    let name = (place.writer.quote)(&own.name);
    // A new value in the last column of a key makes the row new, whatever the columns before it are.
    let is_unique = table.keys.iter().any(|key| key.last() == Some(&column));
    let has_seconds = matches!(place.server, Server::MySql | Server::MariaDb) && !own.type_name.contains('(');
    let fill = match own.holds {
        Holds::Whole if is_unique => {
            return Ok(Fill::SequenceFrom(format!("SELECT max({name}) + 1 FROM {}", table.quoted), 1));
        }
        Holds::Time { .. } if is_unique && has_seconds => {
            let later = format!("SELECT max({name}) + INTERVAL 1 SECOND FROM {}", table.quoted);
            return Ok(Fill::SequenceFrom(later, 1));
        }
        Holds::Time { .. } if is_unique => Some(now(place, own.holds, 0.0, 0.0)),
        Holds::Truth => Some(truths(own)),
        Holds::Time { .. } if is_recent(place, own) => Some(now(place, own.holds, 0.0, 0.0)),
        Holds::Text if is_unique || own.spread.distinct.is_none_or(|distinct| distinct > CHOICES_MOST) => {
            let width = own.spread.width.unwrap_or(12.0).round().clamp(1.0, 65_535.0);
            Some(Fill::RandomText(if is_unique { width.max(8.0) } else { width } as u32))
        }
        Holds::Fraction | Holds::Time { .. } | Holds::Date => from_spread(place, own),
        Holds::Other if is_unique => {
            return Err(format!(
                "{} is of type {} and no two rows have the same: write a fill that makes new ones",
                own.name, own.type_name
            ));
        }
        _ => None,
    };
    // Any existing value is allowed: numbers may be keys of another table's rows.
    fill.map_or_else(|| found(place, table, column, None), Ok)
}

/// Returns the fill of a parameter that is compared with a column by order: values of the column, by their quantiles.
pub fn bound(place: &Place<'_>, table: &Table, column: usize) -> Result<Fill, String> {
    let own = &table.columns[column];
    match from_spread(place, own) {
        Some(fill) => Ok(fill),
        None => found(place, table, column, None),
    }
}

/// Returns the width, in the column's order, that a share of the rows spans: a number, or seconds for times. Measured between the 5th and
/// the 95th percentile, so that outliers do not count.
pub fn stretch(column: &Column, share: f64) -> Option<f64> {
    let mut values = sample_of(column);
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get(((values.len() as f64 - 1.0) * part) as usize).copied();
    let whole = (at(0.95)? - at(0.05)?) / 0.9;
    let unit = if matches!(column.holds, Holds::Time { .. } | Holds::Date) { 1e6 } else { 1.0 };
    Some(share * whole / unit).filter(|width| width.is_finite() && *width >= 0.0)
}

/// Returns the fill limited to the given bounds, in the column's order: numbers, or microseconds. Fills that are not ranges stay as they are.
pub fn clipped(fill: Fill, low: f64, high: f64) -> Fill {
    if low > high {
        return fill;
    }
    match fill {
        Fill::Uniform(from, to) => Fill::Uniform(from.clamp(low, high), to.clamp(low, high)),
        Fill::Quantiles(bounds) => Fill::Quantiles(bounds.into_iter().map(|bound| bound.clamp(low, high)).collect()),
        Fill::Times(times) => {
            let bounds_us = times.bounds_us.iter().map(|bound| (*bound).clamp(low as i64, high as i64)).collect();
            Fill::Times(Times { bounds_us, ..times })
        }
        fill => fill,
    }
}
