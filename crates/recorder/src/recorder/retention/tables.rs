//! The statements that find and delete old readings of a measurement. Main type: [`Tables`].
//!
//! Invariant: a reading is deleted only by a statement that compares its time stamp with the bound once more.

use crate::database::Dialect;
use crate::database::dialect::index_name;
use crate::layout::RECORD_ID;
use crate::layout::recorded::{MEASUREMENT, Shape, TIME};
use crate::recorder::writer::{Measurement, named, read_tables};

/// The number of sources whose oldest readings are asked for with one statement.
pub(super) const SOURCES: usize = 200;

/// The tables of a measurement, in the quotes of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tables {
    /// The table whose rows are the readings, unquoted.
    pub records_name: String,
    records: String,
    identities: Option<String>,
    second: Option<String>,
    id: String,
    time: String,
    source: String,
}

impl Tables {
    pub(super) fn of(measurement: &Measurement, dialect: &dyn Dialect) -> Self {
        let tables = read_tables(measurement);
        let [id, time, source] = [RECORD_ID, TIME, MEASUREMENT].map(|name| dialect.quote(name));
        let quoted = |name: &String| dialect.quote(name);
        Tables {
            records: dialect.quote(&tables.records),
            identities: tables.identities.as_ref().map(quoted),
            second: tables.second.as_ref().map(quoted),
            records_name: tables.records,
            id,
            time,
            source,
        }
    }

    /// Returns whether readings have numbers of their sources, by which they are found.
    pub(super) fn has_sources(&self) -> bool {
        self.identities.is_some()
    }

    /// Returns the columns with which an index must begin so that old readings are found by it.
    pub(super) fn index_columns(&self) -> Vec<&'static str> {
        if self.has_sources() { vec![MEASUREMENT, TIME] } else { vec![TIME] }
    }

    /// Returns the statement that makes that index.
    pub(super) fn make_index(&self, dialect: &dyn Dialect) -> String {
        let columns: Vec<String> = self.index_columns().into_iter().map(str::to_owned).collect();
        let name = dialect.quote(&index_name(&self.records_name, &columns));
        let columns: Vec<_> = columns.iter().map(|column| dialect.quote(column)).collect();
        format!("CREATE INDEX {name} ON {} ({})", self.records, columns.join(", "))
    }

    /// Returns the query for the next sources behind the number `above`, each with the time stamp of its oldest reading; `None` if readings have no sources.
    /// The oldest is the first of an index, in every database; a minimum is not, in MariaDB.
    pub(super) fn oldest_of_sources(&self, above: i64) -> Option<String> {
        let Tables { records, identities, source, time, .. } = self;
        let identities = identities.as_ref()?;
        Some(format!(
            "SELECT s.{source}, (SELECT r.{time} FROM {records} r WHERE r.{source} = s.{source} ORDER BY r.{time} LIMIT 1) \
             FROM (SELECT {source} FROM {identities} WHERE {source} > {above} ORDER BY {source} LIMIT {SOURCES}) s ORDER BY s.{source}"
        ))
    }

    /// Returns the query for the time stamp of the oldest of all readings.
    pub(super) fn oldest_of_all(&self) -> String {
        let Tables { records, time, .. } = self;
        format!("SELECT {time} FROM {records} ORDER BY {time} LIMIT 1")
    }

    /// Returns the query for the numbers and time stamps of the oldest readings with time stamps from `from_ns` on and before `before_ns`; of one source, if readings have
    /// sources.
    pub(super) fn oldest(&self, of_source: Option<i64>, (from_ns, before_ns): (i64, i64), most: u32) -> String {
        let Tables { records, source, time, id, .. } = self;
        let of_source = of_source.map_or(String::new(), |number| format!("{source} = {number} AND "));
        format!(
            "SELECT {id}, {time} FROM {records} WHERE {of_source}{time} >= {from_ns} AND {time} < {before_ns} ORDER BY {time} LIMIT {most}"
        )
    }

    /// Returns the statements that delete readings by their numbers: what belongs to them first, if it is in a table of its own, and then the readings.
    pub(super) fn delete(&self, ids: &[i64], before_ns: i64) -> Vec<String> {
        let Tables { records, second, time, id, .. } = self;
        let ids: Vec<_> = ids.iter().map(i64::to_string).collect();
        let ids = ids.join(", ");
        let second = second.as_ref().map(|second| format!("DELETE FROM {second} WHERE {id} IN ({ids})"));
        let records = format!("DELETE FROM {records} WHERE {id} IN ({ids}) AND {time} < {before_ns}");
        second.into_iter().chain([records]).collect()
    }
}

/// Returns the queries with which readings of a measurement of this name and layout are found that are older than `before_ns`, so that their plans can be looked at.
pub fn finding(shape: Shape, name: &str, dialect: &dyn Dialect, before_ns: i64) -> Vec<String> {
    let tables = Tables::of(&named(shape, name), dialect);
    let of_source = tables.has_sources().then_some(1);
    let first = tables.oldest_of_sources(i64::MIN).unwrap_or_else(|| tables.oldest_of_all());
    vec![first, tables.oldest(of_source, (0, before_ns), 100)]
}
