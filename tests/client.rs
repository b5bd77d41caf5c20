//! How the program sends transactions, and whether it says that it was kept from running, on real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use loadline::database::{mysql, postgres, recipe::Recipe};
use loadline::server::Server;
use loadline::store::Run;
use loadline::trial::DatabaseSettings;

/// Held by each test: what one does to the CPUs is measured in another.
static CPUS: Mutex<()> = Mutex::new(());

fn cpus() -> MutexGuard<'static, ()> {
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A directory of the test's own, removed at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("loadline-client-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// Runs a command of the program on a study, below another command such as `nice`: its status, and all that it printed.
    fn run(&self, above: &[&str], command: &str, study: &str) -> (i32, String) {
        std::fs::write(self.0.join("study.toml"), study).unwrap();
        // It is there from the second time on only.
        let _ = std::fs::remove_dir_all(self.0.join("out"));
        let program = [above, &[env!("CARGO_BIN_EXE_loadline"), command, "study.toml"]].concat();
        let out: &[&str] = if command == "run" { &["--out", "out"] } else { &[] };
        let mut command = Command::new(program[0]);
        command.args(&program[1..]).args(out).current_dir(&self.0).env("LOADLINE_CACHE", "off").stdin(Stdio::null());
        // A hypervisor may take what it likes, and other processes not everything: that is what is tested here.
        command.env("LOADLINE_STOLEN", "0.9");
        let output = command.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8_lossy(&text).into_owned())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It holds nothing that is needed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn start(recipe: &dyn Recipe) -> Server {
    Server::start(recipe, &DatabaseSettings::default(), None).unwrap_or_else(|error| panic!("{error}"))
}

/// A server's address for studies.
fn url(server: &Server, scheme: &str) -> String {
    let end = server.endpoint();
    let (host, port) = end.tcp.as_ref().unwrap();
    format!("{scheme}://{}:{}@{host}:{port}/{}", end.user, end.password, end.database)
}

/// A study on an existing server, with this in its `[load]` and `[workload]`.
fn study(database: &str, url: &str, load: &str, workload: &str) -> String {
    format!(
        "name = \"client\"\n[database]\nname = \"{database}\"\nurl = \"{url}\"\n[load]\nwarmup = \"0s\"\n{load}\n\
         [workload]\nname = \"sql\"\nwrites = true\n{workload}\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

/// A savepoint is refused outside of a transaction that was begun: the statements of one pipeline are a transaction without a BEGIN.
const SAVEPOINT: &str = "statements = [ { weight = 1, transaction = [ { sql = \"SAVEPOINT here\" }, { sql = \"SELECT 1\" }, \
                         { sql = \"ROLLBACK TO SAVEPOINT here\" } ] } ]";

#[test]
fn transactions_begin_and_commit_like_those_of_applications_unless_they_are_pipelined() {
    let _alone = cpus();
    let scratch = Scratch::new("transactions");
    let server = start(&postgres::recipe::POSTGRES);
    let study = |load: &str| study("postgres", &url(&server, "postgres"), load, SAVEPOINT);
    let (status, text) = scratch.run(&[], "run", &study("operations = 20"));
    assert_eq!(status, 0, "{text}");
    assert!(!text.contains("pipelined"), "{text}");
    let (status, text) = scratch.run(&[], "run", &study("operations = 20\npipeline = true"));
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("SAVEPOINT can only be used in transaction blocks"), "{text}");
    let plain = SAVEPOINT.replace("ROLLBACK TO SAVEPOINT here", "SELECT 3").replace("SAVEPOINT here", "SELECT 2");
    let study = |load: &str| self::study("postgres", &url(&server, "postgres"), load, &plain);
    let pipelined = study("operations = 20\npipeline = true");
    for command in ["plan", "run"] {
        let (status, text) = scratch.run(&[], command, &pipelined);
        assert!(status == 0 && text.contains("pipelined: all statements of a transaction"), "{text}");
    }
}

#[test]
fn a_database_that_cannot_pipeline_is_refused_before_anything_is_started() {
    let _alone = cpus();
    let scratch = Scratch::new("refused");
    let server = start(&mysql::recipe::MARIADB);
    for command in ["plan", "run"] {
        let study = study("mariadb", &url(&server, "mysql"), "operations = 20\npipeline = true", SAVEPOINT);
        let (status, text) = scratch.run(&[], command, &study);
        assert_eq!(status, 2, "{text}");
        let says = "load.pipeline is true and mariadb goes on after a statement that failed";
        assert!(text.contains(says) && text.contains("leave it out"), "{text}");
        let study = self::study("mariadb", &url(&server, "mysql"), "clients = 1024\nloops = 1024", SAVEPOINT);
        let (status, text) = scratch.run(&[], command, &study);
        assert_eq!(status, 2, "{text}");
        assert!(text.contains("load.loops is 1024 and the load may use"), "{text}");
    }
}

/// A process that keeps a CPU busy until it is dropped.
struct Busy(Child);

impl Busy {
    fn on(cpu: usize) -> Self {
        let mut command = Command::new("taskset");
        command.args(["-c", &cpu.to_string(), "sh", "-c", "while :; do :; done"]);
        Busy(command.stdin(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_client_that_is_kept_from_running_says_so() {
    let _alone = cpus();
    let scratch = Scratch::new("starved");
    let cpus = loadline::server::allowed_to_this_thread().unwrap();
    let (cpu, others) = cpus.as_slice().split_last().unwrap();
    // A server that had to wait for the same CPU would leave the client with nothing to do.
    let settings = DatabaseSettings { cpus: others.first().map(usize::to_string), ..DatabaseSettings::default() };
    let server = Server::start(&postgres::recipe::POSTGRES, &settings, None).unwrap();
    let load = format!("clients = 8\nduration = \"1500ms\"\ncpus = \"{cpu}\"");
    let study =
        study("postgres", &url(&server, "postgres"), &load, "statements = [ { sql = \"SELECT 1\", weight = 1 } ]");
    let loop_of = |scratch: &Scratch| Run::open(&scratch.0.join("out")).unwrap().measurements[0].loops[0].clone();
    let (status, text) = scratch.run(&[], "run", &study);
    assert!(status == 0 && !text.contains("starved"), "{text}");
    let free = loop_of(&scratch);
    assert!(free.gives_way && free.turns.unwrap() > 0 && free.answers.unwrap() > 0, "{free:?}");
    // The least share that there is, beside two processes with the usual one: a hundredth of the CPU, however fast that is.
    let _busy = [Busy::on(*cpu), Busy::on(*cpu)];
    let (_, text) = scratch.run(&["nice", "-n", "19"], "run", &study);
    let starved = loop_of(&scratch);
    assert!(starved.delayed_s.unwrap() > 0.5 * starved.wall_s, "{starved:?}");
    // Where the machine has idle CPUs besides, the trial is not trusted; where it has none, the server may have had them.
    let says = ["the client was starved", "the client waited for a CPU"];
    assert!(says.iter().any(|says| text.contains(says)), "{starved:?} {text}");
}
