//! The tables and columns that exist, in the database itself: table `loadline_column`. Main type: [`Registry`], shared by all lanes.
//!
//! Invariant: a column is in the registry only when it is in its table. If a crash leaves a column out of the registry, it is found again: it was claimed
//! before it was created (`claims`).

use std::sync::{Arc, Mutex, PoisonError};

use super::catalogue::{Catalogue, Column, FieldKind, Measurement, Role, Shape, no_columns_impossible};
use super::claims::is_claim;
use super::columns::Columns;
use super::names::REGISTRY as TABLE;
use super::refusal::is_of_lock;
use super::texts::decoded;
use crate::database::dialect::create_table;
use crate::database::{Database, DatabaseError, Dialect, Session};
use crate::record::ColumnKind;
use crate::statement::{Table, TableColumn};

/// The layout of new measurements, and the catalogue as it is known.
pub struct Registry {
    pub(super) shape: Shape,
    pub(super) hot: Vec<String>,
    /// Whether new tables get an index on source and time.
    pub(super) time_index: bool,
    pub(super) measurements_max: usize,
    current: Mutex<Option<Arc<Catalogue>>>,
}

impl Registry {
    /// Returns a registry that has not been read yet.
    pub fn new(shape: Shape, hot: Vec<String>, time_index: bool, measurements_max: u32) -> Self {
        Registry { shape, hot, time_index, measurements_max: measurements_max as usize, current: Mutex::new(None) }
    }

    /// Returns whether a writer is reading or changing the registry, so that others wait.
    #[cfg(any(test, feature = "simulated"))]
    pub(in crate::recorder) fn is_held(&self) -> bool {
        self.current.try_lock().is_err()
    }

    /// Returns the catalogue, read from the database: a database that was away may have forgotten tables.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn catalogue(
        &self,
        database: &dyn Database,
        session: &mut dyn Session,
    ) -> Result<Arc<Catalogue>, DatabaseError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        ensure(database.dialect(), session, &registry_table())?;
        let mut catalogue = read(session, &self.hot)?;
        if let Some(known) = &*current {
            catalogue = placed_as(&known.only_those_of(&catalogue), catalogue);
        }
        let catalogue = Arc::new(catalogue);
        *current = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    /// Reads the catalogue, changes it and the database, keeps it, and returns it. A change says whether another recorder has changed
    /// the same; if so, the catalogue is read again.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn change(
        &self,
        session: &mut dyn Session,
        change: impl FnOnce(&mut dyn Session, &mut Catalogue) -> Result<bool, DatabaseError>,
    ) -> Result<Arc<Catalogue>, DatabaseError> {
        // One lane at a time: the next one finds what this one created.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Another recorder may have created it.
        let mut catalogue = read(session, &self.hot)?;
        if let Some(known) = &*current {
            catalogue = placed_as(known, catalogue);
        }
        if change(session, &mut catalogue)? {
            catalogue = placed_as(&catalogue, read(session, &self.hot)?);
        }
        let catalogue = Arc::new(catalogue);
        *current = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }
}

/// Returns a catalogue that was read, with its measurements at their known places, and with what is known to be impossible.
fn placed_as(known: &Catalogue, read: Catalogue) -> Catalogue {
    let mut catalogue = read.in_order_of(known);
    for measurement in known.measurements().iter().filter(|measurement| !measurement.impossible.is_empty()) {
        let place = catalogue.find(&measurement.name);
        if let Some(read) = place.and_then(|place| catalogue.get_mut(place)) {
            read.impossible = measurement.impossible.clone();
        }
    }
    catalogue
}

fn registry_table() -> Table {
    let text = |name: &str, characters| TableColumn {
        name: name.to_owned(),
        kind: ColumnKind::Text(characters),
        nullable: false,
    };
    Table {
        name: TABLE.to_owned(),
        columns: vec![
            text("id", 32),
            TableColumn { name: "place".to_owned(), kind: ColumnKind::Int64, nullable: false },
            text("measurement", 65_536),
            text("table_name", 64),
            text("role", 16),
            text("name", 65_536),
            text("column_name", 64),
            text("kind", 16),
        ],
        primary_key: vec!["id".to_owned()],
        numbered: false,
        unique: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        time: None,
    }
}

/// Returns whether a table has these columns.
pub(super) fn has_columns(
    dialect: &dyn Dialect,
    session: &mut dyn Session,
    table: &str,
    columns: &[&str],
) -> Result<bool, DatabaseError> {
    let table = dialect.quote(table);
    // No columns: ask for the table alone. With the table's name in front, a missing column is an error everywhere.
    let columns: Vec<_> = columns.iter().map(|column| format!("{table}.{}", dialect.quote(column))).collect();
    let columns = if columns.is_empty() { "1".to_owned() } else { columns.join(", ") };
    match session.query(&format!("SELECT {columns} FROM {table} WHERE 1 = 0")) {
        Ok(_) => Ok(true),
        // A table that somebody is changing exists all the same, and is asked again later.
        Err(error) if is_of_lock(&error) => Err(error),
        Err(DatabaseError::Refused { .. }) => Ok(false),
        Err(lost) => Err(lost),
    }
}

/// Creates a table with its indexes, unless it exists.
pub(in crate::recorder) fn ensure(
    dialect: &dyn Dialect,
    session: &mut dyn Session,
    table: &Table,
) -> Result<(), DatabaseError> {
    let columns: Vec<_> = table.columns.iter().map(|column| column.name.as_str()).collect();
    if has_columns(dialect, session, &table.name, &columns)? {
        return Ok(());
    }
    for sql in create_table(dialect, table) {
        if let Err(refused) = session.run_change(&sql) {
            // Another recorder may have been quicker.
            if refused.is_lost() || !has_columns(dialect, session, &table.name, &columns)? {
                return Err(refused);
            }
        }
    }
    Ok(())
}

/// Returns the catalogue, and all fields in the order in which they were registered: measurement and field. Both are empty before a recorder has stored
/// anything.
///
/// # Errors
/// Returns the error of the database.
pub(in crate::recorder) fn registered(
    dialect: &dyn Dialect,
    session: &mut dyn Session,
) -> Result<(Catalogue, Vec<(String, String)>), DatabaseError> {
    if !has_columns(dialect, session, TABLE, &[])? {
        return Ok((Catalogue::default(), Vec::new()));
    }
    let catalogue = read(session, &[])?;
    let rows =
        session.query(&format!("SELECT measurement, name FROM {TABLE} WHERE role = 'field' ORDER BY place, id"))?;
    let field = |row: Vec<Option<String>>| {
        let mut texts = row.into_iter().map(|text| text.as_deref().map(decoded));
        Some((texts.next()??, texts.next()??))
    };
    Ok((catalogue, rows.into_iter().filter_map(field).collect()))
}

/// Reads the registry.
fn read(session: &mut dyn Session, hot: &[String]) -> Result<Catalogue, DatabaseError> {
    let rows = session.query(&format!(
        "SELECT measurement, table_name, role, name, column_name, kind FROM {TABLE} ORDER BY place, id"
    ))?;
    let mut catalogue = Catalogue::default();
    for row in rows {
        let [Some(measurement), Some(table), Some(role), Some(name), Some(column), Some(kind)] = &row[..] else {
            continue;
        };
        if is_claim(role) {
            continue;
        }
        let (measurement, name) = (decoded(measurement), decoded(name));
        if role == "table" {
            let shape = Shape::named(kind).ok_or_else(|| damaged(&measurement, kind))?;
            catalogue.add(empty_measurement(&measurement, table, shape));
            continue;
        }
        let Some(known) = catalogue.find(&measurement).and_then(|place| catalogue.get_mut(place)) else { continue };
        let role = match role.as_str() {
            "more" => {
                known.has_more = true;
                continue;
            }
            "hot" => continue,
            "tag" => Role::Tag,
            _ => Role::Field,
        };
        let kind = FieldKind::named(kind).ok_or_else(|| damaged(&measurement, kind))?;
        let column = Column { hot: hot.contains(&name), name, column: column.clone(), kind };
        known.columns_mut(role).add(column);
    }
    mark_hot(&mut catalogue, session)?;
    Ok(catalogue)
}

/// Reads from the tables which columns `star-hot` put into them: the configuration of hot columns may have been different before.
fn mark_hot(catalogue: &mut Catalogue, session: &mut dyn Session) -> Result<(), DatabaseError> {
    let rows = session.query(&format!("SELECT measurement, name FROM {TABLE} WHERE role = 'hot'"))?;
    for place in 0..catalogue.measurements().len() {
        let Some(measurement) = catalogue.get_mut(place) else { continue };
        if measurement.shape != Shape::StarHot {
            continue;
        }
        let mut fields = Columns::default();
        for column in measurement.fields.iter() {
            let is_it = |row: &Vec<Option<String>>| {
                let text = |place: usize| row.get(place).and_then(Option::as_deref).map(decoded);
                text(0).as_ref() == Some(&measurement.name) && text(1).as_ref() == Some(&column.name)
            };
            fields.add(Column { hot: rows.iter().any(is_it), ..column.clone() });
        }
        measurement.fields = fields;
    }
    Ok(())
}

pub(super) fn empty_measurement(name: &str, table: &str, shape: Shape) -> Measurement {
    Measurement {
        name: name.to_owned(),
        table: table.to_owned(),
        shape,
        has_more: false,
        tags: Columns::default(),
        fields: Columns::default(),
        impossible: no_columns_impossible(),
    }
}

fn damaged(measurement: &str, kind: &str) -> DatabaseError {
    DatabaseError::Unavailable(format!(
        "table {TABLE} says \"{kind}\" of measurement {measurement:?}, which this loadline does not know; use the loadline that wrote it"
    ))
}
