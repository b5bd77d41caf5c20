//! Conflicts between nodes, by the nodes' own counters. Function: [`begin`].

use super::instrument::{Beginning, Ending, Instrument};
use crate::measurement::{ConflictsMeasurement, Measurement};
use crate::trial::{EventKind, EventSettings};

/// The counters of the nodes before the load.
struct Conflicts {
    before: Vec<Option<u64>>,
}

/// Reads the counters; `None` where there are no nodes that have them.
pub(super) fn begin(beginning: &Beginning<'_>) -> anyhow::Result<Option<Box<dyn Instrument>>> {
    let nodes = beginning.current.nodes.as_ref().filter(|nodes| nodes.clustered().conflicts().is_some());
    Ok(nodes.map(|nodes| -> Box<dyn Instrument> { Box::new(Conflicts { before: nodes.conflicts() }) }))
}

impl Instrument for Conflicts {
    fn tell(self: Box<Self>, ending: &Ending<'_>, measurement: &mut Measurement) -> anyhow::Result<()> {
        let is_down = ending.current.server.as_ref().is_some_and(|server| !server.is_running());
        let Some(nodes) = ending.current.nodes.as_ref().filter(|_| !is_down) else { return Ok(()) };
        let after = nodes.conflicts();
        let each = self.before.iter().zip(&after).map(|(before, after)| after.as_ref()?.checked_sub((*before)?));
        // A node that is started again counts from zero.
        let starts_again = |event: &EventSettings| !matches!(event.what, EventKind::Pause | EventKind::CutNode);
        let is_whole = !ending.settings.events.iter().any(starts_again);
        let between_nodes = if is_whole { each.sum::<Option<u64>>() } else { None };
        measurement.conflicts.get_or_insert_with(ConflictsMeasurement::default).between_nodes = between_nodes;
        Ok(())
    }
}
