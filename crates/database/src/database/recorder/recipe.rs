//! The recipes of a private recorder and a private NATS server. Main types: [`RecorderRecipe`] and [`NatsRecipe`].

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Reach, Readiness, Recipe, executable, search_path};
use crate::database::tls::private::{self, CERTIFICATE_FILE, KEY_FILE};
use crate::fault::{Fault, fault};
use crate::trial::DatabaseSettings;

/// The NATS server's configuration file, and the one that adds a certificate.
const CONFIG_FILE: &str = "nats.conf";
const PROTECTED_FILE: &str = "nats-tls.conf";

/// A recorder that runs this program's own binary.
#[derive(Debug, Clone)]
pub struct RecorderRecipe {
    /// The configuration without the addresses to listen on. Relative paths begin in the recorder's private directory.
    pub config: String,
    /// The password of the database, which is not in the configuration.
    pub password: String,
    /// The input that the recorder takes in.
    pub takes: Takes,
    /// The files that the configuration names.
    pub files: Vec<(&'static str, String)>,
}

/// The input that a private recorder takes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Takes {
    /// Lines over HTTP, with this token unless it is empty.
    Lines(String),
    /// Lines over TLS, with this token unless it is empty and the certificate in the recorder's directory, on any free port; the log states which. The
    /// recorder's state is served in plain text to its own host only: a watcher then costs it no TLS handshakes.
    ProtectedLines(String),
    /// Blocks over HTTP PUT, and over FTP with these TLS settings. HTTP is in plain text and also serves the recorder's state.
    Blocks(String),
}

impl Takes {
    /// Returns the sections of the configuration with the addresses to listen on: emulated traffic between two private namespaces needs no protection. FTP
    /// uses any free port; the log states which.
    fn sections(&self, address: Ipv4Addr, port: u16) -> String {
        let tokens = |token: &str| if token.is_empty() { String::new() } else { format!("tokens = [\"{token}\"]\n") };
        match self {
            Takes::Lines(token) => {
                let tokens = tokens(token);
                format!("[intake.http]\nlisten = \"{address}:{port}\"\nconnections = 100000\ninsecure = true\n{tokens}")
            }
            Takes::ProtectedLines(token) => {
                let (tokens, own) = (tokens(token), Ipv4Addr::LOCALHOST);
                format!(
                    "[intake.http]\nlisten = \"{address}:0\"\nconnections = 100000\ncertificate = \"{CERTIFICATE_FILE}\"\n\
                     key = \"{KEY_FILE}\"\n{tokens}[metrics]\nlisten = \"{own}:{port}\"\n"
                )
            }
            Takes::Blocks(tls) => {
                // Without TLS, a tunnel protects the connection, or no protection is wanted.
                let open = if tls.is_empty() { "require_tls = false\ninsecure = true\n" } else { "" };
                format!(
                    "[intake.put]\nlisten = \"{address}:{port}\"\nconnections = 100000\ninsecure = true\n\
                     [intake.ftp]\nlisten = \"{address}:0\"\nconnections = 100000\ncommands = 1000000\n{tls}{open}"
                )
            }
        }
    }
}

impl Recipe for RecorderRecipe {
    fn find_binary(&self, _: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let own = std::env::current_exe().map_err(|error| format!("this program's own file is not known: {error}"))?;
        executable(&own).ok_or_else(|| fault!("{} is gone", own.display(); "start loadline anew"))
    }

    fn users(&self) -> &'static [&'static str] {
        &[]
    }

    fn files(&self, _: &str, _: &Reach) -> Vec<(&'static str, String)> {
        self.files.clone()
    }

    fn start(&self, binary: &Path, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> CommandLine {
        let listen = self.takes.sections(reach.address, port);
        CommandLine {
            program: binary.to_owned(),
            arguments: vec!["record".to_owned(), "/dev/stdin".to_owned()],
            environment: vec![("LOADLINE_PASSWORD".to_owned(), self.password.clone())],
            input: format!("{}\n{listen}", self.config),
        }
    }

    /// Returns the endpoint that serves the recorder's state and, unless lines come over TLS, takes in lines.
    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings, reach: &Reach) -> Endpoint {
        match &self.takes {
            Takes::ProtectedLines(_) => Reach { clients: reach.namespace.clone(), ..Reach::LOOPBACK }.endpoint(port),
            _ => reach.endpoint(port),
        }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        let page = if self.is_asked_for_metrics() { "/metrics" } else { "/ready" };
        format!("GET {page} HTTP/1.1\r\nHost: recorder\r\nConnection: close\r\n\r\n").into_bytes()
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        let says = |line: &[u8]| answer.windows(line.len()).any(|part| part == line);
        match answer {
            _ if self.is_asked_for_metrics() && says(b"\nloadline_ready 1\n") => Readiness::Ready,
            _ if self.is_asked_for_metrics() && says(b"\nloadline_ready 0\n") => Readiness::Starting,
            _ if self.is_asked_for_metrics() => Readiness::Incomplete,
            _ if answer.starts_with(b"HTTP/1.1 200") => Readiness::Ready,
            _ if answer.len() < 12 => Readiness::Incomplete,
            _ => Readiness::Starting,
        }
    }
}

impl RecorderRecipe {
    /// Returns whether the recorder's state is read from its metrics page; its `/ready` page is on the port for lines, which uses TLS then.
    fn is_asked_for_metrics(&self) -> bool {
        matches!(self.takes, Takes::ProtectedLines(_))
    }
}

/// A NATS server with JetStream.
#[derive(Debug, Clone, Copy)]
pub struct NatsRecipe {
    /// True if the server is told to sync before it acknowledges; servers before 2.10 do not support it.
    pub syncs: bool,
}

impl Recipe for NatsRecipe {
    fn find_binary(&self, _: &DatabaseSettings) -> Result<PathBuf, Fault> {
        let installed = executable(Path::new("/usr/sbin/nats-server"));
        let remedy = "install Debian's package nats-server, or take another recorder.path";
        installed
            .or_else(|| search_path("nats-server").into_iter().next())
            .ok_or_else(|| fault!("there is no nats-server on the PATH nor in /usr/sbin"; "{remedy}"))
    }

    fn users(&self) -> &'static [&'static str] {
        &[]
    }

    fn files(&self, _: &str, _: &Reach) -> Vec<(&'static str, String)> {
        let sync = if self.syncs { " sync_interval: always" } else { "" };
        let text = format!("jetstream {{ store_dir: \"data\"{sync} }}\nping_interval: \"1h\"\nmax_payload: 8MB\n");
        // However busy the machine is, both sides have enough time for the handshake.
        let protected = format!(
            "include \"{CONFIG_FILE}\"\ntls {{ cert_file: \"{CERTIFICATE_FILE}\", key_file: \"{KEY_FILE}\", timeout: 20 }}\n"
        );
        vec![(CONFIG_FILE, text), (PROTECTED_FILE, protected)]
    }

    fn start(&self, binary: &Path, _: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> CommandLine {
        let config = if settings.tls.is_some() { PROTECTED_FILE } else { CONFIG_FILE };
        let arguments =
            ["-c", config, "-a", &reach.address.to_string(), "-p", &port.to_string()].map(str::to_owned).to_vec();
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, directory: &Path, port: u16, settings: &DatabaseSettings, reach: &Reach) -> Endpoint {
        let tls = settings.tls.as_ref().map(|_| private::trust(directory)).unwrap_or_default();
        Endpoint { tls, ..reach.endpoint(port) }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        Vec::new()
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        if answer.len() < 5 {
            Readiness::Incomplete
        } else if answer.starts_with(b"INFO ") {
            Readiness::Ready
        } else {
            Readiness::Refused("something else than a NATS server answers on its port".to_owned())
        }
    }
}

/// Returns whether a NATS server of this version can be told to sync before it acknowledges.
pub fn knows_sync(version: &str) -> bool {
    let digits = version.trim_start_matches(|c: char| !c.is_ascii_digit());
    let mut parts = digits.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= (2, 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorder_is_ready_when_it_says_so() {
        let (config, password) = (String::new(), String::new());
        let recipe = RecorderRecipe { config, password, takes: Takes::Lines(String::new()), files: Vec::new() };
        assert_eq!(recipe.readiness(b"HTTP/1.1"), Readiness::Incomplete);
        assert_eq!(recipe.readiness(b"HTTP/1.1 200 OK"), Readiness::Ready);
        assert_eq!(recipe.readiness(b"HTTP/1.1 503 Service"), Readiness::Starting);
        let protected = RecorderRecipe { takes: Takes::ProtectedLines(String::new()), ..recipe };
        let page = "HTTP/1.1 200 OK\r\n\r\n# TYPE loadline_ready gauge\nloadline_ready";
        assert_eq!(protected.readiness(page.as_bytes()), Readiness::Incomplete);
        assert_eq!(protected.readiness(format!("{page} 1\n").as_bytes()), Readiness::Ready);
        assert_eq!(protected.readiness(format!("{page} 0\n").as_bytes()), Readiness::Starting);
    }

    #[test]
    fn a_recorder_with_tls_takes_lines_in_over_it_alone_and_is_watched_from_its_own_host() {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let text = Takes::ProtectedLines("t".to_owned()).sections(address, 8086);
        let [intake, watched] = text.split("[metrics]").collect::<Vec<_>>().try_into().unwrap();
        assert!(intake.contains("listen = \"192.0.2.1:0\"") && intake.contains("certificate = \"certificate.pem\""));
        assert!(intake.contains("tokens = [\"t\"]") && !intake.contains("insecure"), "{intake}");
        assert_eq!(watched, "\nlisten = \"127.0.0.1:8086\"\n");
        let takes = Takes::ProtectedLines(String::new());
        let recipe = RecorderRecipe { config: String::new(), password: String::new(), takes, files: Vec::new() };
        let reach = Reach { address, ..Reach::LOOPBACK };
        let endpoint = recipe.endpoint(Path::new("/x"), 8086, &DatabaseSettings::default(), &reach);
        assert_eq!(endpoint.tcp, Some(("127.0.0.1".to_owned(), 8086)));
    }

    #[test]
    fn a_nats_server_with_tls_is_known_by_its_certificate() {
        let protected = DatabaseSettings { tls: Some("verify".to_owned()), ..DatabaseSettings::default() };
        let recipe = NatsRecipe { syncs: true };
        let start =
            |settings| recipe.start(Path::new("n"), Path::new("/x"), 4222, settings, &Reach::LOOPBACK).arguments;
        assert_eq!(start(&protected)[1], "nats-tls.conf");
        assert_eq!(start(&DatabaseSettings::default())[1], "nats.conf");
        let endpoint = recipe.endpoint(Path::new("/x"), 4222, &protected, &Reach::LOOPBACK);
        assert_eq!(endpoint.tls, private::trust(Path::new("/x")));
    }

    #[test]
    fn a_recorder_that_others_reach_asks_for_a_token_or_for_cameras() {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let read = |takes: Takes| takes.sections(address, 8086);
        assert!(
            read(Takes::Lines("t".to_owned()))
                .contains("listen = \"192.0.2.1:8086\"\nconnections = 100000\ninsecure = true\ntokens = [\"t\"]")
        );
        assert!(!read(Takes::Lines(String::new())).contains("tokens"));
        assert!(read(Takes::Blocks(String::new())).contains("require_tls = false"));
        assert!(!read(Takes::Blocks("certificate = \"c\"\nkey = \"k\"\n".to_owned())).contains("require_tls"));
    }

    #[test]
    fn older_nats_servers_are_not_told_what_they_do_not_know() {
        assert!(!knows_sync("nats-server: v2.9.10") && knows_sync("nats-server: v2.10.1") && !knows_sync(""));
        let with =
            |syncs| NatsRecipe { syncs }.files("", &Reach::LOOPBACK).remove(0).1.contains("sync_interval: always");
        assert!(with(true) && !with(false));
    }
}
