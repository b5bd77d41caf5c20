//! The ratio of two medians with a bootstrap interval: for values with outliers, which a mean follows and a median does not.
//!
//! Main function: [`median_ratio`]. Invariant: no interval is given from so few values that resampling could not know their
//! spread.

use super::bootstrap::bca;
use super::random::Random;
use super::summary::{Interval, median};

/// Below this many values too few different resamples exist for the tails of a bootstrap.
const VALUES_LEAST: usize = 10;
/// Resamples of a bootstrap.
const RESAMPLES: usize = 2000;

/// The median of the first values over that of the second ones, and its interval at a confidence in (0, 1): BCa over values,
/// or over pairs when they come in pairs (then both sides are equally long). The interval is none below ten values a side.
/// None without values or when a median is not above 0.
pub fn median_ratio(
    of: &[f64],
    to: &[f64],
    are_pairs: bool,
    seed: u64,
    confidence: f64,
) -> Option<(f64, Option<Interval>)> {
    let log = |of: &[f64], to: &[f64]| {
        let above_zero = |values: &[f64]| median(values).filter(|centre| *centre > 0.0);
        Some((above_zero(of)? / above_zero(to)?).ln())
    };
    let estimate = log(of, to)?;
    if of.len().min(to.len()) < VALUES_LEAST || (are_pairs && of.len() != to.len()) {
        return Some((estimate.exp(), None));
    }
    let mut random = Random::new(seed);
    let (mut drawn_of, mut drawn_to) = (vec![0.0; of.len()], vec![0.0; to.len()]);
    let mut replicate = || {
        for place in 0..of.len() {
            let drawn = random.below(of.len());
            drawn_of[place] = of[drawn];
            if are_pairs {
                drawn_to[place] = to[drawn];
            }
        }
        if !are_pairs {
            drawn_to.fill_with(|| to[random.below(to.len())]);
        }
        log(&drawn_of, &drawn_to)
    };
    let replicates: Option<Vec<f64>> = (0..RESAMPLES).map(|_| replicate()).collect();
    let interval = replicates.and_then(|replicates| {
        let influences = influences(of, to, are_pairs, log)?;
        let found = bca(&replicates, estimate, &influences, confidence)?.interval;
        Some(Interval { low: found.low.exp(), high: found.high.exp() })
    });
    Some((estimate.exp(), interval))
}

/// The jackknife's influence of each value, or of each pair.
fn influences(
    of: &[f64],
    to: &[f64],
    are_pairs: bool,
    log: impl Fn(&[f64], &[f64]) -> Option<f64>,
) -> Option<Vec<f64>> {
    let without = |values: &[f64], place: usize| [&values[..place], &values[place + 1..]].concat();
    let centred = |left: Vec<f64>| {
        let centre = left.iter().sum::<f64>() / left.len() as f64;
        left.into_iter().map(|value| centre - value).collect::<Vec<f64>>()
    };
    if are_pairs {
        let left: Option<Vec<f64>> = (0..of.len()).map(|place| log(&without(of, place), &without(to, place))).collect();
        return left.map(centred);
    }
    let left_of: Option<Vec<f64>> = (0..of.len()).map(|place| log(&without(of, place), to)).collect();
    let left_to: Option<Vec<f64>> = (0..to.len()).map(|place| log(of, &without(to, place))).collect();
    // As `bca` asks for with several samples: divided by size times (size - 1), up to a factor that both sides share.
    let scaled = |left: Vec<f64>| {
        let size = left.len() as f64;
        centred(left).into_iter().map(move |value| value / (size * (size - 1.0))).collect::<Vec<f64>>()
    };
    Some([scaled(left_of?), scaled(left_to?)].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

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
