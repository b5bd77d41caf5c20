//! Servers that stand still, or go away, before and after the load: `run` ends within its limits, says what was asked, and names the tables that stay.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline::database;
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

/// What becomes of connections once the words were seen.
#[derive(Clone, Copy, PartialEq)]
enum Then {
    /// Nothing that is sent arrives any more, in either direction.
    Silence,
    /// They end, and there are no new ones.
    Gone,
}

/// A way to a server until some words are sent.
struct Way {
    words: &'static str,
    then: Then,
    is_over: AtomicBool,
}

impl Way {
    /// Opens a port that leads to a server.
    fn open(server: &Server, words: &'static str, then: Then) -> (u16, Arc<Way>) {
        let (host, port) = server.endpoint().tcp.clone().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own_port = listener.local_addr().unwrap().port();
        let way = Arc::new(Way { words, then, is_over: AtomicBool::new(false) });
        let shared = Arc::clone(&way);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if shared.is_over.load(Ordering::SeqCst) && then == Then::Gone {
                    continue;
                }
                let server = TcpStream::connect((host.as_str(), port)).unwrap();
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let (there, here) = (Arc::clone(&shared), Arc::clone(&shared));
                std::thread::spawn(move || there.pass(client, server));
                std::thread::spawn(move || here.pass(forth, back));
            }
        });
        (own_port, way)
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut buffer = vec![0; 64 << 10];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            let said = &buffer[..length];
            let is_said = said.windows(self.words.len()).any(|part| part.eq_ignore_ascii_case(self.words.as_bytes()));
            if is_said {
                self.is_over.store(true, Ordering::SeqCst);
            }
            match (self.is_over.load(Ordering::SeqCst), self.then) {
                (true, Then::Silence) => {}
                (true, Then::Gone) => break,
                _ if to.write_all(said).is_err() => break,
                _ => {}
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}

/// A run of a small study on a server behind a way.
struct Trying {
    server: Server,
    way: Arc<Way>,
    folder: PathBuf,
    name: &'static str,
    port: u16,
}

impl Trying {
    fn new(name: &'static str, words: &'static str, then: Then) -> Trying {
        let entry = database::find(name).unwrap();
        let server = Server::start(entry.recipe.unwrap(), &DatabaseSettings::default(), None).unwrap();
        // With the first connection as to a private server, InfluxDB has an account and a database.
        let settings = DatabaseSettings { name: name.to_owned(), ..DatabaseSettings::default() };
        entry.open(&settings, Some(server.endpoint())).unwrap().open().unwrap();
        let (port, way) = Way::open(&server, words, then);
        let folder = std::env::temp_dir().join(format!("loadline-still-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        Trying { server, way, folder, name, port }
    }

    fn begin(&self, statement_timeout: &str) -> Child {
        let endpoint = self.server.endpoint();
        let scheme = if self.name == "mariadb" { "mysql" } else { self.name };
        // InfluxDB has no updates, which the identities of others need.
        let layout = if ["influxdb", "victoriametrics"].contains(&self.name) { "wide" } else { "star" };
        // VictoriaMetrics has numbers of few digits alone.
        let record = match self.name {
            "victoriametrics" => {
                "type = \"custom\"\nvalues = [{ name = \"level\", kind = \"int\", fill = { uniform = [0, 9] } }]\n"
            }
            _ => "",
        };
        let url =
            format!("{scheme}://{}:{}@127.0.0.1:{}/{}", endpoint.user, endpoint.password, self.port, endpoint.database);
        let study = format!(
            "name = \"still\"\n[database]\nname = \"{}\"\nurl = \"{url}\"\nstatement_timeout = \"{statement_timeout}\"\n\
             [layout]\nname = \"{layout}\"\n[record]\n{record}table = \"still\"\nrows = 100\n[workload]\nname = \"write\"\n[load]\nclients = 1\noperations = 20\n\
             [repeat]\nrule = \"fixed\"\nleast = 4\nmost = 4\n",
            self.name
        );
        std::fs::write(self.folder.join("study.toml"), study).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
        command.args(["run", "study.toml", "--out", "run"]).current_dir(&self.folder);
        // A shell that starts the tests in the background makes them ignore SIGINT, which is inherited.
        let listen = || {
            // SAFETY: signal takes no pointer, and may be called between fork and exec.
            unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
            Ok(())
        };
        // SAFETY: what is called before exec is safe there.
        unsafe { command.pre_exec(listen) };
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The exit status, and everything that was said.
    fn end(&self, child: Child) -> (Option<i32>, String) {
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        (output.status.code(), said)
    }

    fn wait_until_over(&self) {
        let begun = Instant::now();
        while !self.way.is_over.load(Ordering::SeqCst) {
            assert!(begun.elapsed() < Duration::from_secs(240), "{} was not asked for", self.way.words);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Trying {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn a_server_that_stands_still_is_named_with_what_it_was_asked() {
    let sql = ["postgres", "mariadb"].into_iter().flat_map(|name| {
        ["INSERT INTO", "SELECT COUNT"]
            .map(|words| (name, words, "10s", format!("10 s, which database.statement_timeout sets, to: {words}")))
    });
    // Counting may take as long there as changing a table.
    let counted = "60 s, 20 times what database.statement_timeout sets, to: SELECT count";
    // It closes a connection that was idle for a minute.
    let of_series = "40 s, 20 times what database.statement_timeout sets, to: sum(count_over_time({__name__=";
    let cases = sql.chain([
        ("influxdb", "SELECT%20COUNT", "3s", counted.to_owned()),
        ("victoriametrics", "sum%28count_over_time%28%7B__name__", "2s", of_series.to_owned()),
    ]);
    // Each waits for its limit, and several at once wait no longer.
    let threads = cases.map(|(name, words, timeout, told)| {
        std::thread::spawn(move || {
            let trying = Trying::new(name, words, Then::Silence);
            let (status, said) = trying.end(trying.begin(timeout));
            assert!(said.contains(&format!("did not answer within {told}")), "{name}, {words}: {said}");
            assert_eq!(status, Some(1), "{name}, {words}: {said}");
            assert!(said.contains("stood still in 2 trials"), "{name}, {words}: {said}");
        })
    });
    threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn the_first_interrupt_ends_the_wait_for_a_server_that_stands_still() {
    for name in ["postgres", "mariadb"] {
        let trying = Trying::new(name, "CREATE TABLE", Then::Silence);
        let child = trying.begin("1h");
        trying.wait_until_over();
        // SAFETY: kill takes no pointer; the pid is that of the child that this test has started.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGINT) };
        // Without a limit for what is asked after it, this would never end.
        let (status, said) = trying.end(child);
        assert_eq!(status, Some(1), "{name}: {said}");
        assert!(said.contains("--resume run"), "{name}: {said}");
    }
}

#[test]
fn tables_that_cannot_be_removed_are_named_with_the_command_that_does() {
    for name in ["postgres", "mariadb"] {
        let trying = Trying::new(name, "DROP TABLE", Then::Gone);
        let (status, said) = trying.end(trying.begin("60s"));
        assert!(said.contains("tables that this run made stay on the server"), "{name}: {said}");
        assert!(said.contains("remove them with: DROP TABLE"), "{name}: {said}");
        assert_eq!(status, Some(1), "{name}: {said}");
    }
}

#[test]
fn how_long_a_run_waits_is_kept_with_it_and_can_be_changed_when_it_is_resumed() {
    let folder = std::env::temp_dir().join(format!("loadline-patience-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let study = "name = \"patience\"\n[record]\nrows = 100\n[workload]\nname = \"write\"\n[load]\nclients = 1\noperations = 20\n\
                 [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
    std::fs::write(folder.join("study.toml"), study).unwrap();
    let run = |arguments: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_loadline")).args(arguments).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    let kept = |run: &str| std::fs::read_to_string(folder.join(run).join("run.toml")).unwrap();
    run(&["run", "study.toml", "--set", "database.statement_timeout=1h", "--out", "run"]);
    assert!(kept("run").contains("patience = 3600.0"), "{}", kept("run"));
    run(&["run", "study.toml", "--set", "database.statement_timeout=2h", "--resume", "run"]);
    run(&["run", "run", "--out", "again"]);
    assert!(kept("again").contains("patience = 3600.0"), "{}", kept("again"));
    run(&["run", "study.toml", "--out", "usual"]);
    assert!(!kept("usual").contains("patience ="), "{}", kept("usual"));
    std::fs::remove_dir_all(&folder).unwrap();
}
