//! `loadline capture` and the workload `replay`, as a user meets them: what a server logged is sent to it again, and the server's own log of that is held
//! against the first one.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;
#[path = "draft/shop.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod shop;

use std::collections::BTreeMap;
use std::path::Path;

use loadline::reason::Reason;
use program::Scratch;
use serde_json::Value;
use shop::Shop;

/// A statement that ran: its text and its values as text.
type Call = (String, Vec<String>);

/// What a trace has, by session, read without loadline.
fn sessions_of(trace: &Path) -> BTreeMap<u64, Vec<(u64, Call)>> {
    let text = std::fs::read_to_string(trace).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<&str> = lines.iter().filter_map(|line| line["sql"].as_str()).collect();
    let mut sessions: BTreeMap<u64, Vec<(u64, Call)>> = BTreeMap::new();
    for line in lines.iter().filter(|line| line.is_array()) {
        let number = |place: usize| line[place].as_u64().unwrap();
        let value = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let values = line[3].as_array().unwrap().iter().map(value).collect();
        sessions.entry(number(1)).or_default().push((number(0), (texts[number(2) as usize].to_owned(), values)));
    }
    sessions
}

/// The statements of each session without their times, of those that are about the shop, or about transactions.
fn calls_of(trace: &Path) -> Vec<Vec<Call>> {
    let is_of_shop = |(sql, _): &Call| {
        ["orders", "items", "customers", "measured"].iter().any(|table| sql.contains(table))
            || ["BEGIN", "COMMIT", "ROLLBACK"].contains(&sql.as_str())
    };
    let own = |calls: &Vec<(u64, Call)>| -> Vec<Call> {
        calls.iter().map(|(_, call)| call.clone()).filter(is_of_shop).collect()
    };
    let mut all: Vec<Vec<Call>> = sessions_of(trace).values().map(own).filter(|calls| !calls.is_empty()).collect();
    all.sort();
    all
}

/// Three customers at once, each with a session, some of it in transactions, which read and change orders of their own.
fn trade_at_once(shop: &Shop) {
    let mut sessions: Vec<_> = (0..3).map(|_| shop.session("writer")).collect();
    let ask = |session: &mut Box<dyn loadline::database::Session>, sql: &str| {
        session.query(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    };
    for session in &mut sessions {
        ask(session, "SELECT id FROM customers WHERE id = 1");
    }
    for round in 0..20 {
        for (number, session) in sessions.iter_mut().enumerate() {
            let id = 1 + number * 1_000 + round;
            if round % 2 == number % 2 {
                ask(session, "BEGIN");
                ask(session, &format!("SELECT total FROM orders WHERE id = {id}"));
                ask(session, &format!("UPDATE orders SET status = 'it''s paid' WHERE id = {id}"));
                ask(session, if round % 5 == 0 { "ROLLBACK" } else { "COMMIT" });
            } else {
                ask(
                    session,
                    &format!("SELECT count(*) FROM orders WHERE customer_id IN ({id}, {}) AND total > -1.5", id + 1),
                );
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
    for session in &mut sessions {
        ask(session, "SELECT id FROM customers WHERE id = 2");
    }
}

/// What came to a file behind its first bytes.
fn behind(log: &Path, bytes: u64) -> Vec<u8> {
    let all = std::fs::read(log).unwrap();
    all[bytes as usize..].to_vec()
}

fn length_of(log: &Path) -> u64 {
    std::fs::metadata(log).map_or(0, |metadata| metadata.len())
}

/// A study that sends a trace once.
fn study(shop: &Shop, trace: &str, more: &str) -> String {
    let (name, url) = (shop.name(), shop.url("writer"));
    format!(
        "name = \"again\"\n[database]\nname = \"{name}\"\nurl = \"{url}\"\n[workload]\nname = \"replay\"\ntrace = \"{trace}\"\n{more}\n\
         [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

/// Runs a study of one trial. On a machine that has other things to do, loadline may send late, which is the only thing that may be wrong with it.
fn run_once(scratch: &Scratch, name: &str) {
    let outcome = scratch.run(&["run", &format!("{name}.toml"), "--out", name]);
    let stored = &scratch.stored(name)[0];
    let is_late = |reason: &Reason| {
        use Reason::{ClientStarved, ClientStarvedByOthers, SentLate, Stolen};
        matches!(reason, SentLate { .. } | ClientStarved { .. } | ClientStarvedByOthers { .. } | Stolen { .. })
    };
    assert!(stored.invalid_because.iter().all(is_late), "{}", outcome.stderr);
}

/// Waits until the logs have all that ran, as servers write them a moment later; how many bytes each has.
fn settled(shop: &Shop) -> Vec<u64> {
    let mut before: Vec<u64> = Vec::new();
    loop {
        std::thread::sleep(std::time::Duration::from_millis(300));
        let now: Vec<u64> = shop.logs().iter().map(|log| length_of(log)).collect();
        if now == before {
            // MariaDB writes the time where the second is another one: what comes next begins with one.
            std::thread::sleep(std::time::Duration::from_millis(1_100));
            return now;
        }
        before = now;
    }
}

/// A replay that may change rows: the server sees what it had seen before, in half the time.
fn all_is_sent_again((shop, scratch): (&Shop, &Scratch), all: u64, seen: &[Vec<Call>]) {
    let name = shop.name();
    let logs = shop.logs();
    let again = settled(shop);
    scratch.write(
        "all.toml",
        &study(shop, "shop0.trace", "speed = 2\nwrites = true")
            .replace("[repeat]", "[load]\nwarmup = \"0s\"\n[repeat]"),
    );
    run_once(scratch, "all");
    let stored = &scratch.stored("all")[0];
    assert_eq!((stored.completed(), stored.scheduled()), (all, all), "{name}: {:?}", stored.invalid_because);
    let kinds: Vec<&str> = stored.operations.keys().map(String::as_str).collect();
    assert!(kinds.contains(&"transaction control") && kinds.contains(&"update orders by id"), "{kinds:?}");
    settled(shop);
    std::fs::write(scratch.path("replayed.log"), behind(&logs[0], again[0])).unwrap();
    scratch.run(&["capture", "replayed.log", "--out", "replayed.trace"]).expect(0);
    assert_eq!(calls_of(&scratch.path("replayed.trace")), seen, "{name}: the server saw what it had seen before");
    // It took half as long, and not less.
    let measured_s = stored.measured_s;
    let told = scratch.run(&["plan", "all.toml", "--json"]).expect(0).json();
    assert!((told["estimate_s"]["least"].as_f64().unwrap() - measured_s).abs() < 0.3, "{name}: {measured_s} {told:#}");
}

#[test]
fn what_a_server_logged_is_sent_again_session_by_session() {
    for name in ["postgres", "mariadb"] {
        let shop = Shop::open(name);
        let scratch = Scratch::new();
        let logs = shop.logs();
        let begins = settled(&shop);
        trade_at_once(&shop);
        settled(&shop);
        let mut seen: Vec<Vec<Vec<Call>>> = Vec::new();
        let mut all = 0;
        for (number, log) in logs.iter().enumerate() {
            let own = format!("own{number}.log");
            std::fs::write(scratch.path(&own), behind(log, begins[number])).unwrap();
            let trace = format!("shop{number}.trace");
            let told = scratch.run(&["capture", &own, "--out", &trace, "--json"]).expect(0).json();
            assert_eq!(told["sessions_at_once"], 3, "{name}: {log:?}: {told:#}");
            if number == 0 {
                all = told["statements"].as_u64().unwrap();
            }
            seen.push(calls_of(&scratch.path(&trace)));
            scratch.run(&["capture", &own, "--out", &trace]).refused(&[&trace, "is there already"]);
        }
        // Of three sessions ten rounds are transactions of four statements, ten a single one, and two stand around them.
        assert_eq!(seen[0].iter().map(Vec::len).collect::<Vec<_>>(), [52, 52, 52], "{name}");
        for other in &seen[1..] {
            assert_eq!(other, &seen[0], "{name}: every form of the log tells the same");
        }

        let before = shop.fingerprint();
        scratch.write("reads.toml", &study(&shop, "shop0.trace", "speed = 4"));
        let planned = scratch.run(&["plan", "reads.toml"]).expect(0).stdout;
        assert!(
            planned.contains(&format!("30 of {all} statements of the trace change something and are left out")),
            "{planned}"
        );
        run_once(&scratch, "reads");
        assert_eq!(shop.fingerprint(), before, "{name}: nothing is written");
        let stored = &scratch.stored("reads")[0];
        assert_eq!(
            (stored.completed(), stored.scheduled()),
            (all - 30, all - 30),
            "{name}: {:?}",
            stored.invalid_because
        );

        all_is_sent_again((&shop, &scratch), all, &seen[0]);
    }
}

#[test]
fn the_highest_speed_within_a_bound_is_a_load_line() {
    let shop = Shop::open("postgres");
    let scratch = Scratch::new();
    let logs = shop.logs();
    let begins = settled(&shop);
    trade_at_once(&shop);
    settled(&shop);
    std::fs::write(scratch.path("own.log"), behind(&logs[0], begins[0])).unwrap();
    scratch.run(&["capture", "own.log", "--out", "shop.trace"]).expect(0);
    let goal = "[goal]\nquantile = 0.9\nbelow = \"2s\"\n[load]\nwarmup = \"0s\"\n";
    let (before, _) =
        study(&shop, "shop.trace", "").split_once("[repeat]").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    scratch.write("line.toml", &format!("{before}{goal}"));
    let found = scratch.run(&["run", "line.toml", "--quick", "--json", "--out", "line"]).stdout;
    let found: Value = serde_json::from_str(&found).unwrap();
    let line = &found["load_lines"][0];
    // Each trial sends the whole trace, as often as it takes to last; of its statements those that read.
    let stored = scratch.stored("line");
    let own = stored[0].trial.case.settings.load.replay.unwrap();
    assert!(own.statements > 100 && stored.iter().all(|trial| trial.scheduled().is_multiple_of(own.statements)));
    assert!(stored.iter().any(|trial| trial.scheduled() > own.statements));
    for trial in &stored {
        let rate_per_s = trial.trial.case.settings.load.rate_per_s.unwrap();
        assert!((trial.measured_s - trial.scheduled() as f64 / rate_per_s).abs() < 0.001, "{rate_per_s}");
    }
    // A machine with much else to do lets no search end; where one does, its line says how fast that is.
    if let Some(rate) = line["arrival_rate_per_s"].as_f64() {
        let speed = line["speed"].as_f64().unwrap();
        assert!((rate / speed / own.own_rate_per_s() - 1.0).abs() < 1e-6 && speed > 0.0, "{line:#}");
    } else {
        assert_ne!(line["outcome"]["kind"], "found", "{line:#}");
    }
}

#[test]
fn what_is_no_trace_and_what_does_not_go_with_one_is_said() {
    let scratch = Scratch::new();
    scratch.write("app.sql", "SELECT 1;\n");
    scratch.run(&["capture", "app.sql", "--out", "t"]).refused(&["app.sql", "neither when nor in which session"]);
    scratch.run(&["capture", "gone.log", "--out", "t"]).refused(&["gone.log", "cannot be read"]);
    scratch.write("plain.log", "2026-11-26 06:22:55.250 UTC LOG:  duration: 1.5 ms  statement: SELECT 1\n");
    scratch.run(&["capture", "plain.log", "--out", "t"]).refused(&["plain.log", "in which session", "log_line_prefix"]);
    let line = |pid: u32, database: &str, sql: &str| {
        format!("2026-11-26 06:22:55.250 UTC [{pid}] me@{database} LOG:  duration: 1.5 ms  statement: {sql}\n")
    };
    scratch.write("two.log", &(line(7, "shop", "SELECT 1") + &line(8, "lab", "SELECT 2")));
    scratch.run(&["capture", "two.log", "--out", "t"]).refused(&["two.log", "lab, shop", "--database"]);
    scratch.write("set.log", &line(7, "shop", "SET x = 1"));
    scratch.run(&["capture", "set.log", "--out", "t"]).refused(&["set.log", "nothing is in it"]);
    assert!(!scratch.path("t").exists());
    let told = scratch.run(&["capture", "two.log", "--database", "shop", "--out", "one.trace"]).expect(0);
    assert!(
        told.stdout.contains("Send it with a study") && told.stdout.contains("name  = \"replay\""),
        "{}",
        told.stdout
    );
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(scratch.path("one.trace")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "a trace has values");

    let study = |more: &str| {
        format!(
            "name = \"s\"\n[database]\npath = \"s.db\"\n[workload]\nname = \"replay\"\ntrace = \"one.trace\"\n{more}\n"
        )
    };
    for (more, words) in [
        ("[load]\nclients = 4", &["s.toml:8:", "load.clients", "the trace decides"][..]),
        ("[load]\nduration = \"5s\"", &["s.toml:8:", "load.duration", "workload.until"]),
        ("speed = 2\n[goal]\nquantile = 0.9\nbelow = \"20ms\"", &["s.toml:7:", "workload.speed", "[goal]"]),
        ("speed = 2\n[load]\nrate = 10", &["workload.speed and load.rate"]),
        ("until = \"0s\"", &["s.toml:7:", "workload.until"]),
        ("[load]\nconnect = \"each\"", &["load.connect"]),
    ] {
        scratch.write("s.toml", &study(more));
        scratch.run(&["plan", "s.toml"]).refused(words);
    }
    scratch.write("s.toml", &study("").replace("one.trace", "gone.trace"));
    scratch.run(&["plan", "s.toml"]).refused(&["s.toml:6:", "gone.trace", "cannot be read"]);
    scratch.write("s.toml", &study("").replace("trace = \"one.trace\"\n", ""));
    scratch.run(&["plan", "s.toml"]).refused(&["workload.trace is missing", "loadline capture"]);
    scratch.write("s.toml", "name = \"s\"\n[workload]\nspeed = 2\n");
    scratch.run(&["plan", "s.toml"]).refused(&["s.toml:3:", "workload.speed is for the workload replay"]);
    let whole = std::fs::read_to_string(scratch.path("one.trace")).unwrap();
    scratch.write("one.trace", &whole.replace("[0,0,0,[1]]", "[0,0,0,[2]]"));
    scratch.write("s.toml", &study(""));
    scratch.run(&["plan", "s.toml"]).refused(&["s.toml:6:", "one.trace", "it was changed"]);
    scratch.write("one.trace", &whole);
    scratch.run(&["plan", "s.toml"]).expect(0);
}
