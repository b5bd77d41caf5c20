//! Recipes: the facts that `server/` needs to start a private server of a database.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::{Endpoint, Namespace};
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// How a private server is made, started and stopped. Methods return values only; the work is done in `server/`.
pub trait Recipe: Send + Sync {
    /// Returns the server's binary: `settings.binary`, a binary under `settings.base`, or the installed one.
    ///
    /// # Errors
    /// When it is not found: the places searched, and the package that provides it.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault>;

    /// Returns the users that the server may run as when loadline runs as root, in order of preference; empty for a server that also runs as root.
    fn users(&self) -> &'static [&'static str];

    /// Returns the values that `settings.encryption` may have.
    fn encryptions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether the server can be started with a certificate, so that `settings.tls` can be used.
    fn has_tls(&self) -> bool {
        true
    }

    /// Returns the settings that `settings.config` may not contain because they keep the server private: its paths and its account; by default none.
    fn reserved_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the files in the directory that the commands need, by name with their content; written before the first command; by default none.
    /// They give `password` to the account of [`Recipe::endpoint`] and let it in from the addresses that `reach` allows. Encryption of the
    /// data depends on the password alone, so that kept data can be read again with it.
    fn files(&self, _password: &str, _reach: &Reach) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Returns the commands that make an empty data directory; executed once, in order; by default none. `directory` belongs to the server's user and
    /// is its working directory; it contains an empty `data`.
    fn initialise(&self, _binary: &Path, _directory: &Path, _user: &str) -> Vec<CommandLine> {
        Vec::new()
    }

    /// Returns the command that runs the server in the foreground.
    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine;

    /// Returns the endpoint at which a server started with these arguments will listen; without the unix socket where `settings.socket` asks for `tcp`. The
    /// password is left empty: the caller that chose it fills it in.
    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint;

    /// Returns the bytes to send on a new connection to find out whether the server is ready; empty where the server speaks first. The endpoint has the password.
    fn hello(&self, endpoint: &Endpoint) -> Vec<u8>;

    /// Returns what the first bytes of the server's answer say about its readiness.
    fn readiness(&self, answer: &[u8]) -> Readiness;

    /// Returns the signal that asks the server to stop in an orderly and quick way; by default SIGTERM.
    fn stop_signal(&self) -> i32 {
        libc::SIGTERM
    }

    /// Returns the questions for the settings that matter, as (name, question): queries whose first row has the answer, or questions to
    /// [`TargetSession::fact`](super::TargetSession::fact) of a target without SQL. A question that this version of the server does not know has no answer. By default none.
    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}

/// The number of connections that a private server accepts unless its settings say otherwise.
pub const CONNECTIONS: u32 = 300;

/// Returns the number of connections that a private server with these settings accepts; `None` where the setting is no number.
pub fn connections_of(settings: &DatabaseSettings) -> Option<u32> {
    let is_it = |name: &&String| {
        let plain = name.replace('-', "_");
        ["max_connections", "maxclients"].iter().any(|known| plain.eq_ignore_ascii_case(known))
    };
    match settings.config.keys().find(is_it) {
        Some(name) => settings.config[name].trim().parse().ok(),
        None => Some(CONNECTIONS),
    }
}

/// The addresses at which a private server listens for TCP connections, and the clients that it admits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The network namespace that the server runs in; `None` for the machine's own.
    pub namespace: Option<Namespace>,
    /// The network namespace that clients run in; `None` for the machine's own.
    pub clients: Option<Namespace>,
    /// The address that the server listens on.
    pub address: Ipv4Addr,
}

impl Reach {
    /// The loopback address of the machine: no client from outside.
    pub const LOOPBACK: Reach = Reach { namespace: None, clients: None, address: Ipv4Addr::LOCALHOST };

    /// Returns the endpoint of a server that listens on a port there, as far as every server has the same.
    pub fn endpoint(&self, port: u16) -> Endpoint {
        Endpoint { tcp: Some((self.address.to_string(), port)), namespace: self.clients.clone(), ..Endpoint::default() }
    }

    /// Returns the first three bytes of the clients' addresses; `None` where the server listens on the loopback address.
    pub fn client_network(&self) -> Option<[u8; 3]> {
        let [a, b, c, _] = self.address.octets();
        (!self.address.is_loopback()).then_some([a, b, c])
    }
}

/// How far a starting server has come, judged by its first bytes on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readiness {
    /// More bytes are needed.
    Incomplete,
    /// The server will admit connections after more waiting.
    Starting,
    /// The server is ready.
    Ready,
    /// The server will not admit the connection, for this reason.
    Refused(String),
}

/// A program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// Program.
    pub program: PathBuf,
    /// Arguments.
    pub arguments: Vec<String>,
    /// Added environment variables.
    pub environment: Vec<(String, String)>,
    /// The standard input of the program; empty for none.
    pub input: String,
}

/// The programs of a server that is started under the name by which it is called, and where they are looked for.
#[derive(Debug)]
pub struct Programs {
    /// Their names, in order of preference.
    pub names: &'static [&'static str],
    /// The directories below `database.base`; empty for itself.
    pub below: &'static [&'static str],
    /// The directories besides those of the PATH.
    pub places: &'static [&'static str],
    /// What to do if there is none.
    pub remedy: &'static str,
}

impl Programs {
    /// Returns the server's program: `database.binary`, one below `database.base`, or an installed one.
    ///
    /// # Errors
    /// If it is not found: the places searched, and the remedy.
    pub fn find(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault> {
        if let Some(binary) = &settings.binary {
            let refused = || format!("database.binary = \"{binary}\" is no executable file").into();
            return executable_as_named(Path::new(binary)).ok_or_else(refused);
        }
        let (first, remedy) = (self.names.first().copied().unwrap_or_default(), self.remedy);
        let named = |directory: PathBuf| self.names.iter().map(move |name| directory.join(name));
        let (places, searched): (Vec<PathBuf>, String) = match &settings.base {
            Some(base) => {
                let below = self.below.iter().flat_map(|place| named(Path::new(base).join(place)));
                (below.collect(), format!("under database.base = \"{base}\""))
            }
            None => {
                let of_name = |name: &&str| {
                    let besides = self.places.iter().map(|place| Path::new(place).join(name));
                    places_on_path(name).into_iter().chain(besides).collect::<Vec<_>>()
                };
                let besides: String = self.places.iter().map(|place| format!(" or in {place}")).collect();
                (self.names.iter().flat_map(of_name).collect(), format!("on the PATH{besides}"))
            }
        };
        let refused = || fault!("no server binary {first} {searched}"; "{remedy}");
        places.iter().find_map(|place| executable_as_named(place)).ok_or_else(refused)
    }
}

/// Returns the file behind `path`, with links resolved, if it is an executable file.
pub fn executable(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = path.canonicalize().ok()?;
    let metadata = path.metadata().ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
}

/// Returns the path of an executable under the name by which it is called, since some programs act by that name: a link in the last part is kept.
pub fn executable_as_named(path: &Path) -> Option<PathBuf> {
    executable(path)?;
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// Returns the paths at which a file of this name would lie on the PATH, in its order, whether they exist or not.
pub fn places_on_path(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).collect()
}

/// Returns the executable files of this name on the PATH, in its order.
pub fn search_path(name: &str) -> Vec<PathBuf> {
    places_on_path(name).iter().filter_map(|place| executable(place)).collect()
}
