//! The project's own rules, checked by machine: layers, sizes, banned words, module documentation. Each finding names the
//! file, the line and what to do.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "tidy/circles.rs"]
mod circles;
#[path = "tidy/rules.rs"]
mod rules;
#[path = "tidy/source.rs"]
mod source;

use std::path::{Path, PathBuf};

use source::Source;

/// All Rust files of the package, with their path below its root.
fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    ["src", "crates", "simulator", "tests", "benches"]
        .iter()
        .for_each(|directory| collect(&root.join(directory), &mut paths));
    paths.sort();
    let read = |path: &PathBuf| {
        let shown = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        Source::new(&shown, &std::fs::read_to_string(path).unwrap())
    };
    paths.iter().map(read).collect()
}

fn collect(directory: &Path, paths: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
}

fn assert_tidy(rule: fn(&Source) -> Vec<String>) {
    let sources = sources();
    assert!(sources.len() > 10, "the sources were not found");
    let findings: Vec<_> = sources.iter().flat_map(rule).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

#[test]
fn imports_point_down_the_layers() {
    assert_tidy(rules::layers);
}

#[test]
fn every_module_has_its_place_in_the_layers() {
    assert_tidy(rules::known_modules);
}

#[test]
fn files_and_functions_are_short() {
    assert_tidy(rules::sizes);
}

#[test]
fn banned_words_do_not_occur() {
    assert_tidy(rules::words);
}

#[test]
fn every_file_says_what_it_is_for() {
    assert_tidy(rules::documentation);
}

#[test]
fn what_is_found_is_no_sentence() {
    assert_tidy(rules::findings);
}

#[test]
fn the_recorder_takes_no_time_where_it_is_given() {
    assert_tidy(rules::clocks);
}

#[test]
fn modules_import_each_other_in_no_circle() {
    let found = circles::circles(&sources());
    assert!(found.is_empty(), "what these share belongs below them, in a file that both import: {found:#?}");
}

mod checker {
    use super::*;

    fn findings(rule: fn(&Source) -> Vec<String>, path: &str, text: &str) -> Vec<String> {
        rule(&Source::new(path, text))
    }

    #[test]
    fn imports_that_point_up_are_found_in_every_form() {
        let upwards = [
            "use crate::load::drive;",
            "use crate::{record::Cells, load::{drive, Tally}};",
            "use crate::{\n    record::Cells,\n    load,\n};",
            "fn f() { crate::load::drive() }",
            "pub use crate::load;",
        ];
        for text in upwards {
            let found = findings(rules::layers, "src/data/qos.rs", text);
            assert_eq!(found.len(), 1, "{text}: {found:?}");
            assert!(found[0].contains("data may not import load"), "{found:?}");
        }
        let second_line = findings(rules::layers, "src/units.rs", "\nuse crate::study::Study;\n");
        assert_eq!(
            second_line,
            ["src/units.rs:2: units may not import study, which is not below it; see the layers in ARCHITECTURE.md"]
        );
        assert_eq!(findings(rules::layers, "src/statistics/mod.rs", "use super::report::Table;").len(), 1);
    }

    #[test]
    fn imports_that_point_down_comments_and_texts_are_no_findings() {
        let allowed = [
            "use crate::record::{Cells, Cell};",
            "use crate::workload::Work;",
            "//! [`crate::load`]\n/* crate::load */",
            "const A: &str = \"crate::load\";",
            "const A: &str = r#\"\" crate::load\"#;",
            "use super::qos::Qos;\nuse crate::data::Filler;",
        ];
        for text in allowed {
            assert_eq!(findings(rules::layers, "src/data/qos.rs", text), [""; 0], "{text}");
        }
        assert_eq!(findings(rules::layers, "src/commands/run.rs", "use crate::load::drive;"), [""; 0]);
        assert_eq!(findings(rules::layers, "src/recorder/mod.rs", "use crate::load::drive;").len(), 1);
    }

    #[test]
    fn a_module_without_a_layer_is_found() {
        let found = findings(rules::known_modules, "src/wisdom/mod.rs", "");
        assert_eq!(found, ["src/wisdom/mod.rs:1: module wisdom has no layer; give it one in tests/tidy/rules.rs"]);
    }

    #[test]
    fn long_files_and_functions_are_found_by_line() {
        let body = "    let x = \"}\"; // }\n".repeat(69);
        let text = format!("fn short() {{}}\n\npub fn long<'a>(x: &'a [u8; 3]) -> char {{\n{body}    '{{'\n}}\n");
        let found = findings(rules::sizes, "src/units.rs", &text);
        assert_eq!(found, ["src/units.rs:3: function long has 72 lines; at most 70, split it along a real seam"]);
        let one_less = text.replacen("    let x = \"}\"; // }\n", "", 2);
        assert_eq!(findings(rules::sizes, "src/units.rs", &one_less), [""; 0]);
        let found = findings(rules::sizes, "src/units.rs", &"\n".repeat(501));
        assert_eq!(found, ["src/units.rs:501: the file has 501 lines; at most 500, split it along a real seam"]);
    }

    #[test]
    fn banned_words_are_found_in_identifiers_only() {
        let text =
            "//! latency Manager\nlet p99_latency_ns = \"latency\";\nstruct TrialManager; mod utils; fn common() {}\n";
        assert_eq!(
            findings(rules::words, "src/units.rs", text),
            [
                "src/units.rs:2: \"latency\" is banned (p99_latency_ns); say which time (response, residence, lag)",
                "src/units.rs:3: \"manager\" is banned (TrialManager); say what it does",
                "src/units.rs:3: \"utils\" is banned (utils); say what it is for",
                "src/units.rs:3: \"common\" is banned (common); say what it is for",
            ]
        );
        assert_eq!(findings(rules::words, "src/helpers.rs", "").len(), 1);
        assert_eq!(findings(rules::words, "src/units.rs", "let common_prefix = impl_block;"), [""; 0]);
    }

    #[test]
    fn sentences_in_the_place_of_figures_are_found() {
        let text = "/// Why.\npub struct A {\n    pub reasons: Vec<String>,\n    pub statements: Vec<String>,\n    outcome: Option<String>,\n}\n";
        assert_eq!(
            findings(rules::findings, "src/finding/claim.rs", text),
            [
                "src/finding/claim.rs:3: reasons would be sentences; make it an enum with its figures and a sentence made of them",
                "src/finding/claim.rs:5: outcome would be sentences; make it an enum with its figures and a sentence made of them",
            ]
        );
        let allowed = "fn shown(texts: &[String]) -> Vec<String> {\n    let all: Vec<String> = f();\n}\npub struct B {\n    pub note: Note,\n}\n";
        assert_eq!(findings(rules::findings, "src/measurement.rs", allowed), [""; 0]);
        assert_eq!(findings(rules::findings, "src/report/terminal.rs", text), [""; 0], "reports write sentences");
    }

    #[test]
    fn clocks_that_are_taken_are_found_but_for_those_of_tests() {
        let text = "fn f() {\n    let a = Instant::now();\n}\n#[cfg(test)]\nmod tests { fn g() { thread::sleep(d); } }";
        let room = "crates/recorder/src/recorder/writer";
        let says = "takes a time; go by the clock that is given, so that a simulator can give its own";
        let found = findings(rules::clocks, &format!("{room}/lane.rs"), text);
        assert_eq!(found, [format!("{room}/lane.rs:2: Instant::now {says}")]);
        assert_eq!(findings(rules::clocks, &format!("{room}/opening_tests.rs"), text), [""; 0]);
        assert_eq!(findings(rules::clocks, "crates/recorder/src/recorder/clock.rs", text), [""; 0]);
        assert_eq!(
            findings(rules::clocks, &format!("{room}/lane.rs"), "let a = clock.since(b); thread::sleep(c);").len(),
            1
        );
    }

    #[test]
    fn files_without_documentation_are_found() {
        let found = findings(rules::documentation, "src/data/mod.rs", "\nuse std::io;\n");
        assert_eq!(found, ["src/data/mod.rs:1: the file does not begin with //!; say what it is for"]);
        assert_eq!(findings(rules::documentation, "src/data/mod.rs", "//! Data.\n").len(), 1, "a stub");
        let whole = "//! Records and how they are made.\n";
        assert_eq!(findings(rules::documentation, "src/data/mod.rs", whole), [""; 0]);
    }

    #[test]
    fn a_circle_is_found_whatever_form_its_imports_have() {
        let files = [
            ("crates/a/src/room/mod.rs", "pub mod one; pub mod two; pub mod three; pub use one::One;"),
            ("crates/a/src/room/one.rs", "use super::{two::{Two, Other as O}, six::Six};\npub struct One;"),
            ("crates/a/src/room/two.rs", "fn f() { crate::room::three::g(); }"),
            ("crates/a/src/room/three.rs", "use crate::{units, room::{four, one::One}};"),
            (
                "crates/a/src/room/four.rs",
                "// use super::one::One;\n#[cfg(test)]\nmod tests { use super::super::one::One; }",
            ),
            ("crates/a/src/room/five.rs", "use super::one::One;\nuse crate::room::Room;"),
        ];
        let sources: Vec<_> = files.iter().map(|(path, text)| Source::new(path, text)).collect();
        assert_eq!(circles::circles(&sources), [["room::one", "room::three", "room::two"]]);
    }
}
