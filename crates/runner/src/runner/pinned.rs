//! On which CPUs the load runs. Main type: [`Pinned`].
//!
//! Invariant: when it is dropped, the calling thread may run where it could before.

use anyhow::Context;

use crate::load::{BUSY_LOOP_CLIENTS, Connections, cpu_count, loop_count};
use crate::server::{CpuList, allowed_to_this_thread, pin_this_thread};
use crate::trial::{Arrivals, Settings};

/// Keeps the calling thread, and the load threads that it starts meanwhile, on some CPUs.
pub(super) struct Pinned {
    before: Option<CpuList>,
}

impl Pinned {
    /// Pins where the study says so. Where it does not, a busy loop is kept on the last CPU, so that a study that names
    /// several CPUs, all of them too, has its word.
    pub fn for_load(settings: &Settings, connections: &Connections) -> anyhow::Result<Self> {
        let before = allowed_to_this_thread();
        let cpus = match &settings.load.cpus {
            Some(cpus) => Some(CpuList::parse(cpus)?),
            None if is_one_busy_loop(settings, connections) => before.as_ref().and_then(CpuList::last_of_several),
            None => None,
        };
        match cpus {
            Some(cpus) => pin_this_thread(&cpus).context("load.cpus")?,
            None => return Ok(Pinned { before: None }),
        }
        Ok(Pinned { before })
    }
}

/// Whether one event loop drives so many clients in a closed loop that it costs less on a CPU of its own choice than moving
/// between them, which wakes servers on the other CPU (docs/decisions/0002). A loop in an open loop stays free to take an idle
/// CPU in time, and a server that is pinned is left alone.
fn is_one_busy_loop(settings: &Settings, connections: &Connections) -> bool {
    let Connections::Wires(wires) = connections else { return false };
    let loops = settings.load.loops.map_or_else(|| loop_count(wires.len(), cpu_count()), |loops| loops as usize);
    let is_closed = settings.load.arrivals == Arrivals::Closed;
    loops == 1 && is_closed && wires.len() >= BUSY_LOOP_CLIENTS && settings.database.cpus.is_none()
}

/// Whether several busy loops may be kept on a CPU each: nobody has said where client or server run.
pub fn may_pin_loops(settings: &Settings) -> bool {
    settings.load.cpus.is_none() && settings.database.cpus.is_none()
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The CPUs allowed before are still there.
        let _ = self.before.as_ref().map(pin_this_thread);
    }
}
