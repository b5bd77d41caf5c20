//! The CPUs that the load runs on. Main type: [`Pinned`].
//!
//! Invariant: when it is dropped, the calling thread may run on the same CPUs as before.

use anyhow::Context;

use crate::load::{BUSY_LOOP_CLIENTS, Connections, cpu_count, loop_count};
use crate::server::{CpuList, allowed_to_this_thread, pin_this_thread};
use crate::trial::{Arrivals, Settings};

/// Keeps the calling thread, and the load threads that it starts in the meantime, on certain CPUs.
pub(super) struct Pinned {
    before: Option<CpuList>,
}

impl Pinned {
    /// Pins the thread to the study's CPUs. Without such a setting, a single busy loop is kept on the last CPU; a study that names
    /// several CPUs, or all of them, is obeyed.
    pub fn for_load(settings: &Settings, connections: &Connections) -> anyhow::Result<Self> {
        let before = allowed_to_this_thread();
        let cpus = match &settings.load.cpus {
            Some(cpus) => Some(CpuList::parse(cpus)?),
            None if is_one_busy_loop(settings, connections) => before.as_ref().and_then(CpuList::last_of_several),
            None => None,
        };
        Self::to(cpus, before)
    }

    /// Pins the thread to the study's CPUs, if it names any.
    pub fn as_asked(settings: &Settings) -> anyhow::Result<Self> {
        let cpus = settings.load.cpus.as_deref().map(CpuList::parse).transpose()?;
        Self::to(cpus, allowed_to_this_thread())
    }

    fn to(cpus: Option<CpuList>, before: Option<CpuList>) -> anyhow::Result<Self> {
        match cpus {
            Some(cpus) => pin_this_thread(&cpus).context("load.cpus")?,
            None => return Ok(Pinned { before: None }),
        }
        Ok(Pinned { before })
    }
}

/// Returns whether one event loop drives so many clients in a closed loop that it is cheaper to keep it on one CPU than to let it move
/// between CPUs, which wakes servers on the other CPU (docs/decisions/0002). A loop in an open loop stays free to take an idle
/// CPU in time, and a pinned server is left alone.
fn is_one_busy_loop(settings: &Settings, connections: &Connections) -> bool {
    let Connections::Wires(wires) = connections else { return false };
    let loops = settings.load.loops.map_or_else(|| loop_count(wires.len(), cpu_count()), |loops| loops as usize);
    let is_closed = settings.load.arrivals == Arrivals::Closed;
    // Clients that check answers have a thread each.
    let is_one = loops == 1 && settings.workload.questions.is_empty();
    is_one && is_closed && wires.len() >= BUSY_LOOP_CLIENTS && settings.database.cpus.is_none()
}

/// Returns whether several busy loops may be kept on one CPU each: the study sets the CPUs of neither client nor server.
pub fn may_pin_loops(settings: &Settings) -> bool {
    settings.load.cpus.is_none() && settings.database.cpus.is_none()
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The CPUs that were allowed before still exist.
        let _ = self.before.as_ref().map(pin_this_thread);
    }
}
