//! Columns of keys: values of which no two rows have the same.
//!
//! Main function: [`keys_of`].

use crate::draft::catalogue::{Column, Holds, Server, Table};
use crate::draft::fit::{Place, range_of, stretch, zone};
use crate::trial::{Fill, TimeBlocks};

/// Letters of a random text of which so many rows have no two alike: 62 letters, and a chance of one in a million.
const ALPHABET: f64 = 62.0;
const CHANCE: f64 = 1e-6;

/// What the columns of keys are filled with, and which keys hold by that.
pub struct Keys {
    /// By column.
    pub fills: Vec<Option<Fill>>,
    /// By key.
    pub holds: Vec<bool>,
}

/// Fills for the columns of a table's keys, for so many rows.
pub fn keys_of(place: &Place<'_>, table: &Table, rows: u64) -> Keys {
    let mut keys = Keys { fills: vec![None; table.columns.len()], holds: Vec::new() };
    for key in &table.keys {
        let is_told_apart = |fill: &Option<Fill>| matches!(fill, Some(Fill::Sequence(..) | Fill::RandomText(_)));
        let holds = match key.as_slice() {
            _ if key.iter().any(|column| is_told_apart(&keys.fills[*column])) => true,
            [column] => single(place, table, *column, rows, &mut keys.fills),
            columns => several(place, table, columns, rows, &mut keys.fills),
        };
        keys.holds.push(holds);
    }
    keys
}

fn single(place: &Place<'_>, table: &Table, column: usize, rows: u64, fills: &mut [Option<Fill>]) -> bool {
    let own = &table.columns[column];
    let fill = match own.holds {
        _ if fills[column].is_some() => return false,
        Holds::Whole | Holds::Fraction => {
            let (low, high) = range_of(own).unwrap_or((1.0, rows as f64));
            let step = ((high - low) / (rows.saturating_sub(1).max(1)) as f64).floor().max(1.0);
            Fill::Sequence(low.floor() as i64, step as i64)
        }
        Holds::Text => match unique_text(own, rows) {
            Some(fill) => fill,
            None => return false,
        },
        Holds::Time { .. } => match times(place, own, (rows, 1)) {
            Some(fill) => fill,
            None => return false,
        },
        // The database makes these itself.
        Holds::Other => return is_uuid(own),
        Holds::Date | Holds::Truth => return false,
    };
    fills[column] = Some(fill);
    true
}

/// A key of several columns: the first is of one thing after the other, and the last counts within it; or the first goes round, and the last is a time.
fn several(place: &Place<'_>, table: &Table, key: &[usize], rows: u64, fills: &mut [Option<Fill>]) -> bool {
    let (Some(first), Some(last)) = (key.first().copied(), key.last().copied()) else { return false };
    let (lead, end) = (&table.columns[first], &table.columns[last]);
    let is_free = fills[first].is_none() && fills[last].is_none();
    if !is_free || lead.holds != Holds::Whole {
        return false;
    }
    let (low, high) = range_of(lead).unwrap_or((1.0, rows.max(1) as f64));
    let leads = lead.spread.distinct.unwrap_or(high - low + 1.0).clamp(1.0, rows.max(1) as f64);
    let step = (((high - low) / (leads - 1.0).max(1.0)).floor() as i64).max(1);
    let low = low as i64;
    match end.holds {
        Holds::Whole => {
            let times = (rows as f64 / leads).ceil().max(1.0) as u64;
            let (from, _) = range_of(end).unwrap_or((1.0, 1.0));
            fills[first] = Some(Fill::Blocks(low, step, times));
            fills[last] = Some(Fill::Cycle(from as i64, 1, times));
            true
        }
        Holds::Time { .. } => {
            let Some(moments) = times(place, end, (rows, leads as u64)) else { return false };
            fills[first] = Some(Fill::Cycle(low, step, leads as u64));
            fills[last] = Some(moments);
            true
        }
        _ => false,
    }
}

/// Times over the column's range, each for so many rows; none where it holds no such fine ones.
fn times(place: &Place<'_>, column: &Column, (rows, each): (u64, u64)) -> Option<Fill> {
    let (low, high) = range_of(column)?;
    let moments = rows.div_ceil(each.max(1)).max(1);
    let has_seconds = matches!(place.server, Server::MySql | Server::MariaDb) && !column.type_name.contains('(');
    let unit = if has_seconds { 1_000_000 } else { 1 };
    // Single times far from the others do not thin out the rest.
    let width_us = stretch(column, 1.0).map_or(high - low, |seconds| (1e6 * seconds).min(high - low));
    let step_us = (width_us as i64 / moments as i64) / unit * unit;
    let blocks = TimeBlocks {
        first_us: low as i64 - (low as i64).rem_euclid(1_000_000),
        step_us,
        times: each.max(1),
        zone: zone(place, column.holds),
    };
    (step_us > 0).then_some(Fill::TimeBlocks(blocks))
}

fn unique_text(column: &Column, rows: u64) -> Option<Fill> {
    let width = column.spread.width.unwrap_or(12.0).round().clamp(1.0, 65_535.0);
    let pairs = (rows as f64).powi(2) / 2.0;
    (pairs / ALPHABET.powf(width) < CHANCE).then_some(Fill::RandomText(width as u32))
}

/// Whether its values are UUIDs.
pub fn is_uuid(column: &Column) -> bool {
    column.plain_type.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("uuid"))
}
