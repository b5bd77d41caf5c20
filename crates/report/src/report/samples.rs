//! Converts samples: raw times as rows for other programs, and as batches for fits. Both read one block at a time.
//!
//! Main functions: [`batches`], [`Rows::csv`], [`Rows::jsonl`] and [`Rows::parquet`]. Invariant: memory does not grow with the number of samples.

use std::io::Write;

use crate::measurement::Measurement;
use crate::queueing::Timer;
use crate::report::export::Kind;
use crate::report::export::parquet::{Cell, ParquetFile, text};
use crate::statistics::batches::Batches;
use crate::store::{Sample, SampleBlock, SampleOutcome, SampleReader, StoreError};
use crate::units::NS_PER_S;

/// The columns of a row. Times are seconds since the start of the measured phase, and negative in the warm-up.
pub const COLUMNS: [(&str, Kind); 9] = [
    ("trial", Kind::Text),
    ("sequence", Kind::Count),
    ("phase", Kind::Text),
    ("client", Kind::Count),
    ("operation", Kind::Text),
    ("outcome", Kind::Text),
    ("intended_s", Kind::Figure),
    ("sent_s", Kind::Figure),
    ("done_s", Kind::Figure),
];

/// Returns the times of a trial's measured phase, counted from where the timer begins. Counted from the intended time, unanswered operations
/// have the time for which they had waited, as in all response times.
///
/// # Errors
/// When the disk cannot be read.
pub fn batches(reader: &mut SampleReader, timer: Timer) -> Result<Batches, StoreError> {
    let mut batches = Batches::default();
    let mut block = SampleBlock::default();
    while reader.next_block(&mut block)? {
        for sample in block.samples.iter().filter(|sample| sample.is_measured) {
            match timer {
                Timer::Intended if sample.is_completed() || sample.is_censored() => {
                    batches.record(sample.done_ns.saturating_sub(sample.intended_ns));
                }
                Timer::Sent if sample.is_completed() => batches.record(sample.done_ns.saturating_sub(sample.sent_ns)),
                _ => {}
            }
        }
    }
    Ok(batches)
}

/// The rows of a block.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The trial.
    pub measurement: &'a Measurement,
    /// The start of its measured phase, in nanoseconds.
    pub measure_ns: u64,
    /// The trial's next block of samples.
    pub block: &'a SampleBlock,
}

impl Rows<'_> {
    /// Writes comma-separated values without a heading. Values that an unsent operation lacks are empty fields.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn csv(&self, out: &mut impl Write) -> std::io::Result<()> {
        let (trial, sequence) = (&self.measurement.trial.id, self.measurement.sequence);
        for sample in &self.block.samples {
            let (phase, kind, outcome) = (phase_of(sample), self.kind_of(sample), sample.outcome.name());
            write!(out, "{trial},{sequence},{phase},")?;
            let [intended, sent, done] = self.times(sample);
            if sample.outcome == SampleOutcome::Unsent {
                writeln!(out, ",{kind},{outcome},{intended},,{done}")?;
            } else {
                writeln!(out, "{},{kind},{outcome},{intended},{sent},{done}", sample.client)?;
            }
        }
        Ok(())
    }

    /// Writes one JSON object per line. Values that an unsent operation lacks are null.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn jsonl(&self, out: &mut impl Write) -> std::io::Result<()> {
        let (trial, sequence) = (&self.measurement.trial.id, self.measurement.sequence);
        for sample in &self.block.samples {
            let (phase, outcome) = (phase_of(sample), sample.outcome.name());
            let kind = serde_json::Value::from(self.kind_of(sample));
            let [intended, sent, done] = self.times(sample);
            let is_unsent = sample.outcome == SampleOutcome::Unsent;
            let null_or = |text: String| if is_unsent { "null".to_owned() } else { text };
            let (client, sent) = (null_or(sample.client.to_string()), null_or(sent.to_string()));
            writeln!(
                out,
                "{{\"trial\":\"{trial}\",\"sequence\":{sequence},\"phase\":\"{phase}\",\"client\":{client},\
                 \"operation\":{kind},\"outcome\":\"{outcome}\",\"intended_s\":{intended},\"sent_s\":{sent},\"done_s\":{done}}}"
            )?;
        }
        Ok(())
    }

    /// Writes rows of a Parquet file with [`COLUMNS`]. Values that an unsent operation lacks are null.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn parquet(&self, file: &mut ParquetFile<impl Write + Send>) -> std::io::Result<()> {
        let (trial, sequence) = (text(&self.measurement.trial.id), Cell::Count(self.measurement.sequence));
        let phases = [false, true].map(|is_measured| text(phase_name(is_measured)));
        let outcomes = SampleOutcome::ALL.map(|outcome| (outcome, text(outcome.name())));
        let kinds: Vec<Cell> = self.block.kinds.iter().map(|kind| text(kind)).collect();
        for sample in &self.block.samples {
            let outcome = outcomes.iter().find(|(outcome, _)| *outcome == sample.outcome);
            let [intended, sent, done] = self.times(sample).map(|time| Cell::Figure(time.to_f64()));
            let is_unsent = sample.outcome == SampleOutcome::Unsent;
            let or_null = |cell| if is_unsent { Cell::Missing } else { cell };
            file.push([
                trial.clone(),
                sequence.clone(),
                phases[usize::from(sample.is_measured)].clone(),
                or_null(Cell::Count(u64::from(sample.client))),
                kinds.get(usize::from(sample.kind)).cloned().unwrap_or(Cell::Missing),
                outcome.map_or(Cell::Missing, |(_, name)| name.clone()),
                intended,
                or_null(sent),
                done,
            ])?;
        }
        Ok(())
    }

    fn kind_of(&self, sample: &Sample) -> &str {
        self.block.kinds.get(usize::from(sample.kind)).map_or("", String::as_str)
    }

    fn times(&self, sample: &Sample) -> [Seconds; 3] {
        [sample.intended_ns, sample.sent_ns, sample.done_ns].map(|time_ns| Seconds(time_ns, self.measure_ns))
    }
}

fn phase_of(sample: &Sample) -> &'static str {
    phase_name(sample.is_measured)
}

fn phase_name(is_measured: bool) -> &'static str {
    if is_measured { "measured" } else { "warm-up" }
}

/// The first time minus the second, both in nanoseconds, shown exactly in seconds.
struct Seconds(u64, u64);

impl Seconds {
    /// Returns the seconds, exact to the nanosecond for all trials shorter than a hundred days.
    fn to_f64(&self) -> f64 {
        (self.0 as f64 - self.1 as f64) / NS_PER_S
    }
}

impl std::fmt::Display for Seconds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sign, apart_ns) = if self.0 < self.1 { ("-", self.1 - self.0) } else { ("", self.0 - self.1) };
        write!(f, "{sign}{}.{:09}", apart_ns / 1_000_000_000, apart_ns % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_exactly_and_from_the_measured_phase_on() {
        assert_eq!(Seconds(2_500_000_001, 500_000_000).to_string(), "2.000000001");
        assert_eq!(Seconds(499_999_999, 1_500_000_000).to_string(), "-1.000000001");
        assert_eq!(Seconds(7, 7).to_string(), "0.000000000");
    }
}
