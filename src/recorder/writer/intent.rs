//! What is about to be made, noted in the registry before it is: the columns of a measurement, and what each holds.
//!
//! A recorder that is killed may leave tables and columns that the registry does not have, and the database may even make them after
//! its death. Whoever comes next must not guess what they hold: a column of whole numbers would round what it believes to be a
//! column of floats. So who notes a column first decides its name and its kind, for good.

use super::catalogue::{FieldKind, Measurement, Role};
use super::names::{column_name, hash_hex};
use super::refusal::is_duplicate;
use super::registry::{TABLE, decoded, encoded, literal};
use crate::database::{DatabaseError, Session};

/// The roles of such lines in the registry, which nobody else reads.
const ROLES: [(Role, &str); 2] = [(Role::Tag, "making-tag"), (Role::Field, "making-field")];

/// A column that is wanted: its role, what clients call it, and the kind of its first value.
pub(super) type Wanted<'a> = (Role, &'a str, FieldKind);

/// A column that is about to be made, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intent {
    role: Role,
    name: String,
    /// What the column is called.
    pub column: String,
    /// What it holds.
    pub kind: FieldKind,
}

/// Whether a line of the registry is about what is to be made, and not about what is there.
pub(super) fn is_intent(role: &str) -> bool {
    ROLES.iter().any(|(_, own)| *own == role)
}

/// Notes that columns are about to be made; each as it was noted first, in the order in which they are wanted.
///
/// # Errors
/// As the database answers.
pub(super) fn note(
    measurement: &Measurement,
    wanted: &[Wanted<'_>],
    session: &mut dyn Session,
) -> Result<Vec<Intent>, DatabaseError> {
    let mut known = read(measurement, session)?;
    let mut fresh: Vec<Intent> = Vec::new();
    for (role, name, kind) in wanted {
        if find(&known, *role, name).is_none() {
            let is_taken = |lower: &str| {
                let has = |intent: &Intent| intent.column.to_lowercase() == lower;
                measurement.has_column(lower) || known.iter().any(has) || fresh.iter().any(has)
            };
            let column = column_name(role.name(), name, is_taken);
            fresh.push(Intent { role: *role, name: (*name).to_owned(), column, kind: *kind });
        }
    }
    if !fresh.is_empty() {
        write(measurement, &fresh, session)?;
        known = read(measurement, session)?;
    }
    let missing = |name: &str| DatabaseError::Unavailable(format!("table {TABLE} has lost its line about {name:?}"));
    let noted = |(role, name, _): &Wanted<'_>| find(&known, *role, name).cloned().ok_or_else(|| missing(name));
    wanted.iter().map(noted).collect()
}

fn find<'a>(intents: &'a [Intent], role: Role, name: &str) -> Option<&'a Intent> {
    intents.iter().find(|intent| intent.role == role && intent.name == name)
}

fn read(measurement: &Measurement, session: &mut dyn Session) -> Result<Vec<Intent>, DatabaseError> {
    let mut intents = Vec::new();
    for (role, own) in ROLES {
        let rows = session.query(&format!(
            "SELECT measurement, name, column_name, kind FROM {TABLE} WHERE table_name = {} AND role = '{own}'",
            literal(&measurement.table)
        ))?;
        for row in rows {
            let [Some(of), Some(name), Some(column), Some(kind)] = &row[..] else { continue };
            if let Some(kind) = FieldKind::named(kind).filter(|_| decoded(of) == measurement.name) {
                intents.push(Intent { role, name: decoded(name), column: column.clone(), kind });
            }
        }
    }
    Ok(intents)
}

fn write(measurement: &Measurement, intents: &[Intent], session: &mut dyn Session) -> Result<(), DatabaseError> {
    let line = |intent: &Intent| {
        let own = ROLES.iter().find(|(role, _)| *role == intent.role).map_or("", |(_, own)| own);
        let values = [
            literal(&hash_hex(&[&measurement.name, own, &intent.name])),
            "0".to_owned(),
            literal(&encoded(&measurement.name)),
            literal(&measurement.table),
            literal(own),
            literal(&encoded(&intent.name)),
            literal(&intent.column),
            literal(intent.kind.name()),
        ];
        format!("({})", values.join(", "))
    };
    let lines: Vec<_> = intents.iter().map(line).collect();
    match session.run(&format!("INSERT INTO {TABLE} VALUES {}", lines.join(", "))) {
        // Another recorder has noted some of them, and what it says holds.
        Err(error) if is_duplicate(&error) => {}
        outcome => return outcome,
    }
    for line in lines {
        match session.run(&format!("INSERT INTO {TABLE} VALUES {line}")) {
            Err(error) if is_duplicate(&error) => {}
            outcome => outcome?,
        }
    }
    Ok(())
}
