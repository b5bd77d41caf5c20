//! Any database that has an ODBC driver, through the driver manager of the system, which is loaded at run time. Main type: [`Odbc`].
//!
//! Without an address, it is a private file of SQLite. Which SQL is sent follows from what the driver says of its database. Invariant: a database whose SQL is not known is
//! refused before anything is sent to it.

mod api;
mod durability;
pub mod library;
mod session;
mod system;
pub mod url;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::channel::CONNECT_TIMEOUT;
use super::interrupting::Watch;
use super::sqlite::{self, check_place};
use super::{
    Capabilities, Capability, Database, DatabaseError, Dialect, Endpoint, Entry, Opens, Session, SessionLimits, Target,
    TargetSession,
};
use crate::record::ColumnKind;
use crate::statement::{Program, SqlForm, Statement};
use crate::trial::DatabaseSettings;

use api::{Connection, Executing, Info, Library, Record};
use session::OdbcSession;
use system::System;

/// The registry's entry.
pub static ODBC: Entry = Entry {
    name: "odbc",
    summary: "any ODBC driver of PostgreSQL, MariaDB or SQLite, at database.url = \"odbc://DSN=…\"; else SQLite's, on a private file",
    engines: &[],
    opens: Opens::Sql(|settings, endpoint| Ok(Box::new(Odbc::open(settings, endpoint)?))),
    recipe: None,
    library: Some(library::find),
    clustered: None,
    read_url: Some(url::read_url),
    capabilities: Capabilities::SQL.without(Capability::DryRuns),
    refuses: Some(refuses),
    refuses_rows: None,
    processes: &["postgres", "mariadbd", "mysqld"],
    level: Some(durability::level),
    levels: &sqlite::LEVELS,
};

/// The name under which Debian registers the driver of SQLite.
const SQLITE_DRIVER: &str = "SQLite3";
/// The maximum time that a connection to a private file waits for another's lock, in milliseconds.
const BUSY_TIMEOUT_MS: u32 = 10_000;
/// What is added for MariaDB and MySQL: an update counts the rows that it found (`FOUND_ROWS`), as it does with their own target.
const OF_MYSQL: &str = "OPTION=2";

/// A database behind an ODBC driver.
pub struct Odbc {
    library: &'static Library,
    /// The connection string, without the password.
    string: String,
    password: String,
    system: System,
    /// The PRAGMAs of each connection to a private file.
    pragmas: Vec<(String, String)>,
    limits: Option<Arc<SessionLimits>>,
    executing: Arc<Mutex<Vec<Weak<Executing>>>>,
    /// Ends what is executed when loadline is told to end.
    watch: Option<Watch>,
}

impl Odbc {
    /// Opens the database of an address, or the file at `database.path`, and looks what it is.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with what is missing and the remedy.
    pub fn open(settings: &DatabaseSettings, endpoint: Option<&Endpoint>) -> Result<Self, DatabaseError> {
        let (string, password) = match (endpoint, settings.path.as_deref()) {
            (Some(endpoint), _) => (endpoint.database.clone(), endpoint.password.clone()),
            (None, None | Some("")) => return Err(DatabaseError::NoFile),
            (None, Some(path)) => (string_of_file(Path::new(path))?, String::new()),
        };
        let library = library::load().map_err(|fault| unavailable(fault.to_string()))?;
        let mut odbc = Odbc {
            library,
            string,
            password,
            system: System::Sqlite,
            pragmas: Vec::new(),
            limits: None,
            executing: Arc::default(),
            watch: None,
        };
        let connection = odbc.connection()?;
        let name = connection.info(Info::System);
        odbc.system = System::of(&name).ok_or_else(|| odbc.unknown(&name))?;
        if odbc.system == System::Mysql && !url::has(&odbc.string, &["OPTION", "OPTIONS", "FOUND_ROWS"]) {
            odbc.string = format!("{};{OF_MYSQL}", odbc.string.trim_end_matches(';'));
        }
        if let (None, Some(path)) = (endpoint, &settings.path) {
            let mut session = OdbcSession::new(connection, odbc.system);
            odbc.pragmas = sqlite::pragmas(Path::new(path), &settings.config);
            let known = session.query("SELECT name FROM pragma_pragma_list")?.into_iter().flatten().flatten();
            sqlite::check_pragmas(&known.collect::<Vec<_>>(), &odbc.pragmas)?;
            odbc.settle(&mut session)?;
        }
        Ok(odbc)
    }

    fn unknown(&self, name: &str) -> DatabaseError {
        let Odbc { string, .. } = self;
        unavailable(format!(
            "odbc://{string} is a database of \"{name}\", whose SQL loadline does not know; name one of {}",
            System::NAMES
        ))
    }

    fn connection(&self) -> Result<Arc<Connection>, DatabaseError> {
        let string = url::with_password(&self.string, &self.password);
        let within = self.limits.as_ref().map_or(CONNECT_TIMEOUT, |limits| limits.login());
        Connection::open(self.library, &string, within).map_err(|records| self.no_connection(&records))
    }

    /// Returns the error of a connection that could not be opened, without the password.
    fn no_connection(&self, records: &[Record]) -> DatabaseError {
        let Odbc { string, password, .. } = self;
        let says = records.iter().map(|record| format!("{} ({})", record.message, record.state)).collect::<Vec<_>>();
        let mut says = if says.is_empty() { "the driver does not say why".to_owned() } else { says.join("; ") };
        if !password.is_empty() {
            says = says.replace(password.as_str(), "***");
        }
        let is = |state: &str| records.iter().any(|record| record.state == state);
        let has_no_file = records.iter().any(|record| record.message.contains("Can't open lib"));
        let remedy = if is("IM002") || is("IM003") || has_no_file {
            "; `odbcinst -q -d` lists the drivers that are here and `odbcinst -q -s` the data sources; Debian's packages of drivers are libsqliteodbc, odbc-postgresql and odbc-mariadb"
        } else if is("28000") || is("28P01") {
            "; the name or the password is wrong: give UID in the address, and PWD there or in LOADLINE_PASSWORD"
        } else {
            ""
        };
        unavailable(format!("no connection by odbc://{string}: {says}{remedy}"))
    }

    fn session(&self) -> Result<OdbcSession, DatabaseError> {
        let connection = self.connection()?;
        if self.system.can_be_cancelled() {
            let mut all = self.executing.lock().unwrap_or_else(PoisonError::into_inner);
            all.retain(|known| known.strong_count() > 0);
            all.push(Arc::downgrade(&connection.allow_cancelling()));
        }
        let mut session = OdbcSession::new(connection, self.system);
        self.settle(&mut session)?;
        Ok(session)
    }

    /// Applies the PRAGMAs of a private file.
    fn settle(&self, session: &mut OdbcSession) -> Result<(), DatabaseError> {
        for (name, value) in &self.pragmas {
            let failed = |why: String| unavailable(format!("PRAGMA {name} = {value} on {}: {why}", self.string));
            let answer = session.query(&format!("PRAGMA {name} = {value}")).map_err(|why| failed(why.to_string()))?;
            let mode = answer.into_iter().flatten().flatten().next().unwrap_or_default();
            if name == "journal_mode" && !mode.eq_ignore_ascii_case(value) {
                return Err(failed(format!(
                    "it stays at {mode}; choose another directory, or set database.config.journal_mode"
                )));
            }
        }
        Ok(())
    }
}

/// Returns the connection string of a private file.
fn string_of_file(path: &Path) -> Result<String, DatabaseError> {
    check_place(path)?;
    let shown = path.display().to_string();
    if shown.contains([';', '{', '}']) || path.to_str().is_none() {
        return Err(unavailable(format!(
            "database.path \"{shown}\" cannot stand in a connection string; name a file without the signs ; and braces"
        )));
    }
    Ok(format!("Driver={SQLITE_DRIVER};Database={shown};Timeout={BUSY_TIMEOUT_MS}"))
}

/// Returns why a program cannot be executed, as far as the driver is known before it is loaded.
fn refuses(program: &Program, settings: &DatabaseSettings) -> Option<String> {
    let rounds = settings.url.as_deref().is_none_or(url::is_of_sqlite_address);
    refusal_of(program, rounds)
}

/// Returns why a program cannot be executed through a driver that rounds floating-point numbers, or through any.
fn refusal_of(program: &Program, rounds: bool) -> Option<String> {
    let is_text = |statement: &Statement| statement.form() == SqlForm::Text;
    if program.as_text || program.statements.iter().any(is_text) {
        return Some("statements are sent through ODBC with parameters, and not as text with their values".to_owned());
    }
    let reads = |statement: &&Statement| reads_numbers(statement, program);
    if rounds && program.statements.iter().any(|statement| reads(&statement)) {
        return Some(
            "it reads floating-point numbers, and SQLite's ODBC driver rounds them to 15 digits when it reads them"
                .to_owned(),
        );
    }
    None
}

/// Returns whether a statement reads floating-point numbers, as far as its columns are known.
fn reads_numbers(statement: &Statement, program: &Program) -> bool {
    let is_number = |table: &str, name: &str| {
        let tables = program.tables.iter().filter(|known| known.name == table);
        tables.flat_map(|known| &known.columns).any(|column| column.name == name && column.kind == ColumnKind::Float64)
    };
    match statement {
        Statement::Select(select) => select.columns.iter().any(|read| is_number(&read.table, &read.column)),
        Statement::SelectGroups { table, columns, .. } => columns.iter().any(|name| is_number(table, name)),
        Statement::SelectMember { member, .. } => member.kind == ColumnKind::Float64,
        Statement::Ask(asking) => asking.answer_kinds().contains(&ColumnKind::Float64),
        _ => false,
    }
}

impl Target for Odbc {
    fn name(&self) -> &'static str {
        ODBC.name
    }

    fn is_embedded(&self) -> bool {
        self.system.is_embedded()
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        Ok(Box::new(self.session()?))
    }

    fn set_limits(&mut self, limits: Arc<SessionLimits>) {
        let executing = Arc::clone(&self.executing);
        let cancel = move || {
            let all: Vec<_> = executing.lock().unwrap_or_else(PoisonError::into_inner).clone();
            all.iter().filter_map(Weak::upgrade).for_each(|one| one.cancel());
        };
        self.watch = if self.system.can_be_cancelled() { Watch::start(&limits, cancel) } else { None };
        self.limits = Some(limits);
    }

    fn facts(&self) -> Option<&'static [(&'static str, &'static str)]> {
        self.system.facts()
    }

    fn rounds_numbers(&self) -> bool {
        self.system.rounds()
    }

    fn sql(&self) -> Option<&dyn Database> {
        Some(self)
    }
}

impl Database for Odbc {
    fn dialect(&self) -> &dyn Dialect {
        self.system.dialect()
    }

    fn connect(&self) -> Result<Box<dyn Session>, DatabaseError> {
        Ok(Box::new(self.session()?))
    }
}

fn unavailable(message: impl Into<String>) -> DatabaseError {
    DatabaseError::Unavailable(message.into())
}
