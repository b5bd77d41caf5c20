//! Clients of other databases as they are: InfluxDB 3's path, HTTP/2, bodies in zstd, and QuestDB's binary values.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;

use super::harness::{Directory, Started, Target, send};

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

/// Clients that speak HTTP/2 from the start, as many requests at a time as they like.
pub fn clients_of_http2_write_unchanged(target: &Target) {
    const TOKEN: &str = "token-of-a-client-of-http2";
    let directory = Directory::new();
    let mut config = target.config(&directory, "name = \"wide\"", "");
    config.intake.http.as_mut().unwrap().tokens = vec![TOKEN.to_owned()];
    let started = Started::new(&config, target.open());
    let url = format!("http://{}/api/v2/write", started.http);
    let curl = |token: &str, more: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--noproxy", "*", "--max-time", "120", "--http2-prior-knowledge", "-o", "/dev/null"]);
        curl.args(["-H", &format!("Authorization: Token {token}"), "-w", "%{http_version} %{http_code}\\n"]).args(more);
        let ended = curl.output().unwrap();
        assert!(ended.status.success(), "{more:?}: {}", String::from_utf8_lossy(&ended.stderr));
        String::from_utf8(ended.stdout).unwrap()
    };
    // Larger than what may come before it is read.
    let large = directory.path("large");
    std::fs::write(&large, (0..20_000).map(|row| format!("second f=1 {row}\n")).collect::<String>()).unwrap();
    assert_eq!(curl(TOKEN, &["--data-binary", &format!("@{large}"), &url]), "2 204\n");
    // Debian's curl fails at the second request of a connection, whoever answers.
    let line = directory.path("line");
    std::fs::write(&line, "second f=2 1").unwrap();
    let many = Command::new("h2load")
        .args(["-n", "60", "-c", "2", "-m", "30", "-H", &format!("authorization: Token {TOKEN}"), "-d", &line, &url])
        .output()
        .expect("h2load is installed; ./check does that");
    let said = String::from_utf8_lossy(&many.stdout).into_owned();
    assert!(said.contains("status codes: 60 2xx"), "{said}{}", String::from_utf8_lossy(&many.stderr));
    // It misses an answer that comes before it has sent its body.
    for _ in 0..20 {
        assert_eq!(curl("token-of-nobody-at-all", &["--data-binary", "second f=3 1", &url]), "2 401\n");
    }
    assert_eq!(
        curl(TOKEN, &["-H", "Host: other", "--data-binary", "second f=4", &url]),
        "2 204\n",
        "curl names it once"
    );
    started.wait_until_committed();
    started.stop();
    let stored = target.query("SELECT f, COUNT(*) FROM second GROUP BY f ORDER BY f");
    assert_eq!(stored, ["1|20000", "2|60", "4|1"], "{}", target.name);
}

/// Whoever only begins to speak HTTP/2 is ended in time.
pub fn beginnings_of_http2_are_ended_in_time(target: &Target) {
    let directory = Directory::new();
    let mut config = target.config(&directory, "name = \"wide\"", "");
    config.intake.http.as_mut().unwrap().patience = std::time::Duration::from_millis(500);
    let started = Started::new(&config, target.open());
    let said = |head: &[u8]| {
        let mut stream = TcpStream::connect(started.http).unwrap();
        stream.write_all(head).unwrap();
        let mut said = Vec::new();
        // The end comes, however long that takes on a busy machine.
        stream.set_read_timeout(Some(std::time::Duration::from_secs(240))).unwrap();
        stream.read_to_end(&mut said).unwrap();
        String::from_utf8_lossy(&said).into_owned()
    };
    assert!(said(b"PRI * HTTP/2.0\r\n").starts_with("HTTP/1.1 408 "));
    assert_eq!(said(b""), "");
    let settings = b"\0\0\0\x04\0\0\0\0\0";
    let begun = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), settings].concat();
    assert!(!said(&begun).starts_with("HTTP/1.1"), "it gets its settings, and goodbye");
    // A head that never ends.
    let head = [&begun[..], b"\0\x40\0\x01\0\0\0\0\x01\x40"].concat();
    assert!(!said(&head).starts_with("HTTP/1.1"));
    assert_eq!(send(started.http, "POST", "/write", "", b"m f=1").status, 204);
    started.stop();
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
