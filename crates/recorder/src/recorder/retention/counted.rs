//! The number of retired readings, in the database itself: table `loadline_retired`. Main functions: [`ensure_tables`], [`read`].
//!
//! Each writer whose readings were retired has a row with their number, which the transaction that deletes them updates. The row of the writer -1, which
//! nobody is, has the last time that is known to be right.

use std::collections::{BTreeMap, BTreeSet};

use crate::database::{DatabaseError, Dialect, Session};
use crate::layout::recorded::ledger_table;
use crate::record::ColumnKind;
use crate::recorder::spool::FIRST_DIRECT_LANE;
use crate::recorder::writer::{LEDGER, ensure, is_duplicate};
use crate::statement::{Table, TableColumn};

/// The name of the table.
pub(super) const TABLE: &str = "loadline_retired";
/// The writer whose row has the clock.
const CLOCK: i64 = -1;

/// What the tables say about writers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Retired {
    /// The number of retired readings, by writer.
    pub rows: BTreeMap<i64, u64>,
    /// The writers of this recorder whose records come through the spool.
    pub spooled: BTreeSet<i64>,
    /// The last time that is known to be right, in nanoseconds since 1970; `None` if nothing was ever retired here.
    pub known_ns: Option<i64>,
}

impl Retired {
    /// Returns the number of retired readings that came through this recorder's spool, and of all others.
    pub(super) fn totals(&self) -> (u64, u64) {
        let of = |is_spooled: bool| {
            self.rows
                .iter()
                .filter(|(writer, _)| self.spooled.contains(writer) == is_spooled)
                .map(|(_, rows)| rows)
                .sum()
        };
        (of(true), of(false))
    }
}

/// Creates the table and the ledger's, which it refers to, unless they exist.
///
/// # Errors
/// The database's.
pub(super) fn ensure_tables(dialect: &dyn Dialect, session: &mut dyn Session) -> Result<(), DatabaseError> {
    let number = |name: &str| TableColumn { name: name.to_owned(), kind: ColumnKind::Int64, nullable: false };
    let table = Table {
        name: TABLE.to_owned(),
        columns: ["writer", "retired", "clock_ns"].map(number).into(),
        primary_key: vec!["writer".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    };
    ensure(dialect, session, &ledger_table(LEDGER))?;
    ensure(dialect, session, &table)
}

/// Reads the table. `recorders` are the names by which the ledger knows this recorder.
///
/// # Errors
/// The database's.
pub(super) fn read(session: &mut dyn Session, recorders: &BTreeSet<String>) -> Result<Retired, DatabaseError> {
    let mut retired = Retired::default();
    for row in session.query(&format!("SELECT writer, retired, clock_ns FROM {TABLE}"))? {
        match numbers(&row)[..] {
            [CLOCK, _, known_ns] => retired.known_ns = Some(known_ns),
            [writer, rows, _] => drop(retired.rows.insert(writer, u64::try_from(rows).unwrap_or(0))),
            _ => {}
        }
    }
    for row in session.query(&format!("SELECT writer, lane, recorder FROM {LEDGER}"))? {
        let is_own = row.get(2).and_then(Option::as_ref).is_some_and(|recorder| recorders.contains(recorder));
        match numbers(row.get(..2).unwrap_or_default())[..] {
            [writer, lane] if is_own && lane < i64::from(FIRST_DIRECT_LANE) => drop(retired.spooled.insert(writer)),
            _ => {}
        }
    }
    Ok(retired)
}

fn numbers(row: &[Option<String>]) -> Vec<i64> {
    row.iter().filter_map(|value| value.as_deref()?.parse().ok()).collect()
}

/// Stores the time that is known to be right, unless a later one is stored.
///
/// # Errors
/// The database's.
pub(super) fn store_clock(session: &mut dyn Session, known_ns: i64) -> Result<(), DatabaseError> {
    insert(session, CLOCK)?;
    session.run(&format!("UPDATE {TABLE} SET clock_ns = {known_ns} WHERE writer = {CLOCK} AND clock_ns < {known_ns}"))
}

/// Creates the row of a writer, unless it exists.
///
/// # Errors
/// The database's.
pub(super) fn insert(session: &mut dyn Session, writer: i64) -> Result<(), DatabaseError> {
    if !session.query(&format!("SELECT writer FROM {TABLE} WHERE writer = {writer}"))?.is_empty() {
        return Ok(());
    }
    match session.run(&format!("INSERT INTO {TABLE} VALUES ({writer}, 0, 0)")) {
        // Another recorder was quicker.
        Err(error) if is_duplicate(&error) => Ok(()),
        outcome => outcome,
    }
}

/// Returns the statement that counts retired readings of a writer.
pub(super) fn count(writer: i64, rows: u64) -> String {
    format!("UPDATE {TABLE} SET retired = retired + {rows} WHERE writer = {writer}")
}
