//! Queries over records whose fields are not typed columns.
//!
//! Main function: [`text`]. Invariant: a value is converted to a number only where its name says that it is one: databases may evaluate
//! conditions in any order and fail at a text that is no number.

use super::{Dialect, comparison, latest, select_words};
use crate::record::ColumnKind;
use crate::statement::{Form, SelectRecords, TableColumn};

/// Returns the query's text; `value` gives the placeholder, or the text, of the bound value with a number.
pub(super) fn text(dialect: &dyn Dialect, select: &SelectRecords, value: &dyn Fn(usize) -> String) -> String {
    match &select.form {
        Form::Document(document) => {
            let whole = vec![dialect.quote(&select.key.name), dialect.quote(document)];
            let document = dialect.quote(document);
            plain(dialect, select, value, whole, &|column| dialect.member_of(&document, &column.name, column.kind))
        }
        Form::Texts => plain(dialect, select, value, vec!["*".to_owned()], &|column| {
            dialect.value_of_text(&dialect.quote(&column.name), column.kind)
        }),
        Form::Rows { attribute, value: of } => {
            pivot(dialect, select, value, &dialect.quote(attribute), &dialect.quote(of))
        }
    }
}

/// Returns the query for tables where one row is one record.
fn plain(
    dialect: &dyn Dialect,
    select: &SelectRecords,
    value: &dyn Fn(usize) -> String,
    whole: Vec<String>,
    expression: &dyn Fn(&TableColumn) -> String,
) -> String {
    let expression = |column: &TableColumn| {
        if column.name == select.key.name { dialect.quote(&column.name) } else { expression(column) }
    };
    let columns = if select.columns.is_empty() { whole } else { select.columns.iter().map(expression).collect() };
    let words = select_words(dialect, select.hints);
    let table = dialect.quote(&select.table);
    let source = match select.window {
        Some(records) => format!("{} AS {table}", latest(&table, "*", &dialect.quote(&select.key.name), records)),
        None => table,
    };
    let mut sql = format!("{words} {} FROM {source}", columns.join(", "));
    for (number, (column, by)) in select.conditions.iter().enumerate() {
        let word = if number == 0 { "WHERE" } else { "AND" };
        sql += &format!(" {word} {} {} {}", expression(column), comparison(*by), value(number));
    }
    sql + &ending(select, &expression)
}

/// Returns the query for records of several rows, which become one: matching records are found by a query of the attribute for each condition.
fn pivot(
    dialect: &dyn Dialect,
    select: &SelectRecords,
    value: &dyn Fn(usize) -> String,
    attribute: &str,
    of: &str,
) -> String {
    let (table, key) = (dialect.quote(&select.table), dialect.quote(&select.key.name));
    let is = |column: &TableColumn| format!("{attribute} = {}", dialect.literal(&column.name));
    let cell = |column: &TableColumn, value: &str| format!("CASE WHEN {} THEN {value} END", is(column));
    let typed = |column: &TableColumn| cell(column, &dialect.value_of_text(of, column.kind));
    let shown = |column: &TableColumn| match column.name == select.key.name {
        true => key.clone(),
        false => format!("MAX({})", typed(column)),
    };
    let columns: Vec<String> = std::iter::once(key.clone())
        .chain(select.columns.iter().filter(|c| c.name != select.key.name).map(shown))
        .collect();
    // A record is in the window if its key is not below the window's lowest; the keys of rows searched are bounded too, so
    // that no others are read.
    let oldest = select.window.map(|records| {
        let keys = latest(&table, &format!("DISTINCT {key}"), &key, records);
        format!("{key} >= (SELECT MIN({key}) FROM {keys} AS {})", dialect.quote("latest_keys"))
    });
    let within = oldest.as_ref().map_or(String::new(), |oldest| format!(" AND {oldest}"));
    let mut wheres: Vec<String> = oldest.into_iter().collect();
    for (number, (column, by)) in select.conditions.iter().enumerate() {
        let (by, value) = (comparison(*by), value(number));
        wheres.push(match column.name == select.key.name {
            true => format!("{key} {by} {value}"),
            false => {
                let holds = format!("{} AND {} {by} {value}", is(column), typed(column));
                format!("{key} IN (SELECT {key} FROM {table} WHERE {holds}{within})")
            }
        });
    }
    let read = select.columns.iter().chain(select.order.iter().map(|(column, _)| column));
    let mut names: Vec<String> = read.map(|column| dialect.literal(&column.name)).collect();
    names.sort();
    names.dedup();
    // Without this, every field of each matching record would be read.
    if names.iter().any(|name| *name != dialect.literal(&select.key.name)) {
        wheres.push(format!("{attribute} IN ({})", names.join(", ")));
    }
    let wheres = if wheres.is_empty() { String::new() } else { format!(" WHERE {}", wheres.join(" AND ")) };
    let words = select_words(dialect, select.hints);
    format!("{words} {} FROM {table}{wheres} GROUP BY {key}{}", columns.join(", "), ending(select, &shown))
}

fn ending(select: &SelectRecords, expression: &dyn Fn(&TableColumn) -> String) -> String {
    let mut sql = String::new();
    for (number, (column, descending)) in select.order.iter().enumerate() {
        let word = if number == 0 { " ORDER BY" } else { "," };
        sql += &format!("{word} {}{}", expression(column), if *descending { " DESC" } else { "" });
    }
    if let Some(rows) = select.limit {
        sql += &format!(" LIMIT {rows}");
    }
    sql
}

/// Returns a text as a value of a type, in standard SQL.
pub(super) fn value_of_text(text: &str, kind: ColumnKind, whole: &str, fractional: &str) -> String {
    match kind {
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => format!("CAST({text} AS {whole})"),
        ColumnKind::Float64 => format!("CAST({text} AS {fractional})"),
        ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json => text.to_owned(),
    }
}
