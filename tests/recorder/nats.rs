//! A private NATS server for tests.

use std::io::Read;
use std::net::TcpStream;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

#[path = "../server/port.rs"]
mod port;

/// Certificate and key for localhost.
pub const TLS_FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorder/tls");

/// A private NATS server.
pub struct Nats {
    child: Child,
    pub port: u16,
    store: String,
}

impl Nats {
    pub fn start(store: String) -> Self {
        Self::start_at(port::free(), store)
    }

    pub fn start_at(port: u16, store: String) -> Self {
        Self::start_with(port, store, &[])
    }

    /// One that speaks TLS only, with a client's certificate, and knows a token.
    pub fn start_with_tls(store: String) -> Self {
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| format!("{TLS_FILES}/{name}"));
        let tls = ["--tls", "--tlscert", &certificate, "--tlskey", &key, "--tlsverify", "--tlscacert", &certificate];
        Self::start_with(port::free(), store, &[&tls[..], &["--auth", "secret"]].concat())
    }

    /// One that speaks TLS only, and knows a token.
    pub fn start_with_token(store: String) -> Self {
        let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| format!("{TLS_FILES}/{name}"));
        let more = ["--tls", "--tlscert", &certificate, "--tlskey", &key, "--auth", "secret"];
        Self::start_with(port::free(), store, &more)
    }

    /// One without a store, with a configuration.
    pub fn start_configured(name: String, config: &str) -> Self {
        Self::start_with_arguments(port::free(), name, &["-c", config])
    }

    /// One that gives what is published to `measured.SOURCE` to one of so many parts, by the source: `measurements.PART.SOURCE`.
    pub fn start_in_parts(store: String, parts: u32) -> Self {
        let file = format!("{store}.conf");
        let to = format!("measurements.{{{{partition({parts},1)}}}}.{{{{wildcard(1)}}}}");
        std::fs::write(&file, format!("mappings = {{ \"measured.*\": \"{to}\" }}\n")).unwrap();
        Self::start_with(port::free(), store, &["-c", &file])
    }

    fn start_with(port: u16, store: String, more: &[&str]) -> Self {
        let own = ["-js", "-sd", &store.clone()];
        Self::start_with_arguments(port, store, &[&own[..], more].concat())
    }

    fn start_with_arguments(port: u16, store: String, more: &[&str]) -> Self {
        let installed = std::path::Path::new("/usr/sbin/nats-server");
        let program = if installed.exists() { installed.display().to_string() } else { "nats-server".to_owned() };
        let port_text = port.to_string();
        let log = format!("{store}.log");
        let mut child = Command::new(program)
            .args(["-a", "127.0.0.1", "-p", &port_text])
            .args(more)
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .expect("nats-server is installed; ./check does that");
        let begun = Instant::now();
        while !greets(port) {
            let log = || std::fs::read_to_string(&log).unwrap();
            assert!(child.try_wait().unwrap().is_none(), "nats-server ended: {}", log());
            assert!(begun.elapsed() < Duration::from_secs(240), "nats-server does not answer: {}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
        Nats { child, port, store }
    }

    /// What it says of itself.
    fn log(&self) -> String {
        std::fs::read_to_string(format!("{}.log", self.store)).unwrap_or_default()
    }

    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Ends it by force and starts it again with what it has stored.
    pub fn restart(self) -> Self {
        let (port, store) = (self.port, self.store.clone());
        drop(self);
        Self::start_at(port, store)
    }

    /// Ends it by force, and starts it again without anything that it had stored.
    pub fn restart_empty(self) -> Self {
        let (port, store) = (self.port, self.store.clone());
        drop(self);
        std::fs::remove_dir_all(&store).unwrap();
        Self::start_at(port, store)
    }
}

/// Whether a NATS server says who it is, as it does to whoever connects.
fn greets(port: u16) -> bool {
    let Ok(mut connection) = TcpStream::connect(("127.0.0.1", port)) else { return false };
    let mut greeting = [0; 5];
    connection.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    connection.read_exact(&mut greeting).is_ok() && greeting == *b"INFO "
}

impl Drop for Nats {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("nats-server, which ended: {:?}: {}", self.child.try_wait(), self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
