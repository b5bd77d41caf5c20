//! The stage: the database that trials are executed on, with its private server where it has one. One server runs at a time,
//! so that an idle one never takes CPU or disk from the one measured.

use std::collections::BTreeSet;
use std::env::VarError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::cache::{Cache, Taken};
use super::database_file::{is_checkpointed, remove_database_file};
use super::entry::{as_database, as_session, entry_of, open_within_limits, reached_by};
use super::facts::facts;
use super::fixture::{Fixture, identity_of, remove_own};
use super::notes::{note, sentence};
use super::private_start::start_private;
use super::proofs;
use super::staged_link::{StagedLink, wanted};
use super::took::Took;
use crate::database::recipe::Reach;
use crate::database::{Database, Endpoint, ReadUrl, Target};
use crate::link::Wanted;
use crate::measurement::PROVED;
use crate::reason::Reason;
use crate::server::{Server, interrupted, move_or_copy};
use crate::study::cuts_power;
use crate::study::plan::private_server;
use crate::study::{Passwords, Patience};
use crate::trial::{DatabaseSettings, Settings};

/// Environment variable with the password for addresses that have none.
const PASSWORD: &str = "LOADLINE_PASSWORD";

/// The database of the trials that are being executed.
pub struct Stage {
    directory: PathBuf,
    passwords: Passwords,
    current: Option<Current>,
    /// Notes on servers that were given out.
    noted: BTreeSet<String>,
    /// Filled tables of other runs, and for other runs.
    cache: Option<Cache>,
    /// Notes on what was left, to be given out.
    parting: Vec<String>,
    /// Notes on tables that stay on somebody else's server.
    staying: Vec<String>,
    /// Fixtures that this run has kept.
    kept: BTreeSet<String>,
    /// How long connections wait; none where whoever uses them has limits of his own.
    patience: Option<Patience>,
}

/// What is set up.
pub struct Current {
    settings: DatabaseSettings,
    /// Opens connections.
    pub target: Arc<dyn Target>,
    /// The private server, where there is one.
    pub server: Option<Server>,
    /// The link that lies before the server, where there is one.
    pub link: Option<StagedLink>,
    /// Whether a recorder is in front of the database, which then is at the recorder's own host and not at the end of the link.
    is_behind: bool,
    /// Its version and the settings that matter, read once.
    pub facts: Vec<(String, String)>,
    /// What a reader should know about its start, as sentences that were not given out before; for the caller to take.
    pub notes: Vec<String>,
    /// How long its connections wait.
    patience: Option<Patience>,
    /// Tables that loadline made here, by table name: the fixture they hold.
    pub fixture: Option<Fixture>,
    /// How long filling them took, and whether a server was started, since somebody asked.
    pub took: Took,
    /// Where the next trial's raw times go, if the study asks for them.
    pub samples: Option<PathBuf>,
    /// File of an embedded database that is loadline's own, to be removed.
    own_file: Option<PathBuf>,
    /// What decides the content of the fixture, where it is to be kept for others.
    identity: Option<String>,
    /// The fixture taken from the cache, where the data is a copy.
    copied: Option<Taken>,
    /// Where the server listens, where there is one.
    endpoint: Option<Endpoint>,
    /// Where servers of the run may keep their data.
    directory: PathBuf,
    /// Whether a trial has told that the server ended.
    is_end_told: bool,
    /// Whether something has happened to the server on purpose, so that the next trial gets a new one.
    pub is_spent: bool,
}

/// What is around a database.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    /// The link to it, where there is one.
    link: Option<&'a Wanted>,
    /// Whether a recorder is in front of it, at the recorder's own host.
    is_behind: bool,
    /// Whether its data are to be on a disk that can lose its power.
    loses_power: bool,
}

/// How another process opens a database that is set up. Has its password: to be handed over through a pipe only.
#[derive(Clone, Serialize, Deserialize)]
pub struct Opening {
    /// Its settings, with the file of an embedded one.
    pub settings: DatabaseSettings,
    /// Where its server listens; none for an embedded one.
    pub endpoint: Option<Endpoint>,
}

impl Stage {
    /// A stage whose servers and files are below a directory.
    pub fn new(directory: &Path, passwords: Passwords) -> Self {
        Stage {
            directory: directory.to_owned(),
            passwords,
            current: None,
            noted: BTreeSet::new(),
            cache: Cache::open(),
            parting: Vec::new(),
            staying: Vec::new(),
            kept: BTreeSet::new(),
            patience: None,
        }
    }

    /// From now on connections wait so long.
    #[must_use]
    pub fn patient(mut self, patience: Patience) -> Self {
        self.patience = Some(patience);
        self
    }

    /// What is set up, if anything is.
    pub fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// The same, to be changed.
    pub fn current_mut(&mut self) -> Option<&mut Current> {
        self.current.as_mut()
    }

    /// Whether the database was late, and nothing was heard of it since.
    pub fn stands_still(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.target.stands_still())
    }

    /// Leaves for good; what a reader should know of what was kept, each note once, and of tables that stay on somebody else's server.
    pub fn end(&mut self) -> (Vec<String>, Vec<String>) {
        self.leave();
        let mut notes = std::mem::take(&mut self.parting);
        notes.retain(|note| self.noted.insert(note.clone()));
        (notes, std::mem::take(&mut self.staying))
    }

    /// The database of a case with these settings, set up now if it is not already, or if its server has ended by itself. Where
    /// the fixture of the case can be kept for other runs it has a database of its own, with the data of an earlier run if there is one.
    ///
    /// # Errors
    /// When its server does not start or it cannot be reached.
    pub fn enter_for(&mut self, settings: &Settings) -> anyhow::Result<&mut Current> {
        // What is on a disk that loses its power is for this run alone.
        let loses_power = cuts_power(&settings.events);
        let identity = if self.cache.is_some() && !loses_power { identity_of(settings)? } else { None };
        let link = settings.link.as_ref().map(|link| wanted(link, settings.load.clients));
        // Behind a recorder nobody reaches the database over the link.
        let around = Around { link: link.as_ref(), is_behind: settings.recorded().is_some(), loses_power };
        let current = self.enter_with(&settings.database, around, identity)?;
        super::connections::check_server(settings, &current.facts)?;
        Ok(current)
    }

    /// The database with these settings, whatever it is for, set up now if it is not already, or if its server has ended by itself.
    ///
    /// # Errors
    /// When its server does not start or it cannot be reached.
    pub fn enter(&mut self, settings: &DatabaseSettings) -> anyhow::Result<&mut Current> {
        self.enter_with(settings, Around::default(), None)
    }

    fn enter_with(
        &mut self,
        settings: &DatabaseSettings,
        around: Around<'_>,
        identity: Option<String>,
    ) -> anyhow::Result<&mut Current> {
        let Around { link, is_behind, loses_power } = around;
        // A server that was killed just now may still be there and answer nothing.
        let answers = |current: &Current| current.server.is_none() || current.target.open().is_ok();
        let has_link = |current: &Current| match (&current.link, link) {
            (Some(staged), Some(link)) => staged.is(link) && current.is_behind == is_behind && staged.network.is_up(),
            (None, None) => true,
            _ => false,
        };
        let is_same =
            |current: &Current| current.settings == *settings && current.identity == identity && !current.is_spent;
        let has_disk = |current: &Current| current.server.as_ref().is_some_and(Server::can_lose_power) == loses_power;
        let is_up =
            |current: &Current| has_link(current) && has_disk(current) && current.has_server() && answers(current);
        // Tables choose their engine and connections their socket: the server stays.
        let keeps_server = |current: &Current| {
            let is_kept = identity.is_some() || current.identity.is_some();
            !is_kept
                && !current.is_spent
                && private_server(settings).is_some_and(|own| private_server(&current.settings) == Some(own))
        };
        match &mut self.current {
            Some(current) if is_same(current) && is_up(current) => {}
            Some(current) if keeps_server(current) && is_up(current) => current.turn_to(settings)?,
            current => {
                let ended = current.as_mut().and_then(Current::untold_end);
                self.leave();
                let current = self.set_up(settings, around, identity)?;
                self.current
                    .insert(current)
                    .notes
                    .extend(ended.map(|why| format!("between two trials, {why}; it was started again")));
            }
        }
        self.current.as_mut().context("the database is not set up")
    }

    /// Stops the server and removes what loadline made.
    pub fn leave(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        if self.keep(&mut current).is_none()
            && let (Some(copied), Some(cache)) = (current.copied.take(), &self.cache)
        {
            cache.give_back(copied);
        }
        if current.settings.url.is_some() || current.settings.path.is_some() {
            // The database is somebody else's. A connection may have broken only now.
            let removed = current.remove_tables().or_else(|_| current.remove_tables());
            self.staying.extend(removed.err().and_then(|error| current.staying(&error)));
        }
        if let Some(file) = &current.own_file {
            remove_database_file(file);
        }
    }

    /// Puts the data of a fixture that is worth it into the cache. None where there was nothing to keep.
    fn keep(&mut self, current: &mut Current) -> Option<()> {
        let (cache, identity) = (self.cache.as_ref()?, current.identity.as_deref()?);
        let fixture = current.fixture.as_ref().filter(|fixture| !fixture.is_changed && current.copied.is_none())?;
        let to = cache.prepare(identity).ok()?;
        let password = match (current.server.take(), &current.own_file) {
            (Some(server), _) => server.stop_and_keep(&to).ok().flatten(),
            (None, Some(file)) if is_checkpointed(file) => move_or_copy(file, &to).ok().map(|_| String::new()),
            (None, _) => None,
        };
        let put = password.map(|password| cache.put(identity, &fixture.tables, &fixture.content, &password));
        match put {
            Some(Ok(())) => {
                self.kept.insert(identity.to_owned());
                self.parting.push(cache.note());
            }
            // What could not be kept is made again by the next run.
            _ => cache.forget(identity),
        }
        Some(())
    }

    /// The fixture of an earlier run, if there is one.
    fn take_kept(&mut self, identity: Option<&str>, notes: &mut Vec<String>) -> Option<Taken> {
        let identity = identity?;
        let taken = self.cache.as_ref()?.take(identity)?;
        if !self.kept.contains(identity) {
            let tables = taken.described.tables.join(", ");
            notes.push(format!("tables {tables} were filled by an earlier run, with the same records"));
        }
        Some(taken)
    }

    fn set_up(
        &mut self,
        settings: &DatabaseSettings,
        Around { link, is_behind, loses_power }: Around<'_>,
        identity: Option<String>,
    ) -> anyhow::Result<Current> {
        let entry = entry_of(settings)?;
        let link = link.map(StagedLink::open).transpose()?;
        let is_reached = link.as_ref().filter(|_| !is_behind);
        let reach = is_reached.map_or(Reach::LOOPBACK, |link| link.network.reach());
        let mut settings_here = settings.clone();
        let mut own_file = None;
        let mut server = None;
        let mut notes = Vec::new();
        let mut endpoint = None;
        let mut taken = self.take_kept(identity.as_deref(), &mut notes);
        match (&settings.url, entry.recipe, entry.read_url) {
            (Some(url), _, Some(read_url)) => endpoint = Some(self.endpoint_of(url, read_url)?),
            (None, Some(recipe), _) => {
                let kept = taken.as_ref().map(Taken::data);
                let start = |kept, notes: &mut Vec<String>| {
                    start_private((recipe, settings), (&self.directory, loses_power), &reach, kept, notes)
                };
                let started = match start(kept.as_ref(), &mut notes) {
                    Err(error) if kept.is_some() && !interrupted() => {
                        let why = sentence(&error);
                        notes.push(format!("a server with the tables of an earlier run did not start, so that they are filled anew: {why}"));
                        taken.take().into_iter().for_each(Taken::discard);
                        start(None, &mut notes)?
                    }
                    started => started?,
                };
                endpoint = Some(reached_by(started.endpoint(), settings, &reach));
                server = Some(started);
            }
            _ if settings.path.is_none() => {
                let file = self.directory.join("database.db");
                // A run that was killed has left its own, half written.
                remove_database_file(&file);
                if taken.as_ref().is_some_and(|taken| taken.put_file(&file).is_err()) {
                    taken.take().into_iter().for_each(Taken::discard);
                }
                settings_here.path = Some(file.display().to_string());
                own_file = Some(file);
            }
            _ => {}
        }
        let target = open_within_limits(entry, &settings_here, endpoint.as_ref(), self.patience)?;
        let program = server.as_ref().and_then(|_| entry.recipe?.find_binary(settings).ok());
        let mut facts = facts(entry, &*target, program, settings)?;
        // Of a server elsewhere nobody knows whether its disk keeps what this one's kept.
        let is_own = settings.url.is_none();
        let proved = if is_own { proofs::proved(entry, settings, &facts) } else { None };
        facts.extend(proved.map(|proved| (PROVED.to_owned(), proved)));
        notes.retain(|note| self.noted.insert(note.clone()));
        let (fixture, copied) = taken.map_or((None, None), fixture_of);
        let (settings, directory) = (settings.clone(), self.directory.clone());
        Ok(Current {
            settings,
            target,
            server,
            link,
            is_behind,
            facts,
            notes,
            patience: self.patience,
            fixture,
            took: Took::default(),
            samples: None,
            own_file,
            identity,
            copied,
            endpoint,
            directory,
            is_end_told: false,
            is_spent: false,
        })
    }
}

impl Stage {
    /// Where an existing server listens, and the password: that of the address as it was written, else that of `LOADLINE_PASSWORD`.
    fn endpoint_of(&self, url: &str, read_url: ReadUrl) -> anyhow::Result<Endpoint> {
        endpoint_of(self.passwords.whole_address(url), read_url)
    }
}

/// Where the server of an address listens, and the password: the address's own, else that of `LOADLINE_PASSWORD`.
///
/// # Errors
/// A sentence, when the address or the password cannot be read.
pub fn endpoint_of(url: &str, read_url: ReadUrl) -> anyhow::Result<Endpoint> {
    let endpoint = read_url(url).map_err(anyhow::Error::msg).context("database.url")?;
    if !endpoint.password.is_empty() {
        return Ok(endpoint);
    }
    match std::env::var(PASSWORD) {
        Ok(password) => Ok(Endpoint { password, ..endpoint }),
        Err(VarError::NotPresent) => Ok(endpoint),
        Err(VarError::NotUnicode(_)) => bail!("{PASSWORD} is not UTF-8"),
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.leave();
        self.staying.drain(..).for_each(|line| note(&line));
    }
}

impl Current {
    /// Goes on with the same server for other settings, which differ in the engine of its tables and in the socket.
    fn turn_to(&mut self, settings: &DatabaseSettings) -> anyhow::Result<()> {
        let server = self.server.as_ref().context("there is no server to go on with")?;
        let reach = self.link.as_ref().map_or(Reach::LOOPBACK, |link| link.network.reach());
        let endpoint = reached_by(server.endpoint(), settings, &reach);
        self.target = open_within_limits(entry_of(settings)?, settings, Some(&endpoint), self.patience)?;
        self.endpoint = Some(endpoint);
        if let (true, Some(fixture)) = (settings.engine != self.settings.engine, &mut self.fixture) {
            fixture.is_changed = true;
        }
        self.settings = settings.clone();
        Ok(())
    }

    /// What it is as something that speaks SQL, for what cannot be asked otherwise.
    ///
    /// # Errors
    /// A sentence, where it speaks none.
    pub fn database(&self) -> anyhow::Result<&dyn Database> {
        as_database(&*self.target)
    }

    /// How another process opens the same database.
    pub fn reach(&self) -> Opening {
        let path = self.file().map(|file| file.display().to_string());
        let settings = DatabaseSettings { path: path.or_else(|| self.settings.path.clone()), ..self.settings.clone() };
        Opening { settings, endpoint: self.endpoint.clone() }
    }

    /// Where a recorder in front of the database listens.
    pub fn reach_of_front(&self) -> Reach {
        self.link.as_ref().map_or(Reach::LOOPBACK, |link| link.network.reach())
    }

    /// Where the server listens, where there is one.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// The file of an embedded database.
    pub fn file(&self) -> Option<&Path> {
        self.own_file.as_deref().or(self.settings.path.as_deref().map(Path::new))
    }

    /// Where servers of the run may keep their data.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Why the private server ended by itself, where it did and nobody was told yet.
    pub fn untold_end(&mut self) -> Option<Reason> {
        let server = self.server.as_ref().filter(|_| !self.is_end_told)?;
        // A killed server is silent before it is gone.
        let is_gone = || self.target.open().is_err() && server.ends_now();
        self.is_end_told = !server.is_running() || is_gone();
        let log = self.is_end_told.then(|| server.log_lines())?;
        let last = log.lines().last().unwrap_or_default().trim();
        Some(Reason::ProgramEnded { program: "server".to_owned(), log: last.to_owned() })
    }

    /// Whether the private server runs, where there is one.
    pub fn has_server(&self) -> bool {
        self.server.as_ref().is_none_or(Server::is_running)
    }

    /// Removes the tables that loadline made: with the whole file where that is loadline's own, so that every trial begins with
    /// a new one, whatever the last one left of it.
    ///
    /// # Errors
    /// When one cannot be dropped; it can be tried again.
    pub fn remove_tables(&mut self) -> anyhow::Result<()> {
        let Some(fixture) = &mut self.fixture else { return Ok(()) };
        if let Some(file) = &self.own_file {
            remove_database_file(file);
        } else {
            let mut session = self.target.open()?;
            while let Some(own) = fixture.own.last() {
                remove_own(own, as_session(&mut *session)?)?;
                fixture.own.pop();
            }
            while let Some(table) = fixture.tables.last() {
                session.drop_table(table)?;
                fixture.tables.pop();
            }
        }
        self.fixture = None;
        Ok(())
    }

    /// Which tables stay because they could not be dropped, and how to drop them; none where there are none.
    fn staying(&self, error: &anyhow::Error) -> Option<String> {
        let Fixture { tables, own, .. } = self.fixture.as_ref()?;
        let of_own = own.iter().rev().flat_map(|table| table.drop.iter().cloned());
        let of_layout = tables.iter().rev().filter_map(|table| self.target.removal(table));
        let drops = of_own.chain(of_layout).collect::<Vec<_>>().join("; ");
        (!drops.is_empty()).then(|| {
            format!("tables that this run made stay on the server: {}; remove them with: {drops}", sentence(error))
        })
    }
}

/// What tables that were taken from the cache hold, and the copy where they are one.
fn fixture_of(taken: Taken) -> (Option<Fixture>, Option<Taken>) {
    let (content, tables) = (taken.described.content.clone(), taken.described.tables.clone());
    let fixture = Fixture { content, tables, is_changed: false, ..Fixture::empty() };
    if taken.is_whole() {
        return (Some(fixture), Some(taken));
    }
    taken.discard();
    (Some(fixture), None)
}
