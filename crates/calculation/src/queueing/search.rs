//! Search for the point at which a monotone condition ceases to hold.
//!
//! Main function: [`last_that_holds`]. Invariant: the answers are exact to the resolution of `f64`, and every search ends.

/// Returns the largest value between `low` and `high` for which a condition holds that is true up to some point and false beyond it.
/// Returns `low` when it holds nowhere, `high` when it holds everywhere.
pub fn last_that_holds(low: f64, high: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(high) {
        return high;
    }
    let (mut low, mut high) = (low, high);
    // Between two numbers there are at most 2^64 others; halving the distance of magnitudes first is not worth the code.
    for _ in 0..1100 {
        let middle = low + (high - low) / 2.0;
        if middle <= low || middle >= high {
            break;
        }
        if holds(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    low
}

/// Returns the time that is exceeded with probability 1 - `quantile`, from a tail P(T > t) that falls with t; `scale_s` is a time of
/// the right magnitude. Infinite when the tail does not fall far enough.
pub fn quantile_of_tail(quantile: f64, scale_s: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let exceeded = 1.0 - quantile;
    // The tail of a distribution falls approximately as exp(-t): its logarithm is nearly straight.
    let above = |time_s: f64| (tail(time_s) / exceeded).ln();
    let mut low = (0.0, above(0.0));
    let mut high = (scale_s.max(f64::MIN_POSITIVE), above(scale_s.max(f64::MIN_POSITIVE)));
    while high.1 > 0.0 {
        (low, high.0) = (high, 2.0 * high.0);
        if !high.0.is_finite() {
            return f64::INFINITY;
        }
        high.1 = above(high.0);
    }
    let (low, high) = narrowed(low, high, above);
    last_that_holds(low, high, |time_s| tail(time_s) > exceeded)
}

/// Largest number of steps of the search for a shorter bracket: a dozen mostly suffice, and halving alone would need sixty.
const NARROWING_MOST: u32 = 40;

/// Returns a bracket of a few numbers within one in which a nearly straight function falls below zero: by the secant with Illinois' rule, and never so near
/// to an end that this end alone would move.
fn narrowed(mut low: (f64, f64), mut high: (f64, f64), above: impl Fn(f64) -> f64) -> (f64, f64) {
    let (mut nearest, mut is_low_again, mut is_high_again) = (2.0, false, false);
    for _ in 0..NARROWING_MOST {
        let (width, least) = (high.0 - low.0, nearest * f64::EPSILON * high.0);
        if width <= 2.0 * least {
            break;
        }
        let chord = low.0 + width * low.1 / (low.1 - high.1);
        // A tail too small to be distinguished from zero only shows on which side of the point it is.
        let middle = if low.1.is_finite() && high.1.is_finite() { chord } else { low.0 + width / 2.0 };
        let middle = middle.clamp(low.0 + least, high.0 - least);
        let at_middle = above(middle);
        // An end this near is known well enough: the other one is searched for further and further away.
        if (middle - low.0).min(high.0 - middle) <= 1.5 * least {
            nearest *= 4.0;
        }
        if at_middle > 0.0 {
            low = (middle, at_middle);
            high.1 *= if is_low_again { 0.5 } else { 1.0 };
        } else {
            high = (middle, at_middle);
            low.1 *= if is_high_again { 0.5 } else { 1.0 };
        }
        (is_low_again, is_high_again) = (at_middle > 0.0, at_middle <= 0.0);
    }
    (low.0, high.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_ends_at_the_last_number_that_holds() {
        let root = last_that_holds(0.0, 10.0, |x| x * x <= 2.0);
        assert!((root - 2.0_f64.sqrt()).abs() < 1e-15);
        assert_eq!(last_that_holds(1.0, 10.0, |_| false), 1.0);
        assert_eq!(last_that_holds(1.0, 10.0, |_| true), 10.0);
    }

    #[test]
    fn quantiles_are_those_of_halving_in_a_few_steps() {
        let slow = |t: f64| 0.9 * (-t).exp() + 0.1 * (-0.001 * t).exp();
        let waited = |t: f64| (-t).exp() * (1.0 + t);
        let (asked, mut all) = (std::cell::Cell::new(0_u32), 0);
        for tail in [&slow as &dyn Fn(f64) -> f64, &waited] {
            for quantile in [0.001, 0.5, 0.9, 0.95, 0.99, 0.9999] {
                let counted = |t: f64| {
                    asked.set(asked.get() + 1);
                    tail(t)
                };
                let halved = last_that_holds(0.0, 1e6, |t| tail(t) > 1.0 - quantile);
                let found = quantile_of_tail(quantile, 1.0, counted);
                assert!((found / halved - 1.0).abs() <= 1e-13, "{found} instead of {halved}");
                assert!(asked.get() < 50, "{} evaluations", asked.get());
                all += asked.take();
            }
        }
        assert!(all < 12 * 25, "{all} evaluations of 12 quantiles");
    }

    #[test]
    fn quantiles_are_found_whatever_the_first_guess() {
        for scale_s in [1e-9, 1.0, 1e9] {
            let found = quantile_of_tail(0.9, scale_s, |t| (-t).exp());
            assert!((found - 10.0_f64.ln()).abs() < 1e-12, "{found}");
        }
    }
}
