//! Whether what comes in is stored in time: how far each writer has come, and what its last tries came to. Main type: [`Progress`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::clock::{SharedClock, machine};

/// So many tries in a row that failed are no accident: the recorder is not ready.
pub const FAILED_TRIES: u32 = 10;

/// What is known of a writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneProgress {
    /// The entry that it has come to; those behind it wait.
    pub through: i64,
    /// When the oldest record arrived that waits in memory, in nanoseconds since 1970.
    pub waits_since_ns: Option<i64>,
    /// Tries in a row that failed.
    pub failed_tries: u32,
    /// Why the last one failed; empty for none.
    pub reason: String,
    /// An entry that waits, and since when; the next one is looked at when this one is written.
    watched: Option<(i64, Instant)>,
    /// How long the last one that was looked at had waited, and when it was written.
    waited: Option<(Duration, Instant)>,
}

/// The last entry that was looked at tells for so long how long entries wait.
const WAITED_LASTS: Duration = Duration::from_secs(1);

/// Why records wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// They are next, or others are before them.
    Queue,
    /// The database does not take them.
    Database,
    /// The database does not take those of their measurement.
    Measurement,
    /// Their source sends more than its share.
    Share,
}

/// The oldest record that waits for a cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// Why.
    pub cause: Cause,
    /// How long.
    pub age: Duration,
    /// What the database says; empty where it says nothing.
    pub reason: String,
}

/// How far all writers have come.
#[derive(Debug)]
pub struct Progress {
    lanes: Mutex<BTreeMap<u32, LaneProgress>>,
    clock: SharedClock,
}

impl Default for Progress {
    fn default() -> Self {
        Progress::by(machine())
    }
}

impl Cause {
    /// Its name on `/metrics`.
    pub fn name(self) -> &'static str {
        match self {
            Cause::Queue => "queue",
            Cause::Database => "database",
            Cause::Measurement => "measurement",
            Cause::Share => "share",
        }
    }
}

impl Progress {
    /// Nothing is known yet; waiting is measured by a clock.
    pub fn by(clock: SharedClock) -> Self {
        Progress { lanes: Mutex::default(), clock }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, LaneProgress>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A writer has come to an entry.
    pub fn note_through(&self, lane: u32, through: i64) {
        let mut lanes = self.lock();
        let lane = lanes.entry(lane).or_default();
        lane.through = through;
        if let Some((_, since)) = lane.watched.take_if(|(entry, _)| *entry <= through) {
            lane.waited = Some((self.clock.since(since), self.clock.now()));
        }
    }

    /// An entry waits for a writer.
    pub fn note_entry(&self, lane: u32, entry: i64) {
        let mut lanes = self.lock();
        let lane = lanes.entry(lane).or_default();
        if lane.watched.is_none() && entry > lane.through {
            lane.watched = Some((entry, self.clock.now()));
        }
    }

    /// How long entries wait in some lanes: the longest of what has waited until a moment ago and what waits now.
    pub fn wait_of(&self, lanes: std::ops::Range<u32>) -> Duration {
        let of = |lane: &LaneProgress| {
            let waits = lane.watched.map(|(_, since)| self.clock.since(since));
            let waited = lane.waited.filter(|(_, at)| self.clock.since(*at) < WAITED_LASTS).map(|(waited, _)| waited);
            waits.max(waited)
        };
        self.lock().range(lanes).filter_map(|(_, lane)| of(lane)).max().unwrap_or_default()
    }

    /// How long the entries that wait now have waited in some lanes.
    pub fn waits_now(&self, lanes: std::ops::Range<u32>) -> Duration {
        let of = |lane: &LaneProgress| lane.watched.map(|(_, since)| self.clock.since(since));
        self.lock().range(lanes).filter_map(|(_, lane)| of(lane)).max().unwrap_or_default()
    }

    /// The entry that a writer has come to; those behind it wait.
    pub fn through(&self, lane: u32) -> i64 {
        self.lock().get(&lane).map_or(0, |lane| lane.through)
    }

    /// Records that arrived then wait in a writer's memory; none wait any more.
    pub fn note_waiting(&self, lane: u32, since_ns: Option<i64>) {
        self.lock().entry(lane).or_default().waits_since_ns = since_ns;
    }

    /// A writer's try has failed.
    pub fn note_failed(&self, lane: u32, reason: &str) {
        let mut lanes = self.lock();
        let lane = lanes.entry(lane).or_default();
        lane.failed_tries = lane.failed_tries.saturating_add(1);
        if lane.reason != reason {
            reason.clone_into(&mut lane.reason);
        }
    }

    /// Whether a writer's last try has failed.
    pub fn has_failed(&self, lane: u32) -> bool {
        self.lock().get(&lane).is_some_and(|lane| lane.failed_tries > 0)
    }

    /// The database has taken what a writer wrote.
    pub fn note_success(&self, lane: u32) {
        let mut lanes = self.lock();
        if let Some(lane) = lanes.get_mut(&lane) {
            lane.failed_tries = 0;
            lane.reason.clear();
        }
    }

    /// All writers.
    pub fn lanes(&self) -> BTreeMap<u32, LaneProgress> {
        self.lock().clone()
    }
}

/// What waits for a writer: the cause, where the writer is one for that alone, what is known of it, and when the oldest record arrived that
/// waits for it, in memory or in the spool.
pub type LaneWaiting = (Option<Cause>, LaneProgress, Option<i64>);

/// The oldest record of each cause.
pub fn oldest(waiting: &[LaneWaiting], now_ns: i64) -> Vec<Waiting> {
    let mut oldest: BTreeMap<Cause, Waiting> = BTreeMap::new();
    for (own_cause, lane, since_ns) in waiting {
        let Some(since_ns) = since_ns else { continue };
        let cause = match (own_cause, lane.failed_tries) {
            (Some(Cause::Measurement), _) => Cause::Measurement,
            (own_cause, 0) => own_cause.unwrap_or(Cause::Queue),
            (_, _) => Cause::Database,
        };
        // A clock that was set back makes no record older than now.
        let age = Duration::from_nanos(u64::try_from(now_ns.saturating_sub(*since_ns)).unwrap_or(0));
        let known = oldest.get(&cause).map_or(Duration::ZERO, |known| known.age);
        if age >= known {
            oldest.insert(cause, Waiting { cause, age, reason: lane.reason.clone() });
        }
    }
    oldest.into_values().collect()
}

/// Why what comes in is not stored in time, if that is so.
pub fn why_late(waiting: &[LaneWaiting], within: Duration, now_ns: i64) -> Option<String> {
    let behind = |reason: &str| if reason.is_empty() { String::new() } else { format!(": {reason}") };
    let late = oldest(waiting, now_ns).into_iter().find(|waiting| waiting.age > within);
    if let Some(Waiting { cause, age, reason }) = late {
        let what = match cause {
            Cause::Queue => "records wait to be written",
            Cause::Database => "records wait for the database",
            Cause::Measurement => "records of a measurement wait apart, because the database refuses it",
            Cause::Share => "records of a source that sends more than its share wait",
        };
        return Some(format!("{what} for {:.0} s by now{}", age.as_secs_f64(), behind(&reason)));
    }
    let failing = |(own_cause, lane, _): &&LaneWaiting| {
        *own_cause != Some(Cause::Measurement) && lane.failed_tries >= FAILED_TRIES
    };
    let (_, lane, _) = waiting.iter().find(failing)?;
    Some(format!("the last {} tries to write failed{}", lane.failed_tries, behind(&lane.reason)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_record_of_each_cause_is_told_and_what_is_late_names_its_reason() {
        let second = 1_000_000_000;
        let lane = |failed_tries, reason: &str| LaneProgress {
            failed_tries,
            reason: reason.to_owned(),
            ..LaneProgress::default()
        };
        let mut waiting = vec![
            (None, lane(0, ""), Some(90 * second)),
            (None, lane(0, ""), None),
            (None, lane(3, "no room"), Some(50 * second)),
            (Some(Cause::Measurement), lane(7, "no table"), Some(20 * second)),
            (Some(Cause::Measurement), lane(7, "locked"), Some(200 * second)),
            (Some(Cause::Share), lane(0, ""), Some(70 * second)),
        ];
        let told = oldest(&waiting, 100 * second);
        let told: Vec<_> =
            told.iter().map(|told| (told.cause.name(), told.age.as_secs(), told.reason.as_str())).collect();
        let expected =
            [("queue", 10, ""), ("database", 50, "no room"), ("measurement", 80, "no table"), ("share", 30, "")];
        assert_eq!(told, expected);
        let why = |waiting: &[_], within| why_late(waiting, Duration::from_secs(within), 100 * second);
        assert_eq!(why(&waiting, 90), None);
        assert_eq!(why(&waiting, 40).unwrap(), "records wait for the database for 50 s by now: no room");
        assert!(why(&waiting, 60).unwrap().contains("no table"));
        waiting =
            vec![(None, lane(FAILED_TRIES, "read only"), None), (Some(Cause::Measurement), lane(99, "no table"), None)];
        assert_eq!(why(&waiting, 60).unwrap(), "the last 10 tries to write failed: read only");
        assert_eq!(why(&waiting[1..], 60), None, "nothing waits apart any more");
    }

    #[test]
    fn entries_wait_until_their_writer_has_come_to_them() {
        let (progress, lanes) = (Progress::default(), 0..2);
        assert_eq!(progress.wait_of(lanes.clone()), Duration::ZERO);
        progress.note_entry(1, 7);
        progress.note_entry(1, 8);
        std::thread::sleep(Duration::from_millis(2));
        let waits = progress.wait_of(lanes.clone());
        assert!(waits >= Duration::from_millis(2));
        progress.note_through(1, 6);
        assert!(progress.wait_of(lanes.clone()) > waits, "it waits still");
        progress.note_through(1, 8);
        let waited = progress.wait_of(lanes.clone());
        assert!(waited >= waits);
        assert_eq!(
            progress.wait_of(lanes.clone()),
            waited,
            "it does not wait any more, and tells what is to be expected"
        );
        progress.note_entry(1, 8);
        assert_eq!((progress.wait_of(lanes), progress.wait_of(2..9)), (waited, Duration::ZERO));
    }
}
