//! Clients of other databases as they are: InfluxDB 3's path, bodies in zstd, and QuestDB's binary values.

use super::harness::{Directory, Target, send};

/// InfluxDB 3's path takes what the others take, with its own words.
pub fn clients_of_influxdb_3_write_unchanged(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"wide\"", "");
    let post = |query: &str, body: &str| {
        send(started.http, "POST", &format!("/api/v3/write_lp?db=d{query}"), "", body.as_bytes())
    };
    let times = [
        ("", "1700000000"),
        ("&precision=auto", "1700000000000"),
        ("&precision=second", "1700000000"),
        ("&precision=millisecond&no_sync=true", "1700000000000"),
        ("&precision=microsecond&accept_partial=true", "1700000000000000"),
        ("&precision=nanosecond", "1700000000000000000"),
    ];
    for (number, (query, time)) in times.into_iter().enumerate() {
        assert_eq!(post(query, &format!("three f={number} {time}\n")).status, 204, "{query}");
    }
    assert_eq!(post("&precision=day", "three f=9\n").status, 400);
    assert_eq!(post("&accept_partial=false", "three f=9\nthree f=\n").status, 400, "nothing of it is stored");
    assert_eq!(post("", "three f=6 1700000000\nthree f=\n").status, 400, "the good line is stored");
    assert_eq!(send(started.http, "GET", "/api/v3/write_lp?db=d", "", b"").status, 405);
    started.wait_until_committed();
    started.stop();
    let stored = target.query("SELECT f, time_ns FROM three ORDER BY f");
    assert_eq!(stored, (0..7).map(|number| format!("{number}|1700000000000000000")).collect::<Vec<_>>());
}

/// Bodies in zstd are read within the bounds of every other.
pub fn zstd_is_read_within_its_bounds(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"wide\"", "");
    let zip = |bytes: &[u8]| zstd::bulk::compress(bytes, 3).unwrap();
    let post = |body: &[u8]| send(started.http, "POST", "/write", "Content-Encoding: zstd\r\n", body).status;
    assert_eq!(post(&[zip(b"packed f=1\n"), zip(b"packed f=2\n")].concat()), 204);
    assert_eq!(post(&zip(&vec![b'#'; 200 << 20])), 413, "a bomb");
    assert_eq!(post(&zip(b"packed f=3\n")[..12]), 400);
    assert_eq!(post(b"packed f=4\n"), 400);
    started.wait_until_committed();
    started.stop();
    assert_eq!(target.query("SELECT f FROM packed ORDER BY f"), ["1", "2"]);
}

/// Binary values are refused with the remedy.
pub fn binary_values_are_refused_with_the_remedy(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"wide\"", "");
    let body = [b"quest f==\x10".as_slice(), &1.5_f64.to_le_bytes(), b" 1\n"].concat();
    let answer = send(started.http, "POST", "/write", "", &body);
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("protocol_version=1"), "{}", answer.body);
    started.stop();
}
