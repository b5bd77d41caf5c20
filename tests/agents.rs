//! Agents: several processes that drive one load together, on this machine and over NATS, as users start them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/nats.rs"]
#[expect(dead_code, reason = "not every test file uses all of it")]
mod nats;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use loadline::histogram::Histogram;
use loadline::measurement::Measurement;
use loadline::reason::Reason;
use nats::Nats;
use program::{Scratch, outcome, wait_for};

/// A database whose answers take so long that a client that is late on a busy machine is not late beside them.
const SLOW: &str = "name = \"simulated\"\nconfig = { service = \"20ms\", distribution = \"constant\", servers = 8 }";
/// One trial of each case.
const ONCE: &str = "[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

fn study(database: &str, workload: &str, load: &str) -> String {
    format!(
        "name = \"agents\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 200\n[layout]\nname = \"wide\"\n[workload]\n{workload}\n\
         [load]\nwarmup = \"500ms\"\n{load}\n{ONCE}"
    )
}

/// Checks that what the agents saw is what the trial says.
fn adds_up(trial: &Measurement, agents: usize) {
    assert_eq!(trial.invalid_because, [], "{:?}", trial.errors);
    assert_eq!(trial.agents.len(), agents);
    let sum =
        |figure: fn(&loadline::measurement::AgentMeasurement) -> u64| trial.agents.iter().map(figure).sum::<u64>();
    assert_eq!((sum(|agent| agent.scheduled), sum(|agent| agent.completed)), (trial.scheduled(), trial.completed()));
    assert_eq!(sum(|agent| u64::from(agent.clients)), u64::from(trial.trial.case.settings.load.clients));
    let mut times = Histogram::new();
    trial.agents.iter().for_each(|agent| times.merge(&agent.response_time));
    assert_eq!(times, trial.response_times(), "bucket for bucket");
    assert_eq!(trial.client_count(), trial.trial.case.settings.load.clients);
    assert!(trial.agents.iter().all(|agent| agent.completed > 0), "{:?}", trial.agents);
}

#[test]
fn agents_write_each_record_once_and_all_of_them_are_stored() {
    let scratch = Scratch::new();
    for name in ["postgres", "mariadb", "redis"] {
        let load = "clients = 5\noperations = 1001\n";
        scratch.write("s.toml", &study(&format!("name = \"{name}\""), "name = \"write\"", load));
        let ran =
            outcome(scratch.command(&["run", "s.toml", "--out", name, "--agents", "3"]).env("LOADLINE_STOLEN", "1"));
        let told = ran.expect(0).stdout;
        // What is stored is counted, and a record that two agents had made would be refused as a second one.
        let trial = scratch.stored(name).remove(0);
        adds_up(&trial, 3);
        assert_eq!(trial.completed(), 1001, "{name}");
        assert_eq!(trial.agents.iter().map(|agent| agent.clients).collect::<Vec<_>>(), [1, 2, 2]);
        assert!(told.contains("Agents"), "{name}: {told}");
        let page = std::fs::read_to_string(scratch.path(name).join("report.html")).unwrap();
        assert!(page.contains("id=\"agents\""), "{name}");
    }
}

#[test]
fn the_shares_of_an_open_loop_add_up_to_the_rate_and_the_number_of_agents_is_a_factor() {
    let scratch = Scratch::new();
    for arrivals in ["poisson", "constant"] {
        let load = format!("clients = 8\narrivals = \"{arrivals}\"\nrate = 200\nduration = \"2s\"\n");
        let factors = "[factors]\n\"load.agents\" = [1, 2, 4]\n";
        scratch.write("s.toml", &(study(SLOW, "name = \"write\"", &load) + factors));
        scratch.run_study("s.toml", arrivals).expect(0);
        let trials = scratch.stored(arrivals);
        assert_eq!(trials.len(), 3);
        for trial in &trials {
            let agents = trial.trial.case.settings.load.agents.unwrap() as usize;
            adds_up(trial, agents);
            let (scheduled, expected) = (trial.scheduled() as f64, 400.0);
            let most = if arrivals == "constant" { 1.0 } else { 5.0 * f64::sqrt(expected) };
            assert!((scheduled - expected).abs() <= most, "{arrivals}, {agents} agents: {scheduled}");
        }
    }
}

#[test]
fn what_agents_cannot_do_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let load = "clients = 4\nduration = \"1s\"\n";
    scratch.write("s.toml", &study("name = \"sqlite\"", "name = \"write\"", load));
    scratch.run(&["run", "s.toml", "--agents", "2"]).refused(&["sqlite has no server", "leave it out"]);
    scratch.write("s.toml", &study("name = \"redis\"", "name = \"write\"", load));
    scratch.run(&["run", "s.toml", "--agents", "5"]).refused(&["load.agents is 5 and load.clients is 4"]);
    scratch.run(&["run", "s.toml", "--agents", "0"]).refused(&["load.agents"]);
    scratch.run(&["run", "s.toml", "--nats", "nats://127.0.0.1:1"]).refused(&["no load has agents", "--agents N"]);
    scratch.run(&["run", "s.toml", "--agents", "2", "--nats", "nats://127.0.0.1:1"]).refused(&["database.url"]);
    scratch.run(&["agent", "--nats", "http://127.0.0.1:1"]).refused(&["nats://host:4222"]);
    scratch.run(&["agent", "--nats", "nats://me:secret@127.0.0.1:1"]).refused(&["nats://***@127.0.0.1:1"]);
}

/// The pids of the processes that drive shares for a process.
fn shares_of(parent: u32) -> Vec<u32> {
    let is_child = |pid: &u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let after = stat.rsplit_once(')').map(|(_, rest)| rest.to_owned()).unwrap_or_default();
        after.split_ascii_whitespace().nth(1) == Some(&parent.to_string())
    };
    program::processes_with("work\0load").into_iter().filter(is_child).collect()
}

/// Sends a signal to a process that a test has started.
fn signal(pid: u32, signal: i32) {
    // SAFETY: kill has no conditions; the process is a child of one of ours.
    assert_eq!(unsafe { libc::kill(pid as i32, signal) }, 0);
}

#[test]
fn an_agent_that_is_killed_or_stands_still_invalidates_its_trial_within_two_seconds_and_the_next_one_counts() {
    let scratch = Scratch::new();
    let repeat = "[repeat]\nrule = \"fixed\"\nleast = 3\nmost = 3\n";
    let text = study("name = \"redis\"", "name = \"read\"", "clients = 6\nagents = 3\nduration = \"12s\"\n");
    scratch.write("s.toml", &text.replace(ONCE, repeat).replace("rows = 200", "rows = 2000"));
    let mut command = scratch.command(&["run", "s.toml", "--out", "run", "--json"]);
    let running = command.env("LOADLINE_STOLEN", "1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = running.id();
    let mut before: Vec<u32> = Vec::new();
    for end in [libc::SIGKILL, libc::SIGSTOP] {
        wait_for("three agents at work", || {
            let shares = shares_of(pid);
            shares.len() == 3 && shares.iter().all(|share| !before.contains(share))
        });
        before = shares_of(pid);
        // Their load begins within moments.
        std::thread::sleep(Duration::from_secs(2));
        signal(before[1], end);
        let lost = Instant::now();
        wait_for("the end of that trial", || shares_of(pid).iter().all(|share| !before.contains(share)));
        // A trial without losses would take 10 s more.
        assert!(lost.elapsed() < Duration::from_secs(9), "{:?}", lost.elapsed());
    }
    let told = program::Outcome::of(running.wait_with_output().unwrap()).expect(1);
    let trials = scratch.stored("run");
    assert_eq!(trials.len(), 3, "{told:?}");
    let lost = |trial: &Measurement| match &trial.invalid_because[..] {
        [Reason::AgentLost { of: 3, why, .. }] => Some(why.clone()),
        _ => None,
    };
    assert!(lost(&trials[0]).unwrap().contains("its process has ended"), "{:?}", trials[0].invalid_because);
    assert!(lost(&trials[1]).unwrap().contains("nothing was heard of it"), "{:?}", trials[1].invalid_because);
    assert_eq!((trials[0].completed(), trials[1].completed()), (0, 0), "nothing of a lost trial counts");
    adds_up(&trials[2], 3);
    assert_eq!(shares_of(pid), Vec::<u32>::new());
}

#[test]
fn agents_end_with_a_run_that_is_killed() {
    let scratch = Scratch::new();
    scratch.write(
        "s.toml",
        &study("name = \"redis\"", "name = \"read\"", "clients = 4\nagents = 2\nduration = \"60s\"\n"),
    );
    let mut running = scratch.command(&["run", "s.toml", "--out", "run"]).stderr(Stdio::null()).spawn().unwrap();
    let pid = running.id();
    wait_for("two agents", || shares_of(pid).len() == 2);
    let shares = shares_of(pid);
    running.kill().unwrap();
    running.wait().unwrap();
    let is_there = |share: &u32| std::path::Path::new(&format!("/proc/{share}/exe")).read_link().is_ok();
    wait_for("the agents' end", || !shares.iter().any(is_there));
}

/// An agent that waits at a NATS server; it ends with the test.
struct Agent(Child);

impl Agent {
    fn start(scratch: &Scratch, url: &str, more: &[&str]) -> Agent {
        let mut command = scratch.command(&[&["agent", "--nats", url], more].concat());
        Agent(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn agents_over_nats_measure_as_those_here_do_and_one_that_is_lost_ends_its_trial_only() {
    let scratch = Scratch::new();
    let nats = Nats::start(scratch.path("jetstream").display().to_string());
    let repeat = "[repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n";
    let load = "clients = 6\nduration = \"3s\"\narrivals = \"poisson\"\nrate = 100\n";
    scratch.write("s.toml", &study(SLOW, "name = \"write\"", load).replace(ONCE, repeat));
    let alone = ["run", "s.toml", "--agents", "3", "--nats", &nats.url()];
    scratch
        .run(&[&alone[..], &["--out", "nobody"]].concat())
        .refused(&["0 of 3 agents answered", "loadline agent --nats"]);
    let agents: Vec<Agent> = (0..3).map(|_| Agent::start(&scratch, &nats.url(), &[])).collect();
    let ran = outcome(scratch.command(&[&alone[..], &["--out", "run"]].concat()).env("LOADLINE_STOLEN", "1"));
    ran.expect(0);
    let trials = scratch.stored("run");
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        adds_up(trial, 3);
        for agent in &trial.agents {
            assert!(agent.host.is_some() && agent.clock_error_s > 0.0, "{agent:?}");
        }
    }
    // One of the agents dies in the first trial; another one waits.
    let spare = Agent::start(&scratch, &nats.url(), &[]);
    let mut command = scratch.command(&[&alone[..], &["--set", "load.duration=6s", "--out", "lost"]].concat());
    let running = command.env("LOADLINE_STOLEN", "1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let all = || agents.iter().chain([&spare]);
    let at_work =
        || all().filter(|agent| !shares_of(agent.0.id()).is_empty()).map(|agent| agent.0.id()).collect::<Vec<_>>();
    wait_for("three agents at work", || at_work().len() == 3);
    std::thread::sleep(Duration::from_secs(2));
    signal(at_work()[0], libc::SIGKILL);
    program::Outcome::of(running.wait_with_output().unwrap()).expect(1);
    let trials = scratch.stored("lost");
    assert_eq!(trials.len(), 2);
    assert!(matches!(&trials[0].invalid_because[..], [Reason::AgentLost { of: 3, host: Some(_), .. }]), "{trials:?}");
    adds_up(&trials[1], 3);
    wait_for("all shares to be over", || at_work().is_empty());
}

#[test]
fn a_run_whose_nats_server_ends_ends_too_and_its_agents_wait_for_the_next_one() {
    let scratch = Scratch::new();
    let store = scratch.path("jetstream").display().to_string();
    let nats = Nats::start(store.clone());
    let (url, port) = (nats.url(), nats.port);
    let agents: Vec<Agent> = (0..2).map(|_| Agent::start(&scratch, &url, &[])).collect();
    let at_work = || agents.iter().filter(|agent| !shares_of(agent.0.id()).is_empty()).count();
    let run = |seconds: u32, out: &str| {
        scratch.write("s.toml", &study(SLOW, "name = \"write\"", &format!("clients = 4\nduration = \"{seconds}s\"\n")));
        let arguments = ["run", "s.toml", "--agents", "2", "--nats", &url, "--out", out];
        let mut command = scratch.command(&arguments);
        command.env("LOADLINE_STOLEN", "1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running = run(60, "cut");
    wait_for("two agents at work", || at_work() == 2);
    // Their load begins within moments.
    std::thread::sleep(Duration::from_secs(2));
    drop(nats);
    program::Outcome::of(running.wait_with_output().unwrap()).expect(1);
    let trial = scratch.stored("cut").remove(0);
    assert!(matches!(&trial.invalid_because[..], [Reason::AgentLost { of: 2, .. }]), "{:?}", trial.invalid_because);
    wait_for("all shares to be over", || at_work() == 0);
    let without = program::Outcome::of(run(1, "without").wait_with_output().unwrap());
    without.refused(&["the NATS server at nats://127.0.0.1", "Connection refused"]);
    let _nats = Nats::start_at(port, store);
    // Agents connect again after a while.
    let mut tries = 0;
    wait_for("a run with both agents", || {
        tries += 1;
        run(1, &format!("again-{tries}")).wait_with_output().unwrap().status.success()
    });
    adds_up(&scratch.stored(&format!("again-{tries}"))[0], 2);
}

#[test]
fn agents_speak_to_a_nats_server_that_asks_for_a_token_over_tls() {
    let scratch = Scratch::new();
    let nats = Nats::start_with_token(scratch.path("jetstream").display().to_string());
    let url = format!("tls://secret@localhost:{}", nats.port);
    let authority = format!("{}/certificate.pem", nats::TLS_FILES);
    let ca = ["--nats-ca", authority.as_str()];
    scratch.write("s.toml", &study("name = \"simulated\"", "name = \"write\"", "clients = 2\nduration = \"1s\"\n"));
    let _agents = [Agent::start(&scratch, &url, &ca), Agent::start(&scratch, &url, &ca)];
    let arguments = [&["run", "s.toml", "--out", "run", "--agents", "2", "--nats", &url], &ca[..]].concat();
    outcome(scratch.command(&arguments).env("LOADLINE_STOLEN", "1")).expect(0);
    adds_up(&scratch.stored("run")[0], 2);
    let wrong = url.replace("secret", "guess");
    let arguments = [&["run", "s.toml", "--out", "wrong", "--agents", "2", "--nats", &wrong], &ca[..]].concat();
    scratch.run(&arguments).refused(&["the NATS server at tls://***@localhost"]);
}
