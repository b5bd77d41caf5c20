//! The power of a server's disk is cut while it is measured, as users write it, with real servers: what their settings promise is there afterwards, and what they
//! do not promise is counted as gone. These tests need FUSE; `./check` says where there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

mod mounted_disk {
    use loadline::measurement::{EventsMeasurement, Measurement};

    use super::program::Scratch;

    /// Two cuts in a load that only adds records.
    fn study(database: &str, keeps: &str) -> String {
        let cut = |at: &str| format!("[[events]]\nat = \"{at}\"\ndo = \"cut-power\"\nkeeps = \"{keeps}\"\n");
        format!(
            "name = \"power\"\n[database]\n{database}\n[record]\ntype = \"sensor\"\nrows = 100\n[layout]\nname = \"wide\"\n[workload]\nname = \"write\"\n\
             [load]\nclients = 4\nduration = \"6s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n{}{}",
            cut("1s"),
            cut("3500ms")
        )
    }

    fn cut(database: &str, keeps: &str) -> EventsMeasurement {
        let scratch = Scratch::new();
        scratch.write("s.toml", &study(database, keeps));
        let told = scratch.run_study("s.toml", "run").expect(0);
        assert!(told.stdout.contains("its power cut at "), "{}", told.stdout);
        let trial = scratch.stored("run").remove(0);
        assert_eq!(trial.invalid_because, [], "{database}: {:?}", trial.errors);
        let left = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!left.contains(scratch.path("run").to_str().unwrap()), "{left}");
        let files = std::fs::read_dir(scratch.path("run")).unwrap();
        assert!(files.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with("loadline-disk-")));
        let events = trial.events.unwrap();
        // A cut that finds everything synced proves nothing. Redis writes to one file, which it syncs before it does anything else: there it is often so.
        let has_unsynced = events.events.iter().any(|event| event.unsynced > Some(0));
        assert!(has_unsynced || database.contains("redis"), "{database}: {events:?}");
        // Records that nobody was promised are told from those that were.
        assert!(events.unknown_found.is_some_and(|found| found <= events.unknown), "{database}: {events:?}");
        events
    }

    #[test]
    fn what_servers_acknowledge_by_default_is_there_after_a_power_cut() {
        for (database, keeps) in
            [("name = \"postgres\"", "sectors"), ("name = \"mariadb\"", "nothing"), ("name = \"redis\"", "in-order")]
        {
            let events = cut(database, keeps);
            assert_eq!((events.events.len(), events.lost()), (2, Some(0)), "{database}, {keeps}: {events:?}");
            assert!(events.acknowledged.unwrap() > 100, "{database}, {keeps}: {events:?}");
        }
    }

    /// A trial of a database to whose disk something happens for two seconds, and what the report says of it.
    fn disturbed(database: &str, happens: &str, told: &str) -> (Measurement, EventsMeasurement) {
        let scratch = Scratch::new();
        let text = study(&format!("name = \"{database}\""), "nothing");
        let (head, _) = text.split_once("[[events]]").unwrap();
        // Two records fill a page, so that files grow all the time.
        let head = head.replace("rows = 100\n", "rows = 100\nlength = 4000\n");
        scratch.write("s.toml", &format!("{head}[[events]]\nat = \"1s\"\nlasts = \"2s\"\n{happens}\n"));
        let said = scratch.run_study("s.toml", "run").expect(0).stdout;
        assert!(said.contains(told), "{said}");
        let trial = scratch.stored("run").remove(0);
        assert_eq!(trial.invalid_because, [], "{database}: {:?}", trial.errors);
        let events = trial.events.clone().unwrap();
        assert!(events.events[0].away_s >= 2.0, "{database}: {events:?}");
        assert_eq!((events.lost(), events.surplus()), (Some(0), 0), "{database}: {events:?}");
        (trial, events)
    }

    #[test]
    fn commits_wait_for_a_slow_disk_and_none_is_lost() {
        for database in ["postgres", "mariadb"] {
            let happens = "do = \"slow-disk\"\nsync = \"300ms\"";
            let (trial, events) = disturbed(database, happens, "its disk was slow from 1");
            assert_eq!(trial.failed(), 0, "{database}: {:?}", trial.errors);
            // Whoever commits waits for a sync that begins after its own writes. Only commits at either end of the event may wait for another one.
            let meanwhile = events.events[0].intended.values().next().unwrap();
            let p50_s = meanwhile.response_time.quantile_ns(0.5) as f64 / 1e9;
            assert!(p50_s >= 0.29, "{database}: {p50_s} s, n = {}", meanwhile.completed);
        }
    }

    #[test]
    fn a_full_disk_fails_operations_and_takes_nothing_that_was_acknowledged() {
        for database in ["postgres", "redis"] {
            let (trial, _) = disturbed(database, "do = \"full-disk\"", "its disk was full from 1");
            assert!(trial.failed() > 0, "{database}: everything fitted");
        }
    }

    #[test]
    fn what_servers_do_not_sync_is_gone_after_a_power_cut_and_counted() {
        for database in [
            "name = \"postgres\"\nconfig = { synchronous_commit = \"off\" }",
            "name = \"redis\"\nconfig = { appendfsync = \"everysec\" }",
        ] {
            let events = cut(database, "nothing");
            assert!(events.lost().unwrap() > 0, "{database}: {events:?}");
        }
    }
}
