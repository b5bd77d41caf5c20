//! Studies of the Wisconsin relation: what is read from `mix`, `attribute` and `permutation`, and what people read when
//! these do not go together.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use loadline::study::{self, DatabaseFacts, Names, Study, StudyErrors, setting_value};
use loadline::workload::{Work, keeps_records};

fn names() -> Names {
    let sqlite =
        DatabaseFacts { name: "sqlite".to_owned(), engines: Vec::new(), has_private_server: false, read_url: None };
    let names = |all: Vec<&'static str>| all;
    let records = names(loadline::data::REGISTRY.iter().map(|entry| entry.name).collect());
    let layouts = names(loadline::layout::REGISTRY.iter().map(|entry| entry.name).collect());
    let workloads = names(loadline::workload::REGISTRY.iter().map(|entry| entry.name).collect());
    let try_build = |settings: &_| Work::new(settings).map(|_| ());
    Names { try_build, ..Names::new(vec![sqlite], &records, &layouts, &workloads) }
}

fn load(text: &str, sets: &[&str]) -> Result<Study, StudyErrors> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    Ok(study::load_text("study.toml", text, &sets, None, false, &names())?.0)
}

const MIXED: &str = r#"
name = "mixed"
[record]
type = "wisconsin"
rows = 1000
permutation = "dewitt"
[layout]
name = "wide"
[workload]
name = "mix"
mix = { select = 0.8, update = 0.2 }
attribute = "unique3"
"#;

#[test]
fn a_mix_is_read_as_the_contract_writes_it() {
    let study = load(MIXED, &[]).unwrap();
    let settings = &study.cases[0].settings;
    assert_eq!(settings.workload.mix, [("select".to_owned(), 0.8), ("update".to_owned(), 0.2)].into());
    assert_eq!(setting_value(settings, "workload.mix.update"), Some(0.2.into()));
    assert_eq!(setting_value(settings, "record.permutation"), Some("dewitt".into()));
    assert_eq!(setting_value(settings, "workload.attribute"), Some("unique3".into()));
    assert!(keeps_records(settings));
    let with_writes = load(MIXED, &["workload.mix={ select = 1, write = 1 }"]).unwrap();
    assert!(!keeps_records(&with_writes.cases[0].settings));
}

#[test]
fn a_share_can_be_varied() {
    let study = load(MIXED, &["workload.mix.select=1", "workload.mix.update=[0, 0.25, 1]"]).unwrap();
    let shares: Vec<_> = study.cases.iter().map(|case| case.settings.workload.mix["update"]).collect();
    assert_eq!(shares, [0.0, 0.25, 1.0]);
}

#[track_caller]
fn assert_refused(sets: &[&str], expected: &[&str]) {
    let errors = load(MIXED, sets).unwrap_err().to_string();
    assert_eq!(errors.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn what_does_not_go_together_is_said_with_its_place_and_remedy() {
    assert_refused(
        &["workload.name=select"],
        &[
            "--set workload.name=select: workload.mix is for the workload mix and workload.name is \"select\"; write name = \
           \"mix\", or leave the shares out",
        ],
    );
    assert_refused(
        &["workload.mix="],
        &[
            "study.toml:10: workload.name is \"mix\" and there are no shares; write mix = { select = 0.8, update = 0.2 }",
        ],
    );
    assert_refused(
        &["workload.mix={ selekt = 1 }"],
        &["--set workload.mix={ selekt = 1 }: unknown key \"selekt\" in workload.mix; did you mean \"select\"?"],
    );
    assert_refused(
        &["workload.mix={ select = -1 }"],
        &["--set workload.mix={ select = -1 }: workload.mix.select is -1; it must be a number from 0 to 1,000,000,000"],
    );
    assert_refused(
        &["workload.mix={ select = 0 }"],
        &[
            "--set workload.mix={ select = 0 }: workload.mix has no share above 0; write the shares as in mix = { select = 0.8, update = 0.2 }",
        ],
    );
    assert_refused(
        &["workload.name=read", "workload.mix="],
        &[
            "--set workload.name=read: workload.attribute is \"unique3\" and workload.name is \"read\"; it is the column that \
           select reads and update sets; leave it out",
        ],
    );
}

#[test]
fn records_that_cannot_be_made_are_refused_before_anything_starts() {
    assert_refused(
        &["record.permutation=shuffled"],
        &[
            "--set record.permutation=shuffled: unknown record.permutation \"shuffled\"; there are feistel, lfsr, lfsr-leap, dewitt",
        ],
    );
    assert_refused(
        &["record.rows=200000000"],
        &[
            "--set record.rows=200000000: record.rows is 200000000; record.permutation \"dewitt\" has at most 100000000 rows: its \
           program ends there; leave the permutation out",
        ],
    );
    assert_refused(
        &["record.type=qos", "workload.attribute=ul_delay"],
        &[
            "--set record.type=qos: record.permutation is \"dewitt\" and record.type is \"qos\"; write type = \"wisconsin\", or leave \
           it out",
        ],
    );
    assert_refused(
        &["record.per_measurement=5"],
        &[
            "--set record.per_measurement=5: record.per_measurement is given and record.type is \"wisconsin\"; each of its records is \
           a measurement of its own, leave it out",
        ],
    );
    let unknown = load(MIXED, &["workload.attribute=unique9"]).unwrap_err().to_string();
    let expected = "workload.attribute is \"unique9\", which is no value column of record type \"wisconsin\"; there are unique1, two,";
    assert!(unknown.starts_with(&format!("--set workload.attribute=unique9: {expected}")), "{unknown}");
    let none = load(MIXED, &["workload.name=update", "workload.mix=", "record.rows=0"]).unwrap_err().to_string();
    assert!(none.contains("workload.name is \"update\" and record.rows is 0"), "{none}");
}

#[test]
fn the_load_line_study_is_right() {
    let study = load(include_str!("../studies/load-line/study.toml"), &[]).unwrap();
    let goal = study.goal.as_ref().unwrap();
    assert_eq!((goal.quantile, goal.below_s, study.cases.len()), (0.9, 0.01, 2));
    for part in ["## The claim", "## Hardware", "## Deviations"] {
        assert!(include_str!("../studies/load-line/README.md").contains(part));
    }
}
