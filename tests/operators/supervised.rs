//! What a supervisor is told, as systemd listens to it.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

use crate::harness::{Directory, Target, send};
use crate::process::{Process, config_file, database_of};

/// Where a recorder tells how it goes.
struct Listener {
    socket: UnixDatagram,
    /// What stands in NOTIFY_SOCKET.
    name: String,
}

impl Listener {
    fn on_path(directory: &Directory) -> Self {
        let name = directory.path("notify");
        Listener { socket: UnixDatagram::bind(&name).unwrap(), name }
    }

    fn abstract_of(directory: &Directory) -> Self {
        let name = directory.path("notify").replace('/', "-");
        let address = SocketAddr::from_abstract_name(name.as_bytes()).unwrap();
        Listener { socket: UnixDatagram::bind_addr(&address).unwrap(), name: format!("@{name}") }
    }

    /// What a shell does before the recorder; the watchdog wants to hear of it within this time.
    fn environment(&self, watchdog: Duration) -> String {
        let us = watchdog.as_micros();
        format!("export NOTIFY_SOCKET='{}' WATCHDOG_USEC={us} WATCHDOG_PID=$$;", self.name)
    }

    /// The next message within this time.
    fn next(&self, within: Duration) -> Option<String> {
        let mut bytes = [0; 4_096];
        self.socket.set_read_timeout(Some(within)).unwrap();
        let length = self.socket.recv(&mut bytes).ok()?;
        Some(String::from_utf8(bytes[..length].to_vec()).unwrap())
    }

    /// Waits for a message that has a line which begins so; the message.
    fn wait_for(&self, begins: &str) -> String {
        let begun = Instant::now();
        loop {
            let left = Duration::from_secs(240).saturating_sub(begun.elapsed()).max(Duration::from_millis(1));
            let message = self.next(left).unwrap_or_else(|| panic!("{begins} did not come"));
            if message.lines().any(|line| line.starts_with(begins)) {
                return message;
            }
        }
    }

    /// Waits until no sign of life has come for this long.
    fn wait_for_silence(&self, of: Duration) {
        let (begun, mut last) = (Instant::now(), Instant::now());
        while last.elapsed() < of {
            assert!(begun.elapsed() < Duration::from_secs(240), "signs of life go on");
            let message = self.next(Duration::from_millis(50));
            if message.is_some_and(|message| message.contains("WATCHDOG=1")) {
                last = Instant::now();
            }
        }
    }

    /// Waits for signs of life over this time, so many at least.
    fn wait_for_signs(&self, over: Duration, at_least: u32) {
        while self.next(Duration::from_micros(1)).is_some() {}
        let (begun, mut signs) = (Instant::now(), 0);
        while begun.elapsed() < over || signs < at_least {
            self.wait_for("WATCHDOG=1");
            signs += 1;
        }
    }
}

fn value(message: &str, name: &str) -> u64 {
    let value = message.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('=')?.parse().ok());
    value.unwrap_or_else(|| panic!("there is no {name} in {message}"))
}

fn check_what_is_told(listener: &Listener, directory: &Directory) {
    let target = Target::sqlite(directory);
    let config = config_file(directory, &database_of(&target), "[writer]\ndrain = \"7s\"\n");
    let process = Process::start(&config, &listener.environment(Duration::from_secs(4)));
    let ready = listener.wait_for("READY=1");
    assert!(ready.contains("\nSTATUS=taking in; 0 records wait, 0 are in quarantine"), "{ready}");
    assert_eq!(send(process.http, "POST", "/write", "", b"m f=1\n").status, 204, "it takes data in");
    listener.wait_for("WATCHDOG=1");
    let status = {
        send(process.http, "POST", "/write", "", b"m f=\"x\"\n");
        listener.wait_for("STATUS=taking in; 0 records wait, 1")
    };
    assert_eq!(status.lines().count(), 1, "{status}");
    process.signal(libc::SIGHUP);
    let reloading = listener.wait_for("RELOADING=1");
    let us = value(&reloading, "MONOTONIC_USEC");
    assert!(us > 0, "{reloading}");
    listener.wait_for("READY=1");
    assert_eq!(process.stop(), Some(0), "a record in quarantine is no failure of the run");
    let stopping = listener.wait_for("STOPPING=1");
    assert_eq!(value(&stopping, "EXTEND_TIMEOUT_USEC"), 67_000_000, "writer.drain and a minute");
    assert!(stopping.contains("\nSTATUS=stopping: asked to"), "{stopping}");
}

#[test]
fn whoever_started_a_recorder_is_told_how_it_goes() {
    let directory = Directory::new();
    check_what_is_told(&Listener::on_path(&directory), &directory);
    let directory = Directory::new();
    check_what_is_told(&Listener::abstract_of(&directory), &directory);
}

#[test]
fn a_clean_stop_is_status_0_with_and_without_a_supervisor() {
    let directory = Directory::new();
    let (listener, target) = (Listener::on_path(&directory), Target::sqlite(&directory));
    let config = config_file(&directory, &database_of(&target), "");
    for environment in [listener.environment(Duration::from_secs(10)), String::new()] {
        let process = Process::start(&config, &environment);
        assert_eq!(send(process.http, "POST", "/write", "", b"m f=1\n").status, 204);
        assert_eq!(process.stop(), Some(0));
    }
    let named = |environment: &str| {
        let program = env!("CARGO_BIN_EXE_loadline");
        let (name, value) = environment.split_once('=').unwrap();
        let mut command = std::process::Command::new(program);
        let ended = command.args(["record", &config]).env("NOTIFY_SOCKET", &listener.name).env(name, value).output();
        let ended = ended.unwrap();
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let (status, said) = named("NOTIFY_SOCKET=notify");
    assert!(status == Some(2) && said.contains("NOTIFY_SOCKET is \"notify\""), "{said}");
    let (status, said) = named("WATCHDOG_USEC=soon");
    assert!(status == Some(2) && said.contains("WATCHDOG_USEC is \"soon\""), "{said}");
}

/// Threads of a process by name.
fn threads(pid: u32, name: &str) -> Vec<libc::pid_t> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|entry| entry.unwrap().path());
    let has_name = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|known| known.trim_end() == name)
    };
    tasks.filter(has_name).map(|path| path.file_name().unwrap().to_str().unwrap().parse().unwrap()).collect()
}

fn trace(request: libc::c_uint, thread: libc::pid_t) {
    // SAFETY: these requests take no pointer but null; the thread belongs to a child of this test.
    let outcome = unsafe { libc::ptrace(request, thread, std::ptr::null_mut::<u8>(), std::ptr::null_mut::<u8>()) };
    assert_eq!(outcome, 0, "{}", std::io::Error::last_os_error());
}

/// Stops threads of the recorder and no others, as a lock that is never given back would.
fn freeze(threads: &[libc::pid_t]) {
    for thread in threads {
        trace(libc::PTRACE_SEIZE, *thread);
        trace(libc::PTRACE_INTERRUPT, *thread);
        // SAFETY: a null pointer is allowed for the status, and the thread is traced by this one.
        let stopped = unsafe { libc::waitpid(*thread, std::ptr::null_mut(), libc::__WALL) };
        assert_eq!(stopped, *thread, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn a_part_that_is_stuck_ends_the_signs_of_life_and_a_restart_of_it_brings_them_back() {
    const WATCHDOG: Duration = Duration::from_secs(2);
    let directory = Directory::new();
    let (listener, target) = (Listener::on_path(&directory), Target::server("mariadb"));
    let config = config_file(&directory, &database_of(&target), "");
    let process = Process::start(&config, &listener.environment(WATCHDOG));
    listener.wait_for("READY=1");
    assert_eq!(send(process.http, "POST", "/write", "", b"m f=1\n").status, 204);
    for name in ["writer", "spool", "intake"] {
        listener.wait_for_signs(2 * WATCHDOG, 4);
        let threads = threads(process.child.id(), name);
        assert!(!threads.is_empty(), "{name}");
        freeze(&threads);
        listener.wait_for_silence(3 * WATCHDOG);
        threads.iter().for_each(|thread| trace(libc::PTRACE_DETACH, *thread));
        listener.wait_for("WATCHDOG=1");
    }
    let said = process.said();
    for part in ["part=\"writer ", "part=\"the thread of the spool ", "part=\"all threads of the intakes "] {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.contains("all parts move again"), "{said}");
    assert_eq!(process.stop(), Some(0));
}

#[test]
fn a_database_that_is_silent_or_away_is_no_reason_to_be_restarted() {
    const WATCHDOG: Duration = Duration::from_secs(2);
    let directory = Directory::new();
    let (listener, target) = (Listener::on_path(&directory), Target::server("mariadb"));
    let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"0s\"\n");
    let process = Process::start(&config, &listener.environment(WATCHDOG));
    listener.wait_for("READY=1");
    let write = || assert_eq!(send(process.http, "POST", "/write", "", b"m f=1\n").status, 204);
    write();
    let server = target.pids()[0] as libc::pid_t;
    // SAFETY: kill takes no pointer; the process is the server that this test has started and not waited for.
    let signal = |signal| unsafe { libc::kill(server, signal) };
    assert_eq!(signal(libc::SIGSTOP), 0);
    write();
    // The writer waits for an answer for much longer than the watchdog would wait for the writer.
    listener.wait_for_signs(4 * WATCHDOG, 16);
    assert_eq!(signal(libc::SIGCONT), 0);
    crate::wait_until("it is stored", || process.metric("loadline_spooled_rows") == 0.0);
    drop(target);
    write();
    crate::wait_until("it is tried", || process.metric("loadline_database_retries_total") >= 3.0);
    listener.wait_for_signs(4 * WATCHDOG, 16);
    assert!(!process.said().contains("does not move"), "{}", process.said());
    assert_eq!(process.stop(), Some(0), "what is not written waits in the spool");
}
