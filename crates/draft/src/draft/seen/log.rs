//! Logs of statements, of any form that a server writes, and files of SQL.
//!
//! Main function: [`read_log`]. Invariant: a log is read line by line, and a line of any length takes bounded memory.

use std::io::{BufRead, Read};

use super::collector::Takes;
use super::lines::Lines;
use super::{mysql_log, postgres_log, script};

/// Bytes that the form is told by.
pub const TOLD_BY_BYTES: usize = 64 << 10;

/// What a file is.
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
    /// Statements with `;` between them.
    Script,
}

impl LogForm {
    /// What it is called in sentences.
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

    /// What the beginning of a file tells it to be.
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

/// Why a log cannot be read.
#[derive(Debug)]
pub enum LogError {
    /// It could not be read.
    Io(std::io::Error),
    /// What it is, and that there is no statement in it.
    Empty(LogForm),
}

/// Takes in the statements of a log; those of other databases than this one are left out where the log says which they are of, and where one is named.
///
/// # Errors
/// When it cannot be read, or no statement is in it.
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
