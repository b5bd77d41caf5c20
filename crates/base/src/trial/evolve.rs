//! `workload.evolve_…`: which change of the schema is made while a load runs, and how.

use serde::{Deserialize, Serialize};

/// How the schema changes, beside how often.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EvolveSettings {
    /// What is changed.
    #[serde(skip_serializing_if = "super::is_default", default)]
    pub change: SchemaChangeKind,
    /// How the database is told to do it, in small letters: `instant`, `inplace`, `copy` (MariaDB, MySQL), `concurrently` (indexes
    /// of PostgreSQL). Without it the ways are tried in order, the best first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub algorithm: Option<String>,
    /// How much longer than its duration the load goes on at most for a change that is being made, in seconds; without it
    /// [`EVOLVE_AT_MOST_S`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub at_most_s: Option<f64>,
}

/// See [`EvolveSettings::at_most_s`].
pub const EVOLVE_AT_MOST_S: f64 = 60.0;

/// A kind of change of the schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SchemaChangeKind {
    /// A field that records lack at first, and that some of them get.
    #[default]
    Field,
    /// A column that has a value in every record by its default.
    Default,
    /// The same, and it cannot be null.
    NotNull,
    /// An index on a column that is there.
    Index,
}
