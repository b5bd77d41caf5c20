//! Nodes that are cut off from the others. This takes root, as links do: another user sees the refusal checked, and is told that nothing else was.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use super::happened::happened;
use super::program::{Scratch, is_root, processes_with, wait_for};
use super::{CLOSED, GALERA, REPLICA, THREE_SERVERS, WRITES, nobody, study};

/// Whether nodes can be cut off here; says so where they cannot.
fn can_cut() -> bool {
    if !is_root() {
        println!("note: nothing was checked, because hosts for nodes take root");
    }
    is_root()
}

fn cut(node: u32, at: &str, lasts: &str) -> String {
    format!("[[events]]\nat = \"{at}\"\ndo = \"cut-node\"\nnode = {node}\nlasts = \"{lasts}\"\n")
}

#[test]
fn a_minority_of_a_cluster_takes_nothing_loses_nothing_and_comes_back() {
    if !can_cut() {
        return;
    }
    let _alone = THREE_SERVERS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let scratch = Scratch::new();
    let load = "clients = 6\nthink = \"10ms\"\nduration = \"16s\"\n";
    let timeouts = "evs.keepalive_period=PT0.5S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT6S";
    let timeouts = format!("config = {{ wsrep_provider_options = \"{timeouts}\" }}\n");
    let database = format!("{GALERA}reconnect_to = \"other\"\n{timeouts}");
    scratch.write("s.toml", &study(&database, WRITES, load, &cut(2, "1s", "9s")));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("nothing is gone of "), "{told}");
    assert!(
        told.contains("node 2, cut off from the other nodes at ") && told.contains("all had the same data again"),
        "{told}"
    );
    let (trial, events) = happened(&scratch, "run");
    let event = &events.events[0];
    assert_eq!((event.what.as_str(), event.node, &event.error), ("cut-node", Some(2), &None), "{events:?}");
    assert_eq!((events.lost(), events.surplus()), (Some(0), 0), "{events:?}");
    assert!(event.away_s >= 9.0 && event.gap_s.unwrap() > 0.3, "{event:?}");
    // The node let its clients go when it knew that it had no majority; they went on over the others while it was cut off.
    assert!(trial.failed() > 0, "{:?}", trial.errors);
    let meanwhile = (event.start_s + event.gap_s.unwrap() + 0.2)..(event.start_s + 9.0);
    let parts = || trial.series.iter().filter(|part| meanwhile.contains(&part.end_s));
    let (completed, failed): (u64, u64) =
        (parts().map(|part| part.completed).sum(), parts().map(|part| part.failed).sum());
    let is_slow = event.gap_s.unwrap() > 5.0;
    assert!(completed > 0 || is_slow, "{event:?} {:?}", trial.series);
    // The node accepts connections all the time. Two clients that did not ask whether it is a member would fail ten times a second each.
    assert!(failed < 40 || is_slow, "{failed} failed: {event:?} {:?}", trial.series);
    let run = std::fs::read_to_string(scratch.path("run").join("run.toml")).unwrap();
    assert!(run.contains("3, which all take writes, each on a host of its own"), "{run}");
}

#[test]
fn commits_wait_for_a_synchronous_replica_that_is_cut_off_and_none_is_gone() {
    if !can_cut() {
        return;
    }
    let scratch = Scratch::new();
    let database = format!("{REPLICA}replication = \"synchronous\"");
    let load = "clients = 4\nduration = \"8s\"\n";
    scratch.write("s.toml", &study(&database, WRITES, load, &cut(2, "1s", "2s")));
    scratch.run_study("s.toml", "run").expect(0);
    let (trial, events) = happened(&scratch, "run");
    let event = &events.events[0];
    assert_eq!((trial.failed(), events.lost(), events.surplus()), (0, Some(0), 0), "{events:?}");
    // The first commits after the cut may have been on the replica already.
    assert!(event.away_s >= 2.0 && event.gap_s.is_none_or(|gap_s| gap_s > 1.5), "{event:?}");
}

#[test]
fn readers_of_a_replica_that_is_cut_off_see_events_late_and_miss_none() {
    if !can_cut() {
        return;
    }
    let scratch = Scratch::new();
    let workload = "[workload]\nname = \"freshness\"\n[freshness]\nevery = \"2ms\"";
    let load = "clients = 2\narrivals = \"constant\"\nrate = 100\nduration = \"6s\"\n";
    let database = format!("{REPLICA}read_from = \"replica\"");
    scratch.write("s.toml", &study(&database, workload, load, &cut(2, "1s", "2s")));
    scratch.run_study("s.toml", "run").expect(0);
    let (trial, events) = happened(&scratch, "run");
    assert_eq!((trial.failed(), events.lost()), (0, Some(0)), "{events:?}");
    let seen = trial.freshness.unwrap();
    let group = seen.groups.values().next().unwrap();
    assert!(group.expected > 0 && group.lost == 0, "{} of {} lost", group.lost, group.expected);
    assert!(group.freshness.max_ns() > 1_500_000_000, "{} ns", group.freshness.max_ns());
    assert!(group.freshness.min_ns() < 1_500_000_000, "{} ns", group.freshness.min_ns());
}

#[test]
fn who_may_not_make_hosts_is_told_so_before_anything_is_started() {
    let scratch = Scratch::new();
    scratch.write("s.toml", &study(REPLICA, WRITES, CLOSED, &cut(2, "1s", "2s")));
    let arguments = ["run", "s.toml", "--out", "run"];
    let mut command = nobody::command(scratch.command(&arguments), &scratch.path(""), &arguments);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "the cut-node of [[events]]: this user may not make network namespaces";
    assert!(said.contains(expected) && said.contains("run loadline as root, or leave this event out"), "{said}");
    assert!(!scratch.path("run").exists());
}

/// The network namespaces that processes are in.
fn namespaces(pids: impl Iterator<Item = u32>) -> BTreeSet<String> {
    let namespace = |pid| std::fs::read_link(format!("/proc/{pid}/ns/net")).ok();
    pids.filter_map(namespace).map(|link| link.display().to_string()).collect()
}

fn all_pids() -> impl Iterator<Item = u32> {
    std::fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// The names of the machine's own interfaces.
fn interfaces() -> BTreeSet<String> {
    let text = std::fs::read_to_string("/proc/self/net/dev").unwrap();
    text.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

#[test]
fn kill_9_leaves_neither_nodes_nor_their_networks() {
    if !can_cut() {
        return;
    }
    let scratch = Scratch::new();
    let load = "clients = 2\nduration = \"60s\"\n";
    scratch.write("s.toml", &study(REPLICA, WRITES, load, &cut(2, "500ms", "50s")));
    let mut command = scratch.command(&["run", "s.toml", "--out", "run"]);
    // The servers' command lines then name this place.
    command.env("TMPDIR", scratch.path(""));
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
    let place = scratch.path("").display().to_string();
    let machine = namespaces([std::process::id()].into_iter());
    let own = || {
        let servers = processes_with(&place).into_iter().filter(|pid| *pid != child.id());
        let found = namespaces(servers);
        found.difference(&machine).cloned().collect::<BTreeSet<String>>()
    };
    wait_for("two nodes, each on a host of its own", || own().len() == 2);
    assert!(interfaces().iter().all(|name| name != "switch" && !name.starts_with("port")), "{:?}", interfaces());
    let made = own();
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the nodes to be gone", || namespaces(all_pids()).is_disjoint(&made));
}
