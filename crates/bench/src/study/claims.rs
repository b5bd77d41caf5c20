//! Reads `[[claims]]`: the claims of the study's source, in a form that can be checked.
//!
//! Main function: [`read_claims`]. Invariant: every level that a claim names is one of the study's, before `--set`
//! and `--quick` or after them.

use super::Claim;
use super::claim_table::{BOUND, CLAIM, MODEL, RATIO, RATIO_FORM};
use super::settings::{is_same_level, setting_value};
use super::table;
use super::unchecked::UncheckedFactor;
use crate::fault::fault;
use crate::study::{ClaimedBound, ClaimedModel, ClaimedRatio};
use crate::trial::{Levels, Settings};
use crate::written::closest;
use crate::written::place::{Errors, Place};
use crate::written::section::{Section, number_of};
use crate::written::tree::{Content, Entry, Node, Table};

/// The settings of the study, against which the levels of claims are checked.
pub struct Cases<'a> {
    /// The factors as written in the file.
    pub written: &'a [UncheckedFactor],
    /// The factors after `--set` and `--quick`.
    pub factors: &'a [UncheckedFactor],
    /// The settings before the factors are applied.
    pub base: &'a Settings,
}

/// A level of a claim, compared to the study.
enum Level {
    /// A level of a factor.
    Varied(serde_json::Value),
    /// The value that every case has.
    Fixed(serde_json::Value),
    /// A level of the file that `--set` or `--quick` left out; no case has it.
    LeftOut(serde_json::Value),
}

/// Reads all claims; empty if there are none.
pub fn read_claims(root: &Table, cases: &Cases, errors: &mut Errors) -> Vec<Claim> {
    let top = root.get("claims").map(|entry| &entry.node);
    match top.map(|node| &node.content) {
        None => Vec::new(),
        Some(Content::List(items)) => items.iter().filter_map(|node| read_claim(node, cases, errors)).collect(),
        Some(_) => {
            let place = root.get("claims").map_or(Place::Line(1), |entry| entry.place);
            errors.push(place, fault!("claims is no list"; "write each claim as [[claims]]"));
            Vec::new()
        }
    }
}

fn read_claim(node: &Node, cases: &Cases, errors: &mut Errors) -> Option<Claim> {
    let section = Section::of_node(node, CLAIM.name, &CLAIM, errors)?;
    if let Some(entry) = section.get("model") {
        return read_model_claim(&section, entry, cases, errors);
    }
    for (key, example) in [
        ("says", "write says = \"Three tables write slower than two\""),
        ("metric", "write metric = \"throughput\""),
        ("ratio", RATIO_FORM),
    ] {
        if section.get(key).is_none() && (key != "ratio" || section.get("bound").is_none()) {
            errors.push(section.place, fault!("a claim has no {key}"; "{example}"));
        }
    }
    let says: Option<String> = section.read("says", errors);
    let metric: Option<String> = section.read("metric", errors);
    if let (Some(entry), true) = (section.get("ratio"), section.get("bound").is_some()) {
        errors.push(entry.place, fault!("a claim has a ratio and a bound"; "write two claims"));
    }
    let ratio = section.get("ratio").and_then(|entry| read_ratio(entry, cases, errors));
    let bound = section.get("bound").and_then(|entry| read_bound(entry, cases, errors));
    (ratio.is_some() || bound.is_some()).then_some(())?;
    Some(Claim { says: says?, metric: metric?, ratio, bound, model: None })
}

/// Reads a range of the metric itself; times can be written as durations.
fn read_bound(entry: &Entry, cases: &Cases, errors: &mut Errors) -> Option<ClaimedBound> {
    let section = Section::of_node(&entry.node, BOUND.name, &BOUND, errors)?;
    let of = resolved(&[&read_levels(&section, "of", cases, errors)]).into_iter().next()?;
    let (low, high) = read_range(&section, entry.place, errors)?;
    Some(ClaimedBound { of, low, high })
}

fn read_model_claim(section: &Section, entry: &Entry, cases: &Cases, errors: &mut Errors) -> Option<Claim> {
    for key in ["metric", "ratio", "bound"] {
        if section.get(key).is_some() {
            errors.push(section.place, fault!("a claim has a model and a {key}"; "write two claims"));
        }
    }
    if section.get("says").is_none() {
        errors.push(section.place, fault!("a claim has no says"; "write says = \"Reads follow M/M/1 with a delay\""));
    }
    let says: Option<String> = section.read("says", errors);
    let model = Section::of_node(&entry.node, MODEL.name, &MODEL, errors)?;
    if model.get("name").is_none() {
        errors.push(entry.place, "claims.model has no name; write model = { name = \"mm1\", fits = true }");
    }
    let name: Option<String> = model.read("name", errors);
    let only = resolved(&[&read_levels(&model, "where", cases, errors)]);
    let fits = model.read("fits", errors);
    Some(Claim {
        says: says?,
        metric: String::new(),
        ratio: None,
        bound: None,
        model: Some(ClaimedModel { name: name?, only: only.into_iter().next()?, fits }),
    })
}

/// Returns the levels of a claim as cases have them. If a level was left out of the study, all levels of the claim are kept, so that they match no case.
fn resolved(sides: &[&[(String, Level)]]) -> Vec<Levels> {
    let keep_fixed = sides.iter().flat_map(|side| side.iter()).any(|(_, level)| matches!(level, Level::LeftOut(_)));
    let value = |level: &Level| match level {
        Level::Varied(value) | Level::LeftOut(value) => Some(value.clone()),
        Level::Fixed(value) => keep_fixed.then(|| value.clone()),
    };
    let levels = |side: &&[(String, Level)]| {
        side.iter().filter_map(|(setting, level)| Some((setting.clone(), value(level)?))).collect()
    };
    sides.iter().map(levels).collect()
}

fn read_ratio(entry: &Entry, cases: &Cases, errors: &mut Errors) -> Option<ClaimedRatio> {
    let section = Section::of_node(&entry.node, RATIO.name, &RATIO, errors)?;
    for key in ["of", "to"] {
        if section.get(key).is_none() {
            errors.push(entry.place, fault!("claims.ratio has no {key}"; "{RATIO_FORM}"));
        }
    }
    let of = read_levels(&section, "of", cases, errors);
    let to = read_levels(&section, "to", cases, errors);
    let only = read_levels(&section, "where", cases, errors);
    let best = section.read("best", errors);
    let (low, high) = read_range(&section, entry.place, errors)?;
    let mut sides = resolved(&[&of, &to, &only]).into_iter();
    let mut side = || sides.next().unwrap_or_default();
    let ratio = ClaimedRatio { of: side(), to: side(), only: side(), best, low, high };
    let is_complete = ["of", "to"].iter().all(|key| section.get(key).is_some());
    if ratio.of == ratio.to && is_complete && errors.is_empty() {
        errors.push(entry.place, fault!("of and to of a claim name the same cases"; "name a level that differs"));
    }
    Some(ratio)
}

/// Reads the range of a ratio, or of a bound, whose ends may be durations.
fn read_range(section: &Section, place: Place, errors: &mut Errors) -> Option<(f64, Option<f64>)> {
    let given: Vec<&str> = ["between", "above", "below"].into_iter().filter(|key| section.get(key).is_some()).collect();
    let name = section.name;
    let [key] = given.as_slice() else {
        let found = if given.is_empty() { "no range".to_owned() } else { given.join(" and ") };
        let remedy = "write one of between = [0.9, 1.1], above = 1.1, below = 0.9";
        errors.push(place, fault!("{name} has {found}"; "{remedy}"));
        return None;
    };
    let entry = section.get(key)?;
    match *key {
        "above" => Some((read_end(section, "above", 0.0, errors)?, None)),
        "below" => Some((0.0, Some(read_end(section, "below", 1e-9, errors)?))),
        _ => {
            let numbers: Option<Vec<f64>> =
                section.list("between", errors).iter().map(|node| number_of(node).filter(|n| n.is_finite())).collect();
            match numbers.as_deref() {
                Some(&[low, high]) if 0.0 <= low && low < high => Some((low, Some(high))),
                _ => {
                    let must = "it must be two numbers [low, high], the lower one first and not negative";
                    errors.push(entry.place, fault!("{name}.between is {}", entry.node; "{must}"));
                    None
                }
            }
        }
    }
}

/// Reads an end of a range; that of a bound can be a duration.
fn read_end(section: &Section, key: &str, least: f64, errors: &mut Errors) -> Option<f64> {
    let is_duration = matches!(section.get(key)?.node.content, Content::Text(_));
    match section.name == BOUND.name {
        false => section.given(key, errors),
        true if is_duration => section.seconds(key, errors),
        true => section.number(key, least..=1e12, errors),
    }
}

fn read_levels(ratio: &Section, key: &str, cases: &Cases, errors: &mut Errors) -> Vec<(String, Level)> {
    let Some(entry) = ratio.get(key) else { return Vec::new() };
    let Content::Table(table) = &entry.node.content else {
        let must = "it must be a table of levels { \"layout.name\" = \"star\" }";
        errors.push(entry.place, fault!("{}.{key} is {}", ratio.name, entry.node; "{must}"));
        return Vec::new();
    };
    let mut flat = Vec::new();
    flatten("", table, &mut flat);
    flat.into_iter()
        .filter_map(|(setting, entry)| Some((setting.clone(), resolve(&setting, entry, cases, errors)?)))
        .collect()
}

/// Collects dotted settings: unquoted dots make tables, which are joined again.
fn flatten<'a>(prefix: &str, table: &'a Table, out: &mut Vec<(String, &'a Entry)>) {
    for entry in &table.entries {
        let setting = format!("{prefix}{}", entry.key);
        match &entry.node.content {
            Content::Table(inner) => flatten(&format!("{setting}."), inner, out),
            _ => out.push((setting, entry)),
        }
    }
}

fn resolve(setting: &str, entry: &Entry, cases: &Cases, errors: &mut Errors) -> Option<Level> {
    let node = &entry.node;
    let Some(value) = node.to_json() else {
        errors.push(
            entry.place,
            fault!("level {setting} of a claim is {node}"; "it must be text, a number, or true or false"),
        );
        return None;
    };
    let factor = |factors: &'_ [UncheckedFactor]| -> Option<Vec<serde_json::Value>> {
        let factor = factors.iter().find(|factor| factor.setting == setting)?;
        Some(factor.levels.iter().filter_map(Node::to_json).collect())
    };
    let same = |levels: Option<Vec<serde_json::Value>>| {
        levels.unwrap_or_default().into_iter().find(|level| is_same_level(setting, level, &value))
    };
    let (now, written) = (factor(cases.factors), factor(cases.written));
    let is_factor = now.is_some() || written.is_some();
    let is_fixed =
        now.is_none() && setting_value(cases.base, setting).is_some_and(|base| is_same_level(setting, &base, &value));
    let levels = written.clone().or_else(|| now.clone()).unwrap_or_default();
    if let Some(level) = same(now) {
        return Some(Level::Varied(level));
    }
    if is_fixed {
        return Some(Level::Fixed(value));
    }
    if let Some(level) = same(written) {
        return Some(Level::LeftOut(level));
    }
    let message = if is_factor {
        let levels: Vec<String> = levels.iter().map(ToString::to_string).collect();
        fault!("{node} is no level of {setting}"; "levels: {}", levels.join(", "))
    } else if let Some(base) = setting_value(cases.base, setting) {
        fault!("{setting} is {base} in every case and not {node}"; "make it a factor, or correct the claim")
    } else {
        let factors = cases.factors.iter().map(|factor| factor.setting.as_str());
        match closest(setting, factors.chain(table::factors().iter().map(String::as_str))) {
            Some(meant) if meant != setting => {
                fault!("unknown setting \"{setting}\" in a claim"; "did you mean \"{meant}\"?")
            }
            _ => fault!("{setting} is not set in this study"; "make it a factor, or correct the claim"),
        }
    };
    errors.push(entry.place, message);
    None
}
