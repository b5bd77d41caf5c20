//! The end of statements that run for too long. Main type: [`Deadline`].
//!
//! SQLite has no limit on the time of a statement. It calls a function after some steps of its machine, and ends the statement if that says so.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, ffi};

use crate::database::SessionLimits;

/// The steps of SQLite's machine between two looks at the clock; a look takes as long as a few steps.
const STEPS: c_int = 1_000;

/// What a connection asks whether its statement must end. It must be dropped after the connection.
pub(super) struct Deadline {
    /// What the connection has the address of.
    _limits: Arc<SessionLimits>,
}

impl Deadline {
    /// Ends each statement of a connection at the deadline of these limits, with the error SQLITE_INTERRUPT.
    ///
    /// # Safety
    /// The connection must be dropped before the value.
    pub(super) unsafe fn set(connection: &Connection, limits: &Arc<SessionLimits>) -> Self {
        let limits = Arc::clone(limits);
        let address = Arc::as_ptr(&limits);
        // SAFETY: the handle is that of an open connection, and the caller keeps the value behind the address alive for longer.
        unsafe {
            ffi::sqlite3_progress_handler(connection.handle(), STEPS, Some(is_over), address.cast_mut().cast());
        }
        Deadline { _limits: limits }
    }
}

/// Returns 1 if the deadline is over.
unsafe extern "C" fn is_over(limits: *mut c_void) -> c_int {
    // SAFETY: the address is that which `set` gave, of limits that live as long as the connection; they are only read.
    let limits = unsafe { &*limits.cast::<SessionLimits>() };
    c_int::from(limits.over_at().is_some_and(|over_at| Instant::now() >= over_at))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::super::SQLITE;
    use super::*;
    use crate::trial::DatabaseSettings;

    #[test]
    fn a_statement_ends_at_its_deadline_and_the_next_one_runs() {
        let path = std::env::temp_dir().join(format!("loadline-deadline-{}.db", std::process::id()));
        let path_text = Some(path.display().to_string());
        let settings = DatabaseSettings { name: "sqlite".to_owned(), path: path_text, ..DatabaseSettings::default() };
        let database = SQLITE.open_sql(&settings, None).unwrap();
        let until = Arc::new(Mutex::new(None));
        let own = Arc::clone(&until);
        let limits = SessionLimits::new("", Duration::from_secs(60), Box::new(move || *own.lock().unwrap()));
        let mut session = database.connect_reader(&Arc::new(limits)).unwrap();
        let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT MAX(i) FROM n";
        *until.lock().unwrap() = Some(Instant::now() + Duration::from_millis(50));
        let ended = session.query(endless).unwrap_err().to_string();
        assert!(ended.to_lowercase().contains("interrupt"), "{ended}");
        *until.lock().unwrap() = None;
        assert_eq!(session.query("SELECT 1").unwrap(), [[Some("1".to_owned())]]);
        assert!(session.run("CREATE TABLE t (a INT)").is_err(), "the connection only reads");
        // The last connection takes its log with it.
        drop((session, database));
        std::fs::remove_file(path).unwrap();
    }
}
