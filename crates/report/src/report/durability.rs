//! Reports what each case's acknowledged writes survive, beside its throughput and in verdicts across different levels.
//!
//! Main type: [`Durability`]. Invariant: a level that the run does not reveal is reported as unknown.

use std::collections::BTreeMap;

use super::factors::{Factors, same_level, short_level};
use crate::database::mongodb::{MONGODB, STAND_IN};
use crate::database::{self, Level};
use crate::finding::{CaseFinding, DurabilityFinding, Note, Verdict};
use crate::measurement::{Environment, PROVED};
use crate::statistics::order::share_at_most;
use crate::study::{Factor, Study};
use crate::trial::{Case, Settings};

/// Facts about the servers on which cases were measured.
pub struct Durability<'a> {
    environment: &'a Environment,
    study: &'a Study,
}

impl<'a> Durability<'a> {
    /// Takes the facts from a run and its study as stored.
    pub fn of(study: &'a Study, environment: &'a Environment) -> Self {
        Durability { environment, study }
    }

    /// Returns what a case's acknowledged writes survive.
    pub fn finding(&self, case: &Case) -> DurabilityFinding {
        let facts = self.facts(&case.settings);
        let level = self.level(&case.settings, &facts);
        DurabilityFinding { level: level.map_or("unknown", Level::name).to_owned(), proved: facts.get(PROVED).cloned() }
    }

    /// Returns the facts that a case's server reported, and those known otherwise.
    fn facts(&self, settings: &Settings) -> BTreeMap<String, String> {
        let database = &settings.database;
        // Cases made by a search's rates are not listed in the study; their server is that of the same settings.
        let cases = self.study.cases.iter().filter(|case| case.settings.database == *database);
        let ids: Vec<&String> = cases.map(|case| &case.id).collect();
        let mut servers = self.environment.servers.iter().filter(|server| server.database == database.name);
        let own = servers.find(|server| ids.iter().any(|id| server.cases.contains(id)));
        own.map_or_else(
            // Older versions noted one set of facts for all servers; what varied is in the case's own settings.
            || {
                let mut facts = self.environment.databases.get(&database.name).cloned().unwrap_or_default();
                facts.extend(database.config.clone());
                // These facts do not say for which of the servers durability was proved.
                facts.remove(PROVED);
                facts
            },
            |server| server.facts.clone(),
        )
    }

    fn level(&self, settings: &Settings, facts: &BTreeMap<String, String>) -> Option<Level> {
        let database = &settings.database;
        let makes_tables =
            settings.record.rows > 0 || !settings.tables.is_empty() || !crate::workload::has_statements(settings);
        database::find(&database.name)?.level(database, facts, makes_tables && !settings.record.existing)
    }

    /// Returns notes on what was proved about the servers of the cases, each once.
    pub fn notes(&self, cases: &[&Case]) -> Vec<Note> {
        once(cases, |case| {
            let facts = self.facts(&case.settings);
            let proved = facts.get(PROVED).cloned()?;
            let (harmed, cuts) = counts_of(&proved)?;
            let version = facts.get("version").cloned().unwrap_or_default();
            let harm_share_upper95 = share_at_most(cuts, harmed, CONFIDENCE);
            let database = case.settings.database.name.clone();
            Some(Note::Proved { database, version, proved, harm_share_upper95 })
        })
    }

    /// Returns notes on the servers of the cases that stand in for a database, each once.
    pub fn stand_ins(&self, cases: &[&Case]) -> Vec<Note> {
        once(cases, |case| {
            let database = case.settings.database.name.clone();
            let version = self.facts(&case.settings).get("version").cloned()?;
            let stands_in = database == MONGODB.name && version.starts_with(STAND_IN);
            stands_in.then_some(Note::StandIn { database, version })
        })
    }
}

/// Returns the notes on cases, each once.
fn once(cases: &[&Case], note: impl Fn(&Case) -> Option<Note>) -> Vec<Note> {
    let mut notes = Vec::new();
    for note in cases.iter().filter_map(|case| note(case)) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}

/// The confidence level of the bound on failures that were not observed.
const CONFIDENCE: f64 = 0.95;

/// Returns the two numbers of `0 of 300 cuts`.
fn counts_of(proved: &str) -> Option<(u64, u64)> {
    let (harmed, cuts) = proved.strip_suffix(" cuts")?.split_once(" of ")?;
    Some((harmed.parse().ok()?, cuts.parse().ok()?))
}

/// Returns a level as tables show it, under the heading "survives".
pub fn word(finding: &DurabilityFinding) -> &'static str {
    match finding.level.as_str() {
        "power-cut" => "power cut",
        "crash" => "crash",
        "none" => "nothing",
        _ => "unknown",
    }
}

/// Adds what writes survive to verdicts on alternatives that differ in it; other verdicts stay as they are.
pub fn told(verdicts: Vec<Verdict>, study: &Study, cases: &[CaseFinding]) -> Vec<Verdict> {
    let factors = Factors::of(study);
    let survived: Vec<BTreeMap<String, String>> =
        factors.judged().map(|factor| by_alternative(factor, cases)).collect();
    let tell = |verdict: Verdict| {
        let compared: Vec<String> = verdict.found.compared().into_iter().map(str::to_owned).collect();
        let remarks = survived.iter().filter_map(|words| remark(&compared, words));
        remarks.fold(verdict, |told, remark| told.remarked(&remark))
    };
    verdicts.into_iter().map(tell).collect()
}

/// Returns what the writes of each alternative survive, by its name in sentences.
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

/// Returns the remark for alternatives that are compared by ratios and survive different things.
fn remark(compared: &[String], survived: &BTreeMap<String, String>) -> Option<String> {
    let named: Vec<(&String, &String)> = survived.iter().filter(|(label, _)| compared.contains(label)).collect();
    named.iter().any(|(_, words)| *words != named[0].1).then(|| {
        let each: Vec<String> = named.iter().map(|(label, words)| format!("of {label} {words}")).collect();
        // "of innodb a power cut, of myisam nothing", with the verb behind the first name.
        let (label, words) = named[0];
        let first = format!("of {label} survive {words}");
        format!("acknowledged writes {first}, {}", each[1..].join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_across_different_durability_says_so() {
        let survived = [("innodb", "a power cut"), ("myisam", "nothing"), ("aria", "a crash")];
        let survived = survived.map(|(label, words)| (label.to_owned(), words.to_owned())).into();
        let told = |compared: &[&str]| {
            remark(&compared.iter().map(|label| (*label).to_owned()).collect::<Vec<_>>(), &survived)
        };
        assert_eq!(
            told(&["myisam", "innodb"]).unwrap(),
            "acknowledged writes of innodb survive a power cut, of myisam nothing"
        );
        assert_eq!(told(&[]), None, "nothing is compared");
        assert_eq!(told(&["myisam-2", "myisam"]), None, "of one alternative alone it is known");
    }
}
