//! The appender, DuckDB's way to store many rows at once without a statement. Main type: [`Appender`].
//!
//! Invariant: rows that were refused are dropped and never stored later: DuckDB stores what an appender still has when that is destroyed.

use std::sync::Arc;

use super::database::{Connection, c_text};
use super::refusal;
use super::symbols::{Handle, SUCCESS, State, text_at};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells};

/// An appender of one table.
#[derive(Debug)]
pub struct Appender {
    handle: Handle,
    connection: Arc<Connection>,
}

// SAFETY: an appender belongs to one session, which one thread uses at a time; its connection locks itself.
unsafe impl Send for Appender {}

impl Appender {
    /// Creates the appender of a table. With `columns`, rows have a value for each of these, in this order; otherwise one for each column of the table.
    ///
    /// # Errors
    /// DuckDB's error.
    pub fn new(connection: &Arc<Connection>, table: &str, columns: Option<&[String]>) -> Result<Self, DatabaseError> {
        let name = |name: &str| c_text(name.as_bytes()).map_err(|why| DatabaseError::refused("Parser Error", why));
        let table = name(table)?;
        let columns = columns.unwrap_or_default().iter().map(|column| name(column)).collect::<Result<Vec<_>, _>>()?;
        let symbols = connection.symbols();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the connection is open, the name is a C string, null is the default schema, and the result is a place on this stack.
        let state =
            unsafe { (symbols.appender_create)(connection.handle(), std::ptr::null(), table.as_ptr(), &mut handle) };
        let appender = Appender { handle, connection: Arc::clone(connection) };
        appender.check(state)?;
        for column in columns {
            // SAFETY: the appender is alive, and the name is a C string.
            appender.check(unsafe { (symbols.appender_add_column)(handle, column.as_ptr()) })?;
        }
        Ok(appender)
    }

    /// Appends rows of `width` values from `first` on, and stores them. The rows are stored as a whole or not at all if there is a transaction around the call, or if they are no
    /// more than [`Appender::ROWS_AT_ONCE`].
    ///
    /// # Errors
    /// DuckDB's error. The appender has dropped the rows then, and must not be used again.
    pub fn store(&mut self, cells: &Cells, first: usize, rows: usize, width: usize) -> Result<(), DatabaseError> {
        let stored = self.append(cells, first, rows, width).and_then(|()| {
            // SAFETY: the appender is alive.
            self.check(unsafe { (self.connection.symbols().appender_flush)(self.handle) })
        });
        if stored.is_err() {
            // SAFETY: the appender is alive.
            unsafe { (self.connection.symbols().appender_clear)(self.handle) };
        }
        stored
    }

    /// The number of rows up to which an appender stores nothing before it is told to: a vector of DuckDB.
    pub const ROWS_AT_ONCE: usize = 2_048;

    fn append(&self, cells: &Cells, first: usize, rows: usize, width: usize) -> Result<(), DatabaseError> {
        let values = cells.as_slice().get(first..first + rows * width).unwrap_or_default();
        if values.len() < rows * width || width == 0 {
            let message = format!("{} values for {rows} rows of {width}", values.len());
            return Err(DatabaseError::refused("Invalid Input Error", message));
        }
        for row in values.chunks_exact(width) {
            let mut state = SUCCESS;
            for cell in row {
                state |= self.append_cell(*cell, cells);
            }
            // SAFETY: the appender is alive. It refuses the end of a row that lacks values.
            self.check(state | unsafe { (self.connection.symbols().appender_end_row)(self.handle) })?;
        }
        Ok(())
    }

    #[inline]
    fn append_cell(&self, cell: Cell, cells: &Cells) -> State {
        let (symbols, appender) = (self.connection.symbols(), self.handle);
        // SAFETY: the appender is alive. Texts and blobs are copied by the call.
        unsafe {
            match cell {
                Cell::Null => (symbols.append_null)(appender),
                Cell::Int(value) => (symbols.append_int64)(appender, value),
                Cell::Float(value) => (symbols.append_double)(appender, value),
                Cell::Text(span) => {
                    let text = cells.bytes_of(span);
                    (symbols.append_varchar_length)(appender, text.as_ptr().cast(), text.len() as u64)
                }
                Cell::Blob(span) => {
                    let bytes = cells.bytes_of(span);
                    (symbols.append_blob)(appender, bytes.as_ptr().cast(), bytes.len() as u64)
                }
            }
        }
    }

    fn check(&self, state: State) -> Result<(), DatabaseError> {
        if state == SUCCESS {
            return Ok(());
        }
        // SAFETY: the appender is alive, or null, for which there is no message; the message lives until the next call on it, and is copied.
        let message = unsafe { text_at((self.connection.symbols().appender_error)(self.handle)) };
        Err(refusal::of(&message, None))
    }
}

impl Drop for Appender {
    fn drop(&mut self) {
        // SAFETY: the appender is null or alive, is not used after this, and has no rows left; its connection is open.
        unsafe { (self.connection.symbols().appender_destroy)(&mut self.handle) };
    }
}
