//! Batch means: standard errors of means and quantiles from consecutive times of one trial, which depend on each other.
//!
//! Main type: [`Batches`]. Invariant: memory is that of [`BATCHES_MOST`] histograms, however many times there are. Batches are
//! of equal length; when there are too many, neighbours are joined and the length doubles (batch means: Law and Kelton,
//! Simulation Modeling and Analysis, section 9.5.3).

use crate::histogram::Histogram;
use crate::statistics::summary::sample_sd;

/// Largest number of batches.
pub const BATCHES_MOST: usize = 32;
/// Smallest number of batches whose spread is meaningful.
const BATCHES_LEAST: usize = 10;
/// Number of times beyond a quantile that each batch should have, for its own quantile to be meaningful.
const BEYOND_LEAST: f64 = 5.0;
/// Initial number of times in a batch.
const LENGTH: u64 = 32;

/// Times in the order in which they were measured.
#[derive(Debug, Clone)]
pub struct Batches {
    length: u64,
    batches: Vec<Histogram>,
}

impl Default for Batches {
    fn default() -> Self {
        Batches { length: LENGTH, batches: Vec::new() }
    }
}

impl Batches {
    /// Adds the next time.
    pub fn record(&mut self, time_ns: u64) {
        match self.batches.last_mut().filter(|last| last.count() < self.length) {
            Some(last) => last.record(time_ns),
            None => {
                if self.batches.len() == BATCHES_MOST {
                    self.join();
                }
                let mut next = Histogram::new();
                next.record(time_ns);
                self.batches.push(next);
            }
        }
    }

    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.batches.iter().map(Histogram::count).sum()
    }

    /// Returns all times together.
    pub fn all(&self) -> Histogram {
        let mut all = Histogram::new();
        self.batches.iter().for_each(|batch| all.merge(batch));
        all
    }

    /// Returns the standard error of the mean, in nanoseconds; `None` with fewer than ten whole batches.
    pub fn mean_error_ns(&self) -> Option<f64> {
        self.error_of(Histogram::mean_ns)
    }

    /// Returns the standard error of a quantile (0..1), in nanoseconds; `None` with fewer than ten whole batches, or where too few times of a
    /// batch lie beyond the quantile.
    pub fn quantile_error_ns(&self, quantile: f64) -> Option<f64> {
        let beyond = self.length as f64 * quantile.min(1.0 - quantile);
        if beyond < BEYOND_LEAST { None } else { self.error_of(|batch| batch.quantile_ns(quantile) as f64) }
    }

    fn error_of(&self, figure: impl Fn(&Histogram) -> f64) -> Option<f64> {
        let whole = self.batches.iter().filter(|batch| batch.count() == self.length);
        let values: Vec<f64> = whole.map(figure).collect();
        let error = sample_sd(&values).map(|sd| sd / (values.len() as f64).sqrt());
        error.filter(|error| values.len() >= BATCHES_LEAST && *error > 0.0)
    }

    fn join(&mut self) {
        let joined = self.batches.chunks(2).map(|pair| {
            let mut joined = pair[0].clone();
            pair[1..].iter().for_each(|next| joined.merge(next));
            joined
        });
        self.batches = joined.collect();
        self.length *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::random::Random;

    #[test]
    fn memory_is_bounded_and_every_time_is_counted() {
        let mut batches = Batches::default();
        for time_ns in 0..1_000_000 {
            batches.record(time_ns);
            assert!(batches.batches.len() <= BATCHES_MOST);
        }
        assert_eq!((batches.count(), batches.all().max_ns()), (1_000_000, 999_999));
        assert!(batches.mean_error_ns().is_some());
    }

    #[test]
    fn few_times_have_no_error_and_far_quantiles_need_more_of_them() {
        let mut batches = Batches::default();
        (0..200).for_each(|time_ns| batches.record(time_ns));
        assert_eq!(batches.mean_error_ns(), None);
        (0..2_000).for_each(|time_ns| batches.record(time_ns % 977));
        assert!(batches.mean_error_ns().is_some() && batches.quantile_error_ns(0.5).is_some());
        assert_eq!(batches.quantile_error_ns(0.999), None);
    }

    /// Returns the response times of an M/M/1 server at 50 % (Lindley's recursion), which depend on each other.
    fn response_times(random: &mut Random, count: usize) -> Batches {
        let (mut batches, mut waiting) = (Batches::default(), 0.0_f64);
        let mut draw = |mean: f64| -mean * (1.0 - random.unit()).ln();
        for _ in 0..count {
            let service = draw(1e6);
            batches.record((waiting + service) as u64);
            waiting = (waiting + service - draw(2e6)).max(0.0);
        }
        batches
    }

    #[test]
    fn errors_hold_the_truth_of_a_queue_as_often_as_they_promise() {
        let (mut means, mut quantiles) = (0, 0);
        for seed in 0..60 {
            let times = response_times(&mut Random::new(seed), 40_000);
            let all = times.all();
            let holds = |figure_ns: f64, error_ns: f64, truth_ns: f64| (figure_ns - truth_ns).abs() < 2.1 * error_ns;
            means += usize::from(holds(all.mean_ns(), times.mean_error_ns().unwrap(), 2e6));
            let p90 = all.quantile_ns(0.9) as f64;
            quantiles += usize::from(holds(p90, times.quantile_error_ns(0.9).unwrap(), 2e6 * 10_f64.ln()));
        }
        assert!(means >= 51 && quantiles >= 50, "{means} and {quantiles} of 60, about 57 are promised");
    }
}
