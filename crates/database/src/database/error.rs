//! Errors of databases and of the connections to them. Main type: [`DatabaseError`].

use super::duckdb;
use crate::statement::{Miscount, shortened};

/// The maximum characters of the other side's message that errors quote.
pub const TOLD_MOST: usize = 300;

/// An error of a database or of the connection to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// The database answered with an error; the connection is still usable and nothing of the request is stored.
    #[error("{message} ({code})")]
    Refused {
        /// The database's own error code, as in `1062` or `23505`.
        code: String,
        /// The database's error message.
        message: String,
    },
    /// The database executed the request, but with an impossible number of rows; nothing of the request is stored unless the message says so.
    #[error("{0} (rows)")]
    Miscounted(Box<Miscount>),
    /// The database answered, and a value of the answer is wrong.
    #[error("wrong answer: {0}")]
    Wrong(String),
    /// The connection is lost; it is not known whether the request was stored.
    #[error("connection lost: {0}")]
    Lost(String),
    /// No connection could be made, or something needed is missing.
    #[error("{0}")]
    Unavailable(String),
    /// An embedded database has no file.
    #[error("database.path is missing; name the file of the database")]
    NoFile,
}

impl DatabaseError {
    /// Returns a refusal with this code and message.
    pub fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        DatabaseError::Refused { code: code.into(), message: message.into() }
    }

    /// Returns whether the request was refused, or undone because of its number of rows; the connection is still usable.
    pub fn is_refusal(&self) -> bool {
        matches!(self, DatabaseError::Refused { .. } | DatabaseError::Miscounted(_) | DatabaseError::Wrong(_))
    }

    /// Returns whether a transaction lost against another one that had changed the same rows: sent again, it can succeed. MySQL and MariaDB call it a deadlock, as do the nodes of a
    /// Galera cluster; PostgreSQL has a code for this and one for transactions that could not be ordered; DuckDB says it in words.
    pub fn is_conflict(&self) -> bool {
        matches!(self, DatabaseError::Refused { code, .. } if ["1213", "40P01", "40001", duckdb::CONFLICT].contains(&code.as_str()))
    }

    /// Returns whether the connection is gone, and with it every transaction that had not ended.
    pub fn is_lost(&self) -> bool {
        !self.is_refusal()
    }
}

/// Returns a foreign text as a short line without control characters, which a terminal would obey.
pub fn shown(text: &str, characters_max: usize) -> String {
    shortened(text, characters_max).chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}
