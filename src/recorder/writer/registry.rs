//! Which tables and columns there are, in the database itself: table `loadline_column`. Main type: [`Registry`], shared by all lanes.
//!
//! Invariant: a column is in the registry only when it is in its table. What a crash leaves between the two is found again: it was noted
//! before it was made ([`intent`]).

use std::sync::{Arc, Mutex, PoisonError};

use super::bind::Need;
use super::catalogue::{Catalogue, Column, FieldKind, Measurement, Role, Shape};
use super::columns::Columns;
use super::intent::{self, Intent, Wanted};
use super::names::{hash_hex, table_name};
use super::refusal::{Meaning, is_duplicate, meaning};
use super::shape::{MORE, Tables, identity_table, record_table, table_of};
use crate::database::dialect::create_table;
use crate::database::{Database, DatabaseError, Dialect, Session};
use crate::record::ColumnKind;
use crate::statement::{Table, TableColumn};

/// The registry's table.
pub(super) const TABLE: &str = "loadline_column";

/// How measurements that are new are laid out, and the catalogue as it is known.
pub struct Registry {
    shape: Shape,
    hot: Vec<String>,
    measurements_max: usize,
    current: Mutex<Option<Arc<Catalogue>>>,
}

impl Registry {
    /// A registry that has not been read yet.
    pub fn new(shape: Shape, hot: Vec<String>, measurements_max: u32) -> Self {
        Registry { shape, hot, measurements_max: measurements_max as usize, current: Mutex::new(None) }
    }

    /// The catalogue, read from the database: a database that was away may have forgotten tables.
    ///
    /// # Errors
    /// As the database answers.
    pub(super) fn catalogue(
        &self,
        database: &dyn Database,
        session: &mut dyn Session,
    ) -> Result<Arc<Catalogue>, DatabaseError> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        ensure(database.dialect(), session, &registry_table())?;
        let mut catalogue = read(session, &self.hot)?;
        if let Some(known) = &*current {
            let known = known.only_those_of(&catalogue);
            catalogue = catalogue.in_order_of(&known);
            keep_impossible(&known, &mut catalogue);
        }
        let catalogue = Arc::new(catalogue);
        *current = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }

    /// Makes what is needed, and gives the catalogue with it. What the database refuses for good is noted there as impossible.
    ///
    /// # Errors
    /// As the database answers; what was made stays, and is found again.
    pub(super) fn extend(
        &self,
        needs: &[Need],
        database: &dyn Database,
        session: &mut dyn Session,
    ) -> Result<Arc<Catalogue>, DatabaseError> {
        // One lane at a time: the next one finds what this one made.
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        // Another recorder may have made it.
        let mut catalogue = read(session, &self.hot)?;
        if let Some(known) = &*current {
            catalogue = catalogue.in_order_of(known);
            keep_impossible(known, &mut catalogue);
        }
        let mut change = Change { registry: self, dialect: database.dialect(), session, catalogue: &mut catalogue };
        for need in needs {
            change.make(need, needs)?;
        }
        let catalogue = Arc::new(catalogue);
        *current = Some(Arc::clone(&catalogue));
        Ok(catalogue)
    }
}

fn keep_impossible(known: &Catalogue, catalogue: &mut Catalogue) {
    for measurement in known.measurements().iter().filter(|measurement| !measurement.impossible.is_empty()) {
        let place = catalogue.find(&measurement.name);
        if let Some(read) = place.and_then(|place| catalogue.get_mut(place)) {
            read.impossible = measurement.impossible.clone();
        }
    }
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
    }
}

/// Whether a table has these columns.
fn has_columns(
    dialect: &dyn Dialect,
    session: &mut dyn Session,
    table: &str,
    columns: &[&str],
) -> Result<bool, DatabaseError> {
    let table = dialect.quote(table);
    // With the table's name in front, a missing column is an error everywhere.
    let columns: Vec<_> = columns.iter().map(|column| format!("{table}.{}", dialect.quote(column))).collect();
    match session.query(&format!("SELECT {} FROM {table} WHERE 1 = 0", columns.join(", "))) {
        Ok(_) => Ok(true),
        Err(DatabaseError::Refused { .. }) => Ok(false),
        Err(lost) => Err(lost),
    }
}

/// Makes a table with its indexes, unless it is there.
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
        if let Err(refused) = session.run(&sql) {
            let is_lost = !matches!(refused, DatabaseError::Refused { .. });
            // Another recorder may have been quicker.
            if is_lost || !has_columns(dialect, session, &table.name, &columns)? {
                return Err(refused);
            }
        }
    }
    Ok(())
}

pub(super) fn literal(text: &str) -> String {
    // Backslashes mean something to MySQL; what has one, or is no ASCII, is written in another way.
    format!("'{}'", text.replace('\'', "''"))
}

/// Text for the registry: percent-encoded where a database might read it in its own way.
pub(super) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'\\' | b'\'' | b'%' | b'?' | 0..=31 | 127..=255 => out.push_str(&format!("%{byte:02x}")),
            plain => out.push(char::from(plain)),
        }
    }
    out
}

pub(super) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, behind)) = rest.split_first() {
        let hex = behind.get(..2).and_then(|hex| u8::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok());
        match (byte, hex) {
            (b'%', Some(value)) => {
                out.push(value);
                rest = &behind[2..];
            }
            _ => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
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
        if intent::is_intent(role) {
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

/// Where `star-hot` put a column is seen in its tables: what is hot may have been configured in another way before.
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

fn empty_measurement(name: &str, table: &str, shape: Shape) -> Measurement {
    Measurement {
        name: name.to_owned(),
        table: table.to_owned(),
        shape,
        has_more: false,
        tags: Columns::default(),
        fields: Columns::default(),
        impossible: Default::default(),
    }
}

fn damaged(measurement: &str, kind: &str) -> DatabaseError {
    DatabaseError::Unavailable(format!(
        "table {TABLE} says \"{kind}\" of measurement {measurement:?}, which this loadline does not know; use the loadline that wrote it"
    ))
}

/// What is being made.
struct Change<'a> {
    registry: &'a Registry,
    dialect: &'a dyn Dialect,
    session: &'a mut dyn Session,
    catalogue: &'a mut Catalogue,
}

impl Change<'_> {
    fn make(&mut self, need: &Need, all: &[Need]) -> Result<(), DatabaseError> {
        match need {
            Need::Measurement(name) if self.catalogue.find(name).is_none() => self.make_measurement(name, all),
            Need::Measurement(_) => Ok(()),
            Need::Column { measurement, role, name, kind } => self.make_column(measurement, *role, name, *kind),
            Need::More(measurement) => self.make_more(measurement),
        }
    }

    /// Makes the tables of a measurement with all columns that are needed, in one go.
    fn make_measurement(&mut self, name: &str, all: &[Need]) -> Result<(), DatabaseError> {
        let most = self.registry.measurements_max;
        if self.catalogue.measurements().len() >= most {
            let reason = format!("there are {most} measurements already; schema.measurements_max bounds them");
            self.catalogue.note_impossible(name, reason);
            return Ok(());
        }
        let table = table_name(name, |lower| self.catalogue.has_table(lower));
        let mut measurement = empty_measurement(name, &table, self.registry.shape);
        let bare = Tables::of(&measurement).tables;
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
        for ((role, name, _), intent) in wanted.iter().zip(intent::note(&measurement, &wanted, self.session)?) {
            let column = self.column_of(name, intent);
            measurement.columns_mut(*role).add(column);
        }
        for (table, bare) in Tables::of(&measurement).tables.iter().zip(&bare) {
            match self.make_table(table, bare) {
                Err(error) if is_for_good(&error) || is_taken(&error) => {
                    self.catalogue.note_impossible(name, error.to_string());
                    return Ok(());
                }
                outcome => outcome?,
            }
        }
        self.register(&measurement, "table", "", "", self.registry.shape.name())?;
        for role in [Role::Tag, Role::Field] {
            for column in measurement.columns(role).as_slice().to_vec() {
                self.register_column(&measurement, role, &column)?;
            }
        }
        self.catalogue.add(measurement);
        Ok(())
    }

    /// Makes a table; where a killed recorder has left it, makes what it lacks. `bare` is the same table without columns of clients,
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
            match self.session.run(sql) {
                Err(error) if is_taken(&error) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    fn column_of(&self, name: &str, intent: Intent) -> Column {
        let hot = self.registry.hot.iter().any(|hot| hot == name);
        Column { name: name.to_owned(), column: intent.column, kind: intent.kind, hot }
    }

    fn make_column(&mut self, measurement: &str, role: Role, name: &str, kind: FieldKind) -> Result<(), DatabaseError> {
        let Some(place) = self.catalogue.find(measurement) else { return Ok(()) };
        let known = self.catalogue.measurements()[place].clone();
        if known.columns(role).find(name).is_some() || (role == Role::Field && !known.shape.has_field_columns()) {
            return Ok(());
        }
        let Some(intent) = intent::note(&known, &[(role, name, kind)], self.session)?.pop() else { return Ok(()) };
        let column = self.column_of(name, intent);
        let table = table_of(&known, role == Role::Tag, column.hot);
        match self.add_column(&table, &column.column, column.kind.column_kind()) {
            Ok(()) => {
                self.register_column(&known, role, &column)?;
                if let Some(known) = self.catalogue.get_mut(place) {
                    known.columns_mut(role).add(column);
                }
                Ok(())
            }
            Err(error) if is_for_good(&error) => {
                if let Some(known) = self.catalogue.get_mut(place) {
                    known.impossible.insert((role, name.to_owned()), error.to_string());
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
            self.add_column(&record_table(&known), MORE, ColumnKind::Json)?;
        }
        if known.shape.has_identity() {
            self.add_column(&identity_table(&known), MORE, ColumnKind::Json)?;
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
        match self.session.run(&alter) {
            // What a killed recorder had sent, or another one, may have come first.
            Err(error @ DatabaseError::Refused { .. }) => {
                has_columns(self.dialect, self.session, table, &[name])?.then_some(()).ok_or(error)
            }
            outcome => outcome,
        }
    }

    fn register_column(&mut self, measurement: &Measurement, role: Role, column: &Column) -> Result<(), DatabaseError> {
        if column.hot && measurement.shape == Shape::StarHot && role == Role::Field {
            self.register(measurement, "hot", &column.name, &column.column, "")?;
        }
        self.register(measurement, role.name(), &column.name, &column.column, column.kind.name())
    }

    fn register(
        &mut self,
        measurement: &Measurement,
        role: &str,
        name: &str,
        column: &str,
        kind: &str,
    ) -> Result<(), DatabaseError> {
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
            // Another recorder was quicker; what it says is read the next time.
            Err(error) if is_duplicate(&error) => Ok(()),
            outcome => outcome,
        }
    }
}

/// Whether a table will never get a column: it has too many, or rows that are too wide.
fn is_for_good(error: &DatabaseError) -> bool {
    let DatabaseError::Refused { code, message } = error else { return false };
    let known = ["1117", "1118", "1166", "54011", "54000"].contains(&code.as_str());
    known || message.contains("too many columns") || meaning(error) == Meaning::Record
}

/// Whether a table or an index of that name is there.
fn is_taken(error: &DatabaseError) -> bool {
    let DatabaseError::Refused { code, message } = error else { return false };
    ["1050", "1061", "42P07"].contains(&code.as_str()) || message.contains("already exists")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn names_survive_the_registry(name in "(?s).{0,40}") {
            let stored = encoded(&name);
            prop_assert!(stored.is_ascii() && !stored.contains(['\\', '\'', '?']), "{stored}");
            prop_assert_eq!(decoded(&stored), name);
        }
    }
}
