//! The recorder from its intakes to the tables, on each kind of database: what clients are told, and what is stored then.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[path = "recorder/left.rs"]
mod left;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use harness::{Directory, Target, send, write};

/// Lines of all kinds of values, from two sources of data.
const LINES: &str = "qos,host=a,line=x\\ 1 rtt=1.5,lost=3i,ok=t,note=\"say \\\"so\\\"\" 1000\n\
                     qos,host=b rtt=2.5,lost=4u 2000\nqos,line=x\\ 1,host=a rtt=3.5 3000\n";

/// What is true of every database: records are stored with their identity, in order, once.
fn records_reach_their_tables(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "[schema]\nends_every = \"0s\"");
    assert_eq!(write(started.http, LINES).status, 204);
    started.wait_until_committed();
    // Columns that are new.
    assert_eq!(write(started.http, "qos,host=a,line=x\\ 1,site=s rtt=4.5,new=7i 4000\n").status, 204);
    started.wait_until_committed();
    let end = started.stop();
    assert_eq!((end.counts.committed, end.counts.quarantined, end.failures), (4, 0, Vec::new()));
    let joined = "SELECT i.host, i.line, i.site, v.time_ns, v.rtt, v.lost, v.ok, v.note, v.new FROM qos_values v \
                  JOIN qos_identity i ON i.measurement = v.measurement ORDER BY v.record_id";
    let joined = if target.name == "postgres" { joined.replace("v.new", "v.\"new\"") } else { joined.to_owned() };
    assert_eq!(
        target.query(&joined),
        [
            "a|x 1|-|1000|1.5|3|1|say \"so\"|-",
            "b|-|-|2000|2.5|4|-|-|-",
            "a|x 1|-|3000|3.5|-|-|-|-",
            "a|x 1|s|4000|4.5|-|-|-|7"
        ]
    );
    let ends = "SELECT host, begin_ns, end_ns FROM qos_identity ORDER BY measurement";
    assert_eq!(target.query(ends), ["a|1000|3000", "b|2000|2000", "a|4000|4000"]);
}

/// One bad record among many costs that one, whatever refuses it.
fn one_bad_record_costs_one_record(target: &Target) {
    let directory = Directory::new();
    let more = "[admission]\nbelow = \"60s\"";
    let started = target.start(&directory, "name = \"wide\"", more);
    assert_eq!(write(started.http, "bad f=0i,g=1\n").status, 204);
    started.wait_until_committed();
    target.session().run("CREATE UNIQUE INDEX only_once ON bad (f)").unwrap();
    // Number 500 is there twice, which only the database sees; number 700 is no float, which the recorder sees.
    let mut body = String::new();
    for number in 1..=1_000 {
        let stored = if number == 501 { 500 } else { number };
        let value = if number == 700 { "\"text\"" } else { "1" };
        body += &format!("bad f={stored}i,g={value}\n");
    }
    assert_eq!(write(started.http, &body).status, 204);
    started.wait_until_committed();
    let end = started.stop();
    assert_eq!((end.counts.committed, end.counts.quarantined), (999, 2));
    assert_eq!(target.query("SELECT COUNT(*), COUNT(DISTINCT f) FROM bad"), ["999|999"]);
    let listed = loadline::recorder::spool::list(&directory.0.join("spool"), 10).unwrap();
    let lines: Vec<_> = listed.iter().map(|one| one.line.as_str()).collect();
    assert_eq!(lines, ["bad f=700i,g=\"text\"", "bad f=500i,g=1"]);
    assert!(listed[0].reason.contains("its column holds float"), "{}", listed[0].reason);
}

/// Quarantined records come back when what refused them is gone.
fn quarantined_records_can_be_replayed(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"wide\"", "");
    assert_eq!(write(started.http, "again f=1i 1\n").status, 204);
    started.wait_until_committed();
    target.session().run("CREATE UNIQUE INDEX again_once ON again (f)").unwrap();
    assert_eq!(write(started.http, "again f=1i 2\nagain f=2i 3\n").status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 1);
    let drop = if target.name == "mariadb" { "DROP INDEX again_once ON again" } else { "DROP INDEX again_once" };
    target.session().run(drop).unwrap();
    let config = target.config(&directory, "name = \"wide\"", "");
    assert_eq!(loadline::recorder::replay_quarantine(&config).unwrap().rows, 1);
    let started = target.start(&directory, "name = \"wide\"", "");
    started.wait_until_committed();
    let end = started.stop();
    assert_eq!((end.counts.quarantined, end.counts.spooled), (0, 0));
    assert_eq!(target.query("SELECT time_ns, f FROM again ORDER BY time_ns"), ["1|1", "2|1", "3|2"]);
}

/// All layouts store what was sent.
fn every_layout_stores_what_was_sent(target: &Target) {
    for (layout, sql, expected) in [
        ("wide", "SELECT host, rtt, lost FROM {m} ORDER BY record_id", ["a|1.5|3", "b|2.5|4", "a|3.5|-"]),
        (
            "star-hot",
            "SELECT m.time_ns, m.rtt, s.lost FROM {m}_main m JOIN {m}_secondary s ON s.record_id = m.record_id ORDER BY m.record_id",
            ["1000|1.5|3", "2000|2.5|4", "3000|3.5|-"],
        ),
        (
            "json",
            "SELECT measurement, time_ns, fields FROM {m}_values WHERE record_id > 0 ORDER BY record_id",
            [
                "#|1000|{\"lost\":3,\"note\":\"say \\\"so\\\"\",\"ok\":true,\"rtt\":1.5}",
                "#|2000|{\"lost\":4,\"rtt\":2.5}",
                "#|3000|{\"rtt\":3.5}",
            ],
        ),
    ] {
        let directory = Directory::new();
        let hot = if layout == "star-hot" { "\nhot = [\"rtt\"]" } else { "" };
        let started = target.start(&directory, &format!("name = \"{layout}\"{hot}"), "");
        let name = format!("in_{}", layout.replace('-', "_"));
        assert_eq!(write(started.http, &LINES.replace("qos", &name)).status, 204);
        started.wait_until_committed();
        assert_eq!(started.stop().counts.quarantined, 0, "{layout}");
        let found: Vec<_> = target.query(&sql.replace("{m}", &name)).iter().map(|row| normal(row)).collect();
        let found: Vec<_> =
            found.iter().map(|row| if layout == "json" { row.split_once('|').unwrap().1 } else { row }).collect();
        assert_eq!(found, expected.map(|row| row.trim_start_matches("#|")), "{layout}");
    }
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"eav\"", "");
    assert_eq!(write(started.http, &LINES.replace("qos", "in_eav")).status, 204);
    started.wait_until_committed();
    started.stop();
    let sql = "SELECT v.time_ns, c.field, c.float_value, c.integer_value, c.text_value FROM in_eav_values v \
               JOIN in_eav_cells c ON c.record_id = v.record_id WHERE v.time_ns < 2000 ORDER BY c.field";
    let expected = ["1000|lost|-|3|-", "1000|note|-|-|say \"so\"", "1000|ok|-|1|-", "1000|rtt|1.5|-|-"];
    assert_eq!(target.query(sql), expected);
}

/// New fields and tags go where the configuration says, in every layout, and no record is lost.
fn new_columns_go_where_they_are_told(target: &Target) {
    for layout in ["wide", "star", "star-hot", "json", "eav"] {
        for (new_columns, stored) in [("add", 3), ("json", 3), ("refuse", 1)] {
            let directory = Directory::new();
            let hot = if layout == "star-hot" { "\nhot = [\"f\"]" } else { "" };
            let layout_text = format!("name = \"{layout}\"{hot}");
            let name = format!("new_{}_{new_columns}", layout.replace('-', "_"));
            // The tables are there before anything is refused.
            let started = target.start(&directory, &layout_text, "");
            assert_eq!(write(started.http, &format!("{name},host=a f=1 1\n")).status, 204);
            started.wait_until_committed();
            started.stop();
            let schema = format!("[schema]\nnew_columns = \"{new_columns}\"");
            let started = target.start(&directory, &layout_text, &schema);
            let later = format!("{name},host=a,site=s f=2,g=3i 2\n{name},host=b,site=s f=4,h=\"x\" 3\n");
            assert_eq!(write(started.http, &later).status, 204);
            started.wait_until_committed();
            let counts = started.stop().counts;
            let what = format!("{layout} {new_columns}");
            assert_eq!(u64::from(counts.quarantined > 0), u64::from(new_columns == "refuse"), "{what}");
            let records = match layout {
                "wide" => name.clone(),
                "star-hot" => format!("{name}_main"),
                _ => format!("{name}_values"),
            };
            assert_eq!(target.query(&format!("SELECT COUNT(*) FROM {records}")), [stored.to_string()], "{what}");
            if new_columns != "refuse" {
                new_values_are_found(target, layout, new_columns, &name);
            }
        }
    }
}

/// Where the new tag `site` and the new field `g` are, for the record of time 2.
fn new_values_are_found(target: &Target, layout: &str, new_columns: &str, name: &str) {
    let one = |sql: String| normal(&format!("|{}", target.query(&sql)[0]));
    let is_json = new_columns == "json";
    let (records, tags) = match layout {
        "wide" => (name.to_owned(), name.to_owned()),
        "star-hot" => (format!("{name}_main"), format!("{name}_identity")),
        _ => (format!("{name}_values"), format!("{name}_identity")),
    };
    let field = match layout {
        "json" => one(format!("SELECT fields FROM {records} WHERE time_ns = 2")),
        "eav" => one(format!(
            "SELECT c.integer_value FROM {name}_cells c JOIN {records} v ON v.record_id = c.record_id \
             WHERE v.time_ns = 2 AND c.field = 'g'"
        )),
        _ if is_json => one(format!("SELECT more FROM {records} WHERE time_ns = 2")),
        "star-hot" => one(format!(
            "SELECT s.g FROM {name}_secondary s JOIN {records} v ON v.record_id = s.record_id WHERE v.time_ns = 2"
        )),
        _ => one(format!("SELECT g FROM {records} WHERE time_ns = 2")),
    };
    let more = if layout == "wide" { "|{\"g\":3,\"site\":\"s\"}" } else { "|{\"g\":3}" };
    let expected = match layout {
        "json" => "|{\"f\":2.0,\"g\":3}",
        "wide" | "star" | "star-hot" if is_json => more,
        _ => "|3",
    };
    let plain = |text: &str| text.replace("2.0", "2");
    assert_eq!(plain(&field), plain(expected), "{layout} {new_columns}");
    if layout != "wide" {
        let column = if is_json { "more" } else { "site" };
        let found = one(format!("SELECT {column} FROM {tags} WHERE begin_ns = 2"));
        assert_eq!(found, if is_json { "|{\"site\":\"s\"}" } else { "|s" }, "{layout} {new_columns}");
    } else if !is_json {
        assert_eq!(one(format!("SELECT site FROM {tags} WHERE time_ns = 2")), "|s");
    }
}

/// A value of another kind than its column goes to the column of JSON, and what a new measurement is called may be refused.
fn values_of_another_kind_and_new_measurements(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "[schema]\nnew_columns = \"json\"");
    assert_eq!(write(started.http, "later,host=a f=1 1\nlater,host=a,site=s f=2 2\n").status, 204);
    started.wait_until_committed();
    assert_eq!(write(started.http, "later,host=a g=1,f=\"x\" 3\n").status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0);
    let found = target.query("SELECT f, more FROM later_values WHERE time_ns = 3");
    assert_eq!(normal(&found[0]), "-|{\"f\":\"x\",\"g\":1.0}");
    let started = target.start(&directory, "name = \"star\"", "[schema]\nnew_columns = \"refuse\"");
    assert_eq!(write(started.http, "never f=1 1\n").status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 1);
}

/// However many identities there are and however few are kept in memory, each is written once and its end is its newest time.
fn identities_are_written_once_however_few_are_remembered(target: &Target) {
    let directory = Directory::new();
    let more = "[schema]\nidentities_max = 4\nends_every = \"0s\"\n[writer]\nbatch = 50";
    let started = target.start(&directory, "name = \"star\"", more);
    for round in 0..4 {
        let body: String =
            (0..60).map(|host| format!("many,host=h{host} f={round}i {}\n", round * 100 + host)).collect();
        assert_eq!(write(started.http, &body).status, 204);
    }
    started.wait_until_committed();
    started.stop();
    let sql =
        "SELECT COUNT(*), COUNT(DISTINCT host), SUM(end_ns - begin_ns), MIN(begin_ns), MAX(end_ns) FROM many_identity";
    assert_eq!(target.query(sql), [format!("60|60|{}|0|359", 60 * 300)]);
    let sql = "SELECT COUNT(*) FROM many_values v JOIN many_identity i ON i.measurement = v.measurement WHERE i.edited_ns > 0";
    assert_eq!(target.query(sql), ["240"]);
}

/// A client that makes up measurements, and one whose measurement is called like another's table, cost nobody else anything.
fn measurements_that_can_have_no_tables_cost_only_themselves(target: &Target) {
    let directory = Directory::new();
    target.session().run("CREATE TABLE mine (id INTEGER)").unwrap();
    let known = target.query("SELECT COUNT(*) FROM loadline_column WHERE role = 'table'")[0].parse::<u32>().unwrap();
    let more = format!("[schema]\nmeasurements_max = {}", known + 3);
    let started = target.start(&directory, "name = \"wide\"", &more);
    assert_eq!(
        write(started.http, "mine f=1 1\nmade_up_1 f=1 1\nmade_up_2 f=1 1\nmade_up_3 f=1 1\nmade_up_1 f=2 2\n").status,
        204
    );
    started.wait_until_committed();
    assert_eq!(write(started.http, "made_up_2 f=2 2\nmade_up_4 f=1 1\n").status, 204);
    started.wait_until_committed();
    let end = started.stop();
    assert_eq!((end.counts.committed, end.counts.quarantined), (5, 2));
    assert_eq!(target.query("SELECT COUNT(*) FROM mine"), ["0"], "it is somebody else's");
    let listed = loadline::recorder::spool::list(&directory.0.join("spool"), 10).unwrap();
    assert!(listed.iter().all(|one| one.reason.contains("measurements_max")), "{listed:?}");
}

/// A row whose last value is JSON, in one form: databases order keys and put spaces in their own ways.
fn normal(row: &str) -> String {
    let (rest, last) = row.rsplit_once('|').unwrap();
    let json = serde_json::from_str::<serde_json::Value>(last);
    json.map_or_else(|_| row.to_owned(), |json| format!("{rest}|{json}"))
}

fn everything_that_is_true_of_every_database(target: &Target) {
    records_reach_their_tables(target);
    one_bad_record_costs_one_record(target);
    left::what_a_killed_recorder_has_made_is_taken_over(target);
    quarantined_records_can_be_replayed(target);
    every_layout_stores_what_was_sent(target);
    new_columns_go_where_they_are_told(target);
    values_of_another_kind_and_new_measurements(target);
    identities_are_written_once_however_few_are_remembered(target);
    measurements_that_can_have_no_tables_cost_only_themselves(target);
}

#[test]
fn records_are_stored_in_sqlite() {
    let directory = Directory::new();
    everything_that_is_true_of_every_database(&Target::sqlite(&directory));
}

#[test]
fn records_are_stored_in_mariadb() {
    everything_that_is_true_of_every_database(&Target::server("mariadb"));
}

#[test]
fn records_are_stored_in_postgresql() {
    everything_that_is_true_of_every_database(&Target::server("postgres"));
}

#[test]
fn clients_are_told_what_is_wrong_in_the_terms_of_http() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = loadline::recorder::config::read(
        &format!(
            "[database]\npath = \"{}\"\n[spool]\npath = \"{}\"\n[intake]\nrequest = \"64KiB\"\n[intake.tcp]\nlisten = \"127.0.0.1:0\"\n\
             [intake.http]\nlisten = \"127.0.0.1:0\"\ntokens = [\"secret-token-of-all\"]\n",
            directory.path("measurements.db"),
            directory.path("spool")
        ),
        "test.toml",
    )
    .unwrap();
    let started = harness::Started::new(&config, target.open());
    let token = "Authorization: Token secret-token-of-all\r\n";
    let post = |path: &str, headers: &str, body: &[u8]| send(started.http, "POST", path, headers, body);
    assert_eq!(post("/api/v2/write", "", b"m f=1").status, 401);
    assert_eq!(post("/api/v2/write", "Authorization: Token other\r\n", b"m f=1").status, 401);
    assert_eq!(post("/api/v2/write?precision=ms&org=o&bucket=b", token, b"m f=1 5").status, 204);
    assert_eq!(post("/write?db=d&p=secret-token-of-all&precision=s", "", b"m f=2 6").status, 204);
    let bad = post("/api/v2/write", token, b"m f=1\nm f=\n");
    assert_eq!(bad.status, 400);
    let body: serde_json::Value = serde_json::from_str(&bad.body).unwrap();
    assert_eq!((&body["line"], &body["column"]), (&2.into(), &5.into()), "{}", bad.body);
    assert!(body["message"].as_str().unwrap().contains("1 points are stored"));
    assert_eq!(post("/api/v2/write?precision=d", token, b"m f=1").status, 400);
    let large = post("/api/v2/write", token, &vec![b'#'; 70_000]);
    assert_eq!(large.status, 413);
    assert!(large.body.contains("65536"), "{}", large.body);
    assert_eq!(post("/api/v2/write", &format!("{token}Content-Encoding: br\r\n"), b"m f=1").status, 415);
    assert_eq!(post("/api/v2/write", &format!("{token}Content-Encoding: gzip\r\n"), b"m f=1").status, 400);
    assert_eq!(send(started.http, "GET", "/api/v2/write", token, b"").status, 405);
    assert_eq!(send(started.http, "GET", "/nothing", token, b"").status, 404);
    let made = send(started.http, "POST", "/query?p=secret-token-of-all", "", b"q=CREATE+DATABASE+%22telegraf%22");
    assert_eq!((made.status, &*made.body), (200, "{\"results\":[{\"statement_id\":0}]}"));
    assert_eq!(send(started.http, "GET", "/query?q=SELECT+1", token, b"").status, 400);
    assert_eq!(send(started.http, "POST", "/query?q=CREATE+DATABASE+d", "", b"").status, 401);
    assert!(send(started.http, "GET", "/ping", "", b"").head.contains("x-influxdb-version: loadline-"));
    assert_eq!(send(started.http, "GET", "/health", "", b"").status, 200);
    assert_eq!(send(started.http, "GET", "/ready", "", b"").status, 200);
    let metrics = send(started.http, "GET", "/metrics", "", b"").body;
    assert!(metrics.contains("loadline_acknowledged_rows_total 3\n"), "{metrics}");
    started.stop();
    assert_eq!(target.query("SELECT COUNT(*) FROM m_values"), ["3"]);
}

#[test]
fn a_recorder_is_ready_before_anything_was_written() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let started = target.start(&directory, "name = \"star\"", "");
    let begun = Instant::now();
    while send(started.http, "GET", "/ready", "", b"").status != 200 {
        assert!(begun.elapsed() < Duration::from_secs(240));
        std::thread::sleep(Duration::from_millis(20));
    }
    started.stop();
}

#[test]
fn gzip_is_read_within_its_bounds() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let started = target.start(&directory, "name = \"wide\"", "");
    let zip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let post = |body: &[u8]| send(started.http, "POST", "/write", "Content-Encoding: gzip\r\n", body).status;
    assert_eq!(post(&zip(b"m f=1\nm f=2\n")), 204);
    assert_eq!(post(&zip(&vec![b'#'; 200 << 20])), 413, "a bomb");
    assert_eq!(post(&zip(b"m f=1\n")[..10]), 400);
    assert_eq!(started.stop().counts.committed, 2);
}

#[test]
fn half_slow_and_endless_requests_cost_nobody_else_anything() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let started =
        target.start(&directory, "name = \"wide\"", "patience = \"300ms\"\nconnections = 60\n[writer]\nbatch = 100");
    let mut slow: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(started.tcp).unwrap()).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(b"m f=1\nm f").unwrap());
    let mut half = TcpStream::connect(started.http).unwrap();
    half.write_all(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nm f=3\n").unwrap();
    drop(half);
    let mut endless = TcpStream::connect(started.http).unwrap();
    endless.write_all(b"POST /write HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n").unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b'#'; 65_536], b"\r\n"].concat();
    endless.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
    let written = (0..1_000).take_while(|_| endless.write_all(&chunk).is_ok()).count();
    assert!(written < 1_000, "an endless request is cut off");
    assert_eq!(write(started.http, "m f=2\n").status, 204);
    for stream in &mut slow {
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).unwrap_or(0), 0, "lines that nobody asks about are not answered");
    }
    assert_eq!(started.stop().counts.quarantined, 20, "a half line is kept, and is no record");
    let stored = target.query("SELECT f, COUNT(*) FROM m GROUP BY f ORDER BY f");
    assert_eq!(stored, ["1|20", "2|1"], "nothing of half a request is stored, and the whole lines of a stream are");
}

#[test]
fn batches_over_tcp_are_acknowledged_line_by_line() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let started = target.start(&directory, "name = \"wide\"", "");
    let mut stream = TcpStream::connect(started.tcp).unwrap();
    let mut answers = BufReader::new(stream.try_clone().unwrap());
    let mut say = |batch: &str| {
        stream.write_all(batch.as_bytes()).unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        answer
    };
    assert_eq!(say("# source=s1 precision=s id=1\nm f=1 1\nm f=2 2\n\n"), "ok 2\n");
    assert_eq!(say("# id=1\nm f=1 1\nm f=2 2\n\n"), "duplicate\n");
    assert_eq!(
        say("m f=3 3\nm f= 4\n\n"),
        "partial 1 line 2, column 5: the value is missing; write a number, 3i, 3u, true, false or \"text\"\n"
    );
    assert!(say("m\n\n").starts_with("error line 1, column 2"));
    assert!(say("# precision=d\nm f=1\n\n").starts_with("error precision"));
    started.stop();
    assert_eq!(
        target.query("SELECT time_ns, f FROM m ORDER BY record_id"),
        ["1000000000|1", "2000000000|2", "3000000000|3"]
    );
}

#[test]
fn what_is_sent_again_is_stored_once_even_by_the_next_recorder() {
    for name in ["sqlite", "mariadb"] {
        let directory = Directory::new();
        let target = if name == "sqlite" { Target::sqlite(&directory) } else { Target::server("mariadb") };
        for round in 0..2 {
            let started = target.start(&directory, "name = \"wide\"", "");
            for _ in 0..3 {
                let answer = send(started.http, "POST", "/write", "Idempotency-Key: k\r\n", b"m f=1 1\nm f=2 2\n");
                assert_eq!(answer.status, 204);
            }
            let end = started.stop();
            assert_eq!(end.counts.spooled, 0, "{name} {round}");
        }
        assert_eq!(target.query("SELECT f FROM m ORDER BY f"), ["1", "2"], "{name}");
    }
}

#[test]
fn a_wrong_configuration_is_refused_as_a_whole_before_anything_is_started() {
    let directory = Directory::new();
    let path = directory.path("wrong.toml");
    std::fs::write(&path, "[database]\npath = \"m.db\"\n[layout]\nname = \"stra\"\n[intake.http]\nlisten = \"8086\"\n")
        .unwrap();
    let run = |arguments: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_loadline")).arg("record").args(arguments).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (status, _, errors) = run(&[&path]);
    assert_eq!(status, Some(2), "{errors}");
    assert!(errors.contains(&format!("{path}:4: unknown layout.name \"stra\"; did you mean \"star\"?")), "{errors}");
    assert!(errors.contains(&format!("{path}:6: intake.http.listen is \"8086\"")), "{errors}");
    assert_eq!(run(&[&directory.path("nothing.toml")]).0, Some(2));
    let good = directory.path("good.toml");
    let spool = directory.path("spool");
    std::fs::write(
        &good,
        format!(
            "[database]\npath = \"{}\"\n[spool]\npath = \"{spool}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n",
            directory.path("m.db")
        ),
    )
    .unwrap();
    let (status, _, errors) = run(&[&good, "--quarantine", "list"]);
    assert!(status == Some(2) && errors.contains("spool"), "there is no spool yet: {errors}");
}

#[test]
fn texts_of_any_size_are_stored_whole_or_kept_in_quarantine() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let started = target.start(&directory, "name = \"wide\"", "");
    let text = |bytes: usize| format!("m f=\"{}\"\n", "x".repeat(bytes));
    assert_eq!(write(started.http, &(text(1 << 20) + &text(5 << 20))).status, 204);
    assert_eq!(started.stop().counts.quarantined, 1);
    assert_eq!(target.query("SELECT LENGTH(f) FROM m"), [(1 << 20).to_string()]);
}
