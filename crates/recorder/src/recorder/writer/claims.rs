//! Claims on names of tables and columns, written to the registry before anything is created. Main type: [`Claims`].
//!
//! The registry has a line for each name. Its key covers the scope in which the name must be unique: for a table, all names of the database; for a column, all
//! columns of its measurement. The first to claim a name has it for good, and a column's claim says what the column holds. So two clients whose
//! names become alike never share a table or a column. Whatever a killed recorder has left, or the database creates even after
//! its client's death, is known by its claim, with its kind: a column of whole numbers would round values that somebody believes to be floats.
//!
//! Invariant: nothing is created, and nothing that exists is used, without a claim; a table or column without one belongs to somebody else. A claim
//! is written before what it claims is created, so if something exists, the claims are read once more: another recorder may have created it in between.

use std::collections::HashMap;

use super::catalogue::{FieldKind, Measurement, Role};
use super::names::{REGISTRY as TABLE, column_names};
use super::refusal::is_duplicate;
use super::texts::{decoded, encoded, literal};
use crate::database::{DatabaseError, Session};
use crate::layout::recorded::hash_hex;

/// The roles of claims in the registry.
const TABLE_ROLE: &str = "claimed-table";
const COLUMN_ROLES: [(Role, &str); 2] = [(Role::Tag, "claimed-tag"), (Role::Field, "claimed-field")];
/// The number of names that are tried before giving up.
const NAMES_MAX: usize = 30;

/// A column that is wanted: its role, the name that clients use, and the kind of its first value.
pub(super) type Wanted<'a> = (Role, &'a str, FieldKind);

/// A column that is claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Claimed {
    role: Role,
    name: String,
    /// The column's name in the table.
    pub column: String,
    /// The kind of value that the column holds.
    pub kind: FieldKind,
}

impl Claimed {
    /// Returns whether the column has this name, ignoring case.
    fn is_called(&self, column: &str) -> bool {
        self.column.to_lowercase() == column.to_lowercase()
    }
}

/// A line to be written to the registry.
struct Line {
    id: String,
    values: [String; 6],
}

/// Returns whether a line of the registry is a claim on a name, rather than about something that exists.
pub(super) fn is_claim(role: &str) -> bool {
    role == TABLE_ROLE || COLUMN_ROLES.iter().any(|(_, own)| *own == role)
}

/// The claims in the registry, through one connection.
pub(super) struct Claims<'a> {
    session: &'a mut dyn Session,
}

impl<'a> Claims<'a> {
    pub(super) fn of(session: &'a mut dyn Session) -> Self {
        Claims { session }
    }

    /// Claims the names of all tables and indexes that a measurement would have; returns false if one of them is somebody else's.
    /// `is_there` returns, for a name that nobody has claimed, whether such a table exists.
    ///
    /// # Errors
    /// Returns the error of the database.
    pub(super) fn tables(
        &mut self,
        measurement: &Measurement,
        names: &[String],
        is_there: impl Fn(&mut dyn Session, &str) -> Result<bool, DatabaseError>,
    ) -> Result<bool, DatabaseError> {
        let owners = self.owners(names)?;
        let mut lines = Vec::new();
        for name in names {
            match owners.get(&table_id(name)) {
                Some(owner) if *owner == measurement.name => {}
                Some(_) => return Ok(false),
                None if is_there(self.session, name)? => {
                    if !self.is_owned(name, &measurement.name)? {
                        return Ok(false);
                    }
                }
                None => lines.push(line(table_id(name), measurement, TABLE_ROLE, "", name, "")),
            }
        }
        self.write(&lines)?;
        // Another recorder may have come first.
        let owners = self.owners(names)?;
        Ok(names.iter().all(|name| owners.get(&table_id(name)) == Some(&measurement.name)))
    }

    /// Returns whether a measurement has claimed the name of a table.
    fn is_owned(&mut self, name: &String, measurement: &str) -> Result<bool, DatabaseError> {
        let owners = self.owners(std::slice::from_ref(name))?;
        Ok(owners.get(&table_id(name)).is_some_and(|owner| owner == measurement))
    }

    /// Returns the measurements that have claimed these names of tables, by the names' keys.
    fn owners(&mut self, names: &[String]) -> Result<HashMap<String, String>, DatabaseError> {
        let ids: Vec<_> = names.iter().map(|name| literal(&table_id(name))).collect();
        let rows =
            self.session.query(&format!("SELECT id, measurement FROM {TABLE} WHERE id IN ({})", ids.join(", ")))?;
        let owner = |row: Vec<Option<String>>| {
            let mut row = row.into_iter().flatten();
            Some((row.next()?, decoded(&row.next()?)))
        };
        Ok(rows.into_iter().filter_map(owner).collect())
    }

    /// Claims columns; returns each as it was claimed first, in the order in which they are wanted. `is_there` returns, for a name that nobody
    /// has claimed, whether the table of a column of this role and name has such a column.
    ///
    /// # Errors
    /// Returns the database's error, or a sentence if all names that were tried are somebody else's.
    pub(super) fn columns(
        &mut self,
        measurement: &Measurement,
        wanted: &[Wanted<'_>],
        is_there: impl Fn(&mut dyn Session, Role, &str, &str) -> Result<bool, DatabaseError>,
    ) -> Result<Vec<Claimed>, DatabaseError> {
        // Before each try, another recorder may have claimed one of the names.
        'tries: for _ in 0..NAMES_MAX {
            let known = self.claimed(measurement)?;
            let mut fresh: Vec<Claimed> = Vec::new();
            for (role, name, kind) in wanted.iter().filter(|(role, name, _)| find(&known, *role, name).is_none()) {
                if find(&fresh, *role, name).is_some() {
                    continue;
                }
                let mut chosen = None;
                for column in column_names(role.name(), name).take(NAMES_MAX) {
                    let is_taken =
                        is_taken(measurement, &column, &known) || fresh.iter().any(|own| own.is_called(&column));
                    if is_taken {
                        continue;
                    }
                    if !is_there(self.session, *role, name, &column)? {
                        chosen = Some(column);
                        break;
                    }
                    if self.claimed(measurement)?.iter().any(|claimed| claimed.is_called(&column)) {
                        continue 'tries;
                    }
                }
                let none = || DatabaseError::Unavailable(format!("no name is free for a column of {name:?}"));
                let column = chosen.ok_or_else(none)?;
                fresh.push(Claimed { role: *role, name: (*name).to_owned(), column, kind: *kind });
            }
            if fresh.is_empty() {
                let own = |(role, name, _): &Wanted<'_>| find(&known, *role, name).cloned();
                return Ok(wanted.iter().filter_map(own).collect());
            }
            let lines: Vec<_> = fresh.iter().map(|claimed| column_line(measurement, claimed)).collect();
            self.write(&lines)?;
        }
        Err(DatabaseError::Unavailable(format!("the columns of {:?} could not be claimed", measurement.name)))
    }

    /// Returns the claimed columns of a measurement.
    fn claimed(&mut self, measurement: &Measurement) -> Result<Vec<Claimed>, DatabaseError> {
        let mut claimed = Vec::new();
        for (role, own) in COLUMN_ROLES {
            let rows = self.session.query(&format!(
                "SELECT measurement, name, column_name, kind FROM {TABLE} WHERE table_name = {} AND role = '{own}'",
                literal(&measurement.table)
            ))?;
            for row in rows {
                let [Some(of), Some(name), Some(column), Some(kind)] = &row[..] else { continue };
                if let Some(kind) = FieldKind::named(kind).filter(|_| decoded(of) == measurement.name) {
                    claimed.push(Claimed { role, name: decoded(name), column: column.clone(), kind });
                }
            }
        }
        Ok(claimed)
    }

    /// Writes lines; lines whose keys another recorder has written before stay as they are.
    fn write(&mut self, lines: &[Line]) -> Result<(), DatabaseError> {
        let text = |line: &Line| format!("({}, 0, {})", literal(&line.id), line.values.join(", "));
        let texts: Vec<_> = lines.iter().map(text).collect();
        if texts.is_empty() {
            return Ok(());
        }
        match self.session.run(&format!("INSERT INTO {TABLE} VALUES {}", texts.join(", "))) {
            Err(error) if is_duplicate(&error) => {}
            outcome => return outcome,
        }
        for text in texts {
            match self.session.run(&format!("INSERT INTO {TABLE} VALUES {text}")) {
                Err(error) if is_duplicate(&error) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }
}

fn find<'a>(claimed: &'a [Claimed], role: Role, name: &str) -> Option<&'a Claimed> {
    claimed.iter().find(|claimed| claimed.role == role && claimed.name == name)
}

/// Returns whether the name of a column is known to be another column's.
fn is_taken(measurement: &Measurement, column: &str, known: &[Claimed]) -> bool {
    measurement.has_column(&column.to_lowercase()) || known.iter().any(|claimed| claimed.is_called(column))
}

/// Returns the key of a table's name, which ignores case.
fn table_id(name: &str) -> String {
    hash_hex(&[TABLE_ROLE, &name.to_lowercase()])
}

fn column_line(measurement: &Measurement, claimed: &Claimed) -> Line {
    let id = hash_hex(&["claimed-column", &measurement.table.to_lowercase(), &claimed.column.to_lowercase()]);
    let role = COLUMN_ROLES.iter().find(|(role, _)| *role == claimed.role).map_or("", |(_, own)| own);
    line(id, measurement, role, &claimed.name, &claimed.column, claimed.kind.name())
}

fn line(id: String, measurement: &Measurement, role: &str, name: &str, column: &str, kind: &str) -> Line {
    let values = [
        literal(&encoded(&measurement.name)),
        literal(&measurement.table),
        literal(role),
        literal(&encoded(name)),
        literal(column),
        literal(kind),
    ];
    Line { id, values }
}
