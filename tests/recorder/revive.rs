//! A private database server that is killed and started again with the files that it left.

use std::net::TcpStream;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use loadline::database::Endpoint;

/// How a server was started, and the process that it is now.
pub struct Revived {
    program: PathBuf,
    arguments: Vec<std::ffi::OsString>,
    place: PathBuf,
    user: (u32, u32),
    endpoint: Endpoint,
    child: Option<Child>,
}

impl Revived {
    /// Notes how a running server was started.
    pub fn of(pid: u32, endpoint: &Endpoint) -> Self {
        let process = PathBuf::from(format!("/proc/{pid}"));
        let line = std::fs::read(process.join("cmdline")).unwrap();
        let arguments = line.split(|byte| *byte == 0).skip(1).map(|word| OsStringExt::from_vec(word.to_vec()));
        let mut arguments: Vec<std::ffi::OsString> = arguments.collect();
        arguments.pop();
        let status = std::fs::read_to_string(process.join("status")).unwrap();
        let id = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|ids| ids.split_whitespace().next()?.parse().ok()).unwrap()
        };
        Revived {
            program: std::fs::read_link(process.join("exe")).unwrap(),
            arguments,
            place: std::fs::read_link(process.join("cwd")).unwrap(),
            user: (id("Uid:"), id("Gid:")),
            endpoint: endpoint.clone(),
            child: None,
        }
    }

    /// Kills a server, which this test has started with these processes, or which it has revived, and starts another in its place.
    pub fn kill_and_start(&mut self, processes: &[u32]) {
        match self.child.take() {
            Some(child) => end(child),
            None => {
                // SAFETY: kill takes no pointer; the group is that of the server that this test has started, and still holds unreaped.
                unsafe { libc::kill(-(processes[0] as libc::pid_t), libc::SIGKILL) };
                processes.iter().for_each(|pid| wait_until_ended(*pid));
            }
        }
        // The one that was killed has not been waited for, so that PostgreSQL would take it for alive.
        let lock_of = |argument: &std::ffi::OsString| PathBuf::from(argument).join("postmaster.pid");
        self.arguments.iter().for_each(|argument| drop(std::fs::remove_file(lock_of(argument))));
        let of_socket = self.endpoint.unix.as_ref().map(|socket| format!("{}.lock", socket.display()));
        of_socket.into_iter().for_each(|lock| drop(std::fs::remove_file(lock)));
        let begun = Instant::now();
        loop {
            let mut command = Command::new(&self.program);
            command.args(&self.arguments).current_dir(&self.place).env("LC_ALL", "C").env("TZ", "UTC");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = command.uid(self.user.0).gid(self.user.1).process_group(0).spawn().unwrap();
            // What is left of the one that was killed may keep the files for a moment.
            while child.try_wait().unwrap().is_none() {
                if TcpStream::connect(self.endpoint.tcp.clone().unwrap()).is_ok() {
                    self.child = Some(child);
                    return;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            assert!(begun.elapsed() < Duration::from_secs(240), "it does not start again");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Revived {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            end(child);
        }
    }
}

/// Ends a server with all its processes.
fn end(mut child: Child) {
    // SAFETY: kill takes no pointer; the group is that of a child that was started as its leader and not waited for.
    unsafe { libc::kill(-(child.id() as libc::pid_t), libc::SIGKILL) };
    let _ = child.wait();
    std::thread::sleep(Duration::from_millis(50));
}

/// Waits until a process is gone, or only has to be waited for by its parent.
fn wait_until_ended(pid: u32) {
    let begun = Instant::now();
    let state = || std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    while state().rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z')) {
        assert!(begun.elapsed() < Duration::from_secs(240));
        std::thread::sleep(Duration::from_millis(5));
    }
}
