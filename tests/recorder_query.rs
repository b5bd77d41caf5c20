//! Questions over Prometheus's HTTP API about what a recorder has stored. Every value is compared with one that is computed from the records that were sent.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[path = "recorder_query/oracle.rs"]
mod oracle;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use harness::{Answer, Directory, Target, send};
use loadline::database::SessionLimits;
use loadline::recorder::prometheus::PrometheusFront;
use oracle::{BEGIN, Field, S, Series, assert_same, group, labels, named, over, rate, read, records};
use serde_json::Value;

const HOSTS: usize = 7;
const BEGIN_S: i64 = BEGIN / S;
/// Start, end and step of a question, in seconds: before the first record and after the last.
const RANGE: (i64, i64, i64) = (BEGIN_S - 60, BEGIN_S + 1_900, 20);

/// Stores the records through a recorder and starts a front. `more` belongs to `[query]`.
fn stored(
    target: &Target,
    directory: &Directory,
    layout: &str,
    measurement: &str,
    more: &str,
) -> (PrometheusFront, SocketAddr) {
    let hot = if layout == "star-hot" { "\nhot = [\"load\"]" } else { "" };
    let layout = format!("name = \"{layout}\"{hot}");
    let started = target.start(directory, &layout, "");
    let mut lines: Vec<String> = records(HOSTS)
        .iter()
        .map(|sent| {
            let tags = labels(sent.host);
            let tags = tags.iter().map(|(name, value)| format!(",{name}={}", value.replace(' ', "\\ ")));
            let ticks = sent.ticks.map_or(String::new(), |ticks| format!(",ticks={ticks}i"));
            let tags = tags.collect::<String>();
            format!("{measurement}{tags} load={}{ticks},note=\"text\" {}\n", sent.load, sent.time_ns)
        })
        .collect();
    // Some come late; of two with one time, the second is sent second.
    let late: Vec<String> = lines.iter().step_by(9).cloned().collect();
    lines.retain(|line| !late.contains(line));
    for body in [lines.concat(), late.concat()] {
        assert_eq!(send(started.http, "POST", "/write", "", body.as_bytes()).status, 204);
        started.wait_until_committed();
    }
    started.stop();
    front(target, directory, &layout, more)
}

fn front(target: &Target, directory: &Directory, layout: &str, more: &str) -> (PrometheusFront, SocketAddr) {
    let config = target.config(directory, layout, &format!("[query]\nlisten = \"127.0.0.1:0\"\n{more}"));
    let front = PrometheusFront::start(config.query.as_ref().unwrap(), target.open()).unwrap();
    let address = front.address().unwrap();
    (front, address)
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

fn ask_range(address: SocketAddr, query: &str, (start, end, step): (i64, i64, i64)) -> Answer {
    let path = format!("/api/v1/query_range?query={}&start={start}&end={end}&step={step}", encoded(query));
    send(address, "GET", &path, "", b"")
}

fn data(address: SocketAddr, path: &str) -> Value {
    let answer = send(address, "GET", path, "", b"");
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((answer.status, &body["status"]), (200, &"success".into()), "{path}: {body}");
    body["data"].clone()
}

fn fold_sum(values: &[f64]) -> f64 {
    values.iter().sum()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn values(samples: &[(i64, f64)]) -> Vec<f64> {
    samples.iter().map(|(_, value)| *value).collect()
}

/// Questions about the measurement `name`, and what their answers must be.
fn questions(name: &str) -> Vec<(String, Series)> {
    let records = records(HOSTS);
    let newest = |hosts: &dyn Fn(usize) -> bool, field| {
        over(&records, hosts, field, RANGE, 300, |samples, _| samples.last().map(|(_, value)| *value))
    };
    let all = |_: usize| true;
    let window = |field, range_s, function: &dyn Fn(&[f64]) -> f64| {
        over(&records, all, field, RANGE, range_s, |samples, _| {
            (!samples.is_empty()).then(|| function(&values(samples)))
        })
    };
    let least = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let rates = over(&records, all, Field::Ticks, RANGE, 60, |samples, end_ns| rate(samples, end_ns, 60));
    let (load, ticks) = (format!("{name}_load"), format!("{name}_ticks"));
    let full = named(newest(&all, Field::Load), &load);
    vec![
        (load.clone(), full.clone()),
        (format!("{{__name__=\"{load}\"}}"), full),
        (ticks.clone(), named(newest(&all, Field::Ticks), &ticks)),
        (format!("{load}{{host=\"h3\"}}"), named(newest(&|host| host == 3, Field::Load), &load)),
        (format!("{load}{{host=~\"h1|h5\"}}"), named(newest(&|host| host == 1 || host == 5, Field::Load), &load)),
        (format!("{load}{{region=\"\"}}"), named(newest(&|host| host == 0, Field::Load), &load)),
        (format!("{load}{{region!=\"süd\"}}"), named(newest(&|host| host % 2 == 0, Field::Load), &load)),
        (format!("{load}{{region=~\"it.s.*\"}}"), named(newest(&|host| host > 0 && host % 2 == 0, Field::Load), &load)),
        (
            format!("{load}{{region=\"it's \\\"a\\\" \\\\o\"}}"),
            named(newest(&|host| host > 0 && host % 2 == 0, Field::Load), &load),
        ),
        (format!("{load}{{host=\"H3\"}}"), Series::new()),
        ("nothing_here".to_owned(), Series::new()),
        (format!("avg_over_time({load}[90s])"), window(Field::Load, 90, &mean)),
        (format!("sum_over_time({load}[1m])"), window(Field::Load, 60, &fold_sum)),
        (format!("min_over_time({load}[2m])"), window(Field::Load, 120, &least)),
        (format!("max_over_time({load}[2m])"), window(Field::Load, 120, &most)),
        (format!("count_over_time({load}[2m])"), window(Field::Load, 120, &|values| values.len() as f64)),
        (format!("rate({ticks}[1m])"), rates.clone()),
        (format!("sum by (region) (rate({ticks}[1m]))"), group(&rates, &["region"], fold_sum)),
        (format!("avg({load})"), group(&newest(&all, Field::Load), &[], mean)),
        (format!("max by (region) ({load})"), group(&newest(&all, Field::Load), &["region"], most)),
        (format!("min({load}) by (region)"), group(&newest(&all, Field::Load), &["region"], least)),
        (format!("count({load})"), group(&newest(&all, Field::Load), &[], |values| values.len() as f64)),
        (
            format!("max(sum by (region) ({load}))"),
            group(&group(&newest(&all, Field::Load), &["region"], fold_sum), &[], most),
        ),
    ]
}

fn answers_are_those_of_the_records(target: &Target, layouts: &[&str]) {
    for layout in layouts {
        let directory = Directory::new();
        let measurement = format!("cpu_{}", layout.replace('-', "_"));
        let (front, address) = stored(target, &directory, layout, &measurement, "");
        for (query, expected) in questions(&measurement) {
            let answer = ask_range(address, &query, RANGE);
            assert_eq!(answer.status, 200, "{query}: {}", answer.body);
            assert_same(&read(&answer.body), &expected, &format!("{} {layout}: {query}", target.name));
        }
        lists_name_what_is_there(address, &measurement);
        front.stop();
    }
}

fn lists_name_what_is_there(address: SocketAddr, measurement: &str) {
    let (load, ticks) = (format!("{measurement}_load"), format!("{measurement}_ticks"));
    let names = data(address, "/api/v1/label/__name__/values");
    let has = |name: &str| names.as_array().unwrap().contains(&name.into());
    assert!(has(&load) && has(&ticks) && !has(&format!("{measurement}_note")), "{names}");
    assert_eq!(data(address, "/api/v1/labels"), serde_json::json!(["__name__", "host", "region"]));
    let within = format!("start={}&end={}", RANGE.0, RANGE.1);
    let of_load = format!("match[]={}", encoded(&format!("{load}{{region=\"süd\"}}")));
    let hosts = data(address, &format!("/api/v1/label/host/values?{within}&{of_load}"));
    assert_eq!(hosts, serde_json::json!(["h1", "h3", "h5"]));
    let regions = data(address, &format!("/api/v1/label/region/values?{within}"));
    assert_eq!(regions, serde_json::json!([oracle::REGION, "süd"]));
    let limited = data(address, &format!("/api/v1/label/region/values?{within}&limit=1"));
    assert_eq!(limited.as_array().unwrap().len(), 1);
    let series = data(address, &format!("/api/v1/series?{within}&{of_load}"));
    let expected: Vec<_> = [1, 3, 5]
        .map(|host| {
            let mut labels = labels(host);
            labels.insert("__name__".to_owned(), load.clone());
            labels
        })
        .into();
    assert_eq!(series, serde_json::json!(expected));
}

#[test]
fn answers_are_those_of_the_records_in_sqlite() {
    let directory = Directory::new();
    answers_are_those_of_the_records(&Target::sqlite(&directory), &["star", "star-hot", "wide"]);
}

#[test]
fn answers_are_those_of_the_records_in_mariadb() {
    let target = Target::server("mariadb");
    answers_are_those_of_the_records(&target, &["star", "star-hot", "wide"]);
    a_statement_ends_in_the_server_too(
        &target,
        "SELECT SLEEP(20)",
        "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(20)'",
    );
}

#[test]
fn answers_are_those_of_the_records_in_postgres() {
    let target = Target::server("postgres");
    answers_are_those_of_the_records(&target, &["star", "star-hot", "wide"]);
    a_statement_ends_in_the_server_too(
        &target,
        "SELECT pg_sleep(20)",
        "SELECT COUNT(*) FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(20)' AND state = 'active'",
    );
}

/// A reader's statement is given up by the server, and its connection changes nothing.
fn a_statement_ends_in_the_server_too(target: &Target, sleep: &str, running: &str) {
    let limits = Arc::new(SessionLimits::new("", Duration::from_millis(500), Box::new(|| None)));
    let mut reader = target.open().connect_reader(&limits).unwrap();
    assert!(reader.run("CREATE TABLE made_by_a_reader (a INT)").is_err());
    let begun = Instant::now();
    // MariaDB answers SLEEP with a number that says that it was ended.
    let _ = reader.query(sleep);
    while target.query(running) != ["0"] {
        assert!(begun.elapsed() < Duration::from_secs(15), "{}: it still runs", target.name);
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The requests that Grafana's data source and promtool send; a body may carry the parameters.
#[test]
fn grafanas_requests_are_answered() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let (front, address) = stored(&target, &directory, "star", "cpu", "");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let post = |path: &str, body: &str| {
        let answer = send(address, "POST", path, form, body.as_bytes());
        assert_eq!(answer.status, 200, "{path} {body}: {}", answer.body);
        serde_json::from_str::<Value>(&answer.body).unwrap()["data"].clone()
    };
    // "Save and test".
    assert_eq!(
        post("/api/v1/query", "query=1%2B1&time=4"),
        serde_json::json!({ "resultType": "scalar", "result": [4, "2"] })
    );
    assert_eq!(data(address, "/api/v1/status/buildinfo")["version"], env!("CARGO_PKG_VERSION"));
    // A panel, with the times that Grafana aligns to the step.
    let query = "sum by (region) (rate(cpu_ticks{host=~\"h1|h3\"}[1m]))";
    let body = format!("query={}&start={BEGIN_S}.000&end={}&step=15", encoded(query), BEGIN_S + 600);
    let panel = post("/api/v1/query_range", &body);
    assert_eq!(panel["result"][0]["metric"], serde_json::json!({ "region": "süd" }), "{panel}");
    assert!(panel["result"][0]["values"].as_array().unwrap().len() > 30);
    // A table.
    let at = format!("query=cpu_load&time={}", BEGIN_S + 100);
    let table = post("/api/v1/query", &at);
    assert_eq!((&table["resultType"], table["result"].as_array().unwrap().len()), (&"vector".into(), HOSTS));
    // The list of metrics and a variable.
    let metrics = format!("start={BEGIN_S}&end={}&match[]={}", BEGIN_S + 600, encoded("{__name__!=\"\"}"));
    assert_eq!(
        data(address, &format!("/api/v1/label/__name__/values?{metrics}")),
        serde_json::json!(["cpu_load", "cpu_ticks"])
    );
    assert_eq!(post("/api/v1/labels", &metrics).as_array().unwrap().len(), 3);
    assert_eq!(post("/api/v1/series", &metrics).as_array().unwrap().len(), 2 * HOSTS);
    assert_eq!(data(address, "/api/v1/metadata"), serde_json::json!({}));
    assert_eq!(send(address, "GET", "/-/ready", "", b"").status, 200);
    let page = front.metrics()();
    assert!(page.contains("loadline_query_refused_total 0\n") && page.contains("loadline_query_rows_total"), "{page}");
    front.stop();
}

#[test]
fn what_is_not_answered_says_so_as_prometheus_does() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let (front, address) = stored(&target, &directory, "star", "cpu", "rows = 1000\nseries = 5\n");
    let range = |query: &str| ask_range(address, query, RANGE);
    let get = |path: &str| send(address, "GET", path, "", b"");
    let cases = [
        (
            range("up offset 5m"),
            400,
            "bad_data",
            "invalid parameter \"query\": 1:4: parse error: unexpected \"offset\"",
        ),
        (range("topk(3, cpu_load)"), 400, "bad_data", "unknown function \"topk\"; supported are metric{"),
        (get("/api/v1/query_range?query=a&start=1&end=2"), 400, "bad_data", "\"step\": it is missing"),
        (get("/api/v1/query_range?query=a&start=0&end=99999&step=1"), 400, "bad_data", "11000 points"),
        (get("/api/v1/series"), 400, "bad_data", "no match[] parameter"),
        (get("/api/v1/alerts"), 404, "not_found", "there are /api/v1/query_range"),
        (range("cpu_load"), 422, "execution", "more than 5 series"),
        (range("avg_over_time(cpu_load{host=~\"h0|h1|h2|h3|h4\"}[5m])"), 422, "execution", "reads more than 1000 rows"),
    ];
    for (answer, status, kind, says) in cases {
        let body: Value = serde_json::from_str(&answer.body).unwrap();
        let expected = (status, &Value::from("error"), &Value::from(kind));
        assert_eq!((answer.status, &body["status"], &body["errorType"]), expected, "{body}");
        assert!(body["error"].as_str().unwrap().contains(says), "{says}: {body}");
    }
    assert_eq!(send(address, "DELETE", "/api/v1/query", "", b"").status, 405);
    let long = format!("query={}", "a".repeat(100_000));
    assert_eq!(send(address, "POST", "/api/v1/query", "", long.as_bytes()).status, 400);
    // What a question leaves of the bounds does not depend on those before.
    assert_eq!(range("cpu_load{host=\"h1\"}").status, 200);
    front.stop();
}

#[test]
fn nothing_is_answered_without_the_token() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let hash = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
    let (front, address) = front(&target, &directory, "name = \"star\"", &format!("token_hash = \"{hash}\"\n"));
    for headers in ["", "Authorization: Bearer tes\r\n"] {
        for path in ["/api/v1/query?query=1", "/-/ready", "/api/v1/status/buildinfo", "/"] {
            assert_eq!(send(address, "GET", path, headers, b"").status, 401, "{path}");
        }
    }
    for headers in ["Authorization: Bearer test\r\n", "Authorization: Basic Z3JhZmFuYTp0ZXN0\r\n"] {
        assert_eq!(send(address, "GET", "/api/v1/query?query=1", headers, b"").status, 200, "{headers}");
    }
    // A recorder that has stored nothing has no metrics.
    let empty = send(address, "GET", "/api/v1/labels", "Authorization: Bearer test\r\n", b"");
    assert_eq!(empty.body, "{\"data\":[],\"status\":\"success\"}");
    front.stop();
}

/// Names that become the same are told apart, and whoever was first keeps the name.
#[test]
fn names_are_made_fit_for_prometheus_and_stay_with_whom_had_them_first() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let started = target.start(&directory, "name = \"star\"", "");
    let now = BEGIN;
    for line in [
        format!("disk.io,host-name=a,host.name=b,__name__=c read-bytes=1 {now}\n"),
        format!("disk_io,host-name=a read.bytes=2 {now}\n"),
        format!("disk,host-name=a io_read_bytes=3 {now}\n"),
    ] {
        assert_eq!(send(started.http, "POST", "/write", "", line.as_bytes()).status, 204);
        started.wait_until_committed();
    }
    started.stop();
    let (front, address) = front(&target, &directory, "name = \"star\"", "");
    let names = data(address, "/api/v1/label/__name__/values");
    assert_eq!(names, serde_json::json!(["disk_io_read_bytes", "disk_io_read_bytes_2", "disk_io_read_bytes_3"]));
    let path = format!("/api/v1/query?time={BEGIN_S}&query=");
    let of = |name: &str| data(address, &format!("{path}{name}"))["result"].clone();
    for (name, value) in [("disk_io_read_bytes", "1"), ("disk_io_read_bytes_2", "2"), ("disk_io_read_bytes_3", "3")] {
        assert_eq!(of(name)[0]["value"][1], value, "{name}");
    }
    let labels = of("disk_io_read_bytes")[0]["metric"].clone();
    let mut values: Vec<_> =
        labels.as_object().unwrap().iter().map(|(name, value)| format!("{name}={value}")).collect();
    values.sort();
    assert_eq!(
        values,
        ["__name__=\"disk_io_read_bytes\"", "host_name=\"a\"", "host_name_2=\"b\"", "tag__name__=\"c\""]
    );
    front.stop();
}
