//! Private servers, with the real MariaDB and PostgreSQL. Both must be installed: a machine without them fails these tests.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "server/encryption.rs"]
mod encryption;
#[path = "server/probe.rs"]
mod probe;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loadline::database::mysql::recipe::MARIADB;
use loadline::database::postgres::recipe::POSTGRES;
use loadline::database::recipe::Recipe;
use loadline::server::{Server, ServerError, remove_orphans, root};
use loadline::trial::DatabaseSettings;
use probe::{postgres_answer, select_from_mysql};

/// The recipes with the names that studies use.
fn recipes() -> [(&'static str, &'static dyn Recipe); 2] {
    [("mariadb", &MARIADB), ("postgres", &POSTGRES)]
}

fn start(recipe: &dyn Recipe, settings: &DatabaseSettings) -> Server {
    match Server::start(recipe, settings, None) {
        Ok(server) => server,
        Err(error) => panic!("this test needs an installed server: {error}"),
    }
}

fn refusal(recipe: &dyn Recipe, settings: &DatabaseSettings) -> ServerError {
    match Server::start(recipe, settings, None) {
        Ok(_) => panic!("the server started although it should not"),
        Err(error) => error,
    }
}

fn config(name: &str, value: &str) -> DatabaseSettings {
    DatabaseSettings { config: [(name.to_owned(), value.to_owned())].into(), ..DatabaseSettings::default() }
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rfind(')').is_some_and(|end| !stat[end..].starts_with(") Z"))
}

fn wait_for(what: &str, mut is_true: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_true() {
        assert!(Instant::now() < end, "{what} did not come true within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn mariadb_answers_on_both_sockets_and_leaves_nothing_behind() {
    let server = start(&MARIADB, &DatabaseSettings::default());
    let endpoint = server.endpoint().clone();
    assert_eq!(select_from_mysql(&endpoint, true, "SELECT DATABASE()"), "loadline");
    assert_eq!(select_from_mysql(&endpoint, false, "SELECT DATABASE()"), "loadline");
    assert_eq!(select_from_mysql(&endpoint, true, "SELECT @@innodb_flush_log_at_trx_commit"), "1");
    assert_eq!(select_from_mysql(&endpoint, true, "SELECT @@bind_address"), "127.0.0.1");
    assert_eq!(select_from_mysql(&endpoint, true, "SELECT COUNT(*) FROM mysql.user WHERE User = ''"), "0");
    let (pids, directory) = (server.pids(), server.directory());
    assert_eq!(pids.len(), 1);
    assert!(directory.exists() && is_running(pids[0]));
    assert!(server.stop(), "it stops in order");
    assert!(!directory.exists() && !is_running(pids[0]));
}

#[test]
fn postgres_answers_on_both_sockets_and_leaves_nothing_behind() {
    let server = start(&POSTGRES, &DatabaseSettings::default());
    let endpoint = server.endpoint().clone();
    assert_eq!(postgres_answer(&endpoint, true), "let in", "the unix socket needs no password");
    assert_eq!(postgres_answer(&endpoint, false), "password asked for", "other users of the machine are kept out");
    let (pids, directory) = (server.pids(), server.directory());
    assert!(pids.len() > 3, "the main process and its children: {pids:?}");
    assert!(server.stop(), "it stops in order");
    assert!(!directory.exists() && !pids.into_iter().any(is_running));
}

#[test]
fn settings_reach_the_server() {
    let mut settings = config("innodb_flush_log_at_trx_commit", "2");
    settings.engine = Some("aria".to_owned());
    settings.config.insert("innodb_io_capacity".to_owned(), "1".to_owned());
    let server = start(&MARIADB, &settings);
    assert_eq!(select_from_mysql(server.endpoint(), true, "SELECT @@innodb_flush_log_at_trx_commit"), "2");
    assert_eq!(select_from_mysql(server.endpoint(), true, "SELECT @@default_storage_engine"), "Aria");
    assert!(server.warnings().iter().any(|line| line.contains("adjusted to 100")), "{:?}", server.warnings());
}

#[test]
fn a_setting_that_the_server_refuses_is_named_with_its_log_and_the_remedy() {
    let error = refusal(&MARIADB, &config("no_such_setting", "1")).to_string();
    assert!(error.contains("unknown variable 'no_such_setting=1'"), "{error}");
    assert!(error.contains("correct or remove database.config.no_such_setting"), "{error}");
    let error = refusal(&POSTGRES, &config("shared_buffers", "many")).to_string();
    assert!(error.contains("invalid value for parameter \"shared_buffers\""), "{error}");
    assert!(error.contains("correct or remove database.config.shared_buffers = \"many\""), "{error}");
}

#[test]
fn what_cannot_work_is_refused_before_anything_is_made() {
    for (name, recipe) in recipes() {
        let settings = DatabaseSettings { binary: Some("/nowhere/server".to_owned()), ..DatabaseSettings::default() };
        assert!(matches!(refusal(recipe, &settings), ServerError::NotFound(_)), "{name}");
        assert!(matches!(refusal(recipe, &config("port", "3306")), ServerError::Setting { .. }), "{name}");
        let settings = DatabaseSettings { cpus: Some("1000".to_owned()), ..DatabaseSettings::default() };
        let error = refusal(recipe, &settings).to_string();
        assert!(error.starts_with("database.cpus: CPU 1000 does not exist"), "{error}");
    }
}

#[test]
fn two_servers_run_side_by_side() {
    let [first, second] =
        [start(&MARIADB, &DatabaseSettings::default()), start(&MARIADB, &DatabaseSettings::default())];
    assert_ne!(first.endpoint(), second.endpoint());
    let port = |server: &Server| select_from_mysql(server.endpoint(), true, "SELECT @@port");
    assert_ne!(port(&first), port(&second));
    drop(first);
    assert!(second.is_running(), "stopping one does not touch the other");
    assert_eq!(select_from_mysql(second.endpoint(), true, "SELECT 1"), "1");
}

#[test]
fn a_pinned_server_is_on_its_cpu_and_runs_as_its_own_user() {
    for (name, recipe) in recipes() {
        let settings = DatabaseSettings { cpus: Some("0".to_owned()), ..DatabaseSettings::default() };
        let server = start(recipe, &settings);
        let mut looked_at = 0;
        for pid in server.pids() {
            // A process that ended meanwhile has no status.
            let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            let field = |name: &str| {
                let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                line.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
            };
            assert_eq!(field("Cpus_allowed_list:"), ["0"], "{name}");
            assert!(!field("Uid:").contains(&"0".to_owned()), "{name}: {status}");
            looked_at += 1;
        }
        assert!(looked_at > 0, "{name}");
    }
}

/// A machine where nobody may make control groups refuses, and says how to get one.
#[test]
fn a_server_with_less_memory_is_in_a_group_with_that_limit_and_the_group_goes_with_it() {
    const LIMIT: u64 = 256 << 20;
    for (name, recipe) in recipes() {
        let settings = DatabaseSettings { memory_bytes: Some(LIMIT), ..DatabaseSettings::default() };
        let server = match Server::start(recipe, &settings, None) {
            Ok(server) => server,
            Err(error @ ServerError::Memory(_)) => {
                assert!(error.remedy().is_some_and(|remedy| remedy.contains("Delegate=yes")), "{name}: {error}");
                assert!(error.to_string().starts_with("database.memory: "), "{name}: {error}");
                continue;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let groups = || -> Vec<String> {
            let read =
                |pid: u32, name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
            // One that is ending is in no group any more; by then it has no command line either.
            let of = |pid| Some(read(pid, "cgroup")).filter(|_| !read(pid, "cmdline").is_empty());
            server.pids().into_iter().filter_map(of).filter(|groups| !groups.is_empty()).collect()
        };
        let all = groups();
        assert!(!all.is_empty() && all.iter().all(|groups| groups.contains("/loadline-memory-")), "{name}: {all:?}");
        let line = all[0].lines().find(|line| line.contains("/loadline-memory-")).unwrap();
        let group = line.rsplit(':').next().unwrap().trim_start_matches('/');
        let (first, second) = (PathBuf::from("/sys/fs/cgroup/memory"), PathBuf::from("/sys/fs/cgroup"));
        let limits = [first.join(group).join("memory.limit_in_bytes"), second.join(group).join("memory.max")];
        let limit = limits.iter().find_map(|path| std::fs::read_to_string(path).ok()).unwrap();
        assert_eq!(limit.trim(), LIMIT.to_string(), "{name}");
        assert!(server.stop(), "{name}");
        assert!(!first.join(group).exists() && !second.join(group).exists(), "{name}: {group} is still there");
    }
}

#[test]
fn data_goes_to_the_directory_asked_for() {
    for (name, recipe) in recipes() {
        let long = format!("loadline-data-{name}-{}-{}", std::process::id(), "x".repeat(90));
        let parent = std::env::temp_dir().join(long);
        std::fs::create_dir_all(&parent).unwrap();
        let server = Server::start(recipe, &DatabaseSettings::default(), Some(&parent)).unwrap();
        let made: Vec<_> = std::fs::read_dir(&parent).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(made.len(), 1, "{name}");
        assert!(std::fs::read_dir(&made[0]).unwrap().count() > 5, "{name}");
        assert!(server.endpoint().unix.as_ref().is_some_and(|path| path.as_os_str().len() < 107), "{name}");
        drop(server);
        assert_eq!(std::fs::read_dir(&parent).unwrap().count(), 0, "{name}");
        std::fs::remove_dir(&parent).unwrap();
    }
}

#[test]
fn a_place_that_cannot_be_used_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let parent = std::env::temp_dir().join(format!("loadline-closed-{}", std::process::id()));
    let error = |parent: &std::path::Path| match Server::start(&MARIADB, &DatabaseSettings::default(), Some(parent)) {
        Ok(_) => panic!("the server started although it should not"),
        Err(error) => error.to_string(),
    };
    let missing = error(&parent.join("missing"));
    assert!(missing.starts_with("cannot find ") && missing.contains("loadline-closed-"), "{missing}");
    std::fs::create_dir(&parent).unwrap();
    std::fs::set_permissions(&parent, std::fs::Permissions::from_mode(0o500)).unwrap();
    let closed = error(&parent);
    std::fs::remove_dir(&parent).unwrap();
    // As root the server's user is the one who may not enter; else loadline itself may not write.
    assert!(closed.contains("loadline-closed-") && closed.contains("(--out"), "{closed}");
    assert!(closed.contains("may not enter") || closed.contains("Permission denied"), "{closed}");
}

/// Not a claim of its own: the part of the tests below that runs in a process to be killed.
#[test]
fn keep_a_server_until_killed() {
    let Ok(name) = std::env::var("LOADLINE_TEST_KEEP") else { return };
    let (_, recipe) = recipes().into_iter().find(|(known, _)| *known == name).unwrap();
    loadline::server::install_signal_handlers();
    let server = start(recipe, &DatabaseSettings::default());
    println!("\nkeeping {} {:?}", server.directory().display(), server.pids());
    wait_for("a signal", loadline::server::interrupted);
}

/// What a child has printed so far.
type Said = std::sync::Arc<std::sync::Mutex<String>>;

/// Adds what comes to what was said, and so keeps the pipe open.
fn gather(from: impl std::io::Read + Send + 'static, said: &Said) {
    let said = std::sync::Arc::clone(said);
    std::thread::spawn(move || {
        let lines = std::io::BufRead::lines(std::io::BufReader::new(from)).map_while(Result::ok);
        lines.for_each(|line| said.lock().unwrap().push_str(&format!("{line}\n")));
    });
}

/// Starts this test binary again with a server in it; its process, the server's directory and pids, and what it says.
fn keeper(name: &str) -> (std::process::Child, PathBuf, Vec<u32>, Said) {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "keep_a_server_until_killed", "--nocapture"]).env("LOADLINE_TEST_KEEP", name);
    // A shell that starts the tests in the background makes them ignore SIGINT, which is inherited.
    let listen = || {
        // SAFETY: it sets one signal back, which is allowed between fork and exec.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: as above.
    unsafe { command.pre_exec(listen) };
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let said = Said::default();
    gather(child.stdout.take().unwrap(), &said);
    gather(child.stderr.take().unwrap(), &said);
    let kept = || said.lock().unwrap().lines().find_map(|line| line.strip_prefix("keeping ").map(str::to_owned));
    wait_for("the server that is kept", || kept().is_some() || child.try_wait().unwrap().is_some());
    let line = kept().unwrap_or_else(|| panic!("no server is kept: {}", said.lock().unwrap()));
    let (directory, pids) = line.split_once(" [").unwrap();
    let pids = pids.trim_end_matches(']').split(", ").map(|pid| pid.parse().unwrap()).collect();
    (child, PathBuf::from(directory), pids, said)
}

#[test]
fn a_server_goes_with_a_loadline_that_is_killed_and_its_directory_at_the_next_start() {
    for (name, _) in recipes() {
        let (mut child, directory, pids, _) = keeper(name);
        child.kill().unwrap();
        child.wait().unwrap();
        wait_for("the server's end", || !pids.iter().any(|pid| is_running(*pid)));
        // Other tests remove orphans, too, and may have been faster.
        remove_orphans(&root()).unwrap();
        wait_for("the removal", || !directory.exists());
    }
}

#[test]
fn a_server_that_survived_its_loadline_is_ended_at_the_next_start() {
    for (name, recipe) in recipes() {
        let server = start(recipe, &DatabaseSettings::default());
        let owner = server.directory().with_file_name("owner.json");
        let text = std::fs::read_to_string(&owner).unwrap();
        let pids = server.pids();
        // As if it had been started by a process that is gone: one with our pid that started at another time.
        let mut content: serde_json::Value = serde_json::from_str(&text).unwrap();
        content["loadline"]["start_ticks"] = 1.into();
        let new = owner.with_file_name("forged");
        std::fs::write(&new, content.to_string()).unwrap();
        std::fs::rename(&new, &owner).unwrap();
        remove_orphans(&root()).unwrap();
        wait_for("the server's end", || !pids.iter().any(|pid| is_running(*pid)));
        wait_for("the removal", || !server.directory().exists());
        assert!(!server.is_running(), "{name}");
    }
}

#[test]
fn the_first_interrupt_lets_the_server_be_stopped_in_order() {
    let (mut child, directory, pids, said) = keeper("postgres");
    // SAFETY: the process is our child and not reaped.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}: {}", said.lock().unwrap());
    assert!(!directory.exists() && !pids.into_iter().any(is_running), "{}", said.lock().unwrap());
}

#[test]
fn the_second_interrupt_ends_loadline_at_once() {
    use std::os::unix::process::ExitStatusExt;
    let (mut child, directory, pids, _) = keeper("mariadb");
    // SAFETY: the child is not reaped yet, and the server is a process of it that runs until it is told to stop.
    let send = |pid: u32, signal| unsafe { libc::kill(pid as i32, signal) };
    wait_for("the second signal's effect", || {
        send(child.id(), libc::SIGTERM);
        child.try_wait().unwrap().is_some()
    });
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGTERM));
    wait_for("the server's end", || !is_running(pids[0]));
    remove_orphans(&root()).unwrap();
    wait_for("the removal", || !directory.exists());
}
