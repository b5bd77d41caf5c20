//! The quarantine: one sender's refused records close its own door and nobody else's, and operators clear it while records come in.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use loadline::recorder::access::TokenHash;
use loadline::recorder::spool::{APART_LANES, GREEDY_LANES, SpoolFile, list};

use super::harness::{Answer, Directory, Target, send};
use super::process::{Process, config_file, database_of};

const BAD: &str = "token-of-the-bad-one-0001";
const GOOD: &str = "token-of-the-good-one-0001";

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "never: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Two senders, each with its token.
fn senders() -> String {
    let one = |name: &str, token: &str| {
        format!("[[access]]\nname = \"{name}\"\ntoken_hash = \"{}\"\n", TokenHash::of(token).text())
    };
    one("bad", BAD) + &one("good", GOOD)
}

fn post(http: SocketAddr, token: &str, source: &str, body: &str) -> Answer {
    let headers = format!("Authorization: Token {token}\r\nX-Loadline-Source: {source}\r\n");
    send(http, "POST", "/api/v2/write", &headers, body.as_bytes())
}

/// From now on the table takes no value below this one.
fn constrain(target: &Target, table: &str, lowest: i64) {
    let positive = match target.name {
        "sqlite" => format!(
            "CREATE TRIGGER {table}_positive BEFORE INSERT ON {table} WHEN NEW.f < {lowest} BEGIN SELECT RAISE(ABORT, '{table}_positive'); END"
        ),
        _ => format!("ALTER TABLE {table} ADD CONSTRAINT {table}_positive CHECK (f >= {lowest})"),
    };
    target.session().run(&positive).unwrap();
}

/// It takes everything again.
fn mend(target: &Target, table: &str) {
    let mended = match target.name {
        "sqlite" => format!("DROP TRIGGER {table}_positive"),
        _ => format!("ALTER TABLE {table} DROP CONSTRAINT {table}_positive"),
    };
    target.session().run(&mended).unwrap();
}

fn clear_command(config: &str, action: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command.args(["record", config, "--quarantine", action, "--json"]);
    command
}

/// What the command says.
fn clear(config: &str, action: &str) -> serde_json::Value {
    let ended = clear_command(config, action).output().unwrap();
    assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"))
}

fn stored(target: &Target, table: &str, which: &str) -> Vec<i64> {
    let found = target.query(&format!("SELECT f FROM {table} WHERE {which} ORDER BY f"));
    found.iter().map(|value| value.parse().unwrap()).collect()
}

/// Waits until so many records are in quarantine, and their entries are settled: before that they are neither replayed nor discarded.
fn wait_for_quarantined(process: &Process, records: i64) {
    wait_until("all bad ones are in quarantine", || process.metric("loadline_quarantined_rows") == records as f64);
    wait_until("they are settled", || process.metric("loadline_spooled_entries") == 0.0);
}

/// The records in the spool's files, by what they carry: those that wait, and those in quarantine. A recorder that works on it meanwhile is waited for.
fn kept(directory: &Directory) -> (Vec<i64>, Vec<i64>) {
    let spool = directory.0.join("disk/spool");
    let file = SpoolFile::open(&spool, 1 << 30, Duration::from_secs(3_600)).unwrap();
    let reader = file.reader();
    let mut waiting = Vec::new();
    for lane in (0..64).chain(GREEDY_LANES).chain(APART_LANES).chain([600]) {
        for entry in reader.read(lane, (0, i64::MAX), usize::MAX, u64::MAX).unwrap() {
            let entry = entry.unwrap();
            // Those of which some are in quarantine are decided, and only not settled.
            if reader.quarantined(entry.sequence, entry.sequence).unwrap().is_empty() {
                waiting.extend(entry.offer.body);
            }
        }
    }
    let value = |line: &str| Some(line.split_once("f=")?.1.split_once('i')?.0.parse().unwrap());
    let values = |text: &str| text.lines().filter_map(value).collect::<Vec<i64>>();
    let quarantined = list(&spool, 1_000_000).unwrap();
    let quarantined = quarantined.into_iter().map(|one| one.line + "\n").collect::<String>();
    (values(&String::from_utf8(waiting).unwrap()), values(&quarantined))
}

fn over_tcp(address: SocketAddr, batch: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(format!("{batch}\n\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    answer
}

/// Sends bad records until they are refused, with good ones of another sender between them; how many of both were acknowledged, and the refusal.
fn send_until_refused(process: &Process) -> (i64, i64, Answer) {
    let (mut good, mut bad) = (1, 0);
    let begun = Instant::now();
    loop {
        // At first much more at once than its share, so that most of it is acknowledged before anybody knows.
        let rows = if bad < 15_000 { 5_000 } else { 1 };
        let lines: String = (bad + 1..=bad + rows).map(|number| format!("shared f=-{number}i {number}\n")).collect();
        let answer = post(process.http, BAD, &format!("bad-{bad}"), &lines);
        assert_eq!(post(process.http, GOOD, "good", &format!("shared f={good}i {good}")).status, 204);
        good += 1;
        match answer.status {
            204 => bad += rows,
            _ => return (good, bad, answer),
        }
        assert!(begun.elapsed() < Duration::from_secs(240), "the door stays open");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// What operators are shown of a quarantine of 1 MiB of which one sender has had its share.
fn assert_shown(process: &Process, target: &Target) {
    let bytes = process.metric("loadline_quarantined_bytes");
    assert!(bytes > 0.5 * 1024.0 * 1024.0, "{bytes}");
    if target.endpoint.is_some() {
        assert!(bytes < 1024.0 * 1024.0 && process.metric("loadline_deferred_rows") > 0.0, "{bytes}");
    }
    assert_eq!(process.metric("loadline_quarantine_closed_senders"), 1.0);
    assert_eq!(process.metric("loadline_quarantine_bound_bytes"), 1024.0 * 1024.0);
    let page = send(process.http, "GET", "/metrics", "", b"").body;
    assert!(page.contains("loadline_quarantine_held_bytes{who=\"sender \\\"bad\\\"\"} "), "{page}");
    let ready = send(process.http, "GET", "/ready", "", b"");
    assert_eq!(ready.status, 200, "{ready:?}");
    let facts: serde_json::Value = serde_json::from_str(&ready.body).unwrap();
    assert_eq!(facts["quarantine"]["holds_most"]["who"], "sender \"bad\"", "{facts}");
    assert!(facts["quarantine"]["warning"].as_str().unwrap().contains("half of quarantine.bound"), "{facts}");
    let said = process.said();
    assert!(said.contains("the quarantine takes half of quarantine.bound"), "{said}");
    assert!(said.contains("the door is closed for a sender"), "{said}");
}

/// A sender fills its share of the quarantine, whatever it calls its sources, and is told so; another one stores everything meanwhile and afterwards.
/// What was acknowledged of the bad one is kept, over a restart too, and stored once when the table is mended.
pub fn a_sender_whose_records_are_refused_closes_its_own_door(target: &Target) {
    let directory = Directory::new();
    let more = format!("[quarantine]\nbound = \"1MiB\"\n[intake.tcp]\nlisten = \"127.0.0.1:0\"\n{}", senders());
    let config = config_file(&directory, &database_of(target), &more);
    let process = Process::start(&config, "");
    assert_eq!(post(process.http, GOOD, "good", "shared f=0i 0").status, 204);
    wait_until("the table is there", || process.metric("loadline_committed_rows_total") == 1.0);
    constrain(target, "shared_values", 0);
    let (mut good, bad, refused) = send_until_refused(&process);
    assert_eq!(refused.status, 400, "{refused:?}");
    for part in ["sender \\\"bad\\\"", "positive", "its share", "quarantine.bound", "--quarantine list"] {
        assert!(refused.body.contains(part), "{part}: {}", refused.body);
    }
    let said = process.said();
    let tcp = said.split("intake=\"tcp\" address=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
    let answer = over_tcp(tcp.parse().unwrap(), &format!("# token={BAD} source=elsewhere\nshared f=-1i 1"));
    assert!(answer.starts_with("error not taken in: the database refuses records of sender \"bad\""), "{answer}");
    for _ in 0..50 {
        assert_eq!(post(process.http, GOOD, "good", &format!("shared f={good}i {good}")).status, 204);
        good += 1;
    }
    wait_until("the good one's are stored", || {
        stored(target, "shared_values", "f >= 0") == (0..good).collect::<Vec<_>>()
    });
    wait_until("the bad one's are decided", || {
        process.metric("loadline_spooled_rows") == process.metric("loadline_deferred_rows")
    });
    process.assert_conserved();
    assert_shown(&process, target);
    assert_eq!(process.stop(), Some(0), "a full quarantine is no failure");
    // Every acknowledged record is in one place, and who starts again knows who has had its share.
    let (waiting, quarantined) = kept(&directory);
    let mut found = [waiting, quarantined].concat();
    found.sort_unstable();
    assert_eq!(found, (-bad..0).collect::<Vec<_>>(), "{}", target.name);
    let process = Process::start(&config, "");
    assert_eq!(post(process.http, BAD, "bad", "shared f=-1i 1").status, 400);
    assert_eq!(post(process.http, GOOD, "good", &format!("shared f={good}i {good}")).status, 204);
    mend(target, "shared_values");
    wait_until("everything is stored", || {
        clear(&config, "replay");
        process.metric("loadline_spooled_rows") + process.metric("loadline_quarantined_rows") == 0.0
    });
    assert_eq!(post(process.http, BAD, "bad", "shared f=-1000000i 1").status, 204, "the door is open again");
    wait_until("that is stored too", || process.metric("loadline_spooled_rows") == 0.0);
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert_eq!(stored(target, "shared_values", "f > -1000000"), (-bad..=good).collect::<Vec<_>>(), "{}", target.name);
}

/// Sends on while a test does something else; how many it has sent is what it gives back.
fn beside<T>(http: SocketAddr, table: &str, work: impl FnOnce() -> T) -> (T, i64) {
    let (is_over, sent) = (AtomicBool::new(false), AtomicI64::new(0));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let number = sent.load(Ordering::SeqCst);
                let body = format!("{table} f={number}i {number}");
                let answer = send(http, "POST", "/write", "X-Loadline-Source: beside\r\n", body.as_bytes());
                assert_eq!(answer.status, 204, "{}", answer.body);
                sent.fetch_add(1, Ordering::SeqCst);
            }
        });
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        is_over.store(true, Ordering::SeqCst);
        outcome
    });
    (outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), sent.load(Ordering::SeqCst))
}

/// Operators list, replay and discard what is in quarantine while the recorder takes in and writes.
pub fn the_quarantine_is_cleared_while_the_recorder_runs(target: &Target) {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    let config = config_file(&directory, &database_of(target), "");
    let process = Process::start(&config, "umask 022;");
    let socket = directory.path("disk/spool/control");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    let write = |lines: &str| {
        let answer = send(process.http, "POST", "/write", "X-Loadline-Source: s\r\n", lines.as_bytes());
        assert_eq!(answer.status, 204, "{}", answer.body);
    };
    write("cleared f=0i 0");
    wait_until("the table is there", || process.metric("loadline_committed_rows_total") == 1.0);
    constrain(target, "cleared_values", 0);
    let ((), sent) = beside(process.http, "clearing", || {
        (1..=700).for_each(|number| write(&format!("cleared f=-{number}i {number}\ncleared f={number}i {number}")));
        wait_for_quarantined(&process, 700);
        let listed = clear(&config, "list");
        let lines: Vec<_> = listed["quarantined"].as_array().unwrap().iter().map(|one| one["line"].clone()).collect();
        assert_eq!((lines.len(), lines[0].as_str()), (700, Some("cleared f=-1i 1")));
        // What the database refuses still comes back, once.
        assert_eq!(clear(&config, "replay")["replayed"], 700);
        wait_for_quarantined(&process, 700);
        mend(target, "cleared_values");
        assert_eq!(clear(&config, "replay")["replayed"], 700);
        wait_until("all are stored", || stored(target, "cleared_values", "f < 0").len() == 700);
        constrain(target, "cleared_values", -1_000);
        write(&(1_001..=1_040).map(|number| format!("cleared f=-{number}i 1\n")).collect::<String>());
        wait_for_quarantined(&process, 40);
        assert_eq!(clear(&config, "discard")["discarded"], 40);
        assert_eq!(clear(&config, "discard")["discarded"], 0);
        assert_eq!(process.metric("loadline_quarantined_rows"), 0.0);
    });
    wait_until("all are stored", || process.metric("loadline_spooled_rows") == 0.0);
    process.assert_conserved();
    let acknowledged = process.metric("loadline_acknowledged_rows_total");
    assert_eq!(acknowledged, (sent + 1 + 1_400) as f64, "{}", target.name);
    assert_eq!(process.stop(), Some(0));
    assert!(std::fs::metadata(&socket).is_err(), "nobody listens any more");
    assert_eq!(stored(target, "clearing_values", "1 = 1"), (0..sent).collect::<Vec<_>>());
    assert_eq!(stored(target, "cleared_values", "1 = 1"), (-700..=700).collect::<Vec<_>>());
    // The replayed ones stand in the order in which they were sent, behind what their source had sent before.
    let order = target.query("SELECT f FROM cleared_values WHERE f < 0 ORDER BY record_id");
    assert_eq!(order, (1..=700).map(|number| format!("-{number}")).collect::<Vec<_>>(), "{}", target.name);
    assert_eq!(clear(&config, "replay")["replayed"], 0, "without a recorder too");
}

/// A command that is killed after so many of its answers have come.
fn killed_after(config: &str, pause: Duration) -> Child {
    let mut child = clear_command(config, "replay").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(pause);
    let _ = child.kill();
    child
}

/// Recorder and command are killed in the middle of replays: then each record is stored once, or in quarantine still.
pub fn replays_that_are_killed_lose_and_double_nothing(target: &Target) {
    const RECORDS: i64 = 4_000;
    let directory = Directory::new();
    let config = config_file(&directory, &database_of(target), "");
    let mut process = Process::start(&config, "");
    let write = |process: &Process, lines: &str| {
        assert_eq!(send(process.http, "POST", "/write", "X-Loadline-Source: s\r\n", lines.as_bytes()).status, 204);
    };
    write(&process, "killed f=0i 0");
    wait_until("the table is there", || process.metric("loadline_committed_rows_total") == 1.0);
    constrain(target, "killed_values", 0);
    let lines: Vec<_> = (1..=RECORDS).map(|number| format!("killed f=-{number}i {number}\n")).collect();
    lines.chunks(500).for_each(|lines| write(&process, &lines.concat()));
    wait_for_quarantined(&process, RECORDS);
    mend(target, "killed_values");
    for round in 0..12_u64 {
        // From at once to long enough that some portions are done: whatever the machine does in that time, all must hold.
        let pause = Duration::from_millis(round * 7);
        if round % 2 == 0 {
            killed_after(&config, pause).wait().unwrap();
        } else {
            let mut command =
                clear_command(&config, "replay").stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            std::thread::sleep(pause);
            process.kill();
            // Whoever finds no recorder any more may do it alone, or wait for the next one.
            command.wait().unwrap();
            let (waiting, quarantined) = kept(&directory);
            let mut found = [waiting, quarantined, stored(target, "killed_values", "f < 0")].concat();
            // The first one is stored, and the spool may not have noted that yet.
            found.retain(|value| *value < 0);
            found.sort_unstable();
            found.dedup();
            assert_eq!(found, (-RECORDS..0).collect::<Vec<_>>(), "{} in round {round}", target.name);
            process = Process::start(&config, "");
        }
        process.assert_conserved();
    }
    wait_until("everything is stored", || {
        clear(&config, "replay");
        process.metric("loadline_spooled_rows") + process.metric("loadline_quarantined_rows") == 0.0
    });
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert_eq!(stored(target, "killed_values", "1 = 1"), (-RECORDS..=0).collect::<Vec<_>>(), "{}", target.name);
}
