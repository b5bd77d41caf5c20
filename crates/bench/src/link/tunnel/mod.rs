//! Tunnels: IPsec ESP between the server's host and the others, by strongSwan with ESP in user space (kernel-libipsec),
//! which also works on kernels without ESP. Packets travel as ESP in UDP, port 4500.
//!
//! Main type: [`Tunnels`]. Invariant: the machine's own strongSwan is neither used nor changed: each host has a daemon of its own, in the host's
//! network namespace and with private files in place of `/etc/strongswan.conf`, `/etc/swanctl` and `/run`.

mod config;

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Host, LinkError};
use crate::database::recipe::CommandLine;
use crate::server::{Companion, interrupted};

pub use config::{PLUGINS, SUITES};

/// strongSwan's daemon, as Debian installs it.
pub const CHARON: &str = "/usr/lib/ipsec/charon";
/// Arguments of unshare for a private view of the file system.
pub const PRIVATE_VIEW: [&str; 3] = ["--mount", "--propagation", "private"];

const READY_WITHIN: Duration = Duration::from_secs(15);
const UP_WITHIN_S: u32 = 30;
const CONFIGURATION: &str = "strongswan.conf";
const CONNECTION: &str = "swanctl.conf";
/// Secret of the connection: 24 random bytes.
const SECRET_BYTES: usize = 24;

/// The daemons of all hosts. Dropping it ends them.
#[derive(Debug)]
pub struct Tunnels {
    daemons: Vec<Daemon>,
    negotiated: String,
}

/// A host's daemon, with its files.
#[derive(Debug)]
struct Daemon(Companion);

impl Tunnels {
    /// Starts a daemon on each host and sets up a tunnel from each client to the server.
    pub fn open(suite: &str, server: &Host, clients: &[Host]) -> Result<Tunnels, LinkError> {
        let suite = SUITES.iter().find(|each| each.name == suite).expect("checked before");
        let failed = |what: String| LinkError::NoTunnel { tunnel: suite.name.to_owned(), what };
        let secret = config::secret(SECRET_BYTES).map_err(LinkError::system("read /dev/urandom"))?;
        let mut daemons = vec![Daemon::start(server, &config::server_connection(suite, server, &secret))?];
        for (number, client) in clients.iter().enumerate() {
            let connection = config::client_connection(suite, client, server, number, &secret);
            daemons.push(Daemon::start(client, &connection)?);
        }
        for daemon in &daemons {
            daemon.await_ready().map_err(failed)?;
            daemon.control(&["--load-all", "--file", &daemon.path(CONNECTION)]).map_err(failed)?;
        }
        let mut negotiated = String::new();
        for daemon in &daemons[1..] {
            let timeout = UP_WITHIN_S.to_string();
            let said = daemon.control(&["--initiate", "--child", "link", "--timeout", &timeout]).map_err(failed)?;
            let selected = said.lines().find_map(|line| line.split_once("selected proposal: ESP:")).map(|(_, esp)| esp);
            negotiated = selected.map(|esp| esp.trim_end_matches("/NO_EXT_SEQ").to_owned()).unwrap_or_default();
        }
        Ok(Tunnels { daemons, negotiated })
    }

    /// Returns the pids of the daemons.
    pub fn pids(&self) -> Vec<u32> {
        self.daemons.iter().flat_map(|daemon| daemon.0.pids()).collect()
    }

    /// Returns whether all daemons are running.
    pub fn is_running(&self) -> bool {
        self.daemons.iter().all(|daemon| daemon.0.is_running())
    }

    /// Returns the suite that both sides agreed on, in strongSwan's words: `AES_CBC_128/HMAC_SHA1_96`.
    pub fn negotiated(&self) -> &str {
        &self.negotiated
    }
}

impl Daemon {
    fn start(host: &Host, connection: &str) -> Result<Daemon, LinkError> {
        let mut companion = Companion::prepare(libc::SIGTERM)?;
        let directory = companion.directory();
        companion.write(CONFIGURATION, &config::configuration())?;
        companion.write(CONNECTION, connection)?;
        for name in ["run", "swanctl"] {
            let path = directory.join(name);
            std::fs::create_dir(&path).map_err(LinkError::system(format!("make {}", path.display())))?;
        }
        companion.start(&command(&directory), Some(&host.namespace))?;
        Ok(Daemon(companion))
    }

    fn path(&self, name: &str) -> String {
        self.0.directory().join(name).display().to_string()
    }

    /// Waits until the daemon accepts commands.
    fn await_ready(&self) -> Result<(), String> {
        let socket = PathBuf::from(self.path("run/charon.vici"));
        let end = Instant::now() + READY_WITHIN;
        // Between the making of the socket and the first listening, connections are refused.
        while UnixStream::connect(&socket).is_err() {
            if !self.0.is_running() {
                return Err(format!("the daemon ended; its log says: {}", self.0.log_tail()));
            }
            if interrupted() {
                return Err("interrupted".to_owned());
            }
            if Instant::now() >= end {
                return Err(format!(
                    "the daemon took no orders within {} s; its log says: {}",
                    READY_WITHIN.as_secs(),
                    self.0.log_tail()
                ));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Sends a command to the daemon and returns the output.
    fn control(&self, arguments: &[&str]) -> Result<String, String> {
        let program = super::device::find("swanctl").unwrap_or_else(|| PathBuf::from("swanctl"));
        let mut command = Command::new(program);
        command.args(arguments).args(["--uri", &format!("unix://{}", self.path("run/charon.vici"))]);
        // The command reads the daemon's settings, not the machine's.
        command.env("STRONGSWAN_CONF", self.path(CONFIGURATION)).stdin(Stdio::null());
        let output = command.output().map_err(|error| format!("swanctl cannot be executed: {error}"))?;
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            return Ok(said);
        }
        // What went wrong stands in front of the manual.
        let said = said.split("usage:").next().unwrap_or_default();
        let end = said.lines().rev().take(4).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join("; ");
        Err(format!("swanctl {} says: {end}", arguments[0]))
    }
}

/// Returns the command that runs the daemon with a private view of the file system, where its files are at the places
/// that it expects: otherwise two daemons on one machine would share a pid file.
fn command(directory: &Path) -> CommandLine {
    let place = directory.display();
    // loadline chooses the directory's name, which has no character special to a shell, but the path of the directory
    // for temporary files above it may have one: it is therefore an argument, not a part of the script.
    let script = format!(
        "mount --bind \"$1/{CONFIGURATION}\" /etc/strongswan.conf && mount --bind \"$1/run\" /run && exec {CHARON}"
    );
    let unshare = super::device::find("unshare").unwrap_or_else(|| PathBuf::from("unshare"));
    let daemon = ["sh", "-c", &script, "charon", &place.to_string()].map(str::to_owned);
    CommandLine {
        program: unshare,
        arguments: PRIVATE_VIEW.map(str::to_owned).into_iter().chain(daemon).collect(),
        environment: vec![("PATH".to_owned(), "/usr/sbin:/usr/bin:/sbin:/bin".to_owned())],
        ..CommandLine::default()
    }
}
