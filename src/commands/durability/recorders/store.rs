//! The store behind a recorder under test: what it has written is read from here. It is on no disk that fails, and can be away for a while.
//!
//! Main type: [`Store`]. Invariant: what is read is what a database returns, and not what a recorder says of itself.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;

use super::intake::Way;
use super::judge::Stored;
use super::stream::{CONSUMER, STREAM};
use super::tested::{Own, Tested};
use crate::database::recipe::Reach;
use crate::database::recorder::recipe::{RecorderRecipe, Takes};
use crate::database::{self, Database, DatabaseError, Target};
use crate::layout::RECORD_ID;
use crate::layout::recorded::Shape;
use crate::record::number_of_time;
use crate::recorder::writer::{stored_tables, writer_of};
use crate::runner::conserve::each_row;
use crate::runner::front::database_section;
use crate::runner::stage::Stage;
use crate::server::Server;
use crate::study::Passwords;
use crate::trial::{DatabaseSettings, Settings};

/// The column with the time stamps of stored records.
const TIME: &str = "time_ns";

/// The store of one life.
pub struct Store {
    kind: Kind,
    /// The table with the records.
    table: String,
}

enum Kind {
    /// A file of SQLite on the recorder's own disk, as `loadline record` writes it.
    File(PathBuf),
    /// A private server of a database, with its address and the settings to open it.
    Server { stage: Box<Stage>, settings: Box<Settings> },
    /// A recorder of loadline's own, which takes line protocol as InfluxDB does and writes it into SQLite. It stands behind recorders of others.
    Taker(Box<Taker>),
}

/// A recorder that takes what another one brings.
struct Taker {
    server: Server,
    recipe: RecorderRecipe,
    /// The file of its database.
    file: PathBuf,
}

/// How the store of loadline's own recorder is named in its configuration.
pub struct Section {
    /// The text of `[database]`.
    pub text: String,
    /// The password of the database.
    pub password: String,
}

impl Store {
    /// Makes a new store for a recorder that takes in on this port and has this directory on the disk that fails; `directory` is on no such disk.
    ///
    /// # Errors
    /// Fails if a server does not start.
    pub fn new(tested: &Tested, port: u16, directory: &Path, data: &Path) -> anyhow::Result<Self> {
        let Some(Own { database, shape }) = &tested.own else { return Store::taker(tested, port, directory) };
        let table = stored_tables(*shape, &tested.measurement).records;
        if database::find(&database.name).is_some_and(|entry| entry.recipe.is_none()) {
            return Ok(Store { kind: Kind::File(data.join("measurements.db")), table });
        }
        let mut stage = Box::new(Stage::new(directory, Passwords::default()));
        stage.enter(database)?;
        let settings = Box::new(Settings { database: database.clone(), ..Settings::default() });
        Ok(Store { kind: Kind::Server { stage, settings }, table })
    }

    fn taker(tested: &Tested, port: u16, directory: &Path) -> anyhow::Result<Self> {
        let file = directory.join("store.db");
        let path = toml::Value::from(file.display().to_string());
        let mut config = format!(
            "[database]\nname = \"sqlite\"\npath = {path}\n[layout]\nname = \"wide\"\n[spool]\npath = \"data/spool\"\n[writer]\ndrain = \"60s\"\n"
        );
        if tested.way == Way::Nats {
            // A NATS server brings nothing to anybody: the store takes from its stream.
            config += &format!(
                "[intake.nats]\nurl = \"nats://127.0.0.1:{port}\"\nstream = \"{STREAM}\"\nconsumer = \"{CONSUMER}\"\n"
            );
        }
        let takes = Takes::Lines(String::new());
        let recipe = RecorderRecipe { config, password: String::new(), takes, files: Vec::new() };
        let server =
            Server::start(&recipe, &DatabaseSettings::default(), None).context("the store behind the recorder")?;
        Ok(Store {
            kind: Kind::Taker(Box::new(Taker { server, recipe, file })),
            table: stored_tables(Shape::Wide, &tested.measurement).records,
        })
    }

    /// Returns the address of a store that takes line protocol; `None` for another one.
    pub fn address(&self) -> Option<SocketAddr> {
        let Kind::Taker(taker) = &self.kind else { return None };
        taker.server.endpoint().tcp.as_ref().map(|(_, port)| SocketAddr::from((Ipv4Addr::LOCALHOST, *port)))
    }

    /// Returns the section of loadline's own configuration that names the store; `None` for a store that is no database.
    ///
    /// # Errors
    /// Fails if there is no server.
    pub fn section(&self, own: &DatabaseSettings) -> anyhow::Result<Option<Section>> {
        let (text, password) = match &self.kind {
            Kind::Taker(_) => return Ok(None),
            Kind::Server { stage, settings } => {
                database_section(settings, stage.current().context("there is no store")?)?
            }
            Kind::File(path) => {
                let mut section = toml::Table::new();
                section.insert("name".to_owned(), own.name.clone().into());
                section.insert("path".to_owned(), path.display().to_string().into());
                let config = own.config.iter().map(|(name, value)| (name.clone(), value.clone().into()));
                section.insert("config".to_owned(), toml::Value::Table(config.collect()));
                let whole: toml::Table = [("database".to_owned(), section.into())].into_iter().collect();
                (toml::to_string(&whole)?, String::new())
            }
        };
        Ok(Some(Section { text, password }))
    }

    /// Returns whether the store can be away while the recorder runs.
    pub fn can_be_away(&self) -> bool {
        !matches!(self.kind, Kind::File(_))
    }

    fn server_mut(&mut self) -> anyhow::Result<&mut Server> {
        match &mut self.kind {
            Kind::File(_) => None,
            Kind::Taker(taker) => Some(&mut taker.server),
            Kind::Server { stage, .. } => {
                stage.current_mut().and_then(|current| current.server.as_mut()).and_then(|cluster| cluster.node_mut(1))
            }
        }
        .context("the store is no server")
    }

    /// Stops the store in order: it refuses connections until it is started again.
    ///
    /// # Errors
    /// Fails if the store is no server.
    pub fn leave(&mut self) -> anyhow::Result<()> {
        self.server_mut()?.stop_in_order();
        Ok(())
    }

    /// Kills the store.
    ///
    /// # Errors
    /// Fails if the store is no server.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.server_mut()?.kill();
        Ok(())
    }

    /// Pauses the store: it accepts connections and answers nothing.
    ///
    /// # Errors
    /// Fails if the store is no server.
    pub fn pause(&mut self) -> anyhow::Result<()> {
        self.server_mut()?.pause();
        Ok(())
    }

    /// Resumes a store that was paused.
    ///
    /// # Errors
    /// Fails if the store is no server.
    pub fn resume(&mut self) -> anyhow::Result<()> {
        self.server_mut()?.resume();
        Ok(())
    }

    /// Starts a store again that was stopped or killed.
    ///
    /// # Errors
    /// Fails if it does not start.
    pub fn come_back(&mut self) -> anyhow::Result<()> {
        match &mut self.kind {
            Kind::File(_) => Ok(()),
            Kind::Taker(taker) => {
                Ok(taker.server.start_again(&Reach::LOOPBACK, &taker.recipe, &DatabaseSettings::default())?)
            }
            Kind::Server { stage, settings } => {
                let recipe = database::find(&settings.database.name).and_then(|entry| entry.recipe);
                let current = stage.current_mut().context("there is no store")?;
                let reach = current.reach_of_front();
                let server = current.server.as_mut().context("there is no store")?;
                server.start_again(1, &reach, recipe.context("the store cannot be started")?, &settings.database)?;
                Ok(())
            }
        }
    }

    /// Reads all records, in the order of the store. A store without the table has none yet.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn read(&self) -> anyhow::Result<Vec<Stored>> {
        let mut stored = Vec::new();
        self.with(|database| {
            let mut session = database.connect()?;
            let exists = format!("SELECT COUNT(*) FROM {} WHERE 1 = 0", database.dialect().quote(&self.table));
            match session.query(&exists) {
                Err(DatabaseError::Refused { .. }) => return Ok(()),
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            each_row(database, &self.table, TIME, |id, time_ns| {
                stored.push(Stored { number: number_of_time(time_ns), lane: writer_of(id) });
            })
        })?;
        Ok(stored)
    }

    /// Returns how many records there are; 0 for a store without the table.
    ///
    /// # Errors
    /// Fails if the store cannot be read.
    pub fn count(&self) -> anyhow::Result<u64> {
        let mut count = 0;
        self.with(|database| {
            let quote = |name: &str| database.dialect().quote(name);
            let sql = format!("SELECT COUNT({}) FROM {}", quote(RECORD_ID), quote(&self.table));
            match database.connect()?.query(&sql) {
                Err(DatabaseError::Refused { .. }) => Ok(()),
                Err(error) => Err(error.into()),
                Ok(rows) => {
                    let cell = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
                    count = cell.context("the store does not count")?;
                    Ok(())
                }
            }
        })?;
        Ok(count)
    }

    fn with(&self, read: impl FnOnce(&dyn Database) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let path = match &self.kind {
            Kind::Server { stage, .. } => return read(stage.current().context("there is no store")?.database()?),
            Kind::File(path) => path,
            Kind::Taker(taker) => &taker.file,
        };
        if !path.exists() {
            return Ok(());
        }
        let settings = DatabaseSettings { path: Some(path.display().to_string()), ..DatabaseSettings::default() };
        let target: Box<dyn Target> = database::find("sqlite").context("sqlite")?.open(&settings, None)?;
        read(target.sql().context("SQLite speaks SQL")?)
    }
}
