//! The verdict on two alternatives, in words.
//!
//! Invariant: faster and slower are said only where both the interval and the p-value adjusted for the family say so.

use super::summary::Interval;

/// What the evidence says about a against b.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// a's figure is the larger; for a rate, a is faster.
    Faster,
    /// a's figure is the smaller.
    Slower,
    /// The whole interval lies within the margin around 1.
    Equal,
    /// The evidence is not enough.
    Undecided,
}

impl Verdict {
    /// The verdict on the same evidence where less is better, as for times.
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

/// Level below which an adjusted p counts.
pub const SIGNIFICANCE: f64 = 0.05;

/// [`judge_at`] at the level [`SIGNIFICANCE`].
pub fn judge(interval: Interval, p_adjusted: f64, margin: f64) -> Verdict {
    judge_at(interval, p_adjusted, margin, SIGNIFICANCE)
}

/// Judges the interval of a ratio a / b at confidence 1 - `level`; `margin` is the relative difference that counts as none, as 0.05. A
/// difference that is certain and smaller than the margin counts as equal.
pub fn judge_at(interval: Interval, p_adjusted: f64, margin: f64, level: f64) -> Verdict {
    if interval.low >= 1.0 - margin && interval.high <= 1.0 + margin {
        Verdict::Equal
    } else if interval.low > 1.0 && p_adjusted < level {
        Verdict::Faster
    } else if interval.high < 1.0 && p_adjusted < level {
        Verdict::Slower
    } else {
        Verdict::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verdict_follows_interval_margin_and_family() {
        let judge = |low, high, p| judge(Interval { low, high }, p, 0.05);
        assert_eq!(judge(1.1, 1.3, 0.001), Verdict::Faster);
        assert_eq!(judge(0.7, 0.9, 0.001), Verdict::Slower);
        assert_eq!(judge(1.1, 1.3, 0.08), Verdict::Undecided, "the family asks for more");
        assert_eq!(judge(0.9, 1.2, 0.4), Verdict::Undecided);
        assert_eq!(judge(0.97, 1.02, 0.7), Verdict::Equal);
        assert_eq!(judge(1.01, 1.03, 0.001), Verdict::Equal, "certain, and too small to matter");
        assert_eq!(judge(f64::NAN, f64::NAN, f64::NAN), Verdict::Undecided);
        assert_eq!(Verdict::Slower.to_string(), "slower");
    }
}
