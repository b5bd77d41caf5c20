//! Shows the machine, the servers with the cases that they served, the settings, and how to repeat the run.
//!
//! Main items: [`SECTION`] and [`environment`]. Invariant: a fact that differs between servers is shown beside the cases to which it applies.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use super::section::Section;
use crate::finding::Findings;
use crate::measurement::{Environment, Measurement, ServerFacts};
use crate::report::analyse::show_rule;
use crate::report::factors::show_level;
use crate::report::limits::show_sync;
use crate::study::Study;
use crate::units::{show_bytes, show_number};

/// The machine, the databases, the settings, and the commands that repeat the run.
pub const SECTION: Section = Section {
    id: "environment",
    title: |_| "Environment",
    is_shown: |_| true,
    draw: |page| environment(page.findings, page.study, page.environment, page.measurements),
};

/// Returns the content of [`SECTION`] for a page of another kind.
pub fn environment(
    findings: &Findings,
    study: &Study,
    environment: &Environment,
    measurements: &[Measurement],
) -> Markup {
    let files = measurements.iter().filter_map(|trial| trial.imported.as_ref()).flat_map(|from| &from.files);
    let files: Vec<&String> = files.collect();
    let machine = [environment.machine.clone(), environment.cpu.clone()].into_iter().filter(|text| !text.is_empty());
    let machine = machine.collect::<Vec<_>>().join(", ");
    // Of a recorder under test, the page shows how it was started: there are no settings of a study.
    let recorder = study.durability.as_ref().and_then(|plan| plan.recorder.as_deref());
    let base = serde_json::to_value(&study.base).unwrap_or_default();
    let mut settings = BTreeMap::new();
    flatten(&base, "", &mut settings);
    let factors = study.factors.iter().map(|factor| {
        let levels: Vec<String> = factor.levels.iter().map(show_level).collect();
        (factor.setting.clone(), levels.join(", "))
    });
    html! {
        section #environment {
            h2 { "Environment and settings" }
            dl {
                dt { "loadline" } dd { (environment.loadline) }
                dt { "Machine" } dd { (machine) @if environment.cpus > 0 { ", " (environment.cpus) " CPUs, " (show_bytes(environment.memory_bytes as f64)) } }
                dt { "CPU governor" } dd { (environment.governor.as_deref().unwrap_or("not told by the kernel")) }
                dt { "System" } dd { (environment.kernel) }
                dt { "Disk" } dd { (environment.disk.as_deref().unwrap_or("not known")) @if let Some(sync) = environment.disk_sync { ", " (show_sync(sync)) } }
                dt { "Seed" } dd { (study.seed) }
                dt { "Repeats" } dd { @if let Some(plan) = &study.durability { (show_number(f64::from(plan.cuts))) " failures of each kind in each case" } @else if study.goal.is_some() { "as the search for the load line asks for them" } @else { (show_rule(&study.repeat)) } @if study.repeat.discard_first { "; the first of each case is left out" } }
                @for (setting, levels) in factors { dt { (setting) } dd { (levels) } }
            }
            @for (name, facts) in &environment.databases { (server(name, facts, &environment.servers, study)) }
            details {
                @if let Some(text) = recorder {
                    summary { "How the recorder was started" }
                    div.scroll { pre { (text) } }
                } @else {
                    summary { "Settings before the factors are applied" }
                    div.scroll { dl { @for (setting, value) in &settings { dt { (setting) } dd { (value) } } } }
                }
            }
            @if let Some(tool) = &findings.imported_from {
                h3 { "Imported" }
                p.about { (study.source) ". " (tool) " measured; these are its files." }
                details { summary { (files.len()) " files" } ul { @for file in &files { li { code { (file) } } } } }
            } @else {
            h3 { "To repeat this run" }
            pre { (repeating(environment, &findings.run, recorder.is_some())) }
            }
        }
    }
}

/// Returns the facts of a database: first those common to all its servers, then the others with the cases to which they apply.
fn server(name: &str, facts: &BTreeMap<String, String>, servers: &[ServerFacts], study: &Study) -> Markup {
    let servers: Vec<&ServerFacts> = servers.iter().filter(|server| server.database == name).collect();
    let is_alike = |fact: &str| servers.windows(2).all(|pair| pair[0].facts.get(fact) == pair[1].facts.get(fact));
    let told: BTreeSet<&str> = servers.iter().flat_map(|server| server.facts.keys()).map(String::as_str).collect();
    let differing: Vec<&str> = told.into_iter().filter(|fact| !is_alike(fact)).collect();
    html! {
        h3 { (name) }
        dl { @for (fact, value) in facts.iter().filter(|(fact, _)| is_alike(fact)) { dt { (fact) } dd { (value) } } }
        @if !differing.is_empty() {
            div.scroll { table {
                thead { tr { th { "Cases" } @for fact in &differing { th { (fact) } } } }
                tbody { @for server in &servers { tr {
                    th { (cases_of(server, study)) }
                    @for fact in &differing { td.text { (server.facts.get(*fact).map_or("-", String::as_str)) } }
                } } }
            } }
        }
    }
}

/// Returns the levels that all cases of a server share and that not all other cases have.
fn cases_of(server: &ServerFacts, study: &Study) -> String {
    let (inside, outside): (Vec<_>, Vec<_>) = study.cases.iter().partition(|case| server.cases.contains(&case.id));
    let Some(first) = inside.first() else { return "other rates".to_owned() };
    let is_shared = |setting: &str| {
        let level = first.levels.get(setting);
        inside.iter().all(|case| case.levels.get(setting) == level)
            && outside.iter().any(|case| case.levels.get(setting) != level)
    };
    let shared = first.levels.iter().filter(|(setting, _)| is_shared(setting));
    let shared: Vec<String> = shared.map(|(setting, level)| format!("{setting} = {}", show_level(level))).collect();
    if shared.is_empty() { format!("{} cases", inside.len()) } else { shared.join(", ") }
}

/// Returns the commands that repeat a run: as it was started, and from its stored data, which needs no study file. That of a recorder needs the recorder's file.
fn repeating(environment: &Environment, run: &str, needs_file: bool) -> String {
    let begun = environment.command.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
    if needs_file {
        return format!("{begun}\nloadline report {}", quoted(run));
    }
    let begun = if begun.is_empty() {
        String::new()
    } else {
        format!("{begun}\n# or, with the same cases and seed from what was stored:\n")
    };
    format!("{begun}loadline run {}\nloadline report {}", quoted(&format!("{run}/run.toml")), quoted(run))
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// Writes settings under dotted names; empty ones are left out.
fn flatten(value: &serde_json::Value, name: &str, out: &mut BTreeMap<String, String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (field, inner) in fields {
                let dotted = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
                flatten(inner, &dotted, out);
            }
        }
        serde_json::Value::Null => {}
        serde_json::Value::Array(items) if items.is_empty() => {}
        other => {
            out.insert(name.to_owned(), show_level(other));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_that_repeats_a_run_keeps_every_word() {
        let command = ["loadline", "run", "--ycsb", "workloads/my c", "--set", "threadcount=[1,4]", "--seed", "3"];
        let environment = Environment { command: command.map(str::to_owned).to_vec(), ..Environment::default() };
        let text = repeating(&environment, "runs/a", false);
        assert!(
            text.starts_with("loadline run --ycsb 'workloads/my c' --set 'threadcount=[1,4]' --seed 3\n"),
            "{text}"
        );
        assert!(text.ends_with("\nloadline run runs/a/run.toml\nloadline report runs/a"), "{text}");
        assert_eq!(repeating(&Environment::default(), "a", false), "loadline run a/run.toml\nloadline report a");
        let tested =
            Environment { command: vec!["loadline".to_owned(), "durability".to_owned()], ..Environment::default() };
        assert_eq!(repeating(&tested, "a", true), "loadline durability\nloadline report a", "a recorder has no study");
    }
}
