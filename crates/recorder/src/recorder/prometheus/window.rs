//! Functions of the samples of one series, at each time of an answer. Main functions: [`newest`] and [`over`].
//!
//! As in Prometheus 3, a range of time is open on its left and closed on its right: a sample that is exactly as old as the range is outside.

use super::language::Function;
use super::refusal::Refusal;
use super::series::Sample;
use super::steps::Steps;
use super::sum::Sum;

/// How long the newest sample stands for a series that has no newer one: 5 minutes, in nanoseconds.
pub(super) const LOOK_BACK_NS: i64 = 300 * 1_000_000_000;

/// The most samples that a question visits; a sample counts once for each range that it is in. As many as in Prometheus.
pub(super) const VISITS_MAX: u64 = 50_000_000;

/// The values of a series at the times of an answer.
pub(super) type Values = Vec<Option<f64>>;

/// Returns the newest sample at each time, if it is not older than [`LOOK_BACK_NS`].
pub(super) fn newest(samples: &[Sample], steps: Steps) -> Values {
    let mut seen = 0;
    let value = |time_ns: i64| {
        seen += samples[seen..].iter().take_while(|(own, _)| *own <= time_ns).count();
        let (own, value) = samples[..seen].last()?;
        (*own > time_ns - LOOK_BACK_NS).then_some(*value)
    };
    steps.times().map(value).collect()
}

/// Returns a function of the samples within the range before each time. `visits` is how many samples the question may still visit.
///
/// # Errors
/// That there are too many.
pub(super) fn over(
    function: Function,
    range_ns: i64,
    samples: &[Sample],
    steps: Steps,
    visits: &mut u64,
) -> Result<Values, Refusal> {
    let (mut from, mut to) = (0, 0);
    let mut values = Vec::with_capacity(steps.count);
    for time_ns in steps.times() {
        to += samples[to..].iter().take_while(|(own, _)| *own <= time_ns).count();
        from += samples[from..to].iter().take_while(|(own, _)| *own <= time_ns - range_ns).count();
        let within = &samples[from..to];
        *visits = visits.checked_sub(within.len() as u64).ok_or_else(|| {
            let remedy = "take a shorter range or a longer step";
            Refusal::Execution(format!("the question visits more than {VISITS_MAX} samples; {remedy}"))
        })?;
        values.push(value(function, range_ns, within, time_ns));
    }
    Ok(values)
}

fn value(function: Function, range_ns: i64, samples: &[Sample], time_ns: i64) -> Option<f64> {
    let (_, first) = samples.first()?;
    let values = samples.iter().map(|(_, value)| *value);
    Some(match function {
        Function::Average => values.collect::<Sum>().total() / samples.len() as f64,
        Function::Sum => values.collect::<Sum>().total(),
        Function::Least => values.fold(*first, f64::min),
        Function::Most => values.fold(*first, f64::max),
        Function::Count => samples.len() as f64,
        Function::Rate => return rate(samples, time_ns - range_ns, time_ns),
    })
}

/// Returns the increase per second between two times as Prometheus computes it: a value smaller than the one before is a counter that began anew, and
/// the increase between the first and the last sample is extended to the ends of the range, as far as samples are missing there by chance.
fn rate(samples: &[Sample], start_ns: i64, end_ns: i64) -> Option<f64> {
    let seconds = |ns: i64| ns as f64 / 1e9;
    let ((first_ns, first), (last_ns, last)) = (*samples.first()?, *samples.last()?);
    let between_s = seconds(last_ns - first_ns);
    if samples.len() < 2 || between_s <= 0.0 {
        return None;
    }
    let resets = samples.windows(2).filter(|pair| pair[1].1 < pair[0].1).map(|pair| pair[0].1);
    let increase = last - first + resets.sum::<f64>();
    let distance_s = between_s / (samples.len() - 1) as f64;
    // A sample that is further from the end than this is not missing by chance.
    let reaches = |gap_s: f64| if gap_s >= distance_s * 1.1 { distance_s / 2.0 } else { gap_s };
    let mut before_s = reaches(seconds(first_ns - start_ns));
    if increase > 0.0 && first >= 0.0 {
        // The counter was not below 0.
        before_s = before_s.min(between_s * (first / increase));
    }
    let after_s = reaches(seconds(end_ns - last_ns));
    Some(increase * ((between_s + before_s + after_s) / between_s) / seconds(end_ns - start_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    fn steps(start_s: i64, step_s: i64, count: usize) -> Steps {
        Steps { start_ns: start_s * S, step_ns: step_s * S, count }
    }

    #[test]
    fn the_newest_sample_stands_for_five_minutes_and_no_longer() {
        let samples = [(0, 1.0), (60 * S, 2.0), (60 * S, 3.0)];
        assert_eq!(newest(&samples, steps(-1, 1, 2)), [None, Some(1.0)]);
        assert_eq!(
            newest(&samples, steps(59, 1, 2)),
            [Some(1.0), Some(3.0)],
            "of two at one time the later one counts"
        );
        assert_eq!(newest(&samples, steps(359, 1, 2)), [Some(3.0), None]);
        assert_eq!(newest(&[], steps(0, 1, 1)), [None]);
    }

    #[test]
    fn a_range_is_open_on_its_left() {
        let samples: Vec<Sample> = (0..10).map(|second| (second * S, second as f64)).collect();
        let of = |function| over(function, 3 * S, &samples, steps(5, 2, 2), &mut 100).unwrap();
        assert_eq!(of(Function::Count), [Some(3.0), Some(3.0)]);
        assert_eq!(of(Function::Sum), [Some(12.0), Some(18.0)]);
        assert_eq!(of(Function::Average), [Some(4.0), Some(6.0)]);
        assert_eq!(of(Function::Least), [Some(3.0), Some(5.0)]);
        assert_eq!(of(Function::Most), [Some(5.0), Some(7.0)]);
        let outside = over(Function::Count, 3 * S, &samples, steps(100, 1, 1), &mut 100).unwrap();
        assert_eq!(outside, [None], "there is no value where there is no sample");
        let refused = over(Function::Count, 3 * S, &samples, steps(5, 2, 2), &mut 5).unwrap_err();
        assert!(matches!(refused, Refusal::Execution(says) if says.contains("visits more than")));
    }

    /// The values are those that Prometheus's documentation of its extrapolation gives by hand.
    #[test]
    fn a_rate_is_extended_to_the_ends_of_its_range_and_goes_on_over_a_reset() {
        let every = |seconds: i64, count: i64, per_s: f64| -> Vec<Sample> {
            (1..=count).map(|number| (number * seconds * S, 1_000.0 + (number * seconds) as f64 * per_s)).collect()
        };
        let rate_at = |samples: &[Sample], end_s: i64, range_s: i64| {
            over(Function::Rate, range_s * S, samples, steps(end_s, 1, 1), &mut 1_000).unwrap()[0]
        };
        assert_eq!(rate_at(&every(10, 10, 2.0), 100, 60), Some(2.0));
        // The samples of seconds 10 to 50 within 0 to 55: 40 s, 10 s before (11 at most) and 5 s after.
        assert_eq!(rate_at(&every(10, 5, 2.0), 55, 55), Some(2.0));
        // Nothing for 50 s at the end: half a distance is added.
        let late = rate_at(&every(10, 5, 2.0), 100, 100).unwrap();
        assert!((late - 80.0 * (40.0 + 10.0 + 5.0) / 40.0 / 100.0).abs() < 1e-12, "{late}");
        // A counter that begins at 0 was not there before.
        let new = [(10 * S, 0.0), (20 * S, 10.0), (30 * S, 20.0)];
        let rate = rate_at(&new, 30, 30).unwrap();
        assert!((rate - 20.0 / 30.0).abs() < 1e-12, "{rate}");
        // 5, then anew from 0 to 3: 1 + 3 more.
        let reset = [(10 * S, 4.0), (20 * S, 5.0), (30 * S, 0.0), (40 * S, 3.0)];
        let rate = rate_at(&reset, 40, 31).unwrap();
        let increase = 1.0 + 3.0;
        let expected = increase * (30.0 + 1.0) / 30.0 / 31.0;
        assert!((rate - expected).abs() < 1e-12, "{rate} and not {expected}");
        assert_eq!(rate_at(&[(10 * S, 1.0)], 10, 10), None, "one sample has no rate");
        assert_eq!(rate_at(&[(10 * S, 1.0), (10 * S, 2.0)], 10, 10), None, "nor have two of the same time");
    }
}
