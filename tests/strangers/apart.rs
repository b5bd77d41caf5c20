//! One measurement's trouble: the others go on, and its own records are stored when it is mended.

use std::time::{Duration, Instant};

use loadline::recorder::writer::writer_of;

use super::harness::{Directory, Started, Target, send, write};

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn metric(started: &Started, name: &str) -> f64 {
    let page = started.recorder.metrics();
    let line = page.lines().find_map(|line| line.strip_prefix(&format!("loadline_{name} ")));
    line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
}

fn count(target: &Target, table: &str) -> usize {
    target.query(&format!("SELECT COUNT(*) FROM {table}"))[0].parse().unwrap()
}

/// Sends both measurements in one request, from several sources.
fn send_both(started: &Started, numbers: std::ops::Range<i64>) {
    for number in numbers {
        for source in ["a", "b", "c"] {
            let lines = format!(
                "doomed f={number}i {number}\nfine f={number}i {number}\ndoomed,t={source} f={number}i {number}\n"
            );
            let answer = send(
                started.http,
                "POST",
                "/api/v2/write",
                &format!("X-Loadline-Source: {source}\r\n"),
                lines.as_bytes(),
            );
            assert_eq!(answer.status, 204, "{}", answer.body);
        }
    }
}

/// A table that somebody takes away stops what belongs in it and nothing else; when it comes back, everything is stored once, in order.
pub fn a_table_that_is_gone_stops_only_its_own_measurement(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    send_both(&started, 1..3);
    started.wait_until_committed();
    assert_eq!((count(target, "doomed_values"), count(target, "fine_values")), (12, 6));
    target.session().run("ALTER TABLE doomed_values RENAME TO hidden").unwrap();
    send_both(&started, 3..5);
    wait_until("the other measurement goes on", || count(target, "fine_values") == 12);
    assert_eq!(metric(&started, "measurements_apart"), 1.0, "{}", target.name);
    // What comes later goes the same way, and nobody else waits for it.
    send_both(&started, 5..7);
    wait_until("the other measurement goes on", || count(target, "fine_values") == 18);
    assert_eq!(write(started.http, "third f=1 1\n").status, 204);
    wait_until("a new measurement is stored", || {
        !target.query("SELECT 1 FROM loadline_column WHERE measurement = 'third' AND role = 'table'").is_empty()
            && count(target, "third_values") == 1
    });
    let end = started.stop();
    assert_eq!((end.counts.spooled, end.counts.quarantined), (24, 0), "{}: {:?}", target.name, end.counts);
    // Whoever starts again knows what waits.
    let started = target.start(&directory, "name = \"star\"", "[ready]\nwithin = \"1s\"\n");
    let ready = |started: &Started| send(started.http, "GET", "/ready", "", b"");
    wait_until("the recorder says that it is late, and why", || {
        let answer = ready(&started);
        answer.status == 503
            && answer.body.contains("of a measurement wait apart")
            && answer.body.contains("doomed_values")
    });
    assert!(started.recorder.metrics().contains("loadline_oldest_waiting_seconds{reason=\"measurement\"}"));
    send_both(&started, 7..8);
    wait_until("the other measurement goes on", || count(target, "fine_values") == 21);
    wait_until("all others are stored", || metric(&started, "spooled_rows") == 30.0);
    target.session().run("ALTER TABLE hidden RENAME TO doomed_values").unwrap();
    started.wait_until_committed();
    wait_until("the measurement goes with the others again", || metric(&started, "measurements_apart") == 0.0);
    assert_eq!(ready(&started).status, 200);
    send_both(&started, 8..9);
    started.wait_until_committed();
    assert_eq!(metric(&started, "measurements_apart"), 0.0);
    assert_eq!(started.stop().counts.quarantined, 0);
    assert_eq!((count(target, "doomed_values"), count(target, "fine_values")), (48, 24), "{}", target.name);
    assert_that_each_writer_kept_the_order(target);
}

/// Of each series all records are there, and each writer stored its own in the order in which they were sent. Those that waited apart, and those
/// of a sender who was found greedy, have another writer's numbers than those before and behind them.
fn assert_that_each_writer_kept_the_order(target: &Target) {
    let found = target.query("SELECT measurement, record_id, f FROM doomed_values ORDER BY record_id");
    let found: Vec<Vec<i64>> =
        found.iter().map(|row| row.split('|').map(|cell| cell.parse().unwrap()).collect()).collect();
    for series in ["a", "b", "c"] {
        let id = target.query(&format!("SELECT measurement FROM doomed_identity WHERE t = '{series}'"));
        let of: Vec<_> = found.iter().filter(|row| row[0].to_string() == id[0]).collect();
        let mut all: Vec<i64> = of.iter().map(|row| row[2]).collect();
        for (before, after) in of.iter().zip(&of[1..]) {
            let is_same_writer = writer_of(before[1]) == writer_of(after[1]);
            assert!(!is_same_writer || before[2] < after[2], "{}: {series}: {of:?}", target.name);
        }
        all.sort_unstable();
        assert_eq!(all, (1..9).collect::<Vec<_>>(), "{}: {series}", target.name);
    }
}

/// A lock that somebody holds on one table, for as long as it likes.
pub fn a_table_that_is_locked_stops_only_its_own_measurement(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    assert_eq!(write(started.http, "locked f=1i 1\nopen f=1i 1\n").status, 204);
    started.wait_until_committed();
    let mut session = target.session();
    match target.name {
        "postgres" => {
            ["BEGIN", "LOCK TABLE locked_values IN ACCESS EXCLUSIVE MODE"].map(|sql| session.run(sql).unwrap())
        }
        _ => ["SET autocommit = 0", "LOCK TABLES locked_values WRITE"].map(|sql| session.run(sql).unwrap()),
    };
    for number in 2..5 {
        assert_eq!(
            write(started.http, &format!("locked f={number}i {number}\nopen f={number}i {number}\n")).status,
            204
        );
        wait_until("the other measurement goes on", || count(target, "open_values") == number);
    }
    assert_eq!(metric(&started, "measurements_apart"), 1.0, "{}", target.name);
    let freed = if target.name == "postgres" { "COMMIT" } else { "UNLOCK TABLES" };
    session.run(freed).unwrap();
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0);
    assert_eq!(target.query("SELECT f FROM locked_values ORDER BY f"), ["1", "2", "3", "4"], "{}", target.name);
}

/// Somebody removes old identities with their records; who sends on is stored.
pub fn identities_that_somebody_removes_are_begun_again(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    assert_eq!(write(started.http, "kept,t=a f=1 1\nkept,t=b f=1 1\n").status, 204);
    started.wait_until_committed();
    let mut session = target.session();
    ["values", "identity"].iter().for_each(|table| session.run(&format!("DELETE FROM kept_{table}")).unwrap());
    assert_eq!(write(started.http, "kept,t=a f=2 2\nkept,t=b f=2 2\nkept,t=c f=2 2\n").status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    let found = target.query(
        "SELECT t, time_ns FROM kept_values JOIN kept_identity ON kept_values.measurement = kept_identity.measurement ORDER BY t",
    );
    assert_eq!(found, ["a|2", "b|2", "c|2"], "{}", target.name);
}

/// A refusal that nobody knows and that does not pass is put down to the records that cause it, with the database's words.
pub fn a_refusal_that_nobody_knows_ends_in_quarantine_and_stops_nobody(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    assert_eq!(write(started.http, "odd f=1i 1\nfine f=1i 1\n").status, 204);
    started.wait_until_committed();
    let before = count(target, "fine_values");
    let mut session = target.session();
    match target.name {
        "postgres" => {
            session
                .run(
                    "CREATE FUNCTION odd() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.f = 13 THEN \
                     RAISE EXCEPTION 'thirteen' USING ERRCODE = 'ZZ013'; END IF; RETURN NEW; END $$",
                )
                .unwrap();
            session.run("CREATE TRIGGER odd BEFORE INSERT ON odd_values FOR EACH ROW EXECUTE FUNCTION odd()").unwrap();
        }
        _ => session
            .run(
                "CREATE TRIGGER odd BEFORE INSERT ON odd_values FOR EACH ROW IF NEW.f = 13 THEN \
                 SIGNAL SQLSTATE '99013' SET MYSQL_ERRNO = 9013, MESSAGE_TEXT = 'thirteen'; END IF",
            )
            .unwrap(),
    }
    let lines: String =
        (2..30).map(|number| format!("odd f={number}i {number}\nfine f={number}i {number}\n")).collect();
    assert_eq!(write(started.http, &lines).status, 204);
    wait_until("the other measurement goes on", || count(target, "fine_values") == before + 28);
    started.wait_until_committed();
    assert_eq!(count(target, "odd_values"), 28, "{}", target.name);
    assert_eq!(started.stop().counts.quarantined, 1);
    let found = loadline::recorder::spool::list(&directory.0.join("spool"), 10).unwrap();
    assert!(found[0].reason.contains("thirteen") && found[0].line.contains("f=13i"), "{found:?}");
}
