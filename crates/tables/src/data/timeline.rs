//! Sources and times: which source a record comes from, and when its reading was made. Main type: [`Timeline`].
//!
//! Records are numbered in the order in which they arrive. The sources send in turn, one record each in a *round*. A reading belongs to a *slot* of time,
//! which is one interval long. A source is silent for the same number of slots in each period of rounds, at a place of its own. A late record belongs to an
//! earlier slot than its round: it lies in the second half of that slot, so that it differs from the reading made there in time.
//!
//! Invariant: source and time are pure functions of seed and number.

use std::ops::Range;

use crate::random::{below32, derive, mix};
use crate::trial::SeriesSettings;

/// Time at which the first slot begins: 2023-11-14 22:13:20 UTC, in nanoseconds since 1970.
const FIRST_NS: i64 = 1_700_000_000_000_000_000;

/// Rounds of a period in which each source is silent once, unless silences are rarer.
const PERIOD_ROUNDS: u64 = 1000;

/// Rounds by which a repeated record lies behind the first one at most.
const REPEATED_ROUNDS: u64 = 8;

/// The sources and the times of records.
#[derive(Debug, Clone)]
pub(crate) struct Timeline {
    sources: u64,
    interval_ns: i64,
    jitter_ns: u32,
    /// Rounds of a period, and slots of it in which a source is silent.
    period: (u64, u64),
    /// Of 2^32, how many records are late; by how many slots at most.
    late: (u32, u32),
    /// Of 2^32, how many records are repeated.
    repeated: u32,
    time_seed: u64,
    fate_seed: u64,
    silence_seed: u64,
}

impl Timeline {
    pub(crate) fn new(settings: &SeriesSettings, seed: u64) -> Self {
        let of_all = |share: f64| (share.clamp(0.0, 0.5) * 4_294_967_296.0) as u32;
        let interval_ns = settings.interval_ns.max(1000);
        let slots = (settings.late_up_to_ns / interval_ns).clamp(0, i64::from(u32::MAX)) as u32;
        let jitter_ns = (settings.jitter.clamp(0.0, 0.5) * interval_ns as f64).min(4e9) as u32;
        Timeline {
            sources: u64::from(settings.sources.max(1)),
            interval_ns,
            jitter_ns,
            period: period_of(settings.missing.clamp(0.0, 0.5)),
            late: if slots == 0 { (0, 0) } else { (of_all(settings.late_share), slots) },
            repeated: of_all(settings.repeated),
            time_seed: derive(seed, 0x7469_6d65),
            fate_seed: derive(seed, 0x6661_7465),
            silence_seed: derive(seed, 0x7369_6c65),
        }
    }

    /// Returns the number of sources.
    pub(crate) fn sources(&self) -> u64 {
        self.sources
    }

    /// Returns the source of a record, from 0.
    #[inline]
    pub(crate) fn source_of(&self, record: u64) -> u64 {
        record % self.sources
    }

    /// Returns the round in which a record arrives.
    #[inline]
    pub(crate) fn round_of(&self, record: u64) -> u64 {
        record / self.sources
    }

    /// Returns the record whose reading a record brings: an earlier one of the same source for a repeated record, otherwise itself.
    #[inline]
    pub(crate) fn original_of(&self, record: u64) -> u64 {
        let Some(back) = self.repeats(record) else { return record };
        let earlier = record - back * self.sources;
        // A record that is itself a repetition is repeated by nothing.
        if self.repeats(earlier).is_some() { record } else { earlier }
    }

    /// Returns the number of records in a round, and the number of rounds in which all readings lie that are the same; `None` where none is repeated.
    pub(crate) fn again(&self) -> Option<(u64, u64)> {
        (self.repeated > 0).then_some((self.sources, REPEATED_ROUNDS + 1))
    }

    /// Returns how many rounds ago the record came that this one may repeat.
    #[inline]
    fn repeats(&self, record: u64) -> Option<u64> {
        let fate = mix(self.fate_seed ^ record);
        let is_so = (fate as u32) < self.repeated && self.round_of(record) >= REPEATED_ROUNDS;
        is_so.then(|| 1 + (fate >> 32) % REPEATED_ROUNDS)
    }

    /// Returns the time of a record's reading, in nanoseconds since 1970.
    #[inline]
    pub(crate) fn time_ns(&self, record: u64) -> i64 {
        let record = self.original_of(record);
        let (source, word) = (self.source_of(record), mix(self.time_seed ^ record));
        let (chance, place) = ((word >> 32) as u32, word as u32);
        let slot = self.slot_of(source, self.round_of(record)) as i64;
        let phase_ns = (i128::from(source) * i128::from(self.interval_ns) / i128::from(self.sources)) as i64;
        let (share, slots) = self.late;
        if chance >= share {
            return self.begin_ns(slot) + phase_ns + i64::from(below32(place, self.jitter_ns));
        }
        let back = 1 + i64::from(below32(mix(word) as u32, slots));
        let half_ns = self.interval_ns / 2;
        let within_ns = ((i128::from(place) * i128::from(half_ns)) >> 32) as i64;
        self.begin_ns(slot - back) + phase_ns + half_ns + within_ns
    }

    fn begin_ns(&self, slot: i64) -> i64 {
        FIRST_NS.saturating_add(slot.saturating_mul(self.interval_ns))
    }

    /// Returns the slot of a source in a round.
    #[inline]
    fn slot_of(&self, source: u64, round: u64) -> u64 {
        let (rounds, silent) = self.period;
        if silent == 0 {
            return round;
        }
        let (period, within) = (round / rounds, round % rounds);
        let begins = mix(self.silence_seed ^ mix(source) ^ period) % rounds;
        period * (rounds + silent) + within + if within >= begins { silent } else { 0 }
    }

    /// Returns the time before which no record from this number on has a reading, in nanoseconds since 1970.
    pub(crate) fn settled_ns(&self, records: u64) -> i64 {
        let (rounds, silent) = self.period;
        let round = self.round_of(records).saturating_sub(if self.repeated > 0 { REPEATED_ROUNDS } else { 0 });
        let slot = round / rounds * (rounds + silent) + round % rounds;
        let back = if self.late.0 > 0 { i64::from(self.late.1) } else { 0 };
        self.begin_ns(slot as i64 - back)
    }

    /// Returns the time of the last whole round of the first `records` records, in nanoseconds since 1970: where the data's own clock stands when they have come.
    pub(crate) fn clock_ns(&self, records: u64) -> i64 {
        let (rounds, silent) = self.period;
        let round = self.round_of(records).saturating_sub(1);
        self.begin_ns((round / rounds * (rounds + silent) + round % rounds) as i64)
    }

    /// Returns how far a reading can lie ahead of [`Timeline::clock_ns`], and how far a late one behind it, in nanoseconds. A source that was silent in this period is ahead of the
    /// others by its silence.
    pub(crate) fn reach_ns(&self) -> (i64, i64) {
        let intervals = |slots: u64| self.interval_ns.saturating_mul(i64::try_from(slots).unwrap_or(i64::MAX));
        let late = if self.late.0 > 0 { u64::from(self.late.1) } else { 0 };
        let repeated = if self.repeated > 0 { REPEATED_ROUNDS + self.period.1 } else { 0 };
        (intervals(self.period.1.saturating_add(3)), intervals(late.saturating_add(repeated).saturating_add(1)))
    }

    /// Returns the time behind the newest reading of the last rounds of the first `records` records, in nanoseconds since 1970.
    pub(crate) fn end_ns(&self, records: u64) -> i64 {
        let last = records.saturating_sub(2 * self.sources)..records;
        last.map(|record| self.time_ns(record)).max().map_or(FIRST_NS, |newest_ns| newest_ns.saturating_add(1))
    }

    /// Returns the rounds in which a source's reading of this time can have arrived.
    pub(crate) fn rounds_of(&self, time_ns: i64) -> Range<u64> {
        let (rounds, silent) = self.period;
        let slot = ((time_ns - FIRST_NS).max(0) / self.interval_ns) as u64;
        let least = slot / (rounds + silent) * rounds;
        let late = if self.late.0 > 0 { u64::from(self.late.1) } else { 0 };
        least..least + 2 * rounds + late + REPEATED_ROUNDS + 1
    }
}

/// Returns the rounds of a period and the silent slots in it, for this share of missing readings.
fn period_of(missing: f64) -> (u64, u64) {
    if missing <= 0.0 {
        return (PERIOD_ROUNDS, 0);
    }
    let silent = missing / (1.0 - missing) * PERIOD_ROUNDS as f64;
    if silent >= 1.0 {
        (PERIOD_ROUNDS, silent.round() as u64)
    } else {
        (((1.0 - missing) / missing).min(1e12) as u64, 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> SeriesSettings {
        SeriesSettings {
            sources: 7,
            interval_ns: 1_000_000_000,
            jitter: 0.1,
            missing: 0.02,
            late_share: 0.05,
            late_up_to_ns: 60_000_000_000,
            repeated: 0.03,
        }
    }

    #[test]
    fn shares_are_those_that_were_asked_for() {
        let (timeline, records) = (Timeline::new(&settings(), 1), 700_000);
        let (mut repeated, mut late, mut newest) = (0.0, 0.0, vec![i64::MIN; 7]);
        for record in 0..records {
            let (time, source) = (timeline.time_ns(record), timeline.source_of(record) as usize);
            if timeline.original_of(record) != record {
                repeated += 1.0;
            } else if time < newest[source] {
                late += 1.0;
            }
            newest[source] = newest[source].max(time);
        }
        let share = |count: f64| count / records as f64;
        // A record that would repeat a repetition repeats nothing: 0.03 × 0.97.
        assert!((share(repeated) - 0.0291).abs() < 0.001, "{}", share(repeated));
        // Nearly all late records are behind one that came before.
        assert!((share(late) - 0.0485).abs() < 0.003, "{}", share(late));
        let slots = (newest[0] - FIRST_NS) / 1_000_000_000;
        let missing = 1.0 - 100_000.0 / slots as f64;
        assert!((missing - 0.02).abs() < 0.001, "{missing} of the readings are missing");
    }

    #[test]
    fn a_repeated_record_has_the_time_and_source_of_the_first_one() {
        let timeline = Timeline::new(&settings(), 3);
        let is_repeated = |record: &u64| timeline.original_of(*record) != *record;
        let repeated: Vec<u64> = (0..10_000).filter(is_repeated).collect();
        assert!(!repeated.is_empty());
        let (round, rounds) = timeline.again().unwrap();
        assert_eq!(round, timeline.sources());
        for record in repeated {
            assert!(record / round - timeline.original_of(record) / round < rounds, "{record}");
            let first = timeline.original_of(record);
            assert!(first < record && timeline.original_of(first) == first);
            assert_eq!(timeline.time_ns(record), timeline.time_ns(first));
            assert_eq!(timeline.source_of(record), timeline.source_of(first));
        }
    }

    #[test]
    fn nothing_comes_in_before_the_settled_time_and_rounds_are_found_again() {
        for seed in 0..5 {
            let timeline = Timeline::new(&settings(), seed);
            let times: Vec<i64> = (0..50_000).map(|record| timeline.time_ns(record)).collect();
            for records in [0, 1, 699, 7000, 20_001, 35_000] {
                let settled = timeline.settled_ns(records);
                let first = times[records as usize..].iter().min().unwrap();
                assert!(*first >= settled, "after {records} records: {first} < {settled}");
                let last = times[..records as usize].iter().max().map_or(FIRST_NS, |newest| newest + 1);
                assert!(last - timeline.end_ns(records) < 2_000_000_000, "after {records} records: {last}");
                // It is not settled long before: lateness, a silence, and what is repeated.
                assert!(records < 7000 || first - settled < 100_000_000_000, "{}", first - settled);
            }
            for (record, time) in times.iter().enumerate() {
                let round = timeline.round_of(record as u64);
                assert!(timeline.rounds_of(*time).contains(&round), "{record}: {:?}", timeline.rounds_of(*time));
            }
        }
    }

    #[test]
    fn readings_lie_within_reach_of_the_clock() {
        for seed in 0..5 {
            let timeline = Timeline::new(&settings(), seed);
            let (ahead_ns, behind_ns) = timeline.reach_ns();
            for record in 0..50_000 {
                let off_ns = timeline.time_ns(record) - timeline.clock_ns(record + 1);
                assert!((-behind_ns..ahead_ns).contains(&off_ns), "record {record} is {off_ns} ns off");
            }
            assert!((1..50_000).all(|records| timeline.clock_ns(records) >= timeline.clock_ns(records - 1)));
        }
    }

    #[test]
    fn without_any_trouble_readings_follow_each_other() {
        let plain = SeriesSettings { jitter: 0.0, missing: 0.0, late_share: 0.0, repeated: 0.0, ..settings() };
        let timeline = Timeline::new(&plain, 1);
        let times: Vec<i64> = (0..10_000).map(|record| timeline.time_ns(record)).collect();
        assert!(times.is_sorted());
        assert_eq!(times[0], FIRST_NS);
        assert_eq!(times[7], FIRST_NS + 1_000_000_000);
    }

    #[test]
    fn rare_silences_are_far_apart() {
        assert_eq!(period_of(0.0), (1000, 0));
        assert_eq!(period_of(0.02), (1000, 20));
        assert_eq!(period_of(0.5), (1000, 1000));
        assert_eq!(period_of(0.0001), (9999, 1));
    }
}
