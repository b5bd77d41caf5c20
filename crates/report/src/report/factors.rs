//! Classifies factors for reports: alternatives to choose among, and ramps along which figures are drawn.
//!
//! Main type: [`Factors`]. Invariant: every factor with at least two levels is either a choice or a ramp; a factor with a single level is
//! neither, because it was not varied.

use std::collections::HashMap;

use serde_json::Value;

use crate::study::{Factor, Study};
use crate::trial::Levels;

pub use crate::trial::{level_text, show_level, show_levels};

/// The factor of the query that is run; its levels are not alternatives, since each answers another question.
pub const QUERY: &str = "workload.query";

/// The study's varied factors, divided by kind.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Factors {
    /// Alternatives: layouts, databases, settings of a server.
    pub choices: Vec<Factor>,
    /// Numeric ramps: clients, rates, batches.
    pub ramps: Vec<Factor>,
}

impl Factors {
    /// Divides the factors of a study, keeping its order.
    pub fn of(study: &Study) -> Self {
        let varied = study.factors.iter().filter(|factor| factor.levels.len() > 1).cloned();
        let (ramps, choices) = varied.partition(is_ramp);
        Factors { choices, ramps }
    }

    /// Returns the alternatives among which a reader chooses. The workload is not among them if there are others: reads that are faster than
    /// deletions do not make either the better one.
    pub fn judged(&self) -> impl Iterator<Item = &Factor> {
        let is_question = |factor: &Factor| factor.setting == "workload.name";
        let only_question = self.choices.iter().all(is_question);
        self.choices.iter().filter(move |factor| only_question || !is_question(factor))
    }

    /// Returns the ramp along which figures are drawn: the clients, else the first ramp.
    pub fn axis(&self) -> Option<&Factor> {
        self.ramps.iter().find(|factor| factor.setting == "load.clients").or(self.ramps.first())
    }

    /// Returns the ramps other than the axis.
    pub fn other_ramps(&self) -> impl Iterator<Item = &Factor> {
        let axis = self.axis().map(|factor| factor.setting.clone());
        self.ramps.iter().filter(move |factor| Some(&factor.setting) != axis.as_ref())
    }

    /// Returns the ramps that are conditions instead of choices: the load beside the operations, and the records that exist. Figures are drawn
    /// along them, but no alternative has a best level of them.
    pub fn given(&self) -> impl Iterator<Item = &Factor> {
        self.ramps.iter().filter(|factor| is_given(factor))
    }

    /// Returns the ramps that a user sets: clients, batches, rates.
    pub fn chosen(&self) -> impl Iterator<Item = &Factor> {
        self.ramps.iter().filter(|factor| !is_given(factor))
    }

    /// Returns the name of a case among the alternatives: `star`, or `star, mariadb`; empty without alternatives.
    pub fn choice_label(&self, levels: &Levels) -> String {
        self.choices
            .iter()
            .filter_map(|factor| Some(short_level(factor, levels.get(&factor.setting)?)))
            .collect::<Vec<_>>()
            .join(", ")
    }
}

/// Returns whether a factor is a ramp: numbers are, except for a server's own settings, which are always alternatives.
fn is_ramp(factor: &Factor) -> bool {
    factor.levels.iter().all(Value::is_number) && !is_server_setting(factor)
}

/// Returns whether a ramp gives a condition of the measurement or the question asked, instead of something that a user can set.
pub fn is_given(factor: &Factor) -> bool {
    ["background.", "record.", "workload.window", "workload.mix.", "workload.ycsb."]
        .iter()
        .any(|section| factor.setting.starts_with(section))
}

/// Returns whether the levels of a factor ask different things of a database, so that the faster one is not the better one.
pub fn is_question(factor: &Factor) -> bool {
    // Tables and keys are chosen by a user, although they belong to the records.
    let is_chosen = ["record.table", "record.keys"].contains(&factor.setting.as_str());
    [QUERY, "workload.name"].contains(&factor.setting.as_str()) || is_given(factor) && !is_chosen
}

/// Returns whether a factor is a setting of the server.
pub fn is_server_setting(factor: &Factor) -> bool {
    factor.setting.starts_with("database.config.")
}

/// Formats a level for people: `star` explains itself; a number, a duration, a switch, an empty value or the word `none` needs the last word
/// of its setting: `sync = 1`, `indexes = none`, `tunnel = none`.
pub fn short_level(factor: &Factor, level: &Value) -> String {
    let name = setting_word(&factor.setting);
    match level {
        Value::String(text) if !is_server_setting(factor) && name != DURABILITY && explains_itself(text) => {
            text.clone()
        }
        other => format!("{name} = {}", show_level(other)),
    }
}

/// A setting whose levels are words that need its name: `durability = crash`.
const DURABILITY: &str = "durability";

/// Returns whether a text needs no name: not if it is empty or `none`, or begins with a digit, as the duration `2s` does.
fn explains_itself(text: &str) -> bool {
    !text.is_empty() && text != "none" && !text.starts_with(|first: char| first.is_ascii_digit())
}

/// Returns the last word of a setting: the server's own name for it.
pub fn setting_word(setting: &str) -> &str {
    setting.rsplit('.').next().unwrap_or(setting)
}

/// Returns a setting's name in a heading: `layout` for `layout.name`, `clients` for `load.clients`.
pub fn short_setting(setting: &str) -> String {
    match setting.rsplit_once('.') {
        Some((section, "name" | "type")) => section.to_owned(),
        Some((_, last)) => last.replace('_', " "),
        None => setting.to_owned(),
    }
}

/// Formats levels in short, for tables: `star, clients 4`.
pub fn show_levels_short(levels: &Levels) -> String {
    if levels.is_empty() {
        return "the only case".to_owned();
    }
    let short = |(setting, level): (&String, &Value)| match level {
        Value::String(text) if setting_word(setting) != DURABILITY && explains_itself(text) => text.clone(),
        other => format!("{} {}", short_setting(setting), show_level(other)),
    };
    levels.iter().map(short).collect::<Vec<_>>().join(", ")
}

/// The greatest length of a level in a table, in characters.
pub const LEVEL_LONGEST: usize = 40;

/// Shortens a text to at most `most` characters: its middle, the least significant part of a path or an address, becomes `…`.
pub fn in_short(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (head, tail) = (kept / 2, kept - kept / 2);
    let first: String = text.chars().take(head).collect();
    format!("{first}…{}", text.chars().skip(length - tail).collect::<String>())
}

/// Returns whether two levels mean the same: 4 and 4.0 do, and so do 4 and "4"; "" and "none" do not.
pub fn same_level(a: &Value, b: &Value) -> bool {
    match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => level_text(a) == level_text(b),
    }
}

/// Groups cases by a label, in the order in which labels first occur.
pub fn grouped_by<Case>(
    cases: impl Iterator<Item = Case>,
    label_of: impl Fn(&Case) -> String,
) -> Vec<(String, Vec<Case>)> {
    let mut groups: Vec<(String, Vec<Case>)> = Vec::new();
    let mut place_of: HashMap<String, usize> = HashMap::new();
    for case in cases {
        let label = label_of(&case);
        let place = *place_of.entry(label.clone()).or_insert_with(|| {
            groups.push((label, Vec::new()));
            groups.len() - 1
        });
        groups[place].1.push(case);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn settings_of_a_server_are_alternatives_even_when_they_are_numbers() {
        let factor = |setting: &str, levels: Vec<Value>| Factor { setting: setting.to_owned(), levels };
        assert!(is_ramp(&factor("load.clients", vec![json!(1), json!(2)])));
        assert!(!is_ramp(&factor("database.config.innodb_write_io_threads", vec![json!(4), json!(8)])));
        assert!(!is_ramp(&factor("layout.name", vec![json!("wide"), json!("star")])));
        assert!(is_given(&factor("background.rate", vec![])) && !is_given(&factor("load.rate", vec![])));
        assert_eq!(short_level(&factor("database.config.sync", vec![]), &json!("off")), "sync = off");
        assert_eq!(short_level(&factor("layout.name", vec![]), &json!("star")), "star");
        assert_eq!(short_level(&factor("workload.evolve", vec![]), &json!("2s")), "evolve = 2s");
        assert_eq!(short_level(&factor("layout.indexes", vec![]), &json!("")), "indexes = none");
    }

    #[test]
    fn a_long_text_loses_its_middle() {
        assert_eq!(in_short("star", 10), "star");
        assert_eq!(in_short("/home/somebody/databases/first.db", 14), "/home/…irst.db");
        assert_eq!(in_short("äöüß1234", 5), "äö…34");
    }

    #[test]
    fn levels_are_the_same_by_value_and_not_by_spelling() {
        assert!(same_level(&json!(4), &json!(4.0)) && same_level(&json!("4"), &json!(4)));
        assert!(!same_level(&json!("star"), &json!("wide")));
        assert!(!same_level(&json!(""), &json!("none")) && same_level(&json!(""), &json!("")));
    }
}
