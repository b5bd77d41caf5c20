//! Analyses growth: how the response time of an open loop grows with the arrival rate.
//!
//! Main function: [`verdicts`]. Invariant: a case is said to keep a response time only up to the first arrival rate at which the database
//! was overloaded.

use crate::finding::{Estimate, Found, Verdict};
use crate::measurement::Measurement;
use crate::report::case_trials::{CaseTrials, estimate, is_overloaded};
use crate::report::factors::show_levels;
use crate::statistics::summary::{Interval, t_interval};
use crate::trial::Levels;
use crate::units::{Carried, NS_PER_S, show_number, show_seconds};

/// The setting whose levels are arrival rates.
pub const RATE: &str = "load.rate";
/// The setting whose levels are speeds of a replay, each of which is an arrival rate.
const SPEED: &str = "workload.speed";

/// Returns whether the levels of a setting are arrival rates.
pub fn is_rate(setting: &str) -> bool {
    [RATE, SPEED].contains(&setting)
}

/// The cases that differ only in the arrival rate.
#[derive(Debug, Clone)]
pub struct Series<'g, 'a> {
    /// The levels of the cases without the arrival rate.
    pub levels: Levels,
    /// The cases with a valid trial, the lowest arrival rate first.
    pub cases: Vec<Loaded<'g, 'a>>,
}

/// A case of an open loop.
#[derive(Debug, Clone)]
pub struct Loaded<'g, 'a> {
    /// The case with its trials.
    pub group: &'g CaseTrials<'a>,
    /// The valid trials of the case.
    pub trials: Vec<&'a Measurement>,
    /// Operations scheduled per second.
    pub offered_per_s: f64,
    /// Operations completed per second.
    pub carried_per_s: Estimate,
    /// Whether the database fell behind.
    pub is_overloaded: bool,
}

impl Loaded<'_, '_> {
    /// Returns the requested arrival rate if there is one, otherwise the measured one.
    pub fn rate_per_s(&self) -> f64 {
        self.group.case.settings.load.rate_per_s.unwrap_or(self.offered_per_s)
    }

    /// Returns a quantile of response time over all trials, in seconds; a lower bound if operations were abandoned.
    pub fn quantile_s(&self, quantile: f64) -> f64 {
        let mut all = crate::histogram::Histogram::new();
        self.trials.iter().for_each(|trial| all.merge(&trial.response_times()));
        all.quantile_ns(quantile) as f64 / NS_PER_S
    }

    /// Formats the p99 of response time, with its 95 % interval over trials if there are several. Quantiles of trials are skewed, so the
    /// interval is computed on their logarithms.
    fn show_p99(&self) -> String {
        let each = self.trials.iter().map(|trial| trial.response_times().quantile_ns(0.99).max(1) as f64 / NS_PER_S);
        let logarithms: Vec<f64> = each.map(f64::ln).collect();
        let interval = t_interval(&logarithms, 0.95).map(|Interval { low, high }| [low.exp(), high.exp()]);
        let carried = Carried::by(interval);
        let shown = carried.show(self.quantile_s(0.99), show_seconds);
        let ends = interval.map_or(String::new(), |ends| format!(" {}", carried.show_ends(ends, show_seconds)));
        format!("{shown}{ends}, n = {}", logarithms.len())
    }

    fn rate(&self) -> String {
        format!("{}/s", show_number(self.rate_per_s()))
    }

    fn carried(&self) -> String {
        let carried = self.carried_per_s.show_mean(show_number);
        let interval = self.carried_per_s.show_interval().map_or(String::new(), |interval| format!(" {interval}"));
        format!("{carried}/s{interval}")
    }
}

/// Returns the series of these cases, in their order. Cases of closed loops and cases without a valid trial are left out.
pub fn series<'g, 'a>(groups: &'g [CaseTrials<'a>]) -> Vec<Series<'g, 'a>> {
    let mut all: Vec<Series<'g, 'a>> = Vec::new();
    for group in groups {
        let trials: Vec<&Measurement> = group.valid().collect();
        if trials.is_empty() || trials[0].carried.is_none() {
            continue;
        }
        let mut levels = group.case.levels.clone();
        levels.retain(|setting, _| !is_rate(setting));
        let mean = |figure: fn(&Measurement) -> f64| trials.iter().map(|trial| figure(trial)).collect::<Vec<f64>>();
        let loaded = Loaded {
            offered_per_s: estimate(&mean(Measurement::offered_per_s)).mean.unwrap_or_default(),
            carried_per_s: estimate(&mean(Measurement::throughput_per_s)),
            is_overloaded: is_overloaded(&trials),
            trials,
            group,
        };
        match all.iter_mut().find(|series| series.levels == levels) {
            Some(series) => series.cases.push(loaded),
            None => all.push(Series { levels, cases: vec![loaded] }),
        }
    }
    for series in &mut all {
        series.cases.sort_by(|a, b| a.rate_per_s().total_cmp(&b.rate_per_s()));
    }
    all
}

/// Returns a verdict per series, with the number of its arrival rates. A series of one rate is mentioned only if it is overloaded.
pub fn verdicts(groups: &[CaseTrials<'_>]) -> Vec<(usize, Verdict)> {
    series(groups).iter().filter_map(|series| Some((series.cases.len(), verdict(series)?))).collect()
}

fn verdict(series: &Series<'_, '_>) -> Option<Verdict> {
    let lead = if series.levels.is_empty() { String::new() } else { format!("{}: ", show_levels(&series.levels)) };
    let overload = series.cases.iter().position(|case| case.is_overloaded);
    let carried = &series.cases[..overload.unwrap_or(series.cases.len())];
    let overload = overload.map(|place| &series.cases[place]);
    let overloaded =
        |case: &Loaded<'_, '_>| format!("at {} it is overloaded and carries {}", case.rate(), case.carried());
    let found = |carried_per_s, response_time_p99_s| Found::Growth {
        levels: series.levels.clone(),
        carried_per_s,
        response_time_p99_s,
        overloaded_at_per_s: overload.map(Loaded::rate_per_s),
    };
    let (Some(first), Some(last)) = (carried.first(), carried.last()) else {
        let case = overload?;
        let least_s = case.quantile_s(0.99);
        let verdict = Verdict::new(found(None, least_s), format!("{lead}{}", overloaded(case)));
        return Some(verdict.and(format!("p99 of response time is at least {}", show_seconds(least_s))));
    };
    let highest = carried.iter().max_by(|a, b| a.quantile_s(0.99).total_cmp(&b.quantile_s(0.99))).unwrap_or(last);
    if series.cases.len() == 1 {
        return None;
    }
    let beyond = overload.map_or("no higher rate was tried".to_owned(), overloaded);
    let (high, low) = (highest.show_p99(), first.show_p99());
    let grown = if carried.len() > 1 { format!(" ({low} at {})", first.rate()) } else { String::new() };
    let answer = format!("{lead}p99 of response time is at most {high} up to {}{grown}", last.rate());
    Some(Verdict::new(found(Some(last.rate_per_s()), highest.quantile_s(0.99)), answer).and(beyond))
}
