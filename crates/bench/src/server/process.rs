//! Processes: their identity, their descendants, and how they are started and ended.
//!
//! Main type: [`ProcessIdentity`]. Invariant: a process is signalled only while its identity (pid and start time) is
//! confirmed, or while it is an unreaped child, so that a pid that the kernel has reused is never signalled.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::cpus::{self, CpuList};
use super::user::User;
use crate::database::Namespace;

const POLL_EVERY: Duration = Duration::from_millis(10);

/// A process, distinguished from a later one with the same pid by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessIdentity {
    pub pid: u32,
    /// Start time in clock ticks after boot.
    pub start_ticks: u64,
}

impl ProcessIdentity {
    /// Returns the identity of a running process; `None` if no process has this pid.
    pub fn of(pid: u32) -> Option<Self> {
        let stat = read_stat(pid)?;
        (!matches!(stat.state, 'Z' | 'X')).then_some(ProcessIdentity { pid, start_ticks: stat.start_ticks })
    }

    /// Returns whether the process is still running.
    pub fn is_running(self) -> bool {
        ProcessIdentity::of(self.pid) == Some(self)
    }

    /// Sends a signal to the process if it is still running.
    pub fn signal(self, signal: i32) {
        if self.is_running() {
            send(self.pid as i32, signal);
        }
    }
}

/// The main process of a server; it is replaced when the server is started again.
#[derive(Debug, Clone)]
pub(super) struct MainProcess(Arc<Mutex<Option<ProcessIdentity>>>);

impl MainProcess {
    /// Creates the main process from a pid.
    pub(super) fn of(pid: u32) -> Self {
        MainProcess(Arc::new(Mutex::new(ProcessIdentity::of(pid))))
    }

    /// Returns the main process if it is running.
    pub(super) fn running(&self) -> Option<ProcessIdentity> {
        let identity = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        identity.filter(|identity| identity.is_running())
    }

    /// Replaces the main process by the process with this pid.
    pub(super) fn set(&self, pid: u32) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ProcessIdentity::of(pid);
    }
}

/// The fields of `/proc/PID/stat` that are needed here.
#[derive(Debug, PartialEq)]
struct Stat {
    state: char,
    parent: u32,
    start_ticks: u64,
}

fn read_stat(pid: u32) -> Option<Stat> {
    let bytes = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse_stat(&String::from_utf8_lossy(&bytes))
}

/// Parses `/proc/PID/stat`. The name, in parentheses, may contain anything, parentheses included; after the last one come numbers.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let start_ticks = fields.nth(17)?.parse().ok()?;
    Some(Stat { state, parent, start_ticks })
}

/// Appends the pid of a process, if it exists, and those of all its descendants; parents come before their children.
pub(super) fn append_tree(root: u32, pids: &mut Vec<u32>) {
    if read_stat(root).is_none() {
        return;
    }
    let first = pids.len();
    pids.push(root);
    let mut parents: Option<Vec<(u32, u32)>> = None;
    let mut next = first;
    while next < pids.len() {
        let pid = pids[next];
        next += 1;
        // The kernel lists the children of a thread, and servers fork from their main thread. On kernels built without
        // that list, every process of the machine is examined.
        match std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")) {
            Ok(children) => {
                pids.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()))
            }
            Err(_) => {
                let all = parents.get_or_insert_with(all_parents);
                pids.extend(all.iter().filter(|(_, parent)| *parent == pid).map(|(child, _)| *child));
            }
        }
    }
}

/// Returns every process of the machine with its parent.
fn all_parents() -> Vec<(u32, u32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| Some((pid, read_stat(pid)?.parent))).collect()
}

/// The conditions under which a process runs.
#[derive(Debug, Clone)]
pub(super) struct Conditions {
    /// The user; `None` is loadline's own user.
    pub user: Option<User>,
    /// The CPUs; `None` is all CPUs on which loadline was allowed to run at first.
    pub cpus: Option<CpuList>,
    /// The signal that the kernel sends the process when loadline dies without having stopped it.
    pub death_signal: i32,
    /// The network namespace; `None` is loadline's own.
    pub namespace: Option<Namespace>,
    /// The process list (`cgroup.procs`) of the control group that limits the process's memory; `None` is loadline's own group.
    pub memory: Option<Arc<File>>,
}

impl Conditions {
    /// Returns the conditions of loadline itself, for a process that gets this signal from the kernel when loadline dies.
    pub fn own(death_signal: i32) -> Self {
        Conditions { user: None, cpus: None, death_signal, namespace: None, memory: None }
    }
}

/// Starts a process in a process group of its own, so that the terminal's Ctrl-C reaches loadline only.
pub(super) fn spawn(mut command: Command, conditions: &Conditions) -> io::Result<Child> {
    if let Some(user) = &conditions.user {
        // The standard library clears the supplementary groups before it changes the user.
        command.gid(user.gid).uid(user.uid);
    }
    command.process_group(0);
    let set = conditions.cpus.as_ref().map(CpuList::to_set);
    let signal = conditions.death_signal as libc::c_ulong;
    let parent = std::process::id() as i32;
    let memory = conditions.memory.clone();
    let prepare = move || {
        if let Some(processes) = &memory {
            // SAFETY: the descriptor is open as long as the file is kept, and the bytes are there; writing is async-signal-safe. "0" stands for the writing process.
            let written = unsafe { libc::write(processes.as_raw_fd(), c"0".as_ptr().cast(), 1) };
            if written != 1 {
                return Err(io::Error::last_os_error());
            }
        }
        if let Some(set) = &set {
            cpus::apply(set)?;
        }
        // SAFETY: these calls have no conditions and are async-signal-safe. The death signal comes after the change of the
        // user, which would clear it; a parent that died before it was set shows as another parent. The load engine makes
        // its threads' timers precise, which a server must not inherit.
        unsafe {
            libc::umask(0o077);
            libc::prctl(libc::PR_SET_TIMERSLACK, 50_000 as libc::c_ulong);
            if libc::prctl(libc::PR_SET_PDEATHSIG, signal) != 0 {
                return Err(io::Error::last_os_error());
            }
            if libc::getppid() != parent {
                return Err(io::Error::from_raw_os_error(libc::ESRCH));
            }
        }
        Ok(())
    };
    // SAFETY: between fork and exec `prepare` makes system calls only; it neither allocates nor takes locks.
    unsafe { command.pre_exec(prepare) };
    spawn_from_keeper(command, conditions.namespace.clone())
}

/// Starts a process from a thread that lives as long as loadline: the kernel takes the end of the *thread* that forked
/// for the death of the parent.
fn spawn_from_keeper(command: Command, namespace: Option<Namespace>) -> io::Result<Child> {
    type Order = (Command, Option<Namespace>, Sender<io::Result<Child>>);
    static KEEPER: OnceLock<Sender<Order>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (sender, orders) = channel::<Order>();
        // If the thread does not start, the channel is closed and every request fails.
        let _ = thread::Builder::new().name("server-keeper".to_owned()).spawn(move || {
            for (mut command, namespace, answer) in orders {
                // A process is born into the network namespace of the thread that forks it.
                let inside = namespace.as_ref().map(Namespace::enter).transpose();
                let _ = answer.send(inside.and_then(|_inside| command.spawn()));
            }
        });
        sender
    });
    let gone = || io::Error::other("the thread that starts processes is gone");
    let (sender, answer) = channel();
    keeper.send((command, namespace, sender)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// Returns whether a child has ended. The child is not reaped, so that its pid is not reused.
pub(super) fn has_ended(child: &Child) -> bool {
    // SAFETY: siginfo_t consists of integers and pointers that are only written by the kernel; zero is valid.
    let mut information: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: the structure may be written to during the call.
    let answer = unsafe { libc::waitid(libc::P_PID, child.id(), &mut information, options) };
    // SAFETY: waitid filled the structure in, and si_pid is 0 when there was nothing to report.
    answer != 0 || unsafe { information.si_pid() } != 0
}

/// Waits until a condition is true, for at most `patience`. Returns whether it became true in time.
pub fn wait_until(patience: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patience;
    loop {
        if is_true() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(POLL_EVERY);
    }
}

/// Ends a child and all its descendants: in order with `signal`, and after `patience` by force. Afterwards the child is
/// reaped, and `child.wait()` returns its status. Returns whether it ended in order.
pub(super) fn end(child: &mut Child, signal: i32, patience: Duration) -> bool {
    let mut family = identities(child.id());
    let pid = child.id() as i32;
    // The child is reaped only in the last line, so that its pid, which is also its group's number, is not reused before.
    send(pid, signal);
    send(pid, libc::SIGCONT);
    let in_order = wait_until(patience, || has_ended(child));
    if !in_order {
        family.extend(identities(child.id()));
    }
    send(-pid, libc::SIGKILL);
    end_by_force(&family, if in_order { Duration::from_secs(2) } else { Duration::ZERO });
    let _ = child.wait();
    in_order
}

/// Kills those of these processes that still run after `grace`, and waits until they are gone.
pub(super) fn end_by_force(family: &[ProcessIdentity], grace: Duration) {
    let gone = || family.iter().all(|process| !process.is_running());
    if !wait_until(grace, gone) {
        family.iter().for_each(|process| process.signal(libc::SIGKILL));
        wait_until(Duration::from_secs(10), gone);
    }
}

/// Returns the identities of a process and its descendants.
pub(super) fn identities(root: u32) -> Vec<ProcessIdentity> {
    let mut pids = Vec::new();
    append_tree(root, &mut pids);
    pids.into_iter().filter_map(ProcessIdentity::of).collect()
}

fn send(pid: i32, signal: i32) {
    // SAFETY: kill has no conditions; callers make sure that the pid is the one meant. A failure means that the process is gone.
    unsafe { libc::kill(pid, signal) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_spaces_and_parentheses_do_not_disturb() {
        let text = "77 (a) R (b c)) S 12 77 77 0 -1 4194560 1 0 0 0 5 6 7 8 20 0 1 0 4711 1 2 3\n";
        assert_eq!(parse_stat(text), Some(Stat { state: 'S', parent: 12, start_ticks: 4711 }));
        assert_eq!(parse_stat(""), None);
        assert_eq!(parse_stat("77 (sh) S 12"), None);
    }

    fn conditions() -> Conditions {
        Conditions::own(libc::SIGKILL)
    }

    #[test]
    fn a_family_is_found_and_ended_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & sleep 1000 & wait"]);
        let mut child = spawn(command, &conditions()).unwrap();
        let complete = wait_until(Duration::from_secs(20), || identities(child.id()).len() == 3);
        assert!(complete, "a shell with two children");
        let family = identities(child.id());
        end(&mut child, libc::SIGTERM, Duration::from_secs(20));
        assert!(family.iter().all(|process| !process.is_running()));
    }

    #[test]
    fn a_process_that_ignores_the_signal_is_ended_by_force() {
        let mut command = Command::new("sh");
        command.args(["-c", "trap '' TERM; echo ready; while true; do sleep 1; done"]);
        command.stdout(std::process::Stdio::piped());
        let mut child = spawn(command, &conditions()).unwrap();
        let mut line = [0; 6];
        io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
        let pid = child.id();
        assert!(!end(&mut child, libc::SIGTERM, Duration::from_millis(50)));
        assert_eq!(ProcessIdentity::of(pid), None);
    }

    #[test]
    fn a_pid_with_another_start_is_somebody_else() {
        let own = ProcessIdentity::of(std::process::id()).unwrap();
        assert!(own.is_running());
        assert!(!ProcessIdentity { start_ticks: own.start_ticks + 1, ..own }.is_running());
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let start = || {
            let mut command = Command::new("sleep");
            command.arg("1000");
            spawn(command, &conditions()).unwrap()
        };
        let mut child = thread::spawn(start).join().unwrap();
        // If the thread were its parent, the process would get its death signal now.
        thread::sleep(Duration::from_millis(100));
        assert!(!has_ended(&child));
        end(&mut child, libc::SIGTERM, Duration::from_secs(20));
    }
}
