//! The functions of an ODBC driver manager that are used here, with the types of `sql.h` and `sqlext.h` where a pointer has 64 bits. Main type: [`Symbols`].
//!
//! Invariant: all functions are there, or none of them is used. ODBC 3 fixes their arguments, and [`load`] takes no library without a function that only ODBC 3 has.

#![expect(non_snake_case, reason = "the names of the functions are those of ODBC's documentation")]

use std::ffi::c_void;
use std::path::Path;

use crate::database::loading::{self, symbols};

pub(in crate::database) use crate::database::loading::Handle;

/// `SQLRETURN`
pub type Return = i16;
/// `SQL_SUCCESS`
pub const SUCCESS: Return = 0;
/// `SQL_SUCCESS_WITH_INFO`
pub const WITH_INFO: Return = 1;
/// `SQL_NO_DATA`
pub const NO_DATA: Return = 100;

/// Kinds of handles: `SQL_HANDLE_ENV`, `SQL_HANDLE_DBC` and `SQL_HANDLE_STMT`.
pub mod kind {
    pub const ENVIRONMENT: i16 = 1;
    pub const CONNECTION: i16 = 2;
    pub const STATEMENT: i16 = 3;
}

/// Types of values in the program: `SQL_C_SBIGINT`, `SQL_C_DOUBLE`, `SQL_C_WCHAR`, `SQL_C_CHAR` and `SQL_C_BINARY`.
pub mod held {
    pub const WHOLE: i16 = -25;
    pub const NUMBER: i16 = 8;
    pub const TEXT: i16 = -8;
    pub const UTF8: i16 = 1;
    pub const BYTES: i16 = -2;
}

/// Types of values in SQL.
pub mod types {
    pub const LONGVARCHAR: i16 = -1;
    pub const VARCHAR: i16 = 12;
    pub const BIT: i16 = -7;
    pub const TINYINT: i16 = -6;
    pub const BIGINT: i16 = -5;
    pub const LONGVARBINARY: i16 = -4;
    pub const VARBINARY: i16 = -3;
    pub const BINARY: i16 = -2;
    pub const INTEGER: i16 = 4;
    pub const SMALLINT: i16 = 5;
    pub const FLOAT: i16 = 6;
    pub const REAL: i16 = 7;
    pub const DOUBLE: i16 = 8;
    pub const WVARCHAR: i16 = -9;
    pub const WLONGVARCHAR: i16 = -10;
}

/// `SQL_NULL_DATA`, in the place of a length.
pub const NULL: isize = -1;
/// `SQL_NO_TOTAL`, in the place of a length.
pub const NO_TOTAL: isize = -4;
/// `SQL_NTS`: a text ends with a zero character.
pub const TO_ZERO: i16 = -3;

symbols! {
    "SQL";
    AllocHandle(i16, Handle, *mut Handle) -> Return;
    FreeHandle(i16, Handle) -> Return;
    SetEnvAttr(Handle, i32, *mut c_void, i32) -> Return;
    SetConnectAttr(Handle, i32, *mut c_void, i32) -> Return;
    GetConnectAttr(Handle, i32, *mut c_void, i32, *mut i32) -> Return;
    DriverConnectW(Handle, *mut c_void, *const u16, i16, *mut u16, i16, *mut i16, u16) -> Return;
    Disconnect(Handle) -> Return;
    GetInfoW(Handle, u16, *mut c_void, i16, *mut i16) -> Return;
    PrepareW(Handle, *const u16, i32) -> Return;
    ExecDirectW(Handle, *const u16, i32) -> Return;
    NumParams(Handle, *mut i16) -> Return;
    BindParameter(Handle, u16, i16, i16, i16, usize, i16, *mut c_void, isize, *mut isize) -> Return;
    Execute(Handle) -> Return;
    NumResultCols(Handle, *mut i16) -> Return;
    DescribeColW(Handle, u16, *mut u16, i16, *mut i16, *mut i16, *mut usize, *mut i16, *mut i16) -> Return;
    RowCount(Handle, *mut isize) -> Return;
    Fetch(Handle) -> Return;
    GetData(Handle, u16, i16, *mut c_void, isize, *mut isize) -> Return;
    MoreResults(Handle) -> Return;
    FreeStmt(Handle, u16) -> Return;
    EndTran(i16, Handle, i16) -> Return;
    Cancel(Handle) -> Return;
    GetDiagRecW(i16, Handle, i16, *mut u16, *mut i32, *mut u16, i16, *mut i16) -> Return;
}

/// Loads the driver manager in a file, which stays loaded until the process ends.
///
/// # Errors
/// Fails with a sentence if the file is no library, or lacks a function.
pub fn load(path: &Path) -> Result<Symbols, String> {
    let library = loading::load(path)?;
    Symbols::find(library).map_err(|why| format!("{} is no driver manager of ODBC 3: {why}", path.display()))
}
