//! Databases, one folder each: connections, the SQL dialect and the recipe of a private server.
//!
//! A [`Target`] opens connections; a [`Database`] is a target that speaks SQL. A [`TargetSession`] is a blocking connection that makes tables,
//! loads and checks them; a [`Session`] also takes SQL. Where the target has a lean codec, a session can turn into a [`Wire`], which the load
//! engine's event loops drive.
//!
//! Invariant: databases know nothing of layouts and workloads; all they execute is the statements of a [`Program`].

pub mod address;
mod answer;
mod capability;
mod carrying;
pub mod cassandra;
pub mod channel;
pub mod clickhouse;
pub mod clustered;
pub mod conformance;
pub mod dialect;
pub mod duckdb;
pub mod durability;
mod entry;
mod error;
mod form;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed_table;
pub mod http;
mod in_sql;
pub mod influxdb;
pub mod instruments;
mod interrupting;
mod java;
pub mod level;
pub mod limits;
pub mod literal;
mod loading;
pub mod mongodb;
pub mod mysql;
pub mod namespace;
pub mod nats;
pub mod nodes;
pub mod odbc;
mod opening;
pub mod package;
mod points;
pub mod postgres;
pub mod questdb;
pub mod recipe;
pub mod recorder;
pub mod redis;
pub mod session;
pub mod simulated;
pub mod sqlite;
pub mod station;
mod stepwise;
pub mod tls;
pub mod victoriametrics;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::Cells;
use crate::statement::{Program, Request, SchemaChange, Statement, Table};

pub use answer::{Answer, PassingOver};
pub use capability::{Capabilities, Capability, needs_of, with};
pub use clustered::{Clustered, Member, NodeHost, count_of};
pub use dialect::Dialect;
pub use durability::{LogPosition, Weakness};
pub use entry::{Entry, LevelSettings, OpenSql, OpenStore, Opens, ReadUrl};
pub use error::{DatabaseError, TOLD_MOST, shown};
pub use form::URL_FORM;
pub use level::{Known, Level};
pub use limits::SessionLimits;
pub use namespace::Namespace;
pub use nodes::{Deal, Nodes};
pub use wire::{Progress, Unasked, Wire};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use {
    cassandra::FUZZED as FUZZED_CASSANDRA, clickhouse::FUZZED as FUZZED_CLICKHOUSE, fuzzed::MYSQL as FUZZED_MYSQL,
    fuzzed::POSTGRES as FUZZED_POSTGRES, influxdb::FUZZED as FUZZED_INFLUXDB, mongodb::FUZZED as FUZZED_MONGODB,
    nats::FUZZED as FUZZED_NATS, recorder::FUZZED as FUZZED_FRONTS, redis::FUZZED as FUZZED_REDIS,
    victoriametrics::FUZZED as FUZZED_VICTORIAMETRICS,
};

/// Something that requests can be sent to: a database, or a recorder that takes records in the place of one.
pub trait Target: Send + Sync {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Returns whether the target runs inside this process, so that its CPU time is part of the client's.
    fn is_embedded(&self) -> bool {
        false
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the address and what went wrong.
    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError>;

    /// Opens a connection for a client of the load. A target with several nodes chooses the node by the client's number.
    ///
    /// # Errors
    /// The errors of [`Target::open`].
    fn open_for(&self, _client: u32) -> Result<Box<dyn TargetSession>, DatabaseError> {
        self.open()
    }

    /// Sets the limits within which connections opened from now on wait for their server; has no effect on a target without connections.
    fn set_limits(&mut self, _limits: Arc<SessionLimits>) {}

    /// Returns whether the last answer exceeded those limits and nothing has been received since.
    fn stands_still(&self) -> bool {
        false
    }

    /// Returns the questions for the settings of the database behind the target, as in [`Recipe::facts`](recipe::Recipe::facts); `None` where its entry of the
    /// registry says what is asked.
    fn facts(&self) -> Option<&'static [(&'static str, &'static str)]> {
        None
    }

    /// Returns whether floating-point numbers lose digits when they are read, so that statements which read them are refused.
    fn rounds_numbers(&self) -> bool {
        false
    }

    /// Returns the target as a database that speaks SQL; `None` where it speaks no SQL.
    fn sql(&self) -> Option<&dyn Database> {
        None
    }

    /// Returns the statement that a person types to remove a table; `None` where the target takes no such statement.
    fn removal(&self, table: &str) -> Option<String> {
        self.sql().map(|database| dialect::remove_table(database.dialect(), table).join("; "))
    }
}

/// A blocking connection that executes requests.
pub trait TargetSession: Send {
    /// Prepares all statements of a program. Must be called once per connection, after the tables exist.
    ///
    /// # Errors
    /// The database's error, with the statement's text.
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError>;

    /// Executes a request. Several steps form one transaction, which is undone when a step fails. The answer comes after
    /// the commit. With `rows`, the rows read are appended to it; otherwise they are counted and discarded.
    ///
    /// # Errors
    /// The database's error. After [`DatabaseError::Lost`] the connection can no longer be used.
    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError>;

    /// Executes a request of many rows like [`TargetSession::execute`]. Calls `beside` when the target has something to do for a while: when rows have been sent,
    /// or before anything where that cannot be told. May call it more than once, or not at all.
    ///
    /// # Errors
    /// As for [`TargetSession::execute`].
    fn execute_beside(&mut self, request: &Request, beside: &mut dyn FnMut()) -> Result<Answer, DatabaseError> {
        beside();
        self.execute(request, None)
    }

    /// Returns the version of the target, as the target states it.
    ///
    /// # Errors
    /// The database's error.
    fn version(&mut self) -> Result<String, DatabaseError>;

    /// Creates a table with its keys and indexes. A table that exists already is refused and stays as it is.
    ///
    /// # Errors
    /// The database's error.
    fn create_table(&mut self, table: &Table) -> Result<(), DatabaseError> {
        in_sql::create_table(self.sql().ok_or_else(no_tables)?, table)
    }

    /// Removes a table with all its rows, if it exists.
    ///
    /// # Errors
    /// The database's error.
    fn drop_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        in_sql::drop_table(self.sql().ok_or_else(no_tables)?, table)
    }

    /// Returns the number of rows of a table; `None` where the target keeps nothing that could be counted.
    ///
    /// # Errors
    /// The database's error.
    fn count_rows(&mut self, table: &str) -> Result<Option<u64>, DatabaseError> {
        in_sql::count_rows(self.sql().ok_or_else(no_tables)?, table)
    }

    /// Returns the sum of a column of whole numbers, none of which is below 0; `None` where the target keeps nothing that could be counted.
    ///
    /// # Errors
    /// The database's error.
    fn sum_column(&mut self, table: &str, column: &str) -> Result<Option<u64>, DatabaseError> {
        in_sql::sum_column(self.sql().ok_or_else(no_tables)?, table, column)
    }

    /// Returns the bytes that tables take on the disk, including their indexes; `None` where the database does not tell this user.
    fn table_bytes(&mut self, tables: &[&str]) -> Option<u64> {
        in_sql::table_bytes(self.sql()?, tables)
    }

    /// Has the database gather statistics of a table, so that its plans do not depend on when it does so by itself; does nothing where it makes no plans.
    ///
    /// # Errors
    /// The database's error.
    fn analyse_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        let Some(session) = self.sql() else { return Ok(()) };
        session.dialect().analyse(table).map_or(Ok(()), |sql| session.run_change(&sql))
    }

    /// Changes a table that is in use, by the best algorithm that the database accepts or by the named one. Returns the statement that succeeded, where there is one.
    ///
    /// # Errors
    /// The database's error for the last algorithm tried.
    fn change_schema(
        &mut self,
        change: &SchemaChange,
        algorithm: Option<&str>,
    ) -> Result<Option<String>, DatabaseError> {
        in_sql::change_schema(self.sql().ok_or_else(no_tables)?, change, algorithm)
    }

    /// Returns the answer to a question about the server, one of [`Recipe::facts`](recipe::Recipe::facts) or of [`Clustered`]; `None` where it has none.
    ///
    /// # Errors
    /// The database's error.
    fn ask(&mut self, question: &str) -> Result<Option<String>, DatabaseError> {
        let none = || DatabaseError::Unavailable("it answers no questions about itself".to_owned());
        in_sql::ask(self.sql().ok_or_else(none)?, question)
    }

    /// Returns the answer to a question of [`Recipe::facts`](recipe::Recipe::facts); `None` where this version does not know it.
    fn fact(&mut self, question: &str) -> Option<String> {
        self.ask(question).ok().flatten()
    }

    /// Returns the connection as a session that takes SQL; `None` where it takes no SQL.
    fn sql(&mut self) -> Option<&mut dyn Session> {
        None
    }

    /// Returns the protection of the connection, as in "TLS 1.3, AES 256 GCM; the server has proven who it is"; `None` where it has none.
    fn protection(&self) -> Option<String> {
        None
    }

    /// Turns the connection into one that an event loop can drive; returns it unchanged where there is no lean codec.
    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>>;
}

/// A database that speaks SQL.
pub trait Database: Target {
    /// Returns the dialect in which the database writes SQL.
    fn dialect(&self) -> &dyn Dialect;

    /// Opens a connection.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the address and what went wrong.
    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError>;

    /// Opens a connection for a recorder's writer, which commits for as long as its process lives; its commits should not wait for maintenance
    /// that the database does meanwhile. It waits for its server within limits; a late answer is [`DatabaseError::Lost`].
    ///
    /// # Errors
    /// The errors of [`Database::connect`].
    fn connect_writer(&self, _limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        self.connect()
    }

    /// Opens a connection that can only read, for questions that must hold nobody up. A statement ends at the deadline of the limits and, on a server,
    /// when it has run for as long as an answer may take; the server is told so where it has such a limit.
    ///
    /// # Errors
    /// The errors of [`Database::connect`].
    fn connect_reader(&self, _limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let mut session = self.connect()?;
        session.make_read_only()?;
        Ok(session)
    }

    /// Returns the settings because of which the database may lose commits of this session to the tables for which `_is_asked` is true.
    ///
    /// # Errors
    /// The database's error.
    fn weaknesses(
        &self,
        _session: &mut dyn Session,
        _is_asked: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Weakness>, DatabaseError> {
        Ok(Vec::new())
    }

    /// Changes the session's own settings so that its commits are durable. Returns what was changed.
    ///
    /// # Errors
    /// The database's error.
    fn harden(&self, _session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
        Ok(None)
    }

    /// Returns how far the database's log has come; `None` where it does not tell.
    ///
    /// # Errors
    /// The database's error.
    fn log_position(&self, _session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
        Ok(None)
    }
}

fn no_tables() -> DatabaseError {
    DatabaseError::Unavailable("it has no tables that a study could make, count or remove".to_owned())
}

/// A connection that takes statements in SQL.
pub trait Session: TargetSession {
    /// Returns the dialect in which the database writes SQL.
    fn dialect(&self) -> &dyn Dialect;

    /// Executes one SQL text without values and discards its rows.
    ///
    /// # Errors
    /// The database's error.
    fn run(&mut self, sql: &str) -> Result<(), DatabaseError>;

    /// Executes one SQL text like [`Session::run`]; for a statement that may take long because it changes a table or deletes many rows.
    ///
    /// # Errors
    /// The database's error.
    fn run_change(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.run(sql)
    }

    /// Executes one SQL text without values. Returns the rows of the answer, each column as text and null as `None`.
    /// For small answers: versions, settings, plans.
    ///
    /// # Errors
    /// The database's error.
    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError>;

    /// Makes the connection one that can no longer change anything, as far as the database can be told so.
    ///
    /// # Errors
    /// The database's error.
    fn make_read_only(&mut self) -> Result<(), DatabaseError> {
        match self.dialect().read_only() {
            Some(sql) => self.run(sql),
            None => Ok(()),
        }
    }

    /// Prepares one more statement after those of the program: an insert of up to `_rows_max` rows that passes over the rows which a unique key forbids
    /// and stores the others. Returns `None` where the database has no such insert for the table or the user may not execute it. Not within a transaction.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection breaks.
    fn prepare_passing_over(
        &mut self,
        _insert: &Statement,
        _rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        Ok(None)
    }

    /// Begins a dry run: a transaction in which [`Session::attempt`] executes requests and that is undone in the end. Constraints that are
    /// otherwise checked at commit are checked at once, where the database can be told so.
    ///
    /// # Errors
    /// The database's error.
    fn begin_dry_run(&mut self) -> Result<(), DatabaseError> {
        Err(DatabaseError::Unavailable("the database has no transactions that go on behind an error".to_owned()))
    }

    /// Executes a request's inserts within the dry run, after those attempted successfully before. A refused request leaves nothing
    /// behind, and the dry run goes on.
    ///
    /// # Errors
    /// The database's error.
    fn attempt(&mut self, _request: &Request) -> Result<Answer, DatabaseError> {
        self.begin_dry_run().map(|()| Answer::default())
    }

    /// Undoes the last successful attempt as if it had been refused. For sessions with inserts that pass over rows.
    fn undo_attempt(&mut self) {}

    /// Attempts requests one after another, each as [`Session::attempt`] does. Where the database allows it, a request leaves without waiting for the
    /// answer to the one before. Returns the outcomes of the requests attempted; these are not all if one of them ended the dry run or the
    /// connection was lost.
    fn attempt_each(&mut self, requests: &[Request]) -> Vec<Result<(), DatabaseError>> {
        let mut outcomes = Vec::with_capacity(requests.len());
        for request in requests {
            let outcome = self.attempt(request).map(drop);
            let is_lost = outcome.as_ref().is_err_and(DatabaseError::is_lost);
            outcomes.push(outcome);
            if is_lost || !self.is_dry_run() {
                break;
            }
        }
        outcomes
    }

    /// Returns whether the database is behind a connection, so that many messages take longer than few.
    fn has_round_trips(&self) -> bool {
        true
    }

    /// Returns whether the dry run still goes on: some errors undo all of it.
    fn is_dry_run(&self) -> bool {
        true
    }

    /// Commits all successful attempts, so that the dry run becomes a real one.
    ///
    /// # Errors
    /// The database's error; everything is undone then. [`DatabaseError::Lost`] where it is not known whether the transaction was committed,
    /// or where an earlier error ended it.
    fn keep_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.begin_dry_run()
    }

    /// Undoes the dry run.
    ///
    /// # Errors
    /// The database's error.
    fn end_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.run("ROLLBACK")
    }

    /// Subscribes to the notifications of a channel, which has the name of a table.
    ///
    /// # Errors
    /// When the database has no notifications or refuses.
    fn listen(&mut self, channel: &str) -> Result<(), DatabaseError> {
        Err(DatabaseError::Unavailable(format!("the database has no notifications that \"{channel}\" could bring")))
    }

    /// Returns whether there was a notification since the last call; waits for one for at most `_patience`.
    ///
    /// # Errors
    /// When the database has no notifications or the connection is lost.
    fn await_notice(&mut self, _patience: std::time::Duration) -> Result<bool, DatabaseError> {
        Err(DatabaseError::Unavailable("the database has no notifications".to_owned()))
    }
}

/// The addresses at which a server listens, and the account that logs in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Endpoint {
    /// Unix socket, preferred if present.
    pub unix: Option<PathBuf>,
    /// Host and port.
    pub tcp: Option<(String, u16)>,
    /// The network namespace that TCP connections are made from; `None` for the machine's own.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub namespace: Option<Namespace>,
    /// User name.
    pub user: String,
    /// Password; empty for none.
    pub password: String,
    /// Name of the database (schema) on the server.
    pub database: String,
    /// How connections are protected.
    #[serde(default)]
    pub tls: tls::Tls,
}

/// All databases, the default first. A new database is a folder and a line here.
pub static REGISTRY: &[&Entry] = &[
    &sqlite::SQLITE,
    &mysql::MARIADB,
    &mysql::MYSQL,
    &postgres::POSTGRES,
    &redis::REDIS,
    &duckdb::DUCKDB,
    &clickhouse::CLICKHOUSE,
    &cassandra::CASSANDRA,
    &questdb::QUESTDB,
    &influxdb::INFLUXDB,
    &odbc::ODBC,
    &mongodb::MONGODB,
    &victoriametrics::VICTORIAMETRICS,
    &simulated::SIMULATED,
];

/// Returns the registry's entry with this name.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name)
}
