//! Series of values in time: the end of a warm-up, and the amount of independent information in a series.
//!
//! Invariant: values that depend on their predecessors are never counted as independent ones.

use super::student::t_quantile;
use super::summary::{mean, sample_sd};

/// The end of the warm-up by MSER-5.
#[derive(Debug, Clone, PartialEq)]
pub struct Truncation {
    /// Number of values to leave out.
    pub values: usize,
    /// The statistic at that place: squared standard error of the mean of the rest.
    pub statistic: f64,
}

/// Applies MSER-`batch` (White 1997; batch 5 is the usual one): leaves out as many first values as make the standard error of
/// the mean of the rest smallest, within the first half only. `None` below two batches.
pub fn mser(values: &[f64], batch: usize) -> Option<Truncation> {
    let means: Vec<f64> = values.chunks_exact(batch.max(1)).filter_map(mean).collect();
    if means.len() < 2 {
        return None;
    }
    let statistic = |skip: usize| {
        let rest = &means[skip..];
        let centre = mean(rest).unwrap_or(0.0);
        rest.iter().map(|value| (value - centre).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
    };
    (0..=means.len() / 2)
        .map(|skip| Truncation { values: skip * batch.max(1), statistic: statistic(skip) })
        .min_by(|a, b| a.statistic.total_cmp(&b.statistic))
}

/// Returns the autocorrelation at a lag, with the divisor n; `None` when the series does not vary or is shorter than the lag.
pub fn autocorrelation(values: &[f64], lag: usize) -> Option<f64> {
    let centre = mean(values)?;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    if squares <= 0.0 || lag >= values.len() {
        return None;
    }
    let products: f64 = values.iter().zip(&values[lag..]).map(|(a, b)| (a - centre) * (b - centre)).sum();
    Some(products / squares)
}

/// The number of values of a series that are worth one independent value, and the resulting size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EffectiveSize {
    /// Integrated autocorrelation time in values, at least 1.
    pub correlation_time: f64,
    /// Number of independent values with the same information.
    pub size: f64,
    /// Number of pairs of autocorrelations that were summed.
    pub pairs: usize,
}

/// Returns the effective size of a series by Geyer's initial monotone positive sequence (Geyer 1992). `None` when the series does
/// not vary.
pub fn effective_size(values: &[f64]) -> Option<EffectiveSize> {
    autocorrelation(values, 0)?;
    let (mut sum, mut pairs, mut last) = (0.0, 0, f64::INFINITY);
    while let (Some(even), Some(odd)) = (autocorrelation(values, 2 * pairs), autocorrelation(values, 2 * pairs + 1)) {
        let pair = even + odd;
        if pair <= 0.0 {
            break;
        }
        last = pair.min(last);
        sum += last;
        pairs += 1;
    }
    let correlation_time = (2.0 * sum - 1.0).max(f64::EPSILON);
    Some(EffectiveSize { correlation_time, size: values.len() as f64 / correlation_time, pairs })
}

/// Returns the standard error and the half-width of the 95 % interval of a series' mean from `batches` equal batches; `None` below two
/// batches or with less than one value each.
pub fn batch_means(values: &[f64], batches: usize) -> Option<(f64, f64)> {
    let length = values.len().checked_div(batches).filter(|length| *length > 0)?;
    let means: Vec<f64> = values.chunks_exact(length).take(batches).filter_map(mean).collect();
    let error = sample_sd(&means)? / (means.len() as f64).sqrt();
    Some((error, t_quantile(0.975, means.len() as f64 - 1.0) * error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_does_not_vary_has_no_effective_size() {
        assert_eq!(effective_size(&[1.0; 20]), None);
        assert_eq!(autocorrelation(&[1.0, 2.0], 2), None);
        assert_eq!(mser(&[1.0, 2.0, 3.0], 5), None);
        assert_eq!((batch_means(&[1.0, 2.0], 0), batch_means(&[1.0], 2)), (None, None));
    }

    #[test]
    fn repeating_each_value_ten_times_divides_the_effective_size_by_about_ten() {
        let mut random = super::super::random::Random::new(3);
        let values: Vec<f64> = (0..200).map(|_| random.unit()).flat_map(|value| [value; 10]).collect();
        let size = effective_size(&values).unwrap().size;
        assert!((120.0..320.0).contains(&size), "{size}");
    }
}
