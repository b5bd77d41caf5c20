//! Checkpoints beside a writer: a separate thread moves its commits from the write-ahead log to the database file, so that
//! commits do not wait for that.
//!
//! Main type: [`Checkpoints`]. Invariant: the log is bounded. SQLite restarts it only when all of it is in the file at the start of a
//! transaction, which never happens while transactions follow each other closely: above [`PAGES_MOST`] the writer itself writes the few
//! remaining pages before its next transaction.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, ffi};

/// The number of new pages in the log at which the thread starts a checkpoint: 8 MiB of pages of 4 KiB. A page that changes often is
/// written to the file once for all its changes.
const PAGES_EVERY: c_int = 2_048;
/// The number of pages in the log at which it is restarted: 64 MiB.
const PAGES_MOST: c_int = 16_384;

/// A thread that makes checkpoints while another connection writes.
pub(super) struct Checkpoints {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// The state of the log.
#[derive(Debug, Default)]
struct State {
    /// The number of pages in the log as of the last commit.
    pages: c_int,
    /// The number of pages for which a checkpoint has been started or made.
    written: c_int,
    is_running: bool,
    is_over: bool,
}

impl Checkpoints {
    /// Starts the thread with its own connection, in place of SQLite's checkpoints on the writer's connection. Returns `None` when
    /// the system has no thread left: SQLite's own checkpoints remain then.
    ///
    /// # Safety
    /// The writer's connection must be closed before this is dropped.
    pub(super) unsafe fn start(writer: &Connection, own: Connection) -> Option<Self> {
        let shared = Arc::new(Shared::default());
        let of_thread = Arc::clone(&shared);
        let work = move || of_thread.work(&own);
        let thread = std::thread::Builder::new().name("checkpoints".to_owned()).spawn(work).ok()?;
        let context = Arc::as_ptr(&shared).cast_mut().cast();
        // SAFETY: the handle is that of an open connection. The context lives as long as the value made here, which the caller keeps
        // longer than the connection.
        unsafe { ffi::sqlite3_wal_hook(writer.handle(), Some(committed), context) };
        Some(Checkpoints { shared, thread: Some(thread) })
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
        // A thread that panicked has nothing more to do.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The hook that SQLite calls after each commit, once it is durable; the answer to the commit waits for it.
unsafe extern "C" fn committed(
    context: *mut c_void,
    database: *mut ffi::sqlite3,
    _name: *const c_char,
    pages: c_int,
) -> c_int {
    // SAFETY: the context is the `Shared` that `start` registered, and lives longer than the connection.
    let shared = unsafe { &*context.cast_const().cast::<Shared>() };
    // SAFETY: SQLite hands over the handle of the connection that has just committed.
    shared.note(pages, || unsafe { checkpoint(database) });
    ffi::SQLITE_OK
}

/// Writes as much of the log to the file as possible, without waiting for other connections.
///
/// # Safety
/// The handle must be that of an open connection.
unsafe fn checkpoint(database: *mut ffi::sqlite3) {
    let nowhere = std::ptr::null_mut;
    // SAFETY: as the caller promises; SQLite takes null for all databases, and for figures that nobody asks for. An error leaves all of it
    // in the log, which is durable, for the next time, as it does with SQLite's own checkpoints.
    unsafe {
        ffi::sqlite3_wal_checkpoint_v2(
            database,
            std::ptr::null(),
            ffi::SQLITE_CHECKPOINT_PASSIVE,
            nowhere(),
            nowhere(),
        );
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is complete before anything can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the number of pages in the log after a commit, and starts a checkpoint where one is due.
    fn note(&self, pages: c_int, finish: impl FnOnce()) {
        let mut state = self.lock();
        if pages < state.pages {
            // The log was restarted.
            state.written = 0;
        }
        state.pages = pages;
        if pages >= PAGES_MOST {
            // The thread has written nearly all of it; no commit happens while the rest is written.
            let is_running = |state: &mut State| state.is_running;
            state = self.changed.wait_while(state, is_running).unwrap_or_else(PoisonError::into_inner);
            finish();
            state.written = pages;
        } else if state.is_due() {
            drop(state);
            self.changed.notify_all();
        }
    }

    fn work(&self, connection: &Connection) {
        loop {
            let idle = |state: &mut State| !state.is_over && !state.is_due();
            let mut state = self.changed.wait_while(self.lock(), idle).unwrap_or_else(PoisonError::into_inner);
            if state.is_over {
                return;
            }
            state.is_running = true;
            // If the checkpoint fails, it is tried again only after further pages.
            state.written = state.pages;
            drop(state);
            // SAFETY: the connection is borrowed and open.
            unsafe { checkpoint(connection.handle()) };
            self.lock().is_running = false;
            self.changed.notify_all();
        }
    }
}

impl State {
    fn is_due(&self) -> bool {
        self.pages - self.written >= PAGES_EVERY
    }
}

#[cfg(test)]
mod tests {
    use super::super::Sqlite;
    use crate::database::{Database, SessionLimits};
    use crate::trial::DatabaseSettings;

    #[test]
    fn the_log_stays_bounded_while_transactions_follow_each_other_and_nothing_is_lost() {
        let directory = std::env::temp_dir().join(format!("loadline-checkpoints-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let path = directory.join("a.db");
        let settings = DatabaseSettings { path: Some(path.display().to_string()), ..DatabaseSettings::default() };
        let sqlite = Sqlite::open(&settings).unwrap();
        let limits = SessionLimits::new("", std::time::Duration::from_secs(1), Box::new(|| None));
        let mut session = sqlite.connect_writer(&std::sync::Arc::new(limits)).unwrap();
        session.run("PRAGMA synchronous = off; CREATE TABLE t (a INTEGER PRIMARY KEY, b BLOB)").unwrap();
        let bytes = |suffix: &str| std::fs::metadata(format!("{}{suffix}", path.display())).unwrap().len();
        // 400 MiB in transactions of 4 MiB: more than six times what the log may have.
        let (mut log_bytes_max, mut file_bytes) = (0, 0);
        for _ in 0..100 {
            session
                .run(
                    "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1024) \
                     INSERT INTO t (b) SELECT zeroblob(3900) FROM n",
                )
                .unwrap();
            (log_bytes_max, file_bytes) = (bytes("-wal").max(log_bytes_max), bytes("").max(file_bytes));
        }
        assert!(log_bytes_max < 80 << 20, "{log_bytes_max}");
        assert!(file_bytes > 300 << 20, "{file_bytes}");
        drop(session);
        let mut session = sqlite.connect().unwrap();
        assert_eq!(session.query("SELECT count(*) FROM t").unwrap(), [[Some("102400".to_owned())]]);
        assert_eq!(session.query("PRAGMA integrity_check").unwrap(), [[Some("ok".to_owned())]]);
        drop(session);
        std::fs::remove_dir_all(&directory).unwrap();
    }
}
