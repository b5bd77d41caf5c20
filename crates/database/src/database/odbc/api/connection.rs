//! A connection through a driver. Main types: [`Connection`], and [`Executing`], by which another thread ends what a connection executes.

use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::refusal::{self, Record, records, text_to_zero};
use super::symbols::{Handle, NO_DATA, Return, SUCCESS, Symbols, TO_ZERO, WITH_INFO, kind};
use super::{Library, Statement};
use crate::database::DatabaseError;

/// `SQL_ATTR_ACCESS_MODE`, `SQL_ATTR_AUTOCOMMIT`, `SQL_ATTR_LOGIN_TIMEOUT` and `SQL_ATTR_CONNECTION_DEAD`
const AUTOCOMMIT: i32 = 102;
const LOGIN_TIMEOUT: i32 = 103;
const CONNECTION_DEAD: i32 = 1209;
/// `SQL_IS_UINTEGER`: an attribute is a number.
const IS_NUMBER: i32 = -5;
/// `SQL_DRIVER_NOPROMPT`
const NO_PROMPT: u16 = 0;
/// Most units of UTF-16 that are read of what a driver says of itself.
const INFO_MOST: usize = 256;

/// What a driver or its database can be asked about itself, with the numbers of `sql.h`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Info {
    /// Name of the driver's file.
    DriverName = 6,
    /// Version of the driver.
    DriverVersion = 7,
    /// Name of the database system.
    System = 17,
    /// Version of the database system.
    SystemVersion = 18,
    /// Version of ODBC that the driver is written for.
    DriverOdbc = 77,
    /// Version of the driver manager.
    Loader = 171,
}

/// The statement that a connection executes at this moment, if another thread may cancel it.
#[derive(Debug, Default)]
pub struct Executing(Mutex<Option<Address>>);

/// The address of a statement.
#[derive(Debug, Clone, Copy)]
struct Address(&'static Symbols, Handle);

// SAFETY: the address is used only for `SQLCancel`, which ODBC allows from another thread, and while its statement is alive.
unsafe impl Send for Address {}

impl Executing {
    /// Cancels the statement that is executed, if there is one.
    pub fn cancel(&self) {
        let executed = self.lock();
        if let Some(Address(symbols, statement)) = *executed {
            // SAFETY: the statement is alive: it is taken out, under the same lock, before its execution returns.
            unsafe { (symbols.Cancel)(statement) };
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Address>> {
        // Each change is complete before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection. It is closed when its last statement and this are gone.
#[derive(Debug)]
pub struct Connection {
    library: &'static Library,
    handle: Handle,
    executing: Arc<Executing>,
    can_be_cancelled: AtomicBool,
    commits_by_itself: AtomicBool,
    takes_utf8: AtomicBool,
}

// SAFETY: a connection and its statements belong to one session, which one thread uses at a time; ODBC asks for no more.
unsafe impl Send for Connection {}
// SAFETY: as above; what another thread does is cancel a statement, which ODBC allows.
unsafe impl Sync for Connection {}

impl Connection {
    /// Opens a connection by a connection string; the driver may take as long as `within` for it, in whole seconds.
    ///
    /// # Errors
    /// The records of the driver manager or the driver.
    pub fn open(library: &'static Library, string: &str, within: Duration) -> Result<Arc<Self>, Vec<Record>> {
        let symbols = &library.symbols;
        let mut handle = std::ptr::null_mut();
        // SAFETY: the environment is alive until the process ends, and the result is a place on this stack.
        if !is_done(unsafe { (symbols.AllocHandle)(kind::CONNECTION, library.environment.0, &mut handle) }) {
            // SAFETY: the environment is alive, and threads may ask it for its records at once.
            return Err(unsafe { records(symbols, kind::ENVIRONMENT, library.environment.0) });
        }
        let handle = Unconnected { symbols, handle: Some(handle) };
        let connection = handle.open(string, within)?;
        Ok(Arc::new(Connection {
            library,
            handle: connection,
            executing: Arc::default(),
            can_be_cancelled: AtomicBool::new(false),
            commits_by_itself: AtomicBool::new(true),
            takes_utf8: AtomicBool::new(false),
        }))
    }

    /// Returns what the driver says of itself or of its database; empty where it does not say it.
    pub fn info(&self, what: Info) -> String {
        let mut text = [0_u16; INFO_MOST];
        let bytes = (INFO_MOST * size_of::<u16>()) as i16;
        let mut length = 0;
        // SAFETY: the connection is open, and the results are places on this stack with the size that is given.
        let code = unsafe {
            (self.symbols().GetInfoW)(self.handle, what as u16, text.as_mut_ptr().cast(), bytes, &mut length)
        };
        if is_done(code) { text_to_zero(&text) } else { String::new() }
    }

    /// Allows that statements are cancelled by another thread. The driver must be one that locks what it needs for that.
    pub fn allow_cancelling(&self) -> Arc<Executing> {
        self.can_be_cancelled.store(true, Ordering::Relaxed);
        Arc::clone(&self.executing)
    }

    /// Has texts go to the driver in UTF-8 and come back so, instead of in UTF-16.
    pub fn take_utf8(&self) {
        self.takes_utf8.store(true, Ordering::Relaxed);
    }

    pub(super) fn takes_utf8(&self) -> bool {
        self.takes_utf8.load(Ordering::Relaxed)
    }

    /// Says whether each statement is committed by itself. The driver is told only if that changes.
    ///
    /// # Errors
    /// The driver's error.
    pub fn commit_each(&self, each: bool) -> Result<(), DatabaseError> {
        if self.commits_by_itself.load(Ordering::Relaxed) == each {
            return Ok(());
        }
        let value = std::ptr::without_provenance_mut::<c_void>(usize::from(each));
        // SAFETY: the connection is open; this attribute is a number in the place of a pointer.
        self.checked(unsafe { (self.symbols().SetConnectAttr)(self.handle, AUTOCOMMIT, value, IS_NUMBER) }, None)?;
        self.commits_by_itself.store(each, Ordering::Relaxed);
        Ok(())
    }

    /// Commits or undoes the transaction.
    ///
    /// # Errors
    /// The driver's error.
    pub fn end(&self, commits: bool) -> Result<(), DatabaseError> {
        // SAFETY: the connection is open.
        self.checked(unsafe { (self.symbols().EndTran)(kind::CONNECTION, self.handle, i16::from(!commits)) }, None)
    }

    /// Executes one text without values. Returns the statement, whose rows can be read.
    ///
    /// # Errors
    /// The driver's error.
    pub fn execute_text(self: &Arc<Self>, sql: &str) -> Result<Statement, DatabaseError> {
        Statement::executed(self, sql)
    }

    pub(super) fn symbols(&self) -> &'static Symbols {
        &self.library.symbols
    }

    pub(super) fn handle(&self) -> Handle {
        self.handle
    }

    /// Calls `execute`, which executes a statement, while other threads may cancel it.
    pub(super) fn executing(&self, statement: Handle, execute: impl FnOnce() -> Return) -> Return {
        if !self.can_be_cancelled.load(Ordering::Relaxed) {
            return execute();
        }
        *self.executing.lock() = Some(Address(self.symbols(), statement));
        let code = execute();
        *self.executing.lock() = None;
        code
    }

    /// Returns whether the driver says that the connection is gone.
    pub(super) fn is_dead(&self) -> bool {
        let (mut is_dead, mut length) = (0_usize, 0);
        // SAFETY: the connection is open, and the results are places on this stack; the attribute is a number of 32 bits, for which there is more room than it needs.
        let code = unsafe {
            let place = (&raw mut is_dead).cast();
            (self.symbols().GetConnectAttr)(self.handle, CONNECTION_DEAD, place, size_of::<usize>() as i32, &mut length)
        };
        is_done(code) && is_dead != 0
    }

    fn checked(&self, code: Return, sql: Option<&str>) -> Result<(), DatabaseError> {
        if is_done(code) {
            return Ok(());
        }
        // SAFETY: the connection is open, and only this thread uses it.
        let records = unsafe { records(self.symbols(), kind::CONNECTION, self.handle) };
        Err(refusal::of(&records, sql, self.is_dead()))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let symbols = self.symbols();
        // SAFETY: the connection is open and is not used after this: its statements have owned a part of it. A transaction that is still open would keep it from being closed.
        unsafe {
            if !self.commits_by_itself.load(Ordering::Relaxed) {
                (symbols.EndTran)(kind::CONNECTION, self.handle, 1);
            }
            (symbols.Disconnect)(self.handle);
            (symbols.FreeHandle)(kind::CONNECTION, self.handle);
        }
    }
}

/// The handle of a connection that is not open yet; it is freed unless it becomes one.
struct Unconnected {
    symbols: &'static Symbols,
    handle: Option<Handle>,
}

impl Unconnected {
    fn open(mut self, string: &str, within: Duration) -> Result<Handle, Vec<Record>> {
        let Some(handle) = self.handle else { return Err(Vec::new()) };
        let seconds = usize::try_from(within.as_secs().max(1)).unwrap_or(usize::MAX);
        let string: Vec<u16> = string.encode_utf16().chain([0]).collect();
        let (none, mut length) = (std::ptr::null_mut(), 0);
        // SAFETY: the handle is alive. The first attribute is a number in the place of a pointer; drivers without it refuse it, and then wait as long as they do. The
        // text ends with a zero, and the result is a place on this stack.
        let code = unsafe {
            let seconds = std::ptr::without_provenance_mut(seconds);
            (self.symbols.SetConnectAttr)(handle, LOGIN_TIMEOUT, seconds, IS_NUMBER);
            let (window, out) = (std::ptr::null_mut(), none);
            (self.symbols.DriverConnectW)(handle, window, string.as_ptr(), TO_ZERO, out, 0, &mut length, NO_PROMPT)
        };
        if is_done(code) {
            self.handle = None;
            return Ok(handle);
        }
        // SAFETY: the handle is alive, and only this thread uses it.
        Err(unsafe { records(self.symbols, kind::CONNECTION, handle) })
    }
}

impl Drop for Unconnected {
    fn drop(&mut self) {
        if let Some(handle) = self.handle {
            // SAFETY: the handle is alive, has no connection, and is not used after this.
            unsafe { (self.symbols.FreeHandle)(kind::CONNECTION, handle) };
        }
    }
}

/// Returns whether a call has done what it should; a change that found no row has.
pub(super) fn is_done(code: Return) -> bool {
    [SUCCESS, WITH_INFO, NO_DATA].contains(&code)
}
