//! The subject of the test: a private server with its data on a disk that fails, or a file of an embedded database on one.
//!
//! Main type: [`Subject`]. Invariant: every process with an open file on the disk is gone before the disk comes back.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::failure::Cut;
use super::writers::Writers;
use crate::runner::entry::entry_of;
use crate::runner::filling::{fill, make_tables};
use crate::runner::opening::Opening;
use crate::runner::stage::Stage;
use crate::server::{DiskPlan, PowerDisk, Server};
use crate::study::Passwords;
use crate::study::plan::private_server;
use crate::trial::{EventKind, EventSettings, Settings};
use crate::workload::Work;

/// The database under test.
pub struct Subject {
    stage: Stage,
    settings: Settings,
    /// The disk of an embedded database; a server has its own.
    disk: Option<PowerDisk>,
}

/// Error message for a subject without a disk that can fail.
const NO_DISK: &str = "the server's data are on no disk that can fail";

/// The outcome of starting a database again.
pub enum Back {
    /// It answers; the time it took.
    Answers(Duration),
    /// It did not start; the reason.
    Silent(String),
}

impl Subject {
    /// Creates a new database for a case, below a directory.
    ///
    /// # Errors
    /// Fails if there is no disk that can fail, or no server.
    pub fn new(directory: &Path, settings: &Settings) -> anyhow::Result<Self> {
        let mut settings = settings.clone();
        let disk = match entry_of(&settings.database)?.recipe {
            Some(_) => {
                // This event puts a server's data on such a disk.
                settings.events = vec![EventSettings::new(0.0, EventKind::CutPower)];
                None
            }
            None => {
                let disk = PowerDisk::mount(Some(directory))?;
                settings.database.path = Some(disk.path().join("measurements.db").display().to_string());
                Some(disk)
            }
        };
        let stage = Stage::new(directory, Passwords::default());
        Ok(Subject { stage, settings, disk })
    }

    /// Returns whether the database runs inside its writers and not in a server.
    pub fn is_embedded(&self) -> bool {
        self.disk.is_some()
    }

    fn server(&self) -> Option<&Server> {
        self.stage.current()?.server.as_ref()?.first()
    }

    fn server_mut(&mut self) -> anyhow::Result<&mut Server> {
        let cluster = self.stage.current_mut().and_then(|current| current.server.as_mut());
        cluster.and_then(|cluster| cluster.node_mut(1)).context("there is no server")
    }

    /// Returns the facts that the server reported at its first start.
    pub fn facts(&self) -> Vec<(String, String)> {
        self.stage.current().map_or_else(Vec::new, |current| current.facts.clone())
    }

    /// Makes the tables anew and returns the data with which writers open the database.
    ///
    /// # Errors
    /// Fails if the server does not start or refuses the tables.
    pub fn prepare(&mut self, work: &Work) -> anyhow::Result<Opening> {
        let settings = &self.settings;
        let current = self.stage.enter_for(settings)?;
        current.remove_tables()?;
        let mut session = make_tables(settings, work, current, &|_, _| {})?;
        session.prepare(work.program())?;
        fill(settings, work, current, session, &|_, _| {})?;
        Ok(current.reach())
    }

    /// Returns `why`, with the last lines of the server's log if the server has ended by itself.
    pub fn with_log(&self, why: &str) -> String {
        match self.server().filter(|server| server.ends_now()) {
            Some(server) => format!("{why}; the server has ended, and its log says: {}", server.log_lines()),
            None => why.to_owned(),
        }
    }

    /// Returns the disk that holds the data.
    ///
    /// # Errors
    /// Fails if the data is on no such disk.
    pub fn disk(&self) -> anyhow::Result<&PowerDisk> {
        let of_server = || self.server().and_then(Server::disk);
        self.disk.as_ref().or_else(of_server).context(NO_DISK)
    }

    /// Cuts the power of the disk, if its plan has not done so. All processes that use the disk are killed, including the writers of an embedded database.
    ///
    /// # Errors
    /// Fails if the disk does not come back.
    pub fn lose_power(&mut self, plan: DiskPlan, writers: &Writers) -> anyhow::Result<Cut> {
        let at = Instant::now();
        let lost = match &mut self.disk {
            Some(disk) => {
                disk.cut(plan);
                writers.kill();
                disk.release();
                writers.wait_until_gone()?;
                disk.restore()?
            }
            None => self.server_mut()?.lose_power(plan, || {})?,
        };
        Ok(Cut { at, unsynced: lost.unsynced() })
    }

    /// Kills the server, or the writers of an embedded database; the disk stays as it is.
    ///
    /// # Errors
    /// Fails if there is no server.
    pub fn kill(&mut self, writers: &Writers) -> anyhow::Result<()> {
        if self.is_embedded() {
            writers.kill();
            return writers.wait_until_gone();
        }
        self.server_mut()?.kill();
        Ok(())
    }

    /// Stops the server in order; an embedded database is closed when its writers have ended.
    ///
    /// # Errors
    /// Fails if there is no server.
    pub fn stop_in_order(&mut self) -> anyhow::Result<()> {
        if !self.is_embedded() {
            self.server_mut()?.stop_in_order();
        }
        Ok(())
    }

    /// Makes the kernel drop what it has cached of the disk, on which no file may be open.
    ///
    /// # Errors
    /// Fails if a file is open.
    pub fn forget_cached(&mut self) -> anyhow::Result<()> {
        match &mut self.disk {
            Some(disk) => disk.remount()?,
            None => self.server_mut()?.disk_mut().context(NO_DISK)?.remount()?,
        }
        Ok(())
    }

    /// Starts the server again on the data that is there, and opens a connection.
    ///
    /// # Errors
    /// Damage from the failure is not an error but [`Back::Silent`].
    pub fn start_again(&mut self) -> anyhow::Result<Back> {
        let begun = Instant::now();
        let settings = self.settings.database.clone();
        let recipe = entry_of(&settings)?.recipe;
        let current = self.stage.current_mut().context("there is no database")?;
        if let Some(recipe) = recipe {
            let reach = current.reach_of_front();
            let own = private_server(&settings).unwrap_or_else(|| settings.clone());
            let server = current.server.as_mut().context("there is no server")?;
            if let Err(error) = server.start_again(1, &reach, recipe, &own) {
                return Ok(Back::Silent(error.to_string()));
            }
        }
        Ok(match current.target.open() {
            Ok(_) => Back::Answers(begun.elapsed()),
            Err(error) => Back::Silent(error.to_string()),
        })
    }

    /// Opens a connection and prepares the statements of the work.
    ///
    /// # Errors
    /// Returns the database's error.
    pub fn open(&mut self, work: &Work) -> anyhow::Result<Box<dyn crate::database::TargetSession>> {
        let current = self.stage.current_mut().context("there is no database")?;
        let mut session = current.target.open()?;
        session.prepare(work.program())?;
        Ok(session)
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        // The file goes with its disk: nothing has to be removed from it, and that might not be possible any more.
        if let (Some(_), Some(current)) = (&self.disk, self.stage.current_mut()) {
            current.fixture = None;
        }
    }
}

/// Checks that this machine can mount such a disk.
///
/// # Errors
/// Fails with what is missing and the remedy.
pub fn check_disk(directory: &Path) -> anyhow::Result<()> {
    PowerDisk::mount(Some(directory)).map(drop).map_err(Into::into)
}
