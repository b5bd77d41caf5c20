//! Readings that are older than they are kept are deleted, and no others: while others come in, when the recorder is killed, when its clock is wrong. What must be there
//! is counted apart from the recorder, in its tables.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;

use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime};

use harness::{Directory, Target, write};
use loadline::layout::recorded::Shape;
use loadline::recorder::retention::finding;
use process::{Process, config_file, database_of};

const S: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * S;
const SOURCES: i64 = 3;

fn now_ns() -> i64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_nanos() as i64
}

/// The readings that must be there: value by source and time stamp.
#[derive(Default)]
struct Sent {
    readings: BTreeMap<(i64, i64), i64>,
    next: i64,
}

impl Sent {
    /// Sends readings of all sources, with these time stamps; returns how many there were.
    fn send(&mut self, process: &Process, measurement: &str, times_ns: impl Iterator<Item = i64>) -> u64 {
        let mut lines = Vec::new();
        for time_ns in times_ns {
            for source in 0..SOURCES {
                self.next += 1;
                self.readings.insert((source, time_ns), self.next);
                lines.push(format!("{measurement},host=h{source} hot={}i,cold=1.5 {time_ns}\n", self.next));
            }
        }
        for body in lines.chunks(500) {
            let answer = write(process.http, &body.concat());
            assert_eq!(answer.status, 204, "{}", answer.body);
        }
        lines.len() as u64
    }

    fn forget_before(&mut self, time_ns: i64) {
        self.readings.retain(|(_, own_ns), _| *own_ns >= time_ns);
    }

    /// The same as the query of [`stored`] gives it.
    fn lines(&self) -> Vec<String> {
        self.readings.iter().map(|((source, time_ns), value)| format!("h{source}|{time_ns}|{value}")).collect()
    }
}

/// What is stored: source, time stamp and value.
fn stored(target: &Target, layout: &str, m: &str) -> Vec<String> {
    let (values, more) = match layout {
        "wide" => return target.query(&format!("SELECT host, time_ns, hot FROM {m} ORDER BY host, time_ns")),
        "star" => (format!("{m}_values"), "v.hot".to_owned()),
        "star-hot" => (format!("{m}_main"), "v.hot".to_owned()),
        "eav" => {
            let cell = format!(
                "(SELECT c.integer_value FROM {m}_cells c WHERE c.record_id = v.record_id AND c.field = 'hot')"
            );
            (format!("{m}_values"), cell)
        }
        _ => {
            let field = match target.name {
                "postgres" => "v.fields ->> 'hot'",
                _ => "json_extract(v.fields, '$.hot')",
            };
            (format!("{m}_values"), field.to_owned())
        }
    };
    target.query(&format!(
        "SELECT i.host, v.time_ns, {more} FROM {values} v JOIN {m}_identity i ON i.measurement = v.measurement ORDER BY i.host, v.time_ns"
    ))
}

/// The rows that belong to readings.
fn count_of_second(target: &Target, layout: &str, m: &str) -> Option<String> {
    let table = match layout {
        "star-hot" => format!("{m}_secondary"),
        "eav" => format!("{m}_cells"),
        _ => return None,
    };
    target.query(&format!("SELECT COUNT(*) FROM {table}")).pop()
}

fn config(directory: &Directory, target: &Target, layout: &str, retention: &str) -> String {
    let path = config_file(directory, &database_of(target), &format!("[retention]\n{retention}"));
    let hot = if layout == "star-hot" { "\nhot = [\"hot\"]" } else { "" };
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("name = \"star\"", &format!("name = \"{layout}\"{hot}"))).unwrap();
    path
}

fn wait_for(process: &Process, what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(200), "{what} did not come; it said: {}", process.said());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn retired(process: &Process) -> u64 {
    process.metric("loadline_retired_rows_total") as u64
}

/// What was retired in the database, by whomever.
fn all_retired(target: &Target) -> u64 {
    let sums = target.query("SELECT COALESCE(SUM(retired), 0) FROM loadline_retired");
    sums[0].parse::<f64>().unwrap() as u64
}

/// Old readings are deleted while new ones come in; then late ones.
fn only_old_readings_are_deleted(target: &Target, layouts: &[&str]) {
    for layout in layouts {
        let directory = Directory::new();
        let m = format!("ret_{}", layout.replace('-', "_"));
        let keeps = format!(
            "keep = \"1h\"\nevery = \"1s\"\nrows = 50\nshare = 5\nmeasurements = {{ {m}_ever = \"forever\" }}\n"
        );
        let process = Process::start(&config(&directory, target, layout, &keeps), "");
        let (mut sent, mut ever) = (Sent::default(), Sent::default());
        let begun = now_ns();
        let before = begun - HOUR;
        // No reading is so near to the bound that the test decides which side it is on.
        sent.send(&process, &m, (1..=200).map(|number| before + 600 * S + number * S));
        ever.send(&process, &format!("{m}_ever"), (1..=20).map(|number| before - number * S));
        // They come last, and are deleted slowly, so that others come in meanwhile however late this thread has its turn.
        let old = sent.send(&process, &m, (1..=200).map(|number| before - 60 * S - number * S / 7));
        let mut number = 0;
        while retired(&process) < old {
            sent.send(&process, &m, std::iter::once(begun + number));
            process.assert_conserved();
            number += 1;
            assert!(now_ns() - begun < 200 * S, "{layout}: {} of {old}: {}", retired(&process), process.said());
        }
        assert!(number > 0, "recording went on meanwhile");
        // A late reading is stored and deleted, like any other of its age.
        let late = sent.send(&process, &m, (1..=30).map(|number| before - 7 * HOUR + number));
        wait_for(&process, "the deletion of late readings", || retired(&process) >= old + late);
        wait_for(&process, "the last commit", || process.metric("loadline_spooled_rows") == 0.0);
        sent.forget_before(before);
        let name = format!("{} {layout}", target.name);
        assert_eq!(stored(target, layout, &m), sent.lines(), "{name}");
        assert_eq!(stored(target, layout, &format!("{m}_ever")), ever.lines(), "{name}");
        let fields = if *layout == "eav" { 2 } else { 1 };
        let expected = sent.readings.len() * fields;
        assert!(count_of_second(target, layout, &m).is_none_or(|count| count == expected.to_string()), "{name}");
        process.assert_conserved();
        assert_eq!(retired(&process), old + late, "{name}: nothing else is counted");
        let committed = process.metric("loadline_committed_rows_total") as usize;
        assert_eq!(committed, sent.readings.len() + ever.readings.len(), "{name}: what is committed is what is there");
        assert_eq!(process.stop(), Some(0));
    }
}

/// The recorder is killed in the middle of deleting, again and again; afterwards nothing is missing, and everything is counted.
fn killed_while_it_deletes(target: &Target) {
    let directory = Directory::new();
    let slowly = config(
        &directory,
        target,
        "star",
        "measurements = { killed = \"1h\" }\nevery = \"1s\"\nrows = 10\nshare = 10\n",
    );
    let (mut sent, mut process) = (Sent::default(), Process::start(&slowly, ""));
    let before = now_ns() - HOUR;
    // Where the commit is the acknowledgement, records are counted since the start.
    let counts_all = target.name != "sqlite";
    let others = all_retired(target);
    let retired = |_: &Process| all_retired(target) - others;
    let old = sent.send(&process, "killed", (1..=700).map(|number| before - 60 * S - number * S));
    sent.send(&process, "killed", (1..=100).map(|number| before + 600 * S + number * S));
    let mut known = 0;
    for round in 0..5 {
        let next = (known + 10 * (round + 1)).min(old);
        wait_for(&process, "a deletion", || retired(&process) >= next);
        known = retired(&process);
        process.kill();
        process = Process::start(&slowly, "");
        sent.send(&process, "killed", std::iter::once(before + 3_000 * S + round as i64));
    }
    wait_for(&process, "the deletion of the rest", || retired(&process) >= old);
    wait_for(&process, "the last commit", || process.metric("loadline_spooled_rows") == 0.0);
    sent.forget_before(before);
    assert_eq!(stored(target, "star", "killed"), sent.lines(), "{}", target.name);
    process.assert_conserved();
    assert_eq!(retired(&process), old, "{}", target.name);
    let counts = ["committed", "retired"].map(|name| process.metric(&format!("loadline_{name}_rows_total")) as u64);
    // Since the last start, one reading of each source was sent.
    let expected = if counts_all { [sent.readings.len() as u64, old] } else { [SOURCES as u64, 0] };
    assert_eq!(counts, expected, "{}", target.name);
    assert_eq!(process.stop(), Some(0));
    // What was retired is known without the section, too.
    let text = std::fs::read_to_string(&slowly).unwrap();
    std::fs::write(&slowly, text.split("[retention]").next().unwrap()).unwrap();
    let process = Process::start(&slowly, "");
    wait_for(&process, "the count", || process.metric("loadline_retired_rows_total") as u64 == expected[1]);
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
}

/// A clock that is years ahead of the last known time deletes nothing, until somebody says that it is right.
fn a_clock_that_jumped_deletes_nothing(target: &Target) {
    let directory = Directory::new();
    let keeps = "keep = \"30d\"\nevery = \"1s\"\n";
    let path = config(&directory, target, "star", keeps);
    let process = Process::start(&path, "");
    let mut sent = Sent::default();
    let now = now_ns();
    sent.send(&process, "jumped", (1..=5).map(|number| now - number * S));
    wait_for(&process, "a look", || process.metric("loadline_retention_passes_total") > 0.0);
    assert_eq!(process.stop(), Some(0));
    // For the next recorder, its clock is a year ahead.
    let year = 365 * 24 * HOUR;
    target.session().run(&format!("UPDATE loadline_retired SET clock_ns = {} WHERE writer = -1", now - year)).unwrap();
    let (process, others) = (Process::start(&path, ""), all_retired(target));
    let old = sent.send(&process, "jumped", (1..=5).map(|number| now - 40 * 24 * HOUR + number));
    wait_for(&process, "the refusal", || process.metric("loadline_retention_held") == 1.0);
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(stored(target, "star", "jumped"), sent.lines());
    wait_for(&process, "the clock in the log", || process.said().contains("the clock has jumped ahead"));
    assert_eq!(process.stop(), Some(0));
    let path = config(&directory, target, "star", &format!("{keeps}clock_until = \"2099-01-01T00:00:00Z\"\n"));
    let process = Process::start(&path, "");
    wait_for(&process, "the deletion", || all_retired(target) - others == old);
    assert_eq!(process.metric("loadline_retention_held"), 0.0);
    sent.forget_before(now - HOUR);
    assert_eq!(stored(target, "star", "jumped"), sent.lines());
    assert_eq!(process.stop(), Some(0));
}

/// Without the index nothing is deleted and the log says how to make it; with it, the database uses it.
fn deletion_needs_the_index(target: &Target, layout: &str, index: &str) {
    let directory = Directory::new();
    let path = config(&directory, target, layout, "keep = \"1h\"\nevery = \"1s\"\n");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replace("[layout]\n", "[layout]\ntime_index = false\n")).unwrap();
    let process = Process::start(&path, "");
    let (mut sent, now) = (Sent::default(), now_ns());
    let old = sent.send(&process, "bare", (1..=40).map(|number| now - 2 * HOUR + number * S));
    sent.send(&process, "bare", (1..=2_000).map(|number| now - number * S / 10));
    wait_for(&process, "the refusal", || process.metric("loadline_retention_measurements_without_index") == 1.0);
    assert_eq!((retired(&process), stored(target, layout, "bare").len()), (0, sent.readings.len()));
    // The log has a queue of its own, for which nobody waits.
    wait_for(&process, "the remedy in the log", || process.said().contains("CREATE INDEX"));
    let said = process.said().replace("\\\"", "\"");
    let (_, rest) = said.split_once("remedy=\"CREATE INDEX").unwrap();
    let statement = format!("CREATE INDEX{}", &rest[..=rest.find(')').unwrap()]);
    target.session().run(&statement).unwrap();
    wait_for(&process, "the deletion", || retired(&process) == old);
    sent.forget_before(now - HOUR);
    assert_eq!(stored(target, layout, "bare"), sent.lines());
    let without_index = || process.metric("loadline_retention_measurements_without_index");
    wait_for(&process, "the end of that look", || without_index() == 0.0);
    assert_eq!(process.stop(), Some(0));
    let shape = Shape::named(layout).unwrap();
    let (database, mut session) = (target.open(), target.session());
    // New tables have no other index on the source.
    let (on_table, other) = (if target.name == "mariadb" { " ON bare_values" } else { "" }, "bare_values_measurement");
    if layout != "wide" {
        session.run(&format!("DROP INDEX {other}{on_table}")).unwrap();
    }
    session.analyse_table(if layout == "wide" { "bare" } else { "bare_values" }).unwrap();
    for sql in finding(shape, "bare", database.dialect(), now - 2 * HOUR) {
        let rows = session.query(&database.dialect().explain(&sql)).unwrap();
        let plan: Vec<_> = rows.iter().map(|row| database.dialect().plan_line(row)).collect();
        assert!(plan.join("\n").contains(index), "{} {layout}: {sql}\n{}", target.name, plan.join("\n"));
    }
}

fn all(target: &Target) {
    only_old_readings_are_deleted(target, Shape::NAMES);
    killed_while_it_deletes(target);
    a_clock_that_jumped_deletes_nothing(target);
    deletion_needs_the_index(target, "star", "bare_values_measurement_time_ns");
}

#[test]
fn old_readings_are_deleted_from_sqlite() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    all(&target);
}

#[test]
fn old_readings_of_the_layout_wide_are_found_by_an_index_on_the_time() {
    let directory = Directory::new();
    deletion_needs_the_index(&Target::sqlite(&directory), "wide", "bare_time_ns");
    deletion_needs_the_index(&Target::server("mariadb"), "wide", "bare_time_ns");
    deletion_needs_the_index(&Target::server("postgres"), "wide", "bare_time_ns");
}

#[test]
fn old_readings_are_deleted_from_mariadb() {
    all(&Target::server("mariadb"));
}

#[test]
fn old_readings_are_deleted_from_postgres() {
    all(&Target::server("postgres"));
}
