//! Recipes: what `server/` needs to know to start a private server of a database.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use super::{Endpoint, Namespace};
use crate::fault::Fault;
use crate::trial::DatabaseSettings;

/// How a private server is made, started and stopped. Values in, values out: the work is done in `server/`.
pub trait Recipe: Send + Sync {
    /// The server's binary: `settings.binary`, under `settings.base`, or the one installed.
    ///
    /// # Errors
    /// Where it was looked for, and the package that brings it.
    fn find_binary(&self, settings: &DatabaseSettings) -> Result<PathBuf, Fault>;

    /// The user that the server runs as when loadline runs as root, in order of preference; empty for a server that runs as root too.
    fn users(&self) -> &'static [&'static str];

    /// What `settings.encryption` may be.
    fn encryptions(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether it can be started with a certificate, so that `settings.tls` can be asked for.
    fn has_tls(&self) -> bool {
        true
    }

    /// Settings that `settings.config` may not contain because they keep the server private: its places and its account.
    fn reserved_settings(&self) -> &'static [&'static str];

    /// Files in the directory that the commands need, by name with their content; written before the first command.
    /// They give `password` to the account of [`Recipe::endpoint`], and let it in from wherever `reach` says. Whatever encrypts the
    /// data depends on the password alone, so that data that is kept with it can be read again.
    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)>;

    /// Commands that make an empty data directory; executed once, in order. `directory` belongs to the server's user and
    /// is its working directory; there is an empty `data` in it.
    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine>;

    /// The command that runs the server in the foreground.
    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine;

    /// Where a server started so will listen; without the unix socket where `settings.socket` asks for `tcp`. The
    /// password is left empty: whoever chose it fills it in.
    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint;

    /// Bytes to send on a new connection to find out whether the server is ready; empty where the server speaks first. The endpoint has the password.
    fn hello(&self, endpoint: &Endpoint) -> Vec<u8>;

    /// What the first bytes of the server's answer mean.
    fn readiness(&self, answer: &[u8]) -> Readiness;

    /// The signal that asks it to stop in an orderly and quick way.
    fn stop_signal(&self) -> i32;

    /// Questions whose answers are the settings that matter, as (name, question): queries whose first row tells one, or what
    /// [`TargetSession::fact`](super::TargetSession::fact) asks of a target without SQL. A question that this version of the server does not know tells nothing.
    fn facts(&self) -> &'static [(&'static str, &'static str)];
}

/// Connections that a private server accepts, unless its settings say otherwise.
pub const CONNECTIONS: u32 = 300;

/// Connections that a private server with these settings accepts; none where its own setting is no number.
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

/// Where a private server listens for TCP connections, and who may come over them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// The network that the server runs in; none is the machine's own.
    pub namespace: Option<Namespace>,
    /// The network that clients run in; none is the machine's own.
    pub clients: Option<Namespace>,
    /// The address that it listens on.
    pub address: Ipv4Addr,
}

impl Reach {
    /// The loopback address of the machine: nobody from outside.
    pub const LOOPBACK: Reach = Reach { namespace: None, clients: None, address: Ipv4Addr::LOCALHOST };

    /// The first three numbers of the addresses that clients have, where they come from other hosts of a link.
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
    /// It would let us in after more waiting.
    Starting,
    /// It is ready.
    Ready,
    /// It will not let us in, and why.
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
    /// What it reads from its standard input; empty for nothing.
    pub input: String,
}

/// The file behind `path`, with links resolved, if it is an executable file.
pub fn executable(path: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    let path = path.canonicalize().ok()?;
    let metadata = path.metadata().ok()?;
    (metadata.is_file() && metadata.permissions().mode() & 0o111 != 0).then_some(path)
}

/// The same under the name that it is called by, which tells some programs what they are to do: links of the last part are kept.
pub fn executable_as_named(path: &Path) -> Option<PathBuf> {
    executable(path)?;
    Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
}

/// The places of a file of this name on the PATH, in its order, whether it is there or not.
pub fn places_on_path(name: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).collect()
}

/// The executable files of this name on the PATH, in its order.
pub fn search_path(name: &str) -> Vec<PathBuf> {
    places_on_path(name).iter().filter_map(|place| executable(place)).collect()
}
