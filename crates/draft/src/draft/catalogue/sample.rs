//! Examines the contents of columns by sampling their tables.
//!
//! Main function: [`look_at`]. Invariant: no more than [`SAMPLE_MOST`] rows of a table are read, from slices spread over its key if it has one.

use std::collections::HashSet;

use super::sampling::{LEADS_MOST, SLICES, leading, sampling};
use super::spread::Order;
use super::{Holds, MARK, Server, Spread, Table, Writer, number, text};
use crate::database::{DatabaseError, Session};
use crate::units::times::{parse_time, write_time};

/// The most rows in a sample of a table; a smaller table is read whole.
const SAMPLE_MOST: u32 = 4_000;
/// The most rows that are counted one by one if their number is unknown.
const COUNTED_MOST: u32 = 100_000;
/// The number of letters of a text that are examined.
const LETTERS_MOST: u32 = 100;

/// Fills in the contents of a table's columns. Statistics of the database itself are kept.
///
/// # Errors
/// When the database fails.
pub fn look_at(
    server: Server,
    session: &mut dyn Session,
    table: &mut Table,
    writer: &Writer<'_>,
) -> Result<(), DatabaseError> {
    if table.is_view {
        return Ok(());
    }
    if table.rows < 0.0 {
        let most = COUNTED_MOST + 1;
        let counted =
            session.query(&format!("SELECT count(*) FROM (SELECT 1 FROM {} LIMIT {most}) AS {MARK}", table.quoted))?;
        table.rows = counted.first().and_then(|row| number(row, 0)).unwrap_or(0.0);
    }
    ranges(server, session, table, writer)?;
    let is_known = table.columns.iter().any(|column| column.spread.distinct.is_some());
    if is_known || table.columns.is_empty() {
        return Ok(());
    }
    let leads = leads(server, session, table, writer)?;
    // InnoDB's own estimate is off by up to a half, and a count that was cut off is a lower bound.
    let counted =
        if table.rows > f64::from(SAMPLE_MOST) { rows_by_leads(session, table, &leads, writer)? } else { 0.0 };
    let is_least = server == Server::Sqlite;
    if counted > 0.0 && (!is_least || table.rows > f64::from(COUNTED_MOST)) {
        table.rows = if is_least { counted.max(table.rows) } else { counted };
    }
    let mut rows = paths(server, session, table, &leads, writer)?;
    let is_of_neighbours = rows.is_empty();
    if is_of_neighbours {
        rows = sample(server, session, table, writer)?;
    }
    keep_once(table, &mut rows);
    let is_whole = table.rows <= f64::from(SAMPLE_MOST);
    let of_lead =
        distinct_of_lead(table, &rows).filter(|_| is_of_neighbours && !is_whole && server != Server::Postgres);
    for (place, column) in table.columns.iter_mut().enumerate() {
        let values: Vec<Option<String>> = rows.iter().map(|row| row.get(place).cloned().flatten()).collect();
        let holds = column.holds;
        let order = move |text: &str| order_of(holds, text);
        let has_order = !matches!(holds, Holds::Text | Holds::Other | Holds::Truth);
        let found = Spread::of(&values, table.rows, has_order.then_some(&order as Order<'_>));
        let range = column.spread.range.take().or(found.range.clone());
        column.spread = if holds == Holds::Other { Spread::default() } else { Spread { range, ..found } };
        if table.keys.iter().any(|key| key == &[place]) {
            column.spread.distinct = Some(table.rows);
        }
        let lead = leads.iter().find(|(lead, values)| *lead == place && values.len() < LEADS_MOST);
        if let Some((_, values)) = lead {
            // A sample of slices by these values does not show how frequent each is.
            column.spread.distinct = Some(values.len() as f64);
            column.spread.frequent = if table.keys.first().is_some_and(|key| key[0] == place) {
                Vec::new()
            } else {
                std::mem::take(&mut column.spread.frequent)
            };
        } else if let Some((_, distinct)) = of_lead.filter(|(lead, _)| *lead == place) {
            column.spread.distinct = Some(distinct);
            column.spread.frequent = Vec::new();
        }
    }
    Ok(())
}

/// Returns the values of non-unique columns that lead an index, from one to the next: the index finds each at once. [`LEADS_MOST`] values
/// if there are as many or more.
fn leads(
    server: Server,
    session: &mut dyn Session,
    table: &Table,
    writer: &Writer<'_>,
) -> Result<Vec<(usize, Vec<String>)>, DatabaseError> {
    let mut leads: Vec<(usize, Vec<String>)> = Vec::new();
    for lead in &table.indexed {
        let is_new = !leads.iter().any(|(other, _)| other == lead);
        let is_comparable = !matches!(table.columns[*lead].holds, Holds::Other | Holds::Truth);
        let is_small = table.rows <= f64::from(SAMPLE_MOST);
        if server == Server::Postgres || !is_new || !is_comparable || table.is_unique(*lead) || is_small {
            continue;
        }
        let sql = leading(server, table, *lead, writer);
        match session.query(&sql) {
            Ok(rows) => {
                leads.push((*lead, rows.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect()))
            }
            Err(error) if error.is_refusal() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(leads)
}

/// Returns a sample of a table whose key begins with a non-unique column and goes on with an ordered one, as time series have: spread over
/// the second column, for values spread over the first. Empty for other tables.
fn paths(
    server: Server,
    session: &mut dyn Session,
    table: &Table,
    leads: &[(usize, Vec<String>)],
    writer: &Writer<'_>,
) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
    let Some([first, second, ..]) = table.keys.first().map(Vec::as_slice) else { return Ok(Vec::new()) };
    let holds = table.columns[*second].holds;
    let is_ordered = matches!(holds, Holds::Whole | Holds::Fraction | Holds::Time { .. } | Holds::Date);
    let values = leads.iter().find(|(lead, values)| lead == first && !values.is_empty()).map(|(_, values)| values);
    let Some(values) = values.filter(|_| is_ordered) else { return Ok(Vec::new()) };
    let spread;
    let values = if values.len() < LEADS_MOST {
        values
    } else {
        // The known values are only the first ones.
        spread = leads_all_over(session, table, *first, writer)?;
        &spread
    };
    if values.is_empty() {
        return Ok(Vec::new());
    }
    let columns = sampled_columns(server, table, writer);
    let name = |place: usize| (writer.quote)(&table.columns[place].name);
    let (lead, order, quoted) = (name(*first), name(*second), &table.quoted);
    let each = SAMPLE_MOST / SLICES;
    let mut rows = Vec::new();
    for slice in 0..SLICES {
        let value = &values[slice as usize * values.len() / SLICES as usize];
        let is_number = table.columns[*first].holds == Holds::Whole && value.parse::<i64>().is_ok();
        let value = if is_number { value.clone() } else { (writer.literal)(value) };
        let ends = format!("SELECT min({order}) AS {MARK}, max({order}) FROM {quoted} WHERE {lead} = {value}");
        let ends = session.query(&ends)?;
        let end = |place: usize| ends.first().and_then(|row| order_of(holds, row.get(place)?.as_deref()?));
        let (Some(low), Some(high)) = (end(0), end(1)) else { continue };
        // Multiples of the golden ratio are spread evenly over [0, 1), however many there are.
        let part = (f64::from(slice) * 0.618_033_988_75).fract();
        let from = low + part * (high - low);
        let from = match holds {
            Holds::Time { .. } | Holds::Date => {
                let mut text = Vec::new();
                write_time(from as i64, false, "", &mut text);
                (writer.literal)(&String::from_utf8_lossy(&text))
            }
            Holds::Whole => format!("{from:.0}"),
            _ => format!("{from:?}"),
        };
        let sql = format!(
            "SELECT {columns} FROM {quoted} WHERE {lead} = {value} AND {order} >= {from} ORDER BY {order} LIMIT {each}"
        );
        rows.extend(session.query(&sql)?);
    }
    // A second column is not sampled along for values that few rows share.
    Ok(if rows.len() < SAMPLE_MOST as usize / 4 { Vec::new() } else { rows })
}

/// Returns the number of rows of a table: the mean over several leading values of its key, times their number; 0 if they are unknown.
fn rows_by_leads(
    session: &mut dyn Session,
    table: &Table,
    leads: &[(usize, Vec<String>)],
    writer: &Writer<'_>,
) -> Result<f64, DatabaseError> {
    /// The number of values that are examined.
    const LOOKED_AT: usize = 5;
    let first = table.keys.first().and_then(|key| key.first());
    let own = leads.iter().find(|(lead, values)| Some(lead) == first && (1..LEADS_MOST).contains(&values.len()));
    let Some((lead, values)) = own else { return Ok(0.0) };
    let name = (writer.quote)(&table.columns[*lead].name);
    let (mut rows, mut count) = (0.0, 0);
    for value in values.iter().step_by(values.len().div_ceil(LOOKED_AT)) {
        let value = if value.parse::<i64>().is_ok() { value.clone() } else { (writer.literal)(value) };
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {} WHERE {name} = {value} LIMIT {COUNTED_MOST}) AS {MARK}",
            table.quoted
        );
        rows += session.query(&sql)?.first().and_then(|row| number(row, 0)).unwrap_or(0.0);
        count += 1;
    }
    Ok(rows / f64::from(count.max(1)) * values.len() as f64)
}

/// Returns values from all over the range of a column of whole numbers that leads an index; empty for any other column.
fn leads_all_over(
    session: &mut dyn Session,
    table: &Table,
    lead: usize,
    writer: &Writer<'_>,
) -> Result<Vec<String>, DatabaseError> {
    let column = &table.columns[lead];
    let ends = column.spread.range.as_ref().filter(|_| column.holds == Holds::Whole);
    let ends = ends.and_then(|(low, high)| Some((low.parse::<f64>().ok()?, high.parse::<f64>().ok()?)));
    let Some((low, high)) = ends else { return Ok(Vec::new()) };
    let (name, quoted) = ((writer.quote)(&column.name), &table.quoted);
    let mut found = Vec::new();
    for slice in 0..SLICES {
        let from = low + (f64::from(slice) * 0.618_033_988_75).fract() * (high - low);
        let rows = session.query(&format!("SELECT min({name}) AS {MARK} FROM {quoted} WHERE {name} >= {from:.0}"))?;
        found.extend(rows.into_iter().next().and_then(|row| row.into_iter().next()?));
    }
    Ok(found)
}

/// Returns the number of distinct values of the key's leading column, from the rows per value in a sample: its slices are neighbours in the
/// key, so that the rows of a value are in it completely or not at all.
fn distinct_of_lead(table: &Table, rows: &[Vec<Option<String>>]) -> Option<(usize, f64)> {
    let [lead, _, ..] = table.keys.first()?.as_slice() else { return None };
    let values: HashSet<&str> = rows.iter().filter_map(|row| row.get(*lead)?.as_deref()).collect();
    let each = rows.len() as f64 / values.len().max(1) as f64;
    (!values.is_empty()).then(|| (*lead, (table.rows / each).max(values.len() as f64)))
}

/// Removes repeated rows: slices that begin in the same gap of the key have the same rows.
fn keep_once(table: &Table, rows: &mut Vec<Vec<Option<String>>>) {
    let Some(key) = table.keys.first() else { return };
    let mut known = HashSet::new();
    rows.retain(|row| {
        let own: Vec<Option<String>> = key.iter().map(|place| row.get(*place).cloned().flatten()).collect();
        own.iter().any(Option::is_none) || known.insert(own)
    });
}

/// Returns a value as a number that gives its place in the column's order.
pub fn order_of(holds: Holds, text: &str) -> Option<f64> {
    match holds {
        Holds::Time { .. } | Holds::Date => parse_time(text).map(|time| time.us as f64),
        _ => text.parse().ok(),
    }
}

/// Finds the least and the greatest value of columns that lead an index, without scanning the table.
fn ranges(
    server: Server,
    session: &mut dyn Session,
    table: &mut Table,
    writer: &Writer<'_>,
) -> Result<(), DatabaseError> {
    let is_ordered = |holds: Holds| !matches!(holds, Holds::Text | Holds::Other | Holds::Truth);
    for place in 0..table.columns.len() {
        let column = &mut table.columns[place];
        if !table.indexed.contains(&place) || !is_ordered(column.holds) {
            continue;
        }
        let name = (writer.quote)(&column.name);
        let as_text = if server == Server::Postgres { "::text" } else { "" };
        let sql = format!("SELECT min({name}){as_text} AS {MARK}, max({name}){as_text} FROM {}", table.quoted);
        match session.query(&sql) {
            Ok(found) => {
                let ends = found.first().map(|row| (text(row, 0), text(row, 1)));
                column.spread.range =
                    ends.filter(|(low, high)| !low.is_empty() && !high.is_empty()).or(column.spread.range.take());
            }
            Err(error) if error.is_refusal() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns all columns as they are sampled: texts shortened, and columns without usable values as null.
fn sampled_columns(server: Server, table: &Table, writer: &Writer<'_>) -> String {
    let column = |place: usize| {
        let column = &table.columns[place];
        let name = (writer.quote)(&column.name);
        match (column.holds, server) {
            (Holds::Other, _) => "NULL".to_owned(),
            (Holds::Text, Server::Postgres) => format!("substr({name}::text, 1, {LETTERS_MOST})"),
            (Holds::Text, _) => format!("substr({name}, 1, {LETTERS_MOST})"),
            (Holds::Truth, Server::Postgres) => format!("{name}::int"),
            _ => name,
        }
    };
    (0..table.columns.len()).map(|place| format!("{} AS {MARK}{place}", column(place))).collect::<Vec<_>>().join(", ")
}

fn sample(
    server: Server,
    session: &mut dyn Session,
    table: &Table,
    writer: &Writer<'_>,
) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
    let columns = sampled_columns(server, table, writer);
    session.query(&sampling(server, table, writer, (&columns, &[]), SAMPLE_MOST))
}
