//! SQLite, embedded: one file, with write-ahead logging unless it already has another journal, and a sync at every commit. Main type: [`Sqlite`].
//!
//! Invariant: a setting that SQLite would silently ignore (an unknown PRAGMA, a journal mode that the file system does not
//! support) is an error.

mod checkpoints;
mod deadline;
mod dialect;
mod durability;
mod prepared;
mod refusal;
mod session;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::{
    Capabilities, Capability, Database, DatabaseError, Dialect, Entry, Opens, Session, SessionLimits, Target,
    TargetSession, Weakness,
};
use crate::trial::DatabaseSettings;

pub(in crate::database) use dialect::SqliteDialect;
pub(in crate::database) use durability::{LEVELS, level};
use session::SqliteSession;

/// The registry's entry.
pub static SQLITE: Entry = Entry {
    name: "sqlite",
    summary: "SQLite, embedded in loadline; write-ahead log, synced at every commit",
    engines: &[],
    opens: Opens::Sql(|settings, _| Ok(Box::new(Sqlite::open(settings)?))),
    recipe: None,
    library: None,
    clustered: None,
    read_url: None,
    capabilities: Capabilities::SQL.with(Capability::StraightJoin).with(Capability::Text),
    refuses: None,
    refuses_rows: None,
    processes: &[],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// The maximum time that a connection waits for another's lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

/// The settings of every connection, unless `database.config` says otherwise.
const DEFAULTS: [(&str, &str); 3] = [("journal_mode", "wal"), ("synchronous", "full"), ("foreign_keys", "on")];

/// Further settings of a recorder's writer: memory for the pages that a transaction changes, which are otherwise written to the log twice.
const OF_WRITERS: [(&str, &str); 1] = [("cache_size", "-32768")];

/// Settings that only take effect before the file has content; journal_mode = wal adds content.
const FIRST: [&str; 3] = ["page_size", "auto_vacuum", "encoding"];

/// A database file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    /// The PRAGMAs of every connection, in order.
    pragmas: Vec<(String, String)>,
    dialect: SqliteDialect,
}

impl Sqlite {
    /// Opens the file at `database.path`, which is created if it does not exist, and checks that every setting takes effect.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the path or setting and the remedy.
    pub fn open(settings: &DatabaseSettings) -> Result<Self, DatabaseError> {
        let path = match settings.path.as_deref() {
            None | Some("") => return Err(DatabaseError::NoFile),
            Some(":memory:") => {
                return Err(unavailable(
                    "database.path \":memory:\" is another database for each client; name a file, under /dev/shm to keep it \
                     in memory",
                ));
            }
            Some(path) => PathBuf::from(path),
        };
        check_place(&path)?;
        let pragmas = pragmas(&path, &settings.config);
        let sqlite = Sqlite { path, pragmas, dialect: SqliteDialect };
        let connection = sqlite.open_file()?;
        sqlite.check_names(&connection)?;
        sqlite.apply_pragmas(&connection)?;
        Ok(sqlite)
    }

    fn open_file(&self) -> Result<Connection, DatabaseError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(&self.path, flags).map_err(|error| self.cannot_open(&error))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|error| self.cannot_open(&error))?;
        Ok(connection)
    }

    fn cannot_open(&self, error: &rusqlite::Error) -> DatabaseError {
        unavailable(format!(
            "database.path \"{}\" cannot be opened: {}; name a file that loadline may write, or one that does not exist yet",
            self.path.display(),
            refusal::of(error)
        ))
    }

    fn check_names(&self, connection: &Connection) -> Result<(), DatabaseError> {
        let known = (|| {
            let mut statement = connection.prepare("SELECT name FROM pragma_pragma_list")?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            names.collect::<rusqlite::Result<Vec<_>>>()
        })()
        .map_err(|error| self.cannot_open(&error))?;
        check_pragmas(&known, &self.pragmas)
    }

    fn apply_pragmas(&self, connection: &Connection) -> Result<(), DatabaseError> {
        for (name, value) in &self.pragmas {
            let failed = |error: rusqlite::Error| {
                unavailable(format!(
                    "PRAGMA {name} = {value} on \"{}\" failed: {}",
                    self.path.display(),
                    refusal::of(&error)
                ))
            };
            let answer = session::query(connection, &format!("PRAGMA {name} = {value}")).map_err(failed)?;
            let mode = answer.first().and_then(|row| row.first()).and_then(Option::as_deref);
            if name == "journal_mode" && !mode.is_some_and(|mode| mode.eq_ignore_ascii_case(value)) {
                return Err(unavailable(format!(
                    "\"{}\" cannot have journal_mode {value}, it stays at {}; choose another directory, or set \
                     database.config.journal_mode",
                    self.path.display(),
                    mode.unwrap_or("what it was")
                )));
            }
        }
        Ok(())
    }
}

/// Returns the PRAGMAs of every connection to a file, in order: those of `database.config` and the defaults.
pub(in crate::database) fn pragmas(path: &Path, config: &BTreeMap<String, String>) -> Vec<(String, String)> {
    let first = FIRST.iter().filter_map(|name| Some(((*name).to_owned(), config.get(*name)?.clone())));
    // The journal's mode is a property of the file: an existing file keeps its mode.
    let is_new = !std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
    let is_own = |name: &str| is_new || name != "journal_mode";
    let defaults = DEFAULTS.iter().filter(|(name, _)| is_own(name) && !config.contains_key(*name));
    let rest = config.iter().filter(|(name, _)| !FIRST.contains(&name.as_str()));
    first
        .chain(defaults.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        .chain(rest.map(|(name, value)| (name.clone(), value.clone())))
        .collect()
}

/// Checks that PRAGMAs are among those that SQLite knows, since it ignores all others, and that their values can be written.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the setting and the remedy.
pub(in crate::database) fn check_pragmas(known: &[String], pragmas: &[(String, String)]) -> Result<(), DatabaseError> {
    for (name, value) in pragmas {
        if !known.contains(name) {
            let close = known.iter().find(|known| known.contains(name.as_str()) || name.contains(known.as_str()));
            let hint = close.map_or(String::new(), |close| format!("; did you mean \"{close}\"?"));
            return Err(unavailable(format!("database.config: SQLite has no PRAGMA \"{name}\"{hint}")));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if value.is_empty() || !value.chars().all(is_plain) {
            return Err(unavailable(format!(
                "database.config: {name} = \"{value}\" cannot be set; write a number or a word"
            )));
        }
    }
    Ok(())
}

impl Target for Sqlite {
    fn name(&self) -> &'static str {
        SQLITE.name
    }

    fn is_embedded(&self) -> bool {
        true
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(self.connect()?)
    }

    fn sql(&self) -> Option<&dyn Database> {
        Some(self)
    }
}

impl Database for Sqlite {
    fn dialect(&self) -> &dyn Dialect {
        &self.dialect
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        let connection = self.open_file()?;
        self.apply_pragmas(&connection)?;
        Ok(Box::new(SqliteSession::new(connection)?))
    }

    fn connect_writer(&self, _limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let is_configured = |name: &str| self.pragmas.iter().any(|(known, _)| known == name);
        let connection = self.open_file()?;
        self.apply_pragmas(&connection)?;
        for (name, value) in OF_WRITERS.into_iter().filter(|(name, _)| !is_configured(name)) {
            connection.pragma_update(None, name, value).map_err(|error| self.cannot_open(&error))?;
        }
        let mut session = SqliteSession::new(connection)?;
        if !is_configured("wal_autocheckpoint") {
            let own = self.open_file()?;
            self.apply_pragmas(&own)?;
            session.checkpoint_beside(own);
        }
        Ok(Box::new(session))
    }

    fn connect_reader(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let connection = self.open_file()?;
        self.apply_pragmas(&connection)?;
        let mut session = SqliteSession::new(connection)?;
        session.make_read_only()?;
        session.end_within(limits);
        Ok(Box::new(session))
    }

    fn weaknesses(
        &self,
        session: &mut dyn Session,
        _is_asked: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Weakness>, DatabaseError> {
        durability::weaknesses(session)
    }

    fn harden(&self, session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
        durability::harden(session)
    }
}

/// Checks that the file's directory exists; SQLite's own message for a missing directory says only that it could not open the file.
pub(super) fn check_place(path: &Path) -> Result<(), DatabaseError> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let shown = path.display();
    if path.is_dir() {
        return Err(unavailable(format!("database.path \"{shown}\" is a directory; name a file in it")));
    }
    if !directory.is_dir() {
        return Err(unavailable(format!(
            "database.path \"{shown}\": there is no directory \"{}\"; create it, or name another file",
            directory.display()
        )));
    }
    Ok(())
}

fn unavailable(message: impl Into<String>) -> DatabaseError {
    DatabaseError::Unavailable(message.into())
}
