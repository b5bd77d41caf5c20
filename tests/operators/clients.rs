//! Clients that the documentation names, as Debian has them.

use std::process::Command;

use crate::harness::{Directory, Target};
use crate::process::{Process, config_file, database_of};

/// What a user of InfluxDB 1 in Python writes: points, lines, in batches and packed.
const INFLUXDB_1: &str = r#"
import sys
from influxdb import InfluxDBClient

for packed in [False, True]:
    client = InfluxDBClient(host="127.0.0.1", port=int(sys.argv[1]), username="any", password=sys.argv[2], database="any", gzip=packed)
    client.create_database("any")
    host = "packed" if packed else "plain"
    point = lambda number: {
        "measurement": "m", "tags": {"host": host}, "time": 1700000000 + number,
        "fields": {"f": number / 2, "whole": number, "is": True, "text": "a \"b\" c, d"},
    }
    assert client.write_points([point(number) for number in range(1000)], time_precision="s", batch_size=300)
    assert client.write([f"m,host={host} f=1000 1700001000"], {"db": "any", "precision": "s"}, 204, "line")
"#;

#[test]
fn influxdbs_client_for_python_writes_unchanged() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    let token = "token-of-all-0123456789";
    let text = std::fs::read_to_string(&config).unwrap();
    let listen = "listen = \"127.0.0.1:0\"\n";
    std::fs::write(&config, text.replace(listen, &format!("{listen}tokens = [\"{token}\"]\n"))).unwrap();
    let process = Process::start(&config, "");
    // Debian's own interpreter, which has Debian's packages.
    let mut python = Command::new("/usr/bin/python3");
    let run = |python: &mut Command, token: &str| {
        let ended = python.args(["-c", INFLUXDB_1, &process.http.port().to_string(), token]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(!said.contains("No module named"), "./check installs python3-influxdb: {said}");
        (ended.status.code(), said)
    };
    assert_eq!(run(&mut python, token), (Some(0), String::new()));
    let (status, said) = run(&mut Command::new("/usr/bin/python3"), "another");
    assert!(status != Some(0) && said.contains("401"), "{said}");
    assert_eq!(process.stop(), Some(0));
    let from = "FROM m_values v JOIN m_identity i ON i.measurement = v.measurement GROUP BY i.host ORDER BY i.host";
    let stored =
        target.query(&format!("SELECT i.host, COUNT(*), SUM(f), SUM(\"whole\"), MAX(text), MIN(time_ns) {from}"));
    let expected = |host: &str| format!("{host}|1001|250750|499500|a \"b\" c, d|1700000000000000000");
    assert_eq!(stored, [expected("packed"), expected("plain")]);
}
