//! A recorder in front of the database: sources with a start and an end, three paths, and every record accounted for.

use serde_json::Value;

use crate::program::Scratch;

const STUDY: &str = "name = \"paths\"\n[load]\narrivals = \"sources\"\nsource_rate = 20\nclients = 6\nduration = \"600ms\"\n\
    warmup = \"300ms\"\n[recorder]\npath = \"http\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";

#[test]
fn every_record_of_every_source_is_found_once_and_in_order_whatever_path_it_takes() {
    for (database, paths) in [("sqlite", "[http, nats]"), ("mariadb", "[direct, http]"), ("postgres", "[nats]")] {
        let scratch = Scratch::new();
        scratch.write("paths.toml", STUDY);
        let sets = [format!("database.name={database}"), format!("recorder.path={paths}")];
        let outcome =
            scratch.run(&["run", "paths.toml", "--set", &sets[0], "--set", &sets[1], "--out", "paths", "--json"]);
        let trials = scratch.stored("paths");
        assert!(!trials.is_empty());
        for trial in &trials {
            let told = format!("{database} {:?}: {:?}", trial.trial.case.levels, trial.invalid_because);
            let recorded = trial.recorded.as_ref().expect(&told);
            // Each of six sources sends 20 results a second for 0.9 s, most of them while all are active.
            assert_eq!((recorded.acknowledged, recorded.unknown), (108, 0), "{told}");
            assert_eq!(recorded.reasons(), [], "{told}");
            assert_eq!((recorded.found, recorded.committed), (108, 108), "{told}");
            assert!((66..=78).contains(&trial.operations["insert"].scheduled), "{told}");
            let through_recorder = trial.trial.case.settings.recorded().is_some();
            assert_eq!(recorded.memory_max_bytes > 0, through_recorder, "{told}");
            assert!(trial.resources.as_ref().is_none_or(|used| (used.mean.recorder_cpu > 0.0) == through_recorder));
        }
        let case = &outcome.json()["cases"][0]["recorded"];
        assert_eq!((&case["missing"], &case["acknowledged"]), (&Value::from(0), &Value::from(108)), "{database}");
    }
}

#[test]
fn a_path_that_cannot_be_is_refused_where_it_stands() {
    let refusal = |change: (&str, &str)| {
        let scratch = Scratch::new();
        scratch.write("paths.toml", &STUDY.replace(change.0, change.1));
        scratch.run(&["plan", "paths.toml"]).expect(2).stderr
    };
    assert!(refusal(("\"http\"", "\"htpt\"")).contains("did you mean \"http\"?"));
    assert!(refusal(("source_rate = 20\n", "")).contains("load.source_rate is missing"));
    assert!(refusal(("arrivals = \"sources\"\n", "")).contains("clients are no sources"));
    assert!(refusal(("duration = \"600ms\"", "operations = 9")).contains("sources end by time"));
    assert!(refusal(("clients = 6", "clients = 6\nrate = 9")).contains("leave load.rate out"));
    assert!(refusal(("path = \"http\"", "path = \"http\"\nwriters = 2")).contains("SQLite takes one writer"));
    assert!(refusal(("[repeat]", "[layout]\nname = \"spare\"\n[repeat]")).contains("the recorder has the layouts"));
    assert!(refusal(("[repeat]", "[record]\nrows = 9\n[repeat]")).contains("makes its own tables"));
    assert!(refusal(("[repeat]", "[record]\ntype = \"wisconsin\"\n[repeat]")).contains("have a key and no source"));
    let per_client = ("[repeat]", "[layout]\ntables = \"per-client\"\n[repeat]");
    assert!(refusal(per_client).contains("names its tables after the measurement"));
    let as_recorded = ("[repeat]", "[layout]\ntables = \"recorder\"\n[repeat]");
    assert!(refusal(as_recorded).contains("the recorder in front of the database makes its tables itself"));
    assert!(refusal(("clients = 6", "clients = 6\nstatements = \"text\"")).contains("gets records and no statements"));
    assert!(refusal(("clients = 6", "clients = 6\nconnect = \"each\"")).contains("sources keep their connections"));
    assert!(
        refusal(("[repeat]", "[database]\nname = \"mariadb\"\nengine = \"aria\"\n[repeat]")).contains("take innodb")
    );
}
