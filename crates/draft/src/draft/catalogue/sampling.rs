//! Queries for rows from all over a table, with a bounded number of rows.
//!
//! Main functions: [`sampling`], [`leading`].

use super::{Holds, MARK, Server, Table, Writer};

/// The number of slices of a large table.
pub const SLICES: u32 = 40;
/// The most values of a leading column of an index.
pub const LEADS_MOST: usize = 1_000;

/// Returns a query for a number of rows from all over a table. `columns` is its list of expressions, and `places` are the columns in it, if
/// any. Slices begin all over the range of the key or such a column, if an index begins with it and it holds whole numbers.
pub fn sampling(
    server: Server,
    table: &Table,
    writer: &Writer<'_>,
    (columns, places): (&str, &[usize]),
    most: u32,
) -> String {
    let quoted = &table.quoted;
    if table.rows <= f64::from(most) {
        return format!("SELECT {columns} FROM {quoted} LIMIT {most}");
    }
    if server == Server::Postgres && !table.is_view {
        let percent = (150.0 * f64::from(most) / table.rows).min(100.0);
        return format!("SELECT {columns} FROM {quoted} TABLESAMPLE SYSTEM ({percent:.6}) REPEATABLE (1) LIMIT {most}");
    }
    let range = |place: usize| {
        let column = &table.columns[place];
        let (low, high) = column.spread.range.as_ref().filter(|_| column.holds == Holds::Whole)?;
        Some((place, low.parse::<i64>().ok()?, high.parse::<i64>().ok()?))
    };
    let own = places.iter().copied().filter(|place| table.indexed.contains(place));
    let sliced = table.number_key().into_iter().chain(own).chain(table.indexed.iter().copied()).find_map(range);
    let Some((key, low, high)) = sliced else {
        return format!("SELECT {columns} FROM {quoted} LIMIT {most}");
    };
    let name = (writer.quote)(&table.columns[key].name);
    let each = (most / SLICES).max(1);
    let slice = |number: u32| {
        let from =
            low.saturating_add((i128::from(high.abs_diff(low)) * i128::from(number) / i128::from(SLICES)) as i64);
        format!(
            "SELECT * FROM (SELECT {columns} FROM {quoted} WHERE {name} >= {from} ORDER BY {name} LIMIT {each}) AS {MARK}{number}"
        )
    };
    (0..SLICES).map(slice).collect::<Vec<_>>().join(" UNION ALL ")
}

/// Returns a query for the distinct values of a column that leads an index, in order.
pub fn leading(server: Server, table: &Table, column: usize, writer: &Writer<'_>) -> String {
    let (name, quoted) = ((writer.quote)(&table.columns[column].name), &table.quoted);
    if server != Server::Sqlite {
        // These databases step from group to group in the index.
        return format!(
            "SELECT {name} AS {MARK} FROM {quoted} WHERE {name} IS NOT NULL GROUP BY {name} LIMIT {LEADS_MOST}"
        );
    }
    // SQLite would scan the whole index; here each value is found from the one before it.
    format!(
        "WITH RECURSIVE {MARK} AS (SELECT min({name}) AS value, 1 AS number FROM {quoted} UNION ALL \
         SELECT (SELECT min({name}) FROM {quoted} WHERE {name} > {MARK}.value), number + 1 FROM {MARK} \
         WHERE {MARK}.value IS NOT NULL AND number < {LEADS_MOST}) SELECT value FROM {MARK} WHERE value IS NOT NULL"
    )
}
