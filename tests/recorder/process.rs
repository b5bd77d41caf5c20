//! A recorder as a process of its own, which can be killed, stopped and looked at.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use super::harness::{Directory, Target, send};

/// The most that a recorder may ever have in memory.
const MEMORY_BYTES_MAX: u64 = 200_000_000;

/// A recorder as a process of its own.
pub struct Process {
    pub child: Child,
    pub http: SocketAddr,
    said: Arc<Mutex<String>>,
}

impl Process {
    /// Starts it; `limits` is what a shell does before it.
    pub fn start(config: &str, limits: &str) -> Self {
        Self::start_until(config, limits, "http")
    }

    /// Starts it; what answers `/metrics` has this name.
    pub fn start_until(config: &str, limits: &str, name: &str) -> Self {
        let listens = format!("intake=\"{name}\" address=\"");
        let mut child = Self::spawn(config, limits);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut seen = String::new();
        let http = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it ended: {seen}")).unwrap();
            if let Some(rest) = line.split(&*listens).nth(1) {
                break rest.trim_end_matches('"').parse().unwrap();
            }
            seen += &line;
        };
        // What it says is read, so that it never waits for a reader.
        let said = Arc::new(Mutex::new(seen));
        let heard = Arc::clone(&said);
        std::thread::spawn(move || {
            lines.map_while(Result::ok).for_each(|line| heard.lock().unwrap().push_str(&(line + "\n")));
        });
        Process { child, http, said }
    }

    fn spawn(config: &str, limits: &str) -> Child {
        let command = format!("{limits} exec \"$0\" record \"$1\"");
        let mut shell = Command::new("sh");
        shell.args(["-c", &command, env!("CARGO_BIN_EXE_loadline"), config]).stderr(Stdio::piped());
        shell.spawn().unwrap()
    }

    /// Starts one and kills it while it starts.
    pub fn start_and_kill(config: &str, after: std::time::Duration) {
        let mut child = Self::spawn(config, "");
        std::thread::sleep(after);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub fn signal(&self, signal: libc::c_int) {
        // SAFETY: kill takes no pointer; the process is the child that this test has started and not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }

    /// What it has said since it started.
    pub fn said(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// A number of `/metrics`.
    pub fn metric(&self, name: &str) -> f64 {
        let page = send(self.http, "GET", "/metrics", "", b"").body;
        metric(&page, name)
    }

    /// Conservation, as the recorder itself states it; and what it has in memory.
    pub fn assert_conserved(&self) {
        let page = send(self.http, "GET", "/metrics", "", b"").body;
        let [acknowledged, committed, retired, spooled, quarantined] = [
            "acknowledged_rows_total",
            "committed_rows_total",
            "retired_rows_total",
            "spooled_rows",
            "quarantined_rows",
        ]
        .map(|name| metric(&page, &format!("loadline_{name}")));
        assert_eq!(acknowledged, committed + spooled + quarantined + retired, "{page}");
        self.assert_memory_is_bounded();
    }

    fn assert_memory_is_bounded(&self) {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        let peak_bytes: u64 = 1024 * kib.unwrap_or(0_u64);
        assert!(peak_bytes < MEMORY_BYTES_MAX, "{peak_bytes} bytes were in memory");
    }

    pub fn kill(mut self) {
        self.assert_memory_is_bounded();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop; its exit status.
    pub fn stop(mut self) -> Option<i32> {
        self.assert_memory_is_bounded();
        self.signal(libc::SIGTERM);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Process {
    /// One that a failed test leaves would keep whoever reads the tests' output waiting.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn metric(page: &str, name: &str) -> f64 {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("there is no {name} in {page}"))
}

/// Writes a configuration with an HTTP intake; `database` is what stands in `[database]`, `more` is appended.
pub fn config_file(directory: &Directory, database: &str, more: &str) -> String {
    let path = directory.path("recorder.toml");
    let spool = directory.path("disk/spool");
    let text = format!(
        "[database]\n{database}\n[layout]\nname = \"star\"\n[spool]\npath = \"{spool}\"\n[intake.http]\n\
         listen = \"127.0.0.1:0\"\n[schema]\nends_every = \"50ms\"\n{more}"
    );
    std::fs::create_dir_all(directory.path("disk")).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

/// `[database]` of a target.
pub fn database_of(target: &Target) -> String {
    let Some(endpoint) = &target.endpoint else {
        return format!("path = \"{}\"", target.settings.path.clone().unwrap());
    };
    let (host, port) = endpoint.tcp.clone().unwrap();
    let scheme = if target.name == "postgres" { "postgres" } else { "mysql" };
    let (user, password, database) = (&endpoint.user, &endpoint.password, &endpoint.database);
    format!("name = \"{}\"\nurl = \"{scheme}://{user}:{password}@{host}:{port}/{database}\"", target.name)
}
