//! What is acknowledged is stored once, whatever ends: the recorder killed under load again and again, connections cut around COMMIT,
//! the database away for a while, a disk that fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[path = "recorder/proxy.rs"]
mod proxy;
#[path = "recorder/revive.rs"]
mod revive;

use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::{Directory, Started, Target, send, try_send, write};
use process::{Process, config_file, database_of};
use revive::Revived;

/// A client that sends request after request, each until it is acknowledged, and begins the next round with the one that was not.
struct Client {
    number: usize,
    next: u64,
}

const ROWS: u64 = 5;

impl Client {
    fn send_until(&mut self, address: SocketAddr, ends: &AtomicBool, acknowledged: &AtomicU64) {
        while !ends.load(Ordering::Relaxed) {
            // Fields come up while it goes on, so that the tables are extended in the midst of it.
            let new = self.next / 20 % 30;
            let row = |row| format!("kill,client=c{} f={}i,new{new}=1", self.number, self.next * ROWS + row);
            let rows: Vec<_> = (0..ROWS).map(row).collect();
            let headers = format!("X-Loadline-Source: c{0}\r\nIdempotency-Key: c{0}-{1}\r\n", self.number, self.next);
            let answer = try_send(address, "POST", "/write", &headers, rows.join("\n").as_bytes());
            if answer.is_some_and(|answer| answer.status == 204) {
                self.next += 1;
                acknowledged.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The reasons why records are in quarantine.
fn quarantined(config: &str) -> String {
    let spool = std::path::Path::new(config).with_file_name("disk/spool");
    let listed = loadline::recorder::spool::list(&spool, 5).unwrap();
    listed.iter().map(|record| format!("{}: {}\n", record.line.trim(), record.reason)).collect()
}

/// Kills the recorder under load at random moments, sometimes while it starts; in the end each acknowledged record is there once.
fn kill_again_and_again(target: &Target, config: &str, rounds: u64) {
    let mut clients: Vec<_> = (0..6).map(|number| Client { number, next: 0 }).collect();
    let acknowledged = AtomicU64::new(0);
    let mut random = u64::from(std::process::id()) | 1;
    println!("seed {random}");
    let mut pause = |most_ms: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Duration::from_millis((random >> 33) % most_ms)
    };
    for round in 0..rounds {
        if round % 4 == 3 {
            Process::start_and_kill(config, pause(60));
        }
        let process = Process::start(config, "");
        let (ends, before) = (AtomicBool::new(false), acknowledged.load(Ordering::Relaxed));
        std::thread::scope(|scope| {
            for client in &mut clients {
                let (ends, acknowledged, http) = (&ends, &acknowledged, process.http);
                scope.spawn(move || client.send_until(http, ends, acknowledged));
            }
            // Not before it has answered, and then at another moment each time.
            while acknowledged.load(Ordering::Relaxed) < before + 10 {
                std::thread::sleep(Duration::from_millis(5));
            }
            std::thread::sleep(pause(200));
            process.kill();
            ends.store(true, Ordering::Relaxed);
        });
    }
    let process = Process::start(config, "");
    let acknowledged_last = AtomicU64::new(0);
    for client in &mut clients {
        // What was not answered is sent again.
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let (ends, acknowledged_last, http) = (&ends, &acknowledged_last, process.http);
            let before = acknowledged_last.load(Ordering::Relaxed);
            scope.spawn(move || client.send_until(http, ends, acknowledged_last));
            while acknowledged_last.load(Ordering::Relaxed) == before {
                std::thread::sleep(Duration::from_millis(2));
            }
            ends.store(true, Ordering::Relaxed);
        });
    }
    process.assert_conserved();
    assert_eq!(process.metric("loadline_quarantined_rows"), 0.0, "{}", quarantined(config));
    assert_eq!(process.stop(), Some(0));
    let sent: u64 = clients.iter().map(|client| client.next * ROWS).sum();
    assert!(sent > rounds * 10 * ROWS);
    let sql = "SELECT COUNT(*), COUNT(DISTINCT record_id) FROM kill_values";
    assert_eq!(target.query(sql), [format!("{sent}|{sent}")]);
    let sql = "SELECT i.client, COUNT(DISTINCT v.f), MAX(v.f) FROM kill_values v \
               JOIN kill_identity i ON i.measurement = v.measurement GROUP BY i.client ORDER BY i.client";
    let expected: Vec<_> = clients
        .iter()
        .map(|client| format!("c{}|{}|{}", client.number, client.next * ROWS, client.next * ROWS - 1))
        .collect();
    assert_eq!(target.query(sql), expected);
    let order = "SELECT COUNT(*) FROM kill_values a JOIN kill_values b ON a.measurement = b.measurement AND a.f = b.f + 1 \
                 WHERE a.record_id < b.record_id";
    assert_eq!(target.query(order), ["0"], "each source's order is kept");
    let identities = target.query("SELECT COUNT(*) FROM kill_identity");
    assert_eq!(identities, ["6"], "identities are written once");
    let ends = "SELECT COUNT(*) FROM kill_identity i WHERE i.end_ns < \
                (SELECT MAX(v.time_ns) FROM kill_values v WHERE v.measurement = i.measurement)";
    assert_eq!(target.query(ends), ["0"], "no measurement's end is behind");
}

/// Kills the recorder while it makes the tables of one measurement after the other, whose records have ever new fields: what it has
/// made by then is taken over, and no record is turned away for it.
fn kill_while_tables_are_made(target: &Target, config: &str, rounds: u64) {
    let mut sent = 0_u64;
    for round in 0..rounds {
        let process = Process::start(config, "");
        let stored = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for client in 0..3 {
                let (stored, http) = (&stored, process.http);
                scope.spawn(move || {
                    for number in 0.. {
                        let field = format!("f{client}x{}", number % 9);
                        let line = format!("made{round},client=c{client} n={number}i,{field}=1i");
                        match try_send(
                            http,
                            "POST",
                            "/write",
                            &format!("X-Loadline-Source: c{client}\r\n"),
                            line.as_bytes(),
                        ) {
                            Some(answer) if answer.status == 204 => stored.fetch_add(1, Ordering::Relaxed),
                            _ => break,
                        };
                    }
                });
            }
            // As soon as the first or the last of its tables is there, or a little later.
            let table = format!("made{round}_{}", ["identity", "values"][round as usize % 2]);
            let mut session = target.session();
            while session.query(&format!("SELECT 1 FROM {table} WHERE 1 = 0")).is_err() {
                std::thread::sleep(Duration::from_micros(200));
            }
            std::thread::sleep(Duration::from_millis(round / 2));
            process.kill();
        });
        sent += stored.into_inner();
    }
    let process = Process::start(config, "");
    let last: Vec<_> = (0..rounds).map(|round| format!("made{round},client=c0,last=t n=0i,last=1i")).collect();
    assert_eq!(send(process.http, "POST", "/write", "", last.join("\n").as_bytes()).status, 204);
    sent += rounds;
    process.assert_conserved();
    let ended = process.stop();
    assert_eq!((quarantined(config).as_str(), ended), ("", Some(0)));
    let select = |round| format!("SELECT COUNT(*) FROM made{round}_values");
    let stored: u64 =
        (0..rounds).flat_map(|round| target.query(&select(round))).map(|count| count.parse::<u64>().unwrap()).sum();
    // Requests whose answer the kill cut off may be there too.
    assert!((sent..=sent + 3 * rounds).contains(&stored), "{stored} of {sent}");
}

#[test]
fn recorders_that_are_killed_while_they_make_tables_in_sqlite_leave_what_the_next_one_can_use() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n");
    kill_while_tables_are_made(&target, &config, 12);
}

#[test]
fn recorders_that_are_killed_while_they_make_tables_in_mariadb_leave_what_the_next_one_can_use() {
    let directory = Directory::new();
    let target = Target::server("mariadb");
    let config = config_file(&directory, &database_of(&target), "[writer]\ncount = 3\ndrain = \"60s\"\n");
    kill_while_tables_are_made(&target, &config, 12);
}

#[test]
fn a_recorder_into_sqlite_that_is_killed_again_and_again_loses_and_repeats_nothing() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n");
    kill_again_and_again(&target, &config, 12);
}

#[test]
fn a_recorder_into_mariadb_that_is_killed_again_and_again_loses_and_repeats_nothing() {
    let directory = Directory::new();
    let target = Target::server("mariadb");
    // Three writers: each source keeps its order all the same.
    let config = config_file(&directory, &database_of(&target), "[writer]\ncount = 3\ndrain = \"60s\"\n");
    kill_again_and_again(&target, &config, 12);
}

/// Sends requests one after the other, each until it is acknowledged.
fn send_all(started: &Started, requests: std::ops::Range<u64>) {
    for request in requests {
        let body: String = (0..ROWS).map(|row| format!("cut,host=h f={}i {request}\n", request * ROWS + row)).collect();
        let headers = format!("Idempotency-Key: {request}\r\n");
        let begun = Instant::now();
        while send(started.http, "POST", "/write", &headers, body.as_bytes()).status != 204 {
            assert!(begun.elapsed() < Duration::from_secs(240));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn assert_stored_once(target: &Target, requests: u64) {
    let rows = requests * ROWS;
    let sql = "SELECT COUNT(*), COUNT(DISTINCT f), COUNT(DISTINCT record_id) FROM cut_values";
    assert_eq!(target.query(sql), [format!("{rows}|{rows}|{rows}")]);
}

#[test]
fn a_commit_whose_answer_is_lost_is_neither_repeated_nor_forgotten() {
    for name in ["mariadb", "postgres"] {
        let directory = Directory::new();
        let target = Target::server(name);
        let (endpoint, orders) = proxy::start(target.endpoint.as_ref().unwrap());
        let config = target.config(&directory, "name = \"star\"", "[writer]\nbatch = 20\ndrain = \"60s\"");
        let started = Started::new(&config, target.open_at(Some(&endpoint)));
        send_all(&started, 0..10);
        orders.cuts.store(8, Ordering::Relaxed);
        send_all(&started, 10..200);
        started.wait_until_committed();
        assert!(orders.was_cut.load(Ordering::Relaxed) >= 2, "{name}: nothing was cut");
        assert_eq!(started.stop().counts.quarantined, 0);
        assert_stored_once(&target, 200);
    }
}

#[test]
fn a_database_that_is_killed_again_and_again_has_each_record_once() {
    for name in ["mariadb", "postgres"] {
        let directory = Directory::new();
        let target = Target::server(name);
        let (endpoint, processes) = (target.endpoint.clone().unwrap(), target.pids());
        let mut revived = Revived::of(processes[0], &endpoint);
        let started = target.start(&directory, "name = \"star\"", "[writer]\nbatch = 20\ndrain = \"60s\"");
        for round in 0..4 {
            let sent = std::thread::scope(|scope| {
                let sending = scope.spawn(|| send_all(&started, round * 40..(round + 1) * 40));
                // In the midst of its commits, another moment each time.
                while started.recorder.counts().committed < round * 40 * ROWS + 5 * ROWS {
                    std::thread::sleep(Duration::from_millis(1 + round));
                }
                revived.kill_and_start(&processes);
                sending.join()
            });
            sent.unwrap();
            started.wait_until_committed();
        }
        assert_eq!(started.stop().counts.quarantined, 0);
        assert_stored_once(&target, 160);
        drop(revived);
    }
}

#[test]
fn a_database_that_is_a_hundred_times_as_slow_slows_nobody_down_but_itself() {
    let directory = Directory::new();
    let mut target = Target::server("mariadb");
    let (endpoint, orders) = proxy::start(target.endpoint.as_ref().unwrap());
    target.endpoint = Some(endpoint);
    let process = Process::start(&config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n"), "");
    let post = |request: u64| {
        let body: String = (0..ROWS).map(|row| format!("cut,host=h f={}i {request}\n", request * ROWS + row)).collect();
        assert_eq!(send(process.http, "POST", "/write", "", body.as_bytes()).status, 204);
    };
    (0..20).for_each(post);
    // A packet through the proxy takes some 50 µs otherwise; a transaction has several.
    orders.delay_ms.store(20, Ordering::Relaxed);
    (20..400).for_each(post);
    process.assert_conserved();
    assert!(process.metric("loadline_spooled_rows") > 0.0, "nobody waited for it");
    orders.delay_ms.store(0, Ordering::Relaxed);
    assert_eq!(process.stop(), Some(0));
    assert_stored_once(&target, 400);
}

#[test]
fn while_the_database_is_away_records_are_taken_in_until_the_spool_is_full() {
    let directory = Directory::new();
    let target = Target::server("mariadb");
    let (endpoint, orders) = proxy::start(target.endpoint.as_ref().unwrap());
    let mut config = target.config(&directory, "name = \"star\"", "[writer]\ndrain = \"60s\"");
    config.spool.bound_bytes = 100_000;
    let started = Started::new(&config, target.open_at(Some(&endpoint)));
    send_all(&started, 0..5);
    started.wait_until_committed();
    orders.is_down.store(true, Ordering::Relaxed);
    let mut taken = 5;
    let refusal = loop {
        let body: String = (0..ROWS).map(|row| format!("cut,host=h f={}i {taken}\n", taken * ROWS + row)).collect();
        let answer = write(started.http, &body);
        if answer.status != 204 {
            break answer;
        }
        taken += 1;
    };
    assert_eq!(refusal.status, 503);
    assert!(refusal.head.contains("retry-after: ") && refusal.body.contains("full"), "{refusal:?}");
    assert!(taken > 100, "{taken}");
    assert_eq!(send(started.http, "GET", "/ready", "", b"").status, 503);
    assert_eq!(started.recorder.counts().spooled, (taken - 5) * ROWS);
    orders.is_down.store(false, Ordering::Relaxed);
    started.wait_until_committed();
    send_all(&started, taken..taken + 1);
    started.wait_until_committed();
    started.stop();
    assert_stored_once(&target, taken + 1);
}

#[test]
fn what_was_not_written_when_the_time_was_over_is_written_by_the_next_recorder() {
    let directory = Directory::new();
    let target = Target::server("postgres");
    let (endpoint, orders) = proxy::start(target.endpoint.as_ref().unwrap());
    let config = target.config(&directory, "name = \"star\"", "[writer]\ndrain = \"100ms\"");
    let started = Started::new(&config, target.open_at(Some(&endpoint)));
    send_all(&started, 0..3);
    started.wait_until_committed();
    orders.is_down.store(true, Ordering::Relaxed);
    send_all(&started, 3..20);
    assert_eq!(started.stop().counts.spooled, 17 * ROWS);
    orders.is_down.store(false, Ordering::Relaxed);
    let started = Started::new(&config, target.open_at(Some(&endpoint)));
    started.wait_until_committed();
    started.stop();
    assert_stored_once(&target, 20);
}

/// Writing beyond a limit fails with EFBIG, which no database expects: acknowledgement ends, and so does the process.
#[test]
fn a_limit_of_file_sizes_that_leaves_no_room_is_named_at_the_start() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    let program = env!("CARGO_BIN_EXE_loadline");
    let command = format!("trap '' XFSZ; ulimit -f 4000; exec '{program}' record '{config}'");
    let ended = Command::new("bash").args(["-c", &command]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(said.contains("no file have more than") && said.contains("ulimit -f"), "{said}");
    assert!([Some(1), Some(2)].contains(&ended.status.code()), "{ended:?}");
}

#[test]
fn a_configuration_is_read_again_under_load() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "[writer]\ndrain = \"60s\"\n");
    let process = Process::start(&config, "");
    let ends = Arc::new(AtomicBool::new(false));
    let acknowledged = Arc::new(AtomicU64::new(0));
    std::thread::scope(|scope| {
        let mut client = Client { number: 0, next: 0 };
        let (ends_here, acknowledged_here, http) = (Arc::clone(&ends), Arc::clone(&acknowledged), process.http);
        scope.spawn(move || client.send_until(http, &ends_here, &acknowledged_here));
        for round in 0..10 {
            let text = std::fs::read_to_string(&config).unwrap();
            let text = text.split("[admission]").next().unwrap().to_owned();
            let wrong = if round % 3 == 0 { "nonsense = 1\n" } else { "" };
            std::fs::write(&config, format!("{text}[admission]\nbelow = \"{}ms\"\n{wrong}", 50 + round)).unwrap();
            process.signal(libc::SIGHUP);
            std::thread::sleep(Duration::from_millis(60));
        }
        ends.store(true, Ordering::Relaxed);
    });
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    let sent = acknowledged.load(Ordering::Relaxed) * ROWS;
    assert!(sent > 0);
    assert_eq!(target.query("SELECT COUNT(*) FROM kill_values"), [sent.to_string()]);
}
