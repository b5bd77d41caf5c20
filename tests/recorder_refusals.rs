//! Batches with records that the database refuses: the bad ones go to quarantine with their own reasons, the others are stored, and the work is
//! a small multiple of the rows.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "recorder/trouble.rs"]
mod trouble;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use loadline::recorder::spool::list;
use trouble::blackhole;
use trouble::harness::{Directory, Target, try_send, write};
use trouble::process::{Process, config_file, database_of};

/// Long enough for everything here on any machine, and no longer than somebody waits.
const LONG: Duration = Duration::from_secs(240);

struct Tried {
    directory: Directory,
    config: String,
    recorder: Process,
}

impl Tried {
    fn start(database: &str, layout: &str, more: &str) -> Self {
        let directory = Directory::new();
        let config = config_file(&directory, database, more);
        let text = std::fs::read_to_string(&config).unwrap().replace("name = \"star\"", layout);
        std::fs::write(&config, text).unwrap();
        let recorder = Process::start(&config, "");
        Tried { directory, config, recorder }
    }

    fn send(&self, lines: &str) {
        assert_eq!(write(self.recorder.http, lines).status, 204, "{}", self.recorder.said());
    }

    fn wait(&self) {
        let begun = Instant::now();
        while self.recorder.metric("loadline_spooled_rows") > 0.0 {
            assert!(begun.elapsed() < LONG, "{}", self.recorder.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        self.recorder.assert_conserved();
    }

    /// Stops it; the quarantined lines with their reasons.
    fn stop(self) -> (Directory, BTreeMap<String, String>) {
        self.recorder.stop();
        let mut list = Command::new(env!("CARGO_BIN_EXE_loadline"));
        let list = list.args(["record", &self.config, "--quarantine", "list", "--json"]).output().unwrap();
        let text = String::from_utf8(list.stdout).unwrap();
        let listed: serde_json::Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let found = listed["quarantined"].as_array().unwrap().iter().map(|refused| {
            let text = |name: &str| refused[name].as_str().unwrap().trim_end().to_owned();
            (text("line"), text("reason"))
        });
        (self.directory, found.collect())
    }
}

/// From now on a table takes no row whose value in a column is below 0, and no two rows of the same value in another.
fn constrain(target: &Target, table: &str, number: &str, unique: &str) {
    let positive = match target.name {
        "sqlite" => format!(
            "CREATE TRIGGER {table}_positive BEFORE INSERT ON {table} WHEN NEW.{number} < 0 \
             BEGIN SELECT RAISE(ABORT, '{table}_positive'); END"
        ),
        _ => format!("ALTER TABLE {table} ADD CONSTRAINT {table}_positive CHECK ({number} >= 0)"),
    };
    let once = match target.name {
        // Else it would be known only at the commit.
        "postgres" => {
            format!("ALTER TABLE {table} ADD CONSTRAINT {table}_once UNIQUE ({unique}) DEFERRABLE INITIALLY DEFERRED")
        }
        _ => format!("CREATE UNIQUE INDEX {table}_once ON {table} ({unique})"),
    };
    let mut session = target.session();
    session.run(&positive).unwrap();
    session.run(&once).unwrap();
}

/// Good and bad rows in every mixture; of two that must differ the first one stays.
fn bad_rows_are_told_from_good_ones(target: &Target) {
    let tried = Tried::start(&database_of(target), "name = \"star\"", "");
    tried.send("mixed,probe=a n=0i,u=0i 1");
    tried.wait();
    constrain(target, "mixed_values", "n", "u");
    let (mut sent, mut stored, mut expected) = (1, vec![0], BTreeMap::new());
    for bad_of_1000 in [10, 100, 500, 1000] {
        let mut lines = String::new();
        for _ in 0..400 {
            // Every twentieth is as unique as the one before it: the second of the two.
            let (n, is_second) = (sent, sent % 20 == 0);
            let is_bad = (sent * 7_919) % 1_000 < bad_of_1000;
            let number = if is_bad { -n } else { n };
            let unique = if is_second { n - 1 } else { n };
            // A tag of its own for some: a new identity that only a bad row may have.
            let probe = if n % 3 == 0 { format!("p{n}") } else { "a".to_owned() };
            let line = format!("mixed,probe={probe} n={number}i,u={unique}i {n}");
            let is_first_stored = stored.last() == Some(&(n - 1));
            if is_bad {
                expected.insert(line.clone(), "positive");
            } else if is_second && is_first_stored {
                expected.insert(line.clone(), "once");
            } else {
                stored.push(n);
            }
            lines += &(line + "\n");
            sent += 1;
        }
        tried.send(&lines);
        tried.wait();
    }
    let (_directory, quarantined) = tried.stop();
    assert_eq!(
        target.query("SELECT n FROM mixed_values ORDER BY n"),
        stored.iter().map(i64::to_string).collect::<Vec<_>>()
    );
    let (without, probes) = match target.name {
        "postgres" => {
            ("NOT EXISTS (SELECT 1 FROM mixed_values v WHERE v.measurement = i.measurement)", "mixed_identity i")
        }
        _ => ("i.measurement NOT IN (SELECT measurement FROM mixed_values)", "mixed_identity i"),
    };
    assert_eq!(target.query(&format!("SELECT COUNT(*) FROM {probes} WHERE {without}")), ["0"], "identities of nothing");
    assert_eq!(quarantined.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{}", target.name);
    for (line, reason) in &quarantined {
        // SQLite names the columns of a key, the others its name.
        let is_named =
            reason.contains(expected[line]) || (expected[line] == "once" && reason.contains("mixed_values.u"));
        assert!(is_named, "{}: {line}: {reason}", target.name);
    }
}

/// A record whose second half is refused leaves no first half, and its unique value is free for the next.
fn a_record_of_two_tables_is_stored_whole_or_not_at_all(target: &Target) {
    let layout = "name = \"star-hot\"\nhot = [\"u\"]";
    let tried = Tried::start(&database_of(target), layout, "");
    tried.send("halves,probe=a u=0i,n=0i 1");
    tried.wait();
    let (main, second) = ("halves_main", "halves_secondary");
    let mut session = target.session();
    session.run(&format!("CREATE UNIQUE INDEX halves_once ON {main} (u)")).unwrap();
    session.run(&format!("CREATE UNIQUE INDEX halves_twice ON {second} (n)")).unwrap();
    // The second halves of 1, 3 and 5 are refused; what has the same u as they have is taken.
    tried.send(
        "halves,probe=a u=1i,n=0i 1\nhalves,probe=b u=2i,n=2i 2\nhalves,probe=b u=3i,n=2i 3\nhalves,probe=c u=1i,n=4i 4\n\
         halves,probe=d u=5i,n=0i 5\nhalves,probe=d u=3i,n=6i 6\nhalves,probe=d u=2i,n=7i 7",
    );
    tried.wait();
    let (_directory, quarantined) = tried.stop();
    let mut lines: Vec<_> = quarantined.keys().map(|line| line.rsplit(' ').next().unwrap()).collect();
    lines.sort_unstable();
    assert_eq!(lines, ["1", "3", "5", "7"], "{}: {quarantined:?}", target.name);
    assert_eq!(target.query(&format!("SELECT u FROM {main} ORDER BY u")), ["0", "1", "2", "3"]);
    assert_eq!(target.query(&format!("SELECT n FROM {second} ORDER BY n")), ["0", "2", "4", "6"]);
}

/// Messages to the server, per row of the batch.
fn the_work_is_a_small_multiple_of_the_rows(target: &Target) {
    const ROWS: u64 = 2_000;
    let (endpoint, hole) = blackhole::start(target.endpoint.as_ref().unwrap());
    let (direct, proxied) = (target.endpoint.clone().unwrap().tcp.unwrap().1, endpoint.tcp.clone().unwrap().1);
    let database = database_of(target).replace(&format!(":{direct}/"), &format!(":{proxied}/"));
    let tried = Tried::start(&database, "name = \"star\"", "[writer]\nstatement_timeout = \"2s\"\n");
    tried.send("counted,probe=a n=0i,u=0i 1");
    tried.wait();
    constrain(target, "counted_values", "n", "u");
    tried.send("once,probe=a n=0i,u=0i 1");
    tried.wait();
    target.session().run("CREATE UNIQUE INDEX once_only ON once_values (u)").unwrap();
    // Negative numbers are against one measurement's rule, and the number 0 is there already in the other's.
    let work = |measurement: &str, bad_every: u64, requests: u64, others: u64| {
        // All requests wait until the database is there, and are one batch.
        hole.swallow_for_ever();
        for request in 0..requests {
            let of = ROWS / requests;
            let row = |row: u64| {
                let (n, is_bad) = (row + 1, row.is_multiple_of(bad_every));
                let sign = if is_bad && measurement == "counted" { "-" } else { "" };
                let once =
                    if is_bad && measurement == "once" { 0 } else { (bad_every * 1_000 + requests) * 10_000 + n };
                format!("{measurement},probe=a n={sign}{n}i,u={once}i {n}\n")
            };
            let lines: String = (request * of..(request + 1) * of).map(row).collect();
            tried.send(&lines);
        }
        let before = (hole.sent.load(Ordering::SeqCst), tried.recorder.metric("loadline_quarantined_rows"));
        hole.let_through();
        tried.wait();
        let quarantined = tried.recorder.metric("loadline_quarantined_rows") - before.1;
        assert_eq!(quarantined, (ROWS / bad_every + others) as f64, "{}", target.name);
        hole.sent.load(Ordering::SeqCst) - before.0
    };
    // Where many are bad, rows are tried apart and leave together.
    for (bad_every, requests, most) in
        [(2, 1, ROWS / 8), (2, 50, ROWS / 8), (100, 1, ROWS / 4), (100, 20, ROWS / 4), (1, 4, ROWS / 8)]
    {
        let messages = work("counted", bad_every, requests, 0);
        assert!(
            messages < most,
            "{}: {messages} messages for one bad row in {bad_every}, {requests} requests",
            target.name
        );
    }
    // What a unique key forbids is passed over, and then tried apart for its reason. The server is not told of it row by row.
    for (bad_every, requests) in [(100, 1), (100, 20), (2, 1)] {
        let messages = work("once", bad_every, requests, 0);
        assert!(messages < ROWS / 10, "{}: {messages} messages for one row in {bad_every} that is there", target.name);
    }
    // Somebody's row has the number of a record that is still to come: that record is refused, and not taken for stored.
    let last = target.session().query("SELECT MAX(record_id) FROM once_values").unwrap();
    let last: i64 = last[0][0].as_ref().unwrap().parse().unwrap();
    let foreign = format!(
        "INSERT INTO once_values (record_id, measurement, time_ns, u) \
         SELECT {last} + 500, measurement, 5, -7 FROM once_values WHERE record_id = {last}"
    );
    target.session().run(&foreign).unwrap();
    work("once", 200, 1, 1);
    let (_directory, quarantined) = tried.stop();
    let foreign = quarantined.iter().filter(|(line, reason)| line.starts_with("once") && !reason.contains("once_only"));
    let [(line, _)] = foreign.collect::<Vec<_>>()[..] else { panic!("{}: {quarantined:?}", target.name) };
    let foreign = line.clone();
    let is_right = |(line, reason): (&String, &String)| match line.starts_with("once") {
        true => reason.contains("once_only") || *line == foreign,
        false => reason.contains("positive"),
    };
    assert!(quarantined.iter().all(is_right), "{}: {quarantined:?}", target.name);
}

/// Requests of some clients, each sent until it is answered; those of a client are the ones whose numbers leave the same rest.
struct Requests {
    next: [AtomicU64; 4],
}

impl Requests {
    const ROWS: u64 = 20;

    /// A row: its number, whether it is bad, and its line.
    fn row(request: u64, place: u64) -> (u64, bool, String) {
        let n = request * Self::ROWS + place + 1;
        // Another place in each request, and in some the identity is new, too.
        let is_bad = (n * 7) % 10 == request % 10;
        let probe = if request.is_multiple_of(3) { format!("p{n}") } else { "a".to_owned() };
        (n, is_bad, format!("killed,probe={probe} n={}{n}i,u={n}i {n}", if is_bad { "-" } else { "" }))
    }

    /// Sends one request after the other, until it is to end.
    fn send(&self, client: usize, http: SocketAddr, ends: &AtomicBool) {
        while !ends.load(Ordering::SeqCst) {
            let request = self.next[client].load(Ordering::SeqCst);
            let lines: Vec<_> = (0..Self::ROWS).map(|place| Self::row(request, place).2).collect();
            let headers = format!("X-Loadline-Source: c{client}\r\nIdempotency-Key: {request}\r\n");
            let answer = try_send(http, "POST", "/write", &headers, lines.join("\n").as_bytes());
            if answer.is_some_and(|answer| answer.status == 204) {
                self.next[client].fetch_add(self.next.len() as u64, Ordering::SeqCst);
            }
        }
    }

    /// All clients send, until each has had so many answers, and `then`.
    fn send_all(&self, http: SocketAddr, answers: u64, then: impl FnOnce()) {
        let count = self.next.len() as u64;
        let (ends, before) = (AtomicBool::new(false), self.next.each_ref().map(|next| next.load(Ordering::SeqCst)));
        std::thread::scope(|scope| {
            for client in 0..self.next.len() {
                let ends = &ends;
                scope.spawn(move || self.send(client, http, ends));
            }
            let is_behind = |client: usize| self.next[client].load(Ordering::SeqCst) < before[client] + answers * count;
            while (0..self.next.len()).any(is_behind) {
                std::thread::sleep(Duration::from_millis(2));
            }
            then();
            ends.store(true, Ordering::SeqCst);
        });
    }

    /// Rows of all requests that were answered.
    fn answered(&self) -> impl Iterator<Item = (u64, bool, String)> {
        let count = self.next.len();
        (0..count as u64).zip(&self.next).flat_map(move |(client, next)| {
            let requests = (client..next.load(Ordering::SeqCst)).step_by(count);
            requests.flat_map(|request| (0..Self::ROWS).map(move |place| Self::row(request, place)))
        })
    }
}

/// The recorder is killed again and again while one row in ten is refused: each good row is stored once, and each bad one is in quarantine once.
fn refused_rows_are_kept_apart_whoever_is_killed(target: &Target) {
    let mut tried = Tried::start(&database_of(target), "name = \"star\"", "");
    tried.send("killed,probe=a n=0i,u=0i 1");
    tried.wait();
    constrain(target, "killed_values", "n", "u");
    let requests = Requests { next: [0, 1, 2, 3].map(AtomicU64::new) };
    for kill in 0..6 {
        requests.send_all(tried.recorder.http, 5, || {
            std::thread::sleep(Duration::from_millis(37 * (kill + 1) % 150));
            tried.recorder.child.kill().unwrap();
            tried.recorder.child.wait().unwrap();
        });
        tried.recorder = Process::start(&tried.config, "");
    }
    // What was not answered is sent again.
    requests.send_all(tried.recorder.http, 1, || ());
    tried.wait();
    let quarantined = tried.recorder.metric("loadline_quarantined_rows");
    assert_eq!(tried.recorder.stop(), Some(0));
    let listed = list(std::path::Path::new(&tried.directory.path("disk/spool")), 1_000_000).unwrap();
    let mut listed: Vec<_> = listed.into_iter().map(|refused| refused.line.trim_end().to_owned()).collect();
    let (bad, good): (Vec<_>, Vec<_>) = requests.answered().partition(|(_, is_bad, _)| *is_bad);
    let mut good: Vec<_> = good.into_iter().map(|(n, _, _)| n).chain([0]).collect();
    let mut bad: Vec<_> = bad.into_iter().map(|(_, _, line)| line).collect();
    good.sort_unstable();
    bad.sort_unstable();
    listed.sort_unstable();
    let stored = target.query("SELECT n FROM killed_values ORDER BY n");
    assert_eq!(stored, good.iter().map(u64::to_string).collect::<Vec<_>>(), "{}", target.name);
    assert_eq!((quarantined, listed), (bad.len() as f64, bad), "{}", target.name);
}

fn refusals(target: &Target) {
    bad_rows_are_told_from_good_ones(target);
    a_record_of_two_tables_is_stored_whole_or_not_at_all(target);
    refused_rows_are_kept_apart_whoever_is_killed(target);
    if target.endpoint.is_some() {
        the_work_is_a_small_multiple_of_the_rows(target);
    }
}

/// A trigger that undoes the whole transaction undoes no more than the trial of its row.
#[test]
fn a_trigger_of_sqlite_that_rolls_back_loses_nothing() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let tried = Tried::start(&database_of(&target), "name = \"star\"", "");
    tried.send("undone,probe=a n=0i 1");
    let mut session = target.session();
    session
        .run(
            "CREATE TRIGGER undo BEFORE INSERT ON undone_values WHEN NEW.n < 0 \
             BEGIN SELECT RAISE(ROLLBACK, 'below 0'); END; CREATE UNIQUE INDEX once ON undone_values (n)",
        )
        .unwrap();
    let row = |row: i64| format!("undone,probe=p{row} n={}i {row}\n", if row % 40 == 39 { -row } else { row / 2 });
    tried.send(&(1..101).map(row).collect::<String>());
    let (_spool, quarantined) = tried.stop();
    // Each value but 0 came twice, and the second one is refused.
    let good: std::collections::BTreeSet<i64> = (0..101).filter(|row| row % 40 != 39).map(|row| row / 2).collect();
    let stored: Vec<String> = good.iter().map(i64::to_string).collect();
    assert_eq!(target.query("SELECT n FROM undone_values ORDER BY n"), stored);
    assert_eq!(quarantined.len(), 101 - stored.len());
    assert_eq!(quarantined.values().filter(|reason| reason.contains("below 0")).count(), 2);
}

#[test]
fn refusals_of_sqlite() {
    refusals(&Target::sqlite(&Directory::new()));
}

#[test]
fn refusals_of_mariadb() {
    refusals(&Target::server("mariadb"));
}

#[test]
fn refusals_of_postgresql() {
    refusals(&Target::server("postgres"));
}
