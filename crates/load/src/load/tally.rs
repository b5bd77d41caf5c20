//! Tallies: the observations of one loop in the measured phase. Recording an operation costs a few nanoseconds and no
//! allocation; the tallies of all loops are merged when the trial ends.
//!
//! Invariant: memory does not grow with the number of operations or with time. A tally that comes from another process merges as one of this
//! process does: bucket for bucket.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::asides::Asides;
use super::changing::Changing;
pub use super::ending::{Ending, Times};
use crate::database::DatabaseError;
use crate::histogram::Histogram;
use crate::measurement::{IntervalMeasurement, OperationMeasurement};
use crate::operation::{KindNames, OperationKind};
use crate::store::SampleOutcome;

use super::recording::Recorder;
use super::series::Series;

/// Number of different messages of failed operations that are kept; further ones are counted together.
const MESSAGES_MAX: usize = 20;

/// Counts, times and messages of the operations of one loop.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// Records the raw times of every operation; `None` if they are not recorded.
    #[serde(skip)]
    pub recorder: Option<Recorder>,
    kinds: Vec<(OperationKind, OperationMeasurement)>,
    /// Operations that were parts of others; the whole is counted in addition.
    parts: Vec<(OperationKind, OperationMeasurement)>,
    /// Time that a free client took from the intended time to sending.
    pub generator_late: Histogram,
    /// Time that the loop took for one pass over the answers that had arrived.
    pub passes: Histogram,
    /// Messages of failed operations, with the number of occurrences.
    pub errors: BTreeMap<String, u64>,
    /// Messages because of which operations were sent again, with the number of times; each operation counts once more elsewhere, when it has ended.
    #[serde(default)]
    pub sent_again: BTreeMap<String, u64>,
    /// Whether an operation failed because its connection was lost.
    pub has_lost: bool,
    series: Series,
    /// Operations during schema changes and outside of them.
    #[serde(skip)]
    pub asides: Asides,
    /// Records of all completed inserts, those of the warm-up included: the database must hold these.
    pub acknowledged_records: u64,
    /// Operations completed within the measured phase, whenever they were intended: the load that an overloaded
    /// database carries, whose backlog extends over both ends of the phase.
    pub carried: u64,
    /// The same count, with each completed operation weighted by the share of its time, from sending to answer, within the measured phase. If
    /// operations take long, such as uploads over a slow link, counting whole ones is too coarse.
    pub carried_in_shares: f64,
    window_ns: std::ops::Range<u64>,
    /// End of the last operation that counts.
    pub last_done_ns: u64,
}

impl Tally {
    /// Makes a tally of a measured phase from `measure_ns` to `end_ns`, which is `u64::MAX` if a count ends it.
    pub fn new(measure_ns: u64, end_ns: u64) -> Self {
        let series = Series::from(measure_ns);
        Tally { series, window_ns: measure_ns..end_ns, ..Tally::default() }
    }

    /// Makes the tally count operations during a schema change separately.
    pub fn with_asides(self, changing: Option<Arc<Changing>>) -> Self {
        Tally { asides: Asides::new(changing), ..self }
    }

    /// Makes the tally pass the raw times of every operation to a recorder.
    pub fn recorded_by(self, recorder: Option<Recorder>) -> Self {
        Tally { recorder, ..self }
    }

    /// Notes that an operation was completed, also in the warm-up.
    #[inline]
    pub fn completed(&mut self, kind: OperationKind, records: u64, (sent_ns, done_ns): (u64, u64)) {
        self.carried += u64::from(self.window_ns.contains(&done_ns) && !self.asides.is_over(done_ns));
        self.carried_in_shares += share_within(&self.window_ns, sent_ns, done_ns);
        if kind == OperationKind::Insert {
            self.acknowledged_records += records;
        }
    }

    /// Counts a part of an operation of the measured phase; its message and its place in the series are those of the whole.
    pub fn count_part(&mut self, kind: OperationKind, records: u64, times: Times, ending: Ending<'_>) {
        let place = place_of(&mut self.parts, kind);
        add(&mut self.parts[place].1, records, times, ending);
    }

    /// Counts the rows that a query of the measured phase returned.
    #[inline]
    pub fn count_rows(&mut self, kind: OperationKind, rows: u64) {
        let place = place_of(&mut self.kinds, kind);
        *self.kinds[place].1.rows.get_or_insert(0) += rows;
    }

    /// Counts an answer of the measured phase whose values were checked.
    #[inline]
    pub fn count_checked(&mut self, kind: OperationKind, is_wrong: bool) {
        let place = place_of(&mut self.kinds, kind);
        *self.kinds[place].1.wrong.get_or_insert(0) += u64::from(is_wrong);
    }

    /// Records the raw times of an operation, also in the warm-up, if the study asks for them.
    #[inline]
    pub fn sample(&mut self, client: u32, kind: OperationKind, times: Times, is_measured: bool, ending: &Ending<'_>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.record(client, kind, times, is_measured, ending.into());
        }
    }

    /// Counts one operation of the measured phase. Its client was free to send it since `free_ns`.
    pub fn count(&mut self, kind: OperationKind, records: u64, times: Times, free_ns: u64, ending: Ending<'_>) {
        let place = place_of(&mut self.kinds, kind);
        add(&mut self.kinds[place].1, records, times, ending);
        self.last_done_ns = self.last_done_ns.max(times.done_ns);
        self.generator_late.record(times.sent_ns.saturating_sub(times.intended_ns.max(free_ns)));
        match ending {
            Ending::Completed { .. } => {
                let response_ns = times.done_ns.saturating_sub(times.intended_ns);
                self.series.count(times.done_ns, Some(response_ns));
                self.asides.count(kind, times.intended_ns, Some(response_ns));
            }
            Ending::Failed(error) => {
                self.series.count(times.done_ns, None);
                self.asides.count(kind, times.intended_ns, None);
                self.has_lost |= matches!(error, DatabaseError::Lost(_));
                self.note_error(error.to_string(), 1);
            }
            Ending::Abandoned => {}
        }
        self.series.schedule(times.intended_ns);
    }

    /// Counts an arrival of the measured phase that was due and never sent, because no client was free until the trial ended.
    pub fn count_unsent(&mut self, kind: OperationKind, intended_ns: u64, end_ns: u64) {
        if let Some(recorder) = &mut self.recorder {
            let times = Times { intended_ns, sent_ns: end_ns, done_ns: end_ns };
            recorder.record(0, kind, times, true, SampleOutcome::Unsent);
        }
        let place = place_of(&mut self.kinds, kind);
        let operation = &mut self.kinds[place].1;
        operation.scheduled += 1;
        operation.abandoned += 1;
        operation.censored_time.record(end_ns.saturating_sub(intended_ns));
        self.series.schedule(intended_ns);
    }

    /// Returns the kind of operation that was scheduled most; `None` before the first operation.
    pub fn commonest_kind(&self) -> Option<OperationKind> {
        self.kinds.iter().max_by_key(|(_, operation)| operation.scheduled).map(|(kind, _)| *kind)
    }

    /// Checks a tally that comes from another process.
    ///
    /// # Errors
    /// A sentence that says what no tally holds.
    pub fn check(&self) -> Result<(), String> {
        if self.errors.len() > MESSAGES_MAX + 1 {
            return Err(format!("it has {} different messages", self.errors.len()));
        }
        if self.sent_again.len() > MESSAGES_MAX + 1 {
            return Err(format!("it has {} reasons to send again", self.sent_again.len()));
        }
        self.series.check()
    }

    /// Adds the observations of another loop.
    pub fn merge(&mut self, other: &Tally) {
        for (mine, others) in [(&mut self.kinds, &other.kinds), (&mut self.parts, &other.parts)] {
            for (kind, operation) in others {
                let place = place_of(mine, *kind);
                mine[place].1.merge(operation);
            }
        }
        self.generator_late.merge(&other.generator_late);
        self.passes.merge(&other.passes);
        for (message, count) in &other.errors {
            self.note_error(message.clone(), *count);
        }
        for (message, count) in &other.sent_again {
            note(&mut self.sent_again, message.clone(), *count);
        }
        self.has_lost |= other.has_lost;
        self.series.merge(&other.series);
        self.asides.merge(&other.asides);
        self.acknowledged_records += other.acknowledged_records;
        self.carried += other.carried;
        self.carried_in_shares += other.carried_in_shares;
        self.last_done_ns = self.last_done_ns.max(other.last_done_ns);
    }

    /// Returns the measurement of each kind of operation, by name.
    pub fn operations(&self, names: &KindNames) -> BTreeMap<String, Box<OperationMeasurement>> {
        self.kinds.iter().map(|(kind, operation)| (names.name(*kind), Box::new(operation.clone()))).collect()
    }

    /// Returns the measurement of each kind of operation that was part of another, by name.
    pub fn parts(&self, names: &KindNames) -> BTreeMap<String, Box<OperationMeasurement>> {
        self.parts.iter().map(|(kind, operation)| (names.name(*kind), Box::new(operation.clone()))).collect()
    }

    /// Returns the series of the measured phase up to its end.
    pub fn series(&self, measured_s: f64) -> Vec<IntervalMeasurement> {
        self.series.finish(measured_s)
    }

    fn note_error(&mut self, message: String, count: u64) {
        note(&mut self.errors, message, count);
    }

    /// Counts an operation of the measured phase that is sent again.
    pub fn count_again(&mut self, error: &DatabaseError) {
        note(&mut self.sent_again, error.to_string(), 1);
    }
}

/// Counts a message; beyond the first ones, all new ones are counted together.
fn note(messages: &mut BTreeMap<String, u64>, message: String, count: u64) {
    let known = messages.contains_key(&message) || messages.len() < MESSAGES_MAX;
    *messages.entry(if known { message } else { "other messages".to_owned() }).or_default() += count;
}

/// Returns the share of the time from `sent_ns` to `done_ns` that lies in the window.
#[inline]
fn share_within(window_ns: &std::ops::Range<u64>, sent_ns: u64, done_ns: u64) -> f64 {
    if window_ns.contains(&sent_ns) && done_ns < window_ns.end {
        return 1.0;
    }
    let within_ns = done_ns.min(window_ns.end).saturating_sub(sent_ns.max(window_ns.start));
    within_ns as f64 / done_ns.saturating_sub(sent_ns).max(1) as f64
}

/// Returns the place of a kind; adds the kind if it is new.
fn place_of(kinds: &mut Vec<(OperationKind, OperationMeasurement)>, kind: OperationKind) -> usize {
    if let Some(place) = kinds.iter().position(|(known, _)| *known == kind) {
        return place;
    }
    kinds.push((kind, OperationMeasurement::default()));
    kinds.len() - 1
}

/// Counts one operation.
fn add(operation: &mut OperationMeasurement, records: u64, times: Times, ending: Ending<'_>) {
    operation.scheduled += 1;
    match ending {
        Ending::Completed { empty } => {
            operation.completed += 1;
            operation.empty += u64::from(empty);
            operation.records += records;
            operation.response_time.record(times.done_ns.saturating_sub(times.intended_ns));
            operation.residence_time.record(times.done_ns.saturating_sub(times.sent_ns));
            operation.schedule_lag.record(times.sent_ns.saturating_sub(times.intended_ns));
        }
        Ending::Failed(_) => operation.failed += 1,
        Ending::Abandoned => {
            operation.abandoned += 1;
            operation.censored_time.record(times.done_ns.saturating_sub(times.intended_ns));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(intended_ns: u64, sent_ns: u64, done_ns: u64) -> Times {
        Times { intended_ns, sent_ns, done_ns }
    }

    #[test]
    fn scheduled_is_completed_plus_failed_plus_abandoned() {
        let mut tally = Tally::new(0, u64::MAX);
        tally.count(OperationKind::Insert, 5, times(0, 10, 100), 0, Ending::Completed { empty: false });
        tally.count(OperationKind::Insert, 5, times(0, 10, 100), 0, Ending::Failed(&DatabaseError::refused("1", "no")));
        tally.count(OperationKind::Insert, 5, times(0, 10, 100), 0, Ending::Abandoned);
        let operation = &tally.operations(&KindNames::default())["insert"];
        assert_eq!(operation.scheduled, operation.completed + operation.failed + operation.abandoned);
        assert_eq!((operation.scheduled, operation.records), (3, 5));
        assert_eq!(tally.errors, BTreeMap::from([("no (1)".to_owned(), 1)]));
    }

    #[test]
    fn response_time_is_lag_plus_residence_time() {
        let mut tally = Tally::new(0, u64::MAX);
        tally.count(OperationKind::Read, 1, times(100, 130, 180), 0, Ending::Completed { empty: true });
        let operation = &tally.operations(&KindNames::default())["read"];
        assert_eq!(operation.response_time.max_ns(), 80);
        assert_eq!(operation.residence_time.max_ns(), 50);
        assert_eq!(operation.schedule_lag.max_ns(), 30);
        assert_eq!(operation.empty, 1);
    }

    #[test]
    fn an_operation_over_an_edge_of_the_measured_phase_counts_with_its_share() {
        let mut tally = Tally::new(100, 200);
        let mut carried = |sent_ns, done_ns| {
            let before = tally.carried_in_shares;
            tally.completed(OperationKind::Insert, 1, (sent_ns, done_ns));
            tally.carried_in_shares - before
        };
        assert_eq!([carried(100, 199), carried(50, 150), carried(180, 220), carried(50, 250)], [1.0, 0.5, 0.5, 0.5]);
        assert_eq!([carried(0, 99), carried(0, 100), carried(200, 300), carried(50, 50)], [0.0; 4]);
        assert_eq!(tally.carried, 3, "whole ones are counted where they end");
    }

    #[test]
    fn lateness_counts_only_from_when_the_client_was_free() {
        let mut tally = Tally::new(0, u64::MAX);
        tally.count(OperationKind::Read, 1, times(100, 130, 180), 125, Ending::Completed { empty: false });
        assert_eq!(tally.generator_late.max_ns(), 5);
    }

    #[test]
    fn the_series_of_a_long_trial_stays_small_and_keeps_every_count() {
        let mut long = Tally::new(0, u64::MAX);
        let mut short = Tally::new(0, u64::MAX);
        for second in 0..1_000u64 {
            let done_ns = second * 1_000_000_000;
            long.count(OperationKind::Read, 1, times(0, 0, done_ns), 0, Ending::Completed { empty: false });
        }
        short.count(OperationKind::Read, 1, times(0, 0, 5), 0, Ending::Completed { empty: false });
        short.merge(&long);
        let series = short.series(1_000.0);
        assert!(series.len() <= 512);
        assert_eq!(series.iter().map(|interval| interval.completed).sum::<u64>(), 1_001);
        assert!(series.last().unwrap().end_s >= 999.0);
    }

    #[test]
    fn the_series_ends_with_the_measured_phase() {
        let mut tally = Tally::new(0, u64::MAX);
        for done_ns in [50_000_000, 150_000_000, 249_000_000, 260_000_000] {
            tally.count(OperationKind::Read, 1, times(0, 0, done_ns), 0, Ending::Completed { empty: false });
        }
        let series = tally.series(0.25);
        assert_eq!(series.iter().map(|interval| interval.end_s).collect::<Vec<_>>(), [0.1, 0.2, 0.25]);
        assert!(tally.series(0.2).iter().all(|interval| interval.completed == 1));
        assert_eq!(tally.series(0.0), []);
    }

    proptest::proptest! {
        #[test]
        fn tallies_of_other_processes_merge_to_the_tally_of_all_their_operations(
            operations in proptest::collection::vec((0_usize..4, 0_u64..90_000_000_000, 1_u64..1 << 40, 0_u8..4), 0..120)
        ) {
            let new = || Tally::new(1_000, 80_000_000_000);
            let (mut whole, mut shares) = (new(), [new(), new(), new(), new()]);
            let error = DatabaseError::refused("1", "no");
            for (share, intended_ns, lasts_ns, ending) in operations {
                let done_ns = intended_ns + lasts_ns;
                let times = times(intended_ns, intended_ns + lasts_ns / 3, done_ns);
                let (kind, ending) = match ending {
                    0 => (OperationKind::Insert, Ending::Completed { empty: false }),
                    1 => (OperationKind::Statement(3), Ending::Completed { empty: true }),
                    2 => (OperationKind::Read, Ending::Failed(&error)),
                    _ => (OperationKind::Read, Ending::Abandoned),
                };
                for tally in [&mut whole, &mut shares[share]] {
                    tally.completed(kind, 5, (times.sent_ns, done_ns));
                    tally.count(kind, 5, times, intended_ns + 7, ending);
                    tally.count_part(OperationKind::Update, 1, times, ending);
                }
            }
            let mut merged = new();
            for share in &shares {
                let travelled = serde_json::to_string(share).unwrap();
                merged.merge(&serde_json::from_str(&travelled).unwrap());
            }
            let names = KindNames::default();
            proptest::prop_assert_eq!(merged.operations(&names), whole.operations(&names));
            proptest::prop_assert_eq!(merged.parts(&names), whole.parts(&names));
            proptest::prop_assert_eq!(&merged.generator_late, &whole.generator_late);
            proptest::prop_assert_eq!(merged.series(80.0), whole.series(80.0));
            proptest::prop_assert_eq!(&merged.errors, &whole.errors);
            let counts = |tally: &Tally| (tally.carried, tally.acknowledged_records, tally.last_done_ns, tally.has_lost);
            proptest::prop_assert_eq!(counts(&merged), counts(&whole));
            proptest::prop_assert!((merged.carried_in_shares - whole.carried_in_shares).abs() < 1e-6);
        }
    }

    #[test]
    fn different_messages_are_bounded_and_every_failure_is_counted() {
        let mut tally = Tally::new(0, u64::MAX);
        for number in 0..100 {
            let error = DatabaseError::refused("1", format!("message {number}"));
            tally.count(OperationKind::Read, 1, Times::default(), 0, Ending::Failed(&error));
        }
        assert_eq!(tally.errors.len(), MESSAGES_MAX + 1);
        assert_eq!(tally.errors.values().sum::<u64>(), 100);
    }
}
