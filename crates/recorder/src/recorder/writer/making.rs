//! Creates the tables and columns that records need, one after the other: claimed, created, then put into the registry. Main type: [`Making`]; the way in is [`Registry::extend`].
//!
//! Invariant: the catalogue gets what stands in the registry, never what was only meant to stand there: if another recorder was quicker,
//! its line is read.

use std::collections::HashSet;
use std::sync::Arc;

use super::catalogue::{Catalogue, Column, FieldKind, Measurement, Role, Shape};
use super::claims::{Claimed, Claims, Wanted};
use super::names::{REGISTRY as TABLE, table_names};
use super::needs::Need;
use super::refusal::{Meaning, is_duplicate, meaning};
use super::registry::{Registry, empty_measurement, ensure, has_columns};
use super::shape::{Tables, described, own_tables};
use super::texts::{encoded, literal};
use crate::database::dialect::create_table;
use crate::database::{Database, DatabaseError, Dialect, Session};
use crate::layout::recorded::{MORE, hash_hex};
use crate::record::ColumnKind;
use crate::statement::Table;

/// The number of table names that are tried before a measurement is held to be impossible.
const NAMES_MAX: usize = 30;

impl Registry {
    /// Creates what is needed, and returns the catalogue with it. What the database refuses for good is noted there as impossible.
    ///
    /// # Errors
    /// Returns the database's error; what was created stays, and is found again.
    pub(super) fn extend(
        &self,
        needs: &[Need],
        database: &dyn Database,
        session: &mut dyn Session,
    ) -> Result<Arc<Catalogue>, DatabaseError> {
        self.change(session, |session, catalogue| {
            let is_overtaken = false;
            let mut making = Making { registry: self, dialect: database.dialect(), session, catalogue, is_overtaken };
            needs.iter().try_for_each(|need| making.make(need, needs))?;
            Ok(making.is_overtaken)
        })
    }
}

/// The state of creating tables and columns.
struct Making<'a> {
    registry: &'a Registry,
    dialect: &'a dyn Dialect,
    session: &'a mut dyn Session,
    catalogue: &'a mut Catalogue,
    /// Whether another recorder has already put into the registry what was to be put there.
    is_overtaken: bool,
}

impl Making<'_> {
    fn make(&mut self, need: &Need, all: &[Need]) -> Result<(), DatabaseError> {
        match need {
            Need::Measurement(name) if self.catalogue.find(name).is_none() => self.make_measurement(name, all),
            Need::Measurement(_) => Ok(()),
            Need::Column { measurement, role, name, kind } => self.make_column(measurement, *role, name, *kind),
            Need::More(measurement) => self.make_more(measurement),
        }
    }

    /// Creates the tables of a measurement, with all needed columns at once.
    fn make_measurement(&mut self, name: &str, all: &[Need]) -> Result<(), DatabaseError> {
        let most = self.registry.measurements_max;
        if self.catalogue.measurements().len() >= most {
            let reason = format!("there are {most} measurements already; schema.measurements_max bounds them");
            self.catalogue.note_impossible(name, &reason);
            return Ok(());
        }
        let Some(mut measurement) = self.claim_tables(name)? else {
            self.catalogue.note_impossible(name, "no name is free for its tables");
            return Ok(());
        };
        let bare = Tables::of(&measurement, self.registry.time_index).tables;
        let wanted: Vec<Wanted<'_>> = all
            .iter()
            .filter_map(|need| match need {
                Need::Column { measurement: of, role, name, kind } if of == &measurement.name => {
                    Some((*role, name.as_str(), *kind))
                }
                _ => None,
            })
            .filter(|(role, _, _)| measurement.shape.has_field_columns() || *role == Role::Tag)
            .collect();
        let claimed = self.claim_columns(&measurement, &wanted)?;
        for ((role, name, _), claimed) in wanted.iter().zip(claimed) {
            let column = self.column_of(name, claimed);
            measurement.columns_mut(*role).add(column);
        }
        for (table, bare) in Tables::of(&measurement, self.registry.time_index).tables.iter().zip(&bare) {
            match self.make_table(table, bare) {
                Err(error) if is_for_good(&error) || is_taken(&error) => {
                    self.catalogue.note_impossible(name, &error.to_string());
                    return Ok(());
                }
                outcome => outcome?,
            }
        }
        if !self.register(&measurement, "table", "", "", self.registry.shape.name())? {
            return Ok(());
        }
        for role in [Role::Tag, Role::Field] {
            for column in measurement.columns(role).as_slice().to_vec() {
                if !self.register_column(&measurement, role, &column)? {
                    return Ok(());
                }
            }
        }
        self.catalogue.add(measurement);
        Ok(())
    }

    /// Returns a measurement whose tables have names that nobody else has; `None` if all names that were tried are taken.
    fn claim_tables(&mut self, name: &str) -> Result<Option<Measurement>, DatabaseError> {
        let registered = own_tables(self.catalogue);
        let registered: HashSet<String> = registered.into_iter().map(|table| table.to_lowercase()).collect();
        let dialect = self.dialect;
        let is_there = |session: &mut dyn Session, table: &str| {
            Ok(registered.contains(&table.to_lowercase()) || has_columns(dialect, session, table, &[])?)
        };
        for table in table_names(name).take(NAMES_MAX) {
            let measurement = empty_measurement(name, &table, self.registry.shape);
            let names = Tables::of(&measurement, self.registry.time_index).names();
            if Claims::of(self.session).tables(&measurement, &names, is_there)? {
                return Ok(Some(measurement));
            }
        }
        Ok(None)
    }

    fn claim_columns(
        &mut self,
        measurement: &Measurement,
        wanted: &[Wanted<'_>],
    ) -> Result<Vec<Claimed>, DatabaseError> {
        let (dialect, hot) = (self.dialect, &self.registry.hot);
        let is_there = |session: &mut dyn Session, role: Role, name: &str, column: &str| {
            let table = described(measurement).table_of(role == Role::Tag, hot.iter().any(|hot| hot == name));
            has_columns(dialect, session, &table, &[column])
        };
        Claims::of(self.session).columns(measurement, wanted, is_there)
    }

    /// Creates a table; if a killed recorder has left it, adds what it lacks. `bare` is the same table without columns of clients,
    /// by which such a table is told from somebody else's.
    fn make_table(&mut self, table: &Table, bare: &Table) -> Result<(), DatabaseError> {
        let Err(error) = ensure(self.dialect, self.session, table) else { return self.make_indexes(table) };
        let own: Vec<_> = bare.columns.iter().map(|column| column.name.as_str()).collect();
        if !is_taken(&error) || !has_columns(self.dialect, self.session, &table.name, &own)? {
            return Err(error);
        }
        for column in table.columns.iter().filter(|column| !own.contains(&column.name.as_str())) {
            self.add_column(&table.name, &column.name, column.kind)?;
        }
        self.make_indexes(table)
    }

    fn make_indexes(&mut self, table: &Table) -> Result<(), DatabaseError> {
        for sql in create_table(self.dialect, table).iter().skip(1) {
            match self.session.run_change(sql) {
                Err(error) if is_taken(&error) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn column_of(&self, name: &str, claimed: Claimed) -> Column {
        let hot = self.registry.hot.iter().any(|hot| hot == name);
        Column { name: name.to_owned(), column: claimed.column, kind: claimed.kind, hot }
    }

    fn make_column(&mut self, measurement: &str, role: Role, name: &str, kind: FieldKind) -> Result<(), DatabaseError> {
        let Some(place) = self.catalogue.find(measurement) else { return Ok(()) };
        let known = self.catalogue.measurements()[place].clone();
        if known.columns(role).find(name).is_some() || (role == Role::Field && !known.shape.has_field_columns()) {
            return Ok(());
        }
        let Some(claimed) = self.claim_columns(&known, &[(role, name, kind)])?.pop() else { return Ok(()) };
        let column = self.column_of(name, claimed);
        let table = described(&known).table_of(role == Role::Tag, column.hot);
        match self.add_column(&table, &column.column, column.kind.column_kind()) {
            Ok(()) => {
                let is_ours = self.register_column(&known, role, &column)?;
                if let Some(known) = self.catalogue.get_mut(place).filter(|_| is_ours) {
                    known.columns_mut(role).add(column);
                }
                Ok(())
            }
            Err(error) if is_for_good(&error) => {
                if let Some(known) = self.catalogue.get_mut(place) {
                    known.impossible.note((role, name.to_owned()), name.len(), &error.to_string());
                }
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn make_more(&mut self, measurement: &str) -> Result<(), DatabaseError> {
        let Some(place) = self.catalogue.find(measurement) else { return Ok(()) };
        let known = self.catalogue.measurements()[place].clone();
        if known.has_more {
            return Ok(());
        }
        if known.shape.has_field_columns() {
            self.add_column(&described(&known).record_table(), MORE, ColumnKind::Json)?;
        }
        if known.shape.has_identity() {
            self.add_column(&described(&known).identity_table(), MORE, ColumnKind::Json)?;
        }
        self.register(&known, "more", "", MORE, "json")?;
        if let Some(known) = self.catalogue.get_mut(place) {
            known.has_more = true;
        }
        Ok(())
    }

    /// Adds a column to a table, unless a crash left it there without its line in the registry.
    fn add_column(&mut self, table: &str, name: &str, kind: ColumnKind) -> Result<(), DatabaseError> {
        if has_columns(self.dialect, self.session, table, &[name])? {
            return Ok(());
        }
        let (quoted, column) = (self.dialect.quote(table), self.dialect.quote(name));
        let alter = format!("ALTER TABLE {quoted} ADD COLUMN {column} {}", self.dialect.column_type(kind));
        match self.session.run_change(&alter) {
            // Another recorder's column, or one that a killed recorder had sent, may have come first.
            Err(error @ DatabaseError::Refused { .. }) => {
                has_columns(self.dialect, self.session, table, &[name])?.then_some(()).ok_or(error)
            }
            outcome => outcome,
        }
    }

    /// Puts a column into the registry; returns whether this recorder did, and not another one.
    fn register_column(
        &mut self,
        measurement: &Measurement,
        role: Role,
        column: &Column,
    ) -> Result<bool, DatabaseError> {
        if column.hot && measurement.shape == Shape::StarHot && role == Role::Field {
            self.register(measurement, "hot", &column.name, &column.column, "")?;
        }
        self.register(measurement, role.name(), &column.name, &column.column, column.kind.name())
    }

    /// Writes a line of the registry; returns false if another recorder was quicker.
    fn register(
        &mut self,
        measurement: &Measurement,
        role: &str,
        name: &str,
        column: &str,
        kind: &str,
    ) -> Result<bool, DatabaseError> {
        let values = [
            literal(&hash_hex(&[&measurement.name, role, name])),
            format!("(SELECT place FROM (SELECT COALESCE(MAX(place), 0) + 1 AS place FROM {TABLE}) AS newest)"),
            literal(&encoded(&measurement.name)),
            literal(&measurement.table),
            literal(role),
            literal(&encoded(name)),
            literal(column),
            literal(kind),
        ];
        match self.session.run(&format!("INSERT INTO {TABLE} VALUES ({})", values.join(", "))) {
            Err(error) if is_duplicate(&error) => {
                self.is_overtaken = true;
                Ok(false)
            }
            outcome => outcome.map(|()| true),
        }
    }
}

/// Returns whether a table will never get a column: it has too many, or rows that are too wide.
fn is_for_good(error: &DatabaseError) -> bool {
    let DatabaseError::Refused { code, message } = error else { return false };
    let known = ["1117", "1118", "1166", "54011", "54000"].contains(&code.as_str());
    known || message.contains("too many columns") || (meaning(error) == Meaning::Record && !is_duplicate(error))
}

/// Returns whether a table or an index of that name exists. If another session creates one at the same time, PostgreSQL reports a violated key of its own
/// catalogue.
fn is_taken(error: &DatabaseError) -> bool {
    let DatabaseError::Refused { code, message } = error else { return false };
    ["1050", "1061", "42P07"].contains(&code.as_str()) || message.contains("already exists") || is_duplicate(error)
}

#[cfg(test)]
#[path = "making_tests.rs"]
mod tests;
