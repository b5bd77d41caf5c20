//! Prepared statements. Main type: [`Statement`].
//!
//! Invariant: values are bound with the type that the statement expects: with another type, DuckDB would plan the statement again at each execution.

use std::ffi::c_int;
use std::sync::Arc;

use super::database::{Connection, c_text};
use super::rows::types;
use super::symbols::{Handle, RawResult, SUCCESS, State, text_at};
use super::{Rows, refusal};
use crate::database::DatabaseError;
use crate::record::{Cell, Cells};

/// A prepared statement.
#[derive(Debug)]
pub struct Statement {
    handle: Handle,
    /// The type of each parameter, as in `duckdb_type`.
    parameters: Vec<c_int>,
    /// The kind of statement, as in `duckdb_statement_type`.
    kind: c_int,
    connection: Arc<Connection>,
}

// SAFETY: a statement belongs to one session, which one thread uses at a time; its connection locks itself.
unsafe impl Send for Statement {}

/// `DUCKDB_STATEMENT_TYPE_SELECT` and `DUCKDB_STATEMENT_TYPE_EXPLAIN`
const READING: [c_int; 2] = [1, 4];
/// Those of INSERT, UPDATE and DELETE.
const CHANGING: [c_int; 3] = [2, 3, 5];

impl Statement {
    /// Prepares a statement.
    ///
    /// # Errors
    /// DuckDB's error, with the statement's text; a text with no statement or with several is refused.
    pub fn new(connection: &Arc<Connection>, sql: &str) -> Result<Self, DatabaseError> {
        let text = c_text(sql.as_bytes()).map_err(|why| DatabaseError::refused("Parser Error", why))?;
        let symbols = connection.symbols();
        let mut handle = std::ptr::null_mut();
        // SAFETY: the connection is open, the text is a C string, and the result is a place on this stack.
        let state = unsafe { (symbols.prepare)(connection.handle(), text.as_ptr(), &mut handle) };
        let mut statement = Statement { handle, parameters: Vec::new(), kind: 0, connection: Arc::clone(connection) };
        if state != SUCCESS || handle.is_null() {
            // SAFETY: the statement is null or one that could not be prepared; its message lives as long as it does, and is copied.
            let message = unsafe { text_at((symbols.prepare_error)(handle)) };
            return Err(refusal::of(&message, Some(sql)));
        }
        // SAFETY: the statement is prepared; parameters are counted from 1.
        unsafe {
            let count = (symbols.nparams)(handle);
            statement.parameters = (1..=count).map(|place| (symbols.param_type)(handle, place)).collect();
            statement.kind = (symbols.prepared_statement_type)(handle);
        }
        Ok(statement)
    }

    /// Returns the number of values that one execution takes.
    pub fn parameters(&self) -> usize {
        self.parameters.len()
    }

    /// Returns whether the statement only reads.
    pub fn only_reads(&self) -> bool {
        READING.contains(&self.kind)
    }

    /// Executes the statement once, with the values from `first` on.
    ///
    /// # Errors
    /// DuckDB's error; missing values are refused.
    pub fn execute(&mut self, cells: &Cells, first: usize) -> Result<Rows, DatabaseError> {
        let end = (first + self.parameters.len()).min(cells.len());
        let values = cells.as_slice().get(first..end).unwrap_or_default();
        if values.len() < self.parameters.len() {
            let message = format!("{} values for {} parameters", values.len(), self.parameters.len());
            return Err(DatabaseError::refused("Invalid Input Error", message));
        }
        for ((place, cell), kind) in (1..).zip(values).zip(&self.parameters) {
            if self.bind(place, *cell, *kind, cells)? != SUCCESS {
                // SAFETY: the statement is alive; its message lives until the next call on it, and is copied.
                let message = unsafe { text_at((self.connection.symbols().prepare_error)(self.handle)) };
                return Err(refusal::of(&message, None));
            }
        }
        let mut raw = RawResult::empty();
        // SAFETY: the statement is alive, all of its parameters are bound, and the result is a place on this stack.
        let state = unsafe { (self.connection.symbols().execute_prepared)(self.handle, &mut raw) };
        // SAFETY: the function has filled the result, which is used nowhere else.
        let rows = unsafe { Rows::new(Arc::clone(&self.connection), raw, state) };
        let rows = rows.map_err(|message| refusal::of(&message, None))?;
        Ok(if CHANGING.contains(&self.kind) { rows.of_changes() } else { rows })
    }

    #[inline]
    fn bind(&self, place: u64, cell: Cell, kind: c_int, cells: &Cells) -> Result<State, DatabaseError> {
        let (symbols, statement) = (self.connection.symbols(), self.handle);
        // SAFETY: the statement is alive and has this parameter. Texts and blobs are copied by the call.
        Ok(unsafe {
            match cell {
                Cell::Null => (symbols.bind_null)(statement, place),
                Cell::Int(value) => match kind {
                    types::SMALLINT => (symbols.bind_int16)(statement, place, narrow(value)?),
                    types::INTEGER => (symbols.bind_int32)(statement, place, narrow(value)?),
                    types::DOUBLE => (symbols.bind_double)(statement, place, value as f64),
                    _ => (symbols.bind_int64)(statement, place, value),
                },
                Cell::Float(value) => (symbols.bind_double)(statement, place, value),
                Cell::Text(span) => {
                    let text = cells.bytes_of(span);
                    (symbols.bind_varchar_length)(statement, place, text.as_ptr().cast(), text.len() as u64)
                }
                Cell::Blob(span) => {
                    let bytes = cells.bytes_of(span);
                    (symbols.bind_blob)(statement, place, bytes.as_ptr().cast(), bytes.len() as u64)
                }
            }
        })
    }
}

fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, DatabaseError> {
    let too_large = |_| DatabaseError::refused("Conversion Error", format!("{value} is out of range for its column"));
    value.try_into().map_err(too_large)
}

impl Drop for Statement {
    fn drop(&mut self) {
        // SAFETY: the statement is null or alive, and is not used after this; its connection is open.
        unsafe { (self.connection.symbols().destroy_prepare)(&mut self.handle) };
    }
}
