//! The search for the load line: the highest arrival rate whose quantile of response time stays below a bound.
//!
//! Main function: [`next`], a pure state machine: from the trials so far to the next arrival rate, or the answer. Invariant: a
//! line counts as verified only when trials at exactly its rate kept the bound on (geometric) average.

use super::fit::{Fit, Request, fit};
use super::points::{Point, Points, QuantilePoint};
use super::queue::{Queue, Target};
use super::{Surroundings, Timer};
use crate::statistics::summary::{mean, t_interval};

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound in seconds.
    pub below_s: f64,
    /// Relative width of the answer.
    pub within: f64,
    /// Trials at the line that confirm it, at least 1.
    pub confirmations: usize,
    /// Arrivals per second to begin with.
    pub start_per_s: f64,
    /// Workers in front of the database.
    pub workers: u32,
}

/// A trial at an arrival rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Arrivals per second as asked for.
    pub rate_per_s: f64,
    /// What came of it.
    pub outcome: Outcome,
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The database carried the load.
    Answered {
        /// The quantile of response time in seconds, above 0.
        quantile_s: f64,
        /// Mean response time in seconds.
        mean_s: f64,
    },
    /// The database fell behind.
    Overloaded,
    /// The client could not offer the rate as it should.
    ClientLimited,
    /// The trial cannot be used for another reason.
    Invalid,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// A trial at this arrival rate.
    Measure(f64),
    /// The search is over.
    Done(Answer),
}

/// How the search ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Why it ended.
    pub ending: Ending,
    /// The line; none where there is none.
    pub line: Option<Line>,
}

/// A load line.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// Arrivals per second.
    pub rate_per_s: f64,
    /// 95 % interval of the arrival rate at which the quantile reaches the bound, over trials.
    pub interval: Option<[f64; 2]>,
    /// Whether trials at that rate kept the bound.
    pub is_verified: bool,
    /// That arrival rate as each trial near the line estimates it.
    pub each_per_s: Vec<f64>,
    /// Trials at the line.
    pub trials: usize,
    /// Geometric mean of their quantiles, in seconds; none without trials at the line.
    pub quantile_s: Option<f64>,
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Ending {
    /// The line was found.
    Found,
    /// The quantile is above the bound even where nothing queues: at this arrival rate it has this value in seconds.
    NotReached(f64, f64),
    /// The quantile still kept the bound at this arrival rate, and the client cannot drive more.
    AboveClient(f64),
    /// The bound was exceeded at the first arrival rate and kept at the second, higher one.
    NotMonotone(f64, f64),
    /// Trials were invalid again and again.
    Unusable,
    /// The trials allowed were used up before the line was confirmed.
    Unsettled,
}

/// Trials that cannot be used until the search is given up.
const INVALID_MOST: usize = 5;
/// Trials that the client could not drive at one rate until it counts as its limit.
const CLIENT_LIMITED_MOST: usize = 3;
/// Below this mean number of running operations nothing queues.
const NO_QUEUE: f64 = 0.05;
/// Rates this far apart, by their quantiles' ratio to the bound, contradict one another.
const CONTRADICTION: f64 = 1.25;
/// Relative spread of a trial's quantile that points are weighed with.
const SPREAD: f64 = 0.15;
/// Rates from which on a third parameter can be told.
const SCALED_FROM: usize = 6;
/// Trials within this relative distance of the line estimate it.
const NEAR: f64 = 0.15;

/// Trials that a search may take at most.
pub fn trials_most(confirmations: usize) -> usize {
    14 + 4 * confirmations
}

/// All trials at one arrival rate.
#[derive(Debug, Clone, PartialEq, Default)]
struct Rate {
    rate_per_s: f64,
    quantiles_s: Vec<f64>,
    means_s: Vec<f64>,
    overloaded: usize,
    client_limited: usize,
}

impl Rate {
    fn valid(&self) -> usize {
        self.quantiles_s.len() + self.overloaded
    }

    /// Geometric mean of the quantiles; infinite where the database mostly fell behind.
    fn quantile_s(&self) -> f64 {
        if 2 * self.overloaded >= self.valid() {
            return f64::INFINITY;
        }
        let logarithms: Vec<f64> = self.quantiles_s.iter().map(|quantile_s| quantile_s.ln()).collect();
        mean(&logarithms).map_or(f64::INFINITY, f64::exp)
    }
}

/// From the trials so far to the next step.
pub fn next(bound: &Bound, probes: &[Probe]) -> Step {
    let rates = rates_of(probes);
    let invalid = probes.iter().filter(|probe| probe.outcome == Outcome::Invalid).count();
    if invalid >= INVALID_MOST {
        return done(Ending::Unusable, None);
    }
    let Some(last) = probes.last() else { return Step::Measure(rounded(bound.start_per_s)) };
    let at_last = rates.iter().find(|rate| rate.rate_per_s == last.rate_per_s);
    let limited = at_last.map_or(0, |rate| rate.client_limited);
    let is_retried = last.outcome == Outcome::ClientLimited && limited < CLIENT_LIMITED_MOST;
    if last.outcome == Outcome::Invalid || is_retried {
        return Step::Measure(last.rate_per_s);
    }
    if let Some(step) = contradiction(bound, &rates) {
        return step;
    }
    let holds = |rate: &&Rate| rate.valid() > 0 && rate.quantile_s() <= bound.below_s;
    let high = rates.iter().find(|rate| rate.valid() > 0 && rate.quantile_s() > bound.below_s);
    let ceiling = rates.iter().find(|rate| rate.client_limited >= CLIENT_LIMITED_MOST && rate.valid() == 0);
    let limit_per_s = high.map_or(f64::INFINITY, |rate| rate.rate_per_s);
    let low = rates.iter().filter(holds).rfind(|rate| rate.rate_per_s < limit_per_s);
    match (low, high, ceiling) {
        (Some(low), None, Some(_)) => done(Ending::AboveClient(low.rate_per_s), None),
        (None, None, _) => done(Ending::Unusable, None),
        (Some(low), None, None) if probes.len() >= trials_most(bound.confirmations) => {
            done(Ending::AboveClient(low.rate_per_s), None)
        }
        (Some(low), None, None) => Step::Measure(rounded(upward(&rates, low))),
        (None, Some(high), _) => downward(bound, high, probes.len()),
        (Some(low), Some(high), _) => between(bound, &rates, (low, high), probes.len()),
    }
}

fn done(ending: Ending, line: Option<Line>) -> Step {
    Step::Done(Answer { ending, line })
}

fn rates_of(probes: &[Probe]) -> Vec<Rate> {
    let mut rates: Vec<Rate> = Vec::new();
    for probe in probes {
        let place = rates.iter().position(|rate| rate.rate_per_s == probe.rate_per_s).unwrap_or_else(|| {
            rates.push(Rate { rate_per_s: probe.rate_per_s, ..Rate::default() });
            rates.len() - 1
        });
        let rate = &mut rates[place];
        match probe.outcome {
            Outcome::Answered { quantile_s, mean_s } => {
                rate.quantiles_s.push(quantile_s);
                rate.means_s.push(mean_s);
            }
            Outcome::Overloaded => rate.overloaded += 1,
            Outcome::ClientLimited => rate.client_limited += 1,
            Outcome::Invalid => {}
        }
    }
    rates.sort_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s));
    rates
}

/// Three significant digits, so that rates are repeated exactly and read well.
fn rounded(rate_per_s: f64) -> f64 {
    let unit = 10_f64.powf(rate_per_s.log10().floor() - 2.0);
    if unit >= 1.0 {
        (rate_per_s / unit).round() * unit
    } else {
        // Dividing by a whole number keeps decimals exact.
        (rate_per_s / unit).round() / (1.0 / unit).round()
    }
}

/// Nothing has exceeded the bound yet: twice as much; after the first rate at once half of what one server could do at most.
fn upward(rates: &[Rate], low: &Rate) -> f64 {
    let half_s = mean(&low.means_s).unwrap_or(f64::INFINITY);
    let twice = 2.0 * low.rate_per_s;
    if rates.len() == 1 { twice.max(0.5 / half_s) } else { twice }
}

/// Everything has exceeded the bound yet: less, until nothing queues any more.
fn downward(bound: &Bound, high: &Rate, count: usize) -> Step {
    let queued = mean(&high.means_s).map(|mean_s| mean_s * high.rate_per_s);
    if queued.is_some_and(|running| running < NO_QUEUE) {
        if high.valid() < 2 {
            return Step::Measure(high.rate_per_s);
        }
        return done(Ending::NotReached(high.rate_per_s, high.quantile_s()), None);
    }
    if count >= trials_most(bound.confirmations) || high.rate_per_s < 0.01 {
        return done(Ending::NotReached(high.rate_per_s, high.quantile_s()), None);
    }
    Step::Measure(rounded(high.rate_per_s / if queued.is_none() { 4.0 } else { 2.0 }))
}

/// A lower rate that clearly exceeds the bound and a higher one that clearly keeps it: both are repeated, and if they stay so the
/// curve is not monotone.
fn contradiction(bound: &Bound, rates: &[Rate]) -> Option<Step> {
    let exceeds = |rate: &&Rate| rate.valid() > 0 && rate.quantile_s() > CONTRADICTION * bound.below_s;
    let lower = rates.iter().find(exceeds)?;
    let keeps = |rate: &&Rate| rate.valid() > 0 && rate.quantile_s() < bound.below_s / CONTRADICTION;
    let higher = rates.iter().filter(keeps).find(|rate| rate.rate_per_s > lower.rate_per_s)?;
    if let Some(rate) = [lower, higher].into_iter().find(|rate| rate.valid() < 3) {
        return Some(Step::Measure(rate.rate_per_s));
    }
    Some(done(Ending::NotMonotone(lower.rate_per_s, higher.rate_per_s), None))
}

/// The line lies between two rates: a trial where the model fitted so far puts it, then more trials there.
fn between(bound: &Bound, rates: &[Rate], (low, high): (&Rate, &Rate), count: usize) -> Step {
    let model = model_of(bound, rates);
    let target = Target::Quantile(bound.quantile);
    let fitted = model.as_deref().and_then(|model| limit_of(model, target, bound.below_s));
    let width = high.rate_per_s - low.rate_per_s;
    let is_near = width <= 2.0 * bound.within * low.rate_per_s;
    let inside = |limit: f64| limit.clamp(low.rate_per_s + 0.15 * width, high.rate_per_s - 0.15 * width);
    let limit = match fitted {
        // Single trials at the ends may mislead by their noise; the model has seen all of them.
        Some(limit) if is_near => {
            limit.clamp(low.rate_per_s * (1.0 - bound.within), high.rate_per_s * (1.0 + bound.within))
        }
        Some(limit) => inside(limit),
        None => inside((low.rate_per_s * high.rate_per_s).sqrt()),
    };
    let wanted = limit * (1.0 - bound.within / 2.0);
    let confirmed =
        rates.iter().rfind(|rate| rate.valid() >= bound.confirmations && rate.quantile_s() <= bound.below_s);
    if let Some(line) = confirmed.filter(|line| wanted <= line.rate_per_s * (1.0 + bound.within / 2.0)) {
        return done(Ending::Found, Some(line_at(bound, rates, line, model.as_deref())));
    }
    if count >= trials_most(bound.confirmations) {
        return match confirmed {
            Some(line) => done(Ending::Found, Some(line_at(bound, rates, line, model.as_deref()))),
            None => {
                let nearest = low.clone();
                let line = line_at(bound, rates, &nearest, model.as_deref());
                done(Ending::Unsettled, Some(Line { is_verified: false, ..line }))
            }
        };
    }
    let failed = |rate: &&Rate| rate.valid() >= bound.confirmations && rate.quantile_s() > bound.below_s;
    let refuted_per_s = rates.iter().find(failed).map_or(f64::INFINITY, |rate| rate.rate_per_s);
    let wanted = wanted.min(refuted_per_s * (1.0 - bound.within / 2.0));
    // A rate near by is repeated, so that trials gather at the line.
    let same = rates
        .iter()
        .filter(|rate| rate.valid() > 0 && rate.rate_per_s < refuted_per_s)
        .filter(|rate| rate.valid() < bound.confirmations)
        .min_by(|a, b| (a.rate_per_s - wanted).abs().total_cmp(&(b.rate_per_s - wanted).abs()))
        .filter(|rate| (rate.rate_per_s - wanted).abs() <= bound.within / 2.0 * wanted);
    Step::Measure(same.map_or(rounded(wanted), |rate| rate.rate_per_s))
}

/// The model that fits the quantiles of all rates best.
fn model_of(bound: &Bound, rates: &[Rate]) -> Option<Box<dyn Queue>> {
    let target = Target::Quantile(bound.quantile);
    let answered = rates.iter().filter(|rate| rate.quantile_s().is_finite() && rate.valid() > 0);
    let point = |rate: &Rate| {
        let value_s = rate.quantile_s();
        let se_s = Some(SPREAD * value_s / (rate.quantiles_s.len() as f64).sqrt());
        Point {
            arrival_rate_per_s: Some(rate.rate_per_s),
            quantiles: vec![QuantilePoint { quantile: bound.quantile, value_s, se_s }],
            workers: Some(bound.workers),
            ..Point::default()
        }
    };
    let points = Points(answered.map(point).collect());
    let around = Surroundings { workers: Some(bound.workers), servers: None, timer: Timer::Intended };
    // Two shapes suffice to place a trial; all models would take longer than the trial.
    let models: &[&str] = if points.0.len() >= SCALED_FROM { &["mm1", "mm1-scaled"] } else { &["mm1"] };
    let fits = models.iter().filter_map(|model| {
        let report = fit(&points, &Request { model: (*model).to_owned(), target, around }).ok()?;
        report.fits.into_iter().next()
    });
    let misfit = |fit: &Fit| fit.aicc.unwrap_or(f64::INFINITY);
    fits.min_by(|a, b| misfit(a).total_cmp(&misfit(b)))?.queue(&around)
}

/// The highest arrival rate at which a model keeps the bound; none where it says nothing of use.
fn limit_of(model: &dyn Queue, target: Target, below_s: f64) -> Option<f64> {
    let holds = |rate: f64| model.figure_s(rate, target).is_some_and(|figure_s| figure_s <= below_s);
    let capacity = model.capacity_per_s();
    let limit = super::search::last_that_holds(0.0, capacity, holds);
    (limit > 0.0 && limit.is_finite()).then_some(limit)
}

/// The line at a rate, with what the trials near it say about where the quantile reaches the bound: each trial's distance from
/// the bound, over the slope of the curve (inverse regression).
fn line_at(bound: &Bound, rates: &[Rate], at: &Rate, model: Option<&dyn Queue>) -> Line {
    let target = Target::Quantile(bound.quantile);
    let logarithm = |rate: f64| Some(model?.figure_s(rate, target)?.ln());
    let step = 0.02 * at.rate_per_s;
    let slope = logarithm(at.rate_per_s)
        .zip(logarithm(at.rate_per_s - step))
        .map(|(here, before)| (here - before) / step)
        .filter(|slope| *slope > 0.0 && slope.is_finite());
    let near = rates.iter().filter(|rate| (rate.rate_per_s - at.rate_per_s).abs() <= NEAR * at.rate_per_s);
    let each_per_s: Vec<f64> = slope.map_or(Vec::new(), |slope| {
        let estimate = |rate: f64, quantile_s: f64| rate + (bound.below_s / quantile_s).ln() / slope;
        near.flat_map(|rate| rate.quantiles_s.iter().map(move |seen| estimate(rate.rate_per_s, *seen))).collect()
    });
    let interval = t_interval(&each_per_s, 0.95);
    let widened = |low: f64, high: f64| [low.min(at.rate_per_s).max(0.0), high.max(at.rate_per_s)];
    Line {
        rate_per_s: at.rate_per_s,
        interval: interval.map(|interval| widened(interval.low, interval.high)),
        is_verified: at.valid() >= bound.confirmations && at.quantile_s() <= bound.below_s,
        each_per_s,
        trials: at.valid(),
        quantile_s: Some(at.quantile_s()).filter(|quantile_s| quantile_s.is_finite()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    const BOUND: Bound =
        Bound { quantile: 0.9, below_s: 0.010, within: 0.05, confirmations: 5, start_per_s: 100.0, workers: 16 };

    /// A trial of an M/M/1 server: Lindley's recursion over some seconds of arrivals.
    fn trial(rate_per_s: f64, mu_per_s: f64, delta_s: f64, seconds: f64, random: &mut Random) -> Probe {
        let mut draw = |per_s: f64| -(1.0 - random.unit()).ln() / per_s;
        let (mut waiting_s, mut at_s, mut times) = (0.0_f64, 0.0, Vec::new());
        while at_s < seconds {
            let service_s = draw(mu_per_s);
            times.push(waiting_s + service_s + delta_s);
            let gap_s = draw(rate_per_s);
            at_s += gap_s;
            waiting_s = (waiting_s + service_s - gap_s).max(0.0);
        }
        times.sort_by(f64::total_cmp);
        let quantile_s = times[(times.len() as f64 * 0.9) as usize];
        let mean_s = times.iter().sum::<f64>() / times.len() as f64;
        let is_behind = waiting_s > 0.02 * seconds + 16.0 / mu_per_s;
        let outcome = if is_behind { Outcome::Overloaded } else { Outcome::Answered { quantile_s, mean_s } };
        Probe { rate_per_s, outcome }
    }

    /// The answer, and how many trials it took.
    fn search(bound: &Bound, mut measure: impl FnMut(f64) -> Probe) -> (Answer, usize) {
        let mut probes = Vec::new();
        loop {
            match next(bound, &probes) {
                Step::Measure(rate_per_s) => probes.push(measure(rate_per_s)),
                Step::Done(answer) => return (answer, probes.len()),
            }
            assert!(probes.len() <= trials_most(bound.confirmations) + INVALID_MOST, "{probes:?}");
        }
    }

    fn exact(rate_per_s: f64, mu_per_s: f64) -> Probe {
        let left = mu_per_s - rate_per_s;
        let answered = Outcome::Answered { quantile_s: 10_f64.ln() / left, mean_s: 1.0 / left };
        Probe { rate_per_s, outcome: if left > 0.0 { answered } else { Outcome::Overloaded } }
    }

    #[test]
    fn the_line_of_an_exact_mm1_curve_is_found_in_few_trials() {
        for mu_per_s in [300.0, 1_000.0, 50_000.0] {
            let truth = mu_per_s - 10_f64.ln() / BOUND.below_s;
            let (answer, trials) = search(&BOUND, |rate| exact(rate, mu_per_s));
            let line = answer.line.unwrap();
            assert_eq!((answer.ending, line.is_verified), (Ending::Found, true));
            assert!(line.rate_per_s <= truth && line.rate_per_s >= 0.93 * truth, "{} {truth}", line.rate_per_s);
            assert!(trials <= 18, "{trials} trials for mu = {mu_per_s}");
        }
    }

    #[test]
    fn the_line_of_a_noisy_mm1_server_lies_in_its_interval() {
        let truth = 1_000.0 - 10_f64.ln() / BOUND.below_s;
        let (mut covered, mut trials_sum) = (0, 0);
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (answer, trials) = search(&BOUND, |rate| trial(rate, 1_000.0, 0.0, 5.0, &mut random));
            let line = answer.line.unwrap();
            assert!(line.is_verified, "seed {seed}: {:?}", answer.ending);
            assert!((line.rate_per_s / truth - 1.0).abs() < 0.15, "seed {seed}: {} of {truth}", line.rate_per_s);
            let [low, high] = line.interval.unwrap();
            covered += usize::from((low..=high).contains(&truth));
            trials_sum += trials;
        }
        assert!(covered >= 16, "{covered} of 20 intervals hold the line");
        assert!(trials_sum <= 20 * 22, "{} trials on average", trials_sum / 20);
    }

    #[test]
    fn a_bound_below_the_time_without_load_is_not_reached() {
        let bound = Bound { below_s: 0.001, ..BOUND };
        let (answer, _) = search(&bound, |rate| exact(rate, 1_000.0));
        let Ending::NotReached(rate, quantile_s) = answer.ending else { panic!("{answer:?}") };
        assert!(rate < 60.0 && quantile_s > 0.002, "{rate} {quantile_s}");
        assert_eq!(answer.line, None);
    }

    #[test]
    fn a_client_that_cannot_drive_more_is_named() {
        let limited = |rate_per_s: f64| match exact(rate_per_s, 1e6) {
            probe if rate_per_s < 5_000.0 => probe,
            _ => Probe { rate_per_s, outcome: Outcome::ClientLimited },
        };
        let (answer, _) = search(&BOUND, limited);
        let Ending::AboveClient(rate) = answer.ending else { panic!("{answer:?}") };
        assert!(rate < 5_000.0, "{rate}");
    }

    #[test]
    fn a_curve_that_falls_with_the_rate_has_no_line() {
        // Slow between 150/s and 350/s, as a cache that warms only under load, and overloaded from 2,000/s.
        let odd = |rate_per_s: f64| {
            let quantile_s = if (150.0..350.0).contains(&rate_per_s) { 0.05 } else { 0.004 };
            let answered = Outcome::Answered { quantile_s, mean_s: 0.002 };
            Probe { rate_per_s, outcome: if rate_per_s < 2_000.0 { answered } else { Outcome::Overloaded } }
        };
        let mut probes = vec![odd(100.0), odd(200.0), odd(400.0)];
        while let Step::Measure(rate) = next(&BOUND, &probes) {
            probes.push(odd(rate));
        }
        let Step::Done(answer) = next(&BOUND, &probes) else { panic!("not done") };
        assert_eq!(answer.ending, Ending::NotMonotone(200.0, 400.0));
    }

    #[test]
    fn trials_that_cannot_be_used_end_the_search() {
        let (answer, trials) = search(&BOUND, |rate_per_s| Probe { rate_per_s, outcome: Outcome::Invalid });
        assert_eq!((answer.ending, trials), (Ending::Unusable, INVALID_MOST));
    }

    #[test]
    fn rates_read_well() {
        assert_eq!([123_456.0, 769.74, 12.345, 1.0, 0.123_45].map(rounded), [123_000.0, 770.0, 12.3, 1.0, 0.123]);
    }
}
