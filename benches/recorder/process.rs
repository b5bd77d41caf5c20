//! A recorder that runs, and what it says of itself. Main type: [`Recorder`].

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A recorder that runs as a process of its own, as users start it.
pub struct Recorder {
    child: Child,
    /// Where it takes requests in.
    pub http: SocketAddr,
    /// Where it answers questions, if it does.
    pub query: Option<SocketAddr>,
}

/// What it counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Counts {
    pub acknowledged: f64,
    pub committed: f64,
    pub spooled: f64,
    pub quarantined: f64,
}

impl Recorder {
    /// Starts one in front of a database; all its files are in `directory`, and its configuration ends with `more`. The program is the one built here, or that of `LOADLINE`, to
    /// compare with another one.
    pub fn start_with(directory: &Path, database: &str, more: &str) -> Self {
        let config = directory.join("recorder.toml");
        let spool = directory.join("spool").display().to_string();
        let writers = std::env::var("WRITERS").unwrap_or_else(|_| "1".to_owned());
        let text = format!(
            "[database]\n{database}\n[spool]\npath = \"{spool}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[writer]\ndrain = \"60s\"\ncount = {writers}\n{more}"
        );
        std::fs::write(&config, text).unwrap();
        let program = std::env::var("LOADLINE").unwrap_or_else(|_| env!("CARGO_BIN_EXE_loadline").to_owned());
        let mut child = Command::new(program).arg("record").arg(&config).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut address = || loop {
            let line = lines.next().expect("the recorder starts").unwrap();
            if let Some(rest) = line.split("address=\"").nth(1) {
                break rest.trim_end_matches('"').parse().unwrap();
            }
        };
        let http = address();
        let query = more.contains("[query]").then(address);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("  {line}")));
        Recorder { child, http, query }
    }

    fn page(&self) -> String {
        let mut stream = TcpStream::connect(self.http).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut page = String::new();
        stream.read_to_string(&mut page).unwrap();
        page
    }

    /// What it counts now.
    pub fn counts(&self) -> Counts {
        let page = self.page();
        let metric = |name: &str| {
            page.lines().find_map(|line| line.strip_prefix(&format!("loadline_{name} "))).unwrap().parse().unwrap()
        };
        Counts {
            acknowledged: metric("acknowledged_rows_total"),
            committed: metric("committed_rows_total"),
            spooled: metric("spooled_rows"),
            quarantined: metric("quarantined_rows"),
        }
    }

    /// Waits until nothing waits for the database; how long that took, in seconds. Asks rarely: the page looks into the spool.
    pub fn drained(&self) -> f64 {
        let begun = Instant::now();
        while self.counts().spooled > 0.0 {
            std::thread::sleep(Duration::from_millis(100));
        }
        begun.elapsed().as_secs_f64()
    }

    /// The most memory that it ever had resident.
    pub fn resident_mib(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
    }

    /// CPU time that it has used so far, in seconds.
    pub fn cpu_s(&self) -> f64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
        // SAFETY: sysconf takes no pointer.
        let ticks_per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        fields[11..13].iter().map(|ticks| ticks.parse::<f64>().unwrap()).sum::<f64>() / ticks_per_s
    }

    /// Halts it, or lets it go on.
    pub fn halt(&self, is_halted: bool) {
        let signal = if is_halted { libc::SIGSTOP } else { libc::SIGCONT };
        // SAFETY: kill takes no pointer; the process is the child that was started here and not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, signal) };
    }

    pub fn stop(mut self) {
        // SAFETY: kill takes no pointer; the process is the child that was started here and not waited for.
        unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Recorder {
    /// A benchmark that fails leaves no recorder behind.
    fn drop(&mut self) {
        // Both fail if the recorder has ended in order.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
