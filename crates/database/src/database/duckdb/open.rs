//! The files that this process has open. Main type: [`Lease`], by which each connection keeps its file open.
//!
//! DuckDB locks a file for one process, and within it one object must stand for the file: two would each have a log of their own. Invariant: a file is opened once however many
//! connections there are, and closed with the last of them, so that its log is in the file when nobody uses it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::api::{Connection, Database, Library};
use crate::database::interrupting::Watch;
use crate::database::{DatabaseError, SessionLimits};

/// A file that is open, with the number of its leases.
struct Opened {
    path: PathBuf,
    settings: BTreeMap<String, String>,
    leases: usize,
    database: Arc<Database>,
    /// Ends before the database does.
    _watch: Option<Watch>,
}

/// All files that are open in this process. The lock is held while one is opened or closed.
static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

fn opened() -> MutexGuard<'static, Vec<Opened>> {
    // Each change is complete before anything can panic.
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to use an open file.
#[derive(Debug)]
pub struct Lease {
    path: PathBuf,
    database: Option<Arc<Database>>,
}

impl Lease {
    /// Opens a file, or takes part in one that is open with the same settings. With `limits`, what it executes is interrupted when loadline is told to end.
    ///
    /// # Errors
    /// Fails with a sentence if the file cannot be opened, or is open with other settings.
    pub fn new(
        library: &'static Library,
        path: &Path,
        settings: &BTreeMap<String, String>,
        limits: Option<&Arc<SessionLimits>>,
    ) -> Result<Self, String> {
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        let mut all = opened();
        let lease = |database: &Arc<Database>| Lease { path: path.clone(), database: Some(Arc::clone(database)) };
        if let Some(known) = all.iter_mut().find(|known| known.path == path) {
            if known.settings != *settings {
                return Err("it is open in this process with other settings".to_owned());
            }
            known.leases += 1;
            return Ok(lease(&known.database));
        }
        let database = Database::open(library, &path, settings)?;
        let watched = Arc::clone(&database);
        let watch = limits.and_then(|limits| Watch::start(limits, move || watched.interrupt_all()));
        let lease = lease(&database);
        all.push(Opened { path, settings: settings.clone(), leases: 1, database, _watch: watch });
        Ok(lease)
    }

    /// Opens a connection to the file.
    ///
    /// # Errors
    /// The errors of [`Connection::open`].
    pub fn connect(&self) -> Result<Arc<Connection>, DatabaseError> {
        let closed = || DatabaseError::Unavailable("the file is closed".to_owned());
        Connection::open(self.database.as_ref().ok_or_else(closed)?)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut all = opened();
        self.database = None;
        let Some(place) = all.iter().position(|known| known.path == self.path) else { return };
        all[place].leases -= 1;
        if all[place].leases == 0 {
            // The database is closed here, while the lock keeps others from opening the same file.
            drop(all.swap_remove(place));
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // The thread has a part of the database.
        self._watch = None;
    }
}
