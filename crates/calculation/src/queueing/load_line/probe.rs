//! The input of a search: the bound to be kept, and the trials so far.

use super::TrialLength;

/// The bound to be kept, and the limits of the search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound in seconds.
    pub below_s: f64,
    /// Relative width of the bracket at which the search may end.
    pub within: f64,
    /// Smallest number of trials that confirm a rate.
    pub confirmations: usize,
    /// Largest number of usable trials that the search may take.
    pub trials_most: usize,
    /// Arrivals per second of the first trial.
    pub start_per_s: f64,
    /// Length of a trial, unless the search needs a longer one.
    pub length: TrialLength,
}

impl Bound {
    /// Returns the share of operations that may take longer than the bound.
    pub fn tolerated(&self) -> f64 {
        1.0 - self.quantile
    }
}

/// A trial at one arrival rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Arrivals per second as requested.
    pub rate_per_s: f64,
    /// Length of the measured phase in seconds.
    pub seconds: f64,
    /// Outcome of the trial.
    pub outcome: Outcome,
    /// The disturbance that made the trial slower than the database alone would have; `None` where nothing did.
    pub disturbed: Option<Disturbance>,
}

/// A cause of longer response times that is not the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Other work on the machine.
    Others,
    /// A hypervisor that served other machines.
    Hypervisor,
    /// No known cause; but the client sent operations late, which is part of their response times.
    Client,
}

/// The outcome of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The database carried the load.
    Answered {
        /// Operations scheduled.
        operations: u64,
        /// Operations that took longer than the bound.
        above: u64,
        /// The quantile of response time in seconds, above 0.
        quantile_s: f64,
        /// Mean response time in seconds.
        mean_s: f64,
    },
    /// The database fell behind: every operation counts as longer than the bound.
    Overloaded {
        /// Operations scheduled.
        operations: u64,
    },
    /// The client did not offer the rate as planned.
    NotDriven {
        /// Whether the client's CPU was used up.
        is_saturated: bool,
    },
    /// The client did not offer the rate, because a hypervisor gave the CPU time to other machines.
    Stolen,
    /// The trial is unusable for another reason.
    Invalid,
}
