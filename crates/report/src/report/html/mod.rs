//! Writes the report as one self-contained HTML page: no network, no fonts, and no script needed to read it.
//!
//! Main function: [`html()`]. Invariant: every text of the study, the database or the machine is escaped, and every plot has a
//! table with its numbers.

mod agents;
mod arrival;
mod backlog;
mod bars;
mod bytes;
mod comparing;
mod conflicts;
mod disk;
mod drawing;
mod durability;
mod environment;
mod events;
mod evolution;
mod figures;
mod forest;
mod frame;
mod freshness;
mod means;
mod operations;
mod own_tables;
mod page;
mod plot;
mod policy;
mod price;
mod queries;
mod recorded;
mod resources;
mod response;
mod retention;
mod scale;
pub mod score;
mod section;
mod sections;
mod stated;
mod tables;
mod throughput;
mod timeline;
mod times;
mod unit;

use maud::Markup;

use crate::finding::{Findings, Found, Note, Verdict};
use crate::measurement::{Environment, Measurement};
use crate::report::analyse::group;
use crate::report::terminal::grouped;
use crate::study::Study;
use crate::units::{show_count, show_number};

use page::whole;
use section::Page;
use sections::{contents, sections};

pub use comparing::compare_page;
pub use durability::durability_page;

/// Returns the whole page.
pub fn html(findings: &Findings, study: &Study, environment: &Environment, measurements: &[Measurement]) -> String {
    let groups = group(study, measurements);
    let compared = comparing::of_run(study, &environment.machine, measurements);
    let operations = comparing::operations_of_run(study, &environment.machine, measurements);
    // Times that other tools call response times are described with those times.
    let operations = operations.filter(|_| findings.imported_from.is_none());
    let page = Page::new(findings, study, environment, (measurements, &groups), (compared, operations));
    let header = maud::html! {
        p.over { (findings.run) }
        h1 { (study.name) }
        p.question { (study.question) }
    };
    let main = maud::html! {
        (invalid(findings))
        (verdict(findings))
        @if page.has_cases() { (contents(&page)) }
        (sections(&page))
    };
    let footer = maud::html! {
        "Made by loadline " (environment.loadline) ". Intervals are 95 % intervals over trials; percentiles are read from the \
         merged times of all valid trials and never averaged."
    };
    whole(&format!("{} - loadline report", study.name), &header, &main, &footer)
}

/// Returns the reasons to doubt the run's figures, which come before everything else.
fn invalid(findings: &Findings) -> Markup {
    let (all, valid) =
        findings.cases.iter().fold((0, 0), |(a, v), case| (a + case.trials, v + case.valid_trials + case.repeated));
    let repeated: u64 = findings.cases.iter().map(|case| case.repeated).sum();
    maud::html! {
        @if findings.rehearsal {
            div.box.bad { h2 { "This is a rehearsal" } "Sizes and repeats were shrunk; the figures are not to be quoted." }
        }
        @if valid < all {
            div.box.bad #invalid {
                h2 { (all - valid) " of " (all) " trials are invalid" }
                "Their figures are left out of everything below."
                @if repeated > 0 {
                    " " (show_number(repeated as f64)) " more belong to a search: their load could not be sent as planned, and was repeated at \
                     the same rate. Their reasons are listed too."
                }
                ul {
                    @for (text, cases) in grouped(findings, |case| case.invalid_because.iter().map(ToString::to_string).collect()) {
                        li { strong { (text) } ": " (cases.join("; ")) }
                    }
                    @for (message, cases) in grouped(findings, |case| case.errors.keys().cloned().collect()) {
                        @let count: u64 = findings.cases.iter().filter_map(|case| case.errors.get(&message)).sum();
                        li { (show_count(count, "operation")) " failed with " code { (message) } ": " (cases.join("; ")) }
                    }
                }
            }
        }
    }
}

/// The number of verdicts shown after the first; the others are folded.
const VERDICTS_SHOWN: usize = 7;

fn verdict(findings: &Findings) -> Markup {
    // The heading already says that it is a rehearsal.
    let is_new = |verdict: &&Verdict| !(findings.rehearsal && verdict.found == Found::Rehearsal {});
    let verdicts: Vec<&Verdict> = findings.verdicts.iter().filter(is_new).collect();
    let is_new = |note: &&Note| !(findings.rehearsal && **note == Note::Rehearsal {});
    let notes: Vec<&Note> = findings.notes.iter().filter(is_new).collect();
    let mut rest = verdicts.iter().skip(1);
    maud::html! {
        div class={
            "box verdict"
            @if !verdicts.first().is_some_and(|first| first.is_decided()) { " open" }
            @if verdicts.iter().any(|verdict| verdict.tells_of_loss()) { " loss" }
        } {
            p.first {
                @match verdicts.first() {
                    Some(first) => { strong { (first.answer) } (first.evidence) }
                    None => { strong { "No trial has been finished yet." } }
                }
            }
            @if verdicts.len() > 1 { ul { @for verdict in rest.by_ref().take(VERDICTS_SHOWN) { li { (verdict) } } } }
            @if rest.len() > 0 {
                details { summary { (rest.len()) " more" } ul { @for verdict in rest { li { (verdict) } } } }
            }
            @if !notes.is_empty() { ul.notes { @for note in notes { li { (note) } } } }
        }
    }
}
