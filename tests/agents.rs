//! Agents on this machine: several processes that drive one load together, as users start them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;
#[path = "agents/shared.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod shared;

use std::process::Stdio;
use std::time::{Duration, Instant};

use loadline::measurement::Measurement;
use loadline::reason::Reason;
use program::{Scratch, outcome, wait_for};
use shared::{SLOW, adds_up, shares_of, signal, study};

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

#[test]
fn a_trial_whose_agent_is_killed_or_stands_still_ends_within_two_seconds_and_is_driven_once_more() {
    let scratch = Scratch::new();
    let text = study("name = \"redis\"", "name = \"read\"", "clients = 6\nagents = 3\nduration = \"12s\"\n");
    scratch.write("s.toml", &text.replace("rows = 200", "rows = 2000"));
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
    let told = program::Outcome::of(running.wait_with_output().unwrap()).expect(0);
    let trials = scratch.stored("run");
    assert_eq!(trials.len(), 3, "{told:?}");
    let lost = |trial: &Measurement| match &trial.invalid_because[..] {
        [Reason::AgentLost { of: 3, why, .. }] => Some(why.clone()),
        _ => None,
    };
    assert!(lost(&trials[0]).unwrap().contains("its process has ended"), "{:?}", trials[0].invalid_because);
    assert!(lost(&trials[1]).unwrap().contains("nothing was heard of it"), "{:?}", trials[1].invalid_because);
    assert_eq!((trials[0].completed(), trials[1].completed()), (0, 0), "nothing of a lost attempt counts");
    let attempts: Vec<Option<u32>> = trials.iter().map(|trial| trial.trial.lost_attempt).collect();
    assert_eq!(attempts, [Some(1), Some(2), None]);
    let findings: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((&findings["cases"][0]["trials"], &findings["valid"]), (&1.into(), &true.into()), "one trial counts");
    assert!(told.stdout.contains("attempts_lost"), "{told:?}");
    // A run that goes on knows that nothing is missing.
    let resumed = scratch.run(&["run", "s.toml", "--resume", "run"]).expect(0);
    assert!(resumed.stderr.contains("nothing is missing"), "{resumed:?}");
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
