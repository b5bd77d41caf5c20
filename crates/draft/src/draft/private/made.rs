//! Describes how a table is created, in the database's own SQL.
//!
//! Main type: [`Maker`].

use super::described::{Described, referred, with_nulls};
use super::fills::fill_of;
use super::keys::{Keys, is_uuid, keys_of};
use super::rounded::rounded;
use crate::draft::catalogue::{Column, Holds, Server, Table};
use crate::draft::fit::{Place, from_spread};
use crate::trial::{ColumnFill, Fill, TableSettings};

/// The most rows of a referenced table whose keys are drawn.
const DRAWN_MOST: u32 = 100_000;
/// The number of letters of a text that MySQL indexes.
const INDEXED_LETTERS: u32 = 64;

/// Describes tables.
pub struct Maker<'m> {
    /// The place for which fills are made.
    pub place: &'m Place<'m>,
    /// All tables of the catalogue.
    pub tables: &'m [Table],
    /// The indices of the described tables, in the order in which they are created.
    pub included: &'m [usize],
}

impl Maker<'_> {
    /// Describes one table.
    pub fn describe(&self, number: usize) -> Described {
        let table = &self.tables[number];
        if let Some(definition) = &table.definition {
            let create = vec![format!("CREATE VIEW {} AS {definition}", table.quoted)];
            return self.described(table, create, format!("DROP VIEW {}", table.quoted), Vec::new());
        }
        let rows = table.rows.round().max(0.0) as u64;
        let mut keys = keys_of(self.place, table, rows);
        let mut remarks = Vec::new();
        self.refer(number, rows, &mut keys);
        let mut columns = Vec::new();
        for (place, column) in table.columns.iter().enumerate() {
            let fill = keys.fills[place].clone().map(Some).unwrap_or_else(|| {
                let fill = fill_of(self.place, column, table.rows)?;
                Some(if column.nullable { with_nulls(fill, column.spread.nulls) } else { fill })
            });
            match fill {
                Some(Fill::Null) | None => {}
                Some(fill) => columns.push(ColumnFill { name: column.name.clone(), fill }),
            }
            if column.plain_type.is_none() {
                remarks.push(format!(
                    "{} is of the type {}, which is not described: it is text here",
                    column.name, column.type_name
                ));
            }
        }
        for key in table.keys.iter().zip(&keys.holds).filter(|(_, holds)| !**holds).map(|(key, _)| key) {
            remarks.push(format!("the rows here may have the same {}: its key is an index", names(table, key)));
        }
        let create = vec![self.create(table, &keys)];
        let columns = if rows == 0 { Vec::new() } else { columns };
        let rows = if columns.is_empty() { 0 } else { rows };
        let then = self.then(table, &keys);
        let mut described = self.described(table, create, format!("DROP TABLE {}", table.quoted), remarks);
        if described.schema.is_none() {
            described.table.drop.clear();
        }
        let made = described.table;
        Described { table: TableSettings { rows, columns, then, ..made }, ..described }
    }

    /// Returns the description of a table or view that these statements create, in its schema.
    fn described(&self, table: &Table, create: Vec<String>, drop: String, remarks: Vec<String>) -> Described {
        let schema = (!table.is_visible).then(|| (self.place.writer.quote)(&table.schema));
        let made = schema.iter().map(|schema| format!("CREATE SCHEMA IF NOT EXISTS {schema}"));
        let settings = TableSettings {
            name: table.name.clone(),
            create: made.chain(create).collect(),
            rows: 0,
            columns: Vec::new(),
            then: Vec::new(),
            drop: vec![drop],
        };
        Described { table: settings, schema, remarks }
    }

    /// Fills columns that refer to other tables with keys that exist there.
    fn refer(&self, number: usize, rows: u64, keys: &mut Keys) {
        let table = &self.tables[number];
        for reference in &table.references {
            let own = &table.columns[reference.column];
            let Some(other) = referred(self.tables, &reference.schema, &reference.table) else { continue };
            let before = self.included.iter().take_while(|table| **table != number);
            if keys.fills[reference.column].is_some() || rows == 0 || !before.into_iter().any(|table| *table == other) {
                continue;
            }
            let other = &self.tables[other];
            let Some(of) = other.columns.iter().position(|column| column.name == reference.of) else { continue };
            let there = other.rows.round().max(1.0);
            let made = keys_of(self.place, other, there as u64).fills[of].clone();
            let drawn = match (made, from_spread(self.place, own)) {
                (Some(Fill::Sequence(low, 1)), Some(spread)) => {
                    let spread = if self.place.keeps_values { spread } else { rounded(spread) };
                    within(spread, low as f64, low as f64 + there - 1.0)
                }
                _ => None,
            };
            let (of, quoted) = ((self.place.writer.quote)(&reference.of), &other.quoted);
            let fill = drawn.unwrap_or_else(|| Fill::From(format!("SELECT {of} FROM {quoted} LIMIT {DRAWN_MOST}")));
            keys.fills[reference.column] = Some(if own.nullable { with_nulls(fill, own.spread.nulls) } else { fill });
        }
    }

    fn create(&self, table: &Table, keys: &Keys) -> String {
        let quote = self.place.writer.quote;
        let primary = self.primary(table, keys);
        let column = |(place, column): (usize, &Column)| {
            let kind = column.plain_type.as_deref().filter(|kind| !kind.is_empty());
            let kind = kind.unwrap_or(if self.place.server == Server::Sqlite { "" } else { "text" });
            let is_primary = primary.is_some_and(|key| key.contains(&place));
            let is_counted =
                primary.is_some_and(|key| key == [place]) && column.holds == Holds::Whole && column.makes_itself;
            let made = match self.place.server {
                Server::Postgres if is_counted => " GENERATED BY DEFAULT AS IDENTITY",
                Server::MySql | Server::MariaDb if is_counted => " AUTO_INCREMENT",
                Server::Postgres if is_uuid(column) => " DEFAULT gen_random_uuid()",
                Server::MariaDb if is_uuid(column) => " DEFAULT uuid()",
                _ => "",
            };
            // A value that the database made and that is not a key may be omitted by an INSERT.
            let is_filled =
                keys.fills[place].is_some() || fill_of(self.place, column, table.rows).is_some() || is_uuid(column);
            let is_required = is_primary || (!column.nullable && is_filled && !column.makes_itself);
            let null = if is_required { " NOT NULL" } else { "" };
            format!("{} {kind}{null}{made}", quote(&column.name)).replace("  ", " ")
        };
        let mut parts: Vec<String> = table.columns.iter().enumerate().map(column).collect();
        parts.extend(primary.map(|key| format!("PRIMARY KEY ({})", self.list(table, key))));
        // SQLite stores rows by their key if they have one.
        let suffix = table.suffix.as_deref().filter(|_| self.place.server != Server::Sqlite || primary.is_some());
        let suffix = suffix.map_or(String::new(), |suffix| format!(" {suffix}"));
        format!("CREATE TABLE {} (\n  {}\n){suffix}", table.quoted, parts.join(",\n  "))
    }

    /// Returns the key that becomes the primary key.
    fn primary<'t>(&self, table: &'t Table, keys: &Keys) -> Option<&'t [usize]> {
        let first = table.keys.first().filter(|_| keys.holds.first() == Some(&true))?;
        first.iter().all(|column| !table.columns[*column].nullable).then_some(first)
    }

    fn list(&self, table: &Table, columns: &[usize]) -> String {
        let is_long = |column: &Column| {
            let kind = column.plain_type.as_deref().unwrap_or("text").to_lowercase();
            matches!(self.place.server, Server::MySql | Server::MariaDb)
                && (kind.contains("text") || kind.contains("blob"))
        };
        let one = |column: &usize| {
            let column = &table.columns[*column];
            let letters = if is_long(column) { format!("({INDEXED_LETTERS})") } else { String::new() };
            format!("{}{letters}", (self.place.writer.quote)(&column.name))
        };
        columns.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Returns the statements that follow the rows: setting sequences, creating the other keys and indexes, and analysing the table.
    fn then(&self, table: &Table, keys: &Keys) -> Vec<String> {
        let (quote, literal) = (self.place.writer.quote, self.place.writer.literal);
        let primary = self.primary(table, keys);
        let own = table.quoted.as_str();
        let mut then = Vec::new();
        if let (Server::Postgres, Some([column])) = (self.place.server, primary) {
            let column = &table.columns[*column];
            if column.makes_itself && column.holds == Holds::Whole {
                let (name, of) = (quote(&column.name), literal(&column.name));
                then.push(format!(
                    "SELECT setval(pg_get_serial_sequence({}, {of}), coalesce(max({name}), 0) + 1, false) FROM {own}",
                    literal(own)
                ));
            }
        }
        let mut made: Vec<&[usize]> = primary.into_iter().collect();
        let unique = table.keys.iter().zip(&keys.holds).map(|(key, holds)| (key, *holds));
        let further = table.indexes.iter().map(|index| (index, false));
        for (columns, is_unique) in unique.chain(further) {
            if made.contains(&columns.as_slice()) {
                continue;
            }
            made.push(columns);
            let word = if is_unique { "UNIQUE INDEX" } else { "INDEX" };
            let index = quote(&format!("{}_{}", table.name.chars().take(50).collect::<String>(), made.len()));
            then.push(format!("CREATE {word} {index} ON {own} ({})", self.list(table, columns)));
        }
        if table.is_analysed {
            then.push(match self.place.server {
                Server::Postgres | Server::Sqlite => format!("ANALYZE {own}"),
                Server::MySql | Server::MariaDb => format!("ANALYZE TABLE {own}"),
            });
        }
        then
    }
}

/// Returns the names of some columns, for display.
fn names(table: &Table, columns: &[usize]) -> String {
    columns.iter().map(|column| table.columns[*column].name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Returns a numeric fill limited to a range; `None` for any other fill.
fn within(fill: Fill, low: f64, high: f64) -> Option<Fill> {
    Some(match fill {
        Fill::Uniform(from, to) => Fill::Uniform(from.clamp(low, high), to.clamp(low, high)),
        Fill::Quantiles(bounds) => Fill::Quantiles(bounds.into_iter().map(|bound| bound.clamp(low, high)).collect()),
        Fill::Zipf(from, to, exponent) if from as f64 >= low => Fill::Zipf(from, to.min(high as i64), exponent),
        Fill::Number(number) => Fill::Number(number.clamp(low, high)),
        Fill::Weighted(choices) => {
            let inner = choices.into_iter().map(|(fill, weight)| Some((within(fill, low, high)?, weight)));
            Fill::Weighted(inner.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}
