//! Reads the catalogue: tables, their columns and keys, and the contents of columns.
//!
//! Main function: [`read_catalogue`]. Invariant: every query on a table reads a bounded number of rows, however many the table has.

mod mysql;
mod postgres;
mod sample;
mod sampling;
mod spread;
mod sqlite;

use std::collections::HashMap;

use crate::database::{DatabaseError, Session};

pub use sample::order_of;
pub use sampling::{leading, sampling};
pub use spread::Spread;

/// A name contained in every query of this module, which identifies it as loadline's own: servers keep names but not comments.
pub const MARK: &str = "loadline_drawn";

/// The most tables that are examined.
pub const TABLES_MOST: usize = 1_000;

/// The contents of a column, as far as values for it can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Fraction,
    /// Texts.
    Text,
    /// Points in time.
    Time {
        /// Whether the times are written with a zone.
        has_zone: bool,
    },
    /// Calendar dates.
    Date,
    /// Truth values.
    Truth,
    /// Any other type: values are taken from the table itself.
    Other,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// The name of the column.
    pub name: String,
    /// The type, as the database writes it.
    pub type_name: String,
    /// The kind of its contents.
    pub holds: Holds,
    /// Whether the database generates its values, by a sequence or a generated column.
    pub makes_itself: bool,
    /// Whether the column may be null.
    pub nullable: bool,
    /// The base type if the type is not built in: the type below a domain, or a text for an enumeration; `None` for an added type that has
    /// no such base.
    pub plain_type: Option<String>,
    /// The distribution of its values, as far as it was examined.
    pub spread: Spread,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The schema; empty if the database has no others besides its own.
    pub schema: String,
    /// The name of the table.
    pub name: String,
    /// The name as statements write it.
    pub quoted: String,
    /// Whether it is a view, or a table of another server, whose rows are not examined.
    pub is_view: bool,
    /// The SQL of a view; `None` for a table, and if the database does not reveal it.
    pub definition: Option<String>,
    /// The approximate number of rows.
    pub rows: f64,
    /// The size in bytes, including indexes; `None` if unknown.
    pub bytes: Option<f64>,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The unique keys, as indices of columns; the primary key first.
    pub keys: Vec<Vec<usize>>,
    /// The indices of the columns that lead an index.
    pub indexed: Vec<usize>,
    /// The non-unique indexes, as indices of columns.
    pub indexes: Vec<Vec<usize>>,
    /// The columns that hold keys of other tables.
    pub references: Vec<Reference>,
    /// The text behind the columns in CREATE TABLE that determines how rows are stored.
    pub suffix: Option<String>,
    /// Whether the database has statistics on the table: with them SQLite plans differently, and plans a statement anew for each value.
    pub is_analysed: bool,
    /// Whether the name leads to the table without its schema.
    pub is_visible: bool,
}

/// A column that holds the keys of another table, or of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// The index of the column.
    pub column: usize,
    /// The schema of the other table; empty if the database has no others besides its own.
    pub schema: String,
    /// The name of the other table.
    pub table: String,
    /// The name of the column in the other table.
    pub of: String,
}

impl Table {
    /// Returns whether every row has a different value in this column.
    pub fn is_unique(&self, column: usize) -> bool {
        self.keys.iter().any(|key| key == &[column])
    }

    /// Returns the column of whole numbers that forms the primary key alone.
    pub fn number_key(&self) -> Option<usize> {
        self.keys
            .first()
            .and_then(|key| <[usize; 1]>::try_from(key.as_slice()).ok())
            .map(|[column]| column)
            .filter(|column| self.columns[*column].holds == Holds::Whole)
    }
}

/// The kind of a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
    /// An SQLite file.
    Sqlite,
}

/// The tables of a database.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    /// The tables, ordered by name.
    pub tables: Vec<Table>,
    /// The parts that could not be examined, with reasons.
    pub notes: Vec<String>,
}

impl Catalogue {
    /// Adds a note if there are more tables than are examined.
    fn note_number(&mut self, tables: usize) {
        if tables > TABLES_MOST {
            let told =
                format!("there are more than {TABLES_MOST} tables; those behind them by name were not looked at");
            self.notes.push(told);
        }
    }
}

/// Writes names and values in the database's syntax.
pub struct Writer<'d> {
    /// Returns a name in quotes.
    pub quote: &'d dyn Fn(&str) -> String,
    /// Returns a text as a literal.
    pub literal: &'d dyn Fn(&str) -> String,
}

/// Returns the tables that the session may read.
///
/// # Errors
/// When the database rejects the first query; later rejections become notes.
pub fn read_catalogue(
    server: Server,
    session: &mut dyn Session,
    writer: &Writer<'_>,
) -> Result<Catalogue, DatabaseError> {
    let mut catalogue = match server {
        Server::Postgres => postgres::tables(session, writer)?,
        Server::MySql | Server::MariaDb => mysql::tables(session, writer)?,
        Server::Sqlite => sqlite::tables(session, writer)?,
    };
    for table in &mut catalogue.tables {
        match sample::look_at(server, session, table, writer) {
            Err(error) if error.is_refusal() => {
                catalogue.notes.push(format!("what {} holds could not be looked at: {error}", table.name));
            }
            outcome => outcome?,
        }
    }
    Ok(catalogue)
}

/// The settings for memory, plans and durability, by each server's name for them.
const SETTINGS: [(&[Server], &[&str]); 2] = [
    (
        &[Server::Postgres],
        &[
            "shared_buffers",
            "work_mem",
            "effective_cache_size",
            "random_page_cost",
            "max_parallel_workers_per_gather",
            "jit",
            "max_wal_size",
            "synchronous_commit",
        ],
    ),
    (
        &[Server::MySql, Server::MariaDb],
        &[
            "innodb_buffer_pool_size",
            "innodb_flush_log_at_trx_commit",
            "sync_binlog",
            "sort_buffer_size",
            "join_buffer_size",
            "transaction_isolation",
        ],
    ),
];

/// Returns the server's settings for memory, plans and durability; those that it does not reveal are left out.
///
/// # Errors
/// [`DatabaseError::Lost`] when the connection broke.
pub fn settings_of(server: Server, session: &mut dyn Session) -> Result<Vec<(String, String)>, DatabaseError> {
    let names = SETTINGS.iter().find(|(servers, _)| servers.contains(&server)).map_or(&[][..], |(_, names)| names);
    let mut found = Vec::new();
    for name in names {
        let sql = match server {
            Server::Postgres => format!("SELECT current_setting('{name}') AS {MARK}"),
            _ => format!("SELECT @@GLOBAL.{name} AS {MARK}"),
        };
        match session.query(&sql) {
            Ok(rows) => found.extend(rows.first().map(|row| ((*name).to_owned(), text(row, 0)))),
            Err(error) if error.is_refusal() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Groups rows by the text of their first value.
fn by_first(rows: &[Vec<Option<String>>]) -> HashMap<&str, Vec<&Vec<Option<String>>>> {
    let mut grouped: HashMap<&str, Vec<&Vec<Option<String>>>> = HashMap::new();
    for row in rows {
        grouped.entry(row.first().and_then(Option::as_deref).unwrap_or_default()).or_default().push(row);
    }
    grouped
}

/// Returns the rows with this first value among those that [`by_first`] has grouped.
fn rows_of<'a>(grouped: &HashMap<&'a str, Vec<&'a Vec<Option<String>>>>, first: &str) -> Vec<&'a Vec<Option<String>>> {
    grouped.get(first).cloned().unwrap_or_default()
}

/// Returns a value of a row as a number.
fn number(row: &[Option<String>], place: usize) -> Option<f64> {
    row.get(place)?.as_deref()?.trim().parse().ok()
}

/// Returns a value of a row as a text; empty for null.
fn text(row: &[Option<String>], place: usize) -> String {
    row.get(place).and_then(Clone::clone).unwrap_or_default()
}

/// Returns whether a value of a row is true.
fn is_true(row: &[Option<String>], place: usize) -> bool {
    matches!(text(row, place).as_str(), "t" | "true" | "1" | "YES")
}
