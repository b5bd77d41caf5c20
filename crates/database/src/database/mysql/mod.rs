//! MySQL and MariaDB: one protocol, two names. Main type: [`MySql`].
//!
//! `handshake` logs in, [`session`] prepares, [`wire`] executes; [`packet`], [`values`], [`response`] and [`decode`] are
//! the codec they share, and [`program`] decides what is prepared.
//!
//! Invariant: nothing is assumed of the server because of its name; its greeting states its capabilities.

pub mod decode;
pub mod dialect;
mod durability;
pub mod encryption;
pub mod galera;
mod handshake;
pub mod packet;
pub mod password;
pub mod program;
pub mod recipe;
pub mod response;
pub mod session;
pub mod url;
pub mod values;
pub mod wire;
mod wsrep;

use std::sync::Arc;

use super::opening::server_of;
use super::{
    Capabilities, Capability, Database, DatabaseError, Dialect, Endpoint, Entry, LogPosition, Opens, Session,
    SessionLimits, Target, TargetSession, Weakness,
};
use crate::trial::DatabaseSettings;
use dialect::{Engine, MySqlDialect};
pub(in crate::database) use durability::level;

/// The registry's entry of MariaDB.
pub static MARIADB: Entry = Entry {
    name: "mariadb",
    summary: "MariaDB server, engines InnoDB, MyISAM and Aria; many rows go as bulk executes",
    engines: &["innodb", "myisam", "aria"],
    opens: Opens::Sql(|settings, endpoint| MySql::open("mariadb", MARIADB.engines, settings, endpoint)),
    recipe: Some(&recipe::MARIADB),
    library: None,
    clustered: Some(&galera::GALERA),
    read_url: Some(url::read_url),
    capabilities: Capabilities::SQL
        .with(Capability::Partitions)
        .with(Capability::StraightJoin)
        .with(Capability::QueryCache)
        .with(Capability::Text),
    refuses: None,
    refuses_rows: None,
    processes: &["mariadbd", "mysqld"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// The registry's entry of MySQL.
pub static MYSQL: Entry = Entry {
    name: "mysql",
    summary: "MySQL server, engines InnoDB and MyISAM; many rows go as multi-row statements",
    engines: &["innodb", "myisam"],
    opens: Opens::Sql(|settings, endpoint| MySql::open("mysql", MYSQL.engines, settings, endpoint)),
    recipe: Some(&recipe::MYSQL),
    library: None,
    clustered: None,
    read_url: Some(url::read_url),
    capabilities: Capabilities::SQL.with(Capability::Partitions).with(Capability::StraightJoin).with(Capability::Text),
    refuses: None,
    refuses_rows: None,
    processes: &["mariadbd", "mysqld"],
    level: Some(durability::level),
    levels: &durability::LEVELS,
};

/// A server that speaks MySQL's protocol, and the engine of the tables made there.
#[derive(Debug, Clone)]
pub struct MySql {
    name: &'static str,
    endpoint: Endpoint,
    dialect: MySqlDialect,
    bulk: bool,
    limits: Option<Arc<SessionLimits>>,
}

impl MySql {
    /// Creates the target for the server at an endpoint.
    pub fn new(name: &'static str, endpoint: Endpoint, engine: Engine) -> Self {
        MySql { name, endpoint, dialect: MySqlDialect { engine }, bulk: true, limits: None }
    }

    /// Disables bulk executions even where the server supports them: many rows are sent as multi-row statements.
    pub fn without_bulk(self) -> Self {
        MySql { bulk: false, ..self }
    }

    fn open(
        name: &'static str,
        engines: &[&str],
        settings: &DatabaseSettings,
        endpoint: Option<&Endpoint>,
    ) -> Result<Box<dyn Database>, DatabaseError> {
        let unavailable = |text: String| Err(DatabaseError::Unavailable(text));
        let endpoint = server_of(name, endpoint)?;
        let asked = settings.engine.as_deref().unwrap_or(engines[0]);
        let known = engines.iter().any(|engine| engine.eq_ignore_ascii_case(asked));
        match Engine::named(asked).filter(|_| known) {
            Some(engine) => Ok(Box::new(MySql::new(name, endpoint.clone(), engine))),
            None => unavailable(format!("{name} has no engine {asked:?} here; there are {}", engines.join(", "))),
        }
    }
}

impl Target for MySql {
    fn name(&self) -> &'static str {
        self.name
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

impl Database for MySql {
    fn dialect(&self) -> &dyn Dialect {
        &self.dialect
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        Ok(Box::new(session::connect(&self.endpoint, self.dialect.engine, self.bulk, self.limits.as_ref())?))
    }

    fn connect_writer(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let mut session = session::connect(&self.endpoint, self.dialect.engine, self.bulk, Some(limits))?;
        let lock_s = limits.lock_s();
        // In another mode, a number beyond the range of a narrowed column is clipped to the nearest that fits.
        session.run(&format!(
            "SET SESSION sql_mode = CONCAT_WS(',', NULLIF(@@SESSION.sql_mode, ''), 'STRICT_ALL_TABLES'), \
             SESSION lock_wait_timeout = {lock_s}, SESSION innodb_lock_wait_timeout = {lock_s}"
        ))?;
        if !limits.name().is_empty() {
            succeed(&mut session, limits.name())?;
        }
        Ok(Box::new(session))
    }

    fn connect_reader(&self, limits: &Arc<SessionLimits>) -> Result<Box<dyn Session>, DatabaseError> {
        let mut session = session::connect(&self.endpoint, self.dialect.engine, self.bulk, Some(limits))?;
        let answer = limits.answer();
        // MariaDB's limit, which MySQL does not know, and MySQL's.
        let limit = session.run(&format!("SET SESSION max_statement_time = {}", answer.as_secs_f64()));
        if let Err(DatabaseError::Refused { .. }) = limit {
            match session.run(&format!("SET SESSION max_execution_time = {}", answer.as_millis())) {
                // A server without both: the session's own limit holds.
                Err(DatabaseError::Refused { .. }) => {}
                outcome => outcome?,
            }
        } else {
            limit?;
        }
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

    fn log_position(&self, session: &mut dyn Session) -> Result<Option<LogPosition>, DatabaseError> {
        durability::log_position(session)
    }
}

/// Takes a name for a session, and ends the session that has it: one that was given up may still hold locks, and nothing reads from it. The
/// name is a user-level lock, whose owner the server tells. Servers without such locks refuse; the client's own limits still apply there.
fn succeed(session: &mut dyn Session, name: &str) -> Result<(), DatabaseError> {
    let found = match session.query(&format!("SELECT IS_USED_LOCK('{name}')")) {
        Err(DatabaseError::Refused { .. }) => return Ok(()),
        found => found?,
    };
    let number = found.into_iter().flatten().flatten().next().and_then(|text| text.parse::<u64>().ok());
    if let Some(number) = number {
        match session.run(&format!("KILL CONNECTION {number}")) {
            // The session has ended by itself.
            Err(DatabaseError::Refused { .. }) => {}
            outcome => outcome?,
        }
    }
    match session.query(&format!("SELECT GET_LOCK('{name}', 1)")) {
        Err(DatabaseError::Refused { .. }) => Ok(()),
        outcome => outcome.map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_are_checked_before_anything_is_opened() {
        let endpoint = Endpoint { unix: Some("/nowhere.sock".into()), ..Endpoint::default() };
        let open = |entry: &Entry, engine: Option<&str>| {
            let settings = DatabaseSettings { engine: engine.map(str::to_owned), ..DatabaseSettings::default() };
            entry.open_sql(&settings, Some(&endpoint))
        };
        assert!(open(&MARIADB, None).unwrap().dialect().has_transactions());
        assert!(!open(&MARIADB, Some("Aria")).unwrap().dialect().has_transactions());
        let error = open(&MYSQL, Some("aria")).err().unwrap().to_string();
        assert!(error.contains("aria") && error.contains("innodb, myisam"), "{error}");
        let error = open(&MYSQL, None).unwrap().connect().err().unwrap().to_string();
        assert!(error.contains("/nowhere.sock"), "{error}");
        assert!(MYSQL.open(&DatabaseSettings::default(), None).is_err());
    }
}
