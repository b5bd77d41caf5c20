//! What people read when a study is wrong, and what they read when it is right: exact texts.
//!
//! A changed text is taken over with `UPDATE_GOLDEN=1 cargo test --test study_errors`, and then read before it is
//! committed.

use std::path::PathBuf;

use loadline::commands::plan;
use loadline::data;
use loadline::database::Endpoint;
use loadline::layout;
use loadline::study::estimate::{Known, estimate};
use loadline::study::{self, BUNDLED, DatabaseFacts, Names, Study, StudyErrors};
use loadline::trial::Arrivals;
use loadline::workload;

/// The names of this test: fixed, so that texts do not change with the registries.
fn names() -> Names {
    names_of(
        &[],
        &["qos", "wisconsin", "custom"],
        &["wide", "star", "star-hot"],
        &["write", "read", "select", "update", "mix", "sql"],
    )
}

/// All names that there are.
fn all_names() -> Names {
    let records: Vec<_> = data::REGISTRY.iter().map(|entry| entry.name).collect();
    let layouts: Vec<_> = layout::REGISTRY.iter().map(|entry| entry.name).collect();
    let workloads: Vec<_> = workload::REGISTRY.iter().map(|entry| entry.name).collect();
    names_of(
        &["mysql", "redis", "duckdb", "clickhouse", "cassandra", "questdb", "influxdb", "mongodb", "victoriametrics"],
        &records,
        &layouts,
        &workloads,
    )
}

fn names_of(more: &[&str], records: &[&str], layouts: &[&str], workloads: &[&str]) -> Names {
    let read_url: fn(&str) -> Result<Endpoint, String> = |url| {
        if url.starts_with("mysql://") { Ok(Endpoint::default()) } else { Err(format!("\"{url}\" is no address")) }
    };
    let server = |name: &str, engines: &[&str]| DatabaseFacts {
        name: name.to_owned(),
        engines: engines.iter().map(|engine| (*engine).to_owned()).collect(),
        has_private_server: true,
        read_url: Some(read_url),
    };
    let embedded = DatabaseFacts { has_private_server: false, read_url: None, ..server("sqlite", &[]) };
    let mut databases = vec![embedded, server("mariadb", &["innodb", "myisam", "aria"]), server("postgres", &[])];
    databases.extend(more.iter().map(|name| server(name, &[])));
    Names::new(databases, records, layouts, workloads)
}

fn load(text: &str, sets: &[&str], quick: bool) -> Result<Study, StudyErrors> {
    load_with(text, sets, quick, &names())
}

fn load_with(text: &str, sets: &[&str], quick: bool, names: &Names) -> Result<Study, StudyErrors> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    study::load_text("study.toml", text, &sets, None, quick, names).map(|(study, _)| study)
}

fn errors_of(text: &str, sets: &[&str]) -> String {
    load(text, sets, false).expect_err("the study is wrong").to_string()
}

fn golden(file: &str, actual: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(file);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, actual).expect("the golden file can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(actual, expected, "{} differs", path.display());
}

#[test]
fn all_errors_of_a_study_are_reported_at_once_with_their_lines() {
    let text = include_str!("golden/broken.toml");
    let sets = ["load.clinets=4", "record.rows=some", "nothing"];
    golden("broken.txt", &format!("{}\n", errors_of(text, &sets)));
}

#[test]
fn all_errors_of_custom_records_and_statements_are_reported_at_once() {
    golden("custom_broken.txt", &format!("{}\n", errors_of(include_str!("golden/custom_broken.toml"), &[])));
}

#[test]
fn a_plan_says_cases_trials_time_and_server() {
    let study = load(include_str!("golden/small.toml"), &[], false).unwrap();
    let text = plan::text_of(&study, &names(), &Known::default());
    assert!(!text.contains("secret"));
    golden("small_plan.txt", &text);
    let json = plan::json_of(&study, &names(), &Known::default());
    assert!(!json.to_string().contains("secret"));
    assert_eq!(json["trials"], serde_json::json!({ "least": 16, "most": 28 }));
    assert_eq!(json["cases"][1]["levels"], serde_json::json!({ "layout.name": "wide", "load.clients": 8 }));
}

#[test]
fn bundled_studies_are_right_and_quick_ones_end_within_about_a_minute() {
    let names = all_names();
    for bundled in BUNDLED {
        let study =
            load_with(bundled.text, &[], false, &names).unwrap_or_else(|errors| panic!("{}:\n{errors}", bundled.name));
        assert_eq!(study.name, bundled.name);
        // A study of what its source only asks has nothing to check; its README says so.
        let is_open_question = bundled.readme.contains("There is no claim to check");
        assert!(!study.claims.is_empty() || is_open_question, "{} has no claim", bundled.name);
        assert!(!study.question.is_empty() && !study.source.is_empty());
        for part in ["## The claim", "## Hardware", "## Deviations"] {
            assert!(bundled.readme.contains(part), "{} lacks {part}", bundled.name);
        }
        let quick =
            load_with(bundled.text, &[], true, &names).unwrap_or_else(|errors| panic!("{}:\n{errors}", bundled.name));
        assert!(quick.quick && quick.cases.len() <= 60, "{}: {} cases", bundled.name, quick.cases.len());
        let (_, most_s) = estimate(&quick, &Known::default()).elapsed_s;
        assert!(most_s < 90.0, "{}: {most_s} s", bundled.name);
        // What nodes do together differs from database to database.
        let databases = if study.base.database.nodes.is_some() { &[][..] } else { &["mariadb", "postgres"] };
        for database in databases {
            let sets = ["database.engine=", &format!("database.name={database}")];
            let other = load_with(bundled.text, &sets, false, &names).unwrap();
            assert_eq!(other.base.database.name, *database);
        }
    }
}

#[test]
fn the_paper_study_has_all_its_cases() {
    let paper = BUNDLED.iter().find(|bundled| bundled.name == "qos-write-paper").unwrap();
    let study = load(paper.text, &[], false).unwrap();
    assert_eq!(study.cases.len(), 11 * 9 * 3);
    let last = study.cases.last().unwrap();
    assert_eq!(last.levels["load.operations_per_client"], 10_000);
    assert_eq!(last.settings.record.per_measurement, 10_000, "the rows of a client are one measurement");
}

#[test]
fn a_study_survives_being_stored() {
    for text in [BUNDLED[0].text, BUNDLED[1].text, include_str!("golden/small.toml"), CUSTOM] {
        let study = load(text, &[], false).unwrap();
        let stored = toml::to_string(&study).unwrap();
        let read: Study = toml::from_str(&stored).unwrap();
        assert_eq!(read, study);
        assert_eq!(serde_json::to_string(&read).unwrap(), serde_json::to_string(&study).unwrap());
    }
}

const CUSTOM: &str = r#"
name = "own"
[record]
type = "custom"
rows = 1000
identity = [ { name = "probe", kind = "int", fill = { uniform = [1, 500] } } ]
values   = [ { name = "rtt_ms", kind = "float", fill = { normal = [20.0, 5.0] } },
             { name = "hops", kind = "smallint", fill = { zipf = [1, 30, 1.1] } },
             { name = "state", kind = "text", fill = { one_of = ["up", "down"] } },
             { name = "note", kind = "text", fill = { random_text = 40 }, hot = false } ]
[workload]
name = "sql"
statements = [ { sql = "SELECT * FROM t WHERE id = ?", weight = 95, params = [ { uniform = [1, 100000] } ] },
               { sql = "UPDATE t SET n = n + 1 WHERE id = ?", weight = 5, allow_empty = true,
                 params = [ { zipf = [1, 100000, 0.99] } ] } ]
"#;

#[test]
fn custom_records_and_statements_are_read_whole() {
    use loadline::trial::Fill;
    let base = load(CUSTOM, &[], false).unwrap().base;
    assert_eq!(base.record.table, "custom");
    assert_eq!(base.record.identity[0].fill, Fill::Uniform(1.0, 500.0));
    assert_eq!(base.record.values[1].fill, Fill::Zipf(1, 30, 1.1));
    assert!(base.record.values[0].hot && !base.record.values[3].hot);
    let statements = &base.workload.statements;
    assert_eq!((statements[0].weight, statements[0].allow_empty), (95.0, false));
    assert_eq!((statements[1].params.len(), statements[1].allow_empty), (1, true));
}

#[test]
fn an_empty_file_is_a_study_of_the_defaults() {
    let study = load("", &[], false).unwrap();
    let base = &study.base;
    assert_eq!((study.name.as_str(), study.cases.len(), study.seed), ("study", 1, 1));
    assert_eq!((base.database.name.as_str(), base.record.type_name.as_str()), ("sqlite", "qos"));
    assert_eq!((base.layout.name.as_str(), base.workload.name.as_str()), ("star", "write"));
    assert_eq!((base.record.table.as_str(), base.record.per_measurement, base.load.clients), ("qos", 1000, 1));
    assert_eq!((base.load.warmup_s, base.load.drain_s, base.load.tolerated_failures), (0.5, 30.0, 0.0));
    assert_eq!((study.repeat.within, study.repeat.least, study.repeat.most), (0.05, 5, 30));
}

#[test]
fn records_of_a_measurement_are_a_multiple_of_the_batch() {
    let per_measurement = |sets: &[&str]| load("", sets, false).unwrap().base.record.per_measurement;
    assert_eq!(per_measurement(&["workload.batch=300"]), 1200);
    assert_eq!(per_measurement(&["workload.batch=3000"]), 3000);
    assert_eq!(per_measurement(&["workload.batch=4", "load.operations_per_client=10"]), 40);
    assert_eq!(per_measurement(&["workload.batch=4", "record.per_measurement=10"]), 12);
    assert_eq!(
        errors_of("", &["workload.batch=4", "record.per_measurement=3"]),
        "--set record.per_measurement=3: record.per_measurement is 3 and workload.batch is 4; a batch belongs to one \
         measurement, so that it must be at least as much"
    );
}

#[test]
fn settings_of_the_server_can_be_factors() {
    let text = "[database]\nname = \"mariadb\"\n[factors]\n\"database.config.innodb_write_io_threads\" = [4, 8, 16]\n";
    let study = load(text, &["load.clients=[1, 2]"], false).unwrap();
    assert_eq!(study.cases.len(), 6);
    assert_eq!(study.cases[5].settings.database.config["innodb_write_io_threads"], "16");
    assert_eq!(study.cases[5].levels["database.config.innodb_write_io_threads"], 16);
    assert_eq!(study.cases[5].levels["load.clients"], 2);
}

#[test]
fn a_case_that_is_impossible_is_reported_where_its_level_stands() {
    let text = "[database]\nengine = \"innodb\"\nname = \"mariadb\"\n[factors]\n\
                \"database.name\" = [\n  \"mariadb\",\n  \"sqlite\",\n]\n";
    assert_eq!(
        errors_of(text, &[]),
        "study.toml:7: database.engine is \"innodb\" and sqlite has no engines; leave it out"
    );
    let text = "[load]\nduration = \"1s\"\n[factors]\n\"load.operations\" = [10, 20]\n";
    assert_eq!(
        errors_of(text, &[]),
        "study.toml:4: load.operations and load.duration are both given; a trial ends by one of them, leave the other out"
    );
}

#[test]
fn combinations_that_cannot_be_are_refused() {
    for (sets, part) in [
        (&["load.rate=100"][..], "a closed loop has no rate"),
        (&["workload.name=read"], "record.rows is 0"),
        (&["workload.name=read", "record.rows=10", "workload.batch=5"], "reads are of one record each"),
        (&["workload.name=sql"], "there are no statements"),
        (&["record.type=custom"], "has no values"),
        (&["database.url=mysql://host/db"], "use database.path for its file"),
        (&["database.name=mariadb", "database.url=nowhere"], "database.url: \"nowhere\" is no address"),
        (&["database.name=mariadb", "database.url=mysql://h/d", "database.cpus=0"], "for a private server"),
        (&["database.name=mariadb", "database.url=mysql://h/d", "database.config.x=0"], "cannot be set on a server"),
        (&["database.name=mariadb", "database.path=x.db"], "mariadb is a server"),
        (&["database.socket=tcp"], "sqlite has none"),
        (&["load.loops=4"], "each loop needs a client"),
        (&["repeat.least=1"], "the spread of at least 2 trials"),
        (&["repeat.least=40", "repeat.most=10"], "raise most, or lower least"),
        (&["load.clients=[1, 2]", "layout.name=[wide, satr]"], "unknown layout \"satr\"; did you mean \"star\"?"),
        (
            &[
                "record.seed=[1,2,3,4,5,6,7,8,9,10,11]",
                "load.clients=[1,2,3,4,5,6,7,8,9,10,11]",
                "load.warmup=[1s,2s,3s,4s,5s,6s,7s,8s,9s,10s]",
                "workload.batch=[1,2,3,4,5,6,7,8,9]",
            ],
            "10890 cases",
        ),
        (&["load.duration=[1s, 1000ms]"], "cases 1 and 2 have the same settings"),
    ] {
        let errors = errors_of("", sets);
        assert!(errors.contains(part), "{sets:?}: {errors}");
        assert!(errors.lines().all(|line| line.starts_with("--set ")), "{sets:?}: {errors}");
    }
}

#[test]
fn open_loops_are_checked() {
    let names = names();
    let load = |text: &str| study::load_text("study.toml", text, &[], None, false, &names).map(|(study, _)| study);
    let text = "[load]\narrivals = \"poisson\"\nrate = 500\nsamples = true\n[goal]\nbelow = \"100ms\"\n";
    let study = load(text).unwrap();
    assert_eq!((study.base.load.rate_per_s, study.goal.unwrap().below_s), (Some(500.0), 0.1));
    let sought = load("[goal]\nbelow = \"10ms\"\n").unwrap();
    assert_eq!(
        (sought.base.load.arrivals, sought.base.load.rate_per_s),
        (Arrivals::Poisson, None),
        "the search chooses"
    );
    let errors = load("[load]\narrivals = \"closed\"\n[goal]\nbelow = \"10ms\"\n").unwrap_err().to_string();
    assert_eq!(
        errors,
        "study.toml:2: [goal] is given and load.arrivals is \"closed\"; the load line is an arrival rate; write arrivals = \
         \"poisson\", or leave it out"
    );
    let errors = load("[goal]\nbelow = \"10ms\"\n[factors]\n\"load.rate\" = [1, 2]\n").unwrap_err().to_string();
    assert!(errors.starts_with("study.toml:4: load.rate is a factor and [goal] is given; "), "{errors}");
    let errors = load("[load]\narrivals = \"poisson\"\nthink = \"1ms\"\n").unwrap_err().to_string();
    assert!(
        errors.contains("an open loop needs it") && errors.contains("only a closed loop has think time"),
        "{errors}"
    );
}

#[test]
fn parts_that_cannot_be_built_so_say_why_before_anything_starts() {
    let mut names = names();
    names.try_build = |settings| match settings.workload.batch {
        batch @ 7.. => Err(format!("workload.batch is {batch}; the parts do not like it, write another")),
        _ => Ok(()),
    };
    let text = "[workload]\nname = \"write\"\n[factors]\n\"workload.batch\" = [\n  5,\n  7,\n  8,\n]\n";
    let errors = study::load_text("study.toml", text, &[], None, false, &names).unwrap_err().to_string();
    let sentence =
        |line, batch| format!("study.toml:{line}: workload.batch is {batch}; the parts do not like it, write another");
    assert_eq!(errors, format!("{}\n{}", sentence(6, 7), sentence(7, 8)));
}

#[test]
fn claims_follow_the_factors_through_set_and_quick() {
    let text = BUNDLED[0].text;
    let study = load(text, &["load.clients=[1.0, 2]"], false);
    assert!(study.unwrap_err().to_string().contains("load.clients is 1; it must be a whole number"));
    let study = load(text, &["load.clients=[1, 16]"], false).unwrap();
    assert_eq!(study.claims.len(), 4, "a claim about clients that are left out stays, for the report to say so");
    let study = load(text, &["layout.name=star"], false).unwrap();
    assert_eq!(study.factors.len(), 1);
    let claims = "[factors]\n\"load.clients\" = [1, 2]\n[[claims]]\nsays = \"s\"\nmetric = \"throughput\"\n\
                  ratio = { of = { \"load.clients\" = 2, \"layout.name\" = \"star\" }, \
                  to = { \"load.clients\" = 1 }, above = 1 }\n";
    let ratio = load(claims, &[], false).unwrap().claims[0].ratio.clone().unwrap();
    assert_eq!(ratio.of.keys().collect::<Vec<_>>(), ["load.clients"], "what is true of every case says nothing");
    assert_eq!((ratio.low, ratio.high), (1.0, None));
}

#[test]
fn a_seed_changes_the_plan_and_nothing_else() {
    let with = |seed| study::load_text("study.toml", BUNDLED[0].text, &[], seed, false, &names()).unwrap().0;
    let (one, two) = (with(None), with(Some(2)));
    assert_eq!(one.cases, two.cases);
    assert_ne!(study::plan::round(&one, 0), study::plan::round(&two, 0));
    let too_large = study::load_text("s.toml", "", &[], Some(u64::MAX), false, &names()).unwrap_err();
    assert!(too_large.to_string().starts_with("--seed 18446744073709551615: the seed is too large"));
}

#[test]
fn what_only_ycsb_has_is_refused_elsewhere() {
    let text = "[record]\nfields = 5\nexisting = true\n[workload]\nname = \"read\"\nycsb = { scan = 1 }\n[load]\nat_most = \"0s\"\n";
    assert_eq!(
        errors_of(text, &[]),
        "study.toml:2: record.fields is for usertable and record.type is \"qos\"; write type = \"usertable\", or leave it out\n\
         study.toml:3: record.existing is true and a private database has no table yet; name the database that has it with \
         database.url, or database.path\n\
         study.toml:5: workload.name is \"read\" and record.rows is 0; set the number of rows that are there to be read, as in \
         rows = 100000\n\
         study.toml:6: workload.ycsb is for YCSB's workloads and workload.name is \"read\"; write name = \"ycsb\", or leave it out\n\
         study.toml:8: load.at_most is \"0s\"; it must be more than zero"
    );
}

#[test]
fn lengths_of_sensor_records_are_checked_and_their_measurements_are_transmissions() {
    let elsewhere =
        "study.toml:2: record.length is 300 and record.type is \"qos\"; write type = \"sensor\", or leave it out";
    assert_eq!(errors_of("[record]\nlength = 300\n", &[]), elsewhere);
    let text = "[record]\ntype = \"sensor\"\n[workload]\nbatch = 10\n[factors]\n\"record.length\" = [100, 1000]\n";
    let study = load_with(text, &[], false, &all_names()).unwrap();
    assert_eq!(study.cases.iter().map(|case| case.settings.record.length).collect::<Vec<_>>(), [Some(100), Some(1000)]);
    assert_eq!(study.cases[0].settings.record.per_measurement, 10);
}

#[test]
fn a_recorder_path_that_does_not_exist_is_the_only_error() {
    let text = |path: &str| {
        format!(
            "[record]\ntype = \"violation\"\n[workload]\nname = \"write\"\n[database]\nname = \"mariadb\"\n[recorder]\n\
             path = \"{path}\"\n[link]\nrate = \"1Mbit/s\"\nhosts = \"each\"\n"
        )
    };
    let said = |path: &str| {
        load_with(&text(path), &[], false, &all_names()).map_or_else(|error| error.to_string(), drop_study)
    };
    assert_eq!(said("ftp"), "");
    assert_eq!(said("smtp"), "study.toml:8: unknown recorder.path \"smtp\"; did you mean \"http\"?");
    assert!(said("http").contains("study.toml:11: link.hosts is for uploads of blocks"), "{}", said("http"));
}

/// A study that is right has nothing to say.
fn drop_study(_: Study) -> String {
    String::new()
}

#[test]
fn a_claim_can_be_on_a_model_and_says_what_is_wrong_with_it() {
    let claim = |model: &str| {
        format!(
            "name = \"c\"\n[record]\nrows = 10\n[load]\narrivals = \"poisson\"\n[factors]\n\"load.rate\" = [100, 200]\n\"workload.name\" = [\"read\", \
             \"write\"]\n[[claims]]\nsays = \"it fits\"\n{model}\n"
        )
    };
    let read = claim("model = { name = \"mm1\", where = { \"workload.name\" = \"read\" }, fits = false }");
    let model = load(&read, &[], false).unwrap().claims[0].model.clone().unwrap();
    assert_eq!((model.name.as_str(), model.fits, &model.only["workload.name"]), ("mm1", false, &"read".into()));
    let refused = |text: &str| load(&claim(text), &[], false).unwrap_err().to_string();
    assert!(refused("model = { name = \"mm2\" }").contains("mm1"));
    assert!(refused("model = { name = \"mm1\" }\nmetric = \"throughput\"").contains("write two claims"));
    assert!(refused("model = { fits = true }").contains("claims.model has no name"));
}
