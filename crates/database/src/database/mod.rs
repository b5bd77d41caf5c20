//! Databases: one folder each, with its connections, its dialect and the recipe of a private server.
//!
//! A [`Target`] opens connections, and a [`Database`] is one that speaks SQL. A [`TargetSession`] is a connection used in a blocking way: to make tables, to
//! load, to check; a [`Session`] is one that takes SQL besides. Where the target has a lean codec, a session turns into a [`Wire`], which the load engine's
//! event loops drive.
//!
//! Invariant: databases know nothing of layouts and workloads; all they execute is a [`Program`]'s statements.

pub mod address;
mod capability;
mod carrying;
pub mod channel;
pub mod conformance;
pub mod dialect;
pub mod durability;
mod entry;
mod form;
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
mod fuzzed;
mod in_sql;
pub mod instruments;
pub mod level;
pub mod limits;
pub mod literal;
pub mod mysql;
pub mod namespace;
pub mod nats;
pub mod postgres;
pub mod recipe;
pub mod recorder;
pub mod redis;
pub mod session;
pub mod simulated;
pub mod sqlite;
pub mod station;
pub mod tls;
mod wire;

use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::record::Cells;
use crate::statement::{Miscount, Program, Request, SchemaChange, Statement, Table};

pub use capability::{Capabilities, Capability, needs_of};
pub use dialect::Dialect;
pub use durability::{LogPosition, Weakness};
pub use entry::{Entry, LevelSettings, OpenSql, OpenStore, Opens, ReadUrl};
pub use form::URL_FORM;
pub use level::{Known, Level};
pub use limits::SessionLimits;
pub use namespace::Namespace;
pub use wire::{Progress, Unasked, Wire};
#[cfg(any(test, fuzzing, feature = "fuzzed"))]
pub use {
    fuzzed::MYSQL as FUZZED_MYSQL, fuzzed::POSTGRES as FUZZED_POSTGRES, nats::FUZZED as FUZZED_NATS,
    recorder::FUZZED as FUZZED_FRONTS, redis::FUZZED as FUZZED_REDIS,
};

/// Something that requests can be sent to: a database, or what stands in the place of one and takes records in.
pub trait Target: Send + Sync {
    /// Name in the registry.
    fn name(&self) -> &'static str;

    /// Whether it runs inside this process, so that its CPU time is part of the client's.
    fn is_embedded(&self) -> bool {
        false
    }

    /// Opens a connection.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the address and what went wrong.
    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError>;

    /// From now on the connections that it opens wait for their server within limits, where it is behind a connection.
    fn set_limits(&mut self, _limits: Arc<SessionLimits>) {}

    /// Whether its last answer was late by those limits, and nothing was heard since.
    fn stands_still(&self) -> bool {
        false
    }

    /// Itself as something that speaks SQL; none where it speaks none.
    fn sql(&self) -> Option<&dyn Database> {
        None
    }

    /// What somebody types to remove a table; none where there is nothing to type it into.
    fn removal(&self, table: &str) -> Option<String> {
        self.sql().map(|database| dialect::drop_table(database.dialect(), table))
    }
}

/// A connection that executes requests, used in a blocking way.
pub trait TargetSession: Send {
    /// Prepares all statements of a program. To be called once per connection, after the tables exist.
    ///
    /// # Errors
    /// As the database answers, with the statement's text.
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError>;

    /// Executes a request; several steps are one transaction, which is undone when a step fails. The answer comes after
    /// the commit. With `rows`, the rows read are appended to it, else they are counted and discarded.
    ///
    /// # Errors
    /// As the database answers. After [`DatabaseError::Lost`] the connection is of no more use.
    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError>;

    /// The version of what it leads to, as that states it.
    ///
    /// # Errors
    /// As the database answers.
    fn version(&mut self) -> Result<String, DatabaseError>;

    /// Makes a table, with its keys and indexes. One that is there already is refused, and stays as it is.
    ///
    /// # Errors
    /// As the database answers.
    fn create_table(&mut self, table: &Table) -> Result<(), DatabaseError> {
        in_sql::create_table(self.sql().ok_or_else(no_tables)?, table)
    }

    /// Removes a table with all that is in it, where there is one.
    ///
    /// # Errors
    /// As the database answers.
    fn drop_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        in_sql::drop_table(self.sql().ok_or_else(no_tables)?, table)
    }

    /// How many rows a table has; none where nothing is kept that could be counted.
    ///
    /// # Errors
    /// As the database answers.
    fn count_rows(&mut self, table: &str) -> Result<Option<u64>, DatabaseError> {
        in_sql::count_rows(self.sql().ok_or_else(no_tables)?, table)
    }

    /// Bytes that tables take on the disk, with their indexes; none where it does not tell, or not this user.
    fn table_bytes(&mut self, tables: &[&str]) -> Option<u64> {
        in_sql::table_bytes(self.sql()?, tables)
    }

    /// Has it look at what a table holds, so that its plans do not depend on when it does so by itself; nothing where it makes no plans.
    ///
    /// # Errors
    /// As the database answers.
    fn analyse_table(&mut self, table: &str) -> Result<(), DatabaseError> {
        let Some(session) = self.sql() else { return Ok(()) };
        session.dialect().analyse(table).map_or(Ok(()), |sql| session.run_change(&sql))
    }

    /// Changes a table that is in use, in the best way that it accepts, or in the one that is named; what it was told, in its own words, where it was told in words.
    ///
    /// # Errors
    /// As the database answers to the last of the ways.
    fn change_schema(
        &mut self,
        change: &SchemaChange,
        algorithm: Option<&str>,
    ) -> Result<Option<String>, DatabaseError> {
        in_sql::change_schema(self.sql().ok_or_else(no_tables)?, change, algorithm)
    }

    /// What is answered to a question of [`Recipe::facts`](recipe::Recipe::facts); none where this version does not know it.
    fn fact(&mut self, question: &str) -> Option<String> {
        in_sql::fact(self.sql()?, question)
    }

    /// Itself as something that takes SQL; none where it takes none.
    fn sql(&mut self) -> Option<&mut dyn Session> {
        None
    }

    /// What protects the connection, as in "TLS 1.3, AES 256 GCM; the server has proven who it is"; none where nothing does.
    fn protection(&self) -> Option<String> {
        None
    }

    /// Turns the connection into one that an event loop can drive; itself again where there is no lean codec.
    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>>;
}

/// A database that speaks SQL.
pub trait Database: Target {
    /// How it writes SQL.
    fn dialect(&self) -> &dyn Dialect;

    /// Opens a connection.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the address and what went wrong.
    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError>;

    /// Opens a connection for a recorder's writer: it commits for as long as its process lives, and its commits should not wait for what
    /// the database puts in order meanwhile. It waits for its server within limits; what is late is [`DatabaseError::Lost`].
    ///
    /// # Errors
    /// As [`Database::connect`].
    fn connect_writer(&self, _limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        self.connect()
    }

    /// The settings because of which it may forget what this session commits into the tables that are asked for.
    ///
    /// # Errors
    /// As the database answers.
    fn weaknesses(
        &self,
        _session: &mut dyn Session,
        _is_asked: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Weakness>, DatabaseError> {
        Ok(Vec::new())
    }

    /// Sets what a session may set itself so that its commits last; what was changed.
    ///
    /// # Errors
    /// As the database answers.
    fn harden(&self, _session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
        Ok(None)
    }

    /// How far its log has come; none where it does not tell.
    ///
    /// # Errors
    /// As the database answers.
    fn log_position(&self, _session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
        Ok(None)
    }
}

fn no_tables() -> DatabaseError {
    DatabaseError::Unavailable("it has no tables that a study could make, count or remove".to_owned())
}

/// A connection that takes statements in SQL.
pub trait Session: TargetSession {
    /// How its database writes SQL.
    fn dialect(&self) -> &dyn Dialect;

    /// Executes one statement of text without values and discards its rows.
    ///
    /// # Errors
    /// As the database answers.
    fn run(&mut self, sql: &str) -> Result<(), DatabaseError>;

    /// As [`Session::run`], for a statement that may take long because it changes a table or deletes much.
    ///
    /// # Errors
    /// As the database answers.
    fn run_change(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.run(sql)
    }

    /// Executes one statement of text without values; the answer's rows, column by column in text form, null as none.
    /// For small answers: versions, settings, plans.
    ///
    /// # Errors
    /// As the database answers.
    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError>;

    /// Prepares one more statement, behind those of the program: an insert of up to so many rows that passes over those which a unique key forbids, and stores
    /// the others. None where the database has no such insert for the table, or the user may not execute it. Not within a transaction.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection broke.
    fn prepare_passing_over(
        &mut self,
        _insert: &Statement,
        _rows_max: usize,
    ) -> Result<Option<PassingOver>, DatabaseError> {
        Ok(None)
    }

    /// Begins a dry run: a transaction that [`Session::attempt`] goes on in and that is undone in the end. Constraints that are checked at a
    /// commit are checked at once in it, where the database can be told so.
    ///
    /// # Errors
    /// As the database answers.
    fn begin_dry_run(&mut self) -> Result<(), DatabaseError> {
        Err(DatabaseError::Unavailable("the database has no transactions that go on behind an error".to_owned()))
    }

    /// Executes a request's inserts within the dry run, behind those that were attempted with success before. What is refused leaves nothing
    /// behind, and the dry run goes on.
    ///
    /// # Errors
    /// As the database answers.
    fn attempt(&mut self, _request: &Request) -> Result<Answer, DatabaseError> {
        self.begin_dry_run().map(|()| Answer::default())
    }

    /// What was attempted last, and was taken, is undone as if it had been refused. For sessions with inserts that pass over rows.
    fn undo_attempt(&mut self) {}

    /// Attempts requests one behind the other, each as [`Session::attempt`] does, and where the database can be asked so, without waiting for the
    /// answer to one before the next leaves. The outcomes of those that were attempted: not all where one of them ended the dry run, or the connection
    /// was lost.
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

    /// Whether the database is behind a connection, so that what is sent in many messages takes longer than in few.
    fn has_round_trips(&self) -> bool {
        true
    }

    /// Whether the dry run still goes on: some errors undo all of it.
    fn is_dry_run(&self) -> bool {
        true
    }

    /// Commits what was attempted with success, and the dry run was none.
    ///
    /// # Errors
    /// As the database answers; all of it is undone then. [`DatabaseError::Lost`] where it is not known whether it was committed, or an error before has
    /// ended the transaction.
    fn keep_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.begin_dry_run()
    }

    /// Undoes the dry run.
    ///
    /// # Errors
    /// As the database answers.
    fn end_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.run("ROLLBACK")
    }

    /// From now on is told what others notify on a channel, whose name is that of a table.
    ///
    /// # Errors
    /// When the database has no notifications, or refuses.
    fn listen(&mut self, channel: &str) -> Result<(), DatabaseError> {
        Err(DatabaseError::Unavailable(format!("the database has no notifications that \"{channel}\" could bring")))
    }

    /// Whether there was a notification since the last call; waits for one for at most this time.
    ///
    /// # Errors
    /// When the database has no notifications, or the connection is lost.
    fn await_notice(&mut self, _patience: std::time::Duration) -> Result<bool, DatabaseError> {
        Err(DatabaseError::Unavailable("the database has no notifications".to_owned()))
    }
}

/// An insert that passes over rows which a unique key forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassingOver {
    /// Its place among the statements.
    pub statement: u16,
    /// Whether [`Answer::changed`] counts the rows that were passed over as well.
    pub counts_all: bool,
}

/// What a request did, over all its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Answer {
    /// Rows read.
    pub rows: u64,
    /// Rows changed, of inserts and updates.
    pub changed: u64,
    /// Steps that expected rows and found none.
    pub empty: u32,
}

/// What can go wrong with a database.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// The database answered with an error; the connection is still good and nothing of the request is stored.
    #[error("{message} ({code})")]
    Refused {
        /// The database's own code, as in `1062` or `23505`.
        code: String,
        /// Its message.
        message: String,
    },
    /// The database has done what was asked, with another number of rows than it must have been; nothing of the request is stored, unless it says so.
    #[error("{0} (rows)")]
    Miscounted(Box<Miscount>),
    /// The connection is lost; whether the request was stored is not known.
    #[error("connection lost: {0}")]
    Lost(String),
    /// No connection could be made, or something that is needed is missing.
    #[error("{0}")]
    Unavailable(String),
    /// A database in this process has no file.
    #[error("database.path is missing; name the file of the database")]
    NoFile,
}

impl DatabaseError {
    /// A refusal by code and message.
    pub fn refused(code: impl Into<String>, message: impl Into<String>) -> Self {
        DatabaseError::Refused { code: code.into(), message: message.into() }
    }

    /// Whether the request was refused, or undone for its number of rows: the connection is still good.
    pub fn is_refusal(&self) -> bool {
        matches!(self, DatabaseError::Refused { .. } | DatabaseError::Miscounted(_))
    }

    /// Whether there is no connection any more: with it went every transaction that had not ended.
    pub fn is_lost(&self) -> bool {
        !self.is_refusal()
    }
}

/// Where a server listens and who is let in.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Endpoint {
    /// Unix socket, preferred where there is one.
    pub unix: Option<PathBuf>,
    /// Host and port.
    pub tcp: Option<(String, u16)>,
    /// The network that TCP connections are made from; none is the machine's own.
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

/// All databases, the default first. A new one is a folder and a line here.
pub static REGISTRY: &[&Entry] =
    &[&sqlite::SQLITE, &mysql::MARIADB, &mysql::MYSQL, &postgres::POSTGRES, &redis::REDIS, &simulated::SIMULATED];

/// The names of those that can do something, as alternatives: `"postgres"`, or `"mariadb" or "mysql"`; none where no one can.
pub fn with(capability: Capability) -> Option<String> {
    // The servers with known service times can much, and keep nothing: nobody means them.
    let is_meant = |entry: &&&Entry| !std::ptr::eq(**entry, &simulated::SIMULATED);
    let able = REGISTRY.iter().filter(is_meant).filter(|entry| entry.capabilities.has(capability));
    let names: Vec<String> = able.map(|entry| format!("\"{}\"", entry.name)).collect();
    let (last, others) = names.split_last()?;
    Some(if others.is_empty() { last.clone() } else { format!("{} or {last}", others.join(", ")) })
}

/// The registry's entry of a name.
pub fn find(name: &str) -> Option<&'static Entry> {
    REGISTRY.iter().copied().find(|entry| entry.name == name)
}
