//! Verdicts: the answer to a study's question, with its evidence.
//!
//! Main function: [`verdicts`]. Invariant: a sentence never claims more than the intervals support; without a valid trial there is no
//! verdict.

use crate::finding::{Found, LoadLine, Verdict};
use crate::measurement::Measurement;
use crate::metric::Metric;
use crate::report::answers::rows_per_query;
use crate::report::case_trials::{CaseTrials, is_overloaded};
use crate::report::contest::{Contest, Scored, contest_verdicts, contests, judge_together};
use crate::report::factors::{Factors, is_question, show_levels};
use crate::report::growth;
use crate::report::instruments::INSTRUMENTS;
use crate::report::instruments::events;
use crate::report::instruments::evolution::{self, EVOLVE};
use crate::report::instruments::instrument::Said;
use crate::report::load_lines;
use crate::report::{ramps, warming};
use crate::statistics::TrialValue;
use crate::study::repeat::stopping;
use crate::study::{Factor, Study};
use crate::trial::Arrivals;

/// Returns the answers of the measurements to the question, the most important first.
pub fn verdicts(study: &Study, groups: &[CaseTrials<'_>], lines: &[LoadLine]) -> Vec<Verdict> {
    let mut verdicts = if study.goal.is_some() { of_load_lines(study, lines) } else { of_cases(study, groups) };
    if !groups.iter().any(|group| group.valid().next().is_some()) {
        let none = Verdict::new(Found::NoValidTrial {}, "no verdict").because("there is no valid trial");
        verdicts.insert(0, none);
    }
    if study.quick {
        verdicts.push(Verdict::new(Found::Rehearsal {}, "rehearsal").because("figures are not to be quoted"));
    }
    verdicts
}

/// Returns verdicts on the load lines of all cases, compared between alternatives if there are several.
fn of_load_lines(study: &Study, lines: &[LoadLine]) -> Vec<Verdict> {
    [load_lines::comparisons(study, lines), load_lines::verdicts(lines)].concat()
}

/// Returns verdicts on the figures of the cases.
fn of_cases(study: &Study, groups: &[CaseTrials<'_>]) -> Vec<Verdict> {
    let factors = Factors::of(study);
    let metric = metric_of(groups);
    let is_open = !metric.more_is_better;
    // The response times of an overloaded case grow with the trial's length, so they cannot be compared.
    let is_comparable = |group: &&CaseTrials<'_>| !(is_open && is_overloaded(&group.valid().collect::<Vec<_>>()));
    let mut scored: Vec<Scored<'_>> = groups
        .iter()
        .filter(is_comparable)
        .filter_map(|group| {
            let place = |trial: &Measurement| Some((trial.trial.round, trial.sequence));
            let trials =
                group.valid().filter_map(|trial| Some(TrialValue { place: place(trial), value: metric.of(trial)? }));
            let rows = rows_per_query(&group.valid().collect::<Vec<_>>());
            Some(Scored {
                rows,
                is_cold: warming::is_cold(group),
                ..Scored::new(&group.case.levels, trials.collect())?
            })
        })
        .collect();
    judge_together(&mut scored, stopping(study));
    let said = Said { study, groups, scored: &scored };
    let mut verdicts: Vec<Verdict> = INSTRUMENTS.iter().flat_map(|instrument| (instrument.verdicts)(&said)).collect();
    // The cost of schema changes is reported with them; cases with and without them are not alternatives.
    let evolves = evolution::is_told(groups);
    let is_told = |factor: &&Factor| !evolves || factor.setting != EVOLVE;
    let contests: Vec<Contest> = contested(&factors)
        .filter(|_| !events::happen(groups))
        .filter(is_told)
        .flat_map(|factor| contests(&factors, factor, metric, &scored))
        .collect();
    verdicts.extend(contest_verdicts(&contests, metric));
    verdicts.extend(INSTRUMENTS.iter().flat_map(|instrument| (instrument.later_verdicts)(&said)));
    for ramp in &factors.ramps {
        verdicts.extend(ramps::verdicts(&factors, ramp, metric, &scored));
    }
    let grown = if is_open { growth::verdicts(groups) } else { Vec::new() };
    if verdicts.is_empty() && grown.iter().all(|(rates, _)| *rates < 2) {
        verdicts.extend(scored.iter().map(|case| {
            let what = if metric.more_is_better { String::new() } else { format!("{} ", metric.title) };
            let own = groups.iter().find(|group| group.case.levels == *case.levels);
            let trials: Vec<&Measurement> = own.map(|group| group.valid().collect()).unwrap_or_default();
            let shown = metric.show_case(&trials, &case.values, case.interval);
            let (levels, n) = (case.levels.clone(), case.values.len());
            let found = Found::Figure { metric: metric.name, levels, mean: case.mean, n };
            Verdict::new(found, format!("{}: {what}{shown}", show_levels(case.levels)))
        }));
    }
    verdicts.extend(grown.into_iter().map(|(_, verdict)| verdict));
    verdicts
}

/// Returns the metric by which alternatives are compared. An open loop sets the throughput, so its response times are compared; batches of
/// different sizes are compared by records, and paths through a recorder by the records stored.
pub fn metric_of(groups: &[CaseTrials<'_>]) -> &'static Metric {
    let open = !groups.is_empty() && groups.iter().all(|group| group.case.settings.load.arrivals != Arrivals::Closed);
    let trials = || groups.iter().flat_map(CaseTrials::valid);
    let is_told =
        |name: &str| Metric::named(name).is_some_and(|metric| trials().any(|trial| metric.of(trial).is_some()));
    let batched = groups.iter().any(|group| group.case.settings.workload.batch > 1) && is_told("records");
    let name = if is_told("intake") {
        // For blocks, from sources too, the question is how much of the offered data is taken in.
        "intake"
    } else if open && !is_told("response_time_p99") && is_told("response_time_mean") {
        // Another tool measured, and kept no histogram.
        "response_time_mean"
    } else if is_told("freshness_p90") {
        "freshness_p90"
    } else if open {
        "response_time_p99"
    } else if is_told("stored") {
        // A record that a recorder has acknowledged may still wait for the database.
        "stored"
    } else if batched {
        "records"
    } else {
        "throughput"
    };
    Metric::named(name).expect("these names are in the list of metrics")
}

/// Returns the factors whose levels are alternatives to each other: answers to one question, of which a reader chooses one.
fn contested(factors: &Factors) -> impl Iterator<Item = &Factor> {
    factors.judged().filter(|factor| !is_question(factor))
}
