//! The ratio of two medians with a bootstrap interval: for values with outliers, which affect a mean and not a median.
//!
//! Main function: [`median_ratio`]. Invariants: no interval is given for so few values that resampling could not determine their
//! spread; and the values are sorted once, so that a resample takes time in proportion to its length.

use super::bootstrap::bca;
use super::random::Random;
use super::summary::Interval;

/// Smallest number of values for a bootstrap: with fewer, there are too few different resamples for its tails.
const VALUES_LEAST: usize = 10;
/// Number of resamples of a bootstrap.
const RESAMPLES: usize = 2000;

/// Returns the median of the first values over that of the second ones, and its interval at a confidence in (0, 1): BCa over values,
/// or over pairs when they come in pairs (then both sides are equally long). The interval is `None` below ten values a side.
/// `None` without values or when a median is not above 0.
pub fn median_ratio(
    of: &[f64],
    to: &[f64],
    are_pairs: bool,
    seed: u64,
    confidence: f64,
) -> Option<(f64, Option<Interval>)> {
    let (of, to) = (Ranked::of(of), Ranked::of(to));
    let estimate = log(of.median(), to.median())?;
    if of.len().min(to.len()) < VALUES_LEAST || (are_pairs && of.len() != to.len()) {
        return Some((estimate.exp(), None));
    }
    let mut random = Random::new(seed);
    let (mut drawn_of, mut drawn_to) = (of.nothing_drawn(), to.nothing_drawn());
    let mut replicate = || {
        for _ in 0..of.len() {
            let drawn = random.below(of.len());
            drawn_of[of.place[drawn] as usize] += 1;
            if are_pairs {
                drawn_to[to.place[drawn] as usize] += 1;
            }
        }
        if !are_pairs {
            (0..to.len()).for_each(|_| drawn_to[to.place[random.below(to.len())] as usize] += 1);
        }
        log(of.median_of(&mut drawn_of), to.median_of(&mut drawn_to))
    };
    let replicates: Option<Vec<f64>> = (0..RESAMPLES).map(|_| replicate()).collect();
    let interval = replicates.and_then(|replicates| {
        let influences = influences(&of, &to, are_pairs)?;
        let found = bca(&replicates, estimate, &influences, confidence)?.interval;
        Some(Interval { low: found.low.exp(), high: found.high.exp() })
    });
    Some((estimate.exp(), interval))
}

/// Returns the logarithm of the ratio of two medians; `None` where one is missing or not above 0.
fn log(of: Option<f64>, to: Option<f64>) -> Option<f64> {
    let above_zero = |median: Option<f64>| median.filter(|centre| *centre > 0.0);
    Some((above_zero(of)? / above_zero(to)?).ln())
}

/// Sorted values, and the index of each value in their order.
struct Ranked {
    sorted: Vec<f64>,
    place: Vec<u32>,
}

impl Ranked {
    fn of(values: &[f64]) -> Self {
        let mut order: Vec<u32> = (0..values.len() as u32).collect();
        order.sort_by(|a, b| values[*a as usize].total_cmp(&values[*b as usize]));
        let mut place = vec![0; values.len()];
        order.iter().zip(0..).for_each(|(number, rank)| place[*number as usize] = rank);
        Ranked { sorted: order.iter().map(|number| values[*number as usize]).collect(), place }
    }

    fn len(&self) -> usize {
        self.sorted.len()
    }

    fn median(&self) -> Option<f64> {
        middle(self.len(), |place| self.sorted[place])
    }

    /// Returns the median without one of the values.
    fn median_without(&self, number: usize) -> Option<f64> {
        let left_out = self.place[number] as usize;
        middle(self.len().checked_sub(1)?, |place| self.sorted[place + usize::from(place >= left_out)])
    }

    /// Returns zeros to count how often each value was drawn, by its index in the order.
    fn nothing_drawn(&self) -> Vec<u32> {
        vec![0; self.len()]
    }

    /// Returns the median of a resample from how often each value was drawn, and resets these numbers.
    fn median_of(&self, drawn: &mut [u32]) -> Option<f64> {
        let median = middle(self.len(), |place| {
            let mut seen = 0;
            let reaches = |count: &u32| {
                seen += *count as usize;
                seen > place
            };
            drawn.iter().position(reaches).map_or(f64::NAN, |rank| self.sorted[rank])
        });
        drawn.fill(0);
        median
    }
}

/// Returns the median of `count` values in ascending order, given by their index; `None` without values.
fn middle(count: usize, at: impl Fn(usize) -> f64) -> Option<f64> {
    let middle = count / 2;
    match count {
        0 => None,
        odd if odd % 2 == 1 => Some(at(middle)),
        _ => Some((at(middle - 1) + at(middle)) / 2.0),
    }
}

/// Returns the jackknife's influence of each value, or of each pair.
fn influences(of: &Ranked, to: &Ranked, are_pairs: bool) -> Option<Vec<f64>> {
    let centred = |left: Vec<f64>| {
        let centre = left.iter().sum::<f64>() / left.len() as f64;
        left.into_iter().map(|value| centre - value).collect::<Vec<f64>>()
    };
    if are_pairs {
        let without = |number: usize| log(of.median_without(number), to.median_without(number));
        return (0..of.len()).map(without).collect::<Option<Vec<f64>>>().map(centred);
    }
    let (all_of, all_to) = (of.median(), to.median());
    let left_of: Option<Vec<f64>> = (0..of.len()).map(|number| log(of.median_without(number), all_to)).collect();
    let left_to: Option<Vec<f64>> = (0..to.len()).map(|number| log(all_of, to.median_without(number))).collect();
    // As `bca` requires for several samples: divided by size times (size - 1), up to a factor that both sides share.
    let scaled = |left: Vec<f64>| {
        let size = left.len() as f64;
        centred(left).into_iter().map(move |value| value / (size * (size - 1.0))).collect::<Vec<f64>>()
    };
    Some([scaled(left_of?), scaled(left_to?)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::summary::median;

    #[test]
    fn an_outlier_moves_the_mean_and_not_the_median() {
        let to: Vec<f64> = (0..15).map(|place| 100.0 + f64::from(place)).collect();
        let mut of: Vec<f64> = to.iter().map(|value| 1.2 * value).collect();
        of[14] = 1e6;
        let (ratio, interval) = median_ratio(&of, &to, false, 1, 0.95).unwrap();
        assert!((ratio - 1.2).abs() < 1e-9);
        let interval = interval.unwrap();
        assert!(interval.low > 1.1 && interval.high < 1.3, "{interval:?}");
        let paired = median_ratio(&of, &to, true, 1, 0.95).unwrap().1.unwrap();
        assert!((paired.low - 1.2).abs() < 1e-9, "each pair has the same ratio: {paired:?}");
    }

    #[test]
    fn medians_that_are_counted_are_those_that_are_sorted() {
        let mut random = Random::new(3);
        for count in 1..40 {
            let values: Vec<f64> = (0..count).map(|_| (7.0 * random.unit()).floor() / 3.0).collect();
            let ranked = Ranked::of(&values);
            assert_eq!(ranked.median(), median(&values));
            let mut drawn = ranked.nothing_drawn();
            for _ in 0..3 {
                let numbers: Vec<usize> = (0..count).map(|_| random.below(count)).collect();
                numbers.iter().for_each(|number| drawn[ranked.place[*number] as usize] += 1);
                let chosen: Vec<f64> = numbers.iter().map(|number| values[*number]).collect();
                assert_eq!(ranked.median_of(&mut drawn), median(&chosen));
            }
            for left_out in 0..count {
                let rest = [&values[..left_out], &values[left_out + 1..]].concat();
                assert_eq!(ranked.median_without(left_out), median(&rest));
            }
        }
    }

    #[test]
    fn few_values_have_a_ratio_and_no_interval() {
        assert_eq!(median_ratio(&[2.0, 4.0, 3.0], &[1.0, 2.0], false, 1, 0.95), Some((2.0, None)));
        assert_eq!(median_ratio(&[], &[1.0], false, 1, 0.95), None);
        assert_eq!(median_ratio(&[1.0], &[0.0], false, 1, 0.95), None);
    }

    #[test]
    fn intervals_miss_the_true_ratio_about_five_times_in_a_hundred() {
        let mut random = Random::new(8);
        let mut values = |scale: f64| -> Vec<f64> { (0..15).map(|_| scale * (1.0 + random.unit())).collect() };
        let missed = (0..200).filter(|seed| {
            let (of, to) = (values(3.0), values(2.0));
            let interval = median_ratio(&of, &to, false, *seed, 0.95).unwrap().1.unwrap();
            !(interval.low..=interval.high).contains(&1.5)
        });
        // 10 of 200 expected; a bootstrap of medians errs a little to either side.
        let missed = missed.count();
        assert!((1..=24).contains(&missed), "{missed} of 200 missed");
    }
}
