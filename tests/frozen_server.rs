//! A real server that is frozen for a second must show about a second at p99 of the response time: waiting operations are not
//! left out because nobody could send them.

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

#[test]
fn a_second_in_which_postgresql_is_frozen_is_seen_in_the_response_times() {
    let settings = DatabaseSettings::default();
    let server = Server::start(&postgres::recipe::POSTGRES, &settings, None).unwrap();
    let opened = database::find("postgres").unwrap().open_sql(&settings, Some(server.endpoint())).unwrap();
    let mut session = opened.connect().unwrap();
    session.run("CREATE TABLE t (id int PRIMARY KEY, value int NOT NULL)").unwrap();
    session.run("INSERT INTO t SELECT i, i FROM generate_series(1, 1000) i").unwrap();

    let directory = std::env::temp_dir().join(format!("loadline-frozen-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let endpoint = server.endpoint();
    let (host, port) = endpoint.tcp.clone().unwrap();
    let url = format!("postgres://{}:{}@{host}:{port}/{}", endpoint.user, endpoint.password, endpoint.database);
    let study = format!(
        "name = \"frozen\"\n[database]\nname = \"postgres\"\nurl = \"{url}\"\n[workload]\nname = \"sql\"\n\
         statements = [ {{ sql = \"SELECT value FROM t WHERE id = ?\", weight = 1, params = [ {{ uniform = [1, 1000] }} ] }} ]\n\
         [load]\narrivals = \"poisson\"\nrate = {RATE_PER_S}\nclients = 4\nduration = \"{SECONDS}s\"\n\
         [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
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
    std::thread::sleep(Duration::from_secs(1));
    signal(&server, libc::SIGCONT);
    // A busy machine may leave it frozen for longer.
    let frozen_s = frozen.elapsed().as_secs_f64();

    let output = child.wait_with_output().unwrap();
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    std::fs::remove_dir_all(&directory).unwrap();
    let case = &document["cases"][0];
    let statement = &case["operations"]["statement-1"];
    let p99 = |time: &str| statement[time]["p99"].as_f64().unwrap();
    assert_eq!((document["valid"].as_bool(), statement["failed"].as_u64()), (Some(true), Some(0)), "{case}");
    let share = p99("response_time_s") / frozen_s;
    assert!((0.85..1.0).contains(&share), "response time p99 {} s of {frozen_s} s", p99("response_time_s"));
    assert!(page.contains("<h2>Backlog over time</h2>"), "the report shows no backlog");
    // Only what was under way when the server froze has it in its residence time: four operations, not one in a hundred.
    let residence = p99("residence_time_s") / frozen_s;
    assert!(residence < 0.5, "residence time p99 {} s of {frozen_s} s", p99("residence_time_s"));
}
