//! `loadline durability` as users call it: what is known to be lost is found, and what is known to be safe loses nothing. What mounts a disk needs FUSE; `./check`
//! says where there is none.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

#[path = "durability/recorders.rs"]
mod recorders;

use program::{Scratch, outcome};

#[test]
fn what_cannot_lose_its_power_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    for (arguments, part) in [
        (
            &["durability", "postgres", "--set", "database.url=postgres://me@127.0.0.1:1/data"][..],
            "leave database.url out",
        ),
        (&["durability", "sqlite", "--set", "database.path=there.db"], "leave database.path out"),
        (&["durability", "simulated"], "promises to keep nothing"),
        (&["durability", "nothing-of-this-name"], "nothing-of-this-name"),
        (&["durability", "sqlite", "--cuts", "0"], "--cuts"),
        (&["durability", "sqlite", "--fault", "fire"], "possible values: power, kill, eio, enospc, bits, store"),
        (&["durability", "sqlite", "--fault", "store"], "name a recorder with --recorder"),
        (&["durability", "--recorder", "nowhere.toml"], "nowhere.toml"),
        (&["durability", "sqlite", "--recorder", "r.toml"], "each with a command of its own"),
        (&["durability", "--recorder", "r.toml", "--sync-first"], "--sync-first is for databases"),
        (&["durability", "--recorder", "r.toml", "--set", "a=b"], "write the setting into that file"),
    ] {
        let told = outcome(&mut scratch.command(arguments));
        let told = told.expect(2);
        assert!(told.stderr.contains(part), "{arguments:?}: {}", told.stderr);
    }
}

#[test]
fn a_study_that_asks_what_survives_is_planned_and_cannot_be_continued() {
    let scratch = Scratch::new();
    let plan = outcome(&mut scratch.command(&["plan", "durability", "--json"])).expect(0);
    let plan: serde_json::Value = serde_json::from_str(&plan.stdout).unwrap();
    assert_eq!((&plan["durability"]["cuts"], plan["cases"].as_array().unwrap().len()), (&60.into(), 6));
    assert!(plan["estimate_s"]["most"].as_f64().unwrap() < 180.0, "{plan}");
    let with_goal = "[durability]\n[goal]\nbelow = \"10ms\"\n[load]\narrivals = \"poisson\"\n";
    scratch.write("both.toml", with_goal);
    for (arguments, part) in [
        (&["run", "durability", "--resume", "run"][..], "measures nothing; begin it again"),
        (&["run", "durability", "--budget", "1m"], "--set durability.cuts=300"),
        (&["run", "durability", "--set", "durability.cuts=0"], "durability.cuts"),
        (&["run", "durability", "--set", "durability.faults=[fire]"], "possible: power, kill"),
        (&["run", "both.toml"], "both.toml:1: there are [durability] and [goal]"),
    ] {
        let told = outcome(&mut scratch.command(arguments)).expect(2);
        assert!(told.stderr.contains(part), "{arguments:?}: {}", told.stderr);
    }
}

#[test]
fn a_level_that_a_database_has_not_is_refused_with_the_remedy() {
    let scratch = Scratch::new();
    let asked = "database.durability=power-cut";
    for (sets, part) in [
        (
            &["database.name=simulated", asked][..],
            "no settings of simulated give it; leave it out, or take database.name = ",
        ),
        (
            &["database.name=mariadb", "database.engine=myisam", asked],
            "with the engine myisam has \"none\"; take another engine",
        ),
        (
            &[asked, "database.config.synchronous=off"],
            "sets synchronous = full, and database.config has synchronous = off",
        ),
        (
            &["database.name=postgres", "database.url=postgres://me@127.0.0.1:1/data", asked],
            "cannot be set on a server that exists",
        ),
        (&["database.durability=certain"], "power-cut"),
    ] {
        let sets = sets.iter().flat_map(|set| ["--set", *set]);
        let arguments: Vec<&str> = ["plan", "qos-write"].into_iter().chain(sets).collect();
        let told = outcome(&mut scratch.command(&arguments)).expect(2);
        assert!(told.stderr.contains(part), "{arguments:?}: {}", told.stderr);
    }
}

#[test]
fn every_database_has_the_level_that_it_is_asked_for() {
    let scratch = Scratch::new();
    let mut command = scratch.command(&["run", "price-of-durability", "--quick", "--out", "run", "--json"]);
    let told = outcome(command.env("LOADLINE_STOLEN", "1")).expect(0);
    let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let cases = told["cases"].as_array().unwrap();
    assert!(cases.len() >= 3, "{told}");
    for case in cases {
        assert_eq!(case["durability"]["level"], case["levels"]["database.durability"], "{:#}", case["levels"]);
    }
    let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
    assert!(page.contains("What durability costs") && page.contains("survives a power cut"));
}

mod mounted_disk {
    use std::process::Stdio;
    use std::time::Duration;

    use serde_json::Value;

    use super::program::{Scratch, outcome, wait_for};

    /// The cases that a command tells, in its order.
    fn cases(arguments: &[&str], status: i32) -> Vec<Value> {
        let scratch = Scratch::new();
        let all = [&["durability"], arguments, &["--json"]].concat();
        let told = outcome(&mut scratch.command(&all)).expect(status);
        let mut told: Value = serde_json::from_str(&told.stdout).unwrap();
        assert!(told["server"].as_str().is_some_and(|version| !version.is_empty()), "{told}");
        let Value::Array(cases) = told["cases"].take() else { panic!("{told}") };
        for case in &cases {
            // Nothing that is there differs from what was written, whatever a failure takes: the database is right, and so is what looks.
            assert!(count(case, "acknowledged") > 0, "{case:#}");
        }
        cases
    }

    fn count(case: &Value, name: &str) -> u64 {
        case[name].as_u64().unwrap_or_else(|| panic!("{name}: {case:#}"))
    }

    fn is_clean(case: &Value) {
        let names = [
            "lost",
            "changed",
            "unreadable",
            "half_transactions",
            "reordered",
            "duplicated",
            "cuts_with_loss",
            "did_not_start",
        ];
        for name in names {
            assert_eq!(count(case, name), 0, "{name}: {case:#}");
        }
    }

    fn level(case: &Value) -> &str {
        case["level"].as_str().unwrap()
    }

    #[test]
    fn sqlite_loses_what_it_does_not_sync_and_nothing_else() {
        let arguments = ["sqlite", "--cuts", "15", "--set", "database.config.journal_mode=wal"];
        let levels = ["--set", "database.config.synchronous=[off, normal, full]"];
        let cases = cases(&[&arguments[..], &levels].concat(), 0);
        let [off, off_killed, normal, normal_killed, full] = &cases[..] else { panic!("{cases:#?}") };
        for lossy in [off, normal] {
            assert!(count(lossy, "cuts_with_loss") > 0 && count(lossy, "lost") > 0, "{lossy:#}");
            assert!(lossy["longest_lost_s"].as_f64().unwrap() > 0.0, "{lossy:#}");
            assert_eq!((lossy["fault"].as_str(), level(lossy)), (Some("power"), "crash"));
        }
        // A log in front of the tables loses its end, and never its middle.
        assert_eq!(
            (count(normal, "reordered"), count(normal, "changed"), count(normal, "half_transactions")),
            (0, 0, 0)
        );
        for killed in [off_killed, normal_killed] {
            is_clean(killed);
            assert_eq!(killed["fault"], "kill");
        }
        is_clean(full);
        assert_eq!((level(full), full["promised"].as_str()), ("power-cut", Some("power-cut")));
        let bound = full["loss_share_upper95"].as_f64().unwrap();
        assert!((bound - (1.0 - 0.05_f64.powf(1.0 / 15.0))).abs() < 1e-9, "{bound}");
        assert!(count(full, "cuts_unsynced") > 0, "{full:#}");
    }

    #[test]
    fn servers_lose_what_they_do_not_sync_and_nothing_else() {
        let of = |target: &str, setting: &str, fault: &str| {
            let setting = format!("database.config.{setting}");
            cases(&[target, "--cuts", "2", "--fault", fault, "--set", &setting], 0)
        };
        for (target, setting) in
            [("postgres", "synchronous_commit=on"), ("mariadb", "innodb_flush_log_at_trx_commit=1")]
        {
            for case in of(target, setting, "power") {
                is_clean(&case);
                assert_eq!(level(&case), "power-cut");
                assert!(case["recovery_s"]["p50"].as_f64().unwrap() > 0.0);
            }
        }
        for (target, setting) in
            [("postgres", "synchronous_commit=off"), ("mariadb", "innodb_flush_log_at_trx_commit=2")]
        {
            let lossy = of(target, setting, "power");
            assert!(count(&lossy[0], "lost") > 0, "{lossy:#?}");
            assert_eq!(count(&lossy[0], "changed"), 0, "{lossy:#?}");
        }
        for case in of("mariadb", "innodb_flush_log_at_trx_commit=2", "kill") {
            is_clean(&case);
        }
    }

    #[test]
    fn every_layout_is_read_as_it_was_written_by_another_database() {
        let layouts = "layout.name=[star, star-hot, wide, eav, json, key-value, spare]";
        for target in ["sqlite", "postgres"] {
            let cases = cases(&[target, "--cuts", "1", "--fault", "kill", "--set", layouts], 0);
            assert_eq!(cases.len(), 7);
            cases.iter().for_each(is_clean);
        }
        let cases = cases(&["redis", "--cuts", "1", "--fault", "kill", "--set", "layout.name=[wide, key-value]"], 0);
        cases.iter().for_each(is_clean);
    }

    #[test]
    fn databases_that_change_nothing_are_judged_by_what_they_added() {
        for target in ["clickhouse", "influxdb"] {
            let killed = cases(&[target, "--cuts", "1", "--fault", "kill"], 0);
            is_clean(&killed[0]);
        }
        // Now and then a cut takes nothing of what was acknowledged, because the disk keeps what it will.
        let unsynced = &cases(&["clickhouse", "--cuts", "5", "--fault", "power", "--sync-first"], 0)[0];
        assert_eq!((count(unsynced, "did_not_start"), unsynced["promised"].as_str()), (0, Some("crash")));
        assert!(count(unsynced, "lost") > 0, "{unsynced:#}");
    }

    #[test]
    fn a_disk_that_fails_or_is_full_costs_sqlite_nothing_that_it_acknowledged() {
        for fault in ["eio", "enospc"] {
            let cases = cases(&["sqlite", "--cuts", "8", "--fault", fault, "--seed", "3"], 0);
            is_clean(&cases[0]);
        }
    }

    #[test]
    fn flipped_bits_are_found_in_what_is_read() {
        let cases = cases(&["sqlite", "--cuts", "40", "--fault", "bits"], 0);
        let found = ["changed", "unreadable", "did_not_start", "lost", "half_transactions"];
        assert!(found.iter().any(|name| count(&cases[0], name) > 0), "{:#}", cases[0]);
    }

    #[test]
    fn studies_say_what_was_proved_here_of_the_same_settings() {
        let scratch = Scratch::new();
        let cache = scratch.path("cache");
        let with_cache = |arguments: &[&str]| {
            outcome(scratch.command(arguments).env("LOADLINE_CACHE", &cache).env("LOADLINE_STOLEN", "1")).expect(0)
        };
        with_cache(&["durability", "sqlite", "--cuts", "5"]);
        let study = "name = \"after\"\n[database]\nname = \"sqlite\"\n[record]\ntype = \"sensor\"\n[workload]\nname = \"write\"\n[load]\n\
                     duration = \"300ms\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
        scratch.write("s.toml", study);
        let proved = |run: &str, sets: &[&str]| {
            let told = with_cache(&[&["run", "s.toml", "--out", run, "--json"], sets].concat());
            let told: Value = serde_json::from_str(&told.stdout).unwrap();
            (told["cases"][0]["durability"]["proved"].clone(), told["notes"].to_string())
        };
        let (same, notes) = proved("same", &[]);
        assert_eq!(same, "0 of 5 cuts");
        assert!(notes.contains("0 of 5 cuts of the power did harm to what sqlite"), "{notes}");
        // Of other settings nothing was shown.
        let (other, notes) = proved("other", &["--set", "database.config.synchronous=off"]);
        assert!(other.is_null() && !notes.contains("of 5 cuts"), "{other} {notes}");
    }

    #[test]
    fn a_study_that_asks_what_survives_is_run_and_reported_like_any_other() {
        let scratch = Scratch::new();
        let run = |arguments: &[&str]| outcome(&mut scratch.command(arguments)).expect(0);
        let levels = "database.config.synchronous=[normal, full]";
        let sets = ["--set", "durability.cuts=4", "--set", "database.config.journal_mode=wal", "--set", levels];
        let told = run(&[&["run", "durability", "--out", "run", "--json"][..], &sets].concat());
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        let cases = told["cases"].as_array().unwrap();
        assert!(cases.iter().all(|case| count(case, "cuts") == 4));
        let (normal, full) = (&cases[0], &cases[cases.len() - 1]);
        let faults: Vec<_> = cases.iter().map(|case| case["fault"].as_str().unwrap()).collect();
        // What loses something by a cut is killed as well. A cut may find everything synced, also where a commit does not wait for that, and then it tells nothing.
        let expected =
            if count(normal, "cuts_with_loss") > 0 { &["power", "kill", "power"][..] } else { &["power", "power"] };
        assert_eq!(faults, expected, "{told:#}");
        let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
        if count(normal, "cuts_with_loss") > 0 && count(full, "cuts_unsynced") > 0 {
            assert!(page.contains("Nothing that was acknowledged was lost with synchronous = full."), "{told:#}");
        }
        for case in [normal, full] {
            let harmed = format!("{} of {}", count(case, "cuts_with_loss"), count(case, "cuts_unsynced"));
            assert!(page.contains(&harmed), "{harmed}\n{told:#}");
        }
        assert_eq!(count(full, "cuts_with_loss"), 0);
        // What is stored says the same, and repeats it.
        let again = run(&["report", "run", "--json"]);
        assert_eq!(serde_json::from_str::<Value>(&again.stdout).unwrap(), told);
        let repeated = run(&["run", "run/run.toml", "--out", "repeated", "--json"]);
        let repeated: Value = serde_json::from_str(&repeated.stdout).unwrap();
        let asked = |told: &Value| {
            let cases = told["cases"].as_array().unwrap().iter();
            cases.map(|case| (case["levels"].clone(), case["fault"].clone(), count(case, "cuts"))).collect::<Vec<_>>()
        };
        assert_eq!(asked(&repeated), asked(&told));
    }

    #[test]
    fn a_case_that_cannot_be_tested_does_not_keep_the_others() {
        let scratch = Scratch::new();
        // The server refuses it, and nobody knows that before it is started.
        let sets = ["--set", "database.config.shared_buffers=[lots, 64MB]"];
        let arguments = [&["durability", "postgres", "--cuts", "1", "--out", "run", "--json"][..], &sets].concat();
        let told = outcome(&mut scratch.command(&arguments)).expect(1);
        assert!(told.stderr.contains("shared_buffers = lots: not tested: "), "{}", told.stderr);
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        let level = |case: &Value| case["levels"]["database.config.shared_buffers"].clone();
        let (cases, not_tested) = (told["cases"].as_array().unwrap(), told["not_tested"].as_array().unwrap());
        assert_eq!(cases.iter().map(level).collect::<Vec<_>>(), ["64MB"]);
        assert_eq!(not_tested.iter().map(level).collect::<Vec<_>>(), ["lots"]);
        let why = "invalid value for parameter";
        assert!(not_tested[0]["why"].as_str().unwrap().contains(why), "{told}");
        let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
        assert!(page.contains("Not tested") && page.contains(why));
        let again = outcome(&mut scratch.command(&["report", "run", "--json"])).expect(1);
        assert_eq!(serde_json::from_str::<Value>(&again.stdout).unwrap(), told);

        let none = ["durability", "postgres", "--cuts", "1", "--set", "database.config.shared_buffers=[lots, many]"];
        let refused = outcome(&mut scratch.command(&none)).expect(1);
        assert!(refused.stderr.contains("none of the cases could be tested"), "{}", refused.stderr);
    }

    #[test]
    fn an_interrupted_test_tells_what_it_found_and_leaves_nothing_mounted() {
        let scratch = Scratch::new();
        let mut command = scratch.command(&["durability", "sqlite", "--cuts", "100000", "--json"]);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let source = format!("loadline-disk-{} ", child.id());
        let is_mounted = || std::fs::read_to_string("/proc/self/mountinfo").unwrap().contains(&source);
        wait_for("the disk to be mounted", is_mounted);
        std::thread::sleep(Duration::from_secs(1));
        // SAFETY: the child has not been waited for, so that its number is its own.
        unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
        let told = child.wait_with_output().unwrap();
        assert_eq!(told.status.code(), Some(1));
        let told: Value = serde_json::from_slice(&told.stdout).unwrap();
        assert!(count(&told["cases"][0], "cuts") < 100_000);
        assert!(!is_mounted());
    }
}
