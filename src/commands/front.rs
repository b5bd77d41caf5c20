//! What stands in front of the database where a study says `recorder.path`: a private recorder, and for `nats` a private NATS server
//! in front of that.
//!
//! Main type: [`Front`]. Invariant: both are gone, and the tables that the recorder made are known to the stage, when it is dropped.

use std::fmt::Write;

use anyhow::{Context, bail};

use super::fixture::Fixture;
use super::stage::Current;
use crate::data;
use crate::database::dialect::drop_table;
use crate::database::recipe::Recipe;
use crate::database::recorder::recipe::{NatsRecipe, RecorderRecipe, knows_sync};
use crate::database::recorder::{RecorderDatabase, Way, create_stream};
use crate::database::{DatabaseError, Endpoint};
use crate::monitor::PidSource;
use crate::recorder::writer::{Shape, StoredTables, stored_tables};
use crate::server::Server;
use crate::trial::{DatabaseSettings, RecorderPath, RecorderSettings, Settings};

/// Name of the stream and of the subject that messages are published below.
const STREAM: &str = "measurements";
/// Layout of the statements that stand for records on their way: whole records, one row each.
const RECORDS: &str = "wide";

/// What is in front of the database.
pub struct Front {
    /// What the load's clients connect to.
    pub database: RecorderDatabase,
    /// The tables that the recorder fills.
    pub tables: StoredTables,
    recorder: Server,
    broker: Option<Server>,
}

/// The settings of the records on their way: whole, whatever the recorder makes of them.
pub fn on_the_way(settings: &Settings) -> Settings {
    let mut sent = settings.clone();
    RECORDS.clone_into(&mut sent.layout.name);
    sent
}

impl Front {
    /// Starts what the settings say, in front of a database without a recorder's tables.
    ///
    /// # Errors
    /// When one of them does not start, or the database is a recorder's already.
    pub fn start(settings: &Settings, recorder: &RecorderSettings, current: &mut Current) -> anyhow::Result<Self> {
        current.remove_tables()?;
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
        current.fixture = Some(Fixture { content: String::new(), tables: tables.all.clone(), is_changed: true });
        let broker = match recorder.path {
            RecorderPath::Nats => Some(start_broker()?),
            RecorderPath::Direct | RecorderPath::Http => None,
        };
        let (config, password) = configuration(
            settings,
            recorder,
            current,
            &hot.collect::<Vec<_>>(),
            broker.as_ref().map(Server::endpoint),
        )?;
        let recipe = RecorderRecipe { config, password };
        let server = Server::start(&recipe, &DatabaseSettings::default(), Some(current.directory()))
            .context("the recorder in front of the database")?;
        let (endpoint, way) = match &broker {
            Some(broker) => (broker.endpoint(), Way::Nats(STREAM.to_owned())),
            None => (server.endpoint(), Way::Http),
        };
        let per_measurement = generator.records_per_measurement();
        let database = RecorderDatabase::new(
            endpoint.clone(),
            way,
            &settings.record.table,
            generator.record_type(),
            per_measurement,
        );
        Ok(Front { database, tables, recorder: server, broker })
    }

    /// Where the recorder answers to HTTP.
    pub fn http(&self) -> &Endpoint {
        self.recorder.endpoint()
    }

    /// The recorder's own process.
    pub fn pid(&self) -> Option<u32> {
        self.recorder.pids().first().copied()
    }

    /// The processes of both.
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

    /// Why one of them ended by itself, if that is so.
    pub fn failure(&self) -> Option<String> {
        let servers = [("recorder", Some(&self.recorder)), ("NATS server", self.broker.as_ref())];
        servers
            .into_iter()
            .filter_map(|(name, server)| Some((name, server?)))
            .find(|(_, server)| !server.is_running())
            .map(|(name, server)| {
                let log = server.log_lines();
                format!(
                    "the {name} ended by itself; the end of its log: {}",
                    log.lines().last().unwrap_or_default().trim()
                )
            })
    }

    /// Stops them, first what takes in; false where the recorder had to be ended by force.
    pub fn stop(self) -> bool {
        drop(self.broker);
        self.recorder.stop()
    }
}

/// A database with the tables of another recorder is left alone.
fn refuse_others(current: &Current, tables: &StoredTables) -> anyhow::Result<()> {
    let mut session = current.database.connect()?;
    let dialect = current.database.dialect();
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

fn start_broker() -> anyhow::Result<Server> {
    let none = DatabaseSettings::default();
    let binary = NatsRecipe { syncs: false }.find_binary(&none).map_err(anyhow::Error::msg)?;
    let said = std::process::Command::new(&binary).arg("--version").output();
    let version = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let server = Server::start(&NatsRecipe { syncs: knows_sync(&version) }, &none, None).context("the NATS server")?;
    create_stream(server.endpoint(), STREAM, STREAM)?;
    Ok(server)
}

/// The recorder's configuration but for what it listens on, and the database's password.
fn configuration(
    settings: &Settings,
    recorder: &RecorderSettings,
    current: &Current,
    hot: &[String],
    broker: Option<&Endpoint>,
) -> anyhow::Result<(String, String)> {
    let quoted = |text: &str| toml::Value::String(text.to_owned()).to_string();
    let database = &settings.database;
    let mut text = format!("[database]\nname = {}\n", quoted(&database.name));
    let mut password = String::new();
    match (current.endpoint(), current.file()) {
        (Some(endpoint), _) => {
            password.clone_from(&endpoint.password);
            let _ = writeln!(text, "url = {}", quoted(&url(&database.name, endpoint)));
        }
        (None, Some(file)) => {
            let _ = writeln!(text, "path = {}", quoted(&std::path::absolute(file)?.display().to_string()));
            if !database.config.is_empty() {
                text.push_str("[database.config]\n");
            }
            for (name, value) in &database.config {
                let _ = writeln!(text, "{} = {}", quoted(name), quoted(value));
            }
        }
        (None, None) => bail!("a recorder cannot write to {}", database.name),
    }
    let _ = write!(text, "[layout]\nname = {}\n", quoted(&settings.layout.name));
    if settings.layout.name == "star-hot" {
        let hot: Vec<_> = hot.iter().map(|name| quoted(name)).collect();
        let _ = writeln!(text, "hot = [{}]", hot.join(", "));
    }
    let _ = write!(text, "[spool]\npath = \"data/spool\"\n[writer]\ncount = {}\ndrain = \"60s\"\n", recorder.writers);
    if let Some(batch) = recorder.batch {
        let _ = writeln!(text, "batch = {batch}");
    }
    if let Some((host, port)) = broker.and_then(|endpoint| endpoint.tcp.as_ref()) {
        let url = quoted(&format!("nats://{host}:{port}"));
        let _ = write!(text, "[intake.nats]\nurl = {url}\nstream = \"{STREAM}\"\nconsumer = \"loadline\"\n");
    }
    Ok((text, password))
}

/// The address of a server, without its password.
fn url(name: &str, endpoint: &Endpoint) -> String {
    let encoded = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        let one = |byte: u8| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(one).collect::<String>()
    };
    let (scheme, option) = if name == "postgres" { ("postgres", "host") } else { ("mysql", "socket") };
    let (user, database) = (encoded(&endpoint.user), encoded(&endpoint.database));
    match (&endpoint.unix, &endpoint.tcp) {
        (Some(socket), _) => {
            let path = match socket.parent().filter(|_| name == "postgres") {
                Some(directory) => directory.display().to_string(),
                None => socket.display().to_string(),
            };
            let port =
                socket.extension().filter(|_| name == "postgres").map(|port| format!("&port={}", port.display()));
            let authority = if name == "postgres" { "" } else { "localhost" };
            format!("{scheme}://{user}@{authority}/{database}?{option}={}{}", encoded(&path), port.unwrap_or_default())
        }
        (None, Some((host, port))) => format!("{scheme}://{user}@{host}:{port}/{database}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{mysql, postgres};

    #[test]
    fn addresses_of_sockets_are_read_as_they_were() {
        let _ = (&mysql::MARIADB, &postgres::POSTGRES);
        let read = |name: &str| crate::database::find(name).and_then(|entry| entry.read_url).unwrap();
        let user = ("load line".to_owned(), "m@".to_owned());
        let socket = |path: &str| Endpoint {
            unix: Some(path.into()),
            user: user.0.clone(),
            database: user.1.clone(),
            ..Endpoint::default()
        };
        for (name, path) in [("mariadb", "/tmp/a b/x.sock"), ("postgres", "/tmp/a b/.s.PGSQL.5433")] {
            let endpoint = socket(path);
            let read = read(name)(&url(name, &endpoint)).unwrap();
            assert_eq!(
                (read.unix, read.user, read.database),
                (endpoint.unix, endpoint.user, endpoint.database),
                "{name}"
            );
        }
        let tcp = Endpoint { unix: None, tcp: Some(("127.0.0.1".to_owned(), 3307)), ..socket("/x") };
        assert_eq!(read("mariadb")(&url("mariadb", &tcp)).unwrap().tcp, tcp.tcp);
    }
}
