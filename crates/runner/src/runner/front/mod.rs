//! The front of the database for a study that sets `recorder.path`: a private recorder, and for `nats` a private NATS server
//! in front of it. With a network link they run on the server's host, next to the database.
//!
//! Main type: [`Front`]. Invariant: when it is dropped, both servers are gone and the stage knows the tables that the recorder made.

mod configuration;
mod port;
mod uploads;

use anyhow::{Context, bail};

use super::fixture::Fixture;
use super::stage::Current;
use crate::data;
use crate::database::dialect::drop_table;
use crate::database::recipe::{Reach, Recipe};
use crate::database::recorder::recipe::{NatsRecipe, RecorderRecipe, Takes, knows_sync};
use crate::database::recorder::{RecorderDatabase, Way, create_stream};
use crate::database::station::StationDatabase;
use crate::database::tls::private;
use crate::database::{DatabaseError, Endpoint, Target, TargetSession};
use crate::monitor::PidSource;
use crate::reason::Reason;
use crate::recorder::upload::random_password;
use crate::recorder::writer::{Shape, StoredTables, stored_tables};
use crate::server::{Server, ServerError};
use crate::trial::{DatabaseSettings, RecorderPath, RecorderSettings, Settings};
use port::port_of;

/// Name of the stream, and of the subject that messages are published below.
const STREAM: &str = "measurements";
/// Layout of the statements that represent records on their way: whole records, one row each.
const RECORDS: &str = "wide";

/// The servers in front of the database.
pub struct Front {
    /// The target that the load's clients connect to.
    pub target: Box<dyn Target>,
    /// A connection that has already shown that the recorder accepts the records.
    pub opened: Option<Box<dyn TargetSession>>,
    /// The tables that the recorder fills with records of lines.
    pub tables: Option<StoredTables>,
    /// The uploaded blocks, if blocks are uploaded.
    pub uploads: Option<StationDatabase>,
    /// The address of the recorder's own status, from its own host.
    watched: Endpoint,
    recorder: Server,
    broker: Option<Server>,
}

/// Returns the settings of the records on their way: whole records, whatever the recorder makes of them.
pub fn on_the_way(settings: &Settings) -> Settings {
    let mut sent = settings.clone();
    RECORDS.clone_into(&mut sent.layout.name);
    sent
}

impl Front {
    /// Starts the servers of the settings, in front of a database without a recorder's tables.
    ///
    /// # Errors
    /// Fails if a server does not start or the database already has a recorder's tables.
    pub fn start(settings: &Settings, recorder: &RecorderSettings, current: &mut Current) -> anyhow::Result<Self> {
        current.remove_tables()?;
        if recorder.path.is_upload() {
            return uploads::start(settings, recorder, current);
        }
        let generator = data::build(&settings.record).map_err(anyhow::Error::msg)?;
        if let Some(place) = generator.record_type().key {
            let key = &generator.record_type().identity[place].name;
            bail!(
                "records of {} have the key {key} and no source; take another record.type",
                settings.record.type_name
            );
        }
        let hot = generator.record_type().values.iter().filter(|column| column.hot).map(|column| column.name.clone());
        let shape = Shape::named(&settings.layout.name).context("the recorder has no such layout")?;
        let tables = stored_tables(shape, &settings.record.table);
        refuse_others(current, &tables)?;
        current.fixture = Some(Fixture { tables: tables.all.clone(), ..Fixture::empty() });
        let reach = current.reach_of_front();
        let broker = match recorder.path {
            RecorderPath::Nats => Some(start_broker(&reach, recorder)?),
            _ => None,
        };
        let hot: Vec<String> = hot.collect();
        let endpoint = broker.as_ref().map(Server::endpoint);
        let (config, password) = configuration::configuration(settings, recorder, current, &hot, endpoint)?;
        // Everyone on the link can reach it.
        let token = if reach.address.is_loopback() { Ok(String::new()) } else { random_password() };
        let token = token.map_err(anyhow::Error::msg)?;
        // A recorder behind a NATS server takes no lines over HTTP.
        let protection = if broker.is_some() { DatabaseSettings::default() } else { protection(recorder) };
        let takes = if protection.tls.is_some() { Takes::ProtectedLines } else { Takes::Lines };
        let recipe = RecorderRecipe { config, password, takes: takes(token.clone()), files: Vec::new() };
        let server = Server::start_at(&reach, &recipe, &protection, Some(current.directory()), None)
            .context("the recorder in front of the database")?;
        let (endpoint, way) = match &broker {
            Some(broker) => (broker.endpoint().clone(), Way::Nats(STREAM.to_owned())),
            None => (Endpoint { password: token, ..intake(&server, &reach, &protection)? }, Way::Http),
        };
        let table = &settings.record.table;
        let database =
            RecorderDatabase::new(endpoint, way, table, generator.record_type(), generator.records_per_measurement());
        let front = Front::new(Box::new(database), server, broker, &reach);
        Ok(Front { tables: Some(tables), ..front })
    }

    fn new(target: Box<dyn Target>, recorder: Server, broker: Option<Server>, reach: &Reach) -> Self {
        let watched = Endpoint { namespace: reach.namespace.clone(), ..recorder.endpoint().clone() };
        Front { target, opened: None, tables: None, uploads: None, watched, recorder, broker }
    }

    fn with_uploads(self, uploads: StationDatabase) -> Self {
        Front { uploads: Some(uploads), ..self }
    }

    /// Returns the address of the recorder's HTTP status, from its own host.
    pub fn http(&self) -> &Endpoint {
        &self.watched
    }

    /// Returns the directory in which the recorder keeps its files.
    pub fn directory(&self) -> std::path::PathBuf {
        self.recorder.directory()
    }

    /// Returns the id of the recorder's own process.
    pub fn pid(&self) -> Option<u32> {
        self.recorder.pids().first().copied()
    }

    /// Returns the source of the process ids of both servers.
    pub fn pid_source(&self) -> PidSource {
        let mut recorder = self.recorder.pid_source();
        let mut broker = self.broker.as_ref().map(Server::pid_source);
        Box::new(move |pids| {
            recorder(pids);
            if let Some(broker) = &mut broker {
                broker(pids);
            }
        })
    }

    /// Returns why one of the servers ended by itself, if one did.
    pub fn failure(&self) -> Option<Reason> {
        let servers = [("recorder", Some(&self.recorder)), ("NATS server", self.broker.as_ref())];
        servers
            .into_iter()
            .filter_map(|(name, server)| Some((name, server?)))
            .find(|(_, server)| !server.is_running())
            .map(|(name, server)| {
                let log = server.log_lines();
                let last = log.lines().last().unwrap_or_default().trim();
                Reason::ProgramEnded { program: name.to_owned(), log: last.to_owned() }
            })
    }

    /// Stops the servers, the NATS server first; returns false if the recorder had to be killed.
    pub fn stop(self) -> bool {
        drop(self.broker);
        self.recorder.stop()
    }
}

/// Fails if the database has the tables of another recorder, which is left alone.
fn refuse_others(current: &Current, tables: &StoredTables) -> anyhow::Result<()> {
    let database = current.database()?;
    let (mut session, dialect) = (database.connect()?, database.dialect());
    for table in &tables.all {
        match session.query(&format!("SELECT COUNT(*) FROM {} WHERE 1 = 0", dialect.quote(table))) {
            Err(DatabaseError::Refused { .. }) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let remedy = "name a database that no recorder writes to, or remove its tables";
                let sql = drop_table(dialect, table);
                bail!("table \"{table}\" is there already and might be another recorder's; {remedy} ({sql})");
            }
        }
    }
    Ok(())
}

/// Returns the settings that protect the clients' connections to the private server.
fn protection(recorder: &RecorderSettings) -> DatabaseSettings {
    DatabaseSettings { tls: recorder.tls.clone(), ..DatabaseSettings::default() }
}

/// Returns the address at which a recorder takes lines over HTTP; with TLS, the port that its log names.
fn intake(recorder: &Server, reach: &Reach, protection: &DatabaseSettings) -> anyhow::Result<Endpoint> {
    if protection.tls.is_none() {
        return Ok(recorder.endpoint().clone());
    }
    Ok(Endpoint {
        tcp: Some((reach.address.to_string(), port_of(recorder, "http")?)),
        namespace: reach.clients.clone(),
        tls: private::trust(&recorder.directory()),
        ..recorder.endpoint().clone()
    })
}

fn start_broker(reach: &Reach, recorder: &RecorderSettings) -> anyhow::Result<Server> {
    let protection = protection(recorder);
    let binary = NatsRecipe { syncs: false }.find_binary(&protection).map_err(ServerError::NotFound)?;
    let said = std::process::Command::new(&binary).arg("--version").output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let recipe = NatsRecipe { syncs: knows_sync(&version) };
    let server = Server::start_at(reach, &recipe, &protection, None, None).context("the NATS server")?;
    create_stream(server.endpoint(), STREAM, STREAM)?;
    Ok(server)
}
