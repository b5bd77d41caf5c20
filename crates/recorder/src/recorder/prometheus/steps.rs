//! The times at which a question is answered. Main type: [`Steps`].

use super::language::duration_ns;
use super::refusal::Refusal;
use crate::units::parse_utc;

/// The most times of an answer, as in Prometheus.
const STEPS_MAX: i64 = 11_000;
const NS_PER_MS: i64 = 1_000_000;
/// The largest number of milliseconds that is a whole number of nanoseconds here.
const MS_MAX: f64 = 9.0e12;
/// The first and the last time that can be asked about, in nanoseconds: in the years 1938 and 2223. What lies between them, and the longest range before the first,
/// are numbers of 64 bits.
const TIMES_NS: std::ops::RangeInclusive<i64> = -1_000_000_000_000_000_000..=8_000_000_000_000_000_000;

/// Times with the same distance, in nanoseconds since 1970, each a whole millisecond.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Steps {
    /// The first.
    pub(super) start_ns: i64,
    /// The distance.
    pub(super) step_ns: i64,
    /// The number of times, at least 1.
    pub(super) count: usize,
}

impl Steps {
    /// Creates a single time.
    pub(super) fn at(time_ns: i64) -> Self {
        Steps { start_ns: time_ns, step_ns: 1, count: 1 }
    }

    /// Reads `start`, `end` and `step` as Prometheus has them.
    ///
    /// # Errors
    /// What is wrong with which of them.
    pub(super) fn read(start: &str, end: &str, step: &str) -> Result<Self, Refusal> {
        let (start_ns, end_ns) = (read_time("start", start)?, read_time("end", end)?);
        let bad = |says: String| Refusal::Bad(format!("invalid parameter \"step\": {says}"));
        let step_ns = duration_ns(step).or_else(|| milliseconds(step));
        let step_ns = step_ns.ok_or_else(|| bad(format!("cannot parse {step:?} to a valid duration")))?;
        if end_ns < start_ns {
            let says = "invalid parameter \"end\": end timestamp must not be before start time";
            return Err(Refusal::Bad(says.to_owned()));
        }
        if step_ns < NS_PER_MS {
            return Err(bad(format!("{step:?} is less than a millisecond, or not positive")));
        }
        let count = (end_ns - start_ns) / step_ns + 1;
        if count > STEPS_MAX {
            let says = format!(
                "exceeded maximum resolution of {STEPS_MAX} points per timeseries. Try decreasing the query resolution (?step=XX)"
            );
            return Err(Refusal::Bad(says));
        }
        Ok(Steps { start_ns, step_ns, count: count as usize })
    }

    /// Returns the times.
    pub(super) fn times(self) -> impl Iterator<Item = i64> {
        (0..self.count as i64).map(move |number| self.start_ns + number * self.step_ns)
    }

    /// Returns the last time.
    pub(super) fn end_ns(self) -> i64 {
        self.start_ns + (self.count as i64 - 1) * self.step_ns
    }
}

/// Reads a time: seconds since 1970, or RFC 3339 in UTC.
///
/// # Errors
/// That it is no time; `name` is the parameter's.
pub(super) fn read_time(name: &str, text: &str) -> Result<i64, Refusal> {
    let time_ns = milliseconds(text).or_else(|| parse_utc(text).map(|ns| ns / NS_PER_MS * NS_PER_MS));
    let remedy = "write seconds since 1970, or a time in UTC, as in 2026-11-22T10:00:00Z";
    time_ns.filter(|time_ns| TIMES_NS.contains(time_ns)).ok_or_else(|| {
        Refusal::Bad(format!("invalid parameter \"{name}\": cannot parse {text:?} to a valid timestamp; {remedy}"))
    })
}

/// Returns seconds in nanoseconds, rounded to milliseconds.
fn milliseconds(text: &str) -> Option<i64> {
    let ms = (text.parse::<f64>().ok()? * 1e3).round();
    (ms.abs() <= MS_MAX).then(|| ms as i64 * NS_PER_MS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::prometheus::language::RANGE_NS_MAX;

    #[test]
    fn times_are_read_as_prometheus_reads_them() {
        let steps = Steps::read("1700000000.1234", "1700000010", "2.5").unwrap();
        assert_eq!(steps, Steps { start_ns: 1_700_000_000_123_000_000, step_ns: 2_500_000_000, count: 4 });
        assert_eq!(steps.times().last(), Some(steps.end_ns()));
        assert_eq!(read_time("time", "2023-11-14T22:13:20Z"), Ok(1_700_000_000_000_000_000));
        assert_eq!(Steps::read("0", "59", "1m").unwrap().count, 1);
        // The ends of what can be asked about, with the longest range before them.
        for step in ["8e8", "4.5e9", "9e9"] {
            let all = Steps::read("-1e9", "8e9", step).unwrap();
            assert!(all.times().all(|time_ns| time_ns > i64::MIN + RANGE_NS_MAX) && all.end_ns() <= *TIMES_NS.end());
        }
        for (start, end, step, says) in [
            ("x", "1", "1", "invalid parameter \"start\""),
            ("1", "NaN", "1", "invalid parameter \"end\""),
            ("1", "1e300", "1", "invalid parameter \"end\""),
            ("-9e9", "1", "1", "invalid parameter \"start\""),
            ("1", "9e9", "1", "invalid parameter \"end\""),
            ("1", "9999-01-01T00:00:00Z", "1", "invalid parameter \"end\""),
            ("2", "1", "1", "end timestamp must not be before start"),
            ("1", "2", "0", "less than a millisecond"),
            ("1", "2", "-1", "less than a millisecond"),
            ("1", "2", "x", "cannot parse \"x\" to a valid duration"),
            ("0", "11000", "1", "exceeded maximum resolution of 11000 points"),
        ] {
            let Err(Refusal::Bad(sentence)) = Steps::read(start, end, step) else { panic!("{says}") };
            assert!(sentence.contains(says), "{sentence}");
        }
    }
}
