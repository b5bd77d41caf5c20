//! Databases that do not answer any more while their connections stay open: what was acknowledged is stored once as soon as a new connection
//! works, and a recorder that is asked to stop ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "recorder/trouble.rs"]
mod trouble;

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use trouble::blackhole;
use trouble::harness::{Directory, Target, write};
use trouble::process::{Process, config_file, database_of};

/// Long enough for everything here on any machine, and no longer than somebody waits.
const LONG: Duration = Duration::from_secs(180);

fn wait_until(what: &str, recorder: &Process, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < LONG, "{what}: {}", recorder.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn wait_until_committed(recorder: &Process) {
    wait_until("it is not committed", recorder, || recorder.metric("loadline_spooled_rows") == 0.0);
    recorder.assert_conserved();
}

fn store(recorder: &Process, name: &str, values: Range<u32>) {
    for value in values {
        assert_eq!(write(recorder.http, &format!("{name},probe=a n={value}i {value}\n")).status, 204);
    }
}

fn assert_stored_once(target: &Target, name: &str, values: u32) {
    let found = target.query(&format!("SELECT COUNT(*), COUNT(DISTINCT n), MIN(n), MAX(n) FROM {name}_values"));
    assert_eq!(found, [format!("{values}|{values}|0|{}", values - 1)], "{}", target.name);
}

/// `[database]` of a target behind a proxy.
fn behind(target: &Target, endpoint: &loadline::database::Endpoint) -> String {
    let (direct, proxied) = (target.endpoint.clone().unwrap().tcp.unwrap().1, endpoint.tcp.clone().unwrap().1);
    database_of(target).replace(&format!(":{direct}/"), &format!(":{proxied}/"))
}

fn a_silent_connection_is_given_up_and_everything_is_stored_once(target: &Target) {
    let directory = Directory::new();
    let (endpoint, hole) = blackhole::start(target.endpoint.as_ref().unwrap());
    let more = "[writer]\nstatement_timeout = \"2s\"\n";
    let recorder = Process::start(&config_file(&directory, &behind(target, &endpoint), more), "");
    store(&recorder, "silent", 0..10);
    wait_until_committed(&recorder);
    // Silence from one statement to the next; then around a commit that never arrives.
    for (round, is_commit) in (1..).zip([false, true, false, true]) {
        let swallowed = hole.swallowed.load(Ordering::SeqCst);
        if is_commit {
            hole.at_commit.store(true, Ordering::SeqCst)
        } else {
            hole.swallow_all()
        }
        store(&recorder, "silent", round * 10..round * 10 + 10);
        wait_until("nothing is swallowed", &recorder, || hole.swallowed.load(Ordering::SeqCst) > swallowed);
        wait_until_committed(&recorder);
    }
    assert!(recorder.said().contains("writer.statement_timeout"), "{}", recorder.said());
    // The old connections' commits arrive at last, at sessions that were ended long ago.
    hole.is_released.store(true, Ordering::SeqCst);
    wait_until("nothing is released", &recorder, || hole.released.load(Ordering::SeqCst) >= 2);
    store(&recorder, "silent", 50..60);
    wait_until_committed(&recorder);
    assert_eq!(recorder.stop(), Some(0));
    assert_stored_once(target, "silent", 60);
}

/// A commit whose connection was given up, and whose session nobody could end, arrives while the next connection writes the same rows.
fn a_commit_that_arrives_late_doubles_nothing(target: &Target) {
    let directory = Directory::new();
    let (endpoint, hole) = blackhole::start(target.endpoint.as_ref().unwrap());
    hole.spares_sessions.store(true, Ordering::SeqCst);
    let more = "[writer]\nstatement_timeout = \"2s\"\n";
    let recorder = Process::start(&config_file(&directory, &behind(target, &endpoint), more), "");
    store(&recorder, "late", 0..10);
    wait_until_committed(&recorder);
    hole.at_commit.store(true, Ordering::SeqCst);
    store(&recorder, "late", 10..20);
    // The next connection writes the same rows, and waits for the ledger's row, which the old session has locked.
    wait_until("nobody waits for the lock", &recorder, || recorder.said().to_lowercase().contains("lock"));
    hole.is_released.store(true, Ordering::SeqCst);
    wait_until_committed(&recorder);
    assert_eq!(hole.released.load(Ordering::SeqCst), 1);
    assert_eq!(recorder.stop(), Some(0));
    assert_stored_once(target, "late", 20);
}

/// With the default time limit, which is longer than the time for writing.
fn a_recorder_that_is_asked_to_stop_ends_whatever_the_server_does(target: &Target) {
    let directory = Directory::new();
    let (endpoint, hole) = blackhole::start(target.endpoint.as_ref().unwrap());
    let config = config_file(&directory, &behind(target, &endpoint), "[writer]\ndrain = \"2s\"\n");
    for is_old_connection in [true, false] {
        hole.let_through();
        let recorder = Process::start(&config, "");
        wait_until("it does not connect", &recorder, || recorder.metric("loadline_spooled_rows") == 0.0);
        let from = if is_old_connection { 0 } else { 10 };
        if is_old_connection {
            store(&recorder, "stopped", from..from + 1);
            wait_until_committed(&recorder);
        }
        let swallowed = hole.swallowed.load(Ordering::SeqCst);
        hole.swallow_for_ever();
        store(&recorder, "stopped", from + u32::from(is_old_connection)..from + 10);
        if is_old_connection {
            wait_until("nothing is swallowed", &recorder, || hole.swallowed.load(Ordering::SeqCst) > swallowed);
        }
        let begun = Instant::now();
        assert_eq!(recorder.stop(), Some(0));
        assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    }
    hole.let_through();
    let recorder = Process::start(&config, "");
    wait_until_committed(&recorder);
    assert_eq!(recorder.stop(), Some(0));
    assert_stored_once(target, "stopped", 20);
}

/// A server that stands still, as one whose machine is suspended: the system below it goes on taking in what is sent.
fn a_server_that_stands_still_keeps_nobody_from_stopping(target: &Target) {
    let directory = Directory::new();
    let config =
        config_file(&directory, &database_of(target), "[writer]\ndrain = \"1s\"\nstatement_timeout = \"1s\"\n");
    let recorder = Process::start(&config, "");
    store(&recorder, "still", 0..10);
    wait_until_committed(&recorder);
    let signal = |signal: libc::c_int| {
        for pid in target.pids() {
            // SAFETY: kill takes no pointer; the processes are those of the server that this test has started.
            unsafe { libc::kill(pid as libc::pid_t, signal) };
        }
    };
    signal(libc::SIGSTOP);
    store(&recorder, "still", 10..15);
    // Also new connections are silent.
    wait_until("nobody notices", &recorder, || recorder.metric("loadline_database_retries_total") >= 3.0);
    signal(libc::SIGCONT);
    wait_until_committed(&recorder);
    signal(libc::SIGSTOP);
    store(&recorder, "still", 15..20);
    let begun = Instant::now();
    let ended = recorder.stop();
    let took = begun.elapsed();
    signal(libc::SIGCONT);
    assert_eq!(ended, Some(0));
    assert!(took < Duration::from_secs(20), "{took:?}");
    let recorder = Process::start(&config, "");
    wait_until_committed(&recorder);
    assert_eq!(recorder.stop(), Some(0));
    assert_stored_once(target, "still", 20);
}

fn silence(target: &Target) {
    a_silent_connection_is_given_up_and_everything_is_stored_once(target);
    a_commit_that_arrives_late_doubles_nothing(target);
    a_recorder_that_is_asked_to_stop_ends_whatever_the_server_does(target);
    a_server_that_stands_still_keeps_nobody_from_stopping(target);
}

#[test]
fn a_silent_mariadb() {
    silence(&Target::server("mariadb"));
}

#[test]
fn a_silent_postgresql() {
    silence(&Target::server("postgres"));
}
