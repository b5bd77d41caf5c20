//! DuckDB, embedded: one file, through the C interface of a library that is loaded at run time. Main type: [`Duckdb`].
//!
//! Invariant: a setting that DuckDB does not know is an error, and nothing is fetched from the network unless a study asks for it.

mod api;
mod dialect;
mod durability;
pub mod library;
mod open;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::sqlite::check_place;
use super::{
    Capabilities, Capability, Database, DatabaseError, Dialect, Entry, Opens, Session, SessionLimits, Target,
    TargetSession,
};
use crate::trial::DatabaseSettings;
use crate::written::closest;

pub use api::CONFLICT;

use api::Library;
use dialect::DuckdbDialect;
use open::Lease;
use session::DuckdbSession;

/// The registry's entry.
pub static DUCKDB: Entry = Entry {
    name: "duckdb",
    summary: "DuckDB, embedded in loadline, from a library that is loaded at run time; log synced at every commit",
    engines: &[],
    opens: Opens::Sql(|settings, _| Ok(Box::new(Duckdb::open(settings)?))),
    recipe: None,
    library: Some(library::find),
    clustered: None,
    read_url: None,
    capabilities: Capabilities::SQL
        .without(Capability::DryRuns)
        .without(Capability::SchemaChanges)
        .without(Capability::Processes)
        .with(Capability::Text),
    refuses: None,
    refuses_rows: None,
    processes: &[],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// The settings of every database, unless `database.config` says otherwise: extensions are neither downloaded nor searched for.
const DEFAULTS: [(&str, &str); 2] = [("autoinstall_known_extensions", "false"), ("autoload_known_extensions", "false")];

/// A database file.
#[derive(Debug)]
pub struct Duckdb {
    library: &'static Library,
    path: PathBuf,
    settings: BTreeMap<String, String>,
    dialect: DuckdbDialect,
    limits: Option<Arc<SessionLimits>>,
}

impl Duckdb {
    /// Opens the file at `database.path`, which is created if it does not exist, and checks every setting. The file is closed again until there is a connection.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the path or setting and the remedy, or where the library is missing.
    pub fn open(settings: &DatabaseSettings) -> Result<Self, DatabaseError> {
        let path = match settings.path.as_deref() {
            None | Some("") => return Err(DatabaseError::NoFile),
            Some(":memory:") => {
                return Err(unavailable(
                    "database.path \":memory:\" is gone with the last connection; name a file, under /dev/shm to keep it in memory",
                ));
            }
            Some(path) => PathBuf::from(path),
        };
        check_place(&path)?;
        let library = library::load().map_err(|fault| unavailable(fault.to_string()))?;
        check_names(library, &settings.config)?;
        let defaults = DEFAULTS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let settings = defaults.chain(settings.config.clone()).collect();
        let duckdb = Duckdb { library, path, settings, dialect: DuckdbDialect, limits: None };
        duckdb.lease()?;
        Ok(duckdb)
    }

    fn lease(&self) -> Result<Lease, DatabaseError> {
        Lease::new(self.library, &self.path, &self.settings, self.limits.as_ref()).map_err(|why| {
            let why = why.split("\n\n").next().unwrap_or_default().replace('\n', " ");
            unavailable(format!(
                "database.path \"{}\" cannot be opened: {why}; name a file of DuckDB that no other process has open, or one that does not exist yet, and check database.config",
                self.path.display()
            ))
        })
    }

    fn session(&self) -> Result<DuckdbSession, DatabaseError> {
        DuckdbSession::new(self.lease()?, self.library)
    }
}

/// Checks that DuckDB has these settings.
fn check_names(library: &Library, config: &BTreeMap<String, String>) -> Result<(), DatabaseError> {
    if config.is_empty() {
        return Ok(());
    }
    let known = library.settings();
    let Some(name) = config.keys().find(|name| !known.contains(name)) else { return Ok(()) };
    let hint = closest(name, known.iter().map(String::as_str));
    let hint = hint.map_or(String::new(), |close| format!("; did you mean \"{close}\"?"));
    let version = library.version();
    Err(unavailable(format!("database.config: DuckDB {version} has no setting \"{name}\"{hint}")))
}

impl Target for Duckdb {
    fn name(&self) -> &'static str {
        DUCKDB.name
    }

    fn is_embedded(&self) -> bool {
        true
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(Box::new(self.session()?))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn sql(&self) -> Option<&dyn Database> {
        Some(self)
    }
}

impl Database for Duckdb {
    fn dialect(&self) -> &dyn Dialect {
        &self.dialect
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        Ok(Box::new(self.session()?))
    }
}

/// Returns the files that DuckDB puts beside a database file: its log, and a directory for what does not fit into memory.
pub fn companions(file: &Path) -> [PathBuf; 2] {
    [".wal", ".tmp"].map(|suffix| PathBuf::from(format!("{}{suffix}", file.display())))
}

fn unavailable(message: impl Into<String>) -> DatabaseError {
    DatabaseError::Unavailable(message.into())
}
