//! `[[events]]`: events of the server while it is measured. Main type: [`EventSettings`].

use serde::{Deserialize, Serialize};

/// One of `[[events]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSettings {
    /// Time of the event, in seconds after the measured phase begins.
    pub at_s: f64,
    /// Kind of event.
    pub what: EventKind,
    /// Number of the node that it happens to, from 1.
    #[serde(default = "first_node", skip_serializing_if = "is_first_node")]
    pub node: u32,
    /// Time for which the server stays away, in seconds, until it continues or is started again.
    pub lasts_s: f64,
    /// The unsynced data that survive a power cut.
    #[serde(default, skip_serializing_if = "CutKeeps::is_default")]
    pub keeps: CutKeeps,
    /// Time by which each sync of a slow disk takes longer, in seconds; 0 for other events.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub sync_takes_s: f64,
}

impl EventSettings {
    /// Creates an event of the first node that lasts no time and has no settings of its own.
    pub fn new(at_s: f64, what: EventKind) -> Self {
        EventSettings { at_s, what, node: 1, lasts_s: 0.0, keeps: CutKeeps::default(), sync_takes_s: 0.0 }
    }
}

fn first_node() -> u32 {
    1
}

fn is_first_node(node: &u32) -> bool {
    *node == 1
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

/// The written but unsynced data that survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutKeeps {
    /// Nothing.
    #[default]
    Nothing,
    /// A random selection of sectors of 512 bytes.
    Sectors,
    /// A random selection of blocks of 4,096 bytes.
    Blocks,
    /// Everything written before a random moment.
    InOrder,
}

impl CutKeeps {
    /// Names of all variants in studies.
    pub const NAMES: [&'static str; 4] = ["nothing", "sectors", "blocks", "in-order"];

    /// Returns the variant with a name; `None` where no variant has it.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [CutKeeps::Nothing, CutKeeps::Sectors, CutKeeps::Blocks, CutKeeps::InOrder];
        CutKeeps::NAMES.iter().position(|known| *known == name).map(|place| all[place])
    }

    fn is_default(&self) -> bool {
        *self == CutKeeps::default()
    }
}

/// A kind of event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// All processes of the server are killed, and it is started again on the data that are left.
    Kill,
    /// The server is stopped in order, and started again.
    Stop,
    /// All processes of the server are suspended, and later continue.
    Pause,
    /// The power of the server's disk is cut, its processes are killed, and it is started again on the data that the disk has kept.
    CutPower,
    /// Each sync of the server's disk takes longer for a while.
    SlowDisk,
    /// The server's disk has no more room for a while.
    FullDisk,
    /// The link between the load and the server carries nothing for a while.
    CutLink,
    /// A node of a cluster is cut off from the other nodes for a while.
    CutNode,
    /// The primary of a cluster is killed, and a replica takes its place.
    Promote,
}

impl EventKind {
    /// Names of all kinds in studies.
    pub const NAMES: [&'static str; 9] =
        ["kill", "stop", "pause", "cut-power", "slow-disk", "full-disk", "cut-link", "cut-node", "promote"];

    const ALL: [EventKind; 9] = [
        EventKind::Kill,
        EventKind::Stop,
        EventKind::Pause,
        EventKind::CutPower,
        EventKind::SlowDisk,
        EventKind::FullDisk,
        EventKind::CutLink,
        EventKind::CutNode,
        EventKind::Promote,
    ];

    /// Returns the name in studies.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Kill => "kill",
            EventKind::Stop => "stop",
            EventKind::Pause => "pause",
            EventKind::CutPower => "cut-power",
            EventKind::SlowDisk => "slow-disk",
            EventKind::FullDisk => "full-disk",
            EventKind::CutLink => "cut-link",
            EventKind::CutNode => "cut-node",
            EventKind::Promote => "promote",
        }
    }

    /// Returns the kind with a name; `None` where no kind has it.
    pub fn of_name(name: &str) -> Option<Self> {
        EventKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether loadline does not end the server, so that the event is over after its own time.
    pub fn leaves_the_server(self) -> bool {
        use EventKind::{CutLink, CutNode, FullDisk, Pause, SlowDisk};
        matches!(self, Pause | SlowDisk | FullDisk | CutLink | CutNode)
    }

    /// Returns whether each node of the server must be on a host of its own.
    pub fn needs_own_hosts(self) -> bool {
        self == EventKind::CutNode
    }

    /// Returns whether the server's data must be on a disk of loadline's own.
    pub fn needs_own_disk(self) -> bool {
        matches!(self, EventKind::CutPower | EventKind::SlowDisk | EventKind::FullDisk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        assert_eq!(EventKind::ALL.map(EventKind::name), EventKind::NAMES);
        assert_eq!(EventKind::NAMES.map(EventKind::of_name), EventKind::ALL.map(Some));
        assert_eq!(EventKind::of_name("melt"), None);
    }
}
