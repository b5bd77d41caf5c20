//! What there is: tables, their columns and keys, and what the columns hold.
//!
//! Main function: [`read_catalogue`]. Invariant: what is asked of a table ends after so many rows, however many there are.

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

/// A name in all that is asked here, so that it is not taken for a statement of somebody else: servers keep names, and no comments.
pub const MARK: &str = "loadline_drawn";

/// Tables that are looked at, at most.
pub const TABLES_MOST: usize = 1_000;

/// What a column holds, as far as values for it can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holds {
    /// Whole numbers.
    Whole,
    /// Numbers.
    Fraction,
    /// Texts.
    Text,
    /// Points in time, and whether they have a zone.
    Time {
        /// Whether a zone is written behind them.
        has_zone: bool,
    },
    /// Days.
    Date,
    /// True or false.
    Truth,
    /// Something else: values are taken from the table itself.
    Other,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Its type, as the database writes it.
    pub type_name: String,
    /// What it holds.
    pub holds: Holds,
    /// Whether the database makes its values: sequences, generated columns.
    pub makes_itself: bool,
    /// Whether it may be null.
    pub nullable: bool,
    /// What its type is made of where the database does not bring it: the type below a domain, or a text for an enumeration; none of a type that somebody
    /// added and that is made of nothing else.
    pub plain_type: Option<String>,
    /// What it holds, as far as that was looked at.
    pub spread: Spread,
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Schema; empty where the database has none besides its own.
    pub schema: String,
    /// Name.
    pub name: String,
    /// As statements write it.
    pub quoted: String,
    /// Whether it is a view, or a table of another server, which is not looked at.
    pub is_view: bool,
    /// What a view shows, as the SQL that it stands for; none of a table, and where it is not told.
    pub definition: Option<String>,
    /// About how many rows it has.
    pub rows: f64,
    /// Bytes, with its indexes; none where nothing tells.
    pub bytes: Option<f64>,
    /// Columns, in order.
    pub columns: Vec<Column>,
    /// Keys that no two rows share, as places of columns; the primary key first.
    pub keys: Vec<Vec<usize>>,
    /// Places of the columns that an index begins with.
    pub indexed: Vec<usize>,
    /// Indexes of columns that are no keys, as places of columns.
    pub indexes: Vec<Vec<usize>>,
    /// Columns that hold keys of other tables.
    pub references: Vec<Reference>,
    /// What stands behind its columns where it is made, and says how its rows are stored.
    pub suffix: Option<String>,
    /// Whether the database has looked at what it holds: SQLite plans otherwise then, and a statement anew for each value.
    pub is_analysed: bool,
    /// Whether its name alone leads to it, without its schema.
    pub is_visible: bool,
}

/// A column that holds the keys of another table, or of the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// Place of the column.
    pub column: usize,
    /// Schema of the other table; empty where the database has none besides its own.
    pub schema: String,
    /// The other table.
    pub table: String,
    /// Its column.
    pub of: String,
}

impl Table {
    /// Whether no two rows have the same value in this column.
    pub fn is_unique(&self, column: usize) -> bool {
        self.keys.iter().any(|key| key == &[column])
    }

    /// The column of whole numbers that is the primary key alone.
    pub fn number_key(&self) -> Option<usize> {
        self.keys
            .first()
            .and_then(|key| <[usize; 1]>::try_from(key.as_slice()).ok())
            .map(|[column]| column)
            .filter(|column| self.columns[*column].holds == Holds::Whole)
    }
}

/// Which database it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// PostgreSQL.
    Postgres,
    /// MySQL.
    MySql,
    /// MariaDB.
    MariaDb,
    /// A file of SQLite.
    Sqlite,
}

/// What there is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Catalogue {
    /// Tables, by their names.
    pub tables: Vec<Table>,
    /// What could not be looked at, and why.
    pub notes: Vec<String>,
}

impl Catalogue {
    /// Says where there are more tables than are looked at.
    fn note_number(&mut self, tables: usize) {
        if tables > TABLES_MOST {
            let told =
                format!("there are more than {TABLES_MOST} tables; those behind them by name were not looked at");
            self.notes.push(told);
        }
    }
}

/// How names and values are written.
pub struct Writer<'d> {
    /// A name in quotes.
    pub quote: &'d dyn Fn(&str) -> String,
    /// A text as a literal.
    pub literal: &'d dyn Fn(&str) -> String,
}

/// The tables that the session may read.
///
/// # Errors
/// As the database answers to the first question; what it refuses later is a note.
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

/// What decides over memory, plans and durability, by what each server calls it.
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

/// What a server is set to, of what decides over memory, plans and durability; what it does not tell is left out.
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

/// Rows by the text of their first value.
fn by_first(rows: &[Vec<Option<String>>]) -> HashMap<&str, Vec<&Vec<Option<String>>>> {
    let mut grouped: HashMap<&str, Vec<&Vec<Option<String>>>> = HashMap::new();
    for row in rows {
        grouped.entry(row.first().and_then(Option::as_deref).unwrap_or_default()).or_default().push(row);
    }
    grouped
}

/// The rows of a text, of those that [`by_first`] has grouped.
fn rows_of<'a>(grouped: &HashMap<&'a str, Vec<&'a Vec<Option<String>>>>, first: &str) -> Vec<&'a Vec<Option<String>>> {
    grouped.get(first).cloned().unwrap_or_default()
}

/// A value of a row as a number.
fn number(row: &[Option<String>], place: usize) -> Option<f64> {
    row.get(place)?.as_deref()?.trim().parse().ok()
}

/// A value of a row as a text; nothing for none.
fn text(row: &[Option<String>], place: usize) -> String {
    row.get(place).and_then(Clone::clone).unwrap_or_default()
}

/// Whether a value of a row says yes.
fn is_true(row: &[Option<String>], place: usize) -> bool {
    matches!(text(row, place).as_str(), "t" | "true" | "1" | "YES")
}
