//! Reads statement logs in any form that a server writes, and SQL files.
//!
//! Main function: [`read_log`]. Invariant: a log is read line by line, and a line of any length takes bounded memory.

use std::io::{BufRead, Read};

use super::collector::Takes;
use super::lines::Lines;
use super::{mysql_log, postgres_log, script};

/// The number of bytes from which the form is recognised.
pub const TOLD_BY_BYTES: usize = 64 << 10;

/// The form of a log file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogForm {
    /// PostgreSQL's log as CSV.
    PostgresCsv,
    /// PostgreSQL's log as JSON.
    PostgresJson,
    /// PostgreSQL's log as text.
    PostgresText,
    /// The slow log of MySQL or MariaDB.
    MySqlSlow,
    /// The general log of MySQL or MariaDB.
    MySqlGeneral,
    /// Statements separated by `;`.
    Script,
}

impl LogForm {
    /// Returns the name of the form in sentences.
    pub fn name(self) -> &'static str {
        match self {
            LogForm::PostgresCsv => "PostgreSQL's log as CSV",
            LogForm::PostgresJson => "PostgreSQL's log as JSON",
            LogForm::PostgresText => "PostgreSQL's log",
            LogForm::MySqlSlow => "slow log",
            LogForm::MySqlGeneral => "general log",
            LogForm::Script => "file of SQL",
        }
    }

    /// Recognises the form from the beginning of a file.
    pub fn of(beginning: &str) -> Self {
        let lines = || beginning.lines().filter(|line| !line.trim().is_empty());
        let first = lines().next().unwrap_or_default();
        let any = |is: fn(&str) -> bool| lines().any(is);
        if first.starts_with('{') && beginning.contains("\"timestamp\"") {
            return LogForm::PostgresJson;
        }
        if any(|line| ["# Time:", "# User@Host:", "# Query_time:"].iter().any(|start| line.starts_with(start))) {
            return LogForm::MySqlSlow;
        }
        if any(mysql_log::is_general_line) {
            return LogForm::MySqlGeneral;
        }
        if postgres_log::is_csv_line(first) {
            return LogForm::PostgresCsv;
        }
        if any(|line| postgres_log::severity_at(line).is_some()) {
            return LogForm::PostgresText;
        }
        LogForm::Script
    }
}

/// The reason for which a log cannot be read.
#[derive(Debug)]
pub enum LogError {
    /// The file could not be read.
    Io(std::io::Error),
    /// A log of this form contains no statement.
    Empty(LogForm),
}

/// Takes in the statements of a log. If `database` is not empty, statements that the log assigns to other databases are left out.
///
/// # Errors
/// When the log cannot be read, or contains no statement.
pub fn read_log(file: &mut dyn BufRead, database: &str, collector: &mut dyn Takes) -> Result<LogForm, LogError> {
    let mut beginning = Vec::new();
    file.take(TOLD_BY_BYTES as u64).read_to_end(&mut beginning).map_err(LogError::Io)?;
    let form = LogForm::of(&String::from_utf8_lossy(&beginning));
    let mut lines = Lines::of(beginning.as_slice().chain(file));
    let taken = match form {
        LogForm::PostgresCsv => postgres_log::read_csv(&mut lines, database, collector),
        LogForm::PostgresJson => postgres_log::read_json(&mut lines, database, collector),
        LogForm::PostgresText => postgres_log::read_text(&mut lines, database, collector),
        LogForm::MySqlSlow => mysql_log::read_slow(&mut lines, database, collector),
        LogForm::MySqlGeneral => mysql_log::read_general(&mut lines, collector),
        LogForm::Script => script::read(&mut lines, collector),
    };
    match taken.map_err(LogError::Io)? {
        0 => Err(LogError::Empty(form)),
        _ => Ok(form),
    }
}
