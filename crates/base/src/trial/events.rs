//! `[[events]]`: events of the server while it is measured. Main type: [`EventSettings`].

use serde::{Deserialize, Serialize};

/// One of `[[events]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSettings {
    /// Time of the event, in seconds after the measured phase begins.
    pub at_s: f64,
    /// Kind of event.
    pub what: EventKind,
    /// Time for which the server stays away, in seconds, until it continues or is started again.
    pub lasts_s: f64,
    /// The unsynced data that survive a power cut.
    #[serde(default, skip_serializing_if = "CutKeeps::is_default")]
    pub keeps: CutKeeps,
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
}

impl EventKind {
    /// Returns the name in studies.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Kill => "kill",
            EventKind::Stop => "stop",
            EventKind::Pause => "pause",
            EventKind::CutPower => "cut-power",
        }
    }
}
