//! A real server that is frozen for a second must show about a second at p99 of the response time: waiting operations are not
//! left out because nobody could send them. In a closed loop nobody waits but the clients, no quantile shows it, and the report says it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loadline::database::{self, postgres};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

const RATE_PER_S: u32 = 1_000;
const SECONDS: u32 = 10;

/// Sends a signal to all processes of a server.
fn signal(server: &Server, signal: libc::c_int) {
    for pid in server.pids() {
        // SAFETY: kill takes no pointer; the pids are those of the server that this test has started.
        unsafe { libc::kill(pid as libc::pid_t, signal) };
    }
}

/// Waits until the run has stored that it began, and then for the warm-up and a part of the measured phase.
fn wait_until_measuring(run: &Path) {
    let begun = Instant::now();
    while !run.join("run.toml").exists() {
        assert!(begun.elapsed() < Duration::from_secs(240), "the run did not begin");
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_secs(4));
}

/// What a run of a study said whose server was frozen in the midst of it.
struct Frozen {
    document: serde_json::Value,
    page: String,
    /// For how long it was, in seconds.
    lasted_s: f64,
}

/// Runs one trial with such a load and freezes its PostgreSQL meanwhile, for so long at least.
fn freeze(name: &str, load: &str, at_least: Duration) -> Frozen {
    let settings = DatabaseSettings::default();
    let server = Server::start(&postgres::recipe::POSTGRES, &settings, None).unwrap();
    let opened = database::find("postgres").unwrap().open_sql(&settings, Some(server.endpoint())).unwrap();
    let mut session = opened.connect().unwrap();
    session.run("CREATE TABLE t (id int PRIMARY KEY, value int NOT NULL)").unwrap();
    session.run("INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i").unwrap();

    let directory = std::env::temp_dir().join(format!("loadline-frozen-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let endpoint = server.endpoint();
    let (host, port) = endpoint.tcp.clone().unwrap();
    let url = format!("postgres://{}:{}@{host}:{port}/{}", endpoint.user, endpoint.password, endpoint.database);
    let study = format!(
        "name = \"frozen\"\n[database]\nname = \"postgres\"\nurl = \"{url}\"\n[workload]\nname = \"sql\"\n\
         statements = [ {{ sql = \"SELECT value FROM t WHERE id = ?\", weight = 1, params = [ {{ uniform = [1, 1000] }} ] }} ]\n\
         [load]\n{load}clients = 4\nduration = \"{SECONDS}s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    );
    std::fs::write(directory.join("study.toml"), study).unwrap();
    let run = directory.join("run");
    let child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["run", "--json"])
        .arg(directory.join("study.toml"))
        .arg("--out")
        .arg(&run)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until_measuring(&run);
    signal(&server, libc::SIGSTOP);
    let frozen = Instant::now();
    std::thread::sleep(at_least);
    signal(&server, libc::SIGCONT);
    // A busy machine may leave it frozen for longer.
    let lasted_s = frozen.elapsed().as_secs_f64();
    let output = child.wait_with_output().unwrap();
    let document = serde_json::from_slice(&output.stdout).unwrap();
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    Frozen { document, page, lasted_s }
}

impl Frozen {
    /// What the run says of its only statement; the run must be valid.
    fn statement(&self) -> &serde_json::Value {
        let case = &self.document["cases"][0];
        let statement = &case["operations"]["statement-1"];
        assert_eq!((self.document["valid"].as_bool(), statement["failed"].as_u64()), (Some(true), Some(0)), "{case}");
        statement
    }

    /// The note that nothing was completed for a while.
    fn note(&self) -> Option<&serde_json::Value> {
        let notes = self.document["notes"].as_array().unwrap();
        notes.iter().find(|note| note["kind"] == "stood_still")
    }
}

#[test]
fn a_second_in_which_postgresql_is_frozen_is_seen_in_the_response_times() {
    let load = format!("arrivals = \"poisson\"\nrate = {RATE_PER_S}\n");
    let frozen = freeze("open", &load, Duration::from_secs(1));
    let statement = frozen.statement();
    let p99 = |time: &str| statement[time]["p99"].as_f64().unwrap();
    let share = p99("response_time_s") / frozen.lasted_s;
    assert!((0.85..1.0).contains(&share), "response time p99 {} s of {} s", p99("response_time_s"), frozen.lasted_s);
    assert!(frozen.page.contains("<h2>Backlog over time</h2>"), "the report shows no backlog");
    // Only what was under way when the server froze has it in its residence time: four operations, not one in a hundred.
    let residence = p99("residence_time_s") / frozen.lasted_s;
    assert!(residence < 0.5, "residence time p99 {} s of {} s", p99("residence_time_s"), frozen.lasted_s);
    assert_eq!(frozen.note(), None, "the quantile shows it");
}

#[test]
fn a_while_in_which_postgresql_is_frozen_in_a_closed_loop_is_told() {
    let frozen = freeze("closed", "", Duration::from_secs(3));
    let p99_s = frozen.statement()["response_time_s"]["p99"].as_f64().unwrap();
    assert!(p99_s < 0.3, "no quantile shows it: {p99_s} s");
    let note = frozen.note().unwrap_or_else(|| panic!("nothing is said of it: {}", frozen.document["notes"]));
    // To within the intervals of the series, and of the measured phase alone.
    let told_s = note["longest"]["lasted_s"].as_f64().unwrap();
    assert!((2.7..f64::from(SECONDS)).contains(&told_s), "{told_s} s of {} s", frozen.lasted_s);
    assert!(frozen.page.contains("nothing was completed for a while"), "the page does not say it");
}
