//! PostgreSQL, through a codec of our own. Main type: [`Postgres`]; the hot path is [`wire`].
//!
//! A connection prepares its statements once and executes them in binary, all steps of a request in one round trip; many rows
//! of an insert go through a binary COPY in the same pipeline.
//!
//! Invariant: nothing here allocates per operation once buffers have grown, unless the operation fails or its rows are kept.

pub mod decode;
pub mod dialect;
mod durability;
pub mod encode;
pub mod message;
pub mod prepare;
pub mod prepared;
pub mod recipe;
pub mod replica;
pub mod startup;
pub mod types;
pub mod url;
pub mod wire;

use std::sync::Arc;

use super::opening::server_of;
use super::session::WireSession;
use super::{
    Capabilities, Capability, Database, DatabaseError, Dialect, Endpoint, Entry, LogPosition, Opens, Session,
    SessionLimits, Target, TargetSession, Weakness,
};
use crate::trial::DatabaseSettings;

pub use dialect::PostgresDialect;
pub(in crate::database) use durability::level;
pub use url::read_url;
pub use wire::PostgresWire;

/// The registry's entry.
pub static POSTGRES: Entry = Entry {
    name: "postgres",
    summary: "PostgreSQL: prepared statements in binary, binary COPY for batches; a private server or database.url",
    engines: &[],
    opens: Opens::Sql(open),
    recipe: Some(&recipe::POSTGRES),
    library: None,
    clustered: Some(&replica::STREAMING),
    read_url: Some(read_url),
    capabilities: Capabilities::SQL
        .with(Capability::Partitions)
        .with(Capability::Text)
        .with(Capability::Pipeline)
        .with(Capability::Notifications),
    refuses: None,
    refuses_rows: None,
    processes: &["postgres"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// A PostgreSQL server.
#[derive(Debug, Clone)]
pub struct Postgres {
    endpoint: Endpoint,
    limits: Option<Arc<SessionLimits>>,
}

impl Postgres {
    /// Creates the target for the server at an endpoint; the unix socket is preferred where both are given.
    pub fn new(endpoint: Endpoint) -> Self {
        Postgres { endpoint, limits: None }
    }
}

impl Target for Postgres {
    fn name(&self) -> &'static str {
        POSTGRES.name
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(self.connect()?)
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        self.limits = Some(limits);
    }

    fn stands_still(&self) -> bool {
        self.limits.as_ref().is_some_and(|limits| limits.stands_still())
    }

    fn sql(&self) -> Option<&dyn Database> {
        Some(self)
    }
}

impl Database for Postgres {
    fn dialect(&self) -> &dyn Dialect {
        &PostgresDialect
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        let socket = startup::connect(&self.endpoint, self.limits.as_ref())?;
        Ok(Box::new(WireSession::within(PostgresWire::new(socket), self.limits.as_ref())))
    }

    fn connect_writer(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let socket = startup::connect(&self.endpoint, Some(limits))?;
        let mut session = WireSession::new(PostgresWire::new(socket));
        session.set_limits(Arc::clone(limits));
        let name = limits.name();
        if !name.is_empty() {
            // A session that was given up may still hold locks, and nothing reads from it.
            let end = format!(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
                 WHERE application_name = '{name}' AND usename = current_user AND pid <> pg_backend_pid()"
            );
            unless_refused(session.query(&end).map(drop))?;
            unless_refused(session.run(&format!("SET application_name = '{name}'")))?;
        }
        unless_refused(session.run(&format!("SET lock_timeout = '{}s'", limits.lock_s())))?;
        Ok(Box::new(session))
    }

    fn connect_reader(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let socket = startup::connect(&self.endpoint, Some(limits))?;
        let mut session = WireSession::new(PostgresWire::new(socket));
        session.set_limits(Arc::clone(limits));
        unless_refused(session.run(&format!("SET statement_timeout = '{}ms'", limits.answer().as_millis())))?;
        session.make_read_only()?;
        Ok(Box::new(session))
    }

    fn weaknesses(
        &self,
        session: &mut dyn Session,
        is_asked: &dyn Fn(&str) -> bool,
    ) -> Result<Vec<Weakness>, DatabaseError> {
        durability::weaknesses(session, is_asked)
    }

    fn harden(&self, session: &mut dyn Session) -> Result<Option<String>, DatabaseError> {
        durability::harden(session)
    }

    fn log_position(&self, session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
        durability::log_position(session)
    }
}

/// Ignores a refusal: other databases that speak this protocol may lack the feature; the client's own limits still apply there.
fn unless_refused(outcome: Result<(), DatabaseError>) -> Result<(), DatabaseError> {
    match outcome {
        Err(DatabaseError::Refused { .. }) => Ok(()),
        outcome => outcome,
    }
}

fn open(_settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Box<dyn Database>, DatabaseError> {
    Ok(Box::new(Postgres::new(server_of(POSTGRES.name, endpoint)?.clone())))
}
