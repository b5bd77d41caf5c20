//! The course of a trial on one axis of time: resource use of machine and processes, and figures that the database reports of itself.
//!
//! Main type: [`Timeline`]. Invariant: a timeline has a bounded number of moments, whatever the length of the trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ResourceSample, Resources};

/// Seconds for which the last reported number is taken to be still valid.
const TOLD_FOR_S: f64 = 2.0;
/// Shortest interval, as a share of the usual interval.
const LENGTH_LEAST: f64 = 0.2;
/// Largest number of moments of a timeline.
pub const MOMENTS_MOST: usize = 60;

/// The unit of a figure that a database reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ToldUnit {
    /// A share, 0..1.
    Share,
    /// A number of things per second.
    PerSecond,
    /// Bytes per second.
    BytesPerSecond,
    /// A number of things at that time.
    Count,
    /// A number of things that happened since the previous moment.
    Events,
}

/// The rule by which a figure is computed from the numbers that a database returns, by their indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToldHow {
    /// Increase of a number per second.
    Rate(usize),
    /// Increase of a number of bytes per second.
    Bytes(usize),
    /// The number as it is.
    Level(usize),
    /// Increase of a number.
    Events(usize),
    /// Share of requests that were no misses: the indexes of the requests and of the misses.
    Hits(usize, usize),
}

/// A figure that a database reports of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToldFigure {
    /// Name of the figure.
    pub name: String,
    /// Unit of the figure.
    pub unit: ToldUnit,
}

/// The end of an interval, with the rates over that interval.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Moment {
    /// Seconds from the start of the measured phase.
    pub at_s: f64,
    /// CPUs that the server kept busy; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<f64>,
    /// CPUs that loadline kept busy.
    pub client_cpu: f64,
    /// Bytes written to the disks per second; `None` where the server's disks are another machine's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_written_bytes_per_s: Option<f64>,
    /// The figures that the database reported, in the order of [`Timeline::figures`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub told: Vec<Option<f64>>,
}

/// The course of a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// The figures that the database reported.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub figures: Vec<ToldFigure>,
    /// Moments, in the order of time.
    pub moments: Vec<Moment>,
}

/// The numbers that a database returned over time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Told {
    /// Name of each figure, and the rule by which it is computed from the numbers.
    pub figures: Vec<(String, ToldHow)>,
    /// Time of each answer, in seconds from the start of the measured phase, with all its numbers.
    pub readings: Vec<(f64, Vec<Option<f64>>)>,
}

impl ToldHow {
    /// Returns the same rule with all indexes increased by `first`.
    #[must_use]
    pub fn from(self, first: usize) -> Self {
        match self {
            ToldHow::Rate(place) => ToldHow::Rate(first + place),
            ToldHow::Bytes(place) => ToldHow::Bytes(first + place),
            ToldHow::Level(place) => ToldHow::Level(first + place),
            ToldHow::Events(place) => ToldHow::Events(first + place),
            ToldHow::Hits(requests, misses) => ToldHow::Hits(first + requests, first + misses),
        }
    }

    /// Returns how many numbers an answer must have for this figure.
    pub fn numbers(self) -> usize {
        1 + match self {
            ToldHow::Rate(place) | ToldHow::Bytes(place) | ToldHow::Level(place) | ToldHow::Events(place) => place,
            ToldHow::Hits(requests, misses) => requests.max(misses),
        }
    }

    /// Returns the unit of the figure.
    pub fn unit(self) -> ToldUnit {
        match self {
            ToldHow::Rate(_) => ToldUnit::PerSecond,
            ToldHow::Bytes(_) => ToldUnit::BytesPerSecond,
            ToldHow::Level(_) => ToldUnit::Count,
            ToldHow::Events(_) => ToldUnit::Events,
            ToldHow::Hits(..) => ToldUnit::Share,
        }
    }
}

impl Told {
    /// Returns a number at a time, interpolated between two readings; `None` outside of the readings.
    fn at(&self, place: usize, at_s: f64) -> Option<f64> {
        let next = self.readings.partition_point(|(reading_s, _)| *reading_s < at_s);
        let value = |reading: usize| self.readings.get(reading).and_then(|(_, numbers)| *numbers.get(place)?);
        let (after_s, after) = (self.readings.get(next)?.0, value(next)?);
        let Some(before) = next.checked_sub(1) else { return (after_s == at_s).then_some(after) };
        let (before_s, before) = (self.readings[before].0, value(before)?);
        Some(before + (after - before) * (at_s - before_s) / (after_s - before_s).max(1e-9))
    }

    /// Returns the number last reported at a time; `None` before the first reading and more than [`TOLD_FOR_S`] after the last one.
    fn last(&self, place: usize, at_s: f64) -> Option<f64> {
        let (reading_s, numbers) =
            self.readings[..self.readings.partition_point(|(reading_s, _)| *reading_s <= at_s)].last()?;
        let is_last = self.readings.last().is_some_and(|(last_s, _)| last_s == reading_s);
        *numbers.get(place).filter(|_| !is_last || at_s - reading_s <= TOLD_FOR_S)?
    }

    /// Returns a figure over an interval.
    fn over(&self, how: ToldHow, [from_s, to_s]: [f64; 2]) -> Option<f64> {
        // The counters of a restarted server start at zero: no growth is known then.
        let grown = |place: usize| Some((self.at(place, to_s)? - self.at(place, from_s)?).max(0.0));
        let seconds = to_s - from_s;
        match how {
            ToldHow::Rate(place) | ToldHow::Bytes(place) => Some(grown(place)? / seconds.max(1e-9)),
            ToldHow::Level(place) => self.last(place, to_s),
            // An event happens at one time, and is not spread over intervals.
            ToldHow::Events(place) => Some((self.last(place, to_s)? - self.last(place, from_s)?).max(0.0)),
            ToldHow::Hits(requests, misses) => {
                let (requests, misses) = (grown(requests)?, grown(misses)?);
                (requests > 0.0).then(|| (1.0 - misses / requests).clamp(0.0, 1.0))
            }
        }
    }
}

impl Timeline {
    /// Combines the samples and the numbers that the database reported. Returns `None` without a sample.
    pub fn of(samples: &[ResourceSample], resources: &Resources, told: &Told) -> Option<Self> {
        let step = samples.len().div_ceil(MOMENTS_MOST).max(1);
        let mut moments = Vec::with_capacity(samples.len().div_ceil(step));
        let usual_s = samples.first().map_or(0.0, |sample| sample.at_s) * step as f64;
        let mut from_s = 0.0;
        for part in samples.chunks(step) {
            let (mut begin_s, mut sums) = (from_s, [0.0; 3]);
            for sample in part {
                let seconds = sample.at_s - begin_s;
                let figures = [sample.server_cpu, sample.client_cpu, sample.written_bytes_per_s];
                sums.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure * seconds);
                begin_s = sample.at_s;
            }
            let seconds = begin_s - from_s;
            // The last interval may be so short that its rates mean nothing.
            if seconds <= LENGTH_LEAST * usual_s {
                continue;
            }
            let [server_cpu, client_cpu, written] = sums.map(|sum| rounded(sum / seconds));
            let over = |(_, how): &(String, ToldHow)| told.over(*how, [from_s, begin_s]).map(rounded);
            let told = told.figures.iter().map(over).collect();
            let is_known = !resources.server_unknown;
            moments.push(Moment {
                at_s: rounded(begin_s),
                server_cpu: is_known.then_some(server_cpu),
                client_cpu,
                disk_written_bytes_per_s: is_known.then_some(written),
                told,
            });
            from_s = begin_s;
        }
        let figure = |(name, how): &(String, ToldHow)| ToldFigure { name: name.clone(), unit: how.unit() };
        let figures = told.figures.iter().map(figure).collect();
        (!moments.is_empty()).then_some(Timeline { figures, moments })
    }
}

/// Rounds to four significant digits, which is more than a plot shows.
fn rounded(number: f64) -> f64 {
    if number == 0.0 || !number.is_finite() {
        return 0.0;
    }
    let unit = 10_f64.powi(number.abs().log10().floor() as i32 - 3);
    let digits = (number / unit).round();
    // Dividing by a whole number keeps decimals exact.
    if unit >= 1.0 { digits * unit } else { digits / (1.0 / unit).round() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_database_counts_becomes_rates_shares_and_events() {
        let figures = [
            ("bytes", ToldHow::Bytes(0)),
            ("hits", ToldHow::Hits(1, 2)),
            ("checkpoints", ToldHow::Events(3)),
            ("waiting", ToldHow::Level(4)),
        ];
        let figures = figures.map(|(name, how)| (name.to_owned(), how)).to_vec();
        let reading = |at_s: f64, numbers: [f64; 5]| (at_s, numbers.map(Some).to_vec());
        let readings = vec![
            reading(-0.5, [0.0, 0.0, 0.0, 4.0, 0.0]),
            reading(0.5, [1_000.0, 100.0, 10.0, 4.0, 2.0]),
            reading(1.5, [3_000.0, 100.0, 10.0, 5.0, 4.0]),
        ];
        let told = Told { figures, readings };
        let sample = |at_s: f64, server_cpu: f64| ResourceSample { at_s, server_cpu, ..Default::default() };
        let timeline =
            Timeline::of(&[sample(0.5, 1.0), sample(1.5, 0.5), sample(2.5, 0.0)], &Resources::default(), &told);
        let timeline = timeline.unwrap();
        let units: Vec<ToldUnit> = timeline.figures.iter().map(|figure| figure.unit).collect();
        assert_eq!(units, [ToldUnit::BytesPerSecond, ToldUnit::Share, ToldUnit::Events, ToldUnit::Count]);
        assert_eq!(timeline.moments[0].told, [1_000.0, 0.9, 0.0, 2.0].map(Some));
        assert_eq!(
            timeline.moments[1].told,
            [Some(2_000.0), None, Some(1.0), Some(4.0)],
            "nothing was asked of its cache"
        );
        assert_eq!(timeline.moments[2].told, [None, None, Some(0.0), Some(4.0)], "it told nothing any more");
        assert_eq!(
            timeline.moments.iter().map(|moment| moment.server_cpu).collect::<Vec<_>>(),
            [1.0, 0.5, 0.0].map(Some)
        );
    }

    #[test]
    fn a_long_trial_has_no_more_moments_than_a_short_one() {
        let samples: Vec<ResourceSample> = (1..=1_000)
            .map(|second| ResourceSample { at_s: f64::from(second), client_cpu: 2.0, ..Default::default() })
            .collect();
        let unknown = Resources { server_unknown: true, ..Default::default() };
        let timeline = Timeline::of(&samples, &unknown, &Told::default()).unwrap();
        assert!(timeline.moments.len() <= MOMENTS_MOST && timeline.moments.len() > 50, "{}", timeline.moments.len());
        assert!(timeline.moments.iter().all(|moment| moment.client_cpu == 2.0 && moment.server_cpu.is_none()));
        assert_eq!(timeline.moments.last().map(|moment| moment.at_s), Some(1_000.0));
        let short = ResourceSample { at_s: 1_000.000_1, client_cpu: 90.0, ..Default::default() };
        let with_short: Vec<ResourceSample> = samples[990..].iter().copied().chain([short]).collect();
        let with_short: Vec<ResourceSample> =
            with_short.iter().map(|sample| ResourceSample { at_s: sample.at_s - 990.0, ..*sample }).collect();
        assert_eq!(Timeline::of(&with_short, &unknown, &Told::default()).unwrap().moments.len(), 10);
        assert_eq!(Timeline::of(&[], &unknown, &Told::default()), None);
    }

    #[test]
    fn four_digits_are_kept() {
        assert_eq!([0.0, 1.23456, 0.0123456, 123_456.0, f64::NAN].map(rounded), [0.0, 1.235, 0.01235, 123_500.0, 0.0]);
    }
}
