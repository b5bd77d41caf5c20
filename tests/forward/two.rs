//! Two recorders and the bucket between them: as parts of the test's own process, or as processes that can be killed.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use async_nats::jetstream;
use async_nats::jetstream::stream::Stream;
use loadline::recorder::config::{self, Config};
use loadline::recorder::forward::Forwarding;
use loadline::recorder::inbox::{Inbox, Receiving};
use loadline::recorder::upload::Station;

use crate::centre::{Camera, Centre};
use crate::nats::Nats;

pub const BUCKET: &str = "blocks";

/// A data centre with a camera that is let in, and a NATS server with its address.
pub fn set_up() -> (Centre, Camera, Nats, String) {
    let centre = Centre::new();
    let camera = centre.camera(1);
    let nats = Nats::start(centre.path("nats"));
    let url = nats.url();
    (centre, camera, nats, url)
}

/// `[forward]` or `[intake.store]` below their heads.
pub fn bucket(url: &str) -> String {
    format!("url = \"{url}\"\nbucket = \"{BUCKET}\"\n")
}

fn read(text: &str) -> Config {
    config::read(text, "test.toml").unwrap_or_else(|errors| panic!("{errors}"))
}

/// The end that takes in and forwards, without a way to upload: the test puts blocks into its inbox.
pub struct Sender {
    pub inbox: Inbox,
    pub receiving: Receiving,
    config: Config,
    forwarding: Option<Forwarding>,
}

impl Sender {
    /// Forwards; `more` stands below `[forward]`.
    pub fn start(directory: &Path, url: &str, more: &str) -> Self {
        let mut sender = Self::stopped(directory, url, more);
        sender.forward();
        sender
    }

    /// Does not forward yet.
    pub fn stopped(directory: &Path, url: &str, more: &str) -> Self {
        let path = directory.join("first").display().to_string();
        let config = read(&format!("[inbox]\npath = \"{path}\"\n[forward]\n{}{more}", bucket(url)));
        let inbox = Inbox::open(&config.inbox.path, config.inbox.bounds).unwrap();
        let receiving = Receiving::start(&inbox).unwrap();
        Sender { inbox, receiving, config, forwarding: None }
    }

    pub fn forward(&mut self) {
        self.forwarding = Some(Forwarding::start(&self.config, self.config.forward.as_ref().unwrap()).unwrap());
    }

    pub fn metric(&self, name: &str) -> f64 {
        metric(&(self.forwarding.as_ref().unwrap().metrics())(), name)
    }

    /// Stops forwarding; how many blocks were forwarded.
    pub fn stop(&mut self) -> u64 {
        self.forwarding.take().map_or(0, Forwarding::stop)
    }

    pub fn waiting(&self) -> u64 {
        self.inbox.counts().unwrap().waiting
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The end that fetches, into an inbox of its own.
pub struct Receiver {
    pub inbox: Inbox,
    pub station: Station,
}

impl Receiver {
    /// Fetches into a folder; `more` stands below `[inbox]`.
    pub fn start(folder: PathBuf, url: &str, more: &str) -> Self {
        Self::start_with(folder, url, "", more)
    }

    /// As above; `of_bucket` stands below `[intake.store]`, `more` below `[inbox]`.
    pub fn start_with(folder: PathBuf, url: &str, of_bucket: &str, more: &str) -> Self {
        let (path, bucket) = (folder.display(), bucket(url));
        let text = format!("[intake.store]\n{bucket}{of_bucket}[inbox]\npath = \"{path}\"\n{more}");
        let config = read(&text);
        let station = Station::start(&config).unwrap();
        Receiver { inbox: Inbox::open(&folder, config.inbox.bounds).unwrap(), station }
    }

    pub fn metric(&self, name: &str) -> f64 {
        metric(&(self.station.metrics())(), name)
    }
}

pub fn metric(page: &str, name: &str) -> f64 {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("there is no {name} in {page}"))
}

/// The whole program.
pub struct Program {
    pub child: Child,
    pub addresses: BTreeMap<String, SocketAddr>,
    said: Arc<Mutex<String>>,
}

impl Program {
    /// Starts it, and waits until it listens at as many places.
    pub fn start(config: &str, places: usize) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let mut child = command.args(["record", config]).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (mut addresses, mut seen) = (BTreeMap::new(), String::new());
        while addresses.len() < places {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {seen}")).unwrap();
            let told = line.split_once("intake=\"").and_then(|(_, rest)| rest.split_once("\" address=\""));
            if let Some((name, address)) = told {
                addresses.insert(name.to_owned(), address.trim_end_matches('"').parse().unwrap());
            }
            seen += &(line + "\n");
        }
        let said = Arc::new(Mutex::new(seen));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push_str(&(line + "\n")));
        });
        Program { child, addresses, said }
    }

    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop; its exit status.
    pub fn stop(mut self) -> Option<i32> {
        // SAFETY: kill takes no pointer; the process is the child that this test has started and not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        self.child.wait().unwrap().code()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A configuration of the machine that takes in, and of the one that stores; both with addresses for uploads and metrics.
pub fn texts(centre: &Centre, first: &str, url: &str) -> [String; 2] {
    let put = "[intake.put]\nlisten = \"127.0.0.1:0\"\n";
    let images = format!("images = \"{}\"", centre.path("images"));
    let sender = format!(
        "[inbox]\npath = \"{}\"\n{put}[intake.ftp]\nlisten = \"127.0.0.1:0\"\n[forward]\n{}",
        centre.path(first),
        bucket(url)
    );
    [sender, centre.text("star", &images, &format!("{put}[intake.store]\n{}", bucket(url)))]
}

/// Does something with the bucket's stream, as any client of the server may.
pub fn with_stream<T>(url: &str, work: impl AsyncFnOnce(&jetstream::Context, &Stream) -> T) -> T {
    with_context(url, async |context| {
        let stream = context.get_stream(format!("OBJ_{BUCKET}")).await.unwrap();
        work(context, &stream).await
    })
}

/// Does something with the server, as any client of it may.
pub fn with_context<T>(url: &str, work: impl AsyncFnOnce(&jetstream::Context) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let context = jetstream::new(async_nats::connect(url).await.unwrap());
        work(&context).await
    })
}

/// Messages in the bucket.
pub fn left_in_bucket(url: &str) -> u64 {
    with_stream(url, async |_, stream| stream.cached_info().state.messages)
}
