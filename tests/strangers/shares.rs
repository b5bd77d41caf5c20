//! One source that sends more than the database takes: the others are written beside it, and each source keeps its order.

use std::time::{Duration, Instant};

use super::harness::{Directory, Started, Target, send};

/// Rows of one request of the greedy source.
const ROWS: i64 = 250;

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn send_as(started: &Started, source: &str, lines: &str) {
    let answer =
        send(started.http, "POST", "/api/v2/write", &format!("X-Loadline-Source: {source}\r\n"), lines.as_bytes());
    assert_eq!(answer.status, 204, "{}", answer.body);
}

/// What two sources have sent.
#[derive(Default)]
struct Sent {
    greedy: i64,
    modest: i64,
}

impl Sent {
    fn send_greedy(&mut self, started: &Started) {
        let numbers = self.greedy..self.greedy + ROWS;
        let lines: String = numbers.map(|number| format!("busy f={number}i {number}\n")).collect();
        send_as(started, "greedy", &lines);
        self.greedy += ROWS;
    }

    fn send_modest(&mut self, started: &Started) {
        send_as(started, "modest", &format!("calm f={0}i {0}\n", self.modest));
        self.modest += 1;
    }
}

/// Each row of this table takes 2 ms from now on.
fn slow_down(target: &Target) {
    let statements: &[&str] = match target.name {
        "postgres" => &[
            "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END'",
            "CREATE TRIGGER slow BEFORE INSERT ON busy_values FOR EACH ROW EXECUTE FUNCTION slow()",
        ],
        _ => &["CREATE TRIGGER slow BEFORE INSERT ON busy_values FOR EACH ROW SET @slow = SLEEP(0.002)"],
    };
    let mut session = target.session();
    statements.iter().for_each(|sql| session.run(sql).unwrap());
}

fn speed_up(target: &Target) {
    let sql = if target.name == "postgres" { "DROP TRIGGER slow ON busy_values" } else { "DROP TRIGGER slow" };
    target.session().run(sql).unwrap();
}

fn waits_for_its_share(started: &Started) -> bool {
    let page = started.recorder.metrics();
    let line = page.lines().find_map(|line| line.strip_prefix("loadline_oldest_waiting_seconds{reason=\"share\"} "));
    line.unwrap_or_else(|| panic!("{page}")).parse::<f64>().unwrap() > 0.0
}

/// How many rows of the greedy source are stored, once the last row of the other one is.
fn greedy_rows_when_the_other_is_stored(target: &Target, sent: &Sent) -> i64 {
    let last = sent.modest - 1;
    let both =
        format!("SELECT (SELECT COUNT(*) FROM calm_values WHERE f = {last}), (SELECT COUNT(*) FROM busy_values)");
    let mut greedy = 0;
    wait_until("the modest source's row is stored", || {
        let found = target.query(&both);
        let (calm, busy) = found[0].split_once('|').unwrap();
        greedy = busy.parse().unwrap();
        calm == "1"
    });
    greedy
}

pub fn a_source_that_sends_too_much_does_not_hold_up_the_others(target: &Target) {
    let directory = Directory::new();
    let start = || target.start(&directory, "name = \"star\"", "[writer]\nbatch = 200\ndrain = \"100ms\"\n");
    let (started, mut sent) = (start(), Sent::default());
    sent.send_greedy(&started);
    sent.send_modest(&started);
    started.wait_until_committed();
    slow_down(target);
    wait_until("the greedy source's records wait in a lane of their own", || {
        sent.send_greedy(&started);
        sent.send_modest(&started);
        waits_for_its_share(&started)
    });
    (0..80).for_each(|_| sent.send_greedy(&started));
    sent.send_modest(&started);
    // 20,000 rows take 40 s at least.
    let stored = greedy_rows_when_the_other_is_stored(target, &sent);
    assert!(stored < sent.greedy - 10_000, "{}: {stored} of {} rows are stored", target.name, sent.greedy);
    // Whoever starts again knows where the greedy source's records wait, and what comes later waits behind them.
    let left = started.stop().counts.spooled;
    assert!(left > 1_000, "{left}");
    let started = start();
    assert!(waits_for_its_share(&started));
    (0..4).for_each(|_| sent.send_greedy(&started));
    sent.send_modest(&started);
    let stored = greedy_rows_when_the_other_is_stored(target, &sent);
    assert!(stored < sent.greedy - 1_000, "{}: {stored} of {} rows are stored", target.name, sent.greedy);
    speed_up(target);
    started.wait_until_committed();
    wait_until("nothing waits for its share", || !waits_for_its_share(&started));
    // Then it goes with all others again.
    sent.send_greedy(&started);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    for (table, rows) in [("busy", sent.greedy), ("calm", sent.modest)] {
        let found = target.query(&format!("SELECT f FROM {table}_values ORDER BY record_id"));
        let mut numbers: Vec<i64> = found.iter().map(|number| number.parse().unwrap()).collect();
        // Numbers of records are each writer's own: those of the last request stand with the first ones.
        if table == "busy" {
            let back = numbers.iter().position(|number| *number == rows - ROWS).unwrap();
            let last: Vec<_> = numbers.drain(back..back + ROWS as usize).collect();
            numbers.extend(last);
        }
        assert!(numbers.iter().copied().eq(0..rows), "{}: {table} is not in its order", target.name);
    }
}
