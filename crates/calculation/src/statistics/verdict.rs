//! The verdict on two alternatives, in words.
//!
//! Invariant: the verdict follows from the interval that is shown, and from nothing else.

use super::summary::Interval;

/// The verdict on a against b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// a's figure is the larger; for a rate, a is faster.
    Faster,
    /// a's figure is the smaller.
    Slower,
    /// The whole interval lies within the margin around 1.
    Equal,
    /// The evidence is not sufficient.
    Undecided,
}

impl Verdict {
    /// Returns the verdict on the same evidence where less is better, as for times.
    pub fn reversed(self) -> Self {
        match self {
            Verdict::Faster => Verdict::Slower,
            Verdict::Slower => Verdict::Faster,
            same => same,
        }
    }
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Equal => "equal",
            Verdict::Undecided => "undecided",
        })
    }
}

/// Level of verdicts: the largest probability that any of the comparisons judged together is found different by chance.
pub const SIGNIFICANCE: f64 = 0.05;

/// Judges the interval of a ratio a / b, which is as wide as the number of comparisons requires; `margin` is the relative difference that
/// counts as none, for example 0.05. A difference that is certain and smaller than the margin counts as equal.
pub fn judge(interval: Interval, margin: f64) -> Verdict {
    if interval.low >= 1.0 - margin && interval.high <= 1.0 + margin {
        Verdict::Equal
    } else if interval.low > 1.0 {
        Verdict::Faster
    } else if interval.high < 1.0 {
        Verdict::Slower
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_follows_interval_and_margin() {
        let judge = |low, high| judge(Interval { low, high }, 0.05);
        assert_eq!(judge(1.1, 1.3), Verdict::Faster);
        assert_eq!(judge(0.7, 0.9), Verdict::Slower);
        assert_eq!(judge(0.9, 1.2), Verdict::Undecided);
        assert_eq!(judge(0.97, 1.02), Verdict::Equal);
        assert_eq!(judge(1.01, 1.03), Verdict::Equal, "certain, and too small to matter");
        assert_eq!(judge(f64::NAN, f64::NAN), Verdict::Undecided);
        assert_eq!(Verdict::Slower.to_string(), "slower");
    }
}
