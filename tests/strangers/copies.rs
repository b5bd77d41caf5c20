//! Spools that are copied, restored and run at once: whatever is acknowledged is stored once.

use super::harness::{Directory, Started, Target, write};
use super::spools::{copy_spool, damage_entry};

const LAYOUT: &str = "name = \"star\"";
const SETTINGS: &str = "[writer]\ncount = 2\ndrain = \"1s\"\n";

/// Takes in values, from sources that go through different writers.
fn take_in(started: &Started, measurement: &str, values: std::ops::Range<u32>) {
    for value in values {
        let line = format!("{measurement},source=s{} f={value}i {value}\n", value % 5);
        let headers = format!("X-Loadline-Source: s{}\r\n", value % 5);
        let answer = super::harness::send(started.http, "POST", "/api/v2/write", &headers, line.as_bytes());
        assert_eq!(answer.status, 204, "{value}: {}", answer.body);
    }
}

fn copies(started: &Started) -> u64 {
    let page = started.recorder.metrics();
    let count = page.lines().find_map(|line| line.strip_prefix("loadline_spool_copies_total ")?.parse::<f64>().ok());
    count.unwrap() as u64
}

/// Each value up to this one is stored once.
fn assert_stored(target: &Target, measurement: &str, values: u32) {
    let found = target.query(&format!("SELECT f FROM {measurement}_values ORDER BY f"));
    let expected: Vec<_> = (1..values).map(|value| value.to_string()).collect();
    assert_eq!(found, expected, "{}", target.name);
}

/// A recorder whose spool was restored from a copy takes in and stores as any other, whether or not the database answers when it starts.
pub fn a_spool_that_is_restored_from_a_copy_loses_nothing_new(target: &Target) {
    let directory = Directory::new();
    let [spool, old, newer] = ["spool", "old", "newer"].map(|name| directory.path(name));
    let started = target.start(&directory, LAYOUT, SETTINGS);
    take_in(&started, "restored", 1..11);
    started.wait_until_committed();
    copy_spool(&spool, &old);
    take_in(&started, "restored", 11..31);
    started.wait_until_committed();
    assert_eq!(copies(&started), 0);
    started.stop();
    copy_spool(&spool, &newer);
    copy_spool(&old, &spool);
    // Nobody listens on this port.
    let mut elsewhere = target.endpoint.clone().unwrap();
    let free = crate::port::free();
    elsewhere.unix = None;
    elsewhere.tcp = Some(("127.0.0.1".to_owned(), free));
    let config = target.config(&directory, LAYOUT, SETTINGS);
    let started = Started::new(&config, target.open_at(Some(&elsewhere)));
    take_in(&started, "restored", 31..41);
    // What was committed before the copy was taken the spool may not have noted yet.
    assert!((10..=20).contains(&started.stop().counts.spooled));
    let started = target.start(&directory, LAYOUT, SETTINGS);
    take_in(&started, "restored", 41..51);
    started.wait_until_committed();
    assert_eq!(copies(&started), 2, "each writer finds it");
    started.stop();
    // It is found once, and what is newer is good again where it is brought back.
    for (from, values) in [(None, 51..61), (Some(&newer), 61..71), (Some(&old), 71..81)] {
        from.iter().for_each(|from| copy_spool(from, &spool));
        let started = target.start(&directory, LAYOUT, SETTINGS);
        take_in(&started, "restored", values);
        started.wait_until_committed();
        assert_eq!(copies(&started), if from == Some(&old) { 2 } else { 0 });
        started.stop();
    }
    assert_stored(target, "restored", 81);
}

/// A spool of which a bit is damaged says so, and everything else goes on.
pub fn a_spool_that_is_damaged_loses_nothing_new(target: &Target) {
    let directory = Directory::new();
    let [spool, copied] = ["spool", "copied"].map(|name| directory.path(name));
    let started = target.start(&directory, LAYOUT, SETTINGS);
    take_in(&started, "damaged", 1..21);
    started.wait_until_committed();
    // What a kill -9 leaves.
    copy_spool(&spool, &copied);
    started.stop();
    copy_spool(&copied, &spool);
    assert!(damage_entry(&spool, "f=10i 10"));
    let started = target.start(&directory, LAYOUT, SETTINGS);
    take_in(&started, "damaged", 21..41);
    started.wait_until_committed();
    assert_eq!(copies(&started), 0, "it knows which entries it had");
    let end = started.stop();
    // Whether it had been settled the spool may not know.
    assert!(end.counts.quarantined <= 1, "{:?}", end.counts);
    assert_eq!(end.counts.acknowledged, end.counts.committed + end.counts.quarantined);
    assert_stored(target, "damaged", 41);
}

/// Two recorders with the same spool, as a cloned machine has it: each stores what only it has, and one of them what both have.
pub fn copies_of_a_spool_that_work_at_once_store_everything_once(target: &Target) {
    let (directory, other) = (Directory::new(), Directory::new());
    let first = target.start(&directory, LAYOUT, SETTINGS);
    take_in(&first, "cloned", 1..21);
    copy_spool(&directory.path("spool"), &other.path("spool"));
    let second = target.start(&other, LAYOUT, SETTINGS);
    for round in 0..10 {
        let begin = 21 + 20 * round;
        take_in(&first, "cloned", begin..begin + 10);
        take_in(&second, "cloned", begin + 10..begin + 20);
        if round % 3 == 0 {
            first.wait_until_committed();
            second.wait_until_committed();
        }
    }
    first.wait_until_committed();
    second.wait_until_committed();
    assert!(copies(&first) + copies(&second) >= 2, "each pair of writers finds it");
    assert!(write(first.http, "cloned f=221i 221\n").status == 204);
    first.stop();
    second.stop();
    assert_stored(target, "cloned", 222);
}
