//! Verdicts: the answer to a study's question, in sentences that carry their evidence.
//!
//! Main function: [`verdicts`]. Invariant: a sentence never says more than the intervals do; without a valid trial there is
//! no verdict.

use crate::measurement::Measurement;
use crate::report::analyse::{CaseTrials, is_overloaded};
use crate::report::compare::sample::TrialValue;
use crate::report::contest::{self, Contest, Scored, contest_sentences, contests};
use crate::report::evolution::{self, EVOLVE};
use crate::report::factors::{Factors, QUERY, is_given, show_level, show_levels};
use crate::report::growth;
use crate::report::load_lines::{self, CaseLine};
use crate::report::metric::{LOAD_LINE, Metric};
use crate::report::{disk, freshness};
use crate::report::{recorded, uploads};
use crate::study::{Factor, Study};
use crate::trial::Arrivals;
use crate::units::show_number;

/// A peak is said to be reached where this share of it is.
const NEARLY: f64 = 0.9;
/// Sentences about one ramp at most; beyond, the plots say it better.
const RAMP_SENTENCES_MOST: usize = 4;

/// What the measurements say about the question; the most important first.
pub fn verdicts(study: &Study, groups: &[CaseTrials<'_>], lines: &[CaseLine]) -> Vec<String> {
    let mut sentences = if study.goal.is_some() { of_load_lines(study, lines) } else { of_cases(study, groups) };
    if !groups.iter().any(|group| group.valid().next().is_some()) {
        sentences.insert(0, "no verdict: there is no valid trial".to_owned());
    }
    if study.quick {
        sentences.push("rehearsal: figures are not to be quoted".to_owned());
    }
    sentences
}

/// The load lines of all cases, compared between alternatives where there are several.
fn of_load_lines(study: &Study, lines: &[CaseLine]) -> Vec<String> {
    let mut factors = Factors::of(study);
    factors.ramps.retain(|ramp| ramp.setting != growth::RATE);
    let with_line = lines.iter().filter(|line| line.finding.verified);
    let scored: Vec<Scored<'_>> = with_line
        .filter_map(|line| {
            // What was confirmed at one line has no rounds in common with another.
            let trials = line.each_per_s.iter().map(|value| TrialValue { place: None, value: *value });
            Scored::new(&line.finding.levels, trials.collect())
        })
        .collect();
    let contests: Vec<Contest> =
        contested(&factors).flat_map(|factor| contests(study, &factors, factor, &LOAD_LINE, &scored)).collect();
    let mut sentences = contest_sentences(&contests, &LOAD_LINE);
    sentences.extend(load_lines::sentences(lines));
    sentences
}

/// What the cases' own figures say.
fn of_cases(study: &Study, groups: &[CaseTrials<'_>]) -> Vec<String> {
    let factors = Factors::of(study);
    let metric = metric_of(groups);
    let is_open = !metric.more_is_better;
    // Response times of an overloaded case grow with the trial's length: there is nothing to compare.
    let is_comparable = |group: &&CaseTrials<'_>| !(is_open && is_overloaded(&group.valid().collect::<Vec<_>>()));
    let scored: Vec<Scored<'_>> = groups
        .iter()
        .filter(is_comparable)
        .filter_map(|group| {
            let place = |trial: &Measurement| Some((trial.trial.round, trial.sequence));
            let trials =
                group.valid().filter_map(|trial| Some(TrialValue { place: place(trial), value: metric.of(trial)? }));
            Scored::new(&group.case.levels, trials.collect())
        })
        .collect();
    let changes = evolution::sentences(groups, &scored, study.seed);
    let evolves = !changes.is_empty();
    let mut sentences = [disk::sentences(groups), uploads::sentences(groups), changes].concat();
    // What schema changes cost is said there; with and without them are no alternatives.
    let is_told = |factor: &&Factor| !evolves || factor.setting != EVOLVE;
    let contests: Vec<Contest> = contested(&factors)
        .filter(is_told)
        .flat_map(|factor| contests(study, &factors, factor, metric, &scored))
        .collect();
    sentences.extend(contest_sentences(&contests, metric));
    sentences.extend(recorded::sentences(groups));
    sentences.extend(freshness::sentences(study, groups));
    for ramp in &factors.ramps {
        sentences.extend(ramp_sentences(&factors, ramp, metric, &scored, study.seed));
    }
    let grown = if is_open { growth::sentences(groups) } else { Vec::new() };
    if sentences.is_empty() && grown.iter().all(|(rates, _)| *rates < 2) {
        sentences.extend(scored.iter().map(|case| {
            let what = if metric.more_is_better { String::new() } else { format!("{} ", metric.title) };
            format!("{}: {what}{}", show_levels(case.levels), metric.show_estimate(&case.values))
        }));
    }
    sentences.extend(grown.into_iter().map(|(_, sentence)| sentence));
    sentences
}

/// What alternatives are compared by. An open loop sets the throughput itself, so there response times are compared;
/// batches of different size are compared by records, and paths through a recorder by what became stored.
pub fn metric_of(groups: &[CaseTrials<'_>]) -> &'static Metric {
    let open = !groups.is_empty() && groups.iter().all(|group| group.case.settings.load.arrivals != Arrivals::Closed);
    let trials = || groups.iter().flat_map(CaseTrials::valid);
    let is_told =
        |name: &str| Metric::named(name).is_some_and(|metric| trials().any(|trial| metric.of(trial).is_some()));
    let batched = groups.iter().any(|group| group.case.settings.workload.batch > 1) && is_told("records");
    let name = if is_told("intake") {
        // Blocks, of sources too: how much of what they offer is the question.
        "intake"
    } else if open && !is_told("response_time_p99") && is_told("response_time_mean") {
        // Another tool measured, and kept no histogram.
        "response_time_mean"
    } else if is_told("freshness_p90") {
        "freshness_p90"
    } else if open {
        "response_time_p99"
    } else if is_told("stored") {
        // What a recorder has acknowledged may still wait for the database.
        "stored"
    } else if batched {
        "records"
    } else {
        "throughput"
    };
    Metric::named(name).expect("these names are in the list of metrics")
}

/// Factors whose levels are alternatives to each other.
fn contested(factors: &Factors) -> impl Iterator<Item = &Factor> {
    factors.judged().filter(|factor| factor.setting != QUERY)
}

/// Where throughput peaks along a ramp, for each alternative with the other ramps where it peaks; of a condition, what it does.
fn ramp_sentences(factors: &Factors, ramp: &Factor, metric: &Metric, scored: &[Scored<'_>], seed: u64) -> Vec<String> {
    // The alternatives with the highest peak come first.
    let mut ordered: Vec<&Scored<'_>> = scored.iter().collect();
    ordered.sort_by(|a, b| b.mean.total_cmp(&a.mean));
    let mut labels: Vec<String> = Vec::new();
    for case in ordered {
        let label = factors.choice_label(case.levels);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    let mut sentences: Vec<String> = labels
        .iter()
        .filter_map(|label| {
            let own: Vec<&Scored<'_>> =
                scored.iter().filter(|case| factors.choice_label(case.levels) == *label).collect();
            let sentence = if is_given(ramp) {
                condition_sentence(factors, ramp, metric, &own, seed)?
            } else {
                ramp_sentence(factors, ramp, metric, &own)?
            };
            Some(if label.is_empty() { sentence } else { format!("{label}: {sentence}") })
        })
        .collect();
    let more = sentences.len().saturating_sub(RAMP_SENTENCES_MOST);
    if more > 0 {
        sentences.truncate(RAMP_SENTENCES_MOST);
        sentences
            .push(format!("how throughput goes with {} for {more} more alternatives is in the plots", ramp.setting));
    }
    sentences
}

/// What a condition does to throughput from its lowest to its highest level, at the other ramps where all of it peaks.
fn condition_sentence(
    factors: &Factors,
    ramp: &Factor,
    metric: &Metric,
    cases: &[&Scored<'_>],
    seed: u64,
) -> Option<String> {
    if !metric.more_is_better {
        return None;
    }
    let slice = slice_at_peak(factors, ramp, cases)?;
    let ((lowest, first), (highest, last)) = (slice.first()?, slice.last()?);
    let ratio = contest::estimate(&[(last, first)], seed)?;
    let interval = ratio.interval;
    let word = match (interval.low > 1.0, interval.high < 1.0) {
        (true, _) => "rises",
        (_, true) => "falls",
        _ => "is not certain to change",
    };
    Some(format!(
        "throughput {word} from {} = {} to {}: from {} to {}{}, {:.2} × [{:.2}, {:.2}], n = {} + {}",
        ramp.setting,
        show_number(*lowest),
        show_number(*highest),
        metric.show(first.mean),
        metric.show(last.mean),
        metric.unit(),
        ratio.ratio,
        interval.low,
        interval.high,
        ratio.n_to,
        ratio.n_of,
    ))
}

fn ramp_sentence(factors: &Factors, ramp: &Factor, metric: &Metric, cases: &[&Scored<'_>]) -> Option<String> {
    if !metric.more_is_better {
        return None;
    }
    let peak = peak_of(cases)?;
    let others: Vec<&Factor> = factors.ramps.iter().filter(|other| other.setting != ramp.setting).collect();
    let slice = slice_at_peak(factors, ramp, cases)?;
    let at = show_level(peak.levels.get(&ramp.setting)?);
    let with: Vec<String> = others
        .iter()
        .filter_map(|other| Some(format!("{} = {}", other.setting, show_level(peak.levels.get(&other.setting)?))))
        .collect();
    let with = if with.is_empty() { String::new() } else { format!(" (with {})", with.join(", ")) };
    let figure = metric.show_estimate(&peak.values);
    let (first, nearly) =
        slice.iter().find(|(_, case)| case.mean >= NEARLY * peak.mean).map(|(x, case)| (*x, *case))?;
    let last = slice.last().is_some_and(|(_, case)| std::ptr::eq(*case, peak));
    let edge = if last { "; that is the highest level tried, so the peak may lie beyond" } else { "" };
    let reached =
        if std::ptr::eq(nearly, peak) { String::new() } else { format!("; 90 % of it is reached at {first}") };
    let what = match metric.name {
        "stored" => "what is stored per second",
        "intake" => "the intake",
        _ => "throughput",
    };
    Some(format!("{what} peaks at {} = {at}{with}: {figure}{reached}{edge}", ramp.setting))
}

fn peak_of<'s, 'a>(cases: &[&'s Scored<'a>]) -> Option<&'s Scored<'a>> {
    cases.iter().copied().max_by(|a, b| a.mean.total_cmp(&b.mean))
}

/// The cases along a ramp, lowest level first, with the other ramps as they are where throughput peaks; none below two.
fn slice_at_peak<'s, 'a>(
    factors: &Factors,
    ramp: &Factor,
    cases: &[&'s Scored<'a>],
) -> Option<Vec<(f64, &'s Scored<'a>)>> {
    let peak = peak_of(cases)?;
    let others: Vec<&Factor> = factors.ramps.iter().filter(|other| other.setting != ramp.setting).collect();
    let aligned =
        |case: &&Scored<'_>| others.iter().all(|o| case.levels.get(&o.setting) == peak.levels.get(&o.setting));
    let mut slice: Vec<(f64, &Scored<'_>)> = cases
        .iter()
        .copied()
        .filter(aligned)
        .filter_map(|case| Some((case.levels.get(&ramp.setting)?.as_f64()?, case)))
        .collect();
    slice.sort_by(|a, b| a.0.total_cmp(&b.0));
    (slice.len() >= 2).then_some(slice)
}
