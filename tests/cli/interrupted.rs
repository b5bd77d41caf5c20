//! Runs that do not come to their end: by Ctrl-C, by kill -9, by a server that dies.

use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::program::{Outcome, Scratch, processes_with, wait_for};
use crate::quiet::in_a_quiet_moment;

const TRIALS: usize = 5;

/// A study whose trials take half a second each, and are as valid on a machine that does other things too.
fn study(database: &str) -> String {
    format!(
        "name = \"long\"\n[database]\nname = \"{database}\"\n[load]\noperations = 20\nthink = \"20ms\"\nwarmup = \"0s\"\n\
         [workload]\nbatch = 10\n[repeat]\nrule = \"fixed\"\nleast = {TRIALS}\n"
    )
}

/// Begins a run and stops it after its second trial, with two or more to come: what is sent to it then reaches it in their midst
/// however slow the machine is. [`end`] lets it go on.
fn begin(scratch: &Scratch, database: &str) -> Child {
    scratch.write("study.toml", &study(database));
    let mut begun = None;
    in_a_quiet_moment(5, || {
        let mut command = scratch.command(&["run", "study.toml", "--out", "run"]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        listen_to_interrupts(&mut command);
        let child = command.spawn().unwrap();
        wait_for("the second trial", || state_of(&child) == Some('Z') || lines(scratch) >= 2);
        send(&child, libc::SIGSTOP);
        wait_for("the stop", || matches!(state_of(&child), Some('T' | 'Z')));
        if lines(scratch) <= TRIALS - 2 {
            begun = Some(child);
            return Ok(());
        }
        end(child).expect(0);
        std::fs::remove_dir_all(scratch.path("run")).unwrap();
        Err("too few trials were left when it was stopped".to_owned())
    });
    begun.unwrap()
}

/// State of a process that was not waited for, as the system calls it: T when it is stopped, Z when it has ended.
fn state_of(child: &Child) -> Option<char> {
    let line = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).ok()?;
    line.rsplit_once(") ")?.1.chars().next()
}

/// A shell that starts something in the background makes it ignore SIGINT, which is inherited.
fn listen_to_interrupts(command: &mut Command) {
    let listen = || {
        // SAFETY: signal takes no pointer to memory of ours.
        unsafe { libc::signal(libc::SIGINT, libc::SIG_DFL) };
        Ok(())
    };
    // SAFETY: between fork and exec only signal is called, which is async-signal-safe.
    unsafe { command.pre_exec(listen) };
}

fn send(child: &Child, signal: i32) {
    // SAFETY: kill takes no pointer; the child has not been waited for, so that its pid is its own still.
    assert_eq!(unsafe { libc::kill(child.id() as i32, signal) }, 0);
}

/// Lets it go on and waits for its end.
#[track_caller]
fn end(child: Child) -> Outcome {
    send(&child, libc::SIGCONT);
    Outcome::of(child.wait_with_output().unwrap())
}

fn lines(scratch: &Scratch) -> usize {
    std::fs::read_to_string(scratch.path("run/trials.jsonl")).map_or(0, |text| text.lines().count())
}

/// Name of the server's data in the run directory: its private directory has the same ending.
fn server_of(run: &Path) -> Option<String> {
    let entries = std::fs::read_dir(run).ok()?.flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("loadline-server-").map(str::to_owned)).next()
}

/// Processes of the server with this name: those that were told its private directory, and no others.
fn servers_of(name: &str) -> Vec<u32> {
    processes_with(&format!("{}/", loadline::server::root().join(name).display()))
}

/// Resumes, and asserts that every trial is there once and that those of before were not done again.
#[track_caller]
fn resume(scratch: &Scratch) -> Outcome {
    let before = scratch.stored("run");
    let outcome = scratch.run(&["run", "study.toml", "--resume", "run"]).expect(0);
    let after = scratch.stored("run");
    assert_eq!(after.len(), TRIALS);
    assert_eq!(after[..before.len()], before[..], "what was finished stays as it was");
    let ids: BTreeSet<&str> = after.iter().map(|trial| trial.trial.id.as_str()).collect();
    let rounds: BTreeSet<u32> = after.iter().map(|trial| trial.trial.round).collect();
    assert_eq!((ids.len(), rounds.len()), (TRIALS, TRIALS), "no trial is done twice");
    assert!(after.iter().enumerate().all(|(place, trial)| trial.sequence == place as u64));
    outcome
}

#[test]
fn an_interrupted_run_stops_its_server_keeps_its_trials_and_can_be_resumed() {
    let scratch = Scratch::new();
    let child = begin(&scratch, "mariadb");
    let server = server_of(&scratch.path("run")).unwrap();
    assert!(!servers_of(&server).is_empty(), "the server runs");
    send(&child, libc::SIGINT);
    let outcome = end(child).expect(1);
    assert!(outcome.stderr.contains("interrupted; ") && outcome.stderr.contains("--resume run"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("report: run/report.html"), "what there is is shown: {}", outcome.stdout);
    assert_eq!(servers_of(&server), [0; 0], "the server is gone");
    assert_eq!(server_of(&scratch.path("run")), None, "its data are gone");
    let finished = lines(&scratch);
    assert!((2..TRIALS).contains(&finished), "{finished} trials");

    let other = ["run", "study.toml", "--resume", "run", "--set", "load.clients=2"];
    scratch.run(&other).refused(&["load.clients was 1 and is 2 now", "begin a new run"]);
    assert_eq!(lines(&scratch), finished, "a refused resumption changes nothing");
    scratch.run(&["run", "study.toml", "--out", "run"]).refused(&["run exists already", "--resume run"]);

    assert_eq!(resume(&scratch).stderr, "");
    let nothing = scratch.run(&["run", "study.toml", "--resume", "run"]).expect(0);
    assert!(nothing.stderr.contains("nothing is missing"), "{}", nothing.stderr);
    assert_eq!(lines(&scratch), TRIALS);
}

#[test]
fn a_killed_run_loses_the_running_trial_alone() {
    for database in ["sqlite", "postgres"] {
        let scratch = Scratch::new();
        let child = begin(&scratch, database);
        let server = server_of(&scratch.path("run"));
        assert_eq!(server.is_some(), database == "postgres");
        send(&child, libc::SIGKILL);
        let outcome = end(child);
        assert_eq!((outcome.status, outcome.stdout.as_str()), (None, ""));
        let finished = lines(&scratch);

        // As if it had been killed while it wrote.
        let trials = scratch.path("run/trials.jsonl");
        let mut text = std::fs::read_to_string(&trials).unwrap();
        let torn = text.lines().next().unwrap()[..300].to_owned();
        text.push_str(&torn);
        std::fs::write(&trials, &text).unwrap();
        let note = "run/trials.jsonl: the last line is torn and was dropped";
        let report = scratch.run(&["report", "run", "--json"]).expect(0);
        assert!(report.stderr.contains(note), "{}", report.stderr);
        assert_eq!(report.json()["cases"][0]["trials"], finished);

        assert!(resume(&scratch).stderr.contains(note));
        assert_eq!(scratch.run(&["report", "run"]).expect(0).stderr, "", "the torn line is gone");
        if let Some(server) = server {
            assert_eq!(servers_of(&server), [0; 0], "the orphaned server is gone");
            assert!(!loadline::server::root().join(&server).exists(), "its private directory is gone");
        }
        assert_eq!(server_of(&scratch.path("run")), None, "its data are gone");
        assert!(!scratch.path("run/database.db").exists());
    }
}

#[test]
fn two_loadlines_do_not_write_one_run() {
    let scratch = Scratch::new();
    let child = begin(&scratch, "simulated");
    scratch.run(&["run", "study.toml", "--resume", "run"]).refused(&["run is being written by another loadline"]);
    send(&child, libc::SIGTERM);
    end(child).expect(1);
}

#[test]
fn a_server_that_dies_spoils_its_trial_and_is_started_again_for_the_next() {
    in_a_quiet_moment(5, || {
        let scratch = Scratch::new();
        let child = begin(&scratch, "mariadb");
        let server = server_of(&scratch.path("run")).unwrap();
        let pids = servers_of(&server);
        assert!(!pids.is_empty(), "the server runs");
        for pid in pids {
            // SAFETY: kill takes no pointer; the process has this test's private directory on its command line.
            unsafe { libc::kill(pid as i32, libc::SIGKILL) };
        }
        let outcome = end(child);
        assert!(outcome.stderr.contains("the server ended by itself; the end of its log: "), "{}", outcome.stderr);
        assert!(
            !outcome.stderr.contains("record.table"),
            "no advice about tables that are not to blame: {}",
            outcome.stderr
        );
        let trials = scratch.stored("run");
        assert_eq!(trials.len(), TRIALS, "{}", outcome.stderr);
        assert!(trials[TRIALS - 1].is_valid(), "the next server serves: {}", outcome.stderr);
        let valid = trials.iter().filter(|trial| trial.is_valid()).count();
        if valid == TRIALS {
            assert!(outcome.stderr.contains("note: between two trials, the server ended"), "{}", outcome.stderr);
            outcome.expect(0);
            return Err("it was killed between two trials".to_owned());
        }
        // The kill may fall into the making of tables, which is tried again.
        assert!(valid >= TRIALS - 2, "{valid} valid: {}", outcome.stderr);
        outcome.expect(1);
        Ok(())
    });
}
