//! The log as JSON, and what of it is said.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::harness::{Directory, Target, send};
use crate::process::{config_file, database_of};

#[test]
fn each_line_of_the_log_is_an_object_of_json_from_the_first_to_the_last() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let configure = |log: &str| config_file(&directory, &database_of(&target), &format!("[log]\n{log}\n"));
    let config = configure("format = \"json\"");
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).stderr(Stdio::piped()).spawn().unwrap();
    let lines = Arc::new(Mutex::new(Vec::<Value>::new()));
    let (heard, stderr) = (Arc::clone(&lines), BufReader::new(child.stderr.take().unwrap()));
    let reader = std::thread::spawn(move || {
        for line in stderr.lines().map_while(Result::ok) {
            let object = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            heard.lock().unwrap().push(object);
        }
    });
    let said = |event: &str| lines.lock().unwrap().iter().find(|line| line["event"] == event).cloned();
    crate::wait_until("it listens", || said("taking in").is_some());
    let listens = said("taking in").unwrap();
    assert_eq!((&listens["level"], &listens["fields"]["intake"]), (&"info".into(), &"http".into()));
    let http = listens["fields"]["address"].as_str().unwrap().parse().unwrap();
    let write = |body: &str| send(http, "POST", "/write", "", body.as_bytes()).status;
    assert_eq!(write("m f=1\n"), 204);
    assert_eq!(write("m f=\"a \\\"text\\\" \u{1b}[31m\"\n"), 204);
    crate::wait_until("it is said", || said("records are quarantined").is_some());
    let quarantined = said("records are quarantined").unwrap();
    assert_eq!((&quarantined["level"], &quarantined["fields"]["records"]), (&"warning".into(), &"1".into()));
    assert!(quarantined["fields"]["reason"].as_str().unwrap().contains("its column holds"), "{quarantined}");
    let hang_up = || {
        // SAFETY: kill takes no pointer; the process is the child that this test has started and not waited for.
        unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGHUP) };
    };
    std::fs::write(&config, "[log]\nlevel = \"loud\"\n").unwrap();
    hang_up();
    crate::wait_until("it is said", || said("the configuration is wrong; nothing is changed").is_some());
    configure("format = \"json\"\nlevel = \"warning\"");
    hang_up();
    // That it was read is said no more: it only happened.
    let page = || send(http, "GET", "/metrics", "", b"").body;
    assert!(page().contains("loadline_log_lines_dropped_total 0\n"));
    let bad = |number: usize| {
        write(&format!("m f=\"{number}\"\n"));
        lines.lock().unwrap().iter().filter(|line| line["event"] == "records are quarantined").count()
    };
    crate::wait_until("more is said", || bad(7) >= 3);
    // SAFETY: as above.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().code(), Some(0));
    reader.join().unwrap();
    let lines = lines.lock().unwrap();
    for line in lines.iter() {
        let names: Vec<_> = line.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(names, ["event", "fields", "level", "time"], "{line}");
        let time = line["time"].as_str().unwrap();
        assert!(loadline::units::parse_utc(time).is_some(), "{time}");
        assert!(["info", "warning", "error"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
    let last = lines.last().unwrap();
    assert!(
        last["level"] == "warning" && last["event"].as_str().unwrap().contains("records were quarantined"),
        "{last}"
    );
    assert!(!lines.iter().any(|line| line["event"] == "stopped"), "it is less than a warning");
}

#[test]
fn why_it_does_not_start_is_an_object_as_well() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "[log]\nformat = \"json\"\nlevel = \"error\"\n");
    std::fs::create_dir_all(directory.path("measurements.db")).unwrap();
    std::fs::write(directory.path("disk/spool"), "no directory").unwrap();
    let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["level"] == "error"), "{said}");
    assert!(lines.last().unwrap()["event"].as_str().unwrap().starts_with("loadline: "), "{said}");
}
