//! What the recorder's tests share: directories, a plain HTTP client, databases with their recorders.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use loadline::database::{self, Database, Endpoint, Session};
use loadline::recorder::{End, Recorder, config};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

/// A directory that is removed at the end.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("loadline-recorder-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An HTTP answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends a request on a connection of its own; none when the connection broke.
pub fn try_send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &[u8]) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).ok()?;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n",
        body.len()
    );
    // What refuses a request may hang up before it has read all of it.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
}

pub fn send(address: SocketAddr, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
    try_send(address, method, path, headers, body).expect("an answer")
}

pub fn write(address: SocketAddr, body: &str) -> Answer {
    send(address, "POST", "/api/v2/write", "", body.as_bytes())
}

/// A database that recorders are tried on.
pub struct Target {
    pub name: &'static str,
    pub settings: DatabaseSettings,
    pub endpoint: Option<Endpoint>,
    pub server: Option<Server>,
}

impl Target {
    pub fn sqlite(directory: &Directory) -> Self {
        let path = Some(directory.path("measurements.db"));
        let settings = DatabaseSettings { name: "sqlite".to_owned(), path, ..DatabaseSettings::default() };
        Target { name: "sqlite", settings, endpoint: None, server: None }
    }

    pub fn server(name: &'static str) -> Self {
        Self::server_with(name, &[])
    }

    /// A server with settings of its own.
    pub fn server_with(name: &'static str, config: &[(&str, &str)]) -> Self {
        let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let settings = DatabaseSettings { name: name.to_owned(), config, ..DatabaseSettings::default() };
        let server = Server::start(database::find(name).unwrap().recipe.unwrap(), &settings, None).unwrap();
        let endpoint = Some(server.endpoint().clone());
        Target { name, settings, endpoint, server: Some(server) }
    }

    /// The server's processes, the main one first.
    pub fn pids(&self) -> Vec<u32> {
        self.server.as_ref().unwrap().pids()
    }

    /// What the server has printed.
    pub fn log(&self) -> String {
        self.server.as_ref().unwrap().log()
    }

    pub fn open(&self) -> Arc<dyn Database> {
        self.open_at(self.endpoint.as_ref())
    }

    pub fn open_at(&self, endpoint: Option<&Endpoint>) -> Arc<dyn Database> {
        Arc::from(database::find(self.name).unwrap().open_sql(&self.settings, endpoint).unwrap())
    }

    pub fn session(&self) -> Box<dyn Session> {
        self.open().connect().unwrap()
    }

    /// The answer's rows, each joined with `|`.
    pub fn query(&self, sql: &str) -> Vec<String> {
        let rows = self.session().query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        let text = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
        rows.into_iter().map(|row| row.into_iter().map(text).collect::<Vec<_>>().join("|")).collect()
    }

    /// A configuration with a spool in a directory and HTTP and TCP intakes; `more` is appended.
    pub fn config(&self, directory: &Directory, layout: &str, more: &str) -> config::Config {
        let database = match self.name {
            "sqlite" => format!("[database]\npath = \"{}\"\n", self.settings.path.clone().unwrap()),
            name => format!("[database]\nname = \"{name}\"\n"),
        };
        let text = format!(
            "{database}[layout]\n{layout}\n[spool]\npath = \"{}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n\
             [intake.tcp]\nlisten = \"127.0.0.1:0\"\n{more}",
            directory.path("spool")
        );
        config::read(&text, "test.toml").unwrap_or_else(|errors| panic!("{errors}"))
    }

    pub fn start(&self, directory: &Directory, layout: &str, more: &str) -> Started {
        Started::new(&self.config(directory, layout, more), self.open())
    }
}

/// A recorder with its addresses.
pub struct Started {
    pub recorder: Recorder,
    pub http: SocketAddr,
    pub tcp: SocketAddr,
}

impl Started {
    pub fn new(config: &config::Config, database: Arc<dyn Database>) -> Self {
        let recorder = Recorder::start(config, database, None).unwrap();
        let address = |name: &str| recorder.addresses().into_iter().find(|(known, _)| *known == name).unwrap().1;
        let (http, tcp) = (address("http"), address("tcp"));
        Started { recorder, http, tcp }
    }

    /// Waits until nothing is spooled.
    pub fn wait_until_committed(&self) {
        let begun = Instant::now();
        while self.recorder.counts().spooled > 0 {
            assert!(begun.elapsed() < Duration::from_secs(240), "{:?}", self.recorder.counts());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Stops it; everything must be conserved.
    pub fn stop(self) -> End {
        let end = self.recorder.stop();
        let counts = end.counts;
        let stored = counts.committed + counts.retired;
        assert_eq!(counts.acknowledged, stored + counts.spooled + counts.quarantined, "{counts:?}");
        end
    }
}
