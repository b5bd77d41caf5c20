//! How a private NATS server is started. Main type: [`NatsRecipe`].

use std::path::{Path, PathBuf};

use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Readiness, Recipe, executable, search_path};
use crate::trial::DatabaseSettings;

const HOST: &str = "127.0.0.1";
const USER: &str = "loadline";

/// A NATS server with plain subjects.
#[derive(Debug, Clone, Copy)]
pub struct NatsRecipe;

impl Recipe for NatsRecipe {
    fn find_binary(&self, _: &DatabaseSettings) -> Result<PathBuf, String> {
        let installed = executable(Path::new("/usr/sbin/nats-server"));
        let remedy = "install Debian's package nats-server, or take freshness.path = \"database\"";
        installed
            .or_else(|| search_path("nats-server").into_iter().next())
            .ok_or_else(|| format!("there is no nats-server on the PATH nor in /usr/sbin; {remedy}"))
    }

    fn users(&self) -> &'static [&'static str] {
        &["nats", "nobody"]
    }

    fn reserved_settings(&self) -> &'static [&'static str] {
        &[]
    }

    fn files(&self, password: &str) -> Vec<(&'static str, String)> {
        let account = format!("authorization {{ user: {USER}, password: \"{password}\" }}");
        vec![("nats.conf", format!("{account}\nping_interval: \"1h\"\nmax_payload: 8MB\n"))]
    }

    fn initialise(&self, _: &Path, _: &Path, _: &str) -> Vec<CommandLine> {
        Vec::new()
    }

    fn start(&self, binary: &Path, _: &Path, port: u16, _: &DatabaseSettings) -> CommandLine {
        let arguments = ["-c", "nats.conf", "-a", HOST, "-p", &port.to_string()].map(str::to_owned).to_vec();
        CommandLine { program: binary.to_owned(), arguments, ..CommandLine::default() }
    }

    fn endpoint(&self, _: &Path, port: u16, _: &DatabaseSettings) -> Endpoint {
        Endpoint { tcp: Some((HOST.to_owned(), port)), user: USER.to_owned(), ..Endpoint::default() }
    }

    fn hello(&self, _: &Endpoint) -> Vec<u8> {
        Vec::new()
    }

    fn readiness(&self, answer: &[u8]) -> Readiness {
        match answer {
            _ if answer.starts_with(b"INFO ") => Readiness::Ready,
            _ if b"INFO ".starts_with(answer) => Readiness::Incomplete,
            _ => Readiness::Refused("something else than a NATS server answers on its port".to_owned()),
        }
    }

    fn stop_signal(&self) -> i32 {
        libc::SIGTERM
    }

    fn facts(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }
}
