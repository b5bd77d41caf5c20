//! What loadline is built from: crates whose licences may be handed on with it, and no crate in two versions but those that are known.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Licences under which a crate may be a part of loadline: they ask for their text and a name, and for nothing of ours.
const LICENCES: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "IJG",
    "ISC",
    "MIT",
    "NCSA",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that are built in several versions, because those that need them do not agree yet: ring, ahash and rand; PostgreSQL's protocol and SQLite; our own decimal numbers
/// with the statistics and Parquet; derive macros.
const TWICE: [&str; 4] = ["fallible-iterator", "getrandom", "num-bigint", "syn"];

/// Name, version and licence of every crate that is in the program.
fn crates() -> BTreeSet<(String, String, String)> {
    let arguments =
        ["tree", "--locked", "--offline", "--package", "loadline", "--edges", "normal,build", "--prefix", "none"];
    let output = Command::new(env!("CARGO")).args(arguments).args(["--format", "{p}|{l}"]).output().unwrap();
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let crates: BTreeSet<_> = text
        .lines()
        .map(|line| {
            let (package, licence) = line.split_once('|').unwrap();
            let mut words = package.split_whitespace();
            let (name, version) = (words.next().unwrap(), words.next().unwrap());
            (name.to_owned(), version.to_owned(), licence.trim_end_matches(" (*)").to_owned())
        })
        .collect();
    assert!(crates.len() > 100, "{crates:?}");
    crates
}

/// Whether an expression of SPDX leaves a way that takes only the licences above. A slash is an older OR.
fn is_permitted(expression: &str) -> bool {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut place = 0;
    let permitted = one_of(&words, &mut place);
    permitted && place == words.len()
}

fn one_of(words: &[&str], place: &mut usize) -> bool {
    let mut permitted = all_of(words, place);
    while words.get(*place) == Some(&"OR") {
        *place += 1;
        permitted |= all_of(words, place);
    }
    permitted
}

fn all_of(words: &[&str], place: &mut usize) -> bool {
    let mut permitted = licence(words, place);
    while words.get(*place) == Some(&"AND") {
        *place += 1;
        permitted &= licence(words, place);
    }
    permitted
}

fn licence(words: &[&str], place: &mut usize) -> bool {
    let Some(word) = words.get(*place) else { return false };
    *place += 1;
    if *word == "(" {
        let permitted = one_of(words, place);
        *place += usize::from(words.get(*place) == Some(&")"));
        return permitted;
    }
    let mut name = (*word).to_owned();
    if words.get(*place) == Some(&"WITH") {
        name = format!("{name} WITH {}", words.get(*place + 1).unwrap_or(&""));
        *place += 2;
    }
    LICENCES.contains(&name.as_str())
}

#[test]
fn every_crate_may_be_handed_on_with_loadline() {
    let refused: Vec<_> = crates().into_iter().filter(|(_, _, licence)| !is_permitted(licence)).collect();
    assert!(
        refused.is_empty(),
        "take another crate, or find out what its licence asks for and add it to LICENCES: {refused:#?}"
    );
}

#[test]
fn no_crate_is_built_in_two_versions_but_those_that_are_known() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (name, version, _) in crates() {
        versions.entry(name).or_default().insert(version);
    }
    versions.retain(|_, versions| versions.len() > 1);
    let found: Vec<&str> = versions.keys().map(String::as_str).collect();
    assert_eq!(
        found, TWICE,
        "choose versions that agree (cargo tree --duplicates says who needs which), or keep TWICE true: {versions:?}"
    );
}

/// The newest idna_adapter brings twenty crates of Unicode's tables and the macros that make them, for names of hosts with other letters than those of
/// English. Version 1.1 understands the same names with two.
#[test]
fn names_of_hosts_bring_no_tables_that_take_a_minute_to_build() {
    let tables: Vec<_> = crates().into_iter().filter(|(name, ..)| name.starts_with("icu_")).collect();
    assert!(tables.is_empty(), "cargo update --package idna_adapter --precise 1.1.0 goes back: {tables:?}");
}

/// A section for all libraries is also one for macros and for what they consist of, which are executed only while building (decision 71).
#[test]
fn a_release_optimises_no_macros() {
    let manifest: toml::Table = include_str!("../Cargo.toml").parse().unwrap();
    let release = manifest["profile"]["release"].as_table().unwrap();
    let packages = release["package"].as_table().unwrap();
    assert!(!packages.contains_key("*") && !release.contains_key("build-override"), "{packages:?}");
    // A program whose package has a section is stripped of its symbols only if that section says so.
    assert_eq!(packages["loadline"]["strip"].as_bool(), Some(true));
    assert_eq!(packages["loadline"]["overflow-checks"].as_bool(), Some(true));
}

#[test]
fn expressions_of_licences_are_understood() {
    for permitted in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
        "Apache-2.0 WITH LLVM-exception OR X",
        "MIT AND (GPL-2.0 OR ISC)",
    ] {
        assert!(is_permitted(permitted), "{permitted}");
    }
    for refused in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "(MIT OR Apache-2.0) AND AGPL-3.0",
        "GPL-2.0 WITH Classpath-exception-2.0",
        "MIT)",
    ] {
        assert!(!is_permitted(refused), "{refused}");
    }
}
