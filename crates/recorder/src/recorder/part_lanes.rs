//! Lanes that write parts of a shared stream, opened and ended while the recorder runs. Main type: [`PartLanes`].
//!
//! Invariant: a lane's thread has ended before its part is given to another recorder in order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::access::random_token;
use super::clock;
use super::hold::{Hold, Holds};
use super::meter::Meter;
use super::pulse::Pulse;

use super::spool::{LaneOpening, Opening};
use super::writer::{DirectHandle, Feed, Lane, LaneEnd, LaneSettings};
use crate::layout::recorded::hash_hex;

/// The number of the lane of part 0.
const FIRST_PART_LANE: u32 = 2_000;
/// How often it is looked whether a lane has ended.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// What opens lanes for parts.
pub struct PartLanes {
    /// The settings of a lane of a part, but for those that belong to its part.
    settings: LaneSettings,
    runtime: tokio::runtime::Handle,
    holds: Arc<Holds>,
    pulses: Mutex<BTreeMap<u32, Arc<Pulse>>>,
}

/// A lane of a part.
pub struct PartLane {
    /// Where messages are given to the lane. The lane ends in order once this is dropped.
    pub handle: DirectHandle,
    /// The thread of the lane.
    pub thread: PartThread,
}

/// The thread of a lane of a part.
pub struct PartThread(JoinHandle<LaneEnd>);

impl PartThread {
    /// Waits until the thread has ended, for this long at most; returns whether it has.
    pub async fn ended(&self, within: Duration) -> bool {
        let begun = Instant::now();
        while !self.0.is_finished() && begun.elapsed() < within {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.0.is_finished()
    }
}

impl PartLanes {
    /// Creates what opens lanes with these settings, for the parts of which `holds` keeps account.
    pub fn new(settings: LaneSettings, runtime: tokio::runtime::Handle, holds: Arc<Holds>) -> Self {
        PartLanes { settings, runtime, holds, pulses: Mutex::default() }
    }

    /// Returns the holds of this recorder.
    pub fn holds(&self) -> &Arc<Holds> {
        &self.holds
    }

    fn pulses(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Arc<Pulse>>> {
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn meter(&self) -> &Meter {
        &self.settings.meter
    }

    /// Opens the lane of a part. `ledger` is the name by which the ledger knows the stream, the same for all recorders that share it.
    ///
    /// # Errors
    /// When the system has no thread left, or no random numbers.
    pub fn open(&self, ledger: &str, hold: &Arc<Hold>) -> Result<PartLane, String> {
        let (lane, pulse) = (FIRST_PART_LANE + hold.part(), Arc::new(Pulse::new()));
        let token = hash_hex(&[&random_token()?]);
        let settings = LaneSettings {
            lane,
            opening: LaneOpening {
                recorder: ledger.to_owned(),
                openings: vec![Opening { number: 1, token, newest: 0 }],
                is_checked: false,
            },
            pulse: Arc::clone(&pulse),
            stop: Arc::clone(hold.stop()),
            hold: Some(Arc::clone(hold)),
            ..self.settings.clone()
        };
        let (feed, handle) = Feed::direct(self.runtime.clone(), clock::machine());
        let writer = Lane::new(settings);
        let spawned = std::thread::Builder::new().name("writer".to_owned()).spawn(move || writer.run(feed));
        let thread = PartThread(spawned.map_err(|error| error.to_string())?);
        self.pulses().insert(hold.part(), pulse);
        self.holds.add(Arc::clone(hold));
        Ok(PartLane { handle, thread })
    }

    /// Forgets a part whose lane has ended or is ending.
    pub fn close(&self, hold: &Hold) {
        hold.end();
        self.holds.remove(hold.part());
        self.pulses().remove(&hold.part());
        self.meter().progress.forget(FIRST_PART_LANE + hold.part());
    }

    /// Returns whether the database does not take what the lane of this part writes, or does not answer it.
    pub fn is_failing(&self, hold: &Hold) -> bool {
        !hold.is_open() || self.meter().progress.has_failed(FIRST_PART_LANE + hold.part())
    }

    /// Returns the number of a lane that did nothing for this long; `None` if there is none.
    pub fn stuck(&self, within: Duration) -> Option<u32> {
        let pulses = self.pulses();
        pulses.iter().find(|(_, pulse)| pulse.is_stuck(within)).map(|(part, _)| FIRST_PART_LANE + part)
    }
}
