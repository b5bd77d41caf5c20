//! `workload.evolve_…`: the schema change that is made while a load runs.

use serde::{Deserialize, Serialize};

/// The schema change, apart from its frequency.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EvolveSettings {
    /// The kind of change.
    #[serde(skip_serializing_if = "super::is_default", default)]
    pub change: SchemaChangeKind,
    /// The method that the database is told to use, in lower case: `instant`, `inplace`, `copy` (MariaDB, MySQL), `concurrently` (indexes
    /// of PostgreSQL). Without it the methods are tried in order, the best first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub algorithm: Option<String>,
    /// Largest time by which the load is extended beyond its duration for a change that is still being made, in seconds; without it
    /// [`EVOLVE_AT_MOST_S`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at_most_s: Option<f64>,
}

/// Default of [`EvolveSettings::at_most_s`].
pub const EVOLVE_AT_MOST_S: f64 = 60.0;

/// A kind of schema change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaChangeKind {
    /// A field that records lack at first, and that some of them get.
    #[default]
    Field,
    /// A column that has a value in every record through its default.
    Default,
    /// A column with a default that cannot be null.
    NotNull,
    /// An index on an existing column.
    Index,
}
