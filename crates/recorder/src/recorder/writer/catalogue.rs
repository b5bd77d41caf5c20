//! What tables there are: every measurement with its columns. Main types: [`Catalogue`] and [`Measurement`].

use std::collections::HashMap;

use super::columns::Columns;
pub use super::columns::{Column, FieldKind};
use super::impossible::Impossible;
pub use crate::layout::recorded::Shape;

/// Where a column belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Says who measured.
    Tag,
    /// Says what was measured.
    Field,
}

/// A measurement, as clients name it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measurement {
    /// What clients call it.
    pub name: String,
    /// What its tables are called, or begin with.
    pub table: String,
    /// How it is laid out.
    pub shape: Shape,
    /// Whether what has no column goes to a column of JSON.
    pub has_more: bool,
    /// Columns of tags.
    pub tags: Columns,
    /// Columns of fields.
    pub fields: Columns,
    /// Columns that the database would not make, with its reason.
    pub impossible: Impossible<(Role, String)>,
}

/// All measurements.
#[derive(Debug, Clone)]
pub struct Catalogue {
    measurements: Vec<Measurement>,
    by_name: HashMap<String, usize>,
    /// Measurements that can have no tables, with the reason.
    impossible: Impossible<String>,
}

/// Columns refused by the database that are remembered, by measurement, and bytes of them.
const COLUMNS_IMPOSSIBLE_MAX: usize = 1_000;
const COLUMNS_IMPOSSIBLE_BYTES_MAX: usize = 128 << 10;
/// What a measurement begins with.
pub(super) fn no_columns_impossible() -> Impossible<(Role, String)> {
    Impossible::bounded(COLUMNS_IMPOSSIBLE_MAX, COLUMNS_IMPOSSIBLE_BYTES_MAX)
}

/// Impossible measurements that are remembered, and bytes of them; beyond that all are tried again.
const IMPOSSIBLE_MAX: usize = 10_000;
const IMPOSSIBLE_BYTES_MAX: usize = 4 << 20;

impl Default for Catalogue {
    fn default() -> Self {
        let impossible = Impossible::bounded(IMPOSSIBLE_MAX, IMPOSSIBLE_BYTES_MAX);
        Catalogue { measurements: Vec::new(), by_name: HashMap::new(), impossible }
    }
}

impl Role {
    /// Its name in the registry.
    pub fn name(self) -> &'static str {
        match self {
            Role::Tag => "tag",
            Role::Field => "field",
        }
    }
}

impl Measurement {
    /// The columns of a role.
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

    /// Whether a column is called so, upper and lower case alike, in any of its tables.
    pub(super) fn has_column(&self, lower: &str) -> bool {
        self.tags.iter().chain(self.fields.iter()).any(|column| column.column.to_lowercase() == lower)
    }
}

impl Catalogue {
    /// All measurements, in the order that they were first seen.
    pub fn measurements(&self) -> &[Measurement] {
        &self.measurements
    }

    /// The place of a measurement.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).copied()
    }

    pub(super) fn add(&mut self, measurement: Measurement) -> usize {
        self.by_name.insert(measurement.name.clone(), self.measurements.len());
        self.measurements.push(measurement);
        self.measurements.len() - 1
    }

    /// The same measurements, those that are known first and in their order, so that places stay what they were.
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

    /// Those of its measurements that another catalogue has, in their order.
    pub(super) fn only_those_of(&self, other: &Catalogue) -> Catalogue {
        let mut left = Catalogue { impossible: self.impossible.clone(), ..Catalogue::default() };
        let has = |measurement: &&Measurement| other.find(&measurement.name).is_some();
        for measurement in self.measurements.iter().filter(has) {
            left.add(measurement.clone());
        }
        left
    }

    /// Why a measurement can have no tables, where that is known.
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
