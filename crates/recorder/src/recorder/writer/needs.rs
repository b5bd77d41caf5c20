//! Tables and columns that rows need and that are missing. Main type: [`Needs`], which bounds their number: clients can make up any number of names.

use std::collections::{HashMap, HashSet};

use super::catalogue::{FieldKind, Measurement, Role};
use crate::recorder::config::NewColumns;
use crate::recorder::quote::in_quotes;

/// A missing table or column.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// The measurement has no tables.
    Measurement(String),
    /// The table has no such column.
    Column { measurement: String, role: Role, name: String, kind: FieldKind },
    /// The measurement has no column for values without a column.
    More(String),
}

impl Need {
    /// Returns the same need, whatever kind of value the column is to hold.
    fn of_any_kind(&self) -> Need {
        let mut need = self.clone();
        if let Need::Column { kind, .. } = &mut need {
            *kind = FieldKind::Float;
        }
        need
    }
}

/// The limits that the configuration sets.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// What happens to new columns.
    pub new_columns: NewColumns,
    /// The most columns of a table.
    pub columns_max: usize,
}

/// Needs in the order in which they came, each once. The first value decides a column's kind, whatever later ones are.
#[derive(Debug, Default)]
pub(super) struct Needs {
    all: Vec<Need>,
    known: HashSet<Need>,
    columns: HashMap<String, usize>,
}

impl Needs {
    /// Adds a need that is not there yet.
    pub(super) fn add(&mut self, need: Need) {
        if !self.known.insert(need.of_any_kind()) {
            return;
        }
        if let Need::Column { measurement, .. } = &need {
            *self.columns.entry(measurement.clone()).or_default() += 1;
        }
        self.all.push(need);
    }

    /// Returns the number of needed columns of a measurement.
    pub(super) fn columns_of(&self, measurement: &str) -> usize {
        self.columns.get(measurement).copied().unwrap_or(0)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn as_slice(&self) -> &[Need] {
        &self.all
    }
}

/// Decides on a value without a column: something must be created (`Some`), the value goes to the column of JSON (`None`), or the record
/// is refused.
pub(super) fn missing(
    measurement: &Measurement,
    role: Role,
    name: &str,
    kind: FieldKind,
    limits: Limits,
    needs: &Needs,
) -> Result<Option<Need>, String> {
    let table = &measurement.name;
    let of = || format!("the {} {}", role.name(), in_quotes(name));
    let impossible = measurement.impossible.get(&(role, name.to_owned()));
    // A table that has refused this many gets no more: clients can make up any number of names.
    let columns = measurement.tags.len() + measurement.fields.len() + needs.columns_of(table);
    let is_full = columns >= limits.columns_max || measurement.impossible.is_full();
    match limits.new_columns {
        NewColumns::Add if impossible.is_none() && !is_full => {
            let (measurement, name) = (measurement.name.clone(), name.to_owned());
            Ok(Some(Need::Column { measurement, role, name, kind }))
        }
        _ if measurement.has_more => Ok(None),
        NewColumns::Json => Ok(Some(Need::More(measurement.name.clone()))),
        NewColumns::Add => Err(match impossible {
            Some(reason) => {
                format!("{} cannot get a column for {}: {reason}", in_quotes(table), of())
            }
            None if measurement.impossible.is_full() => format!(
                "{} could not get {} columns, and the one for {} is not tried any more",
                in_quotes(table),
                measurement.impossible.len(),
                of(),
            ),
            None => format!(
                "{} has {} columns and cannot get one for {}; schema.columns_max bounds them",
                in_quotes(table),
                limits.columns_max,
                of(),
            ),
        }),
        NewColumns::Refuse => {
            Err(format!("{} has no column for {}, and schema.new_columns is \"refuse\"", in_quotes(table), of(),))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_kept_once_and_columns_are_counted_by_measurement() {
        let of_kind = |measurement: &str, name: &str, kind| Need::Column {
            measurement: measurement.to_owned(),
            role: Role::Field,
            name: name.to_owned(),
            kind,
        };
        let column = |measurement: &str, name: &str| of_kind(measurement, name, FieldKind::Int);
        let mut needs = Needs::default();
        let all = [Need::Measurement("m".to_owned()), column("m", "a"), column("m", "b"), column("n", "a")];
        all.iter().chain(&all).for_each(|need| needs.add(need.clone()));
        needs.add(of_kind("m", "a", FieldKind::Text));
        assert_eq!(needs.as_slice(), all);
        assert_eq!((needs.columns_of("m"), needs.columns_of("n"), needs.columns_of("o")), (2, 1, 0));
    }
}
