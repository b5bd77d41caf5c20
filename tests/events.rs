//! Events that happen to a server while it is measured, as users write them, on real servers.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "events/happened.rs"]
mod happened;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use happened::happened;
use program::Scratch;

const LOAD: &str = "clients = 4\nduration = \"4s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
const KILL: &str = "[[events]]\nat = \"1s\"\ndo = \"kill\"\nlasts = \"300ms\"\n";

fn study(database: &str, workload: &str, events: &str) -> String {
    format!(
        "name = \"events\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 100\n[layout]\nname = \"wide\"\n[workload]\n{workload}\n\
         [load]\n{LOAD}\n{events}"
    )
}

#[test]
fn a_server_that_is_killed_comes_back_and_keeps_what_it_has_acknowledged() {
    let scratch = Scratch::new();
    for name in ["postgres", "mariadb", "redis"] {
        scratch.write("s.toml", &study(&format!("name = \"{name}\""), "name = \"write\"", KILL));
        let told = scratch.run_study("s.toml", name).expect(0).stdout;
        assert!(told.contains("nothing is gone of ") && told.contains("killed at 1"), "{name}: {told}");
        let (trial, events) = happened(&scratch, name);
        let event = &events.events[0];
        assert!(event.away_s >= 0.3 && event.gap_s.unwrap() >= 0.3, "{name}: {event:?}");
        assert!((0.9..2.0).contains(&event.start_s), "{name}: {event:?}");
        assert!(trial.failed() > 0, "{name}: clients were cut off");
        // Some operations were completed behind the event.
        let before_s = event.start_s + event.away_s;
        let behind: u64 =
            trial.series.iter().filter(|part| part.end_s > before_s + 0.2).map(|part| part.completed).sum();
        assert!(before_s > 3.5 || behind > 0, "{name}: {event:?} {:?}", trial.series);
        assert_eq!((events.lost(), events.surplus()), (Some(0), 0), "{name}: {events:?}");
        let page = std::fs::read_to_string(scratch.path(name).join("report.html")).unwrap();
        assert!(page.contains("id=\"events\""), "{name}");
        // The trial is drawn with the event in it.
        assert!(page.contains("id=\"timeline\"") && page.contains(">kill</text>"), "{name}");
    }
}

#[test]
fn what_a_server_forgets_when_it_is_killed_is_counted() {
    let scratch = Scratch::new();
    let database = "name = \"redis\"\nconfig = { appendonly = \"no\" }";
    scratch.write("s.toml", &study(database, "name = \"write\"", KILL));
    let told = scratch.run_study("s.toml", "run").expect(0).stdout;
    assert!(told.contains("that were acknowledged are gone, in 1 of 1 trial"), "{told}");
    let (_, events) = happened(&scratch, "run");
    // All that was there at the time of the kill, the records of before among them.
    assert!(events.lost().unwrap() >= 100, "{events:?}");
}

#[test]
fn a_server_that_stands_still_is_a_gap_and_loses_nothing() {
    let scratch = Scratch::new();
    let pause = "[[events]]\nat = \"1s\"\ndo = \"pause\"\nlasts = \"1s\"\n";
    for (name, workload) in [("postgres", "name = \"write\""), ("redis", "name = \"read\"")] {
        scratch.write("s.toml", &study(&format!("name = \"{name}\""), workload, pause));
        scratch.run_study("s.toml", name).expect(0);
        let (trial, events) = happened(&scratch, name);
        let event = &events.events[0];
        assert!(event.away_s >= 1.0 && event.gap_s.unwrap() >= 0.9, "{name}: {event:?}");
        assert_eq!(trial.failed(), 0, "{name}: who waits is answered in the end");
        assert_eq!(events.lost(), (workload.contains("write")).then_some(0), "{name}: {events:?}");
    }
}

#[test]
fn several_events_follow_each_other_and_each_trial_has_a_server_of_its_own() {
    let scratch = Scratch::new();
    let both =
        "[[events]]\nat = \"500ms\"\ndo = \"stop\"\n[[events]]\nat = \"2500ms\"\ndo = \"pause\"\nlasts = \"300ms\"\n";
    let text =
        study("name = \"redis\"", "name = \"write\"", both).replace("least = 1\nmost = 1", "least = 2\nmost = 2");
    scratch.write("s.toml", &text);
    scratch.run_study("s.toml", "run").expect(0);
    let stored = scratch.stored("run");
    assert_eq!(stored.len(), 2);
    for trial in stored {
        let events = trial.events.clone().unwrap();
        assert_eq!(trial.invalid_because, [], "{:?}", trial.errors);
        assert_eq!(events.events.iter().map(|event| event.what.as_str()).collect::<Vec<_>>(), ["stop", "pause"]);
        assert_eq!(events.lost(), Some(0));
    }
}

#[test]
fn events_need_a_server_of_loadlines_own_and_time() {
    let scratch = Scratch::new();
    let refused = |database: &str, text: &str, words: &[&str]| {
        scratch.write("s.toml", &study(database, "name = \"write\"", text));
        scratch.run(&["plan", "s.toml"]).refused(words);
    };
    refused("name = \"sqlite\"", KILL, &["[[events]]", "no server that loadline has started"]);
    refused("name = \"postgres\"\nurl = \"postgres://me@localhost/x\"", KILL, &["no server that loadline has started"]);
    let late = KILL.replace("1s", "9s");
    refused("name = \"postgres\"", &late, &["is not over before load.duration, 4 s"]);
    refused("name = \"postgres\"", "[[events]]\nat = \"1s\"\ndo = \"melt\"\n", &["melt"]);
    let cut = "[[events]]\nat = \"1s\"\ndo = \"cut-link\"\nlasts = \"1s\"\n";
    refused("name = \"postgres\"", cut, &["cuts the link and there is none", "write a [link]"]);
}
