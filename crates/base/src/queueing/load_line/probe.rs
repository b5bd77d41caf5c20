//! What a search is given: the bound that is looked for, and the trials so far.

use super::TrialLength;

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound in seconds.
    pub below_s: f64,
    /// Relative width of the bracket that is wanted.
    pub within: f64,
    /// Trials that confirm a rate at least.
    pub confirmations: usize,
    /// Trials that the search may take at most, without those that cannot be used.
    pub trials_most: usize,
    /// Arrivals per second to begin with.
    pub start_per_s: f64,
    /// How long a trial lasts unless the search needs a longer one.
    pub length: TrialLength,
}

impl Bound {
    /// Share of operations that may take longer than the bound.
    pub fn tolerated(&self) -> f64 {
        1.0 - self.quantile
    }
}

/// A trial at an arrival rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Probe {
    /// Arrivals per second as asked for.
    pub rate_per_s: f64,
    /// Length of the measured phase in seconds.
    pub seconds: f64,
    /// What came of it.
    pub outcome: Outcome,
    /// What made the trial slower than the database alone would have; none where nothing did.
    pub disturbed: Option<Disturbance>,
}

/// What made the response times of a trial longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disturbance {
    /// Other work on the machine.
    Others,
    /// A hypervisor, for other machines.
    Hypervisor,
    /// Nothing that is known; but the client sent operations late, which is a part of their response times.
    Client,
}

/// What came of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// The database carried the load.
    Answered {
        /// Operations scheduled.
        operations: u64,
        /// Those of them that took longer than the bound.
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
    /// The client could not offer the rate as it should.
    NotDriven {
        /// Whether its own CPU was used up.
        is_saturated: bool,
    },
    /// The client could not offer the rate, because a hypervisor gave the CPU time to other machines.
    Stolen,
    /// The trial cannot be used for another reason.
    Invalid,
}
