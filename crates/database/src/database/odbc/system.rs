//! The database systems that are known behind a driver. Main type: [`System`].
//!
//! Invariant: what is sent to a system is what its own target sends, in the same dialect; only the parameters are written as ODBC writes them.

use crate::database::dialect::{Dialect, parts_around_parameters, text_with};
use crate::database::mysql::{self, dialect::Engine, program::PARAMETERS_MAX};
use crate::database::postgres::{self, PostgresDialect};
use crate::database::recipe::Recipe;
use crate::database::sqlite::SqliteDialect;
use crate::statement::Statement;

/// The maximum number of parameters of a statement of PostgreSQL. The server describes them in a message of 4 bytes each, which libpq, on which the driver is built, takes for
/// an error where it is longer than 30,000 bytes.
const PARAMETERS_MAX_OF_POSTGRES: usize = 7_000;

/// A database system, as the driver names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum System {
    Sqlite,
    Postgres,
    /// MariaDB, or MySQL.
    Mysql,
}

impl System {
    /// The names of all, for messages.
    pub(super) const NAMES: &'static str = "PostgreSQL, MariaDB, MySQL and SQLite";

    /// Returns the system that a driver names; `None` for one whose SQL is not known here.
    pub(super) fn of(name: &str) -> Option<Self> {
        let name = name.to_lowercase();
        [
            ("sqlite", System::Sqlite),
            ("postgresql", System::Postgres),
            ("mariadb", System::Mysql),
            ("mysql", System::Mysql),
        ]
        .into_iter()
        .find(|(start, _)| name.starts_with(start))
        .map(|(_, system)| system)
    }

    /// Returns its SQL.
    pub(super) fn dialect(self) -> &'static dyn Dialect {
        match self {
            System::Sqlite => &SqliteDialect,
            System::Postgres => &PostgresDialect,
            System::Mysql => Engine::InnoDb.dialect(),
        }
    }

    /// Returns the questions for its settings; `None` where they are those of embedded databases.
    pub(super) fn facts(self) -> Option<&'static [(&'static str, &'static str)]> {
        match self {
            System::Sqlite => None,
            System::Postgres => Some(postgres::recipe::POSTGRES.facts()),
            System::Mysql => Some(mysql::recipe::MARIADB.facts()),
        }
    }

    /// Returns whether the database runs in this process.
    pub(super) fn is_embedded(self) -> bool {
        self == System::Sqlite
    }

    /// Returns whether its driver gives floating-point numbers with fewer digits than they have: that of SQLite has SQLite write them with 15 digits.
    pub(super) fn rounds(self) -> bool {
        self == System::Sqlite
    }

    /// Returns whether its driver locks what it needs to cancel a statement that another thread executes. That of SQLite does not.
    pub(super) fn can_be_cancelled(self) -> bool {
        self != System::Sqlite
    }

    /// Returns whether texts go to its driver in UTF-8, as it stores them. The driver of SQLite changes characters from U+100000 on when it converts UTF-16; the others take UTF-16
    /// whatever encoding the process has.
    pub(super) fn takes_utf8(self) -> bool {
        self == System::Sqlite
    }

    /// Returns whether its driver asks the database about a text only when it is executed first, so that errors must be looked for.
    pub(super) fn prepares_late(self) -> bool {
        self == System::Sqlite
    }

    /// Returns the maximum number of parameters of a statement of several rows.
    pub(super) fn parameters_max(self) -> usize {
        match self {
            System::Postgres => PARAMETERS_MAX_OF_POSTGRES,
            System::Sqlite | System::Mysql => PARAMETERS_MAX,
        }
    }

    /// Returns the text of a statement with a question mark for each value.
    pub(super) fn text_of(self, statement: &Statement, rows: usize) -> String {
        match statement {
            Statement::Sql { sql, .. } => parts_around_parameters(sql).join("?"),
            _ => text_with(self.dialect(), statement, rows, &|_| "?".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::ColumnKind;
    use crate::statement::TableColumn;

    #[test]
    fn systems_are_known_by_the_name_that_the_driver_gives() {
        for (name, system) in [
            ("SQLite", Some(System::Sqlite)),
            ("PostgreSQL", Some(System::Postgres)),
            ("MariaDB", Some(System::Mysql)),
            ("MySQL", Some(System::Mysql)),
            ("Microsoft SQL Server", None),
            ("", None),
        ] {
            assert_eq!(System::of(name), system, "{name}");
        }
    }

    #[test]
    fn parameters_are_question_marks_in_every_system() {
        let columns =
            ["a", "b"].map(|name| TableColumn { name: name.into(), kind: ColumnKind::Int32, nullable: false });
        let insert = Statement::Insert { table: "t".into(), columns: columns.into() };
        let text = System::Postgres.text_of(&insert, 2);
        assert_eq!(text, "INSERT INTO \"t\" (\"a\", \"b\") VALUES (?, ?), (?, ?)");
    }
}
