//! What each case's acknowledged writes survive, beside its throughput and in verdicts across different levels.
//!
//! Main type: [`Durability`]. Invariant: a level that the run does not tell is said as unknown.

use std::collections::BTreeMap;

use super::factors::{Factors, same_level, short_level};
use crate::database::level::{Level, level};
use crate::finding::{CaseFinding, DurabilityFinding};
use crate::measurement::Environment;
use crate::study::{Factor, Study};
use crate::trial::{Case, Settings};

/// What is known of the servers that cases were measured on.
pub struct Durability<'a> {
    environment: &'a Environment,
    study: &'a Study,
}

impl<'a> Durability<'a> {
    /// Of a run with its study as it was stored.
    pub fn of(study: &'a Study, environment: &'a Environment) -> Self {
        Durability { environment, study }
    }

    /// What a case's acknowledged writes survive.
    pub fn finding(&self, case: &Case) -> DurabilityFinding {
        let level = self.level(&case.settings);
        DurabilityFinding { level: level.map_or("unknown", name).to_owned(), proved: None }
    }

    fn level(&self, settings: &Settings) -> Option<Level> {
        let database = &settings.database;
        // Rates that a search chose make cases that the study does not list; their server is that of the same settings.
        let cases = self.study.cases.iter().filter(|case| case.settings.database == *database);
        let ids: Vec<&String> = cases.map(|case| &case.id).collect();
        let mut servers = self.environment.servers.iter().filter(|server| server.database == database.name);
        let own = servers.find(|server| ids.iter().any(|id| server.cases.contains(id)));
        let facts = own.map_or_else(
            // Runs of versions that noted one set of facts for all servers: what varied is in the case's own settings.
            || {
                let mut facts = self.environment.databases.get(&database.name).cloned().unwrap_or_default();
                facts.extend(database.config.clone());
                facts
            },
            |server| server.facts.clone(),
        );
        let makes_tables = settings.record.rows > 0 || !crate::workload::has_statements(settings);
        level(database, &facts, makes_tables && !settings.record.existing)
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Nothing => "none",
        Level::Crash => "crash",
        Level::PowerCut => "power-cut",
    }
}

/// A level as tables show it, under the heading "survives".
pub fn word(finding: &DurabilityFinding) -> &'static str {
    match finding.level.as_str() {
        "power-cut" => "power cut",
        "crash" => "crash",
        "none" => "nothing",
        _ => "unknown",
    }
}

/// Sentences about alternatives whose acknowledged writes survive different things, with what they survive; others as they are.
pub fn told(sentences: Vec<String>, study: &Study, cases: &[CaseFinding]) -> Vec<String> {
    let factors = Factors::of(study);
    let survived: Vec<BTreeMap<String, String>> =
        factors.judged().map(|factor| by_alternative(factor, cases)).collect();
    let tell = |sentence: String| {
        let remarks = survived.iter().filter_map(|words| remark(&sentence, words));
        remarks.fold(sentence.clone(), |told, remark| format!("{told}; {remark}"))
    };
    sentences.into_iter().map(tell).collect()
}

/// What the writes of each alternative survive, by its name in sentences.
fn by_alternative(factor: &Factor, cases: &[CaseFinding]) -> BTreeMap<String, String> {
    let mut words: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for case in cases {
        let Some(own) = case.levels.get(&factor.setting) else { continue };
        let Some(level) = factor.levels.iter().find(|level| same_level(own, level)) else { continue };
        let known = words.entry(short_level(factor, level)).or_default();
        if !known.contains(&word(&case.durability)) {
            known.push(word(&case.durability));
        }
    }
    let article = |word: &&str| match *word {
        "nothing" => "nothing".to_owned(),
        "unknown" => "nobody knows what".to_owned(),
        other => format!("a {other}"),
    };
    words
        .into_iter()
        .map(|(label, words)| (label, words.iter().map(article).collect::<Vec<_>>().join(" or ")))
        .collect()
}

/// The remark that a sentence needs: it names alternatives that survive different things, and a ratio between them.
fn remark(sentence: &str, survived: &BTreeMap<String, String>) -> Option<String> {
    let named: Vec<(&String, &String)> = survived.iter().filter(|(label, _)| names(sentence, label)).collect();
    let differs = named.iter().any(|(_, words)| *words != named[0].1);
    (differs && sentence.contains(" × ")).then(|| {
        let each: Vec<String> = named.iter().map(|(label, words)| format!("of {label} {words}")).collect();
        // "of innodb a power cut, of myisam nothing", with the verb behind the first name.
        let (label, words) = named[0];
        let first = format!("of {label} survive {words}");
        format!("acknowledged writes {first}, {}", each[1..].join(", "))
    })
}

/// Whether a text names something as a word of its own, not as a part of another.
fn names(text: &str, label: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    text.match_indices(label).any(|(at, found)| {
        let (before, behind) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
        !before.is_some_and(is_word) && !behind.is_some_and(is_word)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_across_different_durability_says_so() {
        let survived = [("innodb", "a power cut"), ("myisam", "nothing"), ("aria", "a crash")];
        let survived = survived.map(|(label, words)| (label.to_owned(), words.to_owned())).into();
        let told = |sentence: &str| remark(sentence, &survived);
        assert_eq!(
            told("myisam is fastest: 41 × innodb [38, 44], n = 5 + 5").unwrap(),
            "acknowledged writes of innodb survive a power cut, of myisam nothing"
        );
        assert_eq!(told("myisam: throughput peaks at load.clients = 4: 3 records/s"), None);
        assert_eq!(told("myisam-2 is fastest: 41 × myisam [38, 44]"), None, "one alternative alone is named");
    }
}
