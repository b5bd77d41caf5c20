//! The rules. Each takes a file and gives its findings.

use crate::source::{Source, is_word};

/// The layers of ARCHITECTURE.md, the highest first. A module imports modules of lower layers.
const LAYERS: &[&[&str]] = &[
    &["main", "lib"],
    &["cli", "fuzzing"],
    &["commands"],
    &["agent"],
    &["runner"],
    &["load", "recorder"],
    &["server", "link", "monitor", "store", "report", "import", "draft"],
    &["study"],
    &["metric"],
    &["database"],
    &["segments", "mount"],
    &["disk"],
    &["workload", "layout", "block", "data"],
    &["scoring", "sizing", "queueing", "statistics", "written"],
    &[
        "finding",
        "file",
        "csv",
        "fuzzed",
        "measurement",
        "trace",
        "trial",
        "statement",
        "operation",
        "query",
        "question",
        "fault",
        "quote",
        "record",
        "histogram",
        "imported",
        "random",
        "reason",
        "said",
        "units",
    ],
];

/// What may be imported within a layer: reports read what is stored; a link's
/// daemons are started as servers are; fits use the distributions of statistics; a workload is
/// laid out over its data; the vocabulary is one.
const WITHIN: &[(&[&str], &[&str])] = &[
    (&["commands"], &["commands", "cli"]),
    (&["report"], &["store"]),
    (&["link"], &["server"]),
    (&["queueing", "scoring"], &["statistics"]),
    (&["workload", "layout", "block", "data"], &["workload", "layout", "data"]),
    (LAYERS[14], LAYERS[14]),
];

/// Where what is observed and what is found is described.
const FOUND_IN: [&str; 4] = ["finding", "measurement", "reason", "said"];

/// Lists of texts there that are no sentences: statements, names of files, words of a command, names of alternatives.
const TEXTS: [&str; 8] = ["statements", "command", "cases", "queries", "equal", "undecided", "may_be", "plans"];

/// Members that would be sentences if they were texts.
const SENTENCES: [&str; 8] =
    ["verdict", "verdicts", "note", "notes", "outcome", "because", "invalid_because", "remarks"];

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;

/// Banned in any part of an identifier, and what to write instead.
const BANNED_PARTS: &[(&str, &str)] = &[
    ("latency", "say which time (response, residence, lag)"),
    ("latencies", "say which times (response, residence, lag)"),
    ("manager", "say what it does"),
    ("helper", "say what it does"),
    ("helpers", "say what they do"),
];

/// Banned as a whole identifier or the name of a file.
const BANNED_NAMES: &[(&str, &str)] = &[
    ("util", "say what it is for"),
    ("utils", "say what it is for"),
    ("common", "say what it is for"),
    ("imp", "say what it is for"),
    ("misc", "say what it is for"),
];

/// The path of a file below the `src` of its crate; none for tests and benches.
fn below_src(path: &str) -> Option<&str> {
    let of_crate = path.strip_prefix("crates/").and_then(|rest| Some(rest.split_once('/')?.1));
    of_crate.unwrap_or(path).strip_prefix("src/")
}

/// The top-level module of the library that a file belongs to; none for tests and benches.
fn module(path: &str) -> Option<&str> {
    let first = below_src(path)?.split('/').next()?;
    Some(first.strip_suffix(".rs").unwrap_or(first))
}

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&module))
}

/// Imports point down.
pub fn layers(source: &Source) -> Vec<String> {
    let Some(own) = module(&source.path) else { return Vec::new() };
    let may_import = |other: &str| {
        let within = WITHIN.iter().any(|(from, to)| from.contains(&own) && to.contains(&other));
        other == own || within || layer(own) < layer(other)
    };
    imports(source)
        .into_iter()
        .filter(|(_, other)| layer(other).is_some() && !may_import(other))
        .map(|(at, other)| {
            let what =
                format!("{own} may not import {other}, which is not below it; see the layers in ARCHITECTURE.md");
            source.at(at, &what)
        })
        .collect()
}

/// Every module of the library that a file names by path, with the place.
fn imports(source: &Source) -> Vec<(usize, String)> {
    let code = source.code.as_str();
    let mut roots = vec!["crate::"];
    if source.path.ends_with("/mod.rs") || below_src(&source.path).is_some_and(|rest| !rest.contains('/')) {
        roots.push("super::");
    }
    let mut found = Vec::new();
    for root in roots {
        for (at, _) in code.match_indices(root) {
            if code[..at].ends_with(is_word) || (root == "crate::" && code[..at].ends_with('$')) {
                continue;
            }
            let from = at + root.len();
            match code[from..].strip_prefix('{') {
                Some(_) => group_members(code, from + 1, &mut found),
                None => found.push((at, code[from..].chars().take_while(|c| is_word(*c)).collect())),
            }
        }
    }
    found
}

/// The first word of each member of `{a, b::c, d::{e, f}}`, from behind the opening brace.
fn group_members(code: &str, from: usize, found: &mut Vec<(usize, String)>) {
    let mut depth = 0_usize;
    let mut is_first = true;
    for (at, character) in code[from..].char_indices() {
        match character {
            '{' => depth += 1,
            '}' if depth == 0 => return,
            '}' => depth -= 1,
            ',' if depth == 0 => is_first = true,
            _ if depth == 0 && is_first && is_word(character) => {
                let word = code[from + at..].chars().take_while(|c| is_word(*c)).collect();
                found.push((from + at, word));
                is_first = false;
            }
            _ => {}
        }
    }
}

/// A module that has no layer would not be checked.
pub fn known_modules(source: &Source) -> Vec<String> {
    match module(&source.path) {
        Some(module) if layer(module).is_none() => {
            vec![source.at(0, &format!("module {module} has no layer; give it one in tests/tidy/rules.rs"))]
        }
        _ => Vec::new(),
    }
}

/// Files and functions are short.
pub fn sizes(source: &Source) -> Vec<String> {
    let mut findings = Vec::new();
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        let what = format!("the file has {lines} lines; at most {FILE_LINES_MAX}, split it along a real seam");
        findings.push(format!("{}:{lines}: {what}", source.path));
    }
    let mut words = source.words().peekable();
    while let Some((at, word)) = words.next() {
        let Some((_, name)) = words.peek().filter(|_| word == "fn") else { continue };
        let Some(end) = function_end(&source.code[at..]) else { continue };
        let lines = 1 + source.code[at..at + end].matches('\n').count();
        if lines > FUNCTION_LINES_MAX {
            let most = format!("at most {FUNCTION_LINES_MAX}, split it along a real seam");
            findings.push(source.at(at, &format!("function {name} has {lines} lines; {most}")));
        }
    }
    findings
}

/// Where the function that begins here ends; none when it has no body, as in a trait or a type.
fn function_end(code: &str) -> Option<usize> {
    let mut brackets = 0_i32;
    let mut braces = 0_i32;
    for (at, character) in code.char_indices() {
        match character {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets -= 1,
            // The type of a function pointer ends where what surrounds it does.
            _ if brackets < 0 => return None,
            '{' => braces += 1,
            '}' => {
                braces -= 1;
                if braces <= 0 {
                    return (braces == 0).then_some(at);
                }
            }
            ';' | ',' | '=' if braces == 0 && brackets == 0 && is_outside_generics(&code[..at]) => return None,
            _ => {}
        }
    }
    None
}

/// Whether a comma or equals sign stands outside `<...>`: there are as many closing as opening ones, arrows apart.
fn is_outside_generics(before: &str) -> bool {
    before.matches('<').count() <= before.replace("->", "").replace("=>", "").matches('>').count()
        && !before.contains("where")
}

/// What is found is a value with figures, and no sentence: whoever decides by it would have to take the sentence apart.
pub fn findings(source: &Source) -> Vec<String> {
    if !module(&source.path).is_some_and(|module| FOUND_IN.contains(&module)) {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut begin = 0;
    for line in source.code.split_inclusive('\n') {
        let (at, text) = (begin, line.trim().trim_start_matches("pub "));
        begin += line.len();
        let Some((name, kind)) = text.split_once(": ") else { continue };
        let is_member = !name.is_empty() && name.chars().all(is_word) && kind.ends_with(',');
        let is_list = kind.contains("Vec<String>") && !TEXTS.contains(&name);
        let is_sentence = kind.contains("String") && SENTENCES.contains(&name);
        if is_member && (is_list || is_sentence) {
            let what =
                format!("{name} would be sentences; make it an enum with its figures and a sentence made of them");
            found.push(source.at(at, &what));
        }
    }
    found
}

/// Where nothing may read a clock or wait by one that it was not given: a simulator gives its own.
const TIME_IS_GIVEN: [&str; 5] = ["spool/", "writer/", "admission/", "stop.rs", "progress.rs"];
/// What reads a clock, or waits by one.
const TIME_TAKEN: [&str; 6] =
    ["Instant::now", "SystemTime::now", "thread::sleep", ".elapsed()", "clock::now_ns", "MachineClock"];

/// Clocks that are taken where they are to be given.
pub fn clocks(source: &Source) -> Vec<String> {
    let rest = source.path.strip_prefix("crates/recorder/src/recorder/").unwrap_or_default();
    let is_test = rest.ends_with("tests.rs") || rest.contains("simulat") || rest.ends_with("fuzzed.rs");
    if is_test || !TIME_IS_GIVEN.iter().any(|room| rest.starts_with(room)) {
        return Vec::new();
    }
    let code = source.code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let taken = |what: &'static str| code.find(what).map(|at| (at, what));
    let shown = |(at, what): (usize, &str)| {
        source.at(
            at,
            &format!("{what} takes a time; go by the clock that is given, so that a simulator can give its own"),
        )
    };
    TIME_TAKEN.into_iter().filter_map(taken).map(shown).collect()
}

/// Banned words.
pub fn words(source: &Source) -> Vec<String> {
    let stem = source.path.rsplit('/').next().and_then(|file| file.strip_suffix(".rs")).unwrap_or_default();
    let file = std::iter::once((0, stem));
    file.chain(source.words())
        .filter_map(|(at, word)| {
            let (banned, instead) = banned(word)?;
            Some(source.at(at, &format!("\"{banned}\" is banned ({word}); {instead}")))
        })
        .collect()
}

fn banned(identifier: &str) -> Option<(&'static str, &'static str)> {
    let parts = parts(identifier);
    let part = BANNED_PARTS.iter().find(|(banned, _)| parts.iter().any(|part| part == banned));
    part.or_else(|| BANNED_NAMES.iter().find(|(banned, _)| *banned == identifier)).copied()
}

/// The words of an identifier in lower case: `TrialManager` and `trial_manager` are `trial`, `manager`.
fn parts(identifier: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut was_lower = false;
    for character in identifier.chars() {
        if character == '_' || (character.is_uppercase() && was_lower) {
            parts.push(String::new());
        }
        was_lower = character.is_lowercase() || character.is_ascii_digit();
        if character != '_' {
            parts.last_mut().expect("there is one from the start").extend(character.to_lowercase());
        }
    }
    parts
}

/// Every file of the library, and every test, says at its top what it is for, in more than a word or two.
pub fn documentation(source: &Source) -> Vec<String> {
    match source.text.lines().next().and_then(|line| line.strip_prefix("//! ")) {
        Some(purpose) if purpose.split_whitespace().count() >= 3 => Vec::new(),
        Some(purpose) => {
            vec![source.at(0, &format!("\"{purpose}\" does not say what the file is for; write a sentence"))]
        }
        None => vec![source.at(0, "the file does not begin with //!; say what it is for")],
    }
}
