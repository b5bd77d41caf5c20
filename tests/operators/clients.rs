//! Clients that the documentation names, as Debian or PyPI has them, against the real program on each kind of database.

use std::process::Command;

use crate::harness::{Directory, Target};
use crate::process::{Process, config_file, database_of};
use crate::wait_until;

const TOKEN: &str = "token-of-all-0123456789";

/// What a user of InfluxDB 1 in Python writes: points, lines, in batches and packed.
const INFLUXDB_1: &str = r#"
import sys
from influxdb import InfluxDBClient

for packed in [False, True]:
    client = InfluxDBClient(host="127.0.0.1", port=int(sys.argv[1]), username="any", password=sys.argv[3], database="any", gzip=packed)
    client.create_database("any")
    host = "packed" if packed else "plain"
    point = lambda number: {
        "measurement": "m", "tags": {"host": host}, "time": 1700000000 + number,
        "fields": {"f": number / 2, "n": number, "ok": True, "note": "a \"b\" c, d"},
    }
    assert client.write_points([point(number) for number in range(1000)], time_precision="s", batch_size=300)
    assert client.write([f"m,host={host} f=1000 1700001000"], {"db": "any", "precision": "s"}, 204, "line")
"#;

/// What a user of InfluxDB 2 in Python writes: points and lines, waited for, packed, and in batches in the background.
const INFLUXDB_2: &str = r#"
import sys
from influxdb_client import InfluxDBClient, Point, WriteOptions, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS

def open(packed):
    return InfluxDBClient(url=f"http://127.0.0.1:{sys.argv[1]}", token=sys.argv[3], org="any", enable_gzip=packed)

def points(host):
    point = lambda number: Point("m").tag("host", host).field("f", number / 2).field("n", number).field("ok", True)
    return [point(number).field("note", "a \"b\" c, d").time(1700000000 + number, WritePrecision.S) for number in range(1000)]

for packed in [False, True]:
    host = "packed" if packed else "plain"
    with open(packed) as client, client.write_api(write_options=SYNCHRONOUS) as api:
        api.write(bucket="any", record=points(host))
        api.write(bucket="any", record=f"m,host={host} f=1000 1700001000", write_precision="s")
failed = []
with open(False) as client:
    with client.write_api(write_options=WriteOptions(batch_size=300), error_callback=lambda *what: failed.append(what)) as api:
        api.write(bucket="any", record=points("batches"))
        api.write(bucket="any", record="m,host=batches f=1000 1700001000", write_precision="s")
assert not failed, failed
"#;

/// What a user of QuestDB in Python sends: rows over HTTP and over TCP, with the version of the protocol named and without.
const QUESTDB: &str = r#"
import sys
from questdb.ingress import IngressError, Sender, TimestampNanos

def send(host, conf):
    with Sender.from_conf(conf) as sender:
        for number in range(1000):
            columns = {"f": number / 2, "n": number, "ok": True, "note": "a \"b\" c, d"}
            sender.row("m", symbols={"host": host}, columns=columns, at=TimestampNanos((1700000000 + number) * 10**9))
        sender.row("m", symbols={"host": host}, columns={"f": 1000.0}, at=TimestampNanos(1700001000 * 10**9))

http, tcp = (f"{scheme}::addr=127.0.0.1:{port};" for scheme, port in zip(["http", "tcp"], sys.argv[1:3]))
send("http", f"{http}token={sys.argv[3]};")
send("password", f"{http}username=any;password={sys.argv[3]};")
send("version", f"{http}protocol_version=1;token={sys.argv[3]};")
send("tcp", tcp)
send("tcp-version", f"{tcp}protocol_version=1;")
try:
    send("binary", f"{http}protocol_version=2;token={sys.argv[3]};")
    sys.exit("binary values were taken")
except IngressError as refused:
    assert "protocol_version=1" in str(refused), refused
"#;

/// Debian's own interpreter, which has Debian's packages, with a client that tests/clients/fetch has brought, where one is named.
fn python(client: Option<&str>) -> Command {
    let mut python = Command::new("/usr/bin/python3");
    if let Some(client) = client {
        let fetch = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/fetch");
        let told = Command::new(fetch).args(["--where", client]).output().unwrap();
        assert!(told.status.success(), "{}", String::from_utf8_lossy(&told.stderr));
        python.env("PYTHONPATH", String::from_utf8(told.stdout).unwrap().trim_end());
    }
    python
}

/// The address of an intake that a recorder has told of.
fn port_of(process: &Process, intake: &str) -> Option<String> {
    let before = format!("intake=\"{intake}\" address=\"127.0.0.1:");
    Some(process.said().split(&before).nth(1)?.split('"').next()?.to_owned())
}

/// The rows of each of these hosts are stored as they were sent, once.
fn writes_as_it_is(client: Option<&str>, script: &str, hosts: &[&str]) {
    let directories = [Directory::new(), Directory::new(), Directory::new()];
    let targets = [Target::sqlite(&directories[0]), Target::server("mariadb"), Target::server("postgres")];
    for (target, directory) in targets.iter().zip(&directories) {
        let config = config_file(directory, &database_of(target), "[intake.tcp]\nlisten = \"127.0.0.1:0\"\n");
        let text = std::fs::read_to_string(&config).unwrap();
        let listen = "[intake.http]\nlisten = \"127.0.0.1:0\"\n";
        std::fs::write(&config, text.replace(listen, &format!("{listen}tokens = [\"{TOKEN}\"]\n"))).unwrap();
        let process = Process::start(&config, "");
        wait_until("it takes lines over TCP", || port_of(&process, "tcp").is_some());
        let run = |token: &str| {
            let (http, tcp) = (process.http.port().to_string(), port_of(&process, "tcp").unwrap());
            let ended = python(client).args(["-c", script, &http, &tcp, token]).output().unwrap();
            let said = String::from_utf8_lossy(&ended.stderr).into_owned();
            assert!(!said.contains("No module named"), "./check installs what clients need: {said}");
            (ended.status.code(), said)
        };
        let (status, said) = run(TOKEN);
        assert_eq!(status, Some(0), "{}: {said}", target.name);
        let (status, said) = run("another");
        assert!(status != Some(0) && said.contains("401"), "{}: {said}", target.name);
        // Nobody is told of lines over TCP.
        let rows = 1_001 * hosts.len();
        wait_until("all rows are stored", || process.metric("loadline_committed_rows_total") == rows as f64);
        process.assert_conserved();
        assert_eq!(process.stop(), Some(0), "{}", target.name);
        let stored = target.query(
            "SELECT i.host, COUNT(*), SUM(f), SUM(n), SUM(ok), MIN(note), MAX(note), MIN(time_ns), MAX(time_ns) \
             FROM m_values v JOIN m_identity i ON i.measurement = v.measurement GROUP BY i.host ORDER BY i.host",
        );
        let expected = |host: &&str| {
            format!("{host}|1001|250750|499500|1000|a \"b\" c, d|a \"b\" c, d|1700000000000000000|1700001000000000000")
        };
        assert_eq!(stored, hosts.iter().map(expected).collect::<Vec<_>>(), "{}", target.name);
    }
}

#[test]
fn influxdbs_client_of_version_1_writes_as_it_is() {
    writes_as_it_is(None, INFLUXDB_1, &["packed", "plain"]);
}

#[test]
fn influxdb_client_writes_as_it_is() {
    writes_as_it_is(Some("influxdb-client"), INFLUXDB_2, &["batches", "packed", "plain"]);
}

#[test]
fn questdb_writes_as_it_is() {
    writes_as_it_is(Some("questdb"), QUESTDB, &["http", "password", "tcp", "tcp-version", "version"]);
}
