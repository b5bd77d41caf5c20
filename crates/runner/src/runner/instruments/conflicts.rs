//! Conflicts between nodes, by the nodes' own counters. Function: [`begin`].

use super::instrument::{Beginning, Ending, Instrument};
use crate::measurement::{ConflictsMeasurement, Measurement};

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
        // A node that was started again counts from zero.
        let each = self.before.iter().zip(&after).map(|(before, after)| after.as_ref()?.checked_sub((*before)?));
        let was_started_again =
            measurement.events.as_ref().is_some_and(|seen| seen.events.iter().any(|event| event.what != "pause"));
        let between_nodes = if was_started_again { None } else { each.sum::<Option<u64>>() };
        measurement.conflicts.get_or_insert_with(ConflictsMeasurement::default).between_nodes = between_nodes;
        Ok(())
    }
}
