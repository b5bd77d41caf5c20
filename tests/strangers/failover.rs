//! Servers that change below a recorder: one that must not be written to for a while, and one that has nothing of what it had. Neither needs a restart.

use std::time::{Duration, Instant};

use loadline::database::Endpoint;

use super::harness::{Directory, Started, Target, send, write};

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn run(target: &Target, statements: &[String]) {
    let mut session = target.session();
    statements.iter().for_each(|sql| session.run(sql).unwrap_or_else(|error| panic!("{sql}: {error}")));
}

/// A user with the rights that the documentation names, where the usual one may do all.
fn limited(target: &Target) -> Endpoint {
    let endpoint = target.endpoint.clone().unwrap();
    if target.name == "postgres" {
        return endpoint;
    }
    let database = &endpoint.database;
    run(
        target,
        &[
            "CREATE USER limited@'%' IDENTIFIED BY 'limited'".to_owned(),
            "CREATE USER limited@localhost IDENTIFIED BY 'limited'".to_owned(),
            format!("GRANT CREATE, ALTER, INDEX, INSERT, UPDATE, SELECT, DELETE ON `{database}`.* TO limited@'%'"),
            format!(
                "GRANT CREATE, ALTER, INDEX, INSERT, UPDATE, SELECT, DELETE ON `{database}`.* TO limited@localhost"
            ),
        ],
    );
    Endpoint { user: "limited".to_owned(), password: "limited".to_owned(), ..endpoint }
}

fn make_read_only(target: &Target, is_so: bool) {
    let value = if is_so { "on" } else { "off" };
    match target.name {
        "postgres" => {
            run(target, &[format!("ALTER SYSTEM SET default_transaction_read_only = {value}")]);
            target.query("SELECT pg_reload_conf()");
        }
        _ => run(target, &[format!("SET GLOBAL read_only = {value}")]),
    }
}

fn take_in(started: &Started, measurement: &str, numbers: std::ops::Range<u32>) {
    for number in numbers {
        let answer = write(started.http, &format!("{measurement},t=a f={number}i {number}\n"));
        assert_eq!(answer.status, 204, "{}", answer.body);
    }
}

fn assert_stored(target: &Target, measurement: &str, numbers: std::ops::Range<u32>) {
    let stored = target.query(&format!("SELECT f FROM {measurement}_values ORDER BY record_id"));
    assert_eq!(stored, numbers.map(|number| number.to_string()).collect::<Vec<_>>(), "{}", target.name);
}

/// What comes while a server must not be written to waits, `/ready` says why, and all of it is stored when it may be.
pub fn a_server_that_is_read_only_for_a_while_needs_no_restart(target: &Target) {
    let directory = Directory::new();
    let config = target.config(&directory, "name = \"star\"", "[ready]\nwithin = \"1s\"\n");
    let started = Started::new(&config, target.open_at(Some(&limited(target))));
    take_in(&started, "kept", 0..10);
    started.wait_until_committed();
    make_read_only(target, true);
    take_in(&started, "kept", 10..20);
    // New tables can be made as little as rows.
    take_in(&started, "later", 0..5);
    let ready = || send(started.http, "GET", "/ready", "", b"");
    wait_until("it is not ready", || ready().status == 503);
    wait_until("it says why", || {
        let body = ready().body;
        body.contains("read-only") || body.contains("read_only")
    });
    make_read_only(target, false);
    take_in(&started, "kept", 20..30);
    started.wait_until_committed();
    wait_until("it is ready", || ready().status == 200);
    let counts = started.stop().counts;
    assert_eq!((counts.committed, counts.quarantined), (35, 0), "{}", target.name);
    assert_stored(target, "kept", 0..30);
    assert_stored(target, "later", 0..5);
}

/// A server that has nothing any more of what the recorder has made there: what comes is stored, in tables that are made anew.
pub fn a_server_that_is_empty_all_at_once_needs_no_restart(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    take_in(&started, "emptied", 0..10);
    started.wait_until_committed();
    match target.name {
        "postgres" => run(target, &["DROP SCHEMA public CASCADE".to_owned(), "CREATE SCHEMA public".to_owned()]),
        _ => {
            let database = &target.endpoint.as_ref().unwrap().database;
            run(target, &[format!("DROP DATABASE `{database}`"), format!("CREATE DATABASE `{database}`")]);
        }
    }
    take_in(&started, "emptied", 10..20);
    take_in(&started, "new_there", 0..5);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    assert_stored(target, "emptied", 10..20);
    assert_stored(target, "new_there", 0..5);
    // And by the next one.
    let started = target.start(&directory, "name = \"star\"", "");
    take_in(&started, "emptied", 20..25);
    started.wait_until_committed();
    started.stop();
    assert_stored(target, "emptied", 10..25);
}
