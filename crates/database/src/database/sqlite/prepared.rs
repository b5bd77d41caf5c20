//! Prepared statements over SQLite's C interface: [`Prepared`] binds values directly from [`Cells`], without a copy or an
//! allocation. The statements of rusqlite borrow their connection, so a session could not own both.
//!
//! Invariant: between two calls a statement is reset, and no text or blob of an earlier request is bound to it.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::NonNull;

use rusqlite::Connection;
use rusqlite::ffi;

use super::refusal::code_name;
use crate::database::DatabaseError;
use crate::database::stepwise::Kept;
use crate::record::{Cell, Cells};

/// A prepared statement, which must be dropped before its connection is.
pub(super) struct Prepared {
    statement: NonNull<ffi::sqlite3_stmt>,
    parameters: usize,
    columns: usize,
    has_references: bool,
}

// SAFETY: a statement may move between threads together with its connection; SQLite is built thread-safe, and the session
// that owns both lets one thread at a time use them.
unsafe impl Send for Prepared {}

impl Prepared {
    /// Prepares a statement to be executed many times.
    ///
    /// # Errors
    /// SQLite's error, with the statement's text; a text with no statement or with several is refused.
    ///
    /// # Safety
    /// The statement must be dropped before the connection is.
    pub(super) unsafe fn new(connection: &Connection, sql: &str) -> Result<Self, DatabaseError> {
        let refused = |code: String, message: &str| Err(DatabaseError::refused(code, format!("{message} in: {sql}")));
        let Ok(length) = c_int::try_from(sql.len()) else {
            return refused(code_name(ffi::SQLITE_TOOBIG), "statement too long");
        };
        let mut statement = std::ptr::null_mut();
        let mut tail: *const c_char = std::ptr::null();
        // SAFETY: the handle is that of an open connection; text and length are those of a live string; both results are
        // places on this stack.
        let (code, database) = unsafe {
            let database = connection.handle();
            let flags = ffi::SQLITE_PREPARE_PERSISTENT;
            let text = sql.as_ptr().cast();
            (ffi::sqlite3_prepare_v3(database, text, length, flags, &mut statement, &mut tail), database)
        };
        if code != ffi::SQLITE_OK {
            // SAFETY: the handle is that of an open connection.
            let (code, message) = unsafe { last_error(database) };
            return refused(code, &message);
        }
        let Some(statement) = NonNull::new(statement) else {
            return refused(code_name(ffi::SQLITE_ERROR), "no statement");
        };
        // SAFETY: the statement was prepared above and is not finalised before the drop of the value made here.
        let (parameters, columns) = unsafe {
            (ffi::sqlite3_bind_parameter_count(statement.as_ptr()), ffi::sqlite3_column_count(statement.as_ptr()))
        };
        let prepared =
            Prepared { statement, parameters: parameters as usize, columns: columns as usize, has_references: false };
        let rest = &sql[(tail as usize).saturating_sub(sql.as_ptr() as usize).min(sql.len())..];
        if !rest.trim_matches(|c: char| c == ';' || c.is_whitespace()).is_empty() {
            return refused(code_name(ffi::SQLITE_ERROR), "more than one statement");
        }
        Ok(prepared)
    }

    /// Returns the number of values that one execution takes.
    pub(super) fn parameters(&self) -> usize {
        self.parameters
    }

    /// Returns whether the statement answers with rows, even if there are none.
    pub(super) fn is_query(&self) -> bool {
        self.columns > 0
    }

    /// Executes the statement once, with the values from `first` on. Returns the number of rows read, which are appended to `rows`.
    ///
    /// # Errors
    /// SQLite's error; missing values are refused.
    #[inline]
    pub(super) fn execute(
        &mut self,
        cells: &Cells,
        first: usize,
        rows: Option<&mut Cells>,
    ) -> Result<u64, DatabaseError> {
        self.execute_keeping(cells, first, &mut Kept { all: rows, first: None })
    }

    /// Executes the statement like [`Prepared::execute`], and also keeps the first row separately.
    ///
    /// # Errors
    /// The errors of [`Prepared::execute`].
    #[inline]
    pub(super) fn execute_keeping(
        &mut self,
        cells: &Cells,
        first: usize,
        kept: &mut Kept<'_>,
    ) -> Result<u64, DatabaseError> {
        let end = (first + self.parameters).min(cells.len());
        let values = cells.as_slice().get(first..end).unwrap_or_default();
        if values.len() < self.parameters {
            let message = format!("{} values for {} parameters", values.len(), self.parameters);
            return Err(DatabaseError::refused(code_name(ffi::SQLITE_RANGE), message));
        }
        let mut code = ffi::SQLITE_OK;
        for (place, cell) in (1..).zip(values) {
            code |= self.bind(place, *cell, cells);
        }
        let outcome = if code == ffi::SQLITE_OK { self.step(kept) } else { Err(self.error()) };
        // SAFETY: the statement is alive; its answer was taken in above, so that the code of the reset says nothing new.
        unsafe {
            ffi::sqlite3_reset(self.statement.as_ptr());
        }
        outcome
    }

    /// Clears the bound values; must be called before the cells that they were bound from change.
    #[inline]
    pub(super) fn release(&mut self) {
        if self.has_references {
            // SAFETY: the statement is alive.
            unsafe {
                ffi::sqlite3_clear_bindings(self.statement.as_ptr());
            }
            self.has_references = false;
        }
    }

    #[inline]
    fn bind(&mut self, place: c_int, cell: Cell, cells: &Cells) -> c_int {
        let statement = self.statement.as_ptr();
        // SAFETY: the statement is alive and reset. Texts and blobs are bound without a copy: they live in the request's
        // cells, which are borrowed until `execute` is over, and are not read after that: each execution binds
        // every parameter anew, and `release` unbinds them at the end of the request.
        unsafe {
            match cell {
                Cell::Null => ffi::sqlite3_bind_null(statement, place),
                Cell::Int(value) => ffi::sqlite3_bind_int64(statement, place, value),
                Cell::Float(value) => ffi::sqlite3_bind_double(statement, place, value),
                Cell::Text(span) => {
                    self.has_references = true;
                    let (text, encoding) = (cells.bytes_of(span), ffi::SQLITE_UTF8 as u8);
                    let (start, length) = (text.as_ptr().cast(), text.len() as u64);
                    ffi::sqlite3_bind_text64(statement, place, start, length, ffi::SQLITE_STATIC(), encoding)
                }
                Cell::Blob(span) => {
                    self.has_references = true;
                    let bytes = cells.bytes_of(span);
                    let (start, length) = (bytes.as_ptr().cast(), bytes.len() as u64);
                    ffi::sqlite3_bind_blob64(statement, place, start, length, ffi::SQLITE_STATIC())
                }
            }
        }
    }

    #[inline]
    fn step(&mut self, kept: &mut Kept<'_>) -> Result<u64, DatabaseError> {
        let mut read = 0;
        loop {
            // SAFETY: the statement is alive, and everything bound to it is too.
            match unsafe { ffi::sqlite3_step(self.statement.as_ptr()) } {
                ffi::SQLITE_DONE => return Ok(read),
                ffi::SQLITE_ROW => {
                    read += 1;
                    for rows in kept.all.as_deref_mut().into_iter().chain(kept.first.take()) {
                        (0..self.columns).for_each(|column| self.read(column as c_int, rows));
                    }
                }
                _ => return Err(self.error()),
            }
        }
    }

    /// Appends a column of the statement's current row.
    fn read(&self, column: c_int, rows: &mut Cells) {
        let statement = self.statement.as_ptr();
        // SAFETY: the statement stands at a row and has this column. The type is asked first; the text or blob is valid,
        // with the length asked after it, until the next call on the statement, and is copied before.
        unsafe {
            match ffi::sqlite3_column_type(statement, column) {
                ffi::SQLITE_INTEGER => rows.int(ffi::sqlite3_column_int64(statement, column)),
                ffi::SQLITE_FLOAT => rows.float(ffi::sqlite3_column_double(statement, column)),
                ffi::SQLITE_TEXT => {
                    let start = ffi::sqlite3_column_text(statement, column);
                    rows.text(&String::from_utf8_lossy(bytes(start, ffi::sqlite3_column_bytes(statement, column))));
                }
                ffi::SQLITE_BLOB => {
                    let start = ffi::sqlite3_column_blob(statement, column).cast();
                    rows.blob(bytes(start, ffi::sqlite3_column_bytes(statement, column)));
                }
                _ => rows.null(),
            }
        }
    }

    fn error(&self) -> DatabaseError {
        // SAFETY: the statement is alive, and so is the connection that it belongs to.
        let (code, message) = unsafe { last_error(ffi::sqlite3_db_handle(self.statement.as_ptr())) };
        DatabaseError::refused(code, message)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        // SAFETY: the statement is alive and is not used any more; its connection is alive, as `new` demands.
        unsafe {
            ffi::sqlite3_finalize(self.statement.as_ptr());
        }
    }
}

/// # Safety
/// `start` must be null, or point to that many bytes which live and do not change as long as the result is used.
unsafe fn bytes<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    if start.is_null() || length <= 0 {
        return &[];
    }
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(start, length as usize) }
}

/// Returns the code and the message of the last failed call on a connection.
///
/// # Safety
/// The handle must be that of an open connection.
unsafe fn last_error(database: *mut ffi::sqlite3) -> (String, String) {
    // SAFETY: the handle is valid, as the caller promises; the message is a C string that lives until the next call, and is
    // copied before.
    unsafe {
        let message = CStr::from_ptr(ffi::sqlite3_errmsg(database)).to_string_lossy().into_owned();
        (code_name(ffi::sqlite3_extended_errcode(database)), message)
    }
}
