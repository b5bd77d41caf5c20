//! How the rows of a table become points. Main types: [`Shape`], and [`Rules`], what a store says of its points.
//!
//! Points with the same measurement, tags and time are one point. What tells two rows apart is therefore in tags or in the time: the source and the time of a reading, or the number of a record, which
//! is taken as a time. Everything else is a field: each combination of tags is a series, which the server keeps in an index.
//!
//! Invariant: the last column of the primary key is a field of every point, so that each row is found and counted by it.

use std::ops::RangeInclusive;

use crate::database::DatabaseError;
use crate::record::{Cell, ColumnKind};
use crate::statement::{Again, Program, Table};

/// The name of the measurement's field that says that it was made as a table, and names the field that every row has.
pub const MADE: &str = "loadline_made";

/// What a store says of its points.
#[derive(Debug)]
pub struct Rules {
    /// The name of the target, under which it refuses.
    pub name: &'static str,
    /// The name of the store, as in messages.
    pub store: &'static str,
    /// The nanoseconds in the unit of its times.
    pub unit_ns: i64,
    /// What is wrong with a time that is no whole number of them.
    pub between: &'static str,
    /// The time of the record with the number 0, in that unit.
    pub first: i64,
    /// A tag that every point has, with the table's name; `None` where the measurement alone tells tables apart.
    pub label: Option<&'static str>,
    /// The times that a point can have, in that unit.
    pub times: RangeInclusive<i64>,
    /// Returns why it cannot have a value in a column, although it has columns of that type; `None` where it can.
    pub refuses: fn(&Column, Cell) -> Option<&'static str>,
}

impl Rules {
    /// Returns the error for something that the store cannot do.
    pub fn refused(&self, why: &str) -> DatabaseError {
        DatabaseError::refused(self.name, why)
    }
}

/// Where a point has the value of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// Its time.
    Time,
    /// Its time, and a field.
    TimeAndField,
    /// A tag.
    Tag,
    /// A field.
    Field,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    pub kind: ColumnKind,
    pub nullable: bool,
    pub at: At,
}

/// The points of a table.
#[derive(Debug, Clone)]
pub struct Shape {
    /// What the store says of points.
    pub rules: &'static Rules,
    /// The name of the measurement.
    pub name: String,
    pub columns: Vec<Column>,
    /// The column with the number of a row, which is a field of every point.
    pub number: String,
    /// The tag that tells rounds apart, where a reading comes in several.
    pub again: Option<(String, Again)>,
}

impl Shape {
    /// Returns the points of a program's table.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where two rows could be one point, or a name means something else to the store.
    pub fn of(rules: &'static Rules, program: &Program, name: &str) -> Result<Self, DatabaseError> {
        let table = program.tables.iter().find(|table| table.name == name);
        let table = table.ok_or_else(|| rules.refused(&format!("the table {name} is none of the study's")))?;
        let apart = program.apart.iter().find(|apart| apart.table == name);
        let number = number_of(rules, table)?;
        let (source, again) = match (apart, &table.time) {
            (Some(apart), Some(_)) if apart.source.is_some() => (apart.source.as_deref(), apart.again),
            (Some(_), None) => (None, None),
            (None, None) if table.primary_key.len() == 1 => (None, None),
            _ => {
                return Err(
                    rules.refused(&format!("the rows of the table {name} are told apart by several columns together"))
                );
            }
        };
        let columns = table.columns.iter().map(|column| {
            let at = match &table.time {
                Some(time) if time.name == column.name => At::Time,
                Some(_) if Some(&*column.name) == source => At::Tag,
                None if column.name == number => At::TimeAndField,
                _ => At::Field,
            };
            Column { name: column.name.clone(), kind: column.kind, nullable: column.nullable, at }
        });
        let columns: Vec<Column> = columns.collect();
        let is_taken = |name: &str| name == MADE || name == "time" || !is_plain(name);
        if let Some(wrong) = columns.iter().map(|column| &*column.name).chain([name]).find(|name| is_taken(name)) {
            return Err(rules.refused(&format!("the name {wrong:?} means something else there, or cannot be written")));
        }
        let mut tag = "round".to_owned();
        while columns.iter().any(|column| column.name == tag) {
            tag.push('_');
        }
        let again = again.map(|again| (tag, again));
        Ok(Shape { rules, name: name.to_owned(), columns, number: number.to_owned(), again })
    }

    /// Returns a column of the table.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] where it has no such column.
    pub fn column(&self, name: &str) -> Result<&Column, DatabaseError> {
        let found = self.columns.iter().find(|column| column.name == name);
        found.ok_or_else(|| self.rules.refused(&format!("the table {} has no column {name}", self.name)))
    }
}

/// Returns whether line protocol can have a name: there is no way to write a backslash at its end, and a line that begins with # is a comment.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('#') && !name.contains(|letter: char| letter == '\\' || letter.is_control())
}

/// Returns the column with the number of a table's rows.
///
/// # Errors
/// [`DatabaseError::Refused`] where the last column of its key is no whole number, or there is none.
pub fn number_of<'a>(rules: &Rules, table: &'a Table) -> Result<&'a str, DatabaseError> {
    if table.numbered || !table.unique.is_empty() {
        return Err(
            rules.refused("it has tables without further unique columns and without rows that it numbers itself")
        );
    }
    let last = table.primary_key.last().and_then(|name| table.columns.iter().find(|column| column.name == *name));
    let number = last.filter(|column| {
        matches!(column.kind, ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64) && !column.nullable
    });
    match (number, &table.time) {
        (Some(column), time) if time.as_ref().is_none_or(|time| time.name != column.name) => Ok(&column.name),
        _ => Err(rules.refused(&format!(
            "the key of the table {} does not end with a number; as a tag, each of its values would be a series of its own, which {} keeps in an index",
            table.name, rules.store
        ))),
    }
}

impl Column {
    /// Returns why the column cannot have a value; `None` where it can.
    #[inline]
    pub fn refusal(&self, rules: &Rules, cell: Cell) -> Option<&'static str> {
        let is_time = matches!(self.at, At::Time | At::TimeAndField);
        match (cell, self.kind) {
            (Cell::Null, _) if !self.nullable || self.at != At::Field => Some("a null, which the column must not have"),
            (Cell::Null, _) => None,
            (Cell::Int(value), _) if is_time && self.time_of(rules, value).is_none() => {
                let is_between = self.at == At::Time && value % rules.unit_ns != 0;
                Some(if is_between { rules.between } else { "a number that no time can have there" })
            }
            (Cell::Int(value), ColumnKind::Int16) if i16::try_from(value).is_err() => Some("out of range of 16 bits"),
            (Cell::Int(value), ColumnKind::Int32) if i32::try_from(value).is_err() => Some("out of range of 32 bits"),
            (Cell::Int(_), ColumnKind::Int16 | ColumnKind::Int32 | ColumnKind::Int64 | ColumnKind::Float64) => None,
            (Cell::Float(value), ColumnKind::Float64) if !value.is_finite() => {
                Some("no finite number, which line protocol has no form for")
            }
            (Cell::Float(_), ColumnKind::Float64)
            | (Cell::Text(_), ColumnKind::Text(_) | ColumnKind::Json)
            | (Cell::Blob(_), ColumnKind::Blob(_)) => None,
            _ => Some("of another type"),
        }
        .or_else(|| (rules.refuses)(self, cell))
    }

    /// Returns the time of a point with this value in the column, in the store's unit; `None` where no point can have it.
    #[inline]
    pub fn time_of(&self, rules: &Rules, value: i64) -> Option<i64> {
        let time = match self.at {
            At::TimeAndField => value.checked_add(rules.first)?,
            _ if value % rules.unit_ns == 0 => value / rules.unit_ns,
            _ => return None,
        };
        rules.times.contains(&time).then_some(time)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::statement::{Apart, TableColumn, TimeColumn};

    /// A store whose times are nanoseconds.
    pub static RULES: Rules = Rules {
        name: "store",
        store: "Store",
        unit_ns: 1,
        between: "a time that is no whole millisecond",
        first: 0,
        label: None,
        times: i64::MIN + 2..=i64::MAX - 1,
        refuses: |_, _| None,
    };

    /// A store whose times are milliseconds, and whose records begin at the time 1,000.
    static OF_MILLISECONDS: Rules = Rules { unit_ns: 1_000_000, first: 1_000, times: 1..=5_000, ..RULES };

    /// A program with a table of readings: a number, a source, a time, a number that is measured and a text that may be null.
    pub fn readings(again: Option<Again>) -> Program {
        let column = |name: &str, kind| TableColumn { name: name.to_owned(), kind, nullable: name == "note" };
        let columns = vec![
            column("id", ColumnKind::Int64),
            column("source", ColumnKind::Int32),
            column("at ns", ColumnKind::Int64),
            column("v", ColumnKind::Float64),
            column("note", ColumnKind::Text(9)),
        ];
        let table = Table {
            name: "t,1".to_owned(),
            columns,
            primary_key: vec!["id".to_owned()],
            numbered: false,
            unique: Vec::new(),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            time: Some(TimeColumn { name: "at ns".to_owned(), partitions: None }),
        };
        let apart = Apart { table: "t,1".to_owned(), source: Some("source".to_owned()), again };
        Program { tables: vec![table], apart: vec![apart], rows_max: 10, ..Program::default() }
    }

    #[test]
    fn source_and_time_of_a_reading_are_tag_and_time_and_the_rest_is_fields() {
        let shape = Shape::of(&RULES, &readings(None), "t,1").unwrap();
        let at: Vec<At> = shape.columns.iter().map(|column| column.at).collect();
        assert_eq!(at, [At::Field, At::Tag, At::Time, At::Field, At::Field]);
        assert_eq!((&*shape.number, shape.again), ("id", None));
        let again = Again { round: 3, rounds: 9 };
        assert_eq!(Shape::of(&RULES, &readings(Some(again)), "t,1").unwrap().again, Some(("round".to_owned(), again)));
    }

    #[test]
    fn rows_without_a_time_lie_at_their_number() {
        let mut program = readings(None);
        (program.tables[0].time, program.apart) = (None, Vec::new());
        assert_eq!(Shape::of(&RULES, &program, "t,1").unwrap().columns[0].at, At::TimeAndField);
        program.tables[0].primary_key = vec!["source".to_owned(), "id".to_owned()];
        assert!(Shape::of(&RULES, &program, "t,1").unwrap_err().to_string().contains("several columns together"));
        program.tables[0].primary_key = vec!["note".to_owned()];
        assert!(Shape::of(&RULES, &program, "t,1").unwrap_err().to_string().contains("does not end with a number"));
        program.tables[0].primary_key = vec!["id".to_owned()];
        program.tables[0].columns[3].name = "time".to_owned();
        assert!(Shape::of(&RULES, &program, "t,1").unwrap_err().to_string().contains("the name \"time\""));
    }

    #[test]
    fn what_a_point_cannot_have_is_refused() {
        let column = |kind, at| Column { name: "c".to_owned(), kind, nullable: at == At::Field, at };
        for (kind, at, cell, is_refused) in [
            (ColumnKind::Int64, At::TimeAndField, Cell::Int(i64::MIN + 1), true),
            (ColumnKind::Int64, At::TimeAndField, Cell::Int(i64::MIN + 2), false),
            (ColumnKind::Int64, At::Time, Cell::Int(i64::MAX), true),
            (ColumnKind::Int64, At::Field, Cell::Int(i64::MIN), false),
            (ColumnKind::Int64, At::Time, Cell::Null, true),
            (ColumnKind::Int64, At::Field, Cell::Null, false),
            (ColumnKind::Int16, At::Field, Cell::Int(40_000), true),
            (ColumnKind::Float64, At::Field, Cell::Float(f64::NAN), true),
            (ColumnKind::Float64, At::Field, Cell::Float(-0.0), false),
            (ColumnKind::Int32, At::Field, Cell::Float(1.0), true),
        ] {
            assert_eq!(column(kind, at).refusal(&RULES, cell).is_some(), is_refused, "{kind:?} {at:?} {cell:?}");
        }
    }

    #[test]
    fn times_have_the_unit_of_the_store() {
        let column = |at| Column { name: "c".to_owned(), kind: ColumnKind::Int64, nullable: false, at };
        for (at, value, time) in [
            (At::Time, 3_000_000, Some(3)),
            (At::Time, 3_000_001, None),
            (At::Time, 0, None),
            (At::TimeAndField, 0, Some(1_000)),
            (At::TimeAndField, 4_001, None),
            (At::TimeAndField, i64::MAX, None),
        ] {
            assert_eq!(column(at).time_of(&OF_MILLISECONDS, value), time, "{at:?} {value}");
            assert_eq!(column(at).refusal(&OF_MILLISECONDS, Cell::Int(value)).is_none(), time.is_some());
        }
    }
}
