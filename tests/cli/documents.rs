//! What every JSON document has: its version, and where the request is wrong, why, in parts that programs can use.

use serde_json::{Value, json};

use crate::program::{Scratch, small_study};

const POINTS: &str =
    "arrival_rate,mean_s\n100,0.0011\n300,0.0014\n500,0.002\n700,0.0033\n800,0.005\n850,0.0067\n900,0.01\n950,0.02\n";

#[test]
fn every_command_prints_an_object_with_its_version() {
    let scratch = Scratch::new();
    let database = "[database]\nname = \"simulated\"\nconfig = { service = \"100us\" }";
    let load = "[load]\noperations = 50\nwarmup = \"0s\"";
    let factor = "[factors]\n\"layout.name\" = [\"wide\", \"star\"]";
    scratch.write("study.toml", &small_study(&format!("{database}\n{load}\n{factor}")));
    scratch.write("points.csv", POINTS);
    scratch.write("writes.csv", "alternative,throughput\na,100\nb,120\n");
    scratch.write("reads.csv", "alternative,query,case,time_s\na,1,x,1\nb,1,x,1.1\n");
    let run = ["run", "study.toml", "--out", "run"];
    let commands: [&[&str]; 12] = [
        &run,
        &["report", "run"],
        &["report", "run", "run"],
        &["plan", "study.toml"],
        &["compare", "run"],
        &["fit", "--points", "points.csv"],
        &["predict", "--model", "mm1", "--mu", "1000", "--arrival-rate", "800"],
        &["score", "--writes", "writes.csv", "--reads", "reads.csv"],
        &["size", "--block", "1MiB", "--every", "1s", "--blocks", "1", "--server-link", "1Gbit/s"],
        &["list", "layouts"],
        &["data", "qos", "--rows", "2"],
        &["export", "run", "--format", "csv", "--out", "files"],
    ];
    for arguments in commands {
        let outcome = scratch.run(&[arguments, &["--json"]].concat());
        assert!(matches!(outcome.status, Some(0 | 1)), "{arguments:?}: {}", outcome.stderr);
        let document = outcome.json();
        assert_eq!(document["version"], 1, "{arguments:?}: {document:#}");
        assert!(outcome.stdout.starts_with('{'), "{arguments:?}");
        for said in ["verdicts", "notes"] {
            let is_said = |one: &Value| one["kind"].is_string() && one["says"].is_string();
            let all = document[said].as_array().map_or(&[][..], Vec::as_slice);
            assert!(all.iter().all(is_said), "{arguments:?}: {all:?}");
        }
    }
    let both = scratch.run(&["report", "run", "run", "--json"]).json();
    assert_eq!(both["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn why_a_request_is_wrong_is_a_document_too() {
    let scratch = Scratch::new();
    let error = |arguments: &[&str]| {
        let outcome = scratch.run(&[arguments, &["--json"]].concat()).expect(2);
        let document = outcome.json();
        assert_eq!(document["version"], 1);
        let error = document["error"].clone();
        let says = error["says"].as_str().unwrap();
        assert!(outcome.stderr.contains(says), "{says:?} is not what is said: {}", outcome.stderr);
        assert_eq!(scratch.run(arguments).expect(2).stdout, "", "text has nothing to print");
        error
    };
    let alpha = error(&["compare", "nowhere", "--alpha", "2"]);
    let says = "--alpha: 2 is not above 0 and at most 0.5; write 0.05 for 5 %";
    let told = json!({ "kind": "usage", "place": "--alpha", "says": says, "remedy": "write 0.05 for 5 %" });
    assert_eq!(alpha, told);
    let nowhere = error(&["report", "nowhere"]);
    assert_eq!((&nowhere["kind"], &nowhere["place"]), (&"run".into(), &"nowhere".into()));
    assert_eq!(nowhere["remedy"], "give a directory that `loadline run` made");
    scratch.write("wrong.toml", "name = \"w\"\n[layout]\nname = \"eva\"\n[load]\nclient = 4\n");
    let study = error(&["plan", "wrong.toml"]);
    assert_eq!((&study["kind"], &study["place"]), (&"study".into(), &"wrong.toml:3".into()), "{study:#}");
    assert_eq!(study["others"][0]["place"], "wrong.toml:5", "{study:#}");
    assert_eq!(study["remedy"], "did you mean \"eav\"?");
    assert_eq!(study["others"][0]["remedy"], "did you mean \"clients\"?");
    // Whatever is wrong by itself in a study says what to do apart from what is wrong.
    for wrong in ["load.duration=10", "load.clients=0", "workload.name=read", "load.rate=5", "database.engine=innodb"] {
        let error = error(&["plan", "qos-write", "--set", wrong]);
        let (says, remedy) = (error["says"].as_str().unwrap(), error["remedy"].as_str().unwrap_or_default());
        assert!(!remedy.is_empty() && says.ends_with(&format!("; {remedy}")), "{error:#}");
    }
    let server =
        error(&["run", "qos-write", "--quick", "--set", "database.name=mysql", "--set", "database.base=/nowhere"]);
    assert!(server["remedy"].as_str().unwrap().contains("database.base"), "{server:#}");
    let unknown = error(&["predict", "--no-such-option"]);
    assert_eq!((&unknown["kind"], &unknown["place"]), (&"usage".into(), &"--no-such-option".into()), "{unknown:#}");
    scratch.write("torn.txt", "sysbench 1.0.20\n");
    let torn = error(&["import", "sysbench", "torn.txt", "--out", "imported"]);
    assert_eq!(torn["kind"], "import", "{torn:#}");
    assert!(torn["place"].as_str().unwrap().starts_with("torn.txt:") && torn["remedy"].is_string(), "{torn:#}");
}
