//! Queries: the wanted records and columns, whatever the layout. Main type: [`Query`].
//!
//! Invariant: the records alone decide what a query finds; every layout and every database must return the same number of rows.

use serde::{Deserialize, Serialize};

use crate::record::{Cell, Cells, ColumnKind, Generator, RecordType};
use crate::statement::Comparison;

/// A query of the workload `query`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Name, by which `workload.query` chooses it.
    pub name: String,
    /// Conditions, all of which must hold; empty for all records.
    pub conditions: Vec<QueryCondition>,
    /// The columns read from each record found.
    pub columns: Projection,
    /// Columns that the answer is ordered by; `true` is descending.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub order: Vec<(String, bool)>,
    /// Largest number of rows; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub limit: Option<u64>,
    /// Number of latest records to which the query is restricted: `workload.window`. `None` for all records.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window: Option<u64>,
    /// Number of rows that the query finds according to its source, with `record.scale` 1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rows: Option<u64>,
    /// Whether the database must join tables in the order in which the layout names them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub straight_join: bool,
    /// Whether the database is told to keep the answer in its query cache, or not to keep it; `None` gives no hint.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cache: Option<bool>,
}

/// A comparison of a column with a constant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueryCondition {
    /// An identity or value column of the record type.
    pub column: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The constant with which the column is compared.
    pub value: Constant,
}

/// A constant of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Constant {
    /// A whole number.
    Int(i64),
    /// A fractional number.
    Float(f64),
    /// A text.
    Text(String),
}

/// The columns read from each record found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Projection {
    /// The identity columns.
    Identity,
    /// The hot value columns.
    Hot,
    /// All columns.
    All,
    /// All of the record's columns that the layout keeps in the table of the conditions' first column, which need no join. The
    /// columns differ between layouts, the rows do not.
    OneTable,
    /// The named columns.
    Columns(Vec<String>),
}

/// A column of a record type, by its index among the identity columns or among the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Index among the identity columns.
    Identity(usize),
    /// Index among the value columns.
    Value(usize),
}

impl Place {
    /// Returns the column at this place.
    pub fn column(self, record_type: &RecordType) -> &crate::record::Column {
        match self {
            Place::Identity(place) => &record_type.identity[place],
            Place::Value(place) => &record_type.values[place],
        }
    }
}

/// Returns the place of the column with a name, if the record type has it.
pub fn place_of(record_type: &RecordType, name: &str) -> Option<Place> {
    let find = |columns: &[crate::record::Column]| columns.iter().position(|column| column.name == name);
    find(&record_type.identity).map(Place::Identity).or_else(|| find(&record_type.values).map(Place::Value))
}

impl Query {
    /// Checks the query against a record type.
    ///
    /// # Errors
    /// A sentence that names the query, the error and the valid choices.
    pub fn check(&self, record_type: &RecordType) -> Result<(), String> {
        let at = format!("workload.queries, query \"{}\"", self.name);
        let known = |name: &str| {
            place_of(record_type, name).ok_or_else(|| {
                let columns = record_type.identity.iter().chain(&record_type.values);
                let names: Vec<_> = columns.map(|column| column.name.as_str()).collect();
                let type_name = &record_type.name;
                format!("{at}: record type \"{type_name}\" has no column \"{name}\"; it has {}", names.join(", "))
            })
        };
        for condition in &self.conditions {
            let place = known(&condition.column)?;
            let column = place.column(record_type);
            if place == Place::Identity(record_type.identity_end.unwrap_or(usize::MAX)) {
                let why = "it is written when a measurement ends, and layouts differ in what it is before";
                return Err(format!("{at}: {} cannot be compared; {why}", column.name));
            }
            let fits = match (&condition.value, column.kind) {
                (Constant::Int(_), kind) => {
                    !matches!(kind, ColumnKind::Text(_) | ColumnKind::Blob(_) | ColumnKind::Json)
                }
                (Constant::Float(_), kind) => kind == ColumnKind::Float64,
                (Constant::Text(_), kind) => matches!(kind, ColumnKind::Text(_)),
            };
            if !fits {
                let (name, must) = (&column.name, must_be(column.kind));
                return Err(format!("{at}: {name} is compared with {}; {must}", show(&condition.value)));
            }
            if let (Constant::Int(value), Some(bounds)) = (&condition.value, bounds(column.kind))
                && !bounds.contains(value)
            {
                let (low, high) = (bounds.start(), bounds.end());
                return Err(format!("{at}: {} is compared with {value}; it is from {low} to {high}", column.name));
            }
        }
        let named = if let Projection::Columns(names) = &self.columns { names.as_slice() } else { &[] };
        named.iter().chain(self.order.iter().map(|(name, _)| name)).try_for_each(|name| known(name).map(|_| ()))?;
        let is_empty = match &self.columns {
            Projection::Identity => record_type.identity.is_empty(),
            Projection::Hot => !record_type.values.iter().any(|column| column.hot),
            Projection::Columns(names) => names.is_empty(),
            Projection::All | Projection::OneTable => false,
        };
        if is_empty {
            let type_name = &record_type.name;
            return Err(format!(
                "{at}: there are no such columns in record type \"{type_name}\"; write columns = \"all\""
            ));
        }
        Ok(())
    }
}

/// Returns how many of the first `rows` records each query finds; generates only the values that conditions compare.
pub fn count_found(queries: &[Query], generator: &dyn Generator, rows: u64) -> Vec<u64> {
    let mut counting: Vec<Counting<'_>> = Vec::with_capacity(queries.len());
    // Values that any condition compares, each generated once per record.
    let mut made: Vec<usize> = Vec::new();
    for query in queries {
        let (mut of_identity, mut of_values) = (Vec::new(), Vec::new());
        for condition in &query.conditions {
            match place_of(generator.record_type(), &condition.column) {
                Some(Place::Identity(place)) => of_identity.push((condition, place)),
                Some(Place::Value(place)) => {
                    let cell = made.iter().position(|known| *known == place).unwrap_or_else(|| {
                        made.push(place);
                        made.len() - 1
                    });
                    of_values.push((condition, cell));
                }
                None => {}
            }
        }
        let first = query.window.map_or(0, |window| rows.saturating_sub(window));
        counting.push(Counting { first, of_identity, of_values, is_possible: false, count: 0 });
    }
    let (mut identity, mut cells) = (Cells::new(), Cells::new());
    let mut record = counting.iter().map(|query| query.first).min().unwrap_or(rows);
    let mut next_measurement = record;
    while record < rows {
        if record == next_measurement {
            let measurement = generator.measurement_of(record);
            next_measurement = match generator.alternating() {
                Some(_) => record + 1,
                None => generator.first_record_of(measurement + 1),
            };
            identity.clear();
            generator.identity(measurement, 1, &mut identity);
            counting.iter_mut().for_each(|query| query.is_possible = holds(&query.of_identity, &identity));
        }
        cells.clear();
        made.iter().for_each(|place| generator.value(record, *place, &mut cells));
        for query in counting.iter_mut().filter(|query| query.is_possible && query.first <= record) {
            query.count += u64::from(holds(&query.of_values, &cells));
        }
        record += 1;
    }
    let limited = |(query, counting): (&Query, Counting<'_>)| query.limit.unwrap_or(u64::MAX).min(counting.count);
    queries.iter().zip(counting).map(limited).collect()
}

/// A query whose records are being counted: its conditions with the places of the columns that they compare.
struct Counting<'a> {
    /// The first record within the query's window.
    first: u64,
    of_identity: Vec<(&'a QueryCondition, usize)>,
    of_values: Vec<(&'a QueryCondition, usize)>,
    /// Whether records of the current measurement can match.
    is_possible: bool,
    count: u64,
}

fn holds(conditions: &[(&QueryCondition, usize)], cells: &Cells) -> bool {
    conditions.iter().all(|(condition, place)| condition.holds(cells.get(*place), cells))
}

impl QueryCondition {
    /// Returns whether the comparison holds by the rules of SQL: with null it never holds.
    fn holds(&self, cell: Cell, cells: &Cells) -> bool {
        use std::cmp::Ordering;
        let text = |span| std::str::from_utf8(cells.bytes_of(span)).unwrap_or_default();
        let ordering = match (cell, &self.value) {
            (Cell::Int(cell), Constant::Int(value)) => Some(cell.cmp(value)),
            (Cell::Float(cell), Constant::Int(value)) => cell.partial_cmp(&(*value as f64)),
            (Cell::Float(cell), Constant::Float(value)) => cell.partial_cmp(value),
            (Cell::Text(span), Constant::Text(value)) => Some(text(span).cmp(value)),
            _ => None,
        };
        ordering.is_some_and(|ordering| match self.comparison {
            Comparison::Equal => ordering == Ordering::Equal,
            Comparison::NotEqual => ordering != Ordering::Equal,
            Comparison::Less => ordering == Ordering::Less,
            Comparison::LessOrEqual => ordering != Ordering::Greater,
            Comparison::Greater => ordering == Ordering::Greater,
            Comparison::GreaterOrEqual => ordering != Ordering::Less,
        })
    }

    /// Appends the constant as a value of a column's kind.
    pub fn append(&self, kind: ColumnKind, out: &mut Cells) {
        match &self.value {
            Constant::Int(value) if kind == ColumnKind::Float64 => out.float(*value as f64),
            Constant::Int(value) => out.int(*value),
            Constant::Float(value) => out.float(*value),
            Constant::Text(value) => out.text(value),
        }
    }
}

fn bounds(kind: ColumnKind) -> Option<std::ops::RangeInclusive<i64>> {
    match kind {
        ColumnKind::Int16 => Some(i64::from(i16::MIN)..=i64::from(i16::MAX)),
        ColumnKind::Int32 => Some(i64::from(i32::MIN)..=i64::from(i32::MAX)),
        _ => None,
    }
}

fn show(value: &Constant) -> String {
    match value {
        Constant::Int(value) => value.to_string(),
        Constant::Float(value) => value.to_string(),
        Constant::Text(value) => format!("'{value}'"),
    }
}

fn must_be(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 => "it is a whole number",
        ColumnKind::Float64 => "it is a number",
        ColumnKind::Text(_) => "it is text, as in 'abc'",
        ColumnKind::Blob(_) | ColumnKind::Json => "bytes and documents cannot be compared",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(comparison: Comparison, value: Constant) -> QueryCondition {
        QueryCondition { column: "c".to_owned(), comparison, value }
    }

    #[test]
    fn conditions_hold_as_in_sql() {
        let mut cells = Cells::new();
        cells.int(5);
        cells.float(5.5);
        cells.text("b");
        cells.null();
        let holds = |place: usize, comparison, value| condition(comparison, value).holds(cells.get(place), &cells);
        assert!(holds(0, Comparison::GreaterOrEqual, Constant::Int(5)));
        assert!(!holds(0, Comparison::NotEqual, Constant::Int(5)));
        assert!(holds(1, Comparison::Greater, Constant::Int(5)) && !holds(1, Comparison::Less, Constant::Float(5.5)));
        assert!(holds(2, Comparison::LessOrEqual, Constant::Text("b".to_owned())));
        assert!(!holds(3, Comparison::NotEqual, Constant::Int(1)), "nothing can be said of null");
    }
}
