//! Studies: a file says what is to be found out; this module turns it into cases and trials.
//!
//! Main type: [`Study`]. Invariant: a study that was read without error can be planned without error.

pub mod agents;
mod background;
mod blocks;
pub mod bound;
mod bundled;
mod cases;
mod check;
mod chosen;
mod claim_table;
mod claims;
mod clash;
pub mod cluster;
pub mod content;
mod database;
mod disk;
mod durability;
pub mod estimate;
mod events;
mod evolve;
mod fill;
mod freshness;
pub mod goal;
mod header;
mod layout;
mod link;
mod load;
mod names;
pub mod pace;
mod passwords;
pub mod plan;
mod query;
mod questions;
mod quick;
mod rates;
mod reading;
mod record;
mod recorder;
pub mod repeat;
mod replay;
mod retention;
mod series;
mod settings;
mod shape;
pub mod subject;
mod table;
mod tables;
mod unchecked;
mod workload;
mod ycsb;

use serde::{Deserialize, Serialize};

use crate::fault::fault;
use crate::trial::{Case, DurabilityPlan, Levels, Settings};
use crate::written::section::Section;
use crate::written::{place, tree};

pub use crate::written::{StudyError, StudyErrors};
pub use bundled::{BUNDLED, Bundled};
pub use events::{need_own_disk, need_own_hosts};
pub use names::{DatabaseFacts, NameList, Names, ReadUrl};
pub use passwords::{Passwords, without_password, without_passwords};
pub use settings::setting_value;
pub use table::STUDY;

/// A study that has been read and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Short name, used for run directories.
    pub name: String,
    /// The question that the study answers.
    pub question: String,
    /// Where the study comes from; empty if it is the author's own.
    pub source: String,
    /// Settings before the factors are applied.
    pub base: Settings,
    /// The settings that are varied, in the order of the file.
    pub factors: Vec<Factor>,
    /// How often each case is repeated.
    pub repeat: Repeat,
    /// The load line that is searched for; `None` if there is no `[goal]`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub goal: Option<Goal>,
    /// How the databases are made to fail; `None` unless the study is about durability.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub durability: Option<DurabilityPlan>,
    /// The claims of the study's source.
    pub claims: Vec<Claim>,
    /// Whether sizes and repeats were reduced for a rehearsal.
    pub quick: bool,
    /// The settings and levels that the rehearsal reduced.
    #[serde(default, skip_serializing_if = "Shrunk::is_empty")]
    pub shrunk: Shrunk,
    /// Cases that cannot be carried out on this machine, if the study has such cases left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
    /// How long trials wait for the database's answers.
    #[serde(default, skip_serializing_if = "Patience::is_usual")]
    pub patience: Patience,
    /// Seed of the order of the trials and of every trial's own seed.
    pub seed: u64,
    /// Every combination of levels, with its settings resolved.
    pub cases: Vec<Case>,
}

/// A case that cannot be carried out on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The case's levels.
    pub levels: Levels,
    /// The reason, as a sentence.
    pub why: String,
}

impl Study {
    /// Groups the cases that are left out by their reason. Each reason comes with the levels that its cases have in
    /// common, if no other case has them, or else with the levels of each case.
    pub fn left_out_by_reason(&self) -> Vec<(Vec<Levels>, &str)> {
        let mut reasons: Vec<&str> = self.left_out.iter().map(|case| case.why.as_str()).collect();
        reasons.dedup();
        let of = |why: &str| -> Vec<Levels> {
            let all = || self.left_out.iter().filter(|case| case.why == why).map(|case| &case.levels);
            let mut shared = all().next().cloned().unwrap_or_default();
            shared.retain(|setting, level| all().all(|levels| levels.get(setting) == Some(level)));
            let has_shared = |levels: &Levels| shared.iter().all(|(setting, level)| levels.get(setting) == Some(level));
            let others = self.left_out.iter().filter(|case| case.why != why).map(|case| &case.levels);
            let mut others = others.chain(self.cases.iter().map(|case| &case.levels));
            if !shared.is_empty() && !others.any(has_shared) { vec![shared] } else { all().cloned().collect() }
        };
        let mut found: Vec<(Vec<Levels>, &str)> = Vec::new();
        for why in reasons {
            if !found.iter().any(|(_, known)| *known == why) {
                found.push((of(why), why));
            }
        }
        found
    }
}

/// How long to wait for the answer to a statement before and after the load, in seconds. It is not a property of what
/// is measured: studies that differ only in it are equal, and a run can be resumed with another value.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Patience(pub f64);

impl Patience {
    fn is_usual(&self) -> bool {
        self.0 == Self::default().0
    }
}

impl Default for Patience {
    fn default() -> Self {
        Patience(300.0)
    }
}

impl PartialEq for Patience {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The settings and levels that a rehearsal reduced.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Shrunk {
    /// Settings with a smaller value than in the study.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub smaller: Vec<Smaller>,
    /// Levels of factors that no case has any more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<Factor>,
}

impl Shrunk {
    /// Returns whether nothing was reduced except the number of repeats.
    pub fn is_empty(&self) -> bool {
        self.smaller.is_empty() && self.left_out.is_empty()
    }
}

/// A setting that a rehearsal reduced.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Smaller {
    /// Dotted name of the setting.
    pub setting: String,
    /// The value in the study.
    pub from: String,
    /// The value in the rehearsal.
    pub to: String,
    /// Whether the setting is the length of a load, which does not change what is measured.
    pub is_length: bool,
}

/// A setting that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Dotted name of the setting, as in `load.clients`.
    pub setting: String,
    /// The levels, in the order of the file.
    pub levels: Vec<serde_json::Value>,
}

/// `[repeat]`: how often the cases are repeated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// The rule for when a case has been repeated enough.
    pub rule: RepeatRule,
    /// Relative bound of the rule; above 0.
    pub within: f64,
    /// Minimum number of trials.
    pub least: u32,
    /// Maximum number of trials.
    pub most: u32,
    /// Whether the first trial of each case is left out of all analyses.
    pub discard_first: bool,
}

/// The rule for when a case has been repeated enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatRule {
    /// The half-width of the 95 % interval of the throughput, divided by its mean, is at most `within`; noise is pooled over the cases.
    Interval,
    /// The Oulu rule: the standard error, with the population standard deviation, divided by the mean, is below `within`.
    StandardError,
    /// Exactly `least` trials.
    Fixed,
}

/// `[goal]`: the load line that is searched for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Quantile of response time that is bounded, 0..1.
    pub quantile: f64,
    /// Bound of that quantile, in seconds.
    pub below_s: f64,
    /// Relative width within which the answer is located.
    pub within: f64,
}

/// `[[claims]]`: a claim of the study's source, in a form that can be checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The claim in words.
    pub says: String,
    /// The metric compared: `throughput`, `records`, `response_time_p99`, `server_cpu`, `written_bytes` ...; empty if a
    /// model is claimed.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub metric: String,
    /// The ratio claimed; `None` if the claim is of another kind.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ratio: Option<ClaimedRatio>,
    /// The bound claimed; `None` if the claim is of another kind.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bound: Option<ClaimedBound>,
    /// The model claimed; `None` if the claim is of another kind.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<ClaimedModel>,
}

/// The claim that the metric itself lies in a range, in every case with certain levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedBound {
    /// Levels of the cases; empty for all cases.
    pub of: Levels,
    /// Lower end of the range, in the metric's unit.
    pub low: f64,
    /// Upper end; `None` is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub high: Option<f64>,
}

/// The claim that mean response times grow with the arrival rate as a queueing model says, or that they do not.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedModel {
    /// Name of the model, as `loadline fit --model` takes it.
    pub name: String,
    /// Levels of the cases that the claim is about.
    pub only: Levels,
    /// Whether the model is claimed to fit.
    pub fits: bool,
}

/// A claimed ratio between two sets of cases. Levels may be partial: cases are then matched by their other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedRatio {
    /// Levels of the numerator.
    pub of: Levels,
    /// Levels of the denominator.
    pub to: Levels,
    /// Levels that the cases on both sides must also have.
    pub only: Levels,
    /// Whether the best case on each side is compared instead of each matched pair.
    pub best: bool,
    /// Lower end of the range of the ratio that confirms the claim.
    pub low: f64,
    /// Upper end; `None` is no limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub high: Option<f64>,
}

/// Seed of a study for which none is given.
const SEED: u64 = 1;

/// Reads a study: a bundled one by its name, or a file by its path. `sets` are the `key=value` arguments of `--set`, in
/// order. The passwords in its addresses are returned separately from it.
///
/// # Errors
/// All faults of the study, sorted by line; or that there is no such study, with a suggestion.
pub fn load(
    source: &str,
    sets: &[String],
    seed: Option<u64>,
    quick: bool,
    names: &Names,
) -> Result<(Study, Passwords), StudyErrors> {
    let (file, text) = bundled::find_text(source)?;
    load_text(&file, &text, sets, seed, quick, names)
}

/// Reads a study from the text of a file, which messages call `file`.
///
/// # Errors
/// All faults of the study, sorted by line.
pub fn load_text(
    file: &str,
    text: &str,
    sets: &[String],
    seed: Option<u64>,
    quick: bool,
    names: &Names,
) -> Result<(Study, Passwords), StudyErrors> {
    let source = source_of(file, sets, seed);
    let mut errors = place::Errors::default();
    let root = tree::Table::parse(text, &mut errors);
    std::mem::take(&mut errors).into_result(&source)?;
    let sets = sets.iter().cloned().enumerate().collect();
    resolve(Parsed { source, root, sets }, seed, quick, names, errors)
}

/// Reads a study from a property file of YCSB: a path, or the name of one of YCSB's own workloads. `sets` may also
/// contain properties. Notes on properties that have no effect are returned with the study.
///
/// # Errors
/// All faults of the study, sorted by line.
pub fn load_ycsb(
    path: &str,
    sets: &[String],
    seed: Option<u64>,
    quick: bool,
    names: &Names,
) -> Result<(Study, Passwords, Vec<String>), StudyErrors> {
    let (file, text) = ycsb::find_text(path)?;
    let source = source_of(&file, sets, seed);
    let mut errors = place::Errors::default();
    let found = ycsb::study_of(&text, sets, &mut errors);
    let notes = found.notes.iter().map(|(place, note)| format!("{}: {note}", source.show(*place))).collect();
    let parsed = Parsed { source, root: found.root, sets: found.sets };
    let (study, passwords) = resolve(parsed, seed, quick, names, errors)?;
    Ok((study, passwords, notes))
}

fn source_of(file: &str, sets: &[String], seed: Option<u64>) -> place::Source {
    let mut arguments: Vec<String> = sets.iter().map(|set| format!("--set {set}")).collect();
    arguments.extend(seed.map(|seed| format!("--seed {seed}")));
    place::Source { file: file.to_owned(), arguments }
}

/// A parsed study, with the `key=value` arguments of `--set` and their positions among the arguments.
struct Parsed {
    source: place::Source,
    root: tree::Table,
    sets: Vec<(usize, String)>,
}

/// Reads the aim of a study that does not measure the speed of each case: a load line, or what survives a failure.
fn read_aim(unchecked: &unchecked::Unchecked, errors: &mut place::Errors) -> (Option<Goal>, Option<DurabilityPlan>) {
    let goal = header::read_goal(&unchecked.root, errors);
    let durability = durability::read_durability(&unchecked.root, errors);
    let rates = unchecked.factors.iter().find(|factor| factor.setting == "load.rate");
    if let (Some(factor), true) = (rates, goal.is_some()) {
        let remedy = "the search chooses the rates; remove one of them";
        errors.push(factor.place, fault!("load.rate is a factor and [goal] is given"; "{remedy}"));
    }
    if let (Some(entry), true) = (unchecked.root.get("durability"), goal.is_some()) {
        let remedy = "a load line is found by measuring, and such a study measures nothing; remove one of them";
        errors.push(entry.place, fault!("there are [durability] and [goal]"; "{remedy}"));
    }
    (goal, durability)
}

/// Builds a study from its parsed form.
fn resolve(
    parsed: Parsed,
    seed: Option<u64>,
    quick: bool,
    names: &Names,
    mut errors: place::Errors,
) -> Result<(Study, Passwords), StudyErrors> {
    let Parsed { source, mut root, sets } = parsed;
    let mut passwords = Passwords::default();
    passwords.take_from(&mut root);

    let mut unchecked = unchecked::Unchecked::new(root, &mut errors);
    let written = unchecked.factors.clone();
    for (number, set) in &sets {
        unchecked.set(set, place::Place::Argument(*number), &mut errors);
    }
    passwords.take_from_unchecked(&mut unchecked);
    let shrunk = if quick { quick::shrink(&mut unchecked) } else { Shrunk::default() };
    if seed.is_some_and(|seed| i64::try_from(seed).is_err()) {
        let last = source.arguments.len().saturating_sub(1);
        errors.push(place::Place::Argument(last), fault!("the seed is too large"; "at most {}", i64::MAX));
    }

    let top = Section::top(&unchecked.root, &STUDY, &mut errors);
    let header = header::read_header(&top, &source.file, &mut errors);
    let base = settings::read_settings(&unchecked.root, names, &mut errors);
    let patience = database::read_patience(&unchecked.root, &mut errors);
    let repeat = header::read_repeat(&unchecked.root, &mut errors);
    let (goal, durability) = read_aim(&unchecked, &mut errors);
    let (cases, left_out) = cases::make_cases(&unchecked, names, header.where_possible, &mut errors);
    let known = claims::Cases { written: &written, factors: &unchecked.factors, base: &base };
    let claims = claims::read_claims(&unchecked.root, &known, &mut errors);
    errors.into_result(&source)?;

    // Levels that no case has are not compared.
    let is_left = |setting: &str, level: &serde_json::Value| {
        left_out.is_empty() || cases.iter().any(|case| case.levels.get(setting) == Some(level))
    };
    let levels = |factor: &unchecked::UncheckedFactor| {
        let all = factor.levels.iter().filter_map(tree::Node::to_json);
        all.filter(|level| is_left(&factor.setting, level)).collect()
    };
    let factors =
        unchecked.factors.iter().map(|factor| Factor { setting: factor.setting.clone(), levels: levels(factor) });
    let factors: Vec<Factor> = factors.collect();
    let study = Study {
        name: header.name,
        question: header.question,
        source: header.source,
        base,
        factors,
        repeat,
        goal,
        durability,
        claims,
        quick,
        shrunk,
        left_out,
        patience,
        seed: seed.unwrap_or(SEED),
        cases,
    };
    Ok((study, passwords))
}
