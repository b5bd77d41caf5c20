//! What the spool knows besides entries, ids and quarantine. Main type: [`State`].

use std::collections::BTreeMap;

use super::entry::APART_LANES;
use super::opening::{LaneNews, LaneOpening, Opening};

/// The version of the format of the spool's logs; a newer one is refused.
pub(super) const VERSION: u32 = 6;
/// The number of openings of a lane that are remembered.
const OPENINGS_MAX: usize = 1_000;

/// A lane as the ledger knows it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct LaneState {
    pub recorder: String,
    pub is_checked: bool,
    pub openings: Vec<Opening>,
}

/// The part of the spool's knowledge that is written whole whenever it changes, which is rare.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(super) struct State {
    pub version: u32,
    /// The random name by which the ledger knows this spool.
    pub recorder: String,
    /// The number of lanes that sources are assigned to; 0 before it was decided.
    pub lanes: u32,
    /// Acknowledged rows that are in no frame of the entries, less those that are in one and no longer count.
    pub base: i64,
    /// The time of the ids' clock when this was written, in nanoseconds.
    pub id_clock_ns: i64,
    /// Whether there are ids without owners, from a version that had no owners.
    pub has_unowned: bool,
    /// The newest entry that had ever been taken in when this was written.
    pub newest: i64,
    /// The highest quarantine number that had ever been used when this was written.
    pub newest_quarantined: i64,
    /// The lane of each measurement whose records wait apart.
    pub apart: BTreeMap<String, u32>,
    pub known: BTreeMap<u32, LaneState>,
    /// How far each lane is settled.
    pub settled: BTreeMap<u32, i64>,
}

impl State {
    pub(super) fn new(recorder: String) -> Self {
        State {
            version: VERSION,
            recorder,
            lanes: 0,
            base: 0,
            id_clock_ns: 0,
            has_unowned: false,
            newest: 0,
            newest_quarantined: 0,
            apart: BTreeMap::new(),
            known: BTreeMap::new(),
            settled: BTreeMap::new(),
        }
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        // Maps with keys that are numbers or texts, numbers and texts: serialising them cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }

    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// Begins a new opening of each lane.
    pub(super) fn begin(&mut self, random_name: impl Fn() -> String) {
        self.version = VERSION;
        let newest = self.newest;
        self.known.values_mut().for_each(|lane| lane.open(random_name(), newest));
    }

    /// Returns what a lane shows to the ledger; `None` if the lane is not known yet.
    pub(super) fn lane(&self, lane: u32) -> Option<LaneOpening> {
        self.known.get(&lane).map(LaneState::shown)
    }

    /// Makes a lane known.
    pub(super) fn add_lane(&mut self, lane: u32, token: String) {
        let mut state = LaneState { recorder: self.recorder.clone(), is_checked: false, openings: Vec::new() };
        state.open(token, self.newest);
        self.known.insert(lane, state);
    }

    /// Notes what a lane has found out, and returns what it shows to the ledger from here on.
    pub(super) fn note(&mut self, lane: u32, news: &LaneNews, token: String) -> LaneOpening {
        if !self.known.contains_key(&lane) {
            self.add_lane(lane, token.clone());
        }
        let newest = self.newest;
        let name = self.recorder.clone();
        let known = self.known.entry(lane).or_insert_with(|| LaneState {
            recorder: name,
            is_checked: false,
            openings: Vec::new(),
        });
        match news {
            LaneNews::Checked => known.is_checked = true,
            LaneNews::Superseded => known.open(token, newest),
            LaneNews::Parted { recorder, .. } => {
                known.recorder.clone_from(recorder);
                if known.is_checked {
                    known.open(token, newest);
                }
            }
        }
        known.shown()
    }

    /// Returns the lane in which a measurement's records wait, and whether it was noted only now. It is the lane they wait in already, or a free one,
    /// or one that is shared.
    pub(super) fn lane_apart(&self, measurement: &str) -> (u32, bool) {
        if let Some(lane) = self.apart.get(measurement) {
            return (*lane, false);
        }
        let count = APART_LANES.end - APART_LANES.start;
        let shared = APART_LANES.start + crc32fast::hash(measurement.as_bytes()) % count;
        let is_free = |lane: &u32| self.apart.values().all(|taken| taken != lane);
        (APART_LANES.into_iter().find(is_free).unwrap_or(shared), true)
    }
}

impl LaneState {
    /// Begins an opening.
    fn open(&mut self, token: String, newest: i64) {
        let number = 1 + self.openings.last().map_or(0, |last| last.number);
        self.openings.push(Opening { number, token, newest });
        let surplus = self.openings.len().saturating_sub(OPENINGS_MAX);
        self.openings.drain(..surplus);
        self.is_checked = false;
    }

    fn shown(&self) -> LaneOpening {
        LaneOpening { recorder: self.recorder.clone(), openings: self.openings.clone(), is_checked: self.is_checked }
    }
}
