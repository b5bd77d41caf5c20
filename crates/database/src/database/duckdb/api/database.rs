//! An open database file and the connections to it. Main types: [`Database`], [`Connection`].

use std::collections::BTreeMap;
use std::ffi::CString;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::symbols::{Handle, RawResult, SUCCESS, Symbols, text_at};
use super::{Library, Rows, refusal};
use crate::database::DatabaseError;

/// An open database file. It is closed when the last connection to it and this are gone.
#[derive(Debug)]
pub struct Database {
    library: &'static Library,
    handle: Handle,
    /// The open connections, to be interrupted by another thread. A connection leaves the list before it is closed.
    connections: Mutex<Vec<Address>>,
}

/// The address of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Address(Handle);

// SAFETY: the address is used only for `duckdb_interrupt`, which other threads may call, and while the connection is open.
unsafe impl Send for Address {}

// SAFETY: a database may be used by several threads at once, each with a connection of its own; DuckDB locks what they share.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Database {
    /// Opens a file, which is created if it does not exist.
    ///
    /// # Errors
    /// Fails with DuckDB's own message: for an unknown setting or value, or a file that cannot be opened.
    pub fn open(
        library: &'static Library,
        path: &Path,
        settings: &BTreeMap<String, String>,
    ) -> Result<Arc<Self>, String> {
        use std::os::unix::ffi::OsStrExt;
        let symbols = &library.symbols;
        let config = Config::new(symbols)?;
        settings.iter().try_for_each(|(name, value)| config.set(name, value))?;
        let path = c_text(path.as_os_str().as_bytes())?;
        let (mut handle, mut error) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: the path is a C string, the settings are alive, and both results are places on this stack.
        let state = unsafe { (symbols.open_ext)(path.as_ptr(), &mut handle, config.handle, &mut error) };
        if state != SUCCESS {
            // SAFETY: the message is null or a C string that is ours, and is freed once, after it was copied.
            let message = unsafe {
                let message = text_at(error);
                (symbols.free)(error.cast());
                message
            };
            return Err(message);
        }
        Ok(Arc::new(Database { library, handle, connections: Mutex::new(Vec::new()) }))
    }

    /// Interrupts the statements that connections execute at this moment.
    pub fn interrupt_all(&self) {
        for Address(connection) in self.connections().iter() {
            // SAFETY: the connection is open: it leaves this list, which is locked, before it is closed.
            unsafe { (self.library.symbols.interrupt)(*connection) };
        }
    }

    fn connections(&self) -> MutexGuard<'_, Vec<Address>> {
        // Each change is complete before anything can panic.
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the handle is open and is not used after this; every connection has owned a part of this and is closed.
        unsafe { (self.library.symbols.close)(&mut self.handle) };
    }
}

/// Settings with which a database is opened.
struct Config<'s> {
    symbols: &'s Symbols,
    handle: Handle,
}

impl<'s> Config<'s> {
    fn new(symbols: &'s Symbols) -> Result<Self, String> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the result is a place on this stack.
        match unsafe { (symbols.create_config)(&mut handle) } {
            SUCCESS => Ok(Config { symbols, handle }),
            _ => Err("there is no memory for its settings".to_owned()),
        }
    }

    fn set(&self, name: &str, value: &str) -> Result<(), String> {
        let (name_text, value_text) = (c_text(name.as_bytes())?, c_text(value.as_bytes())?);
        // SAFETY: the settings are alive, and both texts are C strings.
        match unsafe { (self.symbols.set_config)(self.handle, name_text.as_ptr(), value_text.as_ptr()) } {
            SUCCESS => Ok(()),
            _ => Err(format!("DuckDB does not take the setting {name} = {value}")),
        }
    }
}

impl Drop for Config<'_> {
    fn drop(&mut self) {
        // SAFETY: the settings are alive and are not used after this; a database that was opened with them has a copy.
        unsafe { (self.symbols.destroy_config)(&mut self.handle) };
    }
}

/// A connection to an open database.
#[derive(Debug)]
pub struct Connection {
    handle: Handle,
    database: Arc<Database>,
}

// SAFETY: a connection locks itself while it executes something, so that any thread may use it.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] if DuckDB has none left to give.
    pub fn open(database: &Arc<Database>) -> Result<Arc<Self>, DatabaseError> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the database is open, and the result is a place on this stack.
        match unsafe { (database.library.symbols.connect)(database.handle, &mut handle) } {
            SUCCESS => {
                database.connections().push(Address(handle));
                Ok(Arc::new(Connection { handle, database: Arc::clone(database) }))
            }
            _ => Err(DatabaseError::Unavailable("DuckDB did not open a connection to its file".to_owned())),
        }
    }

    /// Executes the statements of a text. Returns the rows of the last one.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn query(self: &Arc<Self>, sql: &str) -> Result<Rows, DatabaseError> {
        let text = c_text(sql.as_bytes()).map_err(|why| DatabaseError::refused("Parser Error", why))?;
        let mut raw = RawResult::empty();
        // SAFETY: the connection is open, the text is a C string, and the result is a place on this stack.
        let state = unsafe { (self.symbols().query)(self.handle, text.as_ptr(), &mut raw) };
        // SAFETY: the function has filled the result, which is used nowhere else.
        unsafe { Rows::new(Arc::clone(self), raw, state) }.map_err(|message| refusal::of(&message, None))
    }

    pub(super) fn symbols(&self) -> &'static Symbols {
        &self.database.library.symbols
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.database.connections().retain(|Address(other)| *other != self.handle);
        // SAFETY: the connection is open and is not used after this: statements, appenders and rows own a part of it.
        unsafe { (self.symbols().disconnect)(&mut self.handle) };
    }
}

/// Returns a text as a C string.
pub(super) fn c_text(bytes: &[u8]) -> Result<CString, String> {
    CString::new(bytes).map_err(|_| "a text for DuckDB has a zero character; leave it out".to_owned())
}
