//! Recorders that share a stream: each source keeps its order, and every record is stored once, whoever of them is killed, paused, cut off or added. All together
//! stay below the load line.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[path = "recorder/model.rs"]
mod model;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/nats.rs"]
mod nats;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[path = "recorder/proxy.rs"]
mod proxy;
#[path = "recorder_shared/senders.rs"]
mod senders;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "report/synthetic.rs"]
mod synthetic;

use std::collections::HashMap;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream;
use async_nats::jetstream::stream::{Config as StreamConfig, RetentionPolicy};
use loadline::database::Endpoint;

use harness::{Directory, Target};
use model::run_of;
use nats::Nats;
use process::{Process, database_of};

const PARTS: u32 = 12;
const SOURCES: usize = 300;
const LEASE: Duration = Duration::from_secs(3);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// Waits for something that takes as long as it takes, at most four minutes.
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Where a recorder finds its servers, and its group.
#[derive(Clone)]
struct Place {
    database: String,
    nats: String,
    group: &'static str,
    /// Whether requests over HTTP go into the stream.
    publishes: bool,
    more: String,
}

/// Writes the configuration of a recorder with a directory of its own.
fn config(directory: &Directory, number: u32, place: &Place) -> String {
    let (path, spool) = (directory.path(&format!("{number}.toml")), directory.path(&format!("spool{number}")));
    let Place { database, nats, group, publishes, more } = place;
    let listens = if *publishes { "publish = true\n[intake.http]" } else { "[metrics]" };
    let text = format!(
        "[database]\n{database}\n[spool]\npath = \"{spool}\"\nbound = \"64MiB\"\n[intake.nats]\nurl = \"{nats}\"\nstream = \"measurements\"\n\
         consumer = \"{group}\"\nshared = true\npartitions = {PARTS}\nlease = \"{}s\"\n{listens}\nlisten = \"127.0.0.1:0\"\n{more}",
        LEASE.as_secs()
    );
    std::fs::write(&path, text).unwrap();
    path
}

fn start(directory: &Directory, number: u32, place: &Place) -> Process {
    Process::start_until(&config(directory, number, place), "", if place.publishes { "http" } else { "metrics" })
}

/// The number of parts that a recorder has.
fn held(process: &Process) -> u32 {
    process.metric("loadline_stream_parts_held") as u32
}

fn rate(process: &Process) -> f64 {
    process.metric("loadline_admission_rate_rows_per_second")
}

/// Publishes what each of the sources has sent, in turns, two records a message, with numbers that rise.
fn publish(url: &str, messages: std::ops::Range<usize>) {
    runtime().block_on(async {
        let context = jetstream::new(async_nats::connect(url).await.unwrap());
        let mut acknowledged = Vec::new();
        for message in messages {
            let (source, number) = (message % SOURCES, message / SOURCES * 2);
            let line = |number| format!("n,source=s{source} f={number}i {number}\n");
            let body = line(number) + &line(number + 1);
            acknowledged.push(context.publish(format!("measured.s{source}"), body.into()).await.unwrap());
            if acknowledged.len() == 200 {
                for one in acknowledged.drain(..) {
                    one.await.unwrap();
                }
            }
        }
        for one in acknowledged {
            one.await.unwrap();
        }
    });
}

fn stored(target: &Target) -> usize {
    let found = target.session().query("SELECT COUNT(*) FROM n_values");
    found.ok().and_then(|rows| rows[0][0].as_ref()?.parse().ok()).unwrap_or(0)
}

/// Every record of so many messages is there once, and each source's in its order.
fn assert_all_in_order(target: &Target, messages: usize) {
    let rows =
        target.query("SELECT i.source, v.f FROM n_values v JOIN n_identity i USING (measurement) ORDER BY v.record_id");
    let mut of_source: HashMap<&str, Vec<usize>> = HashMap::new();
    for row in &rows {
        let (source, number) = row.split_once('|').unwrap();
        of_source.entry(source).or_default().push(number.parse().unwrap());
    }
    assert_eq!(rows.len(), 2 * messages);
    assert_eq!(of_source.len(), SOURCES.min(messages));
    for (source, numbers) in of_source {
        let place: usize = source.trim_start_matches('s').parse().unwrap();
        let own = 2 * (place..messages).step_by(SOURCES).count();
        assert!(numbers.iter().copied().eq(0..own), "{source}: {numbers:?}");
    }
}

/// What several recorders said of themselves at one moment: parts and rates.
///
/// They cannot be asked at the same time. What all of them say twice in a row, each has been for all of the time between.
fn at_one_moment(processes: &[&Process]) -> Option<(u32, f64)> {
    let names =
        ["held", "taken_total", "given_total", "lost_total"].map(|name| format!("loadline_stream_parts_{name}"));
    let look = || -> Vec<_> {
        let of = |process: &&Process| (names.each_ref().map(|name| process.metric(name) as u32), rate(process));
        processes.iter().map(of).collect()
    };
    let (before, after) = (look(), look());
    (before == after)
        .then(|| (after.iter().map(|(counts, _)| counts[0]).sum(), after.iter().map(|(_, rate)| rate).sum()))
}

/// Waits until these recorders have all parts; they never have more together, nor more than the load line.
fn wait_for_all_parts(processes: &[&Process], line: f64) {
    wait_until("all parts have a recorder", || {
        let Some((parts, rate)) = at_one_moment(processes) else { return false };
        assert!(parts <= PARTS && rate <= line * 1.000_001, "{parts} parts, {rate} of {line} rows/s");
        parts == PARTS && processes.iter().all(|process| held(process) > 0)
    });
}

fn everything(directory: &Directory) -> (Nats, Target, Place) {
    everything_with(directory, "postgres")
}

fn everything_with(directory: &Directory, database: &'static str) -> (Nats, Target, Place) {
    let nats = Nats::start_in_parts(directory.path("nats"), PARTS);
    let target = Target::server(database);
    let (database, url, more) = (database_of(&target), nats.url(), String::new());
    let place = Place { database, nats: url, group: "loadline", publishes: false, more };
    (nats, target, place)
}

#[test]
fn recorders_that_share_a_stream_store_all_of_it_once_in_order_below_the_line_whatever_happens_to_them() {
    const MESSAGES: usize = 15_000;
    let directory = Directory::new();
    let (nats, target, mut place) = everything(&directory);
    place.more = format!("[admission]\nmodel = \"{}\"\nbelow = \"6ms\"\n", run_of(&directory, "run", 4, 5));
    let first = start(&directory, 1, &place);
    wait_until("one that is alone has all parts", || held(&first) == PARTS);
    let line = rate(&first);
    // 99 % of an M/M/1 server's response times are below t at mu - ln(100) / t arrivals a second.
    assert!((line / (5.0 * (1000.0 - 100_f64.ln() / 0.006)) - 1.0).abs() < 0.1, "{line}");
    let (second, third) = (start(&directory, 2, &place), start(&directory, 3, &place));
    wait_for_all_parts(&[&first, &second, &third], line);
    wait_until("each has its share", || {
        [&first, &second, &third].into_iter().all(|process| held(process) == PARTS / 3)
    });
    let (begun, url) = (Instant::now(), nats.url());
    let publisher = std::thread::spawn(move || publish(&url, 0..MESSAGES));
    wait_until("it goes on", || stored(&target) > 3_000);
    first.kill();
    wait_for_all_parts(&[&second, &third], line);
    let fourth = start(&directory, 4, &place);
    wait_for_all_parts(&[&second, &third, &fourth], line);
    // A moment in which it has messages on their way to the database.
    second.signal(libc::SIGSTOP);
    let stopped = Instant::now();
    wait_for_all_parts(&[&third, &fourth], line);
    std::thread::sleep((2 * LEASE).saturating_sub(stopped.elapsed()));
    second.signal(libc::SIGCONT);
    wait_for_all_parts(&[&second, &third, &fourth], line);
    publisher.join().unwrap();
    assert_eq!(third.stop(), Some(0), "and one leaves in order");
    wait_for_all_parts(&[&second, &fourth], line);
    wait_until("everything is stored", || stored(&target) >= 2 * MESSAGES);
    let (passed_s, most) = (begun.elapsed().as_secs_f64(), 2.0 * MESSAGES as f64);
    // What a bucket holds may come on top.
    assert!(most <= line * (passed_s + 1.0), "{most} rows in {passed_s} s, and the line is {line}");
    for process in [second, fourth] {
        assert_eq!(process.metric("loadline_quarantined_rows"), 0.0);
        assert_eq!(process.stop(), Some(0));
    }
    assert_all_in_order(&target, MESSAGES);
}

/// As if every lease were broken: recorders of two groups write the same parts into one database at the same time, and take them from each other all
/// the time. Only the ledger stands between them.
#[test]
fn the_ledger_alone_keeps_two_holders_of_a_part_from_storing_a_record_twice_or_out_of_order() {
    ["postgres", "mariadb"].into_iter().for_each(fight);
}

fn fight(database: &'static str) {
    const MESSAGES: usize = 6_000;
    let directory = Directory::new();
    let (nats, target, place) = everything_with(&directory, database);
    runtime().block_on(async {
        let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
        let subjects = (0..PARTS).map(|part| format!("measurements.{part}.>")).collect();
        let retention = RetentionPolicy::Limits;
        let stream = StreamConfig { name: "measurements".to_owned(), subjects, retention, ..StreamConfig::default() };
        context.create_stream(stream).await.unwrap();
    });
    let other = Place { group: "other", ..place.clone() };
    let url = nats.url();
    let publisher = std::thread::spawn(move || publish(&url, 0..MESSAGES));
    let (one, two) = (start(&directory, 1, &place), start(&directory, 2, &other));
    publisher.join().unwrap();
    wait_until("everything is stored", || stored(&target) >= 2 * MESSAGES);
    wait_until("one has taken a part from the other", || {
        [&one, &two].iter().any(|process| process.said().contains("same intake.nats.consumer"))
    });
    assert_eq!((one.stop(), two.stop()), (Some(0), Some(0)));
    assert_all_in_order(&target, MESSAGES);
}

/// Its transaction has new series and the part's row, on which others wait; the next holder's session ends it.
#[test]
fn a_recorder_that_is_stopped_in_the_middle_of_a_transaction_holds_nobody_up() {
    const ROWS: usize = 1_000;
    let directory = Directory::new();
    let (nats, target, place) = everything(&directory);
    let first = start(&directory, 1, &place);
    wait_until("it has all parts", || held(&first) == PARTS);
    let mut session = target.session();
    let of_parts = "application_name LIKE 'loadline-part-%' AND xact_start IS NOT NULL";
    let count = format!("SELECT COUNT(*) FROM pg_stat_activity WHERE {of_parts}");
    let mut is_open = || session.query(&count).unwrap()[0][0].as_deref() != Some("0");
    let mut messages = 0;
    wait_until("it is stopped within a transaction", || {
        publish_large(&nats.url(), messages, ROWS);
        messages += 1;
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(500) {
            if is_open() {
                first.signal(libc::SIGSTOP);
                std::thread::sleep(Duration::from_millis(300));
                if is_open() {
                    return true;
                }
                first.signal(libc::SIGCONT);
            }
        }
        false
    });
    let second = start(&directory, 2, &place);
    wait_until("everything is stored", || stored(&target) >= messages * ROWS);
    first.signal(libc::SIGCONT);
    wait_for_all_parts(&[&first, &second], f64::INFINITY);
    assert_eq!((first.stop(), second.stop()), (Some(0), Some(0)));
    let numbers = target.query("SELECT f FROM n_values ORDER BY record_id");
    assert!(numbers.iter().map(|number| number.parse::<usize>().unwrap()).eq(0..messages * ROWS), "{}", numbers.len());
}

/// Publishes a message of a source, with so many records, each of a series that only this message has.
fn publish_large(url: &str, message: usize, rows: usize) {
    let text = "x".repeat(600);
    let line = |row| format!("n,source=s,message=m{message} f={}i,text=\"{text}\"\n", message * rows + row);
    let body: String = (0..rows).map(line).collect();
    runtime().block_on(async {
        let context = jetstream::new(async_nats::connect(url).await.unwrap());
        context.publish("measured.s", body.into()).await.unwrap().await.unwrap();
    });
}

/// One recorder loses the database and another one NATS, each for longer than a lease, while the rest goes on.
#[test]
fn a_recorder_that_is_cut_off_loses_its_parts_to_those_that_are_not() {
    const MESSAGES: usize = 6_000;
    let directory = Directory::new();
    let (nats, target, place) = everything(&directory);
    let (database, without_database) = proxy::start(target.endpoint.as_ref().unwrap());
    let endpoint = Endpoint { tcp: Some(("127.0.0.1".to_owned(), nats.port)), ..Endpoint::default() };
    let (to_nats, without_nats) = proxy::start(&endpoint);
    let port_of = |endpoint: &Endpoint| endpoint.tcp.clone().unwrap().1;
    let own_port = format!(":{}/", port_of(target.endpoint.as_ref().unwrap()));
    let through = place.database.replace(&own_port, &format!(":{}/", port_of(&database)));
    assert_ne!(through, place.database);
    let first = start(&directory, 1, &Place { database: through, ..place.clone() });
    let to_nats = format!("nats://127.0.0.1:{}", port_of(&to_nats));
    let second = start(&directory, 2, &Place { nats: to_nats, ..place.clone() });
    let third = start(&directory, 3, &place);
    wait_for_all_parts(&[&first, &second, &third], f64::INFINITY);
    let ends = Arc::new(AtomicBool::new(false));
    let (url, ended) = (nats.url(), Arc::clone(&ends));
    let publisher = std::thread::spawn(move || {
        publish(&url, 0..MESSAGES / 2);
        while !ended.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        publish(&url, MESSAGES / 2..MESSAGES);
    });
    for (process, orders) in [(&first, without_database), (&second, without_nats)] {
        orders.is_down.store(true, Ordering::Relaxed);
        let others: Vec<_> =
            [&first, &second, &third].into_iter().filter(|other| !std::ptr::eq(*other, process)).collect();
        wait_for_all_parts(&others, f64::INFINITY);
        ends.store(true, Ordering::Relaxed);
        assert_eq!(held(process), 0);
        orders.is_down.store(false, Ordering::Relaxed);
        wait_for_all_parts(&[&first, &second, &third], f64::INFINITY);
    }
    publisher.join().unwrap();
    wait_until("everything is stored", || stored(&target) >= 2 * MESSAGES);
    [first, second, third].into_iter().for_each(|process| assert_eq!(process.stop(), Some(0)));
    assert_all_in_order(&target, MESSAGES);
}

/// The numbers of its messages begin again, and none of them counts as stored.
#[test]
fn a_stream_that_is_removed_and_created_again_is_another_one() {
    let directory = Directory::new();
    let (nats, target, place) = everything(&directory);
    for round in 1..=2 {
        let process = start(&directory, 1, &place);
        wait_until("it has all parts", || held(&process) == PARTS);
        publish(&nats.url(), 0..SOURCES);
        wait_until("everything is stored", || stored(&target) >= 2 * SOURCES * round);
        assert_eq!(process.stop(), Some(0));
        runtime().block_on(async {
            let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
            context.delete_stream("measurements").await.unwrap();
        });
    }
    assert_eq!(stored(&target), 4 * SOURCES);
}

#[test]
fn a_stream_that_cannot_be_shared_is_refused_with_a_remedy() {
    let directory = Directory::new();
    let (nats, target, place) = everything(&directory);
    let create = |subjects: Vec<String>, retention| {
        runtime().block_on(async {
            let context = jetstream::new(async_nats::connect(nats.url()).await.unwrap());
            let _ = context.delete_stream("measurements").await;
            let name = "measurements".to_owned();
            context.create_stream(StreamConfig { name, subjects, retention, ..StreamConfig::default() }).await.unwrap();
        });
    };
    let parts = |count: u32| (0..count).map(|part| format!("measurements.{part}.>")).collect();
    let process = start(&directory, 1, &place);
    wait_until("it has all parts of the stream that it makes", || held(&process) == PARTS);
    let mut slower = std::fs::read_to_string(config(&directory, 2, &place)).unwrap();
    slower = slower.replace("lease = \"3s\"", "lease = \"5s\"");
    let path = directory.path("2.toml");
    std::fs::write(&path, slower).unwrap();
    let other = Process::start_until(&path, "", "metrics");
    wait_until("it says whose lease it is", || other.said().contains("intake.nats.lease is 5 s, and the leases"));
    [process, other].into_iter().for_each(|process| assert_eq!(process.stop(), Some(0)));
    for (subjects, retention, says) in [
        (vec!["measurements.>".to_owned()], RetentionPolicy::Limits, "are not those of 12 parts"),
        (parts(5), RetentionPolicy::Limits, "write partitions = 5"),
        (parts(PARTS), RetentionPolicy::Interest, "retention workqueue or limits"),
    ] {
        create(subjects, retention);
        let process = start(&directory, 1, &place);
        wait_until(says, || process.said().contains(says));
        assert_eq!(process.stop(), Some(0));
    }
    drop(target);
}

#[test]
fn settings_that_do_not_go_together_with_a_shared_stream_are_refused_before_anything_is_started() {
    let directory = Directory::new();
    let path = directory.path("recorder.toml");
    let server = "[database]\nname = \"postgres\"\nurl = \"postgres://u@127.0.0.1:1/d\"\n";
    let nats = "[intake.nats]\nurl = \"nats://127.0.0.1:1\"\nstream = \"s\"\nconsumer = \"c\"\n";
    let http = "[intake.http]\nlisten = \"127.0.0.1:0\"\n";
    for (text, says) in [
        (format!("[database]\npath = \"m.db\"\n{nats}shared = true\n"), "SQLite is written by one process only"),
        (format!("{server}{nats}partitions = 4\n"), "write shared = true, or leave it out"),
        (format!("{server}{nats}lease = \"4s\"\n"), "write shared = true, or leave it out"),
        (
            format!("{server}{nats}shared = true\n{http}[admission]\nmodel = \"x\"\n"),
            "write intake.nats.publish = true",
        ),
        (format!("{server}{}shared = true\n", nats.replace("\"s\"", "\"s.t\"")), "letters, digits, - and _"),
    ] {
        std::fs::write(&path, &text).unwrap();
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &path]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && said.contains(says), "{text}\n{said}");
    }
}
