//! How a recorder lays a measurement out. Main type: [`Shape`].

/// How a measurement is laid out; it stays as it was when the measurement was first seen.
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
    const ALL: [(Shape, &'static str); 5] = [
        (Shape::Wide, "wide"),
        (Shape::Star, "star"),
        (Shape::StarHot, "star-hot"),
        (Shape::Json, "json"),
        (Shape::Eav, "eav"),
    ];

    /// Its name in the registry and in configurations.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(shape, _)| *shape == self).map_or("", |(_, name)| name)
    }

    /// The shape of a name in a configuration.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, known)| *known == name).map(|(shape, _)| *shape)
    }

    /// The names of all.
    pub fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|(_, name)| *name).collect()
    }

    /// Whether tags stand in an identity table.
    pub fn has_identity(self) -> bool {
        self != Shape::Wide
    }

    /// Whether each field has a column of its own.
    pub fn has_field_columns(self) -> bool {
        matches!(self, Shape::Wide | Shape::Star | Shape::StarHot)
    }
}
