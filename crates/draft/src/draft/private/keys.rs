//! Makes fills for key columns, whose values differ in every row.
//!
//! Main function: [`keys_of`].

use super::rounded::rounded;
use crate::draft::catalogue::{Column, Holds, Server, Table};
use crate::draft::fit::{Place, range_of, stretch, zone};
use crate::trial::{Fill, TimeBlocks};

/// The number of letters from which texts are made.
const LETTERS: f64 = 26.0;

/// The fills of key columns, and the keys that are unique with them.
pub struct Keys {
    /// The fill of each column.
    pub fills: Vec<Option<Fill>>,
    /// Whether each key is unique with these fills.
    pub holds: Vec<bool>,
}

/// Returns fills for the columns of a table's keys, for the given number of rows.
pub fn keys_of(place: &Place<'_>, table: &Table, rows: u64) -> Keys {
    let mut keys = Keys { fills: vec![None; table.columns.len()], holds: Vec::new() };
    for key in &table.keys {
        let is_told_apart = |fill: &Option<Fill>| match fill {
            Some(Fill::TextOf(_, number)) => matches!(**number, Fill::Sequence(..)),
            fill => matches!(fill, Some(Fill::Sequence(..))),
        };
        let holds = match key.as_slice() {
            _ if key.iter().any(|column| is_told_apart(&keys.fills[*column])) => true,
            [column] => single(place, table, *column, rows, &mut keys.fills),
            columns => several(place, table, columns, rows, &mut keys.fills),
        };
        keys.holds.push(holds);
    }
    if !place.keeps_values {
        keys.fills.iter_mut().for_each(|fill| *fill = fill.take().map(rounded));
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
        // The database makes these values itself.
        Holds::Other => return is_uuid(own),
        Holds::Date | Holds::Truth => return false,
    };
    fills[column] = Some(fill);
    true
}

/// Fills a key of several columns, and returns whether it is unique: the first takes one value after another while the last counts within it, or the
/// first cycles while the last is a time.
fn several(place: &Place<'_>, table: &Table, key: &[usize], rows: u64, fills: &mut [Option<Fill>]) -> bool {
    let (Some(first), Some(last)) = (key.first().copied(), key.last().copied()) else { return false };
    let (lead, end) = (&table.columns[first], &table.columns[last]);
    let is_free = fills[first].is_none() && fills[last].is_none();
    let is_text = lead.holds == Holds::Text;
    if !is_free || !(is_text || lead.holds == Holds::Whole) {
        return false;
    }
    let range = range_of(lead).filter(|_| !is_text);
    let (low, high) = range.unwrap_or((1.0, lead.spread.distinct.unwrap_or(rows as f64).max(1.0)));
    let leads = lead.spread.distinct.unwrap_or(high - low + 1.0).clamp(1.0, rows.max(1) as f64);
    let step = (((high - low) / (leads - 1.0).max(1.0)).floor() as i64).max(1);
    let low = low as i64;
    if is_text && !has_room(width_of(lead), leads) {
        return false;
    }
    let as_lead = |fill: Fill| if is_text { Fill::TextOf(width_of(lead), Box::new(fill)) } else { fill };
    match end.holds {
        Holds::Whole | Holds::Text => {
            let times = (rows as f64 / leads).round().max(1.0) as u64;
            let (from, _) = range_of(end).unwrap_or((1.0, 1.0));
            fills[first] = Some(as_lead(Fill::Blocks(low, step, times)));
            let is_told_apart = end.holds == Holds::Whole || has_room(width_of(end), times as f64);
            let counted = Fill::Cycle(from as i64, 1, times);
            let as_text = end.holds == Holds::Text;
            fills[last] = Some(if as_text { Fill::TextOf(width_of(end), Box::new(counted)) } else { counted });
            is_told_apart
        }
        Holds::Time { .. } => {
            let Some(moments) = times(place, end, (rows, leads as u64)) else { return false };
            fills[first] = Some(as_lead(Fill::Cycle(low, step, leads as u64)));
            fills[last] = Some(moments);
            true
        }
        _ => false,
    }
}

/// Returns a fill of times over the column's range, each for several rows; `None` if the column cannot hold times that fine.
fn times(place: &Place<'_>, column: &Column, (rows, each): (u64, u64)) -> Option<Fill> {
    let (low, high) = range_of(column)?;
    let moments = rows.div_ceil(each.max(1)).max(1);
    // Times of whole seconds stay whole, because some databases store no fractions.
    let takes_seconds = matches!(place.server, Server::MySql | Server::MariaDb) && !column.type_name.contains('(');
    let has_seconds = [low, high].iter().all(|end| end % 1e6 == 0.0);
    let unit = if takes_seconds || has_seconds { 1e6 } else { 1.0 };
    // Outlying times do not thin out the rest.
    let width_us = stretch(column, 1.0).map_or(high - low, |seconds| (1e6 * seconds).min(high - low));
    let step_in = |unit: f64| ((width_us / moments as f64 / unit).round() * unit) as i64;
    let step_us = if step_in(unit) == 0 && !takes_seconds { step_in(1.0) } else { step_in(unit) };
    let blocks = TimeBlocks {
        first_us: low as i64 - (low as i64).rem_euclid(1_000_000),
        step_us,
        times: each.max(1),
        zone: zone(place, column.holds),
    };
    (step_us > 0).then_some(Fill::TimeBlocks(blocks))
}

/// Returns a fill with a unique text for each row, if its length allows that many.
fn unique_text(column: &Column, rows: u64) -> Option<Fill> {
    let width = width_of(column);
    has_room(width, rows as f64).then(|| Fill::TextOf(width, Box::new(Fill::Sequence(1, 1))))
}

fn width_of(column: &Column) -> u32 {
    column.spread.width.unwrap_or(12.0).round().clamp(1.0, 65_535.0) as u32
}

/// Returns whether this many distinct texts of the given width exist.
fn has_room(width: u32, texts: f64) -> bool {
    LETTERS.powi(width.min(20) as i32) > texts
}

/// Returns whether the column's values are UUIDs.
pub fn is_uuid(column: &Column) -> bool {
    column.plain_type.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("uuid"))
}
