//! Private servers: started in a directory of their own from the installed packages, stopped and removed whatever happens.
//!
//! Main type: [`Server`]. Invariant: no process is ever signalled, and no file ever removed, that a loadline has not made
//! itself. A server ends when its [`Server`] is dropped, when loadline dies (the kernel sends it its stop signal), and at the
//! latest when the next loadline calls [`remove_orphans`].

mod again;
mod companion;
mod cpus;
mod descriptors;
mod directory;
mod disk;
mod interrupt;
mod keep;
mod memory;
mod power;
mod process;
mod readiness;
mod start;
mod user;
mod worker;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

pub use companion::Companion;
pub use cpus::{CpuList, CpuListError, allowed_to_this_thread, pin_this_thread};
pub use descriptors::raise_descriptors;
pub use directory::{OwnDirectory, remove_orphans, root};
pub use disk::free_disk_bytes;
pub use interrupt::{install_signal_handlers, install_signal_handlers_with_reload, interrupted, take_reload};
pub use keep::{KeptData, move_or_copy, remove, size_bytes};
pub use power::{Faults, Keeps, Lost, Plan as DiskPlan, PowerDisk, When};
pub use process::wait_until;
pub use start::check;
pub use user::keep_files_private;
pub use worker::Worker;

use crate::database::Endpoint;
use crate::database::recipe::{Reach, Recipe};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;
use directory::PrivateDirectory;
use memory::MemoryGroup;
use process::MainProcess;

/// How long a server may take to stop in order before it is ended by force.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// How long it may take when its data is to be kept: all of it must be on disk.
const STOP_AND_KEEP_WITHIN: Duration = Duration::from_secs(180);
/// How long one that was killed takes to be gone, once its connections are lost.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// What appends the pids of a server's processes as they are whenever it is called.
pub type PidSource = Box<dyn FnMut(&mut Vec<u32>) + Send>;

/// A running private server. Dropping it stops it and removes its directory.
#[derive(Debug)]
pub struct Server {
    /// Stopped before the directory goes; none once it is stopped.
    child: Option<Child>,
    main: MainProcess,
    directory: PrivateDirectory,
    endpoint: Endpoint,
    stop_signal: i32,
    warnings: Vec<String>,
    /// Goes when the server has gone.
    memory: Option<MemoryGroup>,
    /// Goes when the directory has gone, whose data may be on it.
    power: Option<PowerDisk>,
}

/// Why there is no server. Sentences name the place, the value and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There is no binary to start.
    #[error("{0}")]
    NotFound(Fault),
    /// `database.config` contains something that cannot be set.
    #[error("database.config: \"{name}\" {reason}")]
    Setting {
        /// The setting's name.
        name: String,
        /// What is wrong with it, and what to do.
        reason: String,
    },
    /// `database.memory` cannot be kept.
    #[error("{0}")]
    Memory(Fault),
    /// `database.tls` asks for a certificate, and none can be made.
    #[error("{0}")]
    NoCertificate(String),
    /// A private server of this database cannot be started with TLS.
    #[error(
        "database.tls: a private server of this database is started without TLS; leave it out, or name a server that has it with database.url"
    )]
    NoTls,
    /// This database's files cannot be encrypted so.
    #[error("database.encryption: this database has no \"{asked}\"; {remedy}")]
    Encryption {
        /// What was asked for.
        asked: String,
        /// What to do.
        remedy: String,
    },
    /// `database.cpus` cannot be used.
    #[error("database.cpus: {0}")]
    Cpus(#[from] CpuListError),
    /// loadline runs as root and there is no user to run the server as.
    #[error(
        "servers do not run as root, and there is no user {0}; install the database's package, or run loadline as another user"
    )]
    NoUser(String),
    /// The server's user cannot reach the place of its data.
    #[error(
        "the server runs as user {user}, who may not enter {}; choose a run directory outside of it (--out) instead of {}, or \
         run loadline as another user than root", directory.display(), parent.display()
    )]
    Barred {
        /// Where the data was to be.
        parent: PathBuf,
        /// The directory on the way there that is closed.
        directory: PathBuf,
        /// Name of the server's user.
        user: String,
    },
    /// The directory for private servers belongs to somebody else, or others may write to it.
    #[error("{} is not a directory that only this user may write to; remove it, or set TMPDIR to another directory", root.display())]
    Foreign {
        /// The directory.
        root: PathBuf,
    },
    /// Something on the file system failed.
    #[error("cannot {action} {}: {source}{}", path.display(), then(remedy_of(source)))]
    Path {
        /// Where.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the operating system says.
        source: io::Error,
    },
    /// Too little room for a server's files.
    #[error("no room for a server below {}: {free_mib} MiB are free, {needed_mib} MiB are needed; free some, or choose another place (--out, TMPDIR)", path.display())]
    NoRoom {
        /// Where.
        path: PathBuf,
        /// What is free, in MiB.
        free_mib: u64,
        /// What is needed at least, in MiB.
        needed_mib: u64,
    },
    /// A program could not be executed.
    #[error("cannot execute {}: {source}{}", program.display(), then(remedy_of(source)))]
    Execute {
        /// The program.
        program: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// The data directory could not be made.
    #[error("{} could not make the data directory{}:{log}", program.display(), then(remedy.as_deref()))]
    Initialise {
        /// The program that failed.
        program: PathBuf,
        /// Lines of its output.
        log: String,
        /// What to do, if that can be told.
        remedy: Option<String>,
    },
    /// The server did not come up.
    #[error("{} {what}{}; its log says:{log}", program.display(), then(remedy.as_deref()))]
    NotUp {
        /// The server's binary.
        program: PathBuf,
        /// What happened instead.
        what: String,
        /// Lines of its log.
        log: String,
        /// What to do, if that can be told.
        remedy: Option<String>,
    },
    /// The disk that can lose its power is not there.
    #[error("the disk of the server: {0}")]
    Disk(String),
    /// The user asked loadline to stop.
    #[error("interrupted while the server was starting")]
    Interrupted,
}

impl ServerError {
    /// What to do about it; none where that cannot be told, or is told in passing.
    pub fn remedy(&self) -> Option<String> {
        match self {
            ServerError::NotFound(fault) | ServerError::Memory(fault) => fault.remedy.clone(),
            ServerError::Encryption { remedy, .. } => Some(remedy.clone()),
            ServerError::Initialise { remedy, .. } | ServerError::NotUp { remedy, .. } => remedy.clone(),
            ServerError::Path { source, .. } | ServerError::Execute { source, .. } => {
                remedy_of(source).map(str::to_owned)
            }
            _ => None,
        }
    }
}

/// What is said behind what is wrong.
fn then(remedy: Option<&str>) -> String {
    remedy.map(|remedy| format!("; {remedy}")).unwrap_or_default()
}

fn remedy_of(source: &io::Error) -> Option<&'static str> {
    match source.kind() {
        io::ErrorKind::PermissionDenied => {
            Some("give this user the permission, or choose another place (--out, TMPDIR)")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some room, or choose another place (--out, TMPDIR)")
        }
        io::ErrorKind::ReadOnlyFilesystem => Some("choose another place (--out, TMPDIR)"),
        _ => None,
    }
}

impl Server {
    /// Starts a private server and waits until it lets clients in, at most a minute. Its data goes to a new directory in
    /// `parent`, or to [`root`] without one; everything else goes to `root`.
    ///
    /// # Errors
    /// See [`ServerError`]. Nothing is left behind.
    pub fn start(
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
        parent: Option<&Path>,
    ) -> Result<Server, ServerError> {
        start::start(recipe, settings, parent, None, &Reach::LOOPBACK)
    }

    /// As [`Server::start`], with data that another server of this recipe and these settings has left. It is moved; only on
    /// another file system it stays, and the server works on a copy.
    ///
    /// # Errors
    /// See [`ServerError`]. The data is then lost, unless it stays.
    pub fn start_with(
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
        parent: Option<&Path>,
        kept: &KeptData,
    ) -> Result<Server, ServerError> {
        start::start(recipe, settings, parent, Some(kept), &Reach::LOOPBACK)
    }

    /// As [`Server::start`], or with `kept` as [`Server::start_with`], on a host of a link, with clients on another one.
    ///
    /// # Errors
    /// As theirs.
    pub fn start_at(
        reach: &Reach,
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
        parent: Option<&Path>,
        kept: Option<&KeptData>,
    ) -> Result<Server, ServerError> {
        start::start(recipe, settings, parent, kept, reach)
    }

    /// Stops it in order, and moves or copies its data to a place where nothing is. Gives the password of its account; none,
    /// and no data, when it did not stop in order.
    ///
    /// # Errors
    /// When the data cannot be moved or copied.
    pub fn stop_and_keep(mut self, to: &Path) -> io::Result<Option<String>> {
        let is_in_order =
            self.child.take().is_some_and(|mut child| process::end(&mut child, self.stop_signal, STOP_AND_KEEP_WITHIN));
        if !is_in_order {
            return Ok(None);
        }
        move_or_copy(&self.directory.data(), to).map(|_| Some(self.endpoint.password.clone()))
    }

    /// Where it listens and who is let in.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// How many of its processes the system has ended because they took more memory than it is given.
    pub fn ended_for_memory(&self) -> u64 {
        self.memory.as_ref().map_or(0, MemoryGroup::ended)
    }

    /// The server's process and all its descendants, the main one first; empty once it has ended.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        self.pid_source()(&mut pids);
        pids
    }

    /// What appends the server's pids as they are whenever it is called, for monitoring.
    pub fn pid_source(&self) -> PidSource {
        let main = self.main.clone();
        Box::new(move |pids| {
            if let Some(main) = main.running() {
                process::append_tree(main.pid, pids);
            }
        })
    }

    /// What the server's log says about settings that it took with another value than it was given.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether it is running still.
    pub fn is_running(&self) -> bool {
        self.child.as_ref().is_some_and(|child| !process::has_ended(child))
    }

    /// Whether a server that answers nobody has ended, or does so now: one that was killed loses its connections a moment before it is gone.
    pub fn ends_now(&self) -> bool {
        process::wait_until(ENDED_WITHIN, || !self.is_running())
    }

    /// The last lines of its log that tell of errors: for when it ended by itself.
    pub fn log_lines(&self) -> String {
        readiness::relevant_lines(&start::read_log(&self.directory.log()))
    }

    /// The end of its log, at most a mebibyte of it.
    pub fn log(&self) -> String {
        start::read_log(&self.directory.log())
    }

    /// Where it keeps its files; gone after [`Server::stop`].
    pub fn directory(&self) -> PathBuf {
        self.directory.server()
    }

    /// Stops it in order, after 20 seconds by force, and removes its directory, as dropping does. Returns whether it
    /// stopped in order.
    pub fn stop(mut self) -> bool {
        self.end()
    }

    fn end(&mut self) -> bool {
        match self.child.take() {
            Some(mut child) => process::end(&mut child, self.stop_signal, STOP_WITHIN),
            None => true,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.end();
    }
}
