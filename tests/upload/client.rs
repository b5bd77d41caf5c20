//! What the tests of uploads share: a station with its inbox, and an FTP client that can be cut anywhere.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline::recorder::config::{self, Config};
use loadline::recorder::inbox::{Bounds, Faults, Inbox};
use loadline::recorder::upload::{Hashed, Station};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::Directory;

/// Certificate and key for localhost.
pub const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorder/tls");
pub const CAMERA: &str = "GDA-017";
pub const PASSWORD: &str = "a secret";

/// A station with an inbox in a directory of its own.
pub struct Try {
    pub directory: Directory,
    pub inbox: Inbox,
    pub config: Config,
    station: Option<Station>,
}

/// A configuration with two cameras; `blocks`, `ftp` and `put` are added to their tables.
pub fn text(directory: &Directory, inbox: &str, blocks: &str, ftp: &str, put: &str) -> String {
    let users = directory.path("cameras");
    // Made once: hashing is slow by intention.
    if !std::path::Path::new(&users).exists() {
        let line = |camera: &str| format!("{camera} {}\n", Hashed::new(PASSWORD).unwrap().text());
        std::fs::write(&users, line(CAMERA) + &line("GDA-018")).unwrap();
    }
    format!(
        "[inbox]\npath = \"{}\"\n{inbox}\n[intake.blocks]\nusers = \"{users}\"\n{blocks}\n[intake.ftp]\n\
         listen = \"127.0.0.1:0\"\n{ftp}\n[intake.put]\nlisten = \"127.0.0.1:0\"\n{put}\n",
        directory.path("inbox")
    )
}

/// Lines for `[intake.ftp]` that ask for TLS.
pub fn tls() -> String {
    format!("implicit = \"127.0.0.1:0\"\ncertificate = \"{TLS}/certificate.pem\"\nkey = \"{TLS}/key.pem\"")
}

impl Try {
    pub fn new(blocks: &str, ftp: &str) -> Self {
        Self::with("", blocks, ftp, "", Faults::default())
    }

    pub fn with(inbox: &str, blocks: &str, ftp: &str, put: &str, faults: Faults) -> Self {
        let directory = Directory::new();
        let text = text(&directory, inbox, blocks, ftp, put);
        let config = config::read(&text, "test.toml").unwrap_or_else(|errors| panic!("{errors}"));
        let bounds: Bounds = config.inbox.bounds;
        let inbox = Inbox::open_with(&config.inbox.path, bounds, faults).unwrap();
        let station = Some(Station::start_on(&config, &inbox).unwrap_or_else(|reason| panic!("{reason}")));
        Try { directory, inbox, config, station }
    }

    pub fn station(&self) -> &Station {
        self.station.as_ref().unwrap()
    }

    pub fn address(&self, name: &str) -> SocketAddr {
        self.station().addresses().into_iter().find(|(known, _)| *known == name).unwrap().1
    }

    /// A client that has said nothing yet.
    pub fn connect(&self) -> Ftp {
        Ftp::connect(self.address("ftp"))
    }

    /// A client that has logged in.
    pub fn log_in(&self) -> Ftp {
        let mut ftp = self.connect();
        ftp.log_in(CAMERA, PASSWORD);
        ftp
    }

    /// Names and contents of what the camera has in the inbox, acknowledged or not.
    pub fn received(&self, camera: &str) -> Vec<(String, Vec<u8>)> {
        files(&self.inbox.path().join("cameras").join(camera).join("received"))
    }

    pub fn names(&self, camera: &str) -> Vec<String> {
        self.received(camera).into_iter().map(|(name, _)| name).collect()
    }

    /// Waits until nothing half remains.
    pub fn assert_nothing_half(&self) {
        let path = self.inbox.path().join("cameras").join(CAMERA).join("incoming");
        wait_until("nothing is half", || files(&path).is_empty());
    }

    pub fn metric(&self, line: &str) -> u64 {
        let page = (self.station().metrics())();
        let value = page.lines().find_map(|found| found.strip_prefix(line)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {line} in {page}")).parse().unwrap()
    }

    /// Stops the station and starts another one on the same inbox.
    pub fn restart(&mut self) {
        self.station.take().unwrap().stop();
        self.station = Some(Station::start_on(&self.config, &self.inbox).unwrap());
    }
}

impl Drop for Try {
    fn drop(&mut self) {
        if let Some(station) = self.station.take() {
            station.stop();
        }
    }
}

pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn files(path: &PathBuf) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(path).into_iter().flatten().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        entries.filter_map(|path| Some((path.file_name()?.to_str()?.to_owned(), std::fs::read(&path).ok()?))).collect();
    files.sort();
    files
}

/// Bytes that differ from block to block and from place to place.
pub fn block(number: u64, bytes: usize) -> Vec<u8> {
    (0..bytes as u64).map(|place| (place.wrapping_mul(number * 2 + 3) >> 3) as u8 ^ number as u8).collect()
}

pub trait Stream: Read + Write + Send {}
impl<T: Read + Write + Send> Stream for T {}

/// A client that does nothing by itself.
pub struct Ftp {
    control: BufReader<Box<dyn Stream>>,
    /// The control connection itself, to cut it.
    pub socket: TcpStream,
    address: SocketAddr,
}

pub fn socket(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    socket
}

/// The client's end of TLS, with the tests' certificate as its root.
pub fn secure(socket: TcpStream) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(format!("{TLS}/certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_root_certificates(roots).with_no_client_auth());
    StreamOwned::new(ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap(), socket)
}

impl Ftp {
    pub fn connect(address: SocketAddr) -> Self {
        let mut ftp = Self::silent(address);
        assert!(ftp.reply().starts_with("220 "));
        ftp
    }

    /// A client that does not even wait for the greeting.
    pub fn silent(address: SocketAddr) -> Self {
        let socket = socket(address);
        Ftp { control: BufReader::new(Box::new(socket.try_clone().unwrap())), socket, address }
    }

    /// One reply; empty when the connection has ended.
    pub fn reply(&mut self) -> String {
        let mut all = String::new();
        loop {
            let mut line = String::new();
            if self.control.read_line(&mut line).unwrap_or(0) == 0 {
                return all;
            }
            all += &line;
            if line.as_bytes().get(3) == Some(&b' ') {
                return all;
            }
        }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        let stream = self.control.get_mut();
        let _ = stream.write_all(bytes).and_then(|()| stream.flush());
    }

    pub fn say(&mut self, command: &str) -> String {
        self.send(format!("{command}\r\n").as_bytes());
        self.reply()
    }

    #[track_caller]
    pub fn expect(&mut self, command: &str, code: &str) -> String {
        let reply = self.say(command);
        assert!(reply.starts_with(code), "{command}: {reply:?}, expected {code}");
        reply
    }

    #[track_caller]
    pub fn log_in(&mut self, camera: &str, password: &str) {
        self.expect(&format!("USER {camera}"), "331 ");
        self.expect(&format!("PASS {password}"), "230 ");
        self.expect("TYPE I", "200 ");
    }

    /// Goes on with TLS.
    pub fn secured(mut self) -> Self {
        self.expect("AUTH TLS", "234 ");
        let secured = secure(self.socket.try_clone().unwrap());
        Ftp { control: BufReader::new(Box::new(secured)), ..self }
    }

    /// The port that a passive reply tells.
    pub fn passive(&mut self) -> SocketAddr {
        let reply = self.expect("EPSV", "229 ");
        let port = reply.split('|').nth(3).unwrap().parse().unwrap();
        SocketAddr::new(self.address.ip(), port)
    }

    /// A data connection for an upload that was let in.
    #[track_caller]
    pub fn begin(&mut self, name: &str) -> TcpStream {
        let port = self.passive();
        let data = socket(port);
        self.expect(&format!("STOR {name}"), "150 ");
        data
    }

    /// Uploads a block; the last reply.
    pub fn store(&mut self, name: &str, bytes: &[u8]) -> String {
        let port = self.passive();
        let mut data = socket(port);
        let reply = self.say(&format!("STOR {name}"));
        if !reply.starts_with("150 ") {
            return reply;
        }
        // A refusal may come before all is sent.
        let _ = data.write_all(bytes);
        drop(data);
        self.reply()
    }

    /// The same over TLS.
    pub fn store_secured(&mut self, name: &str, bytes: &[u8]) -> String {
        let data = self.begin(name);
        let mut data = secure(data);
        data.write_all(bytes).unwrap();
        data.conn.send_close_notify();
        data.flush().unwrap();
        drop(data);
        self.reply()
    }
}
