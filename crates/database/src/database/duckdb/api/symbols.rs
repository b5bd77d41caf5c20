//! The functions of DuckDB's C interface that are used here, with the types of `duckdb.h`. Main type: [`Symbols`].
//!
//! Invariant: all functions are there, or none of them is used.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use crate::database::loading::{self, symbols};

pub(super) use crate::database::loading::text_at;

/// A pointer to an object of DuckDB: a database, a connection, a statement, an appender, a chunk of rows, a vector or a type.
pub type Handle = *mut c_void;

/// What functions return that can fail: 0 for success.
pub type State = c_int;

/// `DuckDBSuccess`
pub const SUCCESS: State = 0;

/// `duckdb_result`. Only the functions of DuckDB read its fields.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RawResult {
    columns: u64,
    rows: u64,
    rows_changed: u64,
    column_data: *mut c_void,
    error_message: *mut c_char,
    internal: *mut c_void,
}

impl RawResult {
    /// Returns a result that no function has filled yet.
    pub const fn empty() -> Self {
        let (column_data, error_message, internal) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        RawResult { columns: 0, rows: 0, rows_changed: 0, column_data, error_message, internal }
    }
}

symbols! {
    "duckdb_";
    library_version() -> *const c_char;
    free(*mut c_void);
    create_config(*mut Handle) -> State;
    destroy_config(*mut Handle);
    config_count() -> usize;
    get_config_flag(usize, *mut *const c_char, *mut *const c_char) -> State;
    set_config(Handle, *const c_char, *const c_char) -> State;
    open_ext(*const c_char, *mut Handle, Handle, *mut *mut c_char) -> State;
    close(*mut Handle);
    connect(Handle, *mut Handle) -> State;
    disconnect(*mut Handle);
    interrupt(Handle);
    query(Handle, *const c_char, *mut RawResult) -> State;
    destroy_result(*mut RawResult);
    result_error(*mut RawResult) -> *const c_char;
    result_return_type(RawResult) -> c_int;
    rows_changed(*mut RawResult) -> u64;
    column_count(*mut RawResult) -> u64;
    column_type(*mut RawResult, u64) -> c_int;
    column_logical_type(*mut RawResult, u64) -> Handle;
    decimal_scale(Handle) -> u8;
    decimal_internal_type(Handle) -> c_int;
    destroy_logical_type(*mut Handle);
    fetch_chunk(RawResult) -> Handle;
    destroy_data_chunk(*mut Handle);
    data_chunk_get_size(Handle) -> u64;
    data_chunk_get_vector(Handle, u64) -> Handle;
    vector_get_data(Handle) -> *mut c_void;
    vector_get_validity(Handle) -> *mut u64;
    prepare(Handle, *const c_char, *mut Handle) -> State;
    destroy_prepare(*mut Handle);
    prepare_error(Handle) -> *const c_char;
    prepared_statement_type(Handle) -> c_int;
    nparams(Handle) -> u64;
    param_type(Handle, u64) -> c_int;
    bind_null(Handle, u64) -> State;
    bind_int16(Handle, u64, i16) -> State;
    bind_int32(Handle, u64, i32) -> State;
    bind_int64(Handle, u64, i64) -> State;
    bind_double(Handle, u64, f64) -> State;
    bind_varchar_length(Handle, u64, *const c_char, u64) -> State;
    bind_blob(Handle, u64, *const c_void, u64) -> State;
    execute_prepared(Handle, *mut RawResult) -> State;
    appender_create(Handle, *const c_char, *const c_char, *mut Handle) -> State;
    appender_add_column(Handle, *const c_char) -> State;
    appender_error(Handle) -> *const c_char;
    appender_end_row(Handle) -> State;
    appender_flush(Handle) -> State;
    appender_clear(Handle) -> State;
    appender_destroy(*mut Handle) -> State;
    append_null(Handle) -> State;
    append_int64(Handle, i64) -> State;
    append_double(Handle, f64) -> State;
    append_varchar_length(Handle, *const c_char, u64) -> State;
    append_blob(Handle, *const c_void, u64) -> State;
}

/// Loads the library in a file, which stays loaded until the process ends. The caller checks its version before it calls another function than the one for the version.
///
/// # Errors
/// Fails with a sentence if the file is no library, or lacks a function.
pub fn load(path: &Path) -> Result<Symbols, String> {
    let library = loading::load(path)?;
    Symbols::find(library)
        .map_err(|why| format!("{} is not DuckDB, or a version that is too old: {why}", path.display()))
}
