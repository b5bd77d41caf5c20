//! Recorders that take lines: over HTTP from the clients, or from a stream of a NATS server.
//!
//! Main functions: [`start`] and [`check`]. Invariant: recorders of a trial differ in their directory, their address and their host only.

use anyhow::{Context, bail};

use super::port::port_of;
use super::shared::await_parts;
use super::{Front, Running, STREAM, configuration};
use crate::data;
use crate::database::dialect::drop_table;
use crate::database::recipe::{Reach, Recipe};
use crate::database::recorder::recipe::{NatsRecipe, RecorderRecipe, Takes, knows_sync};
use crate::database::recorder::{RecorderDatabase, Recorders, Way, create_stream};
use crate::database::tls::private;
use crate::database::{DatabaseError, Endpoint, Target};
use crate::record::Generator;
use crate::recorder::upload::random_password;
use crate::recorder::writer::{Shape, StoredTables, stored_tables};
use crate::runner::fixture::Fixture;
use crate::runner::stage::Current;
use crate::server::{Server, ServerError};
use crate::trial::{DatabaseSettings, RecorderPath, RecorderSettings, Settings};

/// Checks that a NATS server can be started here, if the settings need one.
///
/// # Errors
/// Fails with a sentence that states the remedy.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    let needs_broker = |recorder: &&RecorderSettings| recorder.path == RecorderPath::Nats || recorder.is_shared();
    if settings.recorded().filter(needs_broker).is_some() {
        crate::server::check(&NatsRecipe { syncs: false }, &DatabaseSettings::default())?;
    }
    Ok(())
}

/// Starts the servers of the settings, in front of a database without a recorder's tables. Recorders that share a stream then have all of its parts.
///
/// # Errors
/// Fails if a server does not start or the database already has a recorder's tables.
pub(super) fn start(settings: &Settings, recorder: &RecorderSettings, current: &mut Current) -> anyhow::Result<Front> {
    let generator = data::build(&settings.record).map_err(anyhow::Error::msg)?;
    if let Some(place) = generator.record_type().key {
        let key = &generator.record_type().identity[place].name;
        bail!("records of {} have the key {key} and no source; take another record.type", settings.record.type_name);
    }
    let shape = Shape::named(&settings.layout.name).context("the recorder has no such layout")?;
    let tables = stored_tables(shape, &settings.record.table);
    refuse_others(current, &tables)?;
    current.fixture = Some(Fixture { tables: tables.all.clone(), ..Fixture::empty() });
    let broker = match recorder.path {
        RecorderPath::Nats => {
            let broker = start_broker(&current.reach_of_front(), &protection(recorder))?;
            create_stream(broker.endpoint(), STREAM, STREAM)?;
            Some(broker)
        }
        // Recorders that share a stream make it, and clients speak to the recorders only.
        _ if recorder.is_shared() => Some(start_broker(&current.reach_of_front(), &DatabaseSettings::default())?),
        _ => None,
    };
    let plan = Plan { settings, recorder, generator: &*generator, broker: broker.as_ref() };
    let count = recorder.recorders();
    let (mut running, mut databases) = (Vec::new(), Vec::new());
    for number in 1..=count {
        let which = if count > 1 { format!("recorder {number} of {count}") } else { "the recorder".to_owned() };
        let about = || format!("{which} in front of the database");
        let (one, database) = plan.start(number, current).with_context(about)?;
        running.push(one);
        databases.push(database);
    }
    let target: Box<dyn Target> = match databases.len() {
        1 => Box::new(databases.remove(0)),
        _ => Box::new(Recorders::new(databases).context("there is no recorder")?),
    };
    let front = Front { tables: Some(tables), is_shared: recorder.is_shared(), ..Front::new(target, running, broker) };
    if recorder.is_shared() {
        await_parts(&front)?;
    }
    Ok(front)
}

/// What all recorders of a trial have in common.
struct Plan<'a> {
    settings: &'a Settings,
    recorder: &'a RecorderSettings,
    generator: &'a dyn Generator,
    broker: Option<&'a Server>,
}

impl Plan<'_> {
    /// Starts the recorder with this number, from 1, and returns it with the target of its clients.
    fn start(&self, number: u32, current: &Current) -> anyhow::Result<(Running, RecorderDatabase)> {
        let Plan { settings, recorder, generator, broker } = *self;
        let reach = match recorder.has_own_hosts {
            true => current.link.as_ref().and_then(|link| link.reach_of(number)).context("there is no host for it")?,
            false => current.reach_of_front(),
        };
        let hot = generator.record_type().values.iter().filter(|column| column.hot).map(|column| column.name.clone());
        let hot: Vec<String> = hot.collect();
        let endpoint = broker.map(Server::endpoint);
        let (config, password) = configuration::configuration(settings, recorder, current, &hot, endpoint)?;
        // Everyone on the link can reach it.
        let token = if reach.address.is_loopback() { Ok(String::new()) } else { random_password() };
        let token = token.map_err(anyhow::Error::msg)?;
        let takes_messages = recorder.path == RecorderPath::Nats;
        // A recorder behind a NATS server takes no lines over HTTP.
        let protection = if takes_messages { DatabaseSettings::default() } else { protection(recorder) };
        let takes = if protection.tls.is_some() { Takes::ProtectedLines } else { Takes::Lines };
        let recipe = RecorderRecipe { config, password, takes: takes(token.clone()), files: Vec::new() };
        let server = Server::start_at(&reach, &recipe, &protection, Some(current.directory()), None)?;
        let (endpoint, way) = match broker.filter(|_| takes_messages) {
            Some(broker) => (broker.endpoint().clone(), Way::Nats(STREAM.to_owned())),
            None => (Endpoint { password: token, ..intake(&server, &reach, &protection)? }, Way::Http),
        };
        let table = &settings.record.table;
        let database =
            RecorderDatabase::new(endpoint, way, table, generator.record_type(), generator.records_per_measurement());
        Ok((Running::new(server, &reach), database))
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

fn start_broker(reach: &Reach, protection: &DatabaseSettings) -> anyhow::Result<Server> {
    let binary = NatsRecipe { syncs: false }.find_binary(protection).map_err(ServerError::NotFound)?;
    let said = std::process::Command::new(&binary).arg("--version").output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let recipe = NatsRecipe { syncs: knows_sync(&version) };
    Server::start_at(reach, &recipe, protection, None, None).context("the NATS server")
}
