//! Modules that import each other in a circle. Main function: [`circles`].
//!
//! A file is a module; what stands in `mod.rs` belongs to the folder, and a folder and what is in it may know each other. Tests within a file, and files
//! of tests, are left out.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Source, is_word};

/// Who imports whom, by paths as in `report::html`.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// All circles, each as its modules in their order.
pub fn circles(sources: &[Source]) -> Vec<Vec<String>> {
    let imports = imports(sources);
    let reached: BTreeMap<&String, BTreeSet<&String>> =
        imports.keys().map(|module| (module, reached_from(module, &imports))).collect();
    let mut found: BTreeSet<Vec<String>> = BTreeSet::new();
    for (module, others) in reached.iter().filter(|(module, others)| others.contains(*module)) {
        let with = others.iter().filter(|other| reached.get(**other).is_some_and(|back| back.contains(*module)));
        found.insert(with.map(|other| (*other).clone()).collect());
    }
    found.into_iter().collect()
}

fn reached_from<'a>(module: &str, imports: &'a Imports) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&String> = imports.get(module).into_iter().flatten().collect();
    while let Some(other) = next.pop() {
        if reached.insert(other) {
            next.extend(imports.get(other).into_iter().flatten());
        }
    }
    reached
}

fn imports(sources: &[Source]) -> Imports {
    let modules: BTreeMap<String, &str> =
        sources.iter().filter_map(|source| Some((module_of(&source.path)?, without_tests(source)))).collect();
    let of = |(own, code): (&String, &&str)| {
        let paths = paths(code).into_iter().filter_map(|path| resolved(own, &path, &modules));
        let apart = |other: &String| !is_within(own, other) && !is_within(other, own);
        (own.clone(), paths.filter(apart).collect())
    };
    modules.iter().map(of).collect()
}

/// The module that a file is; none for roots of crates, tests and benches.
fn module_of(path: &str) -> Option<String> {
    let of_crate = path.strip_prefix("crates/").and_then(|rest| Some(rest.split_once('/')?.1));
    let rest = of_crate.unwrap_or(path).strip_prefix("src/")?.strip_suffix(".rs")?;
    let rest = rest.strip_suffix("/mod").unwrap_or(rest);
    let is_test = rest.ends_with("tests") || rest.ends_with("fuzzed");
    (!is_test && !["lib", "main"].contains(&rest)).then(|| rest.replace('/', "::"))
}

fn without_tests(source: &Source) -> &str {
    source.code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default()
}

fn is_within(module: &str, folder: &str) -> bool {
    module.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The module that a path from within another one leads to.
fn resolved(own: &str, path: &[String], modules: &BTreeMap<String, &str>) -> Option<String> {
    let ups = path.iter().take_while(|step| *step == "super").count();
    let own: Vec<&str> = own.split("::").collect();
    let from = if path[0] == "crate" { &[][..] } else { own.get(..own.len().checked_sub(ups)?)? };
    let rest = path[ups.max(1)..].iter().map(String::as_str);
    let whole: Vec<&str> = from.iter().copied().chain(rest).collect();
    (1..=whole.len()).rev().map(|length| whole[..length].join("::")).find(|name| modules.contains_key(name))
}

/// All paths that begin with `crate::` or `super::`, those within braces apart.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = &code[..at];
            // `super::super::` begins with the first.
            if !before.ends_with(is_word) && !before.ends_with("::") && !before.ends_with('$') {
                read_tree(&code[at..], &mut Vec::new(), &mut found);
            }
        }
    }
    found
}

/// Reads `a::b` or `a::{b, c::d}`; what is left behind it.
fn read_tree<'a>(code: &'a str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let length = before.len();
    let mut rest = code;
    loop {
        let end = rest.find(|character| !is_word(character)).unwrap_or(rest.len());
        before.push(rest[..end].to_owned());
        rest = &rest[end..];
        let Some(next) = rest.strip_prefix("::") else { break };
        if let Some(mut inner) = next.strip_prefix('{') {
            loop {
                inner = inner.trim_start_matches(|character: char| character.is_whitespace() || character == ',');
                if inner.is_empty() || inner.starts_with('}') {
                    before.truncate(length);
                    return inner.strip_prefix('}').unwrap_or(inner);
                }
                let left = read_tree(inner, before, found);
                // A name behind `as`, and whatever else stands before the next member.
                let end = left.find([',', '}']).unwrap_or(left.len());
                inner = if left.len() < inner.len() { &left[end..] } else { "" };
            }
        }
        if !next.starts_with(is_word) {
            break;
        }
        rest = next;
    }
    found.push(before.clone());
    before.truncate(length);
    rest
}
