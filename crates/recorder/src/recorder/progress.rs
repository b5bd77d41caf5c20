//! Progress of the writers: how far each has come, and how its last attempts ended. Tells whether records are stored in time. Main type: [`Progress`].

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::clock::{SharedClock, machine};

/// After this many failed attempts in a row the recorder is not ready.
pub const FAILED_TRIES: u32 = 10;

/// The progress of one writer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LaneProgress {
    /// The last entry that the writer has finished; later ones wait.
    pub through: i64,
    /// When the oldest record that waits in memory arrived, in nanoseconds since 1970; `None` if none waits.
    pub waits_since_ns: Option<i64>,
    /// Attempts in a row that failed.
    pub failed_tries: u32,
    /// The error of the last failed attempt; empty for none.
    pub reason: String,
    /// A waiting entry whose waiting time is measured, and since when; the next one is chosen once it is written.
    watched: Option<(i64, Instant)>,
    /// How long the last measured entry had waited, and when it was written.
    waited: Option<(Duration, Instant)>,
}

/// How long the waiting time of the last measured entry stays valid.
const WAITED_LASTS: Duration = Duration::from_secs(1);

/// The reason why records wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// They are next, or other records are before them.
    Queue,
    /// The database does not accept them.
    Database,
    /// The database does not accept records of their measurement.
    Measurement,
    /// Their source sends more than its share.
    Share,
}

/// The oldest record that waits for one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The cause.
    pub cause: Cause,
    /// How long the record has waited.
    pub age: Duration,
    /// The error of the database; empty for none.
    pub reason: String,
}

/// The progress of all writers.
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
    /// Returns the name on `/metrics`.
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
    /// Creates an empty progress that measures waiting with `clock`.
    pub fn by(clock: SharedClock) -> Self {
        Progress { lanes: Mutex::default(), clock }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, LaneProgress>> {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a writer has finished the entries up to `through`.
    pub fn note_through(&self, lane: u32, through: i64) {
        let mut lanes = self.lock();
        let lane = lanes.entry(lane).or_default();
        lane.through = through;
        if let Some((_, since)) = lane.watched.take_if(|(entry, _)| *entry <= through) {
            lane.waited = Some((self.clock.since(since), self.clock.now()));
        }
    }

    /// Notes that an entry waits for a writer.
    pub fn note_entry(&self, lane: u32, entry: i64) {
        let mut lanes = self.lock();
        let lane = lanes.entry(lane).or_default();
        if lane.watched.is_none() && entry > lane.through {
            lane.watched = Some((entry, self.clock.now()));
        }
    }

    /// Returns how long entries wait in these lanes: the longest of the waits that ended recently and those that still last.
    pub fn wait_of(&self, lanes: std::ops::Range<u32>) -> Duration {
        let of = |lane: &LaneProgress| {
            let waits = lane.watched.map(|(_, since)| self.clock.since(since));
            let waited = lane.waited.filter(|(_, at)| self.clock.since(*at) < WAITED_LASTS).map(|(waited, _)| waited);
            waits.max(waited)
        };
        self.lock().range(lanes).filter_map(|(_, lane)| of(lane)).max().unwrap_or_default()
    }

    /// Returns how long the entries that wait now have waited in these lanes.
    pub fn waits_now(&self, lanes: std::ops::Range<u32>) -> Duration {
        let of = |lane: &LaneProgress| lane.watched.map(|(_, since)| self.clock.since(since));
        self.lock().range(lanes).filter_map(|(_, lane)| of(lane)).max().unwrap_or_default()
    }

    /// Returns the last entry that a writer has finished; later ones wait.
    pub fn through(&self, lane: u32) -> i64 {
        self.lock().get(&lane).map_or(0, |lane| lane.through)
    }

    /// Notes since when records wait in a writer's memory; `None` if none wait any more.
    pub fn note_waiting(&self, lane: u32, since_ns: Option<i64>) {
        self.lock().entry(lane).or_default().waits_since_ns = since_ns;
    }

    /// Notes a failed attempt of a writer.
    pub fn note_failed(&self, lane: u32, reason: &str) {
        let mut lanes = self.lock();
        let lane = lanes.entry(lane).or_default();
        lane.failed_tries = lane.failed_tries.saturating_add(1);
        if lane.reason != reason {
            reason.clone_into(&mut lane.reason);
        }
    }

    /// Returns whether the last attempt of a writer has failed.
    pub fn has_failed(&self, lane: u32) -> bool {
        self.lock().get(&lane).is_some_and(|lane| lane.failed_tries > 0)
    }

    /// Notes that the database has accepted what a writer wrote.
    pub fn note_success(&self, lane: u32) {
        let mut lanes = self.lock();
        if let Some(lane) = lanes.get_mut(&lane) {
            lane.failed_tries = 0;
            lane.reason.clear();
        }
    }

    /// Forgets a writer that has ended and is not needed any more.
    pub fn forget(&self, lane: u32) {
        self.lock().remove(&lane);
    }

    /// Returns the progress of all writers by lane.
    pub fn lanes(&self) -> BTreeMap<u32, LaneProgress> {
        self.lock().clone()
    }
}

/// A lane with waiting records: the cause, if the lane serves only that one, its progress, and when the oldest waiting record arrived, in memory
/// or in the spool, in nanoseconds since 1970.
pub type LaneWaiting = (Option<Cause>, LaneProgress, Option<i64>);

/// Returns the oldest waiting record of each cause.
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

/// Returns why records are not stored in time; `None` if they are.
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
