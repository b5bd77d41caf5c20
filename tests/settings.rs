//! The tables of settings against all that is made of them: what readers accept, schemas, the reference page, and the examples in
//! the documentation.
//!
//! The page is written anew with `UPDATE_GOLDEN=1 cargo test --test settings`, and then read before it is committed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "settings/files.rs"]
mod files;
#[path = "settings/schemas.rs"]
mod schemas;
#[path = "settings/values.rs"]
mod values;

use std::path::Path;

use files::{File, Place};
use loadline::cli::Described;
use loadline::commands::schema;
use loadline::recorder::config;
use loadline::recorder::line::LineBounds;
use loadline::trial::{BlocksSettings, FreshnessSettings, UsertableSettings, YcsbSettings};
use loadline::workload::MIX_PARTS;
use loadline::workload::ycsb::SHARES;
use loadline::written::{Kind, Setting};
use schemas::Checked;
use toml::Value;
use values::{beyond, default, others, right, wrong_type};

const FILES: [&File; 2] = [&files::STUDY_FILE, &files::RECORDER_CONFIG];

/// Every setting of both files, with its place.
fn all(file: &File) -> Vec<(Place, &'static Setting)> {
    let of_part = |place: Place| place.part.settings.iter().map(move |setting| (place.clone(), setting));
    files::places(file.top).into_iter().flat_map(of_part).collect()
}

/// Fails where there are findings.
fn assert_none(findings: &[String]) {
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn a_reader_takes_what_a_row_allows_and_refuses_what_it_does_not() {
    let mut findings = Vec::new();
    for file in FILES {
        for (place, setting) in all(file) {
            let path = place.part.path(setting.key);
            let mut hold = |value: &Value, is_right: bool| {
                let said = file.said(&place, setting.key, Some(value));
                if files::refuses(&said, &path) == is_right {
                    findings.push(format!("{path} = {value} is {}: {said}", if is_right { "refused" } else { "read" }));
                }
            };
            right(setting.kind).iter().for_each(|value| hold(value, true));
            beyond(setting.kind).iter().chain(&wrong_type(setting.kind)).for_each(|value| hold(value, false));
        }
    }
    assert_none(&findings);
}

/// Readers that several tables share ask for keys that not all of them have only where these are there; else they panic.
#[test]
fn whatever_is_written_together_is_read_or_refused() {
    for file in FILES {
        for place in files::places(file.top) {
            let settings = place.part.settings.iter().map(|setting| (setting.key, right(setting.kind)));
            let settings: Vec<(&str, Vec<Value>)> = settings.filter(|(_, values)| !values.is_empty()).collect();
            let all: Vec<(&str, Value)> = settings.iter().map(|(key, values)| (*key, values[0].clone())).collect();
            for (key, values) in &settings {
                for value in values {
                    let own = (*key, value.clone());
                    let beside = |other: &(&str, Value)| file.said_of(&place, &[own.clone(), other.clone()]);
                    let others: Vec<&(&str, Value)> = all.iter().filter(|(other, _)| other != key).collect();
                    others.iter().for_each(|other| assert!(!beside(other).is_empty(), "{key}"));
                    let together: Vec<(&str, Value)> = [own].into_iter().chain(others.into_iter().cloned()).collect();
                    assert!(!file.said_of(&place, &together).is_empty());
                }
            }
        }
    }
}

#[test]
fn every_row_is_read() {
    let mut findings = Vec::new();
    for file in FILES {
        for (place, setting) in all(file) {
            let without = file.said(&place, setting.key, None);
            let is_read = others(setting).iter().any(|value| file.said(&place, setting.key, Some(value)) != without);
            if !is_read {
                findings.push(format!("{} changes nothing: {without}", place.part.path(setting.key)));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn the_default_of_a_row_is_what_holds_without_it() {
    let mut findings = Vec::new();
    for file in FILES {
        for (place, setting) in all(file) {
            let Some(value) = default(setting) else { continue };
            let with = file.said(&place, setting.key, Some(&value));
            let without = file.said(&place, setting.key, None);
            if with != without {
                findings.push(format!("{} = {value}:\n  {with}\n  {without}", place.part.path(setting.key)));
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn what_has_no_row_is_refused() {
    for file in FILES {
        for place in files::places(file.top) {
            let said = file.said(&place, "zzzzzz", Some(&1.into()));
            assert!(said.contains("unknown key \"zzzzzz\""), "{}: {said}", place.part.name);
        }
    }
}

#[test]
fn a_schema_takes_what_a_row_allows_and_refuses_what_it_does_not() {
    let mut findings = Vec::new();
    for (file, what) in FILES.into_iter().zip([Described::Study, Described::Recorder]) {
        let schema = Checked::of(what);
        for (place, setting) in all(file) {
            let path = place.part.path(setting.key);
            for value in right(setting.kind).into_iter().chain(default(setting)) {
                let document = file.document(&place, setting.key, Some(&value));
                findings.extend(schema.wrong(&document).map(|wrong| format!("{path} = {value}: {wrong}")));
            }
            // The ends of what is written as text are the reader's to know, and numbers beyond 2^53 are no JSON.
            let is_told = |value: &Value| match setting.kind {
                Kind::OneOf(_) | Kind::Listed(_) => true,
                _ => !value.is_str() && value.as_integer().is_none_or(|number| number <= 1 << 53),
            };
            for value in beyond(setting.kind).into_iter().filter(is_told).chain(wrong_type(setting.kind)) {
                let document = file.document(&place, setting.key, Some(&value));
                if schema.wrong(&document).is_none() {
                    findings.push(format!("{path} = {value} is valid by the schema"));
                }
            }
        }
    }
    assert_none(&findings);
}

#[test]
fn factors_are_what_has_a_value_in_a_case() {
    let study = files::study("name = \"s\"\n").unwrap();
    let known = files::STUDY_FILE.top.factors();
    assert!(known.len() > 100, "{}", known.len());
    for (name, _) in known {
        let said = files::study(&format!("[factors]\n\"{name}\" = []\n")).unwrap_err();
        assert!(said.contains(&format!("factor {name} has no levels")), "{said}");
        if let Some(value) = loadline::study::setting_value(&study.base, &name) {
            assert!(!value.is_array() && !value.is_object(), "{name}: {value}");
        }
    }
    for name in ["record.runs", "load.trace", "workload.explain", "repeat.least", "goal.below"] {
        let said = files::study(&format!("[factors]\n\"{name}\" = [1]\n")).unwrap_err();
        assert!(said.contains("unknown setting"), "{name}: {said}");
    }
}

#[test]
fn what_is_made_without_a_file_has_the_defaults_of_the_rows() {
    let base = |text: &str| files::study(text).unwrap().base;
    let blocks =
        "[database]\nname = \"mariadb\"\n[record]\ntype = \"violation\"\n[recorder]\npath = \"ftp\"\n[blocks]\n";
    assert_eq!(base(blocks).blocks, Some(BlocksSettings::default()));
    let freshness =
        "[workload]\nname = \"freshness\"\n[layout]\nname = \"wide\"\n[load]\narrivals = \"poisson\"\nrate = 1\n";
    assert_eq!(base(freshness).freshness, Some(FreshnessSettings::default()));
    assert_eq!(base("").record.usertable, UsertableSettings::default());
    assert_eq!(base("").workload.ycsb, YcsbSettings::default());
    let recorder = "[database]\npath = \"m.db\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n";
    assert_eq!(config::read(recorder, "c.toml").unwrap().limits, LineBounds::default());
}

#[test]
fn shares_have_a_row_for_each_part() {
    let keys = |part: &str| -> Vec<&str> {
        let place = files::places(files::STUDY_FILE.top).into_iter().find(|place| place.part.name == part);
        place.unwrap().part.keys().collect()
    };
    assert_eq!(keys("workload.mix"), MIX_PARTS);
    assert_eq!(keys("workload.ycsb")[..SHARES.len()], SHARES);
}

#[test]
fn bundled_studies_and_examples_of_the_documentation_are_valid() {
    let (study, recorder) = (Checked::of(Described::Study), Checked::of(Described::Recorder));
    let other = Checked::of(Described::OtherRecorder);
    let mut findings: Vec<String> = Vec::new();
    for bundled in loadline::study::BUNDLED {
        let wrong = study.wrong(&schemas::json_of(bundled.text));
        findings.extend(wrong.map(|wrong| format!("{}: {wrong}", bundled.name)));
    }
    let examples = schemas::examples();
    assert!(examples.len() > 20, "{} examples were found", examples.len());
    for (place, text) in examples {
        let document = schemas::json_of(&text);
        let keys: Vec<&str> = document.as_object().unwrap().keys().map(String::as_str).collect();
        // Telegraf's configuration is TOML too.
        if keys == ["outputs"] {
            continue;
        }
        let (of_recorder, of_study) = (files::RECORDER_CONFIG.top, files::STUDY_FILE.top);
        let is_other = keys.contains(&"command");
        let is_recorder = keys.iter().any(|key| of_recorder.find(key).is_some() && of_study.find(key).is_none());
        // Both files have a table of this name, and nothing else tells which one the example is of.
        let is_either = keys == ["retention"];
        let schema = if is_other {
            &other
        } else if is_recorder || (is_either && study.wrong(&document).is_some()) {
            &recorder
        } else {
            &study
        };
        findings.extend(schema.wrong(&document).map(|wrong| format!("{place}: {wrong}")));
    }
    assert_none(&findings);
}

#[test]
fn wrong_files_are_not_valid() {
    let (study, recorder) = (Checked::of(Described::Study), Checked::of(Described::Recorder));
    for text in [
        "nam = \"x\"",
        "[load]\ncleints = 4",
        "[load]\nclients = 0",
        "[load]\nclients = \"4\"",
        "[load]\nduration = 5",
        "[load]\nduration = \"0s\"",
        "[load]\nduration = \"soon\"",
        "[load]\narrivals = \"poison\"",
        "[layout]\nname = \"stra\"",
        "[disk]\nblock = \"1 MiBs\"",
        "[link]\nhosts = \"all\"",
        "[goal]\nquantile = 0.9",
        "[workload]\nqueries = [ { where = \"a > 1\" } ]",
        "[workload]\nmix = { selects = 1 }",
        "[workload.ycsb]\nreads = 1",
        "[factors]\n\"load.clients\" = [1, \"two\"]",
        "[factors]\n\"load.clients\" = 4",
        "[factors]\n\"load.clients\" = []",
        "[factors]\n\"load.cleints\" = [1]",
        "[factors]\n\"record.runs\" = [1]",
        "[factors]\nload.clinets = [1]",
        "[record]\nvalues = [ { name = \"a\", kind = \"float\", fill = { gauss = [1, 2] } } ]",
        "[record]\nruns = [ [1] ]",
        "[[claims]]\nmetric = \"throughput\"",
        "[[claims]]\nsays = \"a\"\nmetric = \"throughputs\"",
        "[intake.http]\nlisten = \"127.0.0.1:8086\"",
    ] {
        assert!(study.wrong(&schemas::json_of(text)).is_some(), "valid: {text}");
    }
    for text in [
        "[intake.http]\ntokens = []",
        "[intake.htp]\nlisten = \"127.0.0.1:8086\"",
        "[spool]\nbound = \"much\"",
        "[writer]\ncount = 17",
        "[[access]]\nname = \"a\"",
        "[log]\nlevel = \"loud\"",
        "[load]\nclients = 4",
    ] {
        assert!(recorder.wrong(&schemas::json_of(text)).is_some(), "valid: {text}");
    }
}

#[test]
fn results_are_valid_and_every_field_of_them_is_described() {
    let schema = Checked::new(&schemas::closed(&schema::document(Described::Results)));
    let mut findings: serde_json::Value = serde_json::from_str(include_str!("golden/report-findings.json")).unwrap();
    assert_eq!(schema.wrong(&serde_json::json!({ "version": 1, "runs": [findings, findings] })), None, "two runs");
    assert!(schema.wrong(&findings).is_some(), "a document has a version");
    findings["version"] = 1.into();
    assert_eq!(schema.wrong(&findings), None);
    for (field, value) in [("valid", "yes"), ("seed", "1"), ("unheard_of", "1")] {
        let mut wrong = findings.clone();
        wrong[field] = value.into();
        assert!(schema.wrong(&wrong).is_some(), "{field}");
    }
}

#[test]
fn the_reference_page_is_what_the_tables_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference.md");
    let page = schema::reference();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let first = page.lines().zip(written.lines()).find(|(now, before)| now != before);
    let remedy = "write it anew with UPDATE_GOLDEN=1 cargo test --test settings, and read what changed";
    assert!(page == written, "docs/reference.md is not what the tables say: {first:?}; {remedy}");
}

#[test]
fn every_row_says_what_it_is_in_a_sentence() {
    for file in FILES {
        for place in files::places(file.top) {
            assert!(place.part.help.ends_with(['.', ')']), "{}: {}", place.part.name, place.part.help);
            for setting in place.part.settings {
                let path = place.part.path(setting.key);
                let begins = setting.help.starts_with(|first: char| first.is_uppercase() || first == '`');
                assert!(begins && setting.help.ends_with(['.', '_']), "{path}: {}", setting.help);
                assert!(place.part.settings.iter().filter(|other| other.key == setting.key).count() == 1, "{path}");
            }
        }
    }
}
