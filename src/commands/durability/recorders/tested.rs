//! A recorder under test, whoever made it. Main type: [`Tested`].

use std::time::Duration;

use super::intake::Way;
use crate::layout::recorded::Shape;
use crate::trial::DatabaseSettings;

/// How long a recorder may bring nothing new to the store, once everything runs again, before what is missing counts as lost, in seconds.
pub const PATIENCE_S: f64 = 10.0;

/// A recorder under test.
#[derive(Debug, Clone)]
pub struct Tested {
    /// Its name in results.
    pub name: String,
    /// How it is started.
    pub command: Vec<String>,
    /// The command that prints its version; empty if none is known.
    pub version: Vec<String>,
    /// The files that it reads, by name with their text.
    pub files: Vec<(String, String)>,
    /// How sources send.
    pub way: Way,
    /// The measurement as which their records reach the store.
    pub measurement: String,
    /// How long nothing new may reach the store before what is missing counts as lost.
    pub patience: Duration,
    /// What is particular to loadline's own; `None` for another recorder.
    pub own: Option<Own>,
}

/// What is particular to loadline's own recorder.
#[derive(Debug, Clone)]
pub struct Own {
    /// The kind of database behind it, without a place or an address: a new one is made for the test.
    pub database: DatabaseSettings,
    /// The layout of its tables.
    pub shape: Shape,
}
