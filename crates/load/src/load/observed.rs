//! The observations of a trial: what its loops have seen together, and what several processes have.
//!
//! Main type: [`Observed`]. Invariant: observations that were made apart join to those of one process that had made all of them.

use serde::{Deserialize, Serialize};

use super::acknowledged::Acknowledged;
use super::client::Finished;
use super::phases::Phases;
use super::recording::Recorder;
use super::{LoopResult, Tally};
use crate::measurement::{ClientMeasurement, LoopMeasurement};

/// The observations of a trial.
#[derive(Debug, Serialize, Deserialize)]
pub struct Observed {
    /// Counts and times of all clients.
    pub tally: Tally,
    /// The measurement of each client, in their order.
    pub clients: Vec<ClientMeasurement>,
    /// The measurement of each loop.
    pub loops: Vec<LoopMeasurement>,
    /// The records of the whole trial that were acknowledged to each client; empty if they were not kept. They do not leave the process.
    #[serde(skip)]
    pub acknowledged: Vec<Acknowledged>,
    /// Start of the measured phase, in nanoseconds by the engine's clock.
    pub measure_ns: u64,
    /// Length of the measured phase, in seconds.
    pub measured_s: f64,
    /// Whether the trial ended before its time: it was interrupted, or nothing was answered any more.
    pub is_cut_short: bool,
}

impl Observed {
    /// Checks what comes from another process, which drove this many clients, before it is joined.
    ///
    /// # Errors
    /// A sentence that says what no process of this program observes.
    pub fn check(&self, clients: usize) -> Result<(), String> {
        if self.clients.len() != clients {
            return Err(format!("it reports on {} clients and drove {clients}", self.clients.len()));
        }
        if !(0.0..f64::INFINITY).contains(&self.measured_s) {
            return Err(format!("its measured phase lasted {} s", self.measured_s));
        }
        self.tally.check()
    }

    /// Joins what the processes of a trial have observed, in the order of their shares; `None` if there are none. Their clocks read 0 at the same
    /// time.
    pub fn joined(parts: Vec<Observed>) -> Option<Observed> {
        let mut parts = parts.into_iter();
        let mut all = parts.next()?;
        for part in parts {
            all.tally.merge(&part.tally);
            all.clients.extend(part.clients);
            all.loops.extend(part.loops);
            all.acknowledged.extend(part.acknowledged);
            all.measured_s = all.measured_s.max(part.measured_s);
            all.is_cut_short |= part.is_cut_short;
        }
        Some(all)
    }
}

/// Merges the results of the loops into the observations of each group.
pub(super) fn merge_groups(
    phases: &[Phases],
    results: Vec<(usize, LoopResult)>,
    end_ns: u64,
    mut recorder: Option<Recorder>,
) -> Vec<Observed> {
    let mut by_group: Vec<Vec<LoopResult>> = phases.iter().map(|_| Vec::new()).collect();
    results.into_iter().for_each(|(place, result)| by_group[place].push(result));
    let groups = by_group.into_iter().zip(phases);
    groups.map(|(results, phases)| merge(phases, results, end_ns, recorder.take())).collect()
}

fn merge(phases: &Phases, results: Vec<LoopResult>, end_ns: u64, recorder: Option<Recorder>) -> Observed {
    let mut tally = Tally::new(phases.measure_ns, phases.end_ns).recorded_by(recorder);
    let mut clients: Vec<Finished> = Vec::new();
    let mut loops = Vec::new();
    for result in results {
        tally.merge(&result.tally);
        clients.extend(result.clients);
        loops.push(result.measurement);
    }
    if let (Some(schedule), Some(kind)) = (&phases.schedule, tally.commonest_kind()) {
        schedule.rest(phases.ends_ns().min(end_ns), |intended_ns| tally.count_unsent(kind, intended_ns, end_ns));
    }
    tally.recorder = None;
    clients.sort_by_key(|client| client.number);
    let measured_s = phases.measured_s(tally.last_done_ns);
    let acknowledged = clients.iter_mut().filter_map(|client| client.acknowledged.take()).collect();
    let clients = clients.into_iter().map(|client| client.measurement).collect();
    let measure_ns = phases.measure_ns;
    Observed { tally, clients, loops, acknowledged, measure_ns, measured_s, is_cut_short: phases.is_stopped() }
}
