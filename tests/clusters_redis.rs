//! Redis with replicas, as users write it, on real servers: failover, lag, and what happens to single nodes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "clusters/delayed.rs"]
mod delayed;
#[path = "events/happened.rs"]
mod happened;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;
#[path = "clusters/studies.rs"]
mod studies;

use std::time::Duration;

use happened::happened;
use program::Scratch;
use studies::{CLOSED, ONCE, WRITES, readers_see_all_later, study};

const REPLICA: &str = "name = \"redis\"\nnodes = 2\n";
const SYNCHRONOUS: &str = "name = \"redis\"\nnodes = 2\nreplication = \"synchronous\"\n";

#[test]
fn a_synchronous_replica_that_takes_over_has_all_that_was_acknowledged_and_is_a_primary_from_then_on() {
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"1s\"\ndo = \"promote\"\nlasts = \"300ms\"\n\
                  [[events]]\nat = \"2500ms\"\ndo = \"kill\"\nnode = 2\n";
    // Too few replicas for the first primary are none at all for the second.
    let database = format!("{SYNCHRONOUS}config = {{ min-replicas-to-write = 1 }}");
    scratch.write("s.toml", &study(&database, WRITES, CLOSED, events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("nothing is gone of ") && told.contains("its replica took writes"), "{told}");
    let (trial, events) = happened(&scratch, "run");
    let [promoted, killed] = &events.events[..] else { panic!("{events:?}") };
    assert_eq!((events.lost(), events.surplus()), (Some(0), 0), "{events:?}");
    assert_eq!((promoted.what.as_str(), &promoted.error, &killed.error), ("promote", &None, &None));
    assert!(promoted.away_s >= 0.3 && promoted.gap_s.unwrap() >= 0.3, "{promoted:?}");
    assert!(trial.failed() > 0, "clients were cut off");
    let behind = trial.series.iter().filter(|part| part.end_s > killed.start_s + killed.away_s + 0.2);
    let behind: u64 = behind.map(|part| part.completed).sum();
    assert!(killed.start_s + killed.away_s > 4.5 || behind > 0, "{killed:?} {:?}", trial.series);
    let run = std::fs::read_to_string(scratch.path("run").join("run.toml")).unwrap();
    assert!(run.contains("2: a primary, and synchronous replication to the others"), "{run}");
}

#[test]
fn what_an_asynchronous_replica_has_not_received_is_counted_as_gone() {
    let scratch = Scratch::new();
    // The replica gets everything a second later, and takes over at once.
    let server = delayed::server(&scratch, Duration::from_secs(1));
    let promote = "[[events]]\nat = \"2s\"\ndo = \"promote\"\n";
    scratch.write("s.toml", &study(&format!("{REPLICA}binary = \"{server}\""), WRITES, CLOSED, promote));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("that were acknowledged are gone, in 1 of 1 trial"), "{told}");
    let (_, events) = happened(&scratch, "run");
    assert!(events.lost().unwrap() > 0 && events.surplus() == 0, "{events:?}");
}

#[test]
fn a_replica_that_is_killed_comes_back_and_costs_nothing() {
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"500ms\"\ndo = \"kill\"\nnode = 3\n";
    let database = "name = \"redis\"\nnodes = 3\n";
    scratch.write("s.toml", &study(database, WRITES, "clients = 2\nduration = \"4s\"\n", events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("node 3, killed at"), "{told}");
    let (trial, events) = happened(&scratch, "run");
    assert_eq!((trial.failed(), events.lost()), (0, Some(0)), "{events:?}");
    assert_eq!(events.events[0].error, None);
}

#[test]
fn a_write_that_no_replica_acknowledges_fails_and_is_not_called_gone() {
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"500ms\"\ndo = \"pause\"\nnode = 2\nlasts = \"6s\"\n";
    scratch.write("s.toml", &study(SYNCHRONOUS, WRITES, "clients = 4\nduration = \"7s\"\n", events));
    scratch.run_study("s.toml", "run").expect(0);
    let (trial, events) = happened(&scratch, "run");
    let (message, times) = trial.errors.first_key_value().unwrap();
    assert!(message.starts_with("the primary has acknowledged the write, and no replica has: "), "{message}");
    assert_eq!((events.lost(), events.surplus()), (Some(0), 0), "{events:?}");
    // The primary has each of them, since nothing has happened to it.
    assert!(*times >= 4 && events.unknown >= 4 && events.unknown_found == Some(events.unknown), "{events:?}");
}

#[test]
fn a_primary_that_comes_back_without_data_is_told_to_have_emptied_its_replicas() {
    let scratch = Scratch::new();
    let events = "[[events]]\nat = \"500ms\"\ndo = \"kill\"\n";
    let database = format!("{SYNCHRONOUS}config = {{ appendonly = \"no\" }}");
    scratch.write("s.toml", &study(&database, WRITES, "clients = 2\nduration = \"2s\"\n", events));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        told.contains("node 1, the primary, came back without data (appendonly is no), and its replicas"),
        "{told}"
    );
    let (_, events) = happened(&scratch, "run");
    assert!(events.lost().unwrap() >= 100 && events.surplus() == 0, "what was filled is gone too: {events:?}");
}

#[test]
fn readers_on_a_replica_see_events_later_than_they_are_written_and_miss_none() {
    let scratch = Scratch::new();
    let server = delayed::server(&scratch, Duration::from_millis(100));
    readers_see_all_later(&format!("{REPLICA}binary = \"{server}\"\n"));
}

#[test]
fn clients_that_only_read_are_connected_to_the_replica() {
    let scratch = Scratch::new();
    // A primary that does not know the command with which rows are read.
    let server = delayed::program(
        &scratch,
        "case \"$*\" in\n*\" --replicaof \"*) exec redis-server \"$@\" ;;\nesac\nexec redis-server \"$@\" --rename-command HMGET ''\n",
    );
    let text = |rest: &str| {
        format!(
            "name = \"nodes\"\n[database]\n{REPLICA}binary = \"{server}\"\n{rest}\n[record]\nrows = 100\n[workload]\nname = \"read\"\n\
             [layout]\nname = \"wide\"\n[load]\nclients = 3\nduration = \"1s\"\nwarmup = \"0s\"\n{ONCE}"
        )
    };
    scratch.write("s.toml", &text("read_from = \"replica\""));
    scratch.run_study("s.toml", "replica").expect(0);
    let trial = scratch.stored("replica").remove(0);
    assert_eq!((trial.invalid_because.len(), trial.failed()), (0, 0), "{:?}", trial.errors);
    scratch.write("s.toml", &text(""));
    scratch.run_study("s.toml", "primary").expect(1);
    let trial = scratch.stored("primary").remove(0);
    assert!(trial.errors.keys().any(|error| error.contains("unknown command")), "{:?}", trial.errors);
}

#[test]
fn what_replicas_cannot_do_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let refused = |database: &str, workload: &str, words: &[&str]| {
        scratch.write("s.toml", &study(database, workload, CLOSED, ""));
        scratch.run(&["plan", "s.toml"]).refused(words);
    };
    refused("name = \"redis\"\nnodes = 5", WRITES, &["at most 4"]);
    refused("name = \"redis\"\nreplication = \"synchronous\"", WRITES, &["there is no replica", "nodes = 2"]);
    let follows = format!("{REPLICA}config = {{ replica-announce-ip = \"10.0.0.1\" }}");
    refused(&follows, WRITES, &["replica-announce-ip", "is set by loadline"]);
    let workload = "[workload]\nname = \"freshness\"\n[freshness]\nresults = true";
    refused(&format!("{REPLICA}read_from = \"replica\""), workload, &["replicas take no writes"]);
}
