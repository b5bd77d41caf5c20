//! The tables that exist: every measurement with its columns. Main types: [`Catalogue`] and [`Measurement`].

use std::collections::HashMap;

use super::columns::Columns;
pub use super::columns::{Column, FieldKind};
use super::impossible::Impossible;
pub use crate::layout::recorded::Shape;

/// The role of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// A tag: it says who measured.
    Tag,
    /// A field: it says what was measured.
    Field,
}

/// A measurement, as clients name it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// The measurement's name, as clients use it.
    pub name: String,
    /// The name of its tables, or the beginning of their names.
    pub table: String,
    /// The layout of its tables.
    pub shape: Shape,
    /// Whether values without a column go to a column of JSON.
    pub has_more: bool,
    /// Columns of tags.
    pub tags: Columns,
    /// Columns of fields.
    pub fields: Columns,
    /// Columns that the database would not create, with its reason.
    pub impossible: Impossible<(Role, String)>,
}

/// All measurements.
#[derive(Debug, Clone)]
pub struct Catalogue {
    measurements: Vec<Measurement>,
    by_name: HashMap<String, usize>,
    /// Measurements that cannot have tables, with the reason.
    impossible: Impossible<String>,
}

/// The most refused columns of a measurement that are remembered, and their most bytes.
const COLUMNS_IMPOSSIBLE_MAX: usize = 1_000;
const COLUMNS_IMPOSSIBLE_BYTES_MAX: usize = 128 << 10;
/// Returns the empty set that a measurement begins with.
pub(super) fn no_columns_impossible() -> Impossible<(Role, String)> {
    Impossible::bounded(COLUMNS_IMPOSSIBLE_MAX, COLUMNS_IMPOSSIBLE_BYTES_MAX)
}

/// The most impossible measurements that are remembered, and their most bytes; beyond that all are tried again.
const IMPOSSIBLE_MAX: usize = 10_000;
const IMPOSSIBLE_BYTES_MAX: usize = 4 << 20;

impl Default for Catalogue {
    fn default() -> Self {
        let impossible = Impossible::bounded(IMPOSSIBLE_MAX, IMPOSSIBLE_BYTES_MAX);
        Catalogue { measurements: Vec::new(), by_name: HashMap::new(), impossible }
    }
}

impl Role {
    /// Returns the role's name in the registry.
    pub fn name(self) -> &'static str {
        match self {
            Role::Tag => "tag",
            Role::Field => "field",
        }
    }
}

impl Measurement {
    /// Returns the columns of a role.
    pub fn columns(&self, role: Role) -> &Columns {
        match role {
            Role::Tag => &self.tags,
            Role::Field => &self.fields,
        }
    }

    pub(super) fn columns_mut(&mut self, role: Role) -> &mut Columns {
        match role {
            Role::Tag => &mut self.tags,
            Role::Field => &mut self.fields,
        }
    }

    /// Returns whether any of the tables has a column of this name, which is given in lower case; case is ignored.
    pub(super) fn has_column(&self, lower: &str) -> bool {
        self.tags.iter().chain(self.fields.iter()).any(|column| column.column.to_lowercase() == lower)
    }
}

impl Catalogue {
    /// Returns all measurements, in the order in which they were first seen.
    pub fn measurements(&self) -> &[Measurement] {
        &self.measurements
    }

    /// Returns the place of a measurement.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn add(&mut self, measurement: Measurement) -> usize {
        self.by_name.insert(measurement.name.clone(), self.measurements.len());
        self.measurements.push(measurement);
        self.measurements.len() - 1
    }

    /// Returns the same measurements, known ones first and in their order, so that places stay the same.
    pub(super) fn in_order_of(self, known: &Catalogue) -> Catalogue {
        let mut ordered = Catalogue { impossible: known.impossible.clone(), ..Catalogue::default() };
        let is_known = |measurement: &&Measurement| known.find(&measurement.name).is_some();
        for measurement in &known.measurements {
            let read = self.find(&measurement.name).map(|place| &self.measurements[place]);
            ordered.add(read.unwrap_or(measurement).clone());
        }
        for measurement in self.measurements.iter().filter(|measurement| !is_known(measurement)) {
            ordered.add(measurement.clone());
        }
        ordered
    }

    /// Returns those measurements that another catalogue has, in their order.
    pub(super) fn only_those_of(&self, other: &Catalogue) -> Catalogue {
        let mut left = Catalogue { impossible: self.impossible.clone(), ..Catalogue::default() };
        let has = |measurement: &&Measurement| other.find(&measurement.name).is_some();
        for measurement in self.measurements.iter().filter(has) {
            left.add(measurement.clone());
        }
        left
    }

    /// Returns why a measurement cannot have tables, if that is known.
    pub(super) fn why_impossible(&self, name: &str) -> Option<&str> {
        self.impossible.get(name)
    }

    pub(super) fn note_impossible(&mut self, name: &str, reason: &str) {
        if self.impossible.is_full() {
            self.impossible.clear();
        }
        self.impossible.note(name.to_owned(), name.len(), reason);
    }

    pub(super) fn get_mut(&mut self, place: usize) -> Option<&mut Measurement> {
        self.measurements.get_mut(place)
    }
}
