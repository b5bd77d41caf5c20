//! Mean, spread, and the two criteria by which a case counts as settled.
//!
//! Invariant: fewer than two values never give a spread.

use super::student::t_quantile;

/// A range of values, both ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns half the distance between the ends.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Returns the arithmetic mean (Ruottinen 2015, eq. 1); `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() { None } else { Some(values.iter().sum::<f64>() / values.len() as f64) }
}

/// Returns the geometric mean: the exponential of the mean logarithm, from which ratios of alternatives are estimated. `None` without values; a value
/// that is not above 0 counts as the smallest number.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    mean(&values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).collect::<Vec<_>>()).map(f64::exp)
}

/// Returns the standard deviation of a sample, divisor n - 1; `None` below two values.
pub fn sample_sd(values: &[f64]) -> Option<f64> {
    if values.len() < 2 { None } else { Some((squares(values)? / (values.len() - 1) as f64).sqrt()) }
}

/// Returns the standard deviation of a population, divisor n (Ruottinen 2015, eq. 2); `None` without values.
pub fn population_sd(values: &[f64]) -> Option<f64> {
    Some((squares(values)? / values.len() as f64).sqrt())
}

/// Returns the sum of squared distances from the mean; `None` without values.
fn squares(values: &[f64]) -> Option<f64> {
    let centre = mean(values)?;
    Some(values.iter().map(|value| (value - centre).powi(2)).sum())
}

/// Returns the t-interval of the mean at a confidence in (0, 1); `None` below two values.
pub fn t_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let centre = mean(values)?;
    let n = values.len() as f64;
    let half = t_quantile(0.5 + confidence / 2.0, n - 1.0) * sample_sd(values)? / n.sqrt();
    Some(Interval { low: centre - half, high: centre + half })
}

/// Returns the half-width of the 95 % t-interval over the mean; `None` below two values or with a mean of zero.
pub fn relative_half_width(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|centre| *centre != 0.0)?;
    Some(t_interval(values, 0.95)?.half_width() / centre.abs())
}

/// Returns the standard error over the mean, from the population formula, as in the Oulu rule (Ruottinen 2015, section 4.4,
/// eq. 1-3). `None` without values or with a mean of zero; 0 for a single value, which is why the rule has a minimum n.
pub fn standard_error_share(values: &[f64]) -> Option<f64> {
    let centre = mean(values).filter(|centre| *centre != 0.0)?;
    Some(population_sd(values)? / (values.len() as f64).sqrt() / centre.abs())
}

/// Returns the median; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_has_a_mean_and_no_interval() {
        assert_eq!(mean(&[5.0]), Some(5.0));
        assert_eq!((sample_sd(&[5.0]), t_interval(&[5.0], 0.95), relative_half_width(&[5.0])), (None, None, None));
        assert_eq!((mean(&[]), population_sd(&[]), median(&[])), (None, None, None));
    }

    #[test]
    fn relative_figures_need_a_mean_that_is_not_zero() {
        assert_eq!(relative_half_width(&[-1.0, 1.0]), None);
        assert_eq!(standard_error_share(&[0.0, 0.0]), None);
    }

    #[test]
    fn the_median_of_an_even_count_lies_between_the_middle_two() {
        assert_eq!(median(&[4.0, 1.0, 3.0, 2.0]), Some(2.5));
        assert_eq!(median(&[9.0, 1.0, 3.0]), Some(3.0));
    }
}
