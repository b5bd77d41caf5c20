//! The condition of a running recorder, for `/metrics`, `/ready` and its supervisor. Main type: [`Condition`].

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::admission::{Gate, Governor};
use super::clock::now_ns;
use super::intake::Publisher;
use super::meter::Meter;
use super::metrics::{self, Shown};
use super::part_lanes::PartLanes;
use super::progress::{Cause, LaneWaiting, oldest, why_late};
use super::pulse::{Heartbeat, Pulse};
use super::spool::{APART_LANES, CommitterHandle, Counts, GREEDY_LANES, QuarantineView, Reader};

/// `/ready` no longer waits for a part that is silent for this long.
const SILENT_MAX: Duration = Duration::from_secs(30);

/// The state that is shown to the outside.
pub(super) struct Condition {
    pub(super) spool: Mutex<Option<CommitterHandle>>,
    pub(super) meter: Arc<Meter>,
    pub(super) governor: Arc<Governor>,
    pub(super) gate: Arc<Gate>,
    pub(super) bound_bytes: u64,
    pub(super) quarantine_bound_bytes: u64,
    pub(super) is_direct: bool,
    /// The number of writers that the spool feeds, or would feed.
    pub(super) lanes: u32,
    /// When rows were last counted, how many there were, and how many per second.
    pub(super) speed: Mutex<(Instant, u64, f64)>,
    /// Further parts of `/metrics`.
    pub(super) more: Mutex<Vec<Page>>,
    /// The reader of the spool that finds how long records wait.
    pub(super) reader: Mutex<Reader>,
    /// How long the oldest record may wait while the recorder is ready.
    pub(super) ready_within: Duration,
    /// The signs of life of the writers, and of the threads that accept requests.
    pub(super) pulses: Vec<(u32, Arc<Pulse>)>,
    pub(super) heartbeat: Heartbeat,
    /// The lanes of parts of a shared stream; `None` if there is none, and after the end.
    pub(super) parts: Mutex<Option<Arc<PartLanes>>>,
    /// What brings requests into the shared stream; `None` if they go another way.
    pub(super) publisher: Option<Arc<Publisher>>,
}

/// A function that writes a part of `/metrics`.
pub type Page = Box<dyn Fn() -> String + Send + Sync>;

impl Condition {
    pub(super) fn spool(&self) -> Option<CommitterHandle> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn parts(&self) -> Option<Arc<PartLanes>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn set_parts(&self, parts: Option<PartLanes>) {
        *self.parts.lock().unwrap_or_else(PoisonError::into_inner) = parts.map(Arc::new);
    }

    pub(super) fn counts(&self) -> Counts {
        self.spool().map(|spool| spool.counts().with_retired(self.meter.retired.get())).unwrap_or_default()
    }

    pub(super) fn quarantine(&self) -> Arc<QuarantineView> {
        self.spool().map(|spool| spool.quarantine_view()).unwrap_or_default()
    }

    pub(super) fn rows_per_s(&self) -> f64 {
        let mut speed = self.speed.lock().unwrap_or_else(PoisonError::into_inner);
        let (rows, passed_s) = (self.meter.rows.get(), speed.0.elapsed().as_secs_f64());
        if passed_s >= 1.0 {
            *speed = (Instant::now(), rows, (rows - speed.1) as f64 / passed_s);
        }
        speed.2
    }

    pub(super) fn metrics(&self) -> String {
        let is_broken = self.spool().is_none_or(|spool| spool.broken().is_some());
        let more = self.more.lock().unwrap_or_else(PoisonError::into_inner);
        let more: String = more.iter().map(|page| page()).collect();
        let waiting = self.waiting();
        more + &metrics::text(&Shown {
            holds: self.parts().map(|parts| Arc::clone(parts.holds())),
            counts: self.counts(),
            bound_bytes: self.bound_bytes,
            quarantine: &self.quarantine(),
            meter: &self.meter,
            view: self.governor.view(),
            gate: &self.gate,
            rows_per_s: self.rows_per_s(),
            is_broken,
            is_ready: self.why_not_ready(&waiting).is_none(),
            waiting: oldest(&waiting, now_ns()),
            apart: self.spool().map_or(0, |spool| spool.apart().len()),
        })
    }

    /// Returns the progress of each writer, and when the oldest record arrived that waits for it.
    pub(super) fn waiting(&self) -> Vec<LaneWaiting> {
        let mut lanes = self.meter.progress.lanes();
        // Lanes without any progress have all that is in the spool before them.
        let spooled = (0..self.lanes).chain(GREEDY_LANES).chain(APART_LANES);
        for lane in spooled {
            lanes.entry(lane).or_default();
        }
        let (reader, spool) = (self.reader.lock().unwrap_or_else(PoisonError::into_inner), self.spool());
        let is_empty = self.counts().spooled == 0;
        let apart = spool.map(|spool| spool.apart()).unwrap_or_default();
        let waiting = lanes.into_iter().map(|(number, lane)| {
            let is_used = !APART_LANES.contains(&number) || apart.values().any(|used| *used == number);
            // A spool that cannot be read is reported elsewhere.
            let spooled =
                if is_empty || !is_used { None } else { reader.oldest(number, lane.through).unwrap_or_default() };
            let oldest = [spooled, lane.waits_since_ns].into_iter().flatten().min();
            let cause = match number {
                number if APART_LANES.contains(&number) => Some(Cause::Measurement),
                number if GREEDY_LANES.contains(&number) => Some(Cause::Share),
                _ => None,
            };
            (cause, lane, oldest)
        });
        waiting.collect()
    }

    /// Returns the name of a part that did nothing for this long; `None` if there is none.
    pub(super) fn stuck(&self, within: Duration) -> Option<String> {
        let part = if self.spool().is_some_and(|spool| spool.is_stuck(within)) {
            "the thread of the spool".to_owned()
        } else if self.heartbeat.is_stuck(within) {
            "all threads of the intakes".to_owned()
        } else {
            let stuck = self.pulses.iter().find(|(_, pulse)| pulse.is_stuck(within)).map(|(lane, _)| *lane);
            let lane = stuck.or_else(|| self.parts()?.stuck(within))?;
            format!("writer {lane}")
        };
        Some(format!("{part} did nothing for {} by now", crate::units::show_seconds(within.as_secs_f64())))
    }

    pub(super) fn takes_in(&self) -> bool {
        !self.is_direct || self.meter.lanes_connected.get() > 0
    }

    pub(super) fn why_not_ready(&self, waiting: &[LaneWaiting]) -> Option<String> {
        let Some(spool) = self.spool() else { return Some("the recorder is stopping".to_owned()) };
        if let Some(broken) = spool.broken() {
            return Some(broken.to_string());
        }
        if !self.takes_in() {
            return Some("the database is not connected yet".to_owned());
        }
        if self.publisher.as_ref().is_some_and(|publisher| !publisher.is_connected()) {
            return Some("the stream cannot be reached".to_owned());
        }
        if self.gate.is_closed() {
            let counts = self.counts();
            let held = counts.held_bytes(self.bound_bytes, self.quarantine_bound_bytes);
            let reason = match held > 2 * counts.spooled_bytes.saturating_sub(counts.deferred_bytes) {
                true => {
                    "refused records without room in quarantine take most of the spool; replay or discard what is there"
                }
                false => "the spool is full",
            };
            return Some(reason.to_owned());
        }
        if let Some(full) = spool.full() {
            spool.try_again();
            return Some(full);
        }
        let late = why_late(waiting, self.ready_within, now_ns());
        late.or_else(|| self.stuck(self.ready_within.max(SILENT_MAX)))
    }
}
