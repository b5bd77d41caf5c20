//! The least that a program can do to write rows into SQLite, in a process of its own: rows made beforehand, bound through the C
//! interface of the same library that loadline has inside, with the same settings.

use std::ffi::{CStr, CString};
use std::time::Instant;

use loadline::database::dialect::statement_text;
use loadline::database::find;
use loadline::record::Cell;
use loadline::statement::Request;
use loadline::trial::DatabaseSettings;
use rusqlite::ffi;

use crate::rows::{BATCH, Rows};

/// The first argument that makes the benchmark this program.
pub const MODE: &str = "sqlite-reference";

/// Writes the rows into a file that has the table, and prints the seconds that it took.
pub fn run(file: &str, batches: u32) {
    let rows = Rows::new(batches);
    let requests: Vec<Request> = rows.requests().collect();
    let connection = rusqlite::Connection::open(file).expect("the file was made just now");
    let settings = "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA foreign_keys = on";
    connection.execute_batch(settings).expect("SQLite has these settings");
    let database = find("sqlite")
        .expect("SQLite is registered")
        .open_sql(&DatabaseSettings { path: Some(file.to_owned()), ..DatabaseSettings::default() }, None)
        .expect("the file was opened just now");
    let sql = CString::new(statement_text(database.dialect(), rows.insert(), 1)).expect("SQL has no zero byte");
    // SAFETY: the connection is open as long as this function runs.
    let elapsed_s = unsafe { insert(connection.handle(), &sql, &requests) };
    println!("{elapsed_s:.6}");
}

/// # Safety
/// The handle must be that of an open connection.
unsafe fn insert(handle: *mut ffi::sqlite3, sql: &CStr, requests: &[Request]) -> f64 {
    let run = |sql: &CStr| {
        // SAFETY: the handle is valid, as the caller promises, and the text is a C string.
        let code = unsafe { ffi::sqlite3_exec(handle, sql.as_ptr(), None, std::ptr::null_mut(), std::ptr::null_mut()) };
        assert_eq!(code, ffi::SQLITE_OK);
    };
    let mut statement = std::ptr::null_mut();
    // SAFETY: the handle is valid; the statement is prepared here, used with its own number of parameters, and finalised at the end.
    unsafe {
        let persistent = ffi::SQLITE_PREPARE_PERSISTENT;
        let code = ffi::sqlite3_prepare_v3(handle, sql.as_ptr(), -1, persistent, &mut statement, std::ptr::null_mut());
        assert_eq!(code, ffi::SQLITE_OK);
        let begin = Instant::now();
        for request in requests {
            run(c"BEGIN IMMEDIATE");
            for row in request.cells.as_slice().chunks_exact(request.cells.len() / BATCH as usize) {
                for (place, cell) in (1..).zip(row) {
                    match cell {
                        Cell::Int(value) => ffi::sqlite3_bind_int64(statement, place, *value),
                        Cell::Float(value) => ffi::sqlite3_bind_double(statement, place, *value),
                        _ => ffi::sqlite3_bind_null(statement, place),
                    };
                }
                assert_eq!(ffi::sqlite3_step(statement), ffi::SQLITE_DONE);
                ffi::sqlite3_reset(statement);
            }
            run(c"COMMIT");
        }
        let elapsed_s = begin.elapsed().as_secs_f64();
        ffi::sqlite3_finalize(statement);
        elapsed_s
    }
}
