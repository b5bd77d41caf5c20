//! A recorder whose database's answers are damaged on the way: every record that was acknowledged is stored once or in quarantine, whatever arrived.
//!
//! `LOADLINE_HOSTILE_RUNS` says how many recorders there are for each server, and `LOADLINE_HOSTILE_SEED` where they begin.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "hostile/proxy.rs"]
#[expect(dead_code, reason = "shared with another test")]
mod proxy;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::{Directory, Started, Target, write};
use loadline::database::Endpoint;
use loadline::random::Stream;
use proxy::{DAMAGES, Damage, Order, Protocol, Proxy};

/// Recorders for each server where nothing else is asked for.
const RUNS: u64 = 24;
const REQUESTS: u64 = 20;
const ROWS: u64 = 10;
/// Damage that nothing in either protocol can tell from a true answer: figures of the database are others, and the recorder believes them.
const LIES: [Damage; 2] = [Damage::Flip, Damage::Zeros];

fn number_in(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// How often each number from `first` on is in a table.
fn stored(target: &Target, table: &str, first: u64) -> BTreeMap<u64, u64> {
    let exists = target.query(&format!("SELECT COUNT(*) FROM information_schema.tables WHERE table_name = '{table}'"));
    let mut found = BTreeMap::new();
    if exists[0] != "0" {
        let rows = target.query(&format!("SELECT n FROM {table} WHERE n >= {first}"));
        rows.iter().for_each(|row| *found.entry(row.parse().unwrap()).or_insert(0) += 1);
    }
    found
}

fn nothing_is_lost(name: &'static str, protocol: Protocol) {
    let target = Target::server(name);
    let endpoint = target.endpoint.clone().unwrap();
    let proxy = Proxy::start(protocol, endpoint.tcp.clone().unwrap());
    let through = Endpoint { unix: None, tcp: Some(("127.0.0.1".to_owned(), proxy.port)), ..endpoint };
    let first = number_in("LOADLINE_HOSTILE_SEED").unwrap_or(1);
    for seed in first..first + number_in("LOADLINE_HOSTILE_RUNS").unwrap_or(RUNS) {
        let mut random = Stream::seeded(seed);
        let damages: Vec<Damage> = DAMAGES.into_iter().filter(|damage| !LIES.contains(damage)).collect();
        let damage = damages[random.below(damages.len() as u64) as usize];
        let order = Order { at: random.below(300), damage, seed: random.word() };
        // Of one table after the other, so that hours of it make no more of them than a recorder may.
        let (table, directory) = (format!("hostile_{}", seed % 48), Directory::new());
        let begin = seed * REQUESTS * ROWS;
        proxy.begin(Some(order));
        let more = format!("[writer]\nstatement_timeout = \"1s\"\ncount = {}\n", 1 + seed % 2);
        let layout = if seed % 3 == 0 { "name = \"star\"" } else { "name = \"wide\"" };
        let started =
            Started::new(&target.config(&directory, layout, &more), Arc::clone(&target.open_at(Some(&through))));
        let mut acknowledged = BTreeMap::new();
        for request in 0..REQUESTS {
            let numbers = begin + request * ROWS..begin + (request + 1) * ROWS;
            let line = |number: u64| format!("{table},probe=p{} n={number}i\n", number % 7);
            if write(started.http, &numbers.clone().map(line).collect::<String>()).status == 204 {
                acknowledged.extend(numbers.map(|number| (number, 1)));
            }
            std::thread::sleep(Duration::from_millis(random.below(12)));
        }
        let told = || format!("{name}, seed {seed}, {order:?}: {:?}", started.recorder.counts());
        assert_eq!(acknowledged.len() as u64, REQUESTS * ROWS, "{}", told());
        let begun = Instant::now();
        while started.recorder.counts().spooled > 0 {
            if begun.elapsed() > Duration::from_secs(4) {
                // A server that stands still is one that comes back.
                proxy.begin(None);
            }
            assert!(begun.elapsed() < Duration::from_secs(90), "{}", told());
            std::thread::sleep(Duration::from_millis(5));
        }
        let (told, counts) = (told(), started.stop().counts);
        let table = if seed % 3 == 0 { format!("{table}_values") } else { table };
        let found = stored(&target, &table, begin);
        assert!(found.values().all(|times| *times == 1), "doubled: {found:?}: {told}");
        assert_eq!(found.len() as u64 + counts.quarantined, REQUESTS * ROWS, "{told}");
        if counts.quarantined > 0 {
            println!("{} of good records are in quarantine: {told}", counts.quarantined);
        }
    }
}

#[test]
fn damaged_answers_of_postgres_lose_no_record() {
    nothing_is_lost("postgres", Protocol::Postgres);
}

#[test]
fn damaged_answers_of_mariadb_lose_no_record() {
    nothing_is_lost("mariadb", Protocol::Mysql);
}
