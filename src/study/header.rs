//! Reads the top of a study file, `[repeat]` and `[goal]`.
//!
//! Main functions: [`read_header`], [`read_repeat`], [`read_goal`]. Invariant: a rule that was read has `least <=
//! most`.

use super::place::Errors;
use super::section::Section;
use super::tree::Table;
use super::{Goal, Repeat, RepeatRule};

/// Keys at the top of a study file.
pub const TOP_KEYS: &[&str] = &[
    "name",
    "question",
    "source",
    "database",
    "record",
    "layout",
    "workload",
    "load",
    "background",
    "freshness",
    "link",
    "disk",
    "recorder",
    "blocks",
    "factors",
    "repeat",
    "goal",
    "claims",
];
const REPEAT_KEYS: &[&str] = &["rule", "within", "least", "most", "discard_first"];
const GOAL_KEYS: &[&str] = &["quantile", "below", "within"];

/// Name, question and source.
pub struct Header {
    /// Short name, used for run directories.
    pub name: String,
    /// What is to be found out; empty when the file does not say.
    pub question: String,
    /// Where the study comes from; empty when it is its own.
    pub source: String,
}

/// Reads the top of the file. A study without a name has that of its file.
pub fn read_header(root: &Table, file: &str, errors: &mut Errors) -> Header {
    let section = Section::top(root, TOP_KEYS, errors);
    let stem = std::path::Path::new(file).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let is_sign = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let default = stem.unwrap_or_default().chars().map(|c| if is_sign(c) { c } else { '-' }).collect::<String>();
    let name = section.text("name", errors).unwrap_or(&default).to_owned();
    let is_name = (1..=60).contains(&name.len()) && name.chars().all(is_sign) && !name.starts_with(['.', '-']);
    if let (false, Some(entry)) = (is_name, section.get("name")) {
        let must = "it must be 1 to 60 letters, digits and the signs - _ . and begin with a letter, a digit or _";
        errors.push(entry.node.place, format!("name is {}; {must}", entry.node));
    }
    Header {
        name: if is_name { name } else { "study".to_owned() },
        question: section.text("question", errors).unwrap_or_default().to_owned(),
        source: section.text("source", errors).unwrap_or_default().to_owned(),
    }
}

/// Reads `[repeat]`.
pub fn read_repeat(root: &Table, errors: &mut Errors) -> Repeat {
    let section = Section::open(root, "repeat", REPEAT_KEYS, errors);
    let rule = match section.one_of("rule", &["interval", "standard-error", "fixed"], errors) {
        Some("standard-error") => RepeatRule::StandardError,
        Some("fixed") => RepeatRule::Fixed,
        _ => RepeatRule::Interval,
    };
    let within = section.number("within", 1e-6..=1.0, errors).unwrap_or(0.05);
    let least = section.count("least", 1, 10_000, errors).unwrap_or(5);
    let written_most = section.count("most", 1, 10_000, errors);
    if rule != RepeatRule::Fixed && least < 2 {
        let place = section.get("least").map_or(section.place, |entry| entry.node.place);
        let remedy = "the rule needs the spread of at least 2 trials; raise it, or set rule = \"fixed\"";
        errors.push(place, format!("repeat.least is {least}; {remedy}"));
    }
    if let (Some(most), true) = (written_most, rule != RepeatRule::Fixed)
        && most < least
    {
        let entries = ["least", "most"].into_iter().filter_map(|key| section.get(key));
        let place = entries.map(|entry| entry.node.place).max().unwrap_or(section.place);
        errors.push(place, format!("repeat.most is {most} and repeat.least is {least}; raise most, or lower least"));
    }
    let most = match rule {
        RepeatRule::Fixed => least,
        RepeatRule::Interval | RepeatRule::StandardError => written_most.unwrap_or(30).max(least),
    };
    Repeat { rule, within, least, most, discard_first: section.truth("discard_first", errors).unwrap_or(false) }
}

/// Reads `[goal]`; none when there is no such table.
pub fn read_goal(root: &Table, errors: &mut Errors) -> Option<Goal> {
    let table = root.get("goal")?;
    let section = Section::open(root, "goal", GOAL_KEYS, errors);
    let below_s = section.seconds("below", errors);
    match (section.get("below"), below_s) {
        (None, _) => errors.push(table.place, "goal.below is missing; write the bound, as in below = \"100ms\""),
        (Some(entry), Some(0.0)) => {
            errors.push(entry.node.place, format!("goal.below is {}; it must be more than zero", entry.node));
        }
        _ => {}
    }
    Some(Goal {
        quantile: section.number("quantile", 0.001..=0.9999, errors).unwrap_or(0.9),
        below_s: below_s.unwrap_or(0.1),
        within: section.number("within", 1e-4..=1.0, errors).unwrap_or(0.05),
    })
}
