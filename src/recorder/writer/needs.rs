//! What tables lack that rows need. Main type: [`Needs`], which bounds it: the names that clients make up have no end.

use std::collections::{HashMap, HashSet};

use super::catalogue::{FieldKind, Role};

/// What the tables lack.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Need {
    /// The measurement has no tables.
    Measurement(String),
    /// A column.
    Column { measurement: String, role: Role, name: String, kind: FieldKind },
    /// The column for what has no column.
    More(String),
}

/// Needs in the order in which they came, each once.
#[derive(Debug, Default)]
pub(super) struct Needs {
    all: Vec<Need>,
    known: HashSet<Need>,
    columns: HashMap<String, usize>,
}

impl Needs {
    /// Adds one that is not there yet.
    pub(super) fn add(&mut self, need: Need) {
        if self.known.contains(&need) {
            return;
        }
        if let Need::Column { measurement, .. } = &need {
            *self.columns.entry(measurement.clone()).or_default() += 1;
        }
        self.known.insert(need.clone());
        self.all.push(need);
    }

    /// Columns of a measurement that are needed.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_are_kept_once_and_columns_are_counted_by_measurement() {
        let column = |measurement: &str, name: &str| Need::Column {
            measurement: measurement.to_owned(),
            role: Role::Field,
            name: name.to_owned(),
            kind: FieldKind::Float,
        };
        let mut needs = Needs::default();
        let all = [Need::Measurement("m".to_owned()), column("m", "a"), column("m", "b"), column("n", "a")];
        all.iter().chain(&all).for_each(|need| needs.add(need.clone()));
        assert_eq!(needs.as_slice(), all);
        assert_eq!((needs.columns_of("m"), needs.columns_of("n"), needs.columns_of("o")), (2, 1, 0));
    }
}
