//! `loadline plan`: shows what a study would do, without starting anything.
//!
//! Main functions: [`text_of`], [`json_of`]. Invariant: nothing is started.

use serde::Serialize;
use serde_json::{Value, json};

use super::known::known;
use super::output::{print, print_json, table};
use super::{Failure, durability};
use crate::cli::StudyArguments;
use crate::report::durability_test::word_of;
use crate::said::said;
use crate::study::estimate::{Estimate, GUESSED_OPERATIONS_PER_S, Known, Part, estimate};
use crate::study::pace::Basis;
use crate::study::plan::{REHEARSAL_S, first_counted_round, show_rule};
use crate::study::{Names, Study};
use crate::trial::{DatabaseSettings, DurabilityPlan, Length, Levels, Settings, show_levels};
use crate::units::{show_bytes, show_number, show_seconds};

/// Checks the study and prints its plan.
///
/// # Errors
/// Fails with every error in the study.
pub fn run(arguments: &StudyArguments, is_json: bool, names: &Names) -> Result<(), Failure> {
    let (study, _) = super::read_study(arguments, names)?;
    let checked = if study.durability.is_some() { durability::check(&study) } else { super::run::check(&study) };
    checked.map_err(Failure::usage)?;
    let known = known(&study);
    if is_json { print_json(&json_of(&study, names, &known)) } else { print(&text_of(&study, names, &known)) }
}

/// Returns the plan as text.
pub fn text_of(study: &Study, names: &Names, known: &Known) -> String {
    let estimate = estimate(study, known);
    let [least_s, most_s] = lasts_s(study, &estimate);
    let (least, most) = estimate.trials;
    let counts: Vec<String> =
        study.factors.iter().map(|factor| format!("{} {}", factor.levels.len(), factor.setting)).collect();
    let product = if counts.is_empty() { String::new() } else { format!(" = {}", counts.join(" × ")) };
    let mut lines = vec![("study", study.name.clone())];
    if !study.question.is_empty() {
        lines.push(("question", study.question.clone()));
    }
    if !study.source.is_empty() {
        lines.push(("source", study.source.clone()));
    }
    lines.extend(servers(study, names).into_iter().map(|server| ("database", server)));
    lines.extend(own_tables(study).into_iter().map(|tables| ("tables", tables)));
    lines.push(("cases", format!("{}{product}", study.cases.len())));
    if let Some(plan) = &study.durability {
        lines.push(("failures", show_failures(plan)));
    } else {
        lines.push(("repeat", show_rule(study)));
        lines.push(("trials", show_range(show_number(least as f64), show_number(most as f64))));
    }
    lines.push(("time", format!("about {}", show_range(show_seconds(least_s), show_seconds(most_s)))));
    if study.durability.is_none() {
        let parts = [("filling", estimate.filling), ("starts", estimate.starts)];
        lines.extend(parts.into_iter().filter_map(|(name, part)| Some((name, show_part(part, part.basis?)))));
    }
    lines.push(("seed", study.seed.to_string()));
    lines.extend(notes(study, &estimate).into_iter().map(|note| ("note", note.to_string())));
    let head: String = lines.iter().map(|(name, value)| format!("{name:<10}{value}\n")).collect();
    format!("{head}\n{}", table(case_rows(study)))
}

/// Returns the shortest and longest duration of a study, in seconds.
fn lasts_s(study: &Study, estimate: &Estimate) -> [f64; 2] {
    match &study.durability {
        Some(plan) => durability::estimate_s(study, plan),
        None => estimate.elapsed_s.into(),
    }
}

fn show_range(low: String, high: String) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

/// Returns a part's share of the time, with the basis of the estimate.
fn show_part(part: Part, basis: Basis) -> String {
    let stands_on = match basis {
        Basis::Measured => "as measured here",
        Basis::Related => "guessed from other machines' rates and the pace of this one",
        Basis::Guessed => "guessed from other machines' rates",
    };
    format!("{} of it, {stands_on}", show_range(show_seconds(part.least_s), show_seconds(part.most_s)))
}

/// Returns which failures happen, and how often.
fn show_failures(plan: &DurabilityPlan) -> String {
    let cuts = show_number(f64::from(plan.cuts));
    let sync_first = if plan.sync_first { ", each after a sync of the whole disk" } else { "" };
    if plan.faults.is_empty() {
        return format!(
            "{cuts} cuts of the power in each case, and {cuts} kills where cuts lose something{sync_first}"
        );
    }
    let kinds: Vec<String> = plan.faults.iter().map(|fault| format!("{cuts} {}", word_of(*fault))).collect();
    format!("{} in each case{sync_first}", kinds.join(", "))
}

/// Returns the cases as rows of a table, the header first.
fn case_rows(study: &Study) -> Vec<Vec<String>> {
    let settings = study.factors.iter().map(|factor| factor.setting.clone());
    // A durability study measures no load, so its trials have no length.
    let of_trials = study.durability.is_none().then(|| "each trial".to_owned());
    let header = ["case".to_owned()].into_iter().chain(settings).chain(of_trials.clone());
    let mut rows = vec![header.collect()];
    for (number, case) in study.cases.iter().enumerate() {
        let level = |setting: &str| case.levels.get(setting).map_or(String::new(), show_level);
        let load = &case.settings.load;
        let length = match load.length {
            Length::Seconds(seconds) => show_seconds(seconds),
            Length::Operations(statements) if let Some(replay) = load.replay => {
                let seconds = show_seconds(replay.lasts_s(load.rate_per_s));
                format!("{} statements in {seconds}", show_number(statements as f64))
            }
            Length::Operations(operations) => format!("{} operations", show_number(operations as f64)),
            Length::OperationsPerClient(operations) => {
                format!("{} operations per client", show_number(operations as f64))
            }
        };
        let at_most = load.at_most_s.map_or(String::new(), |seconds| format!(", at most {}", show_seconds(seconds)));
        let warmup =
            if load.warmup_s > 0.0 { format!(" after {}", show_seconds(load.warmup_s)) } else { String::new() };
        let mut row = vec![(number + 1).to_string()];
        row.extend(study.factors.iter().map(|factor| level(&factor.setting)));
        row.extend(of_trials.as_ref().map(|_| format!("{length}{at_most}{warmup}")));
        rows.push(row);
    }
    rows
}

fn show_level(level: &Value) -> String {
    match level.as_str() {
        Some(text) => text.to_owned(),
        None => level.to_string(),
    }
}

/// Returns the plan as JSON.
pub fn json_of(study: &Study, names: &Names, known: &Known) -> Value {
    let estimate = estimate(study, known);
    let trials = if study.durability.is_some() { (0, 0) } else { estimate.trials };
    let [least_s, most_s] = lasts_s(study, &estimate);
    let parts = study.durability.is_none().then(|| json!({ "filling": estimate.filling, "starts": estimate.starts }));
    let cases: Vec<Value> = study.cases.iter().map(|case| json!({ "id": case.id, "levels": case.levels })).collect();
    json!({
        "study": study.name,
        "question": study.question,
        "source": study.source,
        "seed": study.seed,
        "quick": study.quick,
        "databases": servers(study, names),
        "tables": own_tables(study),
        "factors": study.factors.iter().map(|factor| &factor.setting).collect::<Vec<_>>(),
        "cases": cases,
        "repeat": study.repeat,
        "durability": study.durability,
        "trials": { "least": trials.0, "most": trials.1 },
        "estimate_s": { "least": least_s, "most": most_s },
        "estimate_parts": parts,
        "claims": study.claims.iter().map(|claim| &claim.says).collect::<Vec<_>>(),
        "notes": notes(study, &estimate),
    })
}

/// Returns the databases and servers that the cases need, each once; server settings that vary are listed with all their levels.
fn servers(study: &Study, names: &Names) -> Vec<String> {
    let mut servers: Vec<String> = Vec::new();
    for case in &study.cases {
        let mut database = case.settings.database.clone();
        for (setting, value) in &mut database.config {
            let varied = study.factors.iter().find(|factor| factor.setting == format!("database.config.{setting}"));
            if let Some(factor) = varied {
                *value = factor.levels.iter().map(show_level).collect::<Vec<_>>().join(" | ");
            }
        }
        let server = show_server(&database, names);
        if !servers.contains(&server) {
            servers.push(server);
        }
    }
    servers
}

/// Returns the study's own tables in the cases, each set once, with its design.
fn own_tables(study: &Study) -> Vec<String> {
    let mut sets: Vec<String> = Vec::new();
    for Settings { tables, workload, .. } in study.cases.iter().map(|case| &case.settings) {
        let tables: Vec<String> =
            tables.iter().map(|table| format!("{} ({} rows)", table.name, show_number(table.rows as f64))).collect();
        let design = workload.design.as_ref().map_or(String::new(), |design| format!("{design}: "));
        let set = format!("{design}{}", tables.join(", "));
        if !tables.is_empty() && !sets.contains(&set) {
            sets.push(set);
        }
    }
    sets
}

fn show_server(database: &DatabaseSettings, names: &Names) -> String {
    let name = &database.name;
    let mut details: Vec<String> = Vec::new();
    details.extend(database.engine.iter().map(|engine| format!("engine {engine}")));
    details.extend(database.base.iter().map(|base| format!("from {base}")));
    details.extend(database.binary.iter().map(|binary| format!("binary {binary}")));
    details.extend(database.path.iter().map(|path| format!("file {path}")));
    details.extend(database.socket.iter().map(|socket| format!("over {socket}")));
    details.extend(database.tls.iter().map(|_| "with TLS".to_owned()));
    details.extend(database.encryption.iter().map(|cipher| format!("files encrypted with {cipher}")));
    details.extend(database.memory_bytes.map(|bytes| format!("with at most {} of memory", show_bytes(bytes as f64))));
    details.extend(database.cpus.iter().map(|cpus| format!("on CPUs {cpus}")));
    details.extend(database.config.iter().map(|(setting, value)| format!("{setting} = {value}")));
    let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    match &database.url {
        Some(url) => format!("{name}, the server at {url}{details}"),
        None if names.database(name).is_some_and(|facts| facts.is_embedded()) => {
            format!("{name}, in this process{details}")
        }
        None => format!("{name}, a private server{details}"),
    }
}

/// A note on a plan for its reader. As JSON it is an object with `kind`, its figures and `says`.
#[derive(Debug, Clone, PartialEq, Serialize, thiserror::Error)]
#[serde(remote = "Self", tag = "kind", rename_all = "snake_case")]
enum PlanNote {
    #[error("shrunk by --quick: the figures will be a rehearsal")]
    Rehearsal {},
    #[error("left out: {}: {why}", cases.iter().map(show_levels).collect::<Vec<_>>().join("; "))]
    LeftOut { cases: Vec<Levels>, why: String },
    #[error("after {} no further round of trials begins", show_seconds(*after_s))]
    RoundsEnd { after_s: f64 },
    #[error(
        "pipelined{}: all statements of a transaction leave in one round trip (load.pipeline = true)",
        if cases == all { String::new() } else { format!(" in {cases} of them") }
    )]
    Pipelined { cases: usize, all: usize },
    #[error(
        "{left_out} of {all} statements of the trace change something and are left out; write writes = true in [workload] to send them too"
    )]
    WritesLeftOut { left_out: u64, all: u64 },
    #[error("the first trial of each case is extra and not counted")]
    FirstNotCounted {},
    #[error(
        "the time of operations is a guess from {} operations/s and {} records/s of 61 columns, fewer columns taking less",
        show_number(*operations_per_s),
        show_number(*records_per_s)
    )]
    Guess { operations_per_s: f64, records_per_s: f64 },
}

said!(PlanNote);

fn notes(study: &Study, estimate: &Estimate) -> Vec<PlanNote> {
    let mut notes = Vec::new();
    if study.quick {
        notes.push(PlanNote::Rehearsal {});
        let ends = study.goal.is_none() && study.durability.is_none() && estimate.trials.0 < estimate.trials.1;
        notes.extend(ends.then_some(PlanNote::RoundsEnd { after_s: REHEARSAL_S }));
    }
    notes.extend(
        study.left_out_by_reason().into_iter().map(|(cases, why)| PlanNote::LeftOut { cases, why: why.to_owned() }),
    );
    let pipelined = study.cases.iter().filter(|case| case.settings.load.pipeline).count();
    if pipelined > 0 {
        notes.push(PlanNote::Pipelined { cases: pipelined, all: study.cases.len() });
    }
    let settings = &study.base;
    if let Some((load, replay)) = settings.load.replay.zip(settings.workload.replay.as_ref())
        && replay.left_out > 0
    {
        notes.push(PlanNote::WritesLeftOut { left_out: replay.left_out, all: replay.left_out + load.statements });
    }
    if first_counted_round(study) > 0 {
        notes.push(PlanNote::FirstNotCounted {});
    }
    if study.durability.is_some() {
        return notes;
    }
    if estimate.is_guess {
        let (operations_per_s, records_per_s) = (GUESSED_OPERATIONS_PER_S, estimate.guessed_records_per_s);
        notes.push(PlanNote::Guess { operations_per_s, records_per_s });
    }
    notes
}
