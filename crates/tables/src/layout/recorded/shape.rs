//! The layouts that a recorder can use for a measurement. Main type: [`Shape`].

/// The layout of a measurement's tables, which is fixed when the measurement is first seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One table; every row repeats the tags.
    Wide,
    /// An identity table and a values table.
    Star,
    /// An identity table, a main table of the hot fields and a secondary table of the others.
    StarHot,
    /// An identity table, and a values table with all fields as JSON.
    Json,
    /// An identity table, a table of records and a table of single values.
    Eav,
}

impl Shape {
    const ALL: [Shape; 5] = [Shape::Wide, Shape::Star, Shape::StarHot, Shape::Json, Shape::Eav];

    /// The names of all shapes.
    pub const NAMES: &[&str] = &["wide", "star", "star-hot", "json", "eav"];

    /// Returns the name in the registry and in configurations.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    /// Returns the shape with this name in a configuration.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|shape| shape.name() == name)
    }

    /// Returns whether tags are stored in an identity table.
    pub fn has_identity(self) -> bool {
        self != Shape::Wide
    }

    /// Returns whether each field has a column of its own.
    pub fn has_field_columns(self) -> bool {
        matches!(self, Shape::Wide | Shape::Star | Shape::StarHot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_that_of_one_shape() {
        let found: Vec<_> = Shape::NAMES.iter().map(|name| Shape::named(name).map(Shape::name)).collect();
        assert_eq!(found, Shape::NAMES.iter().map(|name| Some(*name)).collect::<Vec<_>>());
        assert_eq!((Shape::named("spare"), Shape::StarHot.name()), (None, "star-hot"));
    }
}
