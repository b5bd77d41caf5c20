//! Private servers: started from the installed packages in a directory of their own, and always stopped and removed.
//!
//! Main type: [`Server`]. Invariant: loadline never signals a process, and never removes a file, that a loadline has
//! not made itself. A server ends when its [`Server`] is dropped, when loadline dies (the kernel sends it its stop
//! signal), and at the latest when the next loadline calls [`remove_orphans`].

mod again;
mod cluster;
mod companion;
mod cpus;
mod descriptors;
mod directory;
mod disk;
mod interrupt;
mod keep;
mod memory;
mod port;
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

pub use cluster::Cluster;
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
use port::HeldPort;
use process::MainProcess;
use start::Source;

/// How long a server may take to stop in order before it is ended by force.
const STOP_WITHIN: Duration = Duration::from_secs(20);
/// How long a server may take to stop whose start was interrupted.
const INTERRUPTED_WITHIN: Duration = Duration::from_secs(2);
/// How long stopping may take when the data is to be kept: all of it must be on disk.
const STOP_AND_KEEP_WITHIN: Duration = Duration::from_secs(180);
/// How long a killed server may take to disappear once its connections are lost.
const ENDED_WITHIN: Duration = Duration::from_secs(10);

/// A function that appends the pids that a server's processes have at the time of the call.
pub type PidSource = Box<dyn FnMut(&mut Vec<u32>) + Send>;

/// A running private server. Dropping it stops it and removes its directory.
#[derive(Debug)]
pub struct Server {
    /// Stopped before the directory is removed; `None` once it is stopped.
    child: Option<Child>,
    main: MainProcess,
    directory: PrivateDirectory,
    endpoint: Endpoint,
    stop_signal: i32,
    warnings: Vec<String>,
    /// Removed after the server has ended.
    memory: Option<MemoryGroup>,
    /// Removed after the directory, whose data may be on it.
    power: Option<PowerDisk>,
    /// Where it listens, from one start to the next.
    _port: HeldPort,
}

/// The reason why there is no server. Each message names the place, the value and the remedy.
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
        /// What is wrong with the setting, and how to correct it.
        reason: String,
    },
    /// The limit of `database.memory` cannot be set.
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
    /// This database cannot encrypt its files in the way asked for.
    #[error("database.encryption: this database has no \"{asked}\"; {remedy}")]
    Encryption {
        /// The encryption asked for.
        asked: String,
        /// How to correct it.
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
        /// The directory in which the data was to be placed.
        parent: PathBuf,
        /// The directory on the way there that the user may not enter.
        directory: PathBuf,
        /// Name of the server's user.
        user: String,
    },
    /// The directory for private servers belongs to another user, or others may write to it.
    #[error("{} is not a directory that only this user may write to; remove it, or set TMPDIR to another directory", root.display())]
    Foreign {
        /// The directory.
        root: PathBuf,
    },
    /// An operation on the file system failed.
    #[error("cannot {action} {}: {source}{}", path.display(), then(remedy_of(source)))]
    Path {
        /// The path.
        path: PathBuf,
        /// The action that was attempted.
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// There is too little room for a server's files.
    #[error("no room for a server below {}: {free_mib} MiB are free, {needed_mib} MiB are needed; free some, or choose another place (--out, TMPDIR)", path.display())]
    NoRoom {
        /// The path on whose file system there is too little room.
        path: PathBuf,
        /// Free space, in MiB.
        free_mib: u64,
        /// Space needed at least, in MiB.
        needed_mib: u64,
    },
    /// A program could not be executed.
    #[error("cannot execute {}: {source}{}", program.display(), then(remedy_of(source)))]
    Execute {
        /// The program.
        program: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The data directory could not be made.
    #[error("{} could not make the data directory{}:{log}", program.display(), then(remedy.as_deref()))]
    Initialise {
        /// The program that failed.
        program: PathBuf,
        /// Lines of its output.
        log: String,
        /// What to do about it, if that is known.
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
        /// What to do about it, if that is known.
        remedy: Option<String>,
    },
    /// The disk that can lose its power could not be mounted; the message names the reason and the remedy.
    #[error("the disk of the server: {0}")]
    Disk(String),
    /// A node of a cluster did not start.
    #[error("node {number} of {count}: {source}")]
    Node {
        /// The node's number, from 1.
        number: u32,
        /// The number of nodes.
        count: u32,
        /// Why it did not start.
        source: Box<ServerError>,
    },
    /// The user asked loadline to stop.
    #[error("interrupted while the server was starting")]
    Interrupted,
}

impl ServerError {
    /// Returns what to do about the error; `None` if that is not known or the message already says it.
    pub fn remedy(&self) -> Option<String> {
        match self {
            ServerError::NotFound(fault) | ServerError::Memory(fault) => fault.remedy.clone(),
            ServerError::Encryption { remedy, .. } => Some(remedy.clone()),
            ServerError::Node { source, .. } => source.remedy(),
            ServerError::Initialise { remedy, .. } | ServerError::NotUp { remedy, .. } => remedy.clone(),
            ServerError::Path { source, .. } | ServerError::Execute { source, .. } => {
                remedy_of(source).map(str::to_owned)
            }
            _ => None,
        }
    }
}

/// Returns the remedy as the continuation of the message.
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
    /// Starts a private server and waits, for at most a minute, until it accepts clients. Its data goes to a new
    /// directory in `parent`, or to [`root`] without one; everything else goes to `root`.
    ///
    /// # Errors
    /// See [`ServerError`]. Nothing is left behind.
    pub fn start(
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
        parent: Option<&Path>,
    ) -> Result<Server, ServerError> {
        start::start(recipe, settings, parent, Source::New, &Reach::LOOPBACK)
    }

    /// Does the same as [`Server::start`], with the data that another server of this recipe and these settings has
    /// left. The data is moved; if it is on another file system it stays, and the server works on a copy.
    ///
    /// # Errors
    /// See [`ServerError`]. The data is then lost, unless it was copied.
    pub fn start_with(
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
        parent: Option<&Path>,
        kept: &KeptData,
    ) -> Result<Server, ServerError> {
        start::start(recipe, settings, parent, Source::Kept(kept), &Reach::LOOPBACK)
    }

    /// Does the same as [`Server::start`], or with `kept` as [`Server::start_with`], on one host of a link with the clients on the other.
    ///
    /// # Errors
    /// See [`Server::start`] and [`Server::start_with`].
    pub fn start_at(
        reach: &Reach,
        recipe: &dyn Recipe,
        settings: &DatabaseSettings,
        parent: Option<&Path>,
        kept: Option<&KeptData>,
    ) -> Result<Server, ServerError> {
        start::start(recipe, settings, parent, kept.map_or(Source::New, Source::Kept), reach)
    }

    /// Stops the server in order, and moves or copies its data to `to`, where nothing may exist yet. Returns the
    /// password of the server's account; `None`, with the data discarded, if the server did not stop in order.
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

    /// Returns the server's addresses and the account that may log in.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns how many of the server's processes the system has ended because they exceeded the memory limit.
    pub fn ended_for_memory(&self) -> u64 {
        self.memory.as_ref().map_or(0, MemoryGroup::ended)
    }

    /// Returns the pids of the server's process and all its descendants, the main process first; empty once it has ended.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        self.pid_source()(&mut pids);
        pids
    }

    /// Returns a function for monitoring that appends the server's pids as they are at each call.
    pub fn pid_source(&self) -> PidSource {
        let main = self.main.clone();
        Box::new(move |pids| {
            if let Some(main) = main.running() {
                process::append_tree(main.pid, pids);
            }
        })
    }

    /// Returns the log's messages about settings to which the server gave another value than asked for.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Returns whether the server is still running.
    pub fn is_running(&self) -> bool {
        self.child.as_ref().is_some_and(|child| !process::has_ended(child))
    }

    /// Waits for at most ten seconds until a server that does not answer has ended, and returns whether it has: a
    /// killed server loses its connections shortly before it is gone.
    pub fn ends_now(&self) -> bool {
        process::wait_until(ENDED_WITHIN, || !self.is_running())
    }

    /// Returns the last lines of the log that report errors, for a server that ended by itself.
    pub fn log_lines(&self) -> String {
        readiness::relevant_lines(&start::read_log(&self.directory.log()))
    }

    /// Returns the end of the log, at most 1 MiB.
    pub fn log(&self) -> String {
        start::read_log(&self.directory.log())
    }

    /// Returns the directory with the server's files; it is gone after [`Server::stop`].
    pub fn directory(&self) -> PathBuf {
        self.directory.server()
    }

    /// Stops the server in order, or after 20 seconds by force, and removes its directory, as dropping does. Returns
    /// whether it stopped in order.
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
