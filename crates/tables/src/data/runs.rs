//! Measurements of several lengths: [`Runs`] determines which records belong to which measurement, as in table 4.3 of Ruottinen 2015, and what
//! counts up within each.

use crate::trial::RecordSettings;

/// Runs of several lengths, one after another. The last one is followed by endless runs of its length.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Runs {
    /// The lengths, at least one; the number of runs of the last one is unlimited.
    classes: Vec<Class>,
    /// Number of rows of the longest run.
    longest: u64,
    /// The scale: a run of 1,000 records at scale 0.1 has 100 records, which count by tens.
    scale: f64,
}

/// Runs of one length.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Class {
    first_measurement: u64,
    first_record: u64,
    records: u64,
}

impl Runs {
    /// Creates the runs of the settings; `None` if all measurements have the same length.
    pub(super) fn of(settings: &RecordSettings) -> Option<Self> {
        let mut classes = Vec::new();
        let (mut first_measurement, mut first_record) = (0, 0);
        for (runs, records) in settings.runs.iter().filter(|(runs, records)| *runs > 0 && *records > 0) {
            classes.push(Class { first_measurement, first_record, records: *records });
            first_measurement += runs;
            first_record += runs * records;
        }
        let longest = classes.iter().map(|class| class.records).max()?;
        let scale = settings.scale.filter(|scale| *scale > 0.0).unwrap_or(1.0);
        Some(Runs { classes, longest, scale })
    }

    pub(super) fn longest(&self) -> u64 {
        self.longest
    }

    #[inline]
    pub(super) fn measurement_of(&self, record: u64) -> u64 {
        let class = self.classes.iter().rev().find(|class| class.first_record <= record).unwrap_or(&self.classes[0]);
        class.first_measurement + (record - class.first_record) / class.records
    }

    #[inline]
    pub(super) fn first_record_of(&self, measurement: u64) -> u64 {
        let is_in = |class: &&Class| class.first_measurement <= measurement;
        let class = self.classes.iter().rev().find(is_in).unwrap_or(&self.classes[0]);
        class.first_record + (measurement - class.first_measurement) * class.records
    }

    /// Returns the value that has counted up in the run until this record, from 0.
    #[inline]
    pub(super) fn counted(&self, record: u64) -> f64 {
        let position = record - self.first_record_of(self.measurement_of(record));
        // Rounding to six digits keeps tenths and thirds from missing whole numbers by a rounding error.
        (position as f64 / self.scale * 1e6).round() / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(scale: f64, runs: &[(u64, u64)]) -> Runs {
        let settings = RecordSettings { runs: runs.to_vec(), scale: Some(scale), ..RecordSettings::default() };
        Runs::of(&settings).unwrap()
    }

    #[test]
    fn every_record_is_in_the_run_that_begins_before_it_and_ends_behind_it() {
        let runs = runs(1.0, &[(1, 60), (5, 8), (3, 1)]);
        for record in 0..200 {
            let measurement = runs.measurement_of(record);
            let range = runs.first_record_of(measurement)..runs.first_record_of(measurement + 1);
            assert!(range.contains(&record), "{record} in {range:?}");
        }
        assert_eq!(
            [0, 59, 60, 67, 68, 99, 100, 102].map(|record| runs.measurement_of(record)),
            [0, 0, 1, 1, 2, 5, 6, 8]
        );
        assert_eq!(runs.measurement_of(110), 16, "runs of the last length follow");
        assert_eq!([0, 59, 60, 67, 68].map(|record| runs.counted(record)), [0.0, 59.0, 0.0, 7.0, 0.0]);
    }

    #[test]
    fn shorter_runs_count_up_to_the_same_numbers() {
        let shortened = runs(0.1, &[(2, 100)]);
        assert_eq!((shortened.counted(3), shortened.counted(99), shortened.counted(100)), (30.0, 990.0, 0.0));
        assert_eq!(runs(0.3, &[(1, 300)]).counted(3), 10.0);
    }
}
