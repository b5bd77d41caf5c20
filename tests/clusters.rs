//! Servers of several nodes, as users write them, on real servers: replicas, failover, and what happens to single nodes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "copied/mod.rs"]
mod copied;
#[path = "clusters/cut.rs"]
mod cut;
#[path = "events/happened.rs"]
mod happened;
#[path = "copied/nobody.rs"]
mod nobody;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;
#[path = "clusters/studies.rs"]
mod studies;

use std::sync::{Mutex, PoisonError};

use happened::happened;
use program::Scratch;
use studies::{CLOSED, ONCE, WRITES, readers_see_all_later, study};

const REPLICA: &str = "name = \"postgres\"\nnodes = 2\n";

#[test]
fn a_synchronous_replica_that_takes_over_has_all_that_was_acknowledged() {
    let scratch = Scratch::new();
    // The new primary is killed too, and comes back as a primary.
    let events = "[[events]]\nat = \"1s\"\ndo = \"promote\"\nlasts = \"300ms\"\n\
                  [[events]]\nat = \"4s\"\ndo = \"kill\"\nnode = 2\n";
    let database = format!("{REPLICA}replication = \"synchronous\"");
    scratch.write("s.toml", &study(&database, WRITES, "clients = 4\nduration = \"8s\"\n", events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("nothing is gone of "), "{told}");
    let (trial, events) = happened(&scratch, "run");
    let event = &events.events[0];
    assert_eq!((event.what.as_str(), event.node, events.lost()), ("promote", Some(1), Some(0)), "{events:?}");
    assert_eq!((events.events[1].node, &events.events[1].error), (Some(2), &None), "{events:?}");
    assert!(event.away_s >= 0.3 && event.gap_s.unwrap() >= 0.3, "{event:?}");
    assert!(trial.failed() > 0, "clients were cut off");
    // The new primary took more than the hundred records that were there before.
    let behind: u64 = trial
        .series
        .iter()
        .filter(|part| part.end_s > event.start_s + event.away_s + 0.2)
        .map(|part| part.completed)
        .sum();
    assert!(event.start_s + event.away_s > 3.5 || behind > 0, "{event:?} {:?}", trial.series);
    let run = std::fs::read_to_string(scratch.path("run").join("run.toml")).unwrap();
    assert!(run.contains("2: a primary, and synchronous replication to the others"), "{run}");
}

#[test]
fn what_an_asynchronous_replica_has_not_received_is_counted_as_gone() {
    let scratch = Scratch::new();
    // The primary is killed right after a time in which its replica stood still and could receive no more than what the socket between them holds.
    let events = "[[events]]\nat = \"1s\"\ndo = \"pause\"\nnode = 2\nlasts = \"1500ms\"\n\
                  [[events]]\nat = \"2500ms\"\ndo = \"promote\"\n";
    let writes = format!("{WRITES}\nbatch = 500");
    scratch.write("s.toml", &study(REPLICA, &writes, CLOSED, events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("that were acknowledged are gone, in 1 of 1 trial"), "{told}");
    let (_, events) = happened(&scratch, "run");
    assert!(events.lost().unwrap() >= 500 && events.surplus() == 0, "{events:?}");
}

#[test]
fn a_node_that_is_ended_comes_back_as_a_replica_and_costs_nothing() {
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"500ms\"\ndo = \"kill\"\nnode = 2\n";
    scratch.write("s.toml", &study(REPLICA, WRITES, "clients = 2\nduration = \"6s\"\n", events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("node 2, killed at"), "{told}");
    let (trial, events) = happened(&scratch, "run");
    assert_eq!((trial.failed(), events.lost()), (0, Some(0)), "{events:?}");
    assert_eq!(events.events[0].error, None);
}

#[test]
fn readers_on_a_replica_see_events_later_than_they_are_written_and_miss_none() {
    // Readers of the primary would not notice that its replica applies what it receives only after this time.
    readers_see_all_later(&format!("{REPLICA}config = {{ recovery_min_apply_delay = \"100ms\" }}\n"));
}

#[test]
fn clients_that_only_read_are_connected_to_the_replica() {
    let scratch = Scratch::new();
    // On the primary, the statement finds no row.
    let sql = "SELECT pid FROM pg_stat_wal_receiver WHERE pg_is_in_recovery()";
    let workload = format!("[workload]\nname = \"sql\"\nstatements = [ {{ sql = \"{sql}\" }} ]");
    let text = format!(
        "name = \"nodes\"\n[database]\n{REPLICA}read_from = \"replica\"\n{workload}\n[load]\nclients = 3\nduration = \"1s\"\nwarmup = \"0s\"\n{ONCE}"
    );
    scratch.write("s.toml", &text);
    scratch.run_study("s.toml", "replica").expect(0);
    let trial = scratch.stored("replica").remove(0);
    assert_eq!((trial.invalid_because.len(), trial.failed()), (0, 0), "{:?}", trial.invalid_because);
    scratch.write("s.toml", &text.replace("read_from = \"replica\"", ""));
    scratch.run_study("s.toml", "primary").expect(1);
    let trial = scratch.stored("primary").remove(0);
    assert!(trial.operations.values().all(|seen| seen.empty > 0), "{:?}", trial.operations);
}

#[test]
fn what_nodes_cannot_do_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let refused = |database: &str, workload: &str, rest: &str, words: &[&str]| {
        scratch.write("s.toml", &study(database, workload, CLOSED, rest));
        scratch.run(&["plan", "s.toml"]).refused(words);
    };
    refused("name = \"mysql\"\nnodes = 2", WRITES, "", &["mysql has no clusters here", "\"postgres\""]);
    refused("name = \"postgres\"\nnodes = 8", WRITES, "", &["at most 4"]);
    refused("name = \"postgres\"\nreplication = \"synchronous\"", WRITES, "", &["there is no replica", "nodes = 2"]);
    refused(&format!("{REPLICA}read_from = \"replica\""), WRITES, "", &["\"write\" writes over the connections"]);
    refused(&format!("{GALERA}engine = \"aria\""), WRITES, "", &["rows only in innodb"]);
    refused(&format!("{REPLICA}connect_to = \"all\""), WRITES, "", &["not several nodes that take writes"]);
    let own = format!("{GALERA}config = {{ wsrep_cluster_address = \"gcomm://10.0.0.1\" }}");
    refused(&own, WRITES, "", &["wsrep_cluster_address", "is set by loadline"]);
    let promote = "[[events]]\nat = \"1s\"\ndo = \"promote\"\n";
    refused("name = \"postgres\"", WRITES, promote, &["one primary and one replica"]);
    let third = "[[events]]\nat = \"1s\"\ndo = \"kill\"\nnode = 3\n";
    refused(REPLICA, WRITES, third, &["happens to node 3 and the server has 2"]);
    let cut = "[[events]]\nat = \"1s\"\ndo = \"cut-node\"\nlasts = \"1s\"\n";
    refused("name = \"postgres\"", WRITES, cut, &["the server has one node", "nodes = 3"]);
    scratch.write("s.toml", &study(REPLICA, WRITES, CLOSED, ""));
    scratch.run(&["durability", "s.toml"]).refused(&["the server has 2 nodes"]);
}

/// Held by tests with three servers: nodes that get no CPU time for seconds take each other for dead.
static THREE_SERVERS: Mutex<()> = Mutex::new(());

const GALERA: &str = "name = \"mariadb\"\nnodes = 3\nconnect_to = \"all\"\n";
#[test]
fn a_cluster_that_loses_a_node_loses_nothing_and_takes_the_node_back() {
    let _alone = THREE_SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"1s\"\ndo = \"kill\"\nnode = 2\nlasts = \"8s\"\n";
    let load = "clients = 3\nthink = \"10ms\"\nduration = \"14s\"\n";
    scratch.write("s.toml", &study(&format!("{GALERA}reconnect_to = \"other\"\n"), WRITES, load, events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("nothing is gone of ") && told.contains("node 2, killed at"), "{told}");
    let (trial, events) = happened(&scratch, "run");
    let event = &events.events[0];
    assert_eq!(trial.conflicts.as_ref().unwrap().between_nodes, None, "a node that was started again counts from zero");
    assert_eq!((events.lost(), event.node, &event.error), (Some(0), Some(2), &None), "{events:?}");
    assert!(event.away_s >= 8.0 && event.gap_s.unwrap() > 0.3, "{event:?}");
    assert!(trial.failed() > 0, "the clients of the node were cut off");
    // All clients go on over the other two nodes before the killed one is started again.
    let meanwhile = (event.start_s + event.gap_s.unwrap())..(event.start_s + 8.0);
    let completed: u64 =
        trial.series.iter().filter(|part| meanwhile.contains(&part.end_s)).map(|part| part.completed).sum();
    assert!(meanwhile.is_empty() || completed > 0 || event.gap_s.unwrap() > 7.0, "{event:?} {:?}", trial.series);
    let run = std::fs::read_to_string(scratch.path("run").join("run.toml")).unwrap();
    assert!(run.contains("nodes = \"3, which all take writes\""), "{run}");
}

#[test]
fn the_first_node_of_a_cluster_joins_it_again_and_does_not_begin_another() {
    let _alone = THREE_SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"1s\"\ndo = \"stop\"\n[[events]]\nat = \"2s\"\ndo = \"pause\"\nnode = 3\nlasts = \"300ms\"\n";
    let load = "clients = 3\nthink = \"10ms\"\nduration = \"6s\"\n";
    scratch.write("s.toml", &study(GALERA, WRITES, load, events));
    scratch.run_study("s.toml", "run").expect(0);
    let (_, events) = happened(&scratch, "run");
    assert!(events.acknowledged.unwrap() > 100, "{events:?}");
    assert_eq!(
        (events.lost(), events.surplus()),
        (Some(0), 0),
        "records of a second cluster would be missing: {events:?}"
    );
}

#[test]
fn transactions_that_lose_against_other_nodes_are_counted_as_that_and_sent_again() {
    let _alone = THREE_SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let scratch = Scratch::new();
    let workload = "rows = 5\n[workload]\nname = \"update\"";
    let text = |retries: u32| {
        let load = format!("clients = 6\nduration = \"2s\"\ntolerated_failures = 1.0\nretries = {retries}\n");
        study(GALERA, workload, &load, "").replace("\"sensor\"", "\"usertable\"")
    };
    scratch.write("s.toml", &text(100));
    let told = scratch.run_study("s.toml", "again").expect(0).stdout;
    assert!(told.contains("Conflicts") && told.contains("sent again: another"), "{told}");
    let trial = scratch.stored("again").remove(0);
    let conflicts = trial.conflicts.clone().unwrap();
    let (message, times) = conflicts.sent_again.first_key_value().unwrap();
    assert!(message.starts_with("another transaction, perhaps on another node,") && *times > 0, "{conflicts:?}");
    assert!(conflicts.between_nodes.unwrap() > 0, "{conflicts:?}");
    // An operation may lose against others a hundred times; hardly any does.
    let scheduled: u64 = trial.operations.values().map(|seen| seen.scheduled).sum();
    assert!(trial.failed() * 100 <= scheduled, "{} of {scheduled}: {:?}", trial.failed(), trial.errors);
    let page = std::fs::read_to_string(scratch.path("again").join("report.html")).unwrap();
    assert!(page.contains("id=\"conflicts\""));

    scratch.write("s.toml", &text(0));
    scratch.run_study("s.toml", "once").expect(0);
    let trial = scratch.stored("once").remove(0);
    assert_eq!(trial.conflicts.unwrap().sent_again.len(), 0);
    assert!(trial.errors.keys().any(|message| message.starts_with("another transaction")), "{:?}", trial.errors);
}

#[test]
fn transactions_of_one_server_that_lose_against_others_are_sent_again_too() {
    let scratch = Scratch::new();
    let database = "name = \"postgres\"\nconfig = { default_transaction_isolation = \"repeatable read\" }";
    let load = "clients = 6\nduration = \"1s\"\nretries = 100\ntolerated_failures = 0.01\n";
    let text = study(database, "rows = 5\n[workload]\nname = \"update\"", load, "");
    scratch.write("s.toml", &text.replace("\"sensor\"", "\"usertable\""));
    scratch.run_study("s.toml", "run").expect(0);
    let trial = scratch.stored("run").remove(0);
    let conflicts = trial.conflicts.unwrap();
    assert!(conflicts.sent_again.keys().any(|message| message.contains("40001")), "{conflicts:?}");
    assert_eq!(conflicts.between_nodes, None);
}
