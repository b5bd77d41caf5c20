//! The interface of models of open systems: mean and quantiles at an arrival rate, the capacity, and the highest arrival
//! rate that keeps a bound.
//!
//! Main type: [`Queue`]. Invariant: times grow with the arrival rate, so every bound has one highest arrival rate.

use serde::Serialize;

use super::search::last_that_holds;

/// Largest relative rounding error of a model's sums: some thousand terms, each rounded to 1e-16.
const ROUNDING: f64 = 1e-12;

/// The event at which a measured time begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Timer {
    /// At the intended time: response time.
    #[default]
    Intended,
    /// When a worker sends, as Kihl et al. (2011, section 4.1.1) measured: residence time. It does not include waiting for a worker.
    Sent,
}

/// A figure of response time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// The mean.
    Mean,
    /// A quantile, between 0 and 1.
    Quantile(f64),
}

impl std::fmt::Display for Target {
    /// Writes `mean`, `p90`, `p99.9`.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Mean => formatter.write_str("mean"),
            Target::Quantile(quantile) => write!(formatter, "p{}", (quantile * 1e8).round() / 1e6),
        }
    }
}

/// A model of an open system: Poisson arrivals, response time as a function of their rate.
pub trait Queue: std::fmt::Debug + Send {
    /// Returns the rate below which response times are stationary, in arrivals per second; 0 or more.
    fn capacity_per_s(&self) -> f64;

    /// Returns the part of the response time that does not depend on load, in seconds.
    fn delay_s(&self) -> f64;

    /// Returns the mean response time at an arrival rate from 0 to below the capacity, in seconds.
    fn stable_mean_s(&self, arrival_rate_per_s: f64) -> f64;

    /// Returns a quantile of response time (in (0, 1)) at an arrival rate from 0 to below the capacity, in seconds; `None` where the
    /// model does not give the distribution of response times.
    fn stable_quantile_s(&self, _arrival_rate_per_s: f64, _quantile: f64) -> Option<f64> {
        None
    }

    /// Returns a quantile as [`Queue::quantile_s`] does, by simulation with a fixed seed, for models that give it in no other way. It takes
    /// milliseconds, and is right within a few hundredths.
    fn simulated_quantile_s(&self, _arrival_rate_per_s: f64, _quantile: f64) -> Option<f64> {
        None
    }

    /// Returns the mean time at and above the capacity; `None` where it grows without limit. A timer that starts at sending sees a limit.
    fn overloaded_mean_s(&self) -> Option<f64> {
        None
    }

    /// Returns whether a stationary response time exists.
    fn is_stable(&self, arrival_rate_per_s: f64) -> bool {
        arrival_rate_per_s < self.capacity_per_s()
    }

    /// Returns the arrival rate over the capacity; above 1 when overloaded.
    fn utilisation(&self, arrival_rate_per_s: f64) -> f64 {
        arrival_rate_per_s / self.capacity_per_s()
    }

    /// Returns the completions per second: the arrival rate, or the capacity when overloaded.
    fn throughput_per_s(&self, arrival_rate_per_s: f64) -> f64 {
        arrival_rate_per_s.min(self.capacity_per_s())
    }

    /// Returns the mean response time in seconds; `None` when it grows without limit.
    fn mean_s(&self, arrival_rate_per_s: f64) -> Option<f64> {
        if self.is_stable(arrival_rate_per_s) {
            Some(self.stable_mean_s(arrival_rate_per_s))
        } else {
            self.overloaded_mean_s()
        }
    }

    /// Returns a quantile of response time in seconds; `None` when overloaded, when the model has none, or when the quantile is not
    /// in (0, 1).
    fn quantile_s(&self, arrival_rate_per_s: f64, quantile: f64) -> Option<f64> {
        let is_quantile = quantile > 0.0 && quantile < 1.0;
        (is_quantile && self.is_stable(arrival_rate_per_s))
            .then(|| self.stable_quantile_s(arrival_rate_per_s, quantile))
            .flatten()
    }

    /// Returns the figure in seconds. A quantile that the model does not have is approximated by that of an exponential response
    /// time with the model's mean, after the constant delay; [`Queue::has_quantiles`] tells which it is.
    fn figure_s(&self, arrival_rate_per_s: f64, target: Target) -> Option<f64> {
        let Target::Quantile(quantile) = target else { return self.mean_s(arrival_rate_per_s) };
        if !(quantile > 0.0 && quantile < 1.0) {
            return None;
        }
        self.quantile_s(arrival_rate_per_s, quantile).or_else(|| {
            let above_delay_s = self.mean_s(arrival_rate_per_s)? - self.delay_s();
            Some(self.delay_s() - (-quantile).ln_1p() * above_delay_s)
        })
    }

    /// Returns whether the model has quantiles of its own.
    fn has_quantiles(&self) -> bool {
        self.quantile_s(self.capacity_per_s() / 2.0, 0.5).is_some()
    }

    /// Returns the highest arrival rate at which a figure stays at or below a bound in seconds: the inverse of [`Queue::figure_s`].
    /// `None` when even an idle system is above the bound; the capacity when no stable rate reaches the bound.
    ///
    /// Where many servers are hardly loaded, the figure grows by less than its own rounding: a figure above the bound by
    /// no more than that keeps it.
    fn limit_per_s(&self, target: Target, bound_s: f64) -> Option<f64> {
        let most_s = bound_s + ROUNDING * bound_s.abs();
        let keeps = |rate: f64| self.figure_s(rate, target).is_some_and(|figure_s| figure_s <= most_s);
        keeps(0.0).then(|| last_that_holds(0.0, self.capacity_per_s(), keeps))
    }

    /// Returns the highest arrival rate at which a quantile certainly stays below a bound for any distribution: Markov's
    /// inequality, P(S > t) <= E(S) / t, for the part S of the response time above the constant delay. `None` when even an
    /// idle system cannot promise it.
    fn limit_by_mean_alone_per_s(&self, quantile: f64, bound_s: f64) -> Option<f64> {
        let mean_bound_s = self.delay_s() + (1.0 - quantile) * (bound_s - self.delay_s());
        self.limit_per_s(Target::Mean, mean_bound_s)
    }
}
