//! Databases that forget what they have committed: they are refused, set right where a session may, or what they may forget is kept in the
//! spool and written again after their crash.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[path = "recorder/revive.rs"]
mod revive;

use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::{Directory, Target, try_send};
use process::{Process, config_file, database_of};
use revive::Revived;

const ROWS: u64 = 5;
const CLIENTS: u64 = 3;

/// Waits until something is so, however long a busy machine takes.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends request after request until it is over; how many were acknowledged. Now and then there is a new field.
fn send_until(http: std::net::SocketAddr, client: u64, ends: &AtomicBool, acknowledged: &AtomicU64) -> u64 {
    let mut next = 0;
    while !ends.load(Ordering::Relaxed) {
        let row = |row| format!("lost,client=c{client} f={}i,new{}=1\n", next * ROWS + row, next / 50 % 20);
        let body: String = (0..ROWS).map(row).collect();
        let headers = format!("X-Loadline-Source: c{client}\r\nIdempotency-Key: c{client}-{next}\r\n");
        if try_send(http, "POST", "/write", &headers, body.as_bytes()).is_some_and(|answer| answer.status == 204) {
            next += 1;
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    next
}

/// Ends the clients, also when the test fails: a scope waits for its threads.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Kills a server that forgets, under load, until it has forgotten commits twice; in the end each acknowledged record is there once.
fn kill_until_it_forgets(name: &'static str, config: &[(&str, &str)], setting: &str) {
    let directory = Directory::new();
    let target = Target::server_with(name, config);
    let processes = target.pids();
    let mut revived = Revived::of(processes[0], target.endpoint.as_ref().unwrap());
    let more = "[writer]\ncount = 2\nbatch = 20\nkeep = \"1s\"\ndrain = \"60s\"\n";
    let process = Process::start(&config_file(&directory, &database_of(&target), more), "");
    let (ends, acknowledged) = (AtomicBool::new(false), AtomicU64::new(0));
    let sent: Vec<u64> = std::thread::scope(|scope| {
        let (ends, acknowledged, http) = (&ends, &acknowledged, process.http);
        let client = |client| scope.spawn(move || send_until(http, client, ends, acknowledged));
        let clients: Vec<_> = (0..CLIENTS).map(client).collect();
        let _ending = Ending(ends);
        let mut rounds = 0;
        while process.metric("loadline_database_forgot_total") < 2.0 {
            rounds += 1;
            assert!(rounds < 20, "it forgets nothing, and the test says nothing");
            let before = acknowledged.load(Ordering::Relaxed);
            wait_until("it takes in", || acknowledged.load(Ordering::Relaxed) >= before + 60);
            wait_until("it writes", || process.metric("loadline_kept_rows") > 0.0);
            process.assert_conserved();
            let connections = process.metric("loadline_database_connections_total");
            revived.kill_and_start(&processes);
            let is_back = || process.metric("loadline_database_connections_total") >= connections + 1.0;
            wait_until("it is connected again", is_back);
        }
        ends.store(true, Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(process.metric("loadline_rewritten_rows_total") > 0.0);
    let named = format!("loadline_database_may_forget{{setting=\"{setting}\",value=\"{}\"}}", config[0].1);
    assert_eq!(process.metric(&named), 1.0);
    assert!(process.said().contains("the spool keeps it meanwhile"), "{}", process.said());
    wait_until("nothing is kept any more", || process.metric("loadline_spooled_rows") == 0.0);
    process.assert_conserved();
    // Nothing is needed of the spool now: what it gave up is on the disk.
    revived.kill_and_start(&processes);
    wait_until("it answers", || target.open().connect().is_ok());
    let rows: u64 = sent.iter().sum::<u64>() * ROWS;
    let sql = "SELECT COUNT(*), COUNT(DISTINCT record_id) FROM lost_values";
    assert_eq!(target.query(sql), [format!("{rows}|{rows}")], "0 lost, 0 doubled");
    let sql = "SELECT i.client, COUNT(DISTINCT v.f), MAX(v.f) FROM lost_values v \
               JOIN lost_identity i ON i.measurement = v.measurement GROUP BY i.client ORDER BY i.client";
    let expected: Vec<_> = (0..CLIENTS)
        .zip(&sent)
        .map(|(client, sent)| format!("c{client}|{0}|{1}", sent * ROWS, sent * ROWS - 1))
        .collect();
    assert_eq!(target.query(sql), expected);
    let order = "SELECT COUNT(*) FROM lost_values a JOIN lost_values b ON a.measurement = b.measurement AND a.f = b.f + 1 \
                 WHERE a.record_id < b.record_id";
    assert_eq!(target.query(order), ["0"], "each source's order is kept");
    assert_eq!(process.stop(), Some(0));
    // What the crash undid of the ends alone is found at the next start.
    let process = Process::start(&config_file(&directory, &database_of(&target), more), "");
    wait_until("it is connected", || process.metric("loadline_writers_connected") == 2.0);
    assert_eq!(process.stop(), Some(0));
    let ends = "SELECT COUNT(*) FROM lost_identity i WHERE i.end_ns <> \
                (SELECT MAX(v.time_ns) FROM lost_values v WHERE v.measurement = i.measurement)";
    assert_eq!(target.query(ends), ["0"], "the end of a measurement is that of its newest record");
    drop(revived);
}

#[test]
fn what_mariadb_forgets_is_written_again() {
    let config = [("innodb_flush_log_at_trx_commit", "0"), ("innodb_flush_log_at_timeout", "2")];
    kill_until_it_forgets("mariadb", &config, "innodb_flush_log_at_trx_commit");
}

#[test]
fn what_postgresql_forgets_is_written_again() {
    kill_until_it_forgets(
        "postgres",
        &[("synchronous_commit", "off"), ("wal_writer_delay", "2s")],
        "synchronous_commit",
    );
}

/// Status and sentence of a recorder that must not start.
fn refusal(directory: &Directory, target: &Target, more: &str) -> String {
    let config = config_file(directory, &database_of(target), more);
    let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(2), "{said}");
    said
}

#[test]
fn a_mariadb_that_forgets_is_refused_unless_what_it_forgets_is_kept() {
    let directory = Directory::new();
    let target = Target::server_with("mariadb", &[("innodb_flush_log_at_trx_commit", "2")]);
    let said = refusal(&directory, &target, "");
    for part in ["innodb_flush_log_at_trx_commit is 2", "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "writer.keep"]
    {
        assert!(said.contains(part), "{part} is missing: {said}");
    }
    // Messages of NATS are answered after the commit, and are in no spool.
    let nats =
        "[writer]\nkeep = \"1s\"\n[intake.nats]\nurl = \"nats://127.0.0.1:1\"\nstream = \"s\"\nconsumer = \"c\"\n";
    assert!(refusal(&directory, &target, nats).contains("innodb_flush_log_at_trx_commit is 2"));
    target.session().run("SET GLOBAL innodb_flush_log_at_trx_commit = 1").unwrap();
    let process = Process::start(&config_file(&directory, &database_of(&target), ""), "");
    let answer = try_send(process.http, "POST", "/write", "", b"m,host=h f=1").unwrap();
    assert_eq!(answer.status, 204);
    wait_until("it is committed", || process.metric("loadline_committed_rows_total") == 1.0);
    // A setting that is changed while it runs is seen at the next connection; until it is mended nothing is written, and nothing lost.
    assert_eq!(process.stop(), Some(0));
    target.session().run("CREATE TABLE loadline_other (a INT) ENGINE = MyISAM").unwrap();
    assert!(
        refusal(&directory, &target, "[writer]\nkeep = \"1s\"\n")
            .contains("ALTER TABLE loadline_other ENGINE = InnoDB")
    );
}

#[test]
fn a_postgresql_that_forgets_is_told_to_sync_the_recorders_commits_and_one_without_syncs_is_refused() {
    let directory = Directory::new();
    let target = Target::server_with("postgres", &[("synchronous_commit", "off")]);
    let process = Process::start(&config_file(&directory, &database_of(&target), ""), "");
    assert_eq!(try_send(process.http, "POST", "/write", "", b"m,host=h f=1").unwrap().status, 204);
    wait_until("it is committed", || process.metric("loadline_committed_rows_total") == 1.0);
    assert!(process.said().contains("to=\"synchronous_commit = on\""), "{}", process.said());
    assert_eq!(process.metric("loadline_kept_rows"), 0.0);
    assert_eq!(process.stop(), Some(0));
    target.session().run("ALTER SYSTEM SET fsync = off").unwrap();
    target.session().run("SELECT pg_reload_conf()").unwrap();
    wait_until("it is off", || target.query("SHOW fsync") == ["off"]);
    let said = refusal(&directory, &target, "[writer]\nkeep = \"1s\"\n");
    assert!(said.contains("fsync is off") && said.contains("set fsync = on"), "{said}");
}

#[test]
fn a_sqlite_whose_journal_may_come_back_is_told_to_sync_its_folder_too() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    // The journal's mode is a property of the file: one that was there before stays as it is.
    let path = target.settings.path.clone().unwrap();
    rusqlite::Connection::open(path)
        .unwrap()
        .execute_batch("PRAGMA journal_mode = delete; CREATE TABLE other (a)")
        .unwrap();
    let process = Process::start(&config_file(&directory, &database_of(&target), ""), "");
    assert_eq!(try_send(process.http, "POST", "/write", "", b"m,host=h f=1").unwrap().status, 204);
    assert!(process.said().contains("to=\"synchronous = extra\""), "{}", process.said());
    assert_eq!(process.stop(), Some(0));
}
