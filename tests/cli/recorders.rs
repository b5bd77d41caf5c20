//! Several recorders in front of a database: they share a stream or have a spool each, and every record is stored once.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::program::{Outcome, Scratch, is_root, outcome, wait_for};

/// 24 sources, whose names are in most parts of a stream, each of which sends five records in a second.
const STUDY: &str = "name = \"numbers\"\n[database]\nname = \"postgres\"\n[load]\narrivals = \"sources\"\nsource_rate = 5\n\
    clients = 24\nduration = \"800ms\"\nwarmup = \"200ms\"\n[recorder]\npath = \"http\"\nthrough = \"stream\"\ncount = 2\n\
    [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

#[test]
fn recorders_store_every_record_once_whether_they_share_a_stream_or_have_a_spool_each() {
    for (database, through, trials) in [("postgres", "stream", 1), ("mariadb", "[stream, spool]", 2)] {
        let scratch = Scratch::new();
        scratch.write("numbers.toml", STUDY);
        let sets = [format!("database.name={database}"), format!("recorder.through={through}")];
        let arguments = ["run", "numbers.toml", "--set", &sets[0], "--set", &sets[1], "--out", "run", "--json"];
        let outcome = scratch.run(&arguments);
        let stored = scratch.stored("run");
        assert_eq!(stored.len(), trials, "{outcome:?}");
        for trial in &stored {
            let told = format!("{database} {:?}: {:?}", trial.trial.case.levels, trial.invalid_because);
            let recorded = trial.recorded.as_ref().expect(&told);
            assert_eq!((recorded.acknowledged, recorded.unknown, recorded.found), (120, 0, 120), "{told}");
            assert_eq!(recorded.reasons(), [], "{told}");
            // Twelve sources send to each, and more than half of the parts are those of some source.
            let each: Vec<u64> = recorded.recorders.iter().map(|one| one.committed).collect();
            assert!(each.len() == 2 && each.iter().all(|stored| *stored > 0), "{told}: {each:?}");
            assert_eq!((each.iter().sum::<u64>(), recorded.committed), (120, 120), "{told}");
            let is_shared = trial.trial.case.settings.recorder.as_ref().unwrap().is_shared();
            let parts: Vec<u64> = recorded.recorders.iter().map(|one| one.parts).collect();
            assert_eq!(parts, if is_shared { [8, 8] } else { [0, 0] }, "{told}");
            assert!(is_shared || each == [60, 60], "each stores what its own sources send: {told}: {each:?}");
            assert!(recorded.recorders.iter().all(|one| one.memory_max_bytes > 0 && one.recorder_cpu > 0.0), "{told}");
        }
        let case = &outcome.json()["cases"][0]["recorded"];
        assert_eq!(case["missing"], Value::from(0), "{case}");
    }
}

/// The processes of recorders that a process has started, in the order of their start.
fn recorders_of(parent: u32) -> Vec<u32> {
    let numbers = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid: &u32, file: &str| std::fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let is_own = |pid: &u32| read(pid, "status").lines().any(|line| line == format!("PPid:\t{parent}"));
    let mut found: Vec<u32> = pids.filter(|pid| is_own(pid) && read(pid, "cmdline").contains("\0record\0")).collect();
    found.sort_unstable();
    found
}

/// The files that a process has open.
fn open_files(pid: u32) -> usize {
    std::fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count)
}

#[test]
fn a_recorder_that_is_killed_under_load_is_named_and_nothing_is_left_behind() {
    let scratch = Scratch::new();
    scratch.write("numbers.toml", &STUDY.replace("800ms", "4s").replace("clients = 24", "clients = 400"));
    let mut command = scratch.command(&["run", "numbers.toml", "--out", "run", "--json"]);
    let child = command.env("TMPDIR", &scratch.0).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut recorders = Vec::new();
    wait_for("the sources are connected to two recorders", || {
        recorders = recorders_of(child.id());
        recorders.len() == 2 && recorders.iter().all(|pid| open_files(*pid) >= 200)
    });
    // SAFETY: kill takes numbers only, and the process is one that the test's own child has started and not waited for.
    assert_eq!(unsafe { libc::kill(recorders[1] as i32, libc::SIGKILL) }, 0);
    let outcome = Outcome::of(child.wait_with_output().unwrap());
    let invalid = format!("{:?}", scratch.stored("run")[0].invalid_because);
    assert!(
        invalid.contains("recorder 2 of 2") && invalid.contains("does not answer any more"),
        "{invalid} {outcome:?}"
    );
    assert!(!Path::new(&format!("/proc/{}", recorders[0])).exists(), "the other one was stopped");
    let private = scratch.path(if is_root() { "loadline-0" } else { "" });
    let left = std::fs::read_dir(&private).map_or(0, |entries| entries.flatten().filter(is_servers).count());
    assert_eq!(left, 0, "{}", private.display());
}

fn is_servers(entry: &std::fs::DirEntry) -> bool {
    entry.path().join("owner.json").exists()
}

#[test]
fn several_recorders_where_they_cannot_be_are_refused_where_that_stands() {
    let refusal = |changes: &[(&str, &str)]| {
        let scratch = Scratch::new();
        let study = changes.iter().fold(STUDY.to_owned(), |study, (from, to)| study.replace(from, to));
        scratch.write("numbers.toml", &study);
        scratch.run(&["plan", "numbers.toml"]).expect(2).stderr
    };
    let spool = ("\"stream\"", "\"spool\"");
    let own = ("count = 2", "hosts = \"own\"");
    for (changes, says) in [
        (&[("\"http\"", "\"nats\"")][..], "recorder.count is 2 and recorder.path is \"nats\"; take path = \"http\""),
        (
            &[("\"http\"", "\"nats\""), ("count = 2", "")],
            "recorder.through is \"stream\" and recorder.path is \"nats\"",
        ),
        (&[("\"http\"", "\"direct\"")], "recorder.count is 2 and recorder.path is \"direct\""),
        (&[("postgres", "sqlite")], "database.name is \"sqlite\", which one process writes; take a server"),
        (&[("postgres", "sqlite"), spool], "recorder.count is 2 and database.name is \"sqlite\""),
        (&[("count = 2", "count = 9")], "recorder.count"),
        (&[("\"stream\"", "\"river\"")], "recorder.through"),
        (&[("count = 2", "count = 2\nwriters = 3")], "each part of the stream has one writer"),
        (&[("count = 2", "count = 5\nparts = 4")], "recorder.parts is 4 and recorder.count is 5"),
        (&[spool, ("count = 2", "parts = 4")], "recorder.parts is given and recorder.through is \"spool\""),
        (&[own, ("\"postgres\"", "\"postgres\"\nsocket = \"unix\"")], "recorder.hosts is \"own\" and database.socket"),
        (
            &[own, ("\"postgres\"", "\"postgres\"\nurl = \"postgres://a@h/b\"")],
            "recorder.hosts is \"own\" and database.url",
        ),
        (
            &[own, ("[repeat]", "[link]\ntunnel = \"aes128-sha1\"\n[repeat]")],
            "recorder.hosts is \"own\" and link.tunnel",
        ),
    ] {
        let said = refusal(changes);
        assert!(said.contains(says), "{says:?} is missing: {said}");
        assert!(said.contains("numbers.toml:"), "{said}");
    }
}

/// The program of a NATS server is hidden behind an empty file, in a view of the file system that one process has.
#[test]
fn a_stream_without_a_nats_server_is_refused_before_anything_starts() {
    if !is_root() {
        println!("note: nothing was checked, because hiding a program takes root");
        return;
    }
    let scratch = Scratch::new();
    scratch.write("numbers.toml", STUDY);
    let hidden =
        "[ ! -e /usr/sbin/nats-server ] || mount --bind /dev/null /usr/sbin/nats-server; exec \"$0\" plan numbers.toml";
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hidden, env!("CARGO_BIN_EXE_loadline")]).current_dir(&scratch.0);
    let said = outcome(command.env("PATH", "/usr/bin:/bin")).expect(2).stderr;
    assert!(
        said.contains("there is no nats-server") && said.contains("install Debian's package nats-server"),
        "{said}"
    );
}
