//! Checkpoints beside a writer: what its commits left in the write-ahead log goes to the database's file on a thread of its own, so that
//! commits do not wait for that.
//!
//! Main type: [`Checkpoints`]. Invariant: the log is bounded. SQLite begins it anew only when all of it is in the file at the start of a
//! transaction, which never happens while transactions follow each other closely: behind [`PAGES_MOST`] the writer finishes the little that
//! is left itself, before its next transaction.

use std::ffi::{c_char, c_int, c_void};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rusqlite::{Connection, ffi};

/// The thread begins when so many more pages are in the log: 8 MiB of pages of 4 KiB. A page that changes often is written to the file once
/// for all of them.
const PAGES_EVERY: c_int = 2_048;
/// The log is begun anew when it has so many pages: 64 MiB.
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

/// What is known of the log.
#[derive(Debug, Default)]
struct State {
    /// Pages in it as of the last commit.
    pages: c_int,
    /// How many of them have been dealt with.
    written: c_int,
    is_running: bool,
    is_over: bool,
}

impl Checkpoints {
    /// Starts the thread with a connection of its own, and takes over from SQLite's checkpoints on the writer's connection. None when
    /// the system has no thread left: SQLite's own checkpoints stay then.
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

/// What SQLite calls after each commit, once it is durable; the answer to the commit waits for it.
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

/// Writes what can be written of the log to the file, without waiting for anybody.
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

    /// The log has so many pages after a commit.
    fn note(&self, pages: c_int, finish: impl FnOnce()) {
        let mut state = self.lock();
        if pages < state.pages {
            // It was begun anew.
            state.written = 0;
        }
        state.pages = pages;
        if pages >= PAGES_MOST {
            // The thread has written nearly all of it; nobody commits while the rest is written.
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
            // Where it fails, more must have come before it is tried again.
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
