//! Writes numbers into a table of SQLite, each in a transaction of its own, and says each one that is committed: what a cut must not take back.
//!
//! Arguments: the path of the database, a journal mode, a level of `synchronous`.

use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, journal, synchronous] = arguments.as_slice() else { return Err("PATH JOURNAL SYNCHRONOUS".into()) };
    let database = rusqlite::Connection::open(path)?;
    database.execute_batch(&format!(
        "PRAGMA journal_mode = {journal}; PRAGMA synchronous = {synchronous}; CREATE TABLE IF NOT EXISTS numbers (number INTEGER PRIMARY KEY, filling TEXT)"
    ))?;
    let mut told = std::io::stdout().lock();
    let filling = "x".repeat(300);
    for number in 1.. {
        database.execute("INSERT INTO numbers VALUES (?1, ?2)", (number, &filling))?;
        writeln!(told, "{number}")?;
        told.flush()?;
    }
    Ok(())
}
