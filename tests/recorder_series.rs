//! Many writers that meet the same new series at the same time: each record is stored once, none is held to be to blame for another's series. And one writer for whom much waits: it
//! prepares each batch while the one before is committed, and stores all in order.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;

use harness::{Directory, Target, send};
use loadline::layout::recorded::Shape;
use loadline::recorder::writer::stored_tables;

/// Series that are new to everybody.
const SERIES: usize = 4_000;
/// How far each source steps from one series to the next.
const STEPS: [usize; RECORDERS * SOURCES] = [77, 99, 121, 143, 187, 209, 231, 253];
/// Sources at each recorder; each sends all series, in another order.
const SOURCES: usize = 4;
const RECORDERS: usize = 2;
/// Lines of a request.
const LINES: usize = 500;

/// The lines of a source: its own time stamps, and the series in an order of its own.
fn requests(source: usize) -> Vec<String> {
    let line = |place: usize| {
        // Their number has the factors 2 and 5 alone, so that each comes once.
        let series = (place * STEPS[source] + source * 97) % SERIES;
        format!("link,probe=p{series},kind=lte rtt={series}.5 {}\n", (source * SERIES + place + 1) * 1_000)
    };
    let lines: Vec<String> = (0..SERIES).map(line).collect();
    lines.chunks(LINES).map(<[String]>::concat).collect()
}

/// Sends what each source has to send to recorders with several writers each, all at the same time; all records of so many each are committed.
fn record(target: &Target, layout: &str, requests: impl Fn(usize) -> Vec<String> + Sync, each: usize) {
    let directories: Vec<_> = (0..RECORDERS).map(|_| Directory::new()).collect();
    let start = |directory: &Directory| target.start(directory, layout, "[writer]\ncount = 4\n");
    let started: Vec<_> = directories.iter().map(start).collect();
    std::thread::scope(|scope| {
        for (place, recorder) in started.iter().enumerate() {
            for source in (0..SOURCES).map(|source| place * SOURCES + source) {
                let (address, requests) = (recorder.http, &requests);
                scope.spawn(move || {
                    for body in requests(source) {
                        let header = format!("X-Loadline-Source: s{source}\r\n");
                        let answer = send(address, "POST", "/write", &header, body.as_bytes());
                        assert_eq!(answer.status, 204, "{}", answer.body);
                    }
                });
            }
        }
    });
    for recorder in &started {
        recorder.wait_until_committed();
        let counts = recorder.recorder.counts();
        assert_eq!((counts.quarantined, counts.committed), (0, (SOURCES * each) as u64), "{layout}: {counts:?}");
    }
    started.into_iter().for_each(|recorder| drop(recorder.stop()));
}

fn many_writers_meet_the_same_new_series(target: &Target, layout: &str) {
    record(target, &format!("name = \"{layout}\""), requests, SERIES);
    let one = |sql: &str| target.query(sql)[0].parse::<usize>().unwrap();
    assert_eq!(one("SELECT count(*) FROM link_values"), RECORDERS * SOURCES * SERIES);
    assert_eq!(one("SELECT count(*) FROM link_identity"), SERIES);
    let joined = "SELECT count(*) FROM link_values v JOIN link_identity i ON i.measurement = v.measurement \
                  WHERE i.probe = concat('p', cast(floor(v.rtt) AS char(9)))";
    let joined = if target.name == "postgres" { joined.replace("char(9)", "varchar(9)") } else { joined.to_owned() };
    assert_eq!(one(&joined), RECORDERS * SOURCES * SERIES, "each record belongs to its own series");
}

/// Measurements that are new to everybody, fields of each, and lines that each source sends.
const MEASUREMENTS: usize = 5;
const FIELDS: usize = 8;
const GROWING: usize = 400;

/// What a line says: its number, and its fields with their values.
struct Said {
    measurement: usize,
    number: usize,
    fields: Vec<(usize, i64)>,
}

/// Lines of a source in which measurements, tags and fields appear one after the other.
fn growing(source: usize) -> Vec<Said> {
    let mut random = source as u64 + 1;
    let mut below = |bound: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % bound
    };
    let line = |place: usize| {
        let known = 1 + place * FIELDS / GROWING;
        let measurement = below(1 + place * MEASUREMENTS / GROWING);
        let mut fields: Vec<usize> = (0..1 + below(3)).map(|_| below(known)).collect();
        fields.sort_unstable();
        fields.dedup();
        let fields = fields.into_iter().map(|field| (field, below(1_000_000) as i64)).collect();
        Said { measurement, number: source * GROWING + place + 1, fields }
    };
    (0..GROWING).map(line).collect()
}

/// The name of a measurement, another one in each layout.
fn name(layout: &str, measurement: usize) -> String {
    format!("{}{measurement}", layout.replace('-', ""))
}

fn line_of(layout: &str, said: &Said) -> String {
    let fields: String = said.fields.iter().map(|(field, value)| format!(",f{field}={value}i")).collect();
    let region = if said.number.is_multiple_of(3) { format!(",region=r{}", said.number % 4) } else { String::new() };
    format!(
        "{},host=h{}{region} id={number}i{fields} {number}\n",
        name(layout, said.measurement),
        said.number % 20,
        number = said.number
    )
}

fn many_writers_meet_new_tables_and_columns(target: &Target, layout: &str) {
    let hot = if layout == "star-hot" { "\nhot = [\"id\", \"f1\"]" } else { "" };
    let requests = |source: usize| {
        let lines: Vec<String> = growing(source).iter().map(|said| line_of(layout, said)).collect();
        lines.chunks(10).map(<[String]>::concat).collect()
    };
    record(target, &format!("name = \"{layout}\"{hot}"), requests, GROWING);
    let all: Vec<Said> = (0..RECORDERS * SOURCES).flat_map(growing).collect();
    for measurement in 0..MEASUREMENTS {
        let own: Vec<&Said> = all.iter().filter(|said| said.measurement == measurement).collect();
        let shape = Shape::named(layout).unwrap();
        let table = stored_tables(shape, &name(layout, measurement)).records;
        let one = |sql: String| target.query(&sql)[0].parse::<i64>().unwrap();
        if layout != "eav" {
            assert_eq!(one(format!("SELECT count(*) FROM {table}")), own.len() as i64, "{layout}, g{measurement}");
        }
        if ["wide", "star"].contains(&layout) {
            let ids: i64 = own.iter().map(|said| said.number as i64).sum();
            assert_eq!(one(format!("SELECT sum(id) FROM {table}")), ids, "{layout}, g{measurement}");
            for field in 0..FIELDS {
                let of_field = own.iter().flat_map(|said| said.fields.iter().filter(|(own, _)| *own == field));
                let sum: i64 = of_field.map(|(_, value)| value).sum();
                if sum > 0 {
                    assert_eq!(
                        one(format!("SELECT sum(f{field}) FROM {table}")),
                        sum,
                        "{layout}, g{measurement}, f{field}"
                    );
                }
            }
        }
    }
}

#[test]
fn new_tables_and_columns_in_postgres() {
    let target = Target::server("postgres");
    Shape::NAMES.iter().for_each(|layout| many_writers_meet_new_tables_and_columns(&target, layout));
}

#[test]
fn new_tables_and_columns_in_mariadb() {
    let target = Target::server("mariadb");
    Shape::NAMES.iter().for_each(|layout| many_writers_meet_new_tables_and_columns(&target, layout));
}

#[test]
fn in_postgres() {
    many_writers_meet_the_same_new_series(&Target::server("postgres"), "star");
}

#[test]
fn in_mariadb() {
    many_writers_meet_the_same_new_series(&Target::server("mariadb"), "star");
}

/// Holds a table locked while many records come, so that they wait, and then lets the writer write them.
fn what_waits_is_prepared_and_stored_in_order(target: &Target, lock: &[&str], unlock: &str) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "[writer]\nbatch = 1000\n");
    let line = |number: usize| format!("backlog,probe=p{} rtt={number}.5,kind=\"lte\" {number}\n", number % 7);
    // The table and the seven series.
    assert_eq!(send(started.http, "POST", "/write", "", (1..8).map(line).collect::<String>().as_bytes()).status, 204);
    started.wait_until_committed();
    let mut holder = target.session();
    lock.iter().for_each(|sql| holder.run(sql).unwrap());
    for first in (8..10_008).step_by(500) {
        let body: String = (first..first + 500).map(line).collect();
        assert_eq!(send(started.http, "POST", "/write", "", body.as_bytes()).status, 204);
    }
    holder.run(unlock).unwrap();
    started.wait_until_committed();
    let page = send(started.http, "GET", "/metrics", "", b"").body;
    let prepared = page.lines().find_map(|line| line.strip_prefix("loadline_prepared_batches_total ")).unwrap();
    assert!(prepared.parse::<u64>().unwrap() >= 3, "{prepared} batches were prepared");
    let stored = target.query("SELECT time_ns FROM backlog_values ORDER BY record_id");
    let expected: Vec<String> = (1..10_008).map(|number: usize| number.to_string()).collect();
    assert!(stored == expected, "each record is there once, in order");
    let sql = "SELECT count(*) FROM backlog_values v JOIN backlog_identity i ON i.measurement = v.measurement WHERE \
               i.probe = concat('p', v.time_ns % 7) AND v.rtt = v.time_ns + 0.5";
    assert_eq!(target.query(sql)[0], "10007", "each belongs to its series");
    started.stop();
}

#[test]
fn one_writer_prepares_what_waits_for_postgres() {
    let lock = ["BEGIN", "LOCK TABLE backlog_values IN ACCESS EXCLUSIVE MODE"];
    what_waits_is_prepared_and_stored_in_order(&Target::server("postgres"), &lock, "COMMIT");
}

#[test]
fn one_writer_prepares_what_waits_for_mariadb() {
    let lock = ["LOCK TABLES backlog_values WRITE"];
    what_waits_is_prepared_and_stored_in_order(&Target::server("mariadb"), &lock, "UNLOCK TABLES");
}
