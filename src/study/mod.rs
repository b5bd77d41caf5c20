//! Studies: a file says what is to be found out; here it becomes cases and trials.
//!
//! Main type: [`Study`]. Invariant: a study that was read without error can be planned without error.

use serde::{Deserialize, Serialize};

use crate::trial::{Case, Levels, Settings};

/// A study, read and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// Short name, used for run directories.
    pub name: String,
    /// What is to be found out.
    pub question: String,
    /// Where the study comes from; empty when it is its own.
    pub source: String,
    /// Settings before the factors are applied.
    pub base: Settings,
    /// What is varied, in the order of the file.
    pub factors: Vec<Factor>,
    /// How often each case is repeated.
    pub repeat: Repeat,
    /// The load line looked for, if any.
    pub goal: Option<Goal>,
    /// What the source says.
    pub claims: Vec<Claim>,
    /// Whether sizes and repeats were shrunk for a rehearsal.
    pub quick: bool,
    /// Seed of the order of trials and of every trial's seed.
    pub seed: u64,
    /// Every combination of levels, resolved.
    pub cases: Vec<Case>,
}

/// A setting that is varied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Dotted setting, as in `load.clients`.
    pub setting: String,
    /// Its levels, in the order of the file.
    pub levels: Vec<serde_json::Value>,
}

/// `[repeat]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repeat {
    /// When a case has been repeated enough.
    pub rule: RepeatRule,
    /// Relative bound of the rule, above 0.
    pub within: f64,
    /// Trials at least.
    pub least: u32,
    /// Trials at most.
    pub most: u32,
    /// Whether the first trial of each case is left out of all analyses.
    pub discard_first: bool,
}

/// When a case has been repeated enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatRule {
    /// Half-width of the 95 % t-interval of the throughput, over its mean, is at most `within`.
    Interval,
    /// The Oulu rule: standard error with the population standard deviation, over the mean, is below `within`.
    StandardError,
    /// Always `least` trials.
    Fixed,
}

/// `[goal]`: the load line looked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// Quantile of response time, 0..1.
    pub quantile: f64,
    /// Bound, in seconds.
    pub below_s: f64,
    /// Relative width of the answer.
    pub within: f64,
}

/// `[[claims]]`: what the source says, in a form that can be checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Claim {
    /// The claim in words.
    pub says: String,
    /// What is compared: `throughput`, `records`, `response_time_p99`, `server_cpu`, `written_bytes` ...
    pub metric: String,
    /// The ratio claimed.
    pub ratio: ClaimedRatio,
}

/// A ratio between two sets of cases. Levels may be partial: cases are then matched by their other factors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedRatio {
    /// Levels of the numerator.
    pub of: Levels,
    /// Levels of the denominator.
    pub to: Levels,
    /// Levels that both must have besides.
    pub only: Levels,
    /// Whether the best case on each side is compared instead of each matched pair.
    pub best: bool,
    /// Range of the ratio that bears the claim out; the upper end may be infinite (stored as null).
    pub low: f64,
    /// Upper end; none is no limit.
    pub high: Option<f64>,
}
