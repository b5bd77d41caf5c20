//! Recipes: what `server/` needs to know to start a private server of a database.

use std::path::{Path, PathBuf};

use super::Endpoint;
use crate::trial::DatabaseSettings;

/// How a private server is made, started and stopped. Values in, values out: the work is done in `server/`.
pub trait Recipe: Send + Sync {
    /// The server's binary: `settings.binary`, under `settings.base`, or the one installed.
    ///
    /// # Errors
    /// A sentence that names where it was looked for and the package that brings it.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, String>;

    /// The user that the server runs as when loadline runs as root, in order of preference.
    fn users(&self) -> &'static [&'static str];

    /// Commands that make an empty data directory; executed once, in order.
    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine>;

    /// The command that runs the server in the foreground.
    fn start(&self, binary: &Path, directory: &Path, port: u16, settings: &DatabaseSettings) -> CommandLine;

    /// Where a server started so will listen.
    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings) -> Endpoint;

    /// The signal that asks it to stop in an orderly and quick way.
    fn stop_signal(&self) -> i32;

    /// Queries whose first row tells the version and the settings that matter, as (name, query).
    fn facts(&self) -> &'static [(&'static str, &'static str)];
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// Program.
    pub program: PathBuf,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Added environment variables.
    pub environment: Vec<(String, String)>,
}
