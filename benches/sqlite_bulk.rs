//! Bulk writing of qos rows into SQLite: loadline's whole path (workload, generator, layout, session) against a minimal
//! program that binds rows made beforehand through SQLite's C interface. Same library, same tables, same settings, same
//! rows, interleaved rounds: `cargo bench --bench sqlite_bulk [-- DIRECTORY]`.

use std::error::Error;
use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use loadline::database::dialect::{create_table, statement_text};
use loadline::database::{Database, sqlite::Sqlite};
use loadline::record::Cell;
use loadline::statement::Request;
use loadline::trial::{DatabaseSettings, Settings};
use loadline::workload::{Client, Work};
use rusqlite::ffi;

const ROUNDS: usize = 5;
const BATCH: u32 = 1000;
const BATCHES: usize = 50;

fn main() -> Result<(), Box<dyn Error>> {
    let given = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let directory = given.map_or_else(std::env::temp_dir, PathBuf::from);
    let path = directory.join(format!("loadline-bench-{}.db", std::process::id()));
    let work = Work::new(&settings())?;
    let mut rates = [[0.0; 2]; ROUNDS];
    for [minimal_rate, loadline_rate] in &mut rates {
        *minimal_rate = with_file(&path, |path| minimal(path, &work))?;
        *loadline_rate = with_file(&path, |path| loadline(path, &work))?;
    }
    let [minimal, loadline] = [0, 1].map(|which| median(rates.map(|rates| rates[which])));
    println!(
        "SQLite bulk, {} qos rows in batches of {BATCH}, layout wide, in {}",
        BATCH as usize * BATCHES,
        path.display()
    );
    println!("  minimal program  {minimal:>9.0} rows/s (median of {ROUNDS} interleaved rounds)");
    println!("  loadline         {loadline:>9.0} rows/s, {:.2} x", loadline / minimal);
    Ok(())
}

fn settings() -> Settings {
    let mut settings = Settings::default();
    settings.record.type_name = "qos".to_owned();
    settings.record.table = "qos".to_owned();
    settings.record.per_measurement = u64::from(BATCH);
    settings.layout.name = "wide".to_owned();
    settings.workload.name = "write".to_owned();
    settings.workload.batch = BATCH;
    settings
}

fn median(mut values: [f64; ROUNDS]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[ROUNDS / 2]
}

/// Runs with a file that is not there before nor after.
fn with_file(path: &Path, run: impl Fn(&Path) -> Result<f64, Box<dyn Error>>) -> Result<f64, Box<dyn Error>> {
    let remove = || {
        for suffix in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
        }
    };
    remove();
    let rate = run(path);
    remove();
    rate
}

/// Opens the file and creates the table.
fn create(path: &Path, work: &Work) -> Result<Sqlite, Box<dyn Error>> {
    let path = Some(path.to_string_lossy().into_owned());
    let database = Sqlite::open(&DatabaseSettings { path, ..DatabaseSettings::default() })?;
    let mut session = database.connect()?;
    for table in &work.program().tables {
        for sql in create_table(database.dialect(), table) {
            session.run(&sql)?;
        }
    }
    Ok(database)
}

/// Rows per second of loadline's own path.
fn loadline(path: &Path, work: &Work) -> Result<f64, Box<dyn Error>> {
    let database = create(path, work)?;
    let mut session = database.connect()?;
    session.prepare(work.program())?;
    let mut workload = work.workload(Client { number: 0, of: 1, seed: 1 })?;
    let mut request = Request::default();
    let begin = Instant::now();
    for _ in 0..BATCHES {
        request.clear();
        work.next(&mut *workload, &mut request);
        session.execute(&request, None)?;
    }
    Ok(f64::from(BATCH) * BATCHES as f64 / begin.elapsed().as_secs_f64())
}

/// Rows per second of the least that a program can do.
fn minimal(path: &Path, work: &Work) -> Result<f64, Box<dyn Error>> {
    let database = create(path, work)?;
    let mut workload = work.workload(Client { number: 0, of: 1, seed: 1 })?;
    let requests: Vec<Request> = (0..BATCHES)
        .map(|_| {
            let mut request = Request::default();
            work.next(&mut *workload, &mut request);
            request
        })
        .collect();
    let connection = rusqlite::Connection::open(path)?;
    connection.execute_batch("PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA foreign_keys = on")?;
    let sql = CString::new(statement_text(database.dialect(), &work.program().statements[0], 1))?;
    // SAFETY: the connection outlives the statement, which is finalised below; the text is a C string of this function.
    unsafe {
        let handle = connection.handle();
        let mut statement = std::ptr::null_mut();
        assert_eq!(ffi::sqlite3_prepare_v2(handle, sql.as_ptr(), -1, &mut statement, std::ptr::null_mut()), 0);
        let begin = Instant::now();
        for request in &requests {
            assert_eq!(
                ffi::sqlite3_exec(handle, c"BEGIN".as_ptr(), None, std::ptr::null_mut(), std::ptr::null_mut()),
                0
            );
            let width = request.cells.len() / BATCH as usize;
            for row in request.cells.as_slice().chunks_exact(width) {
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
            assert_eq!(
                ffi::sqlite3_exec(handle, c"COMMIT".as_ptr(), None, std::ptr::null_mut(), std::ptr::null_mut()),
                0
            );
        }
        let elapsed_s = begin.elapsed().as_secs_f64();
        ffi::sqlite3_finalize(statement);
        Ok(f64::from(BATCH) * BATCHES as f64 / elapsed_s)
    }
}
