//! What the tests of agents share: studies, checks, and agents as processes.

use std::process::{Child, Stdio};

use loadline::histogram::Histogram;
use loadline::measurement::{AgentMeasurement, Measurement};

use crate::program::{self, Scratch};

/// A database whose answers take so long that a client that is late on a busy machine is not late beside them.
pub const SLOW: &str =
    "name = \"simulated\"\nconfig = { service = \"20ms\", distribution = \"constant\", servers = 8 }";
/// One trial of each case.
pub const ONCE: &str = "[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

pub fn study(database: &str, workload: &str, load: &str) -> String {
    format!(
        "name = \"agents\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 200\n[layout]\nname = \"wide\"\n[workload]\n{workload}\n\
         [load]\nwarmup = \"500ms\"\n{load}\n{ONCE}"
    )
}

/// Checks that what the agents saw is what the trial says.
pub fn adds_up(trial: &Measurement, agents: usize) {
    assert_eq!(trial.invalid_because, [], "{:?}", trial.errors);
    assert_eq!(trial.agents.len(), agents);
    let sum = |figure: fn(&AgentMeasurement) -> u64| trial.agents.iter().map(figure).sum::<u64>();
    assert_eq!((sum(|agent| agent.scheduled), sum(|agent| agent.completed)), (trial.scheduled(), trial.completed()));
    assert_eq!(sum(|agent| u64::from(agent.clients)), u64::from(trial.trial.case.settings.load.clients));
    let mut times = Histogram::new();
    trial.agents.iter().for_each(|agent| times.merge(&agent.response_time));
    assert_eq!(times, trial.response_times(), "bucket for bucket");
    assert_eq!(trial.client_count(), trial.trial.case.settings.load.clients);
    assert!(trial.agents.iter().all(|agent| agent.completed > 0), "{:?}", trial.agents);
}

/// The pids of the processes that drive shares for a process.
pub fn shares_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        after.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
    };
    program::processes_with("work\0load").into_iter().filter(is_child).collect()
}

/// Sends a signal to a process that a test has started.
pub fn signal(pid: u32, signal: i32) {
    // SAFETY: kill has no conditions; the process is a child of one of ours.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

/// An agent that waits at a NATS server; it ends with the test.
pub struct Agent(pub Child);

impl Agent {
    pub fn start(scratch: &Scratch, url: &str, more: &[&str]) -> Agent {
        let mut command = scratch.command(&[&["agent", "--nats", url], more].concat());
        Agent(command.stderr(Stdio::null()).spawn().unwrap())
    }

    /// Starts one whose monotonic clock is ahead by this many seconds, as on another machine, and which knows the password of the database.
    pub fn start_ahead(scratch: &Scratch, url: &str, ahead_s: u32, password: &str) -> Agent {
        let program = scratch.command(&["agent", "--nats", url]);
        let mut command = std::process::Command::new("unshare");
        command.args(["--time", "--fork", "--kill-child", &format!("--monotonic={ahead_s}")]);
        command.arg(program.get_program()).args(program.get_args()).stderr(Stdio::null());
        if let Some(directory) = program.get_current_dir() {
            command.current_dir(directory);
        }
        command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("LOADLINE_PASSWORD", password);
        Agent(command.spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
