//! The report as one HTML page that needs nothing else: no network, no fonts, and no script to be read.
//!
//! Main function: [`html()`]. Invariant: every text of the study, the database or the machine is escaped, and every plot has a
//! table with its numbers.

mod arrival;
mod backlog;
mod bars;
mod bytes;
mod comparing;
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
mod scale;
pub mod score;
mod stated;
mod tables;
mod timeline;
mod times;
mod unit;

use std::collections::HashMap;

use maud::Markup;

use crate::finding::{CaseFinding, Findings, Found, Note, TimeFinding, Verdict};
use crate::histogram::Histogram;
use crate::imported::TimeKind;
use crate::measurement::{Environment, Measurement};
use crate::report::analyse::group;
use crate::report::case_trials::{CaseTrials, time_finding};
use crate::report::compare::Comparisons;
use crate::report::terminal::{grouped, show_settled};
use crate::study::{RepeatRule, Study};
use crate::units::{NS_PER_S, show_number, show_seconds};

use frame::Frame;
use page::whole;

pub use comparing::compare_page;
pub use durability::durability_page;

/// The whole page.
pub fn html(findings: &Findings, study: &Study, environment: &Environment, measurements: &[Measurement]) -> String {
    let groups = group(study, measurements);
    let compared = comparing::of_run(study, &environment.machine, measurements);
    let operations = comparing::operations_of_run(study, &environment.machine, measurements);
    // What other tools call a response time is said where their times are.
    let operations = operations.filter(|_| findings.imported_from.is_none());
    let header = maud::html! {
        p.over { (findings.run) }
        h1 { (study.name) }
        p.question { (study.question) }
    };
    let main = maud::html! {
        (invalid(findings))
        (verdict(findings))
        @if !findings.cases.is_empty() { (plots(findings, study, compared.as_ref(), operations.as_ref(), &groups)) }
        @if !findings.claims.is_empty() { (tables::claims(&findings.claims, &study.source)) }
        (events::events(findings))
        (evolution::evolution(findings))
        (tables::trials(measurements, &groups))
        (environment::environment(findings, study, environment, measurements))
    };
    let footer = maud::html! {
        "Made by loadline " (environment.loadline) ". Intervals are 95 % intervals over trials; percentiles are read from the \
         merged times of all valid trials and never averaged."
    };
    whole(&format!("{} - loadline report", study.name), &header, &main, &footer)
}

/// What makes the run's figures doubtful, before anything else.
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
                        li { (show_number(count as f64)) " operations failed with " code { (message) } ": " (cases.join("; ")) }
                    }
                }
            }
        }
    }
}

/// Verdicts shown besides the first; the others are behind a fold.
const VERDICTS_SHOWN: usize = 7;

fn verdict(findings: &Findings) -> Markup {
    // That it is a rehearsal stands above already.
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

/// Links to the sections that there are.
fn contents(
    findings: &Findings,
    groups: &[CaseTrials<'_>],
    title: &str,
    (monitored, counted, courses, compared, operations): (bool, bool, bool, bool, bool),
) -> Markup {
    maud::html! {
        nav {
            @if queries::is_shown(groups) { a href="#execution-time" { "Execution time" } }
            @if freshness::is_shown(findings) { a href="#freshness" { "Freshness" } }
            @if queries::has_plans(groups) { a href="#plans" { "Plans" } }
            a href="#throughput" { "Throughput" }
            @if price::is_shown(&findings.cases) { a href="#price" { "Durability" } }
            @if bytes::is_shown(findings) { a href="#bytes" { "Bytes" } }
            @if recorded::is_shown(findings) { a href="#recorded" { "Through the recorder" } }
            @if arrival::is_shown(groups) { a href="#arrival-rate" { "Arrival rate" } }
            @if backlog::is_shown(groups) { a href="#backlog" { "Backlog" } }
            @if operations { a href="#operations" { "Operations" } }
            a href="#response-time" { (title) }
            @if own_tables::is_shown(groups) { a href="#tables" { "Tables" } }
            @if monitored { a href="#resources" { "Resources" } }
            @if counted { a href="#distribution" { "Distribution" } }
            @if courses { a href="#course" { "Over time" } }
            @if timeline::is_shown(groups) { a href="#timeline" { "Within a trial" } }
            @if compared { a href="#ratios" { "Ratios" } a href="#p-values" { "p-values" } }
            @if !findings.claims.is_empty() { a href="#claims" { "Claims" } }
            @if findings.cases.iter().any(|case| case.events.is_some()) { a href="#events" { "Events" } }
            @if findings.cases.iter().any(|case| case.evolution.is_some()) { a href="#evolution" { "Schema changes" } }
            a href="#trials" { "Trials" }
            a href="#environment" { "Environment" }
        }
    }
}

/// All figures, each with its table.
fn plots(
    findings: &Findings,
    study: &Study,
    compared: Option<&Comparisons>,
    operations: Option<&Markup>,
    groups: &[CaseTrials<'_>],
) -> Markup {
    let frame = Frame::of(study, findings);
    let cases = &findings.cases;
    let against = frame.axis.as_ref().map_or(String::new(), |axis| format!(" against {}", axis.setting));
    let of_case: HashMap<&str, &CaseTrials<'_>> = groups.iter().map(|group| (group.case.id.as_str(), group)).collect();
    let trials = |case: &CaseFinding| -> Vec<&Measurement> {
        of_case.get(case.id.as_str()).map(|group| group.valid().collect()).unwrap_or_default()
    };
    let kind = time_kind(cases);
    // Merged once, however many figures ask for them, and packed, because there may be thousands of cases.
    let merged: HashMap<&str, Histogram> = of_case.iter().map(|(id, group)| (*id, merged_times(group, kind))).collect();
    let times = |case: &CaseFinding| merged.get(case.id.as_str()).cloned().unwrap_or_default();
    let counted = cases.iter().any(|case| times(case).count() > 0) || findings.imported_from.is_none();
    let (title, begins) = time_titles(kind);
    let remark = frame.best_panel_remark();
    let monitored = cases.iter().any(|case| case.resources.is_some());
    let courses = cases.iter().any(|case| times::Course::of(&trials(case)).is_some());
    maud::html! {
        (contents(findings, groups, title, (monitored, counted, courses, compared.is_some(), operations.is_some())))
        (queries::execution_time(&frame, cases, groups, &|case| time_finding(&times(case))))
        (queries::plans(groups))
        (freshness::section(findings, groups))
        (asked_for(&frame, findings))
        section #throughput {
            h2 { "Throughput" (against) }
            p.about { "Mean over trials; " (drawing::WHISKERS) "." }
            (figures::throughput(&frame, cases))
            (throughput_table(cases, study.repeat.rule))
        }
        (price::section(cases, &|case| time_finding(&times(case))))
        (bytes::section(&frame, findings))
        @if !has_uploads(findings) { (recorded::section(&frame, findings)) }
        (arrival::section(findings, groups))
        (backlog::section(groups))
        @if let Some(operations) = operations { (operations) }
        section #response-time {
            h2 { (title) (against) }
            @if counted {
                p.about { (begins) ", all valid trials together." (remark) (operations::few_remark()) }
                (figures::response_times(&frame, &times))
                (times_table(title, cases, &times))
            }
            (stated::table(groups, kind, begins))
        }
        (operations::section(findings, study))
        (own_tables::section(study))
        @if monitored { (resources(&frame, cases, groups, &against)) }
        @if counted { (distribution(&frame, title, cases, &times)) }
        @if courses {
            section #course {
                h2 { "Throughput within trials" }
                p.about { "The line is the median of the trials, the band reaches from the slowest to the fastest interval: a stall in \
                           a single trial pulls the band down." (remark) }
                (times::courses(&frame, &trials))
                (course_table(cases, &trials))
            }
        }
        (timeline::section(groups))
        @if let Some(found) = compared { (comparing::sections(found)) }
    }
}

/// The times of all valid trials of a case together.
fn merged_times(group: &CaseTrials<'_>, kind: TimeKind) -> Histogram {
    let mut all = Histogram::new();
    group.valid().for_each(|trial| all.merge(&trial.times(kind)));
    all.packed()
}

/// What is asked for where it is not throughput: the intake of blocks, the speed of the disk.
fn asked_for(frame: &Frame<'_>, findings: &Findings) -> Markup {
    maud::html! {
        @if has_uploads(findings) { (recorded::section(frame, findings)) }
        (figures::disk_written(frame, &findings.cases))
    }
}

fn has_uploads(findings: &Findings) -> bool {
    findings.cases.iter().any(|case| case.uploads.is_some())
}

/// What times are called, and where they begin.
fn time_titles(kind: TimeKind) -> (&'static str, &'static str) {
    match kind {
        TimeKind::ResidenceTime => ("Residence time", "From sending an operation to its answer"),
        _ => ("Response time", "From the intended time of an operation to its answer"),
    }
}

/// Response times, unless another tool measured that tells residence times alone.
fn time_kind(cases: &[CaseFinding]) -> TimeKind {
    let kinds = || cases.iter().filter(|case| case.valid_trials > 0).map(CaseFinding::time_kind);
    let is_residence = kinds().next().is_some() && kinds().all(|kind| kind == TimeKind::ResidenceTime);
    if is_residence { TimeKind::ResidenceTime } else { TimeKind::ResponseTime }
}

fn distribution(
    frame: &Frame<'_>,
    title: &str,
    cases: &[CaseFinding],
    times: &dyn Fn(&CaseFinding) -> Histogram,
) -> Markup {
    maud::html! {
        section #distribution {
            h2 { "Distribution of " (title.to_lowercase()) "s" }
            p.about { "The time below which a share of operations stayed; each further nine takes the same room, so rare slow \
                       operations show." (frame.best_panel_remark()) }
            (times::distributions(frame, times))
            (percentile_table(cases, times))
        }
    }
}

fn texts(headings: &[&str]) -> Vec<String> {
    headings.iter().map(|heading| (*heading).to_owned()).collect()
}

fn throughput_table(cases: &[CaseFinding], rule: RepeatRule) -> Markup {
    let headings =
        texts(&["Operations/s", "95 % interval", "Records/s", "95 % interval", "Survives", "n", "Invalid", "Settled"]);
    figures::folded_table("Throughput as a table", cases, &headings, |case| {
        let mut row = Vec::new();
        for estimate in [&case.throughput_per_s, &case.records_per_s] {
            row.push(estimate.show_mean(show_number));
            row.push(estimate.show_interval().unwrap_or("-".to_owned()));
        }
        row.push(crate::report::durability::word(&case.durability).to_owned());
        row.extend([case.valid_trials.to_string(), (case.trials - case.valid_trials).to_string()]);
        row.push(show_settled(case, rule).to_owned());
        row
    })
}

fn times_table(title: &str, cases: &[CaseFinding], times: &dyn Fn(&CaseFinding) -> Histogram) -> Markup {
    let headings = texts(&["Mean", "p50", "p90", "p99", "p99.9", "Largest", "Operations"]);
    figures::folded_table(&format!("{title}s as a table"), cases, &headings, |case| {
        let all = times(case);
        let TimeFinding { mean, p50, p90, p99, p999, max } = time_finding(&all);
        let plain = |time: Option<f64>| time.map_or("-".to_owned(), show_seconds);
        let quantiles = [(p50, 0.5), (p90, 0.9), (p99, 0.99), (p999, 0.999)];
        let quantiles = quantiles.map(|(time, quantile)| operations::show_quantile(time, quantile, all.count()));
        let shown = [vec![plain(mean)], quantiles.to_vec(), vec![plain(max)]].concat();
        shown.into_iter().chain([show_number(all.count() as f64)]).collect()
    })
}

fn resources(frame: &Frame<'_>, cases: &[CaseFinding], groups: &[CaseTrials<'_>], against: &str) -> Markup {
    maud::html! {
        section #resources {
            h2 { "Resources" (against) }
            p.about {
                "Means over the measured phases of all valid trials, of the whole machine unless said otherwise."
                (frame.best_panel_remark()) (cost_of_monitoring(groups))
            }
            (figures::resources(frame))
            (resources_table(cases))
        }
    }
}

fn resources_table(cases: &[CaseFinding]) -> Markup {
    let headings: Vec<String> = figures::RESOURCES.iter().map(|(title, ..)| (*title).to_owned()).collect();
    figures::folded_table("Resources as a table", cases, &headings, |case| {
        let used = case.resources.as_ref();
        let show = |(_, unit, figure): &(_, unit::Unit, fn(&_) -> f64)| {
            used.map_or("-".to_owned(), |used| unit.show(figure(used)))
        };
        figures::RESOURCES.iter().map(show).collect()
    })
}

fn percentile_table(cases: &[CaseFinding], times: &dyn Fn(&CaseFinding) -> Histogram) -> Markup {
    let headings: Vec<String> = times::MARKED.iter().map(|(_, title)| (*title).to_owned()).collect();
    figures::folded_table("Percentiles as a table", cases, &headings, |case| {
        let all = times(case);
        let show = |share: f64| match all.count() {
            0 => "-".to_owned(),
            _ => show_seconds(all.quantile_ns(share) as f64 / NS_PER_S),
        };
        times::MARKED.iter().map(|(share, _)| show(*share)).collect()
    })
}

fn course_table<'m>(cases: &[CaseFinding], trials: &dyn Fn(&CaseFinding) -> Vec<&'m Measurement>) -> Markup {
    let headings = texts(&["Slowest interval, operations/s", "Median", "Fastest"]);
    figures::folded_table("Intervals as a table", cases, &headings, |case| {
        times::Course::of(&trials(case)).map_or(vec!["-".to_owned(); 3], |course| course.extremes())
    })
}

/// What watching the machine took itself, as a sentence; empty where nothing was watched.
fn cost_of_monitoring(groups: &[CaseTrials<'_>]) -> String {
    let watched = groups
        .iter()
        .flat_map(CaseTrials::valid)
        .filter_map(|trial| Some((trial.resources.as_ref()?.monitor_cpu_s, trial.measured_s)));
    let (cpu_s, measured_s) = watched.fold((0.0, 0.0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    if measured_s <= 0.0 {
        return String::new();
    }
    format!(" Watching took {} % of one CPU itself.", show_number(100.0 * cpu_s / measured_s))
}
