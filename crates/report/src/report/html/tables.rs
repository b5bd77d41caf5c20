//! Writes the parts of the page that are text: claims and trials.
//!
//! Invariant: every trial is listed, in the order of execution, whether or not it is valid.

use std::collections::HashSet;

use maud::{Markup, html};

use super::figures::level_cell;
use super::section::Section;
use crate::finding::ClaimFinding;
use crate::measurement::Measurement;
use crate::metric::Metric;
use crate::reason::show_reasons;
use crate::report::case_trials::CaseTrials;
use crate::report::factors::show_level;
use crate::units::{show_number, show_seconds};

/// The source's claims with their verdicts, shown if there are any.
pub const CLAIMS: Section = Section {
    id: "claims",
    title: |_| "Claims",
    is_shown: |page| !page.findings.claims.is_empty(),
    draw: |page| claims(&page.findings.claims, &page.study.source),
};

/// Every trial, in the order of execution.
pub const TRIALS: Section = Section {
    id: "trials",
    title: |_| "Trials",
    is_shown: |_| true,
    draw: |page| trials(page.measurements, page.groups),
};

fn claims(claims: &[ClaimFinding], source: &str) -> Markup {
    let claimed = |claim: &ClaimFinding| match Metric::named(&claim.metric) {
        Some(metric) => format!("{}, {}", metric.title, claim.claimed),
        None => claim.claimed.clone(),
    };
    let symbol = |claim: &ClaimFinding| match claim.verdict {
        crate::finding::ClaimVerdict::Reproduced => "✓",
        crate::finding::ClaimVerdict::Contradicted => "✗",
        crate::finding::ClaimVerdict::Undecided => "?",
    };
    html! {
        section.claims #claims {
            h2 { "Claims of the source" }
            p.about {
                @if !source.is_empty() { (source) ". " }
                "A claim is reproduced when the whole 95 % interval of the measured ratio, or of the figure itself, lies in the claimed range, \
                 contradicted when it lies outside, and undecided otherwise. A model fits when the measured points do not reject it and \
                 reach near enough to the capacity to tell it."
            }
            div.scroll { table {
                thead { tr { th { "Verdict" } th { "Claim" } th { "Claimed" } th { "Measured" } } }
                tbody {
                    @for claim in claims {
                        tr {
                            td { span class={ "badge " (claim.verdict) } { (symbol(claim)) " " (claim.verdict) } }
                            td { (claim.says) }
                            td { (claimed(claim)) }
                            td { (claim.evidence) }
                        }
                    }
                }
            } }
        }
    }
}

/// Returns the start of a trial; the file of an imported one.
fn started(trial: &Measurement) -> &str {
    let file = trial.imported.as_ref().and_then(|from| from.files.first());
    file.map_or(&trial.started, |file| file.rsplit('/').next().unwrap_or(file))
}

fn trials(measurements: &[Measurement], groups: &[CaseTrials<'_>]) -> Markup {
    let mut ordered: Vec<&Measurement> = measurements.iter().collect();
    ordered.sort_by_key(|trial| trial.sequence);
    let mut settings: Vec<&String> = Vec::new();
    for setting in ordered.iter().flat_map(|trial| trial.trial.case.levels.keys()) {
        if !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let left_out: HashSet<*const Measurement> =
        groups.iter().filter_map(|group| group.discarded).map(std::ptr::from_ref).collect();
    let discarded = |trial: &Measurement| left_out.contains(&std::ptr::from_ref(trial));
    let p99 = Metric::named("response_time_p99");
    let files_given = measurements.iter().any(|trial| trial.imported.is_some());
    html! {
        section #trials {
            h2 { "Trials" }
            p.about { (ordered.len()) " trials in the order " @if files_given { "of their files." } @else { "in which they were executed; cases were interleaved." } }
            details {
                summary { "All trials" }
                div.scroll { table {
                    thead { tr {
                        th { "Started" }
                        th.number { "Round" }
                        @for setting in &settings { th { (setting) } }
                        @for heading in ["Operations/s", "Records/s", "Failed", "p99", "Measured"] { th.number { (heading) } }
                        th { "Validity" }
                    } }
                    tbody {
                        @for trial in ordered {
                            tr.invalid[!trial.is_valid()] {
                                th { (started(trial)) }
                                td { (trial.trial.round) }
                                @for setting in &settings { (level_cell(&trial.trial.case.levels.get(*setting).map(show_level).unwrap_or_default())) }
                                td { (show_number(trial.throughput_per_s())) }
                                td { (trial.known_records_per_s().map_or("-".to_owned(), show_number)) }
                                td { (show_number(trial.failed() as f64)) }
                                td { (p99.and_then(|metric| metric.of(trial)).map_or("-".to_owned(), show_seconds)) }
                                td { (show_seconds(trial.measured_s)) }
                                td.text {
                                    @if trial.trial.lost_attempt.is_some() { "lost with an agent, and driven once more. " }
                                    @if discarded(trial) { "left out, as the first of its case. " }
                                    @if trial.is_valid() { "valid" } @else { "invalid: " (show_reasons(&trial.invalid_because)) }
                                }
                            }
                        }
                    }
                } }
            }
        }
    }
}
