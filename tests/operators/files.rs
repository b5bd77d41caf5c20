//! The files for operators: the unit of systemd and the rules for alerts, held against the program.

use std::time::Duration;

use loadline::recorder::config;

use crate::exposition::read;
use crate::harness::{Directory, Target};
use crate::metrics::page_of_everything;

const UNIT: &str = include_str!("../../docs/loadline.service");
const ALERTS: &str = include_str!("../../docs/alerts.yaml");
const RECORDING: &str = include_str!("../../docs/recording.md");

/// A setting of the unit, which must be there once.
fn setting(name: &str) -> &'static str {
    let mut found = UNIT.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = found.next().unwrap_or_else(|| panic!("there is no {name}"));
    assert_eq!(found.next(), None, "{name} is there twice");
    value
}

/// The configuration that the documentation shows beside the unit.
fn documented_config() -> &'static str {
    let path = setting("ExecStart").rsplit(' ').next().unwrap();
    let block = RECORDING.split("```toml\n").find(|block| block.starts_with(&format!("# {path}\n")));
    let block = block.unwrap_or_else(|| panic!("recording.md shows no {path}"));
    block.split("```").next().unwrap()
}

#[test]
fn the_unit_starts_the_documented_configuration_and_all_it_writes_is_in_its_directory() {
    let arguments: Vec<_> = setting("ExecStart").split(' ').collect();
    assert!(arguments.len() == 3 && arguments[0].ends_with("/loadline") && arguments[1] == "record", "{arguments:?}");
    let config = config::read(documented_config(), "recorder.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let home = format!("/var/lib/{}", setting("StateDirectory"));
    assert_eq!(setting("WorkingDirectory"), home);
    assert_eq!(setting("ProtectSystem"), "strict");
    let all = "[processing]\nidentity = \"i\"\nsigners = \"s\"\n[office]\nlisten = \"127.0.0.1:0\"\nreaders = { desk = \"0123456789abcdef\" }\n\
               [database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n[intake.tcp]\nlisten = \"127.0.0.1:1\"\n\
               [intake.ftp]\nlisten = \"127.0.0.1:2\"\n[intake.put]\nlisten = \"127.0.0.1:3\"\n";
    let defaults = config::read(all, "all.toml").unwrap_or_else(|errors| panic!("{errors}"));
    let loadline::recorder::config::ImagesConfig::Folder(images) = &defaults.processing.as_ref().unwrap().images else {
        panic!("images are in a folder");
    };
    let office = defaults.office.as_ref().unwrap();
    for path in [&config.spool.path, &defaults.spool.path, &defaults.inbox.path, images, &office.audit] {
        assert!(path.is_relative() || path.starts_with(&home), "{} cannot be written", path.display());
    }
    let seconds = |name: &str| Duration::from_secs(setting(name).parse().unwrap());
    assert!(seconds("TimeoutStopSec") > defaults.writer.drain.max(config.writer.drain) + Duration::from_secs(60));
    assert!(seconds("WatchdogSec") >= Duration::from_secs(60) && setting("Type") == "notify");
    assert_eq!((setting("Restart"), setting("TimeoutStartSec")), ("on-failure", "infinity"));
    let intake = &defaults.intake;
    let listening = [intake.http.as_ref(), intake.tcp.as_ref(), intake.put.as_ref(), Some(&office.listen)];
    let connections: u32 = listening.iter().flatten().map(|listen| listen.connections).sum();
    let ftp = intake.ftp.as_ref().unwrap().listen.connections;
    // One for commands and one for data; and as many again for files, the database and the program itself.
    assert!(setting("LimitNOFILE").parse::<u32>().unwrap() > 2 * (connections + 2 * ftp));
    assert!(setting("ExecReload").contains("-HUP") && setting("SystemCallFilter") == "@system-service");
}

#[test]
fn each_setting_that_the_unit_names_is_one_of_the_recorder() {
    let words = UNIT.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_')));
    let sections = ["spool", "inbox", "processing", "office", "intake", "writer"];
    let named = words.map(|word| word.trim_matches('.')).filter_map(|word| word.rsplit_once('.'));
    let named: Vec<_> = named.filter(|(section, _)| sections.contains(&section.split('.').next().unwrap())).collect();
    assert!(named.len() >= 9, "{named:?}");
    for (section, key) in named {
        // A value of a wrong kind is refused as one, or read as a section; an unknown name is said to be unknown.
        let text = format!("[{section}]\n{key} = [[]]\n");
        let said = config::read(&text, "c.toml").unwrap_err().to_string();
        assert!(!said.contains("unknown key"), "{section}.{key}: {said}");
    }
}

#[test]
fn each_metric_that_an_alert_names_is_one_of_a_recorder_at_work() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let (process, page) = page_of_everything(&directory, &target);
    let metrics = read(&page);
    let expressions: Vec<_> = ALERTS.lines().filter_map(|line| line.trim().strip_prefix("expr: ")).collect();
    assert_eq!(expressions.len(), ALERTS.matches("- alert: ").count());
    for expression in &expressions {
        let words = expression.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
        let names: Vec<_> =
            words.filter(|word| word.starts_with("loadline_") || word.starts_with("process_")).collect();
        assert!(!names.is_empty() || expression.starts_with("up{"), "{expression}");
        for name in names {
            let metric = metrics.get(name).unwrap_or_else(|| panic!("{expression}: there is no {name}"));
            let counts = ["increase(", "rate("].iter().any(|function| expression.contains(function));
            assert_eq!(metric.kind == "counter", counts, "{expression}: {name} is a {}", metric.kind);
        }
        // Labels that are selected are there.
        for selected in expression.split('{').skip(1).filter(|selected| !selected.starts_with("job=")) {
            let pair = selected.split('}').next().unwrap();
            assert!(page.contains(pair), "{expression}: {pair} is nowhere");
        }
    }
    // Those of the program that are asked for by their job alone.
    for rule in ["loadline_ready == 0", "loadline_damaged_rows > 0", "changes(process_start_time_seconds"] {
        assert!(expressions.iter().any(|expression| expression.contains(rule)), "{rule}");
    }
    assert_eq!(process.stop(), Some(0), "a record in quarantine is no failure of the run");
}
