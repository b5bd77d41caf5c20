//! Hosts for the nodes of a cluster, on a switch from which each can be cut off.
//!
//! Main function: [`open_hosts`]. Invariant: a link ends at the switch of its own cluster alone, so that nothing beyond these hosts reaches a node.

use super::plan::HostPlan;
use super::{LinkError, Plug, device, needs};
use crate::database::{Namespace, NodeHost};

/// What needs these hosts, in messages.
const NEEDED_BY: &str = "the cut-node of [[events]]";

/// Checks that hosts for nodes can be made here: that the user has the rights and that the programs are installed.
///
/// # Errors
/// The first requirement that is missing, with the event that needs it and the remedy.
pub fn check_hosts() -> Result<(), LinkError> {
    needs::check_namespaces(NEEDED_BY, "leave this event out")?;
    needs::check_program("ip", NEEDED_BY)
}

/// Makes the hosts of nodes 1 to `count`, each with a link of its own, as fast as the machine, to one switch.
///
/// # Errors
/// See [`LinkError`]. Nothing is left behind.
pub fn open_hosts(count: u32) -> Result<Vec<NodeHost>, LinkError> {
    check_hosts()?;
    let switch = device::open_switch()?;
    let host = |number: u32| {
        let plan = HostPlan::of_node(number);
        let namespace = Namespace::create().map_err(LinkError::system("make a network namespace"))?;
        // Without a delay, no thread carries its frames.
        device::connect(&namespace, &switch, &plan)?;
        Ok(NodeHost { namespace, address: plan.wire_address, switch: switch.clone(), port: plan.port })
    };
    (1..=count).map(host).collect()
}

impl Plug {
    /// Returns the plug of a node's link, by which it can be cut off from the other nodes for a while.
    pub fn of_node(host: &NodeHost) -> Plug {
        Plug { switch: host.switch.clone(), port: host.port.clone() }
    }
}
