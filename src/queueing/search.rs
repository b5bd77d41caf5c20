//! Searching for the place where a monotone statement stops to hold.
//!
//! Main function: [`last_that_holds`]. Invariant: the answers are exact to the resolution of `f64`, and every search ends.

/// The largest value between `low` and `high` for which a statement holds that holds up to some point and not beyond it.
/// `low` is returned when it holds nowhere, `high` when it holds everywhere.
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

/// The time that is exceeded with probability 1 - `quantile`, from a tail P(T > t) that falls with t; `scale_s` is a time of
/// the right magnitude. Infinite when the tail does not fall far enough.
pub fn quantile_of_tail(quantile: f64, scale_s: f64, tail: impl Fn(f64) -> f64) -> f64 {
    let exceeded = 1.0 - quantile;
    let mut high = scale_s.max(f64::MIN_POSITIVE);
    while tail(high) > exceeded {
        high *= 2.0;
        if !high.is_finite() {
            return f64::INFINITY;
        }
    }
    last_that_holds(0.0, high, |time_s| tail(time_s) > exceeded)
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
    fn quantiles_are_found_whatever_the_first_guess() {
        for scale_s in [1e-9, 1.0, 1e9] {
            let found = quantile_of_tail(0.9, scale_s, |t| (-t).exp());
            assert!((found - 10.0_f64.ln()).abs() < 1e-12, "{found}");
        }
    }
}
