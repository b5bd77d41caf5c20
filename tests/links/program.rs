//! The program with links: a study over one, the refusal to who may not make them, and nothing left behind by kill -9.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::nobody;

const STUDY: &str = r#"
name = "over-a-link"
[database]
name = "mariadb"
[workload]
name = "write"
batch = 10
[load]
clients = 2
duration = "1s"
warmup = "200ms"
[link]
rate = "5.76Mbit/s"
tunnel = "aes128-sha1"
[repeat]
rule = "fixed"
least = 1
most = 1
"#;

const FRESHNESS: &str = r#"
name = "seen-over-a-link"
[database]
name = "mariadb"
[record]
type = "sensor"
[layout]
name = "wide"
[workload]
name = "freshness"
batch = 5
[load]
arrivals = "constant"
rate = 20
clients = 2
duration = "1s"
warmup = "200ms"
[freshness]
run_as = "processes"
tolerated = 1.0
[link]
delay = "20ms"
[repeat]
rule = "fixed"
least = 1
most = 1
"#;

/// A directory of a test, with its study and nothing else. Anyone may read it.
pub fn place(name: &str, study: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("loadline-links-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("study.toml"), study).unwrap();
    path
}

pub fn loadline(place: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
    command
        .current_dir(place)
        .args(arguments)
        .env("TMPDIR", place)
        .env("LOADLINE_CACHE", "off")
        .env("LOADLINE_STOLEN", "1");
    command
}

/// Processes with this text in their command line.
fn processes_with(text: &str) -> Vec<String> {
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).replace('\0', " "));
    lines.filter(|line| line.contains(text)).collect()
}

#[test]
fn a_study_runs_over_a_link_and_says_what_the_link_carried() {
    if !super::is_root() {
        return;
    }
    let place = place("study", STUDY);
    let output = loadline(&place, &["run", "study.toml", "--out", "run", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap();
    let trial: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(trial["invalid_because"], serde_json::json!([]));
    assert_eq!(trial["link"]["suite"], "AES_CBC_128/HMAC_SHA1_96");
    let run = std::fs::read_to_string(place.join("run/run.toml")).unwrap();
    assert!(run.contains("tunnel aes128-sha1") && run.contains("up_bits_per_s"), "{run}");
    let carried = trial["link"]["up_bits_per_s"].as_f64().unwrap();
    assert!((1e6..6.5e6).contains(&carried), "{carried}");
    // 5.76 Mbit/s are 720 kB/s; loopback would have taken many times as much.
    let received = trial["resources"]["mean"]["received_bytes_per_s"].as_f64().unwrap();
    assert!((1e3..9e5).contains(&received), "{received}");
    assert!(processes_with(&place.display().to_string()).is_empty());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn events_cross_the_link_twice_until_readers_in_other_processes_see_them() {
    if !super::is_root() {
        return;
    }
    let place = place("freshness", FRESHNESS);
    let output = loadline(&place, &["run", "study.toml", "--out", "run", "--json"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{said}");
    let text = std::fs::read_to_string(place.join("run/trials.jsonl")).unwrap();
    let trial: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let groups = trial["freshness"]["groups"].as_object().unwrap();
    assert_eq!(groups.len(), 2);
    for group in groups.values() {
        let seen: loadline::histogram::Histogram = serde_json::from_value(group["freshness"].clone()).unwrap();
        assert!(seen.count() > 0, "{trial:#}");
        assert!(seen.min_ns() >= 40_000_000, "20 ms to the server and 20 ms back, in {} ns", seen.min_ns());
    }
    let refused = loadline(&place, &["plan", "study.toml", "--set", "freshness.path=both"]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(refused.status.code() == Some(2) && said.contains("[link] is set and freshness.path publishes"), "{said}");
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn another_user_than_root_is_told_so_before_anything_is_started() {
    let place = place("user", STUDY);
    let arguments = ["run", "study.toml", "--out", "run"];
    let mut command = nobody::command(loadline(&place, &arguments), &place, &arguments);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let expected = "[link]: this user may not make network namespaces";
    assert!(said.contains(expected) && said.contains("run loadline as root"), "{said}");
    assert!(!place.join("run").exists());
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn a_link_without_a_server_of_its_own_is_refused_with_its_line() {
    let study = STUDY.replace("name = \"mariadb\"", "name = \"sqlite\"").replace("aes128-sha1", "aes182-sha1");
    let place = place("refused", &study);
    let output = loadline(&place, &["run", "study.toml"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for expected in [
        "unknown link.tunnel \"aes182-sha1\"; did you mean \"aes128-sha1\"?",
        "[link] goes with a private server and sqlite has none",
    ] {
        assert!(said.contains(expected), "{said}");
    }
    std::fs::remove_dir_all(&place).unwrap();
}

#[test]
fn kill_9_leaves_no_daemon_and_the_next_start_removes_the_files() {
    if !super::is_root() {
        return;
    }
    let place = place("killed", &STUDY.replace("duration = \"1s\"", "duration = \"60s\""));
    let mut child = loadline(&place, &["run", "study.toml", "--out", "run"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let patience = Instant::now() + Duration::from_secs(120);
    let daemons = || processes_with("/usr/lib/ipsec/charon").len();
    let private = place.join("loadline-0");
    // Two daemons and the database. A directory is its owner's as soon as that is written in it.
    let entries = || std::fs::read_dir(&private).into_iter().flatten().flatten();
    let made = || entries().filter(|entry| entry.path().join("owner.json").exists()).count();
    while made() < 3 && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(made(), 3, "two daemons and a database were started");
    let own: Vec<u32> = owned_by(&private);
    assert!(daemons() >= 2 && !own.is_empty());
    child.kill().unwrap();
    child.wait().unwrap();
    let are_gone = || own.iter().all(|pid| !Path::new(&format!("/proc/{pid}")).exists());
    while !are_gone() && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(are_gone(), "{own:?} are still there");
    let again = STUDY.replace("[link]", "[factors]\n[link]").replace("tunnel = \"aes128-sha1\"", "");
    std::fs::write(place.join("study.toml"), again).unwrap();
    let output = loadline(&place, &["run", "study.toml", "--out", "again"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("removed what 3 private"), "{said}");
    assert_eq!(entries().count(), 0);
    std::fs::remove_dir_all(&place).unwrap();
}

/// Runs a study until loadline has made so many private directories, interrupts it, and checks that neither these nor their processes are left.
pub fn interrupt(place: &Path, more: &[&str], servers: usize) {
    let arguments = [&["run", "study.toml", "--out", "run"], more].concat();
    let told = place.join("told.txt");
    let errors = std::fs::File::create(&told).unwrap();
    let mut child = loadline(place, &arguments).stdout(Stdio::null()).stderr(errors).spawn().unwrap();
    let patience = Instant::now() + Duration::from_secs(240);
    let private = place.join("loadline-0");
    let entries = || std::fs::read_dir(&private).into_iter().flatten().flatten();
    // A directory is its owner's as soon as that is written in it.
    let made = || entries().filter(|entry| entry.path().join("owner.json").exists()).count();
    while made() < servers && Instant::now() < patience {
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(made(), servers, "{}", std::fs::read_to_string(&told).unwrap_or_default());
    let own = owned_by(&private);
    // SAFETY: the process is a child of this one that has not been waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGINT) }, 0);
    child.wait().unwrap();
    assert_eq!(entries().count(), 0, "it removes its own files");
    let is_there = |pid: &u32| Path::new(&format!("/proc/{pid}")).exists();
    assert!(!own.iter().any(is_there), "{own:?} are still there");
}

/// The processes that the private directories below a place tell of.
fn owned_by(private: &Path) -> Vec<u32> {
    let entries = std::fs::read_dir(private).unwrap().flatten();
    let texts = entries.filter_map(|entry| std::fs::read_to_string(entry.path().join("owner.json")).ok());
    let owners = texts.filter_map(|text| serde_json::from_str::<serde_json::Value>(&text).ok());
    owners.filter_map(|owner| u32::try_from(owner["server"]["pid"].as_u64()?).ok()).collect()
}
