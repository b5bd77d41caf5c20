//! The stage: the database that trials run on, with its private server if it has one. Only one server runs at a time,
//! so that an idle server never takes CPU time or disk bandwidth from the measured one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;

use super::agents::Muster;
use super::cache::{Cache, Taken};
use super::database_file::{is_checkpointed, remove_database_file};
use super::entry::{as_database, as_session, entry_of, reached_by};
use super::facts::facts;
use super::fixture::{Fixture, identity_of, remove_own};
use super::members;
use super::notes::{note, sentence};
use super::opening::{Opening, endpoint_of};
use super::private_start::{Means, start_private};
use super::proofs;
use super::staged_link::{StagedLink, wanted};
use super::took::Took;
use crate::database::recipe::Reach;
use crate::database::{Database, Endpoint, Nodes, ReadUrl, Target};
use crate::link::Wanted;
use crate::measurement::PROVED;
use crate::reason::Reason;
use crate::server::{Cluster, interrupted, move_or_copy};
use crate::study::cluster::nodes_of;
use crate::study::plan::private_server;
use crate::study::{Passwords, Patience};
use crate::trial::{DatabaseSettings, Settings};

/// The database that the current trials run on.
pub struct Stage {
    directory: PathBuf,
    passwords: Passwords,
    current: Option<Current>,
    /// Notes on servers that were returned already; each note is returned once.
    noted: BTreeSet<String>,
    /// Cache of filled tables, shared with other runs; `None` without a cache.
    cache: Option<Cache>,
    /// Notes on databases that were left, to be returned by `end`.
    parting: Vec<String>,
    /// Notes on tables that could not be dropped from a foreign server.
    staying: Vec<String>,
    /// Identities of the fixtures that this run has put into the cache.
    kept: BTreeSet<String>,
    /// Time limits of connections; `None` where the user of the connections sets limits itself.
    patience: Option<Patience>,
    /// The agents on other machines; `None` if agents are processes of this one.
    muster: Option<Arc<Muster>>,
}

/// The database that is set up.
pub struct Current {
    settings: DatabaseSettings,
    /// Opens connections.
    pub target: Arc<dyn Target>,
    /// The nodes of the private server, if it has several.
    pub nodes: Option<Nodes>,
    /// The private server, if there is one.
    pub server: Option<Cluster>,
    /// The network link in front of the server, if there is one.
    pub link: Option<StagedLink>,
    /// Whether a recorder is in front of the database. The database is then on the recorder's host and not at the end of the link.
    is_behind: bool,
    /// The server's version and relevant settings, read once.
    pub facts: Vec<(String, String)>,
    /// Notes on the start that were not returned before, as sentences; the caller takes them.
    pub notes: Vec<String>,
    /// Time limits of its connections.
    pub(super) patience: Option<Patience>,
    /// The fixture in the tables that loadline made here; `None` without such tables.
    pub fixture: Option<Fixture>,
    /// How long filling the tables took and whether a server was started, since this was last taken.
    pub took: Took,
    /// The file for the next trial's raw times, if the study asks for them.
    pub samples: Option<PathBuf>,
    /// The file of an embedded database that loadline created and will remove.
    own_file: Option<PathBuf>,
    /// The key that determines the content of the fixture; `None` if the fixture is not kept for other runs.
    identity: Option<String>,
    /// The fixture taken from the cache, if the data is a copy.
    copied: Option<Taken>,
    /// The address the server listens on; `None` for an embedded database.
    endpoint: Option<Endpoint>,
    /// The directory in which servers of the run may keep their data.
    directory: PathBuf,
    /// Whether a trial has already reported that the server ended.
    is_end_told: bool,
    /// Whether an event disturbed the server on purpose, so that the next trial gets a new one.
    pub is_spent: bool,
    /// The agents on other machines; `None` if agents are processes of this one.
    pub muster: Option<Arc<Muster>>,
}

/// The surroundings of a database.
#[derive(Clone, Copy, Default)]
struct Around<'a> {
    /// The network link to the database, if there is one.
    link: Option<&'a Wanted>,
    /// Whether a recorder is in front of the database, on the recorder's own host.
    is_behind: bool,
    /// What its server has of loadline's own.
    means: Means,
}

impl Stage {
    /// Creates a stage whose servers and files are below `directory`.
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
            muster: None,
        }
    }

    /// Sets the time limits of connections that are opened from now on.
    #[must_use]
    pub fn patient(mut self, patience: Patience) -> Self {
        self.patience = Some(patience);
        self
    }

    /// Lets agents on other machines drive the loads of trials with agents.
    #[must_use]
    pub fn mustering(mut self, muster: Option<Arc<Muster>>) -> Self {
        self.muster = muster;
        self
    }

    /// Returns the database that is set up, if there is one.
    pub fn current(&self) -> Option<&Current> {
        self.current.as_ref()
    }

    /// Returns the database that is set up, mutably.
    pub fn current_mut(&mut self) -> Option<&mut Current> {
        self.current.as_mut()
    }

    /// Returns whether the database was late and has not answered since.
    pub fn stands_still(&self) -> bool {
        self.current.as_ref().is_some_and(|current| current.target.stands_still())
    }

    /// Leaves the database and returns two lists of notes: on what was kept, each note once, and on tables that stay on a foreign server.
    pub fn end(&mut self) -> (Vec<String>, Vec<String>) {
        self.leave();
        let mut notes = std::mem::take(&mut self.parting);
        notes.retain(|note| self.noted.insert(note.clone()));
        (notes, std::mem::take(&mut self.staying))
    }

    /// Returns the database for a case, set up now if it is not set up yet or if its server has ended by itself. If the fixture of
    /// the case can be kept for other runs, the case has a database of its own, with the data of an earlier run if there is any.
    ///
    /// # Errors
    /// Fails if the server does not start or cannot be reached.
    pub fn enter_for(&mut self, settings: &Settings) -> anyhow::Result<&mut Current> {
        // Data on a disk that loses power is used by this run only.
        let means = Means::of_events(&settings.events);
        let is_kept = self.cache.is_some() && !means.disk && nodes_of(&settings.database) == 1;
        let identity = if is_kept { identity_of(settings)? } else { None };
        let link = wanted(settings);
        // A database behind a recorder is not reached over the link, unless the recorder has another host.
        let is_behind = settings.recorded().is_some() && !settings.has_recorders_on_hosts();
        let around = Around { link: link.as_ref(), is_behind, means };
        let current = self.enter_with(&settings.database, around, identity)?;
        super::connections::check_server(settings, &current.facts)?;
        Ok(current)
    }

    /// Returns the database with these settings for any purpose, set up now if it is not set up yet or if its server has ended by itself.
    ///
    /// # Errors
    /// Fails if the server does not start or cannot be reached.
    pub fn enter(&mut self, settings: &DatabaseSettings) -> anyhow::Result<&mut Current> {
        self.enter_with(settings, Around::default(), None)
    }

    fn enter_with(
        &mut self,
        settings: &DatabaseSettings,
        around: Around<'_>,
        identity: Option<String>,
    ) -> anyhow::Result<&mut Current> {
        let Around { link, is_behind, means } = around;
        // A server that was killed a moment ago may still be there without answering.
        let answers = |current: &Current| current.server.is_none() || current.target.open().is_ok();
        let has_link = |current: &Current| match (&current.link, link) {
            (Some(staged), Some(link)) => staged.is(link) && current.is_behind == is_behind && staged.network.is_up(),
            (None, None) => true,
            _ => false,
        };
        let is_same =
            |current: &Current| current.settings == *settings && current.identity == identity && !current.is_spent;
        let has_means = |current: &Current| Means::of_server(current.server.as_ref()) == means;
        let is_up =
            |current: &Current| has_link(current) && has_means(current) && current.has_server() && answers(current);
        // The engine is a property of tables and the socket one of connections: the server stays.
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

    /// Leaves the database: stops the server and removes what loadline made.
    pub fn leave(&mut self) {
        let Some(mut current) = self.current.take() else { return };
        if self.keep(&mut current).is_none()
            && let (Some(copied), Some(cache)) = (current.copied.take(), &self.cache)
        {
            cache.give_back(copied);
        }
        if current.settings.url.is_some() || current.settings.path.is_some() {
            // The database is not loadline's own. A connection may have broken only now.
            let removed = current.remove_tables().or_else(|_| current.remove_tables());
            self.staying.extend(removed.err().and_then(|error| current.staying(&error)));
        }
        if let Some(file) = &current.own_file {
            remove_database_file(file);
        }
    }

    /// Puts the data of a fixture into the cache if it is worth keeping. Returns `None` if there was nothing to keep.
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
            // The next run makes again what could not be kept.
            _ => cache.forget(identity),
        }
        Some(())
    }

    /// Takes the fixture of an earlier run from the cache, if there is one.
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
        Around { link, is_behind, means }: Around<'_>,
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
                    start_private((entry, recipe, settings), (&self.directory, means), &reach, kept, notes)
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
                endpoint = started.first().map(|first| reached_by(first.endpoint(), settings, &reach));
                server = Some(started);
            }
            _ if settings.path.is_none() => {
                let file = self.directory.join("database.db");
                // A run that was killed may have left a half-written file of its own.
                remove_database_file(&file);
                if taken.as_ref().is_some_and(|taken| taken.put_file(&file).is_err()) {
                    taken.take().into_iter().for_each(Taken::discard);
                }
                settings_here.path = Some(file.display().to_string());
                own_file = Some(file);
            }
            _ => {}
        }
        let (target, nodes) =
            members::open(entry, &settings_here, endpoint.as_ref(), (server.as_ref(), &reach), self.patience)?;
        let program = server.as_ref().and_then(|_| entry.recipe?.find_binary(settings).ok());
        let mut facts = facts(entry, &*target, program, (settings, self.muster.as_deref()))?;
        facts.extend(members::fact(settings, nodes.as_ref(), means.hosts));
        // Nothing is known about the disk of a server elsewhere: proofs hold for this machine's disk only.
        let is_own = settings.url.is_none();
        let proved = if is_own { proofs::proved(entry, settings, &facts) } else { None };
        facts.extend(proved.map(|proved| (PROVED.to_owned(), proved)));
        notes.retain(|note| self.noted.insert(note.clone()));
        let (fixture, copied) = taken.map_or((None, None), fixture_of);
        let (settings, directory) = (settings.clone(), self.directory.clone());
        Ok(Current {
            settings,
            target,
            nodes,
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
            muster: self.muster.clone(),
        })
    }
}

impl Stage {
    /// Returns the endpoint and password of an existing server: the password of the address as written, else `LOADLINE_PASSWORD`.
    fn endpoint_of(&self, url: &str, read_url: ReadUrl) -> anyhow::Result<Endpoint> {
        endpoint_of(self.passwords.whole_address(url), read_url)
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.leave();
        self.staying.drain(..).for_each(|line| note(&line));
    }
}

impl Current {
    /// Reuses the running server for settings that differ only in the engine of the tables and in the socket.
    fn turn_to(&mut self, settings: &DatabaseSettings) -> anyhow::Result<()> {
        let server = self.server.as_ref().context("there is no server to go on with")?;
        let reach = self.link.as_ref().map_or(Reach::LOOPBACK, |link| link.network.reach());
        self.endpoint = server.first().map(|first| reached_by(first.endpoint(), settings, &reach));
        let around = (Some(server), &reach);
        (self.target, self.nodes) =
            members::open(entry_of(settings)?, settings, self.endpoint.as_ref(), around, self.patience)?;
        if let (true, Some(fixture)) = (settings.engine != self.settings.engine, &mut self.fixture) {
            fixture.is_changed = true;
        }
        self.settings = settings.clone();
        Ok(())
    }

    /// Returns the database as one that speaks SQL.
    ///
    /// # Errors
    /// Fails with a sentence if the database does not speak SQL.
    pub fn database(&self) -> anyhow::Result<&dyn Database> {
        as_database(&*self.target)
    }

    /// Returns the data with which another process opens the same database.
    pub fn reach(&self) -> Opening {
        let path = self.file().map(|file| file.display().to_string());
        let settings = DatabaseSettings { path: path.or_else(|| self.settings.path.clone()), ..self.settings.clone() };
        Opening { settings, endpoint: self.endpoint.clone() }
    }

    /// Returns the addresses at which a recorder in front of the database listens.
    pub fn reach_of_front(&self) -> Reach {
        self.link.as_ref().map_or(Reach::LOOPBACK, |link| link.network.reach())
    }

    /// Returns the address the server listens on, if there is a server.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        self.endpoint.as_ref()
    }

    /// Returns the file of an embedded database.
    pub fn file(&self) -> Option<&Path> {
        self.own_file.as_deref().or(self.settings.path.as_deref().map(Path::new))
    }

    /// Returns the directory in which servers of the run may keep their data.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns why the private server ended by itself, if it did and this was not reported yet.
    pub fn untold_end(&mut self) -> Option<Reason> {
        let server = self.server.as_ref().filter(|_| !self.is_end_told)?;
        // A killed server stops answering before its process is gone.
        let is_gone = || self.target.open().is_err() && server.ends_now();
        self.is_end_told = !server.is_running() || is_gone();
        let log = self.is_end_told.then(|| server.log_lines())?;
        let last = log.lines().last().unwrap_or_default().trim();
        Some(Reason::ProgramEnded { program: "server".to_owned(), log: last.to_owned() })
    }

    /// Returns whether the private server runs; true without a private server.
    pub fn has_server(&self) -> bool {
        self.server.as_ref().is_none_or(Cluster::is_running)
    }

    /// Removes the tables that loadline made. A file that is loadline's own is removed as a whole, so that every trial begins
    /// with a new file, whatever the last trial left in it.
    ///
    /// # Errors
    /// Fails if a table cannot be dropped; the call can be repeated.
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

    /// Describes the tables that stay because they could not be dropped, and how to drop them; `None` without such tables.
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

/// Returns the fixture in tables from the cache, and the copy if the data is one.
fn fixture_of(taken: Taken) -> (Option<Fixture>, Option<Taken>) {
    let (content, tables) = (taken.described.content.clone(), taken.described.tables.clone());
    let fixture = Fixture { content, tables, is_changed: false, ..Fixture::empty() };
    if taken.is_whole() {
        return (Some(fixture), Some(taken));
    }
    taken.discard();
    (Some(fixture), None)
}
