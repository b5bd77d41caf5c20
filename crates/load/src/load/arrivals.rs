//! Arrivals of an open loop: one seeded schedule of intended times that all connections share. A free connection claims
//! the next one; if its time has passed, the connection sends at once, and that wait is the queue. This is exactly one
//! first-come, first-served queue in front of N workers.
//!
//! Main type: [`Schedule`], pure. Invariant: the times depend only on the settings and the seed, and in particular not on answers.

use std::sync::{Mutex, PoisonError};

use super::profile::Profile;
use super::share::Share;
use crate::random::Stream;
use crate::trial::{Arrivals, Length};

/// Lane of the random stream that gaps come from.
const GAPS: u64 = 0x6172_7269_7661_6c73;
/// Lane of the random stream that phases of sources come from.
const PHASES: u64 = 0x7068_6173_6573;

/// The intended times, by the engine's clock, handed out in order.
#[derive(Debug)]
pub struct Schedule {
    state: Mutex<State>,
    measure_ns: u64,
}

#[derive(Debug)]
struct State {
    gaps: Gaps,
    /// Time of the next arrival, in nanoseconds.
    next_ns: f64,
    /// Time from which on arrivals are not part of the trial, in nanoseconds.
    end_ns: u64,
    /// Number of arrivals of the measured phase that are still to come, if they are counted.
    left: Option<u64>,
}

#[derive(Debug)]
enum Gaps {
    /// Exponential gaps with this mean in nanoseconds.
    Poisson(f64, Stream),
    /// Equal gaps: start and length in nanoseconds, the number of the next arrival from 0, and the step from one to the next.
    Constant(f64, f64, u64, u64),
    /// Times in nanoseconds after the start of the measured phase, the next one last.
    Trace(Vec<u64>),
    /// A changing rate: gaps that are exponential by its integral, or equal by it.
    Profile(Profile, Expected),
}

/// How many arrivals are expected from one arrival of a changing rate to the next.
#[derive(Debug)]
enum Expected {
    /// A random number with mean 1.
    Random(Stream),
    /// A number to the first arrival, and one to each of the others.
    Fixed(f64, f64),
}

impl Expected {
    fn next(&mut self) -> f64 {
        match self {
            // 1 - u is in (0, 1], so that its logarithm is finite.
            Expected::Random(stream) => -(1.0 - stream.unit()).ln(),
            Expected::Fixed(first, others) => std::mem::replace(first, *others),
        }
    }
}

/// The arrival process of a schedule.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process<'a> {
    /// The kind of arrivals; not [`Arrivals::Closed`].
    pub arrivals: Arrivals,
    /// Arrivals per second, above 0; ignored for a trace, which has its own times.
    pub rate_per_s: f64,
    /// The shape of the rate over the measured phase, as times and weights; empty for a constant rate. It needs a length in seconds.
    pub profile: &'a [[f64; 2]],
    /// Times of a trace in nanoseconds after the start of the measured phase, in order; empty for other kinds.
    pub trace_ns: &'a [u64],
    /// Seed of the gaps.
    pub seed: u64,
    /// The share of the process: where arrivals are random, an independent process with a part of the rate; otherwise its turns of the arrivals.
    pub share: Share,
}

impl Schedule {
    /// Makes a schedule of arrivals from `start_ns` on, which counts those from `measure_ns` on, until the length is
    /// reached. With a number of operations per client, that number times `clients` arrive in total.
    pub fn new(process: Process<'_>, start_ns: u64, measure_ns: u64, length: Length, clients: u64) -> Self {
        let (end_ns, left) = match length {
            Length::Seconds(seconds) => (measure_ns + (seconds * 1e9) as u64, None),
            Length::Operations(count) => (u64::MAX, Some(count)),
            Length::OperationsPerClient(count) => (u64::MAX, Some(count * clients)),
        };
        let share = process.share;
        let own_per_s = share.rate_per_s(process.rate_per_s);
        let random = || Stream::new(process.seed, u64::from(share.place), GAPS);
        let gaps = match process.arrivals {
            arrivals if !process.profile.is_empty() && end_ns != u64::MAX => {
                let (rate_per_s, expected) = match arrivals {
                    Arrivals::Constant => {
                        let fixed = Expected::Fixed(f64::from(share.place + 1), f64::from(share.of.max(1)));
                        (process.rate_per_s, fixed)
                    }
                    _ => (own_per_s, Expected::Random(random())),
                };
                Gaps::Profile(Profile::new(process.profile, rate_per_s, (start_ns, measure_ns, end_ns)), expected)
            }
            Arrivals::Constant => {
                let (first, step) = (u64::from(share.place), u64::from(share.of.max(1)));
                Gaps::Constant(start_ns as f64, 1e9 / process.rate_per_s, first, step)
            }
            Arrivals::Trace => {
                let own = (0..).zip(process.trace_ns).filter(|(number, _)| share.has(*number));
                let mut times_ns: Vec<u64> = own.map(|(_, time_ns)| measure_ns + time_ns).collect();
                times_ns.reverse();
                Gaps::Trace(times_ns)
            }
            Arrivals::Poisson | Arrivals::Closed | Arrivals::Sources | Arrivals::Replay => {
                Gaps::Poisson(1e9 / own_per_s, random())
            }
        };
        let mut state = State { gaps, next_ns: start_ns as f64, end_ns, left };
        state.advance();
        Schedule { state: Mutex::new(state), measure_ns }
    }

    /// Removes the arrivals from this time on.
    pub fn ending_at(self, end_ns: u64) -> Self {
        let mut state = self.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        state.end_ns = state.end_ns.min(end_ns);
        Schedule { state: Mutex::new(state), ..self }
    }

    /// Claims the next arrival; `None` if there are no more.
    #[inline]
    pub fn claim(&self) -> Option<u64> {
        // A panicked holder left the state between two arrivals, which is a valid state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).claim(self.measure_ns)
    }

    /// Takes all arrivals of the measured phase that are unclaimed and were due before `until_ns`, in order.
    pub fn rest(&self, until_ns: u64, mut each: impl FnMut(u64)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.next_ns < until_ns as f64
            && let Some(time_ns) = state.claim(self.measure_ns)
        {
            if time_ns >= self.measure_ns {
                each(time_ns);
            }
        }
    }
}

impl State {
    fn claim(&mut self, measure_ns: u64) -> Option<u64> {
        let time_ns = self.next_ns as u64;
        if self.next_ns >= self.end_ns as f64 || !self.next_ns.is_finite() {
            return None;
        }
        if time_ns >= measure_ns
            && let Some(left) = &mut self.left
        {
            *left = left.checked_sub(1)?;
        }
        self.advance();
        Some(time_ns)
    }

    fn advance(&mut self) {
        self.next_ns = match &mut self.gaps {
            // 1 - u is in (0, 1], so that its logarithm is finite.
            Gaps::Poisson(mean_ns, stream) => self.next_ns - *mean_ns * (1.0 - stream.unit()).ln(),
            Gaps::Constant(start_ns, gap_ns, number, step) => {
                let time_ns = *start_ns + *gap_ns * (*number + 1) as f64;
                *number += *step;
                time_ns
            }
            Gaps::Profile(profile, expected) => profile.after(expected.next()),
            Gaps::Trace(times_ns) => times_ns.pop().map_or(f64::INFINITY, |time_ns| time_ns as f64),
        };
    }
}

/// The intended times of one source: from its own start, at equal gaps, until its end.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceTimes {
    start_ns: f64,
    gap_ns: f64,
    sent: u64,
    count: u64,
}

impl SourceTimes {
    /// Makes the times of one of `of` sources with this many results per second each. Their starts are spread over the warm-up, and each has a random
    /// place within its gap, so that sources do not send in step. Each lasts as long as warm-up and measured phase together.
    pub fn new((number, of): (u32, u32), rate_per_s: f64, (warmup_s, measure_s): (f64, f64), seed: u64) -> Self {
        let gap_ns = 1e9 / rate_per_s;
        let spread_ns = (warmup_s * 1e9 - gap_ns).max(0.0);
        let phase = Stream::new(seed, u64::from(number), PHASES).unit();
        let start_ns = spread_ns * f64::from(number) / f64::from(of.max(1)) + phase * gap_ns;
        SourceTimes { start_ns, gap_ns, sent: 0, count: ((warmup_s + measure_s) * rate_per_s).round().max(1.0) as u64 }
    }

    /// Shifts the times to a clock that shows `start_ns` at the start.
    pub fn from(self, start_ns: u64) -> Self {
        SourceTimes { start_ns: self.start_ns + start_ns as f64, ..self }
    }

    /// Returns the time of the next result; `None` if the source has ended.
    #[inline]
    pub fn next_ns(&self) -> Option<u64> {
        (self.sent < self.count).then_some((self.start_ns + self.gap_ns * self.sent as f64) as u64)
    }

    /// Advances to the following result.
    #[inline]
    pub fn advance(&mut self) {
        self.sent += 1;
    }
}

/// Parses a trace: a time in seconds on each line, in order; empty lines and lines that begin with `#` are skipped.
///
/// # Errors
/// A sentence with the line number.
pub fn read_trace(text: &str) -> Result<Vec<u64>, String> {
    let mut times_ns = Vec::new();
    for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let seconds = line.parse::<f64>().ok().filter(|seconds| (0.0..1e9).contains(seconds));
        let seconds =
            seconds.ok_or_else(|| format!("line {number}: \"{line}\" is not a time in seconds, as in 1.25"))?;
        let time_ns = (seconds * 1e9).round() as u64;
        if times_ns.last().is_some_and(|last| *last > time_ns) {
            return Err(format!("line {number}: {line} is before the time of the line above; sort the times"));
        }
        times_ns.push(time_ns);
    }
    if times_ns.is_empty() { Err("there is no time in it".to_owned()) } else { Ok(times_ns) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(arrivals: Arrivals, rate_per_s: f64, length: Length) -> Schedule {
        let share = Share::WHOLE;
        let process = Process { arrivals, rate_per_s, profile: &[], trace_ns: &[], seed: 42, share };
        Schedule::new(process, 1_000_000_000, 2_000_000_000, length, 3)
    }

    fn all(schedule: &Schedule) -> Vec<u64> {
        std::iter::from_fn(|| schedule.claim()).collect()
    }

    #[test]
    fn poisson_gaps_pass_a_kolmogorov_smirnov_test_against_the_exponential() {
        let times = all(&schedule(Arrivals::Poisson, 10_000.0, Length::Seconds(10.0)));
        let mut gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e5).collect();
        gaps.sort_by(f64::total_cmp);
        let n = gaps.len() as f64;
        let distance = gaps.iter().enumerate().fold(0.0_f64, |worst, (place, gap)| {
            let expected = 1.0 - (-gap).exp();
            worst.max(expected - place as f64 / n).max((place + 1) as f64 / n - expected)
        });
        // The 1 % point of the Kolmogorov distribution.
        assert!(distance < 1.628 / n.sqrt(), "distance {distance} of {n} gaps");
    }

    #[test]
    fn the_number_of_poisson_arrivals_is_within_its_own_error() {
        for seed in 0..20 {
            let (arrivals, share) = (Arrivals::Poisson, Share::WHOLE);
            let process = Process { arrivals, rate_per_s: 5_000.0, profile: &[], trace_ns: &[], seed, share };
            let count = all(&Schedule::new(process, 0, 0, Length::Seconds(4.0), 1)).len() as f64;
            assert!((count - 20_000.0).abs() < 4.0 * 20_000.0_f64.sqrt(), "seed {seed}: {count}");
        }
    }

    #[test]
    fn constant_arrivals_are_equally_spaced_and_do_not_drift() {
        let times = all(&schedule(Arrivals::Constant, 4.0, Length::Seconds(100.0)));
        assert_eq!(times.len(), 403);
        assert_eq!(times[399], 101_000_000_000);
    }

    #[test]
    fn all_sources_are_active_in_the_measured_phase_and_each_has_its_own_start_and_end() {
        let (warmup_s, measure_s) = (2.0, 3.0);
        let mut firsts = std::collections::BTreeSet::new();
        for number in 0..50 {
            let mut source = SourceTimes::new((number, 50), 20.0, (warmup_s, measure_s), 7);
            let mut times = Vec::new();
            while let Some(time_ns) = source.next_ns() {
                times.push(time_ns);
                source.advance();
            }
            let (first, last) = (times[0], times[times.len() - 1]);
            assert!(
                times.len() == 100 && first <= 2_000_000_000 && last + 50_000_000 >= 4_999_999_999,
                "{first} {last}"
            );
            assert!(times.windows(2).all(|pair| pair[1] - pair[0] >= 49_999_999 && pair[1] - pair[0] <= 50_000_001));
            firsts.insert(first);
        }
        assert_eq!(firsts.len(), 50);
        let phases: std::collections::BTreeSet<_> = firsts.iter().map(|first| first % 50_000_000 / 1_000_000).collect();
        assert!(phases.len() > 20, "sources send in step: {phases:?}");
    }

    #[test]
    fn counted_arrivals_begin_with_the_measured_phase() {
        for length in [Length::Operations(30), Length::OperationsPerClient(10)] {
            let times = all(&schedule(Arrivals::Poisson, 100.0, length));
            assert_eq!(times.iter().filter(|time| **time >= 2_000_000_000).count(), 30);
            assert!(times.len() > 60, "the warm-up has arrivals too, here {}", times.len() - 30);
        }
    }

    #[test]
    fn the_rest_is_what_nobody_claimed() {
        let claimed = schedule(Arrivals::Poisson, 1_000.0, Length::Seconds(1.0));
        let times = all(&schedule(Arrivals::Poisson, 1_000.0, Length::Seconds(1.0)));
        let half = times.len() / 2 + 500;
        (0..half).for_each(|_| {
            claimed.claim();
        });
        let mut rest = Vec::new();
        claimed.rest(2_900_000_000, |time_ns| rest.push(time_ns));
        let due = times[half..].iter().copied().take_while(|time| *time < 2_900_000_000);
        assert_eq!(rest, due.collect::<Vec<_>>());
    }

    #[test]
    fn shares_of_arrivals_at_fixed_times_are_the_arrivals_and_random_ones_add_up_to_the_rate() {
        let trace: Vec<u64> = (0..1_000).map(|number| number * 3_000_000).collect();
        let ramp = [[0.0, 1.0], [1.0, 3.0]];
        let all_of = |arrivals, profile: &[[f64; 2]], share| {
            let process = Process { arrivals, rate_per_s: 2_000.0, profile, trace_ns: &trace, seed: 5, share };
            all(&Schedule::new(process, 0, 1_000_000_000, Length::Seconds(4.0), 6))
        };
        for of in [2, 3, 7] {
            let joined = |arrivals, profile: &[[f64; 2]]| {
                let shares = (0..of).map(|place| all_of(arrivals, profile, Share { place, of }));
                let mut times: Vec<u64> = shares.flatten().collect();
                times.sort_unstable();
                times
            };
            for (arrivals, profile) in
                [(Arrivals::Constant, &[][..]), (Arrivals::Constant, &ramp), (Arrivals::Trace, &[])]
            {
                let (whole, shared) = (all_of(arrivals, profile, Share::WHOLE), joined(arrivals, profile));
                let apart = whole.iter().zip(&shared).map(|(a, b)| a.abs_diff(*b)).max();
                // Sums of other terms are rounded otherwise.
                assert!(whole.len().abs_diff(shared.len()) <= 1 && apart <= Some(2), "{arrivals:?} {of}: {apart:?}");
            }
            for profile in [&[][..], &ramp] {
                let count =
                    joined(Arrivals::Poisson, profile).iter().filter(|time| **time >= 1_000_000_000).count() as f64;
                assert!((count - 8_000.0).abs() < 4.0 * 8_000.0_f64.sqrt(), "{of}: {count}");
            }
        }
        let first = |place| all_of(Arrivals::Poisson, &[], Share { place, of: 2 })[0];
        assert_ne!(first(0), first(1), "each share is a process of its own");
    }

    #[test]
    fn a_trace_is_replayed_and_a_bad_one_is_named_by_its_line() {
        let trace = read_trace("# seconds\n0.5\n\n0.5\n1.25\n").unwrap();
        assert_eq!(trace, [500_000_000, 500_000_000, 1_250_000_000]);
        let (arrivals, share) = (Arrivals::Trace, Share::WHOLE);
        let process = Process { arrivals, rate_per_s: 1.0, profile: &[], trace_ns: &trace, seed: 0, share };
        let times = all(&Schedule::new(process, 0, 1_000_000_000, Length::Seconds(1.0), 1));
        assert_eq!(times, [1_500_000_000, 1_500_000_000]);
        assert!(read_trace("1\n0.5").unwrap_err().starts_with("line 2"));
        assert!(read_trace("soon").unwrap_err().contains("\"soon\""));
        assert!(read_trace("").is_err());
    }
}
