//! The uncertainty of totals, from repeated trials.
//!
//! Main function: [`uncertainty`]. The difference of two totals decides: a total itself is made of shares of a maximum, which any
//! noise raises, so that near a tie all totals are estimated too low. Invariant: no interval where a value rests on a single trial.

use super::{Evidence, Measured, Scores, Weighting};
use crate::statistics::student::t_quantile;
use crate::statistics::{mean, sample_sd};

/// Confidence of each interval.
const CONFIDENCE: f64 = 0.95;

/// The intervals of totals.
#[derive(Debug, Clone, PartialEq)]
pub struct Uncertainty {
    /// Interval of each alternative's total, at 95 % confidence or more: every value at the worst and at the best end of its own interval.
    pub totals_ci95: Vec<[f64; 2]>,
    /// Interval of each alternative's total less the highest total of the others, at 95 % for all alternatives together: above 0 it is certainly the
    /// first, below 0 certainly not.
    pub from_best_ci95: Vec<[f64; 2]>,
}

/// The mean of an alternative's trials in a case.
struct Cell {
    is_write: bool,
    case: usize,
    alternative: usize,
    /// Relative standard error of the mean.
    error: f64,
    df: f64,
    /// Half-width of the mean's own interval.
    half: f64,
}

/// Returns the intervals at a weight of writing. `None` when a case has a single trial of an alternative, or evidence is lacking.
pub fn uncertainty(evidence: &Evidence, weighting: Weighting, write_weight: f64) -> Option<Uncertainty> {
    evidence.check().ok()?;
    let mut cells = Vec::new();
    for (is_write, cases) in [(true, &evidence.writing), (false, &evidence.reading)] {
        for (case, measured) in cases.iter().enumerate() {
            for (alternative, trials) in measured.values.iter().enumerate() {
                let error = sample_sd(trials)? / mean(trials)? / (trials.len() as f64).sqrt();
                let df = trials.len() as f64 - 1.0;
                let half = t_quantile(0.5 + CONFIDENCE / 2.0, df) * error;
                cells.push(Cell { is_write, case, alternative, error, df, half });
            }
        }
    }
    let totals = |changed: &dyn Fn(&Cell) -> f64| shifted(evidence, weighting, &cells, changed).totals(write_weight);
    Some(Uncertainty {
        totals_ci95: (0..evidence.alternatives.len()).map(|own| total_interval(own, &totals)).collect(),
        from_best_ci95: from_best(evidence.alternatives.len(), &cells, &totals),
    })
}

/// Returns the scores when the logarithm of each mean is changed.
fn shifted(evidence: &Evidence, weighting: Weighting, cells: &[Cell], changed: &dyn Fn(&Cell) -> f64) -> Scores {
    let means = |cases: &[Measured]| cases.iter().map(Measured::means).collect::<Vec<_>>();
    let (mut writing, mut reading) = (means(&evidence.writing), means(&evidence.reading));
    for cell in cells {
        let cases = if cell.is_write { &mut writing } else { &mut reading };
        let change = changed(cell);
        if change != 0.0 {
            cases[cell.case][cell.alternative] *= change.exp();
        }
    }
    evidence.scores_of(&writing, &reading, weighting)
}

/// A function that returns the totals when the logarithm of each mean is changed by the amount that another function gives.
type Totals<'a> = dyn Fn(&dyn Fn(&Cell) -> f64) -> Vec<f64> + 'a;

/// Returns the interval from the case in which everything is against an alternative to the one in which everything is for it: points rise with its own throughput and with the
/// times of the others.
fn total_interval(own: usize, totals: &Totals<'_>) -> [f64; 2] {
    let end = |favour: f64| {
        let changed = |cell: &Cell| {
            let is_gain = cell.is_write == (cell.alternative == own);
            if is_gain { favour * cell.half } else { -favour * cell.half }
        };
        totals(&changed)[own]
    };
    [end(-1.0), end(1.0)]
}

/// Returns the intervals of the difference of two totals, with standard errors and degrees of freedom by Welch and Satterthwaite: each mean's part is
/// the effect of a change by one standard error. An alternative is the best of k when it is above k - 1 others, hence the quantile.
fn from_best(count: usize, cells: &[Cell], totals: &Totals<'_>) -> Vec<[f64; 2]> {
    let found = totals(&|_| 0.0);
    let effects: Vec<Vec<f64>> = cells
        .iter()
        .map(|own| {
            let at = |sign: f64| totals(&|cell| if std::ptr::eq(cell, own) { sign * own.error } else { 0.0 });
            at(1.0).iter().zip(at(-1.0)).map(|(up, down)| (up - down) / 2.0).collect()
        })
        .collect();
    // Most means change only the total of their own alternative: only the means that others are measured against change more.
    let (mut of_all, mut of_own) = (Vec::new(), vec![Vec::new(); count]);
    for (effect, cell) in effects.iter().zip(cells) {
        let is_own = effect.iter().enumerate().all(|(place, effect)| place == cell.alternative || *effect == 0.0);
        if is_own { of_own[cell.alternative].push((effect, cell.df)) } else { of_all.push((effect, cell.df)) }
    }
    let confidence = 1.0 - (1.0 - CONFIDENCE) / 2.0 / (count as f64 - 1.0);
    let difference = |a: usize, b: usize| {
        let parts = || of_all.iter().chain(&of_own[a]).chain(&of_own[b]);
        let squares = || parts().map(|(effect, df)| ((effect[a] - effect[b]).powi(2), *df));
        let variance: f64 = squares().map(|(square, _)| square).sum();
        let fourth: f64 = squares().map(|(square, df)| square * square / df).sum();
        Difference { between: found[a] - found[b], error: variance.sqrt(), df: variance * variance / fourth }
    };
    // The degrees of freedom of a difference are no fewer than those of its most uncertain mean, and no more than those of all.
    let (fewest, all) =
        cells.iter().fold((f64::INFINITY, 0.0), |(fewest, all), cell| (cell.df.min(fewest), all + cell.df));
    let (widest, narrowest) = (t_quantile(confidence, fewest), t_quantile(confidence, all));
    let of = |own: usize| {
        let others: Vec<Difference> =
            (0..count).filter(|other| *other != own).map(|other| difference(own, other)).collect();
        let low = least(&others, |other| other.between - widest * other.error, |other| other.ends(confidence)[0]);
        let high = least(&others, |other| other.between + narrowest * other.error, |other| other.ends(confidence)[1]);
        [low, high]
    };
    (0..count).map(of).collect()
}

/// The difference of two totals.
struct Difference {
    between: f64,
    error: f64,
    df: f64,
}

impl Difference {
    fn ends(&self, confidence: f64) -> [f64; 2] {
        let half = if self.error > 0.0 { t_quantile(confidence, self.df) * self.error } else { 0.0 };
        [self.between - half, self.between + half]
    }
}

/// Returns the least exact value: exact values are computed in the order of a lower bound, until the bound is above the least value found. An exact one
/// costs a quantile of Student's distribution.
fn least(all: &[Difference], bound: impl Fn(&Difference) -> f64, exact: impl Fn(&Difference) -> f64) -> f64 {
    let mut bounded: Vec<(f64, &Difference)> = all.iter().map(|one| (bound(one), one)).collect();
    bounded.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = f64::INFINITY;
    for (bound, one) in bounded {
        // Bounds and exact values are rounded differently.
        if bound > found + 1e-9 * found.abs() {
            break;
        }
        found = found.min(exact(one));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    fn measured(query: &str, values: Vec<Vec<f64>>) -> Measured {
        Measured { query: query.to_owned(), case: String::new(), values }
    }

    fn evidence(spread: f64) -> Evidence {
        let trials = |mean: f64| vec![mean * (1.0 - spread), mean, mean * (1.0 + spread), mean * (1.0 + spread / 2.0)];
        Evidence {
            alternatives: vec!["a".to_owned(), "b".to_owned()],
            writing: vec![measured("", [100.0, 90.0].map(trials).to_vec())],
            reading: vec![measured("1", [1.0, 1.1].map(trials).to_vec())],
        }
    }

    #[test]
    fn intervals_grow_with_the_spread_of_trials() {
        let of = |spread| uncertainty(&evidence(spread), Weighting::ByQuery, 2.0).unwrap();
        let width = |[low, high]: [f64; 2]| high - low;
        let (narrow, wide) = (of(0.01), of(0.2));
        for (small, large) in
            [(narrow.totals_ci95[1], wide.totals_ci95[1]), (narrow.from_best_ci95[0], wide.from_best_ci95[0])]
        {
            assert!(width(small) > 0.0 && width(large) > 5.0 * width(small), "{narrow:?} {wide:?}");
        }
        assert!(narrow.from_best_ci95[0][0] > 0.0 && wide.from_best_ci95[0][0] < 0.0, "{narrow:?} {wide:?}");
        assert_eq!(
            narrow.from_best_ci95[1],
            narrow.from_best_ci95[0].map(|end| -end).into_iter().rev().collect::<Vec<_>>()[..]
        );
    }

    #[test]
    fn the_least_of_many_is_found_by_their_bounds() {
        let mut random = Random::new(9);
        for _ in 0..200 {
            let mut one =
                || Difference { between: random.unit() - 0.5, error: random.unit(), df: 2.0 + 20.0 * random.unit() };
            let all: Vec<Difference> = (0..30).map(|_| one()).collect();
            let (widest, narrowest) = (t_quantile(0.99, 2.0), t_quantile(0.99, 22.0));
            let low = least(&all, |one| one.between - widest * one.error, |one| one.ends(0.99)[0]);
            let high = least(&all, |one| one.between + narrowest * one.error, |one| one.ends(0.99)[1]);
            let right =
                all.iter().map(|one| one.ends(0.99)).fold([f64::INFINITY; 2], |a, b| [a[0].min(b[0]), a[1].min(b[1])]);
            assert_eq!([low, high], right);
        }
    }

    #[test]
    fn there_is_no_interval_where_a_value_rests_on_one_trial() {
        let mut single = evidence(0.1);
        single.reading[0].values[1].truncate(1);
        assert_eq!(uncertainty(&single, Weighting::ByQuery, 2.0), None);
    }

    /// Simulates two measured cases of writing and five queries, for alternatives with these speeds; every value varies by 10 %.
    fn simulated(speeds: &[f64], trials: usize, random: &mut Random) -> Evidence {
        let mut noisy = |mean: f64| -> Vec<f64> {
            let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
            (0..trials).map(|_| mean * (0.1 * normal()).exp()).collect()
        };
        Evidence {
            alternatives: (0..speeds.len()).map(|place| place.to_string()).collect(),
            writing: (0..2).map(|_| measured("", speeds.iter().map(|speed| noisy(100.0 * speed)).collect())).collect(),
            reading: (0..5)
                .map(|query| measured(&query.to_string(), speeds.iter().map(|speed| noisy(1.0 / speed)).collect()))
                .collect(),
        }
    }

    #[test]
    fn intervals_hold_the_truth_where_alternatives_tie_and_where_they_do_not() {
        for (speeds, trials) in [([1.0, 1.0, 1.0], 4), ([1.0, 0.99, 0.7], 3), ([1.3, 1.0, 0.9], 8)] {
            let mut random = Random::new(trials as u64);
            let truth = simulated(&speeds, 1, &mut Random::new(0));
            let means = |cases: usize, of: &dyn Fn(f64) -> f64| vec![speeds.map(of).to_vec(); cases];
            let truth =
                truth.scores_of(&means(2, &|s| 100.0 * s), &means(5, &|s| 1.0 / s), Weighting::ByQuery).totals(2.0);
            let rival = |own: usize| (0..3).filter(|o| *o != own).map(|o| truth[o]).fold(0.0, f64::max);
            let (mut differences, mut totals, mut wrong) = (0, 0, 0);
            for _ in 0..150 {
                let found = uncertainty(&simulated(&speeds, trials, &mut random), Weighting::ByQuery, 2.0).unwrap();
                let holds = |[low, high]: [f64; 2], value: f64| low - 1e-9 <= value && value <= high + 1e-9;
                differences += usize::from((0..3).all(|o| holds(found.from_best_ci95[o], truth[o] - rival(o))));
                totals += usize::from(holds(found.totals_ci95[0], truth[0]));
                wrong += usize::from((0..3).any(|o| found.from_best_ci95[o][0] > 0.0 && truth[o] <= rival(o)));
            }
            // 95 % of 150 less three standard deviations; for the best, no more than 5 % and three.
            assert!(differences >= 135 && totals >= 135 && wrong <= 15, "{speeds:?}: {differences} {totals} {wrong}");
        }
    }
}
