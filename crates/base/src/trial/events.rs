//! `[[events]]`: what happens to the server while it is measured. Main type: [`EventSettings`].

use serde::{Deserialize, Serialize};

/// One of `[[events]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventSettings {
    /// When it happens, in seconds after the measured phase begins.
    pub at_s: f64,
    /// What happens.
    pub what: EventKind,
    /// How long the server stays away, in seconds: until it goes on, or is started again.
    pub lasts_s: f64,
    /// What a cut of the power keeps of what was not synced.
    #[serde(default, skip_serializing_if = "CutKeeps::is_default")]
    pub keeps: CutKeeps,
}

/// What a cut of the power keeps of what was written and not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutKeeps {
    /// Nothing.
    #[default]
    Nothing,
    /// Sectors of 512 bytes by chance.
    Sectors,
    /// Blocks of 4,096 bytes by chance.
    Blocks,
    /// What was written first, up to a moment by chance.
    InOrder,
}

impl CutKeeps {
    /// Their names in studies.
    pub const NAMES: [&'static str; 4] = ["nothing", "sectors", "blocks", "in-order"];

    /// What a name says; none where nothing does.
    pub fn of_name(name: &str) -> Option<Self> {
        let all = [CutKeeps::Nothing, CutKeeps::Sectors, CutKeeps::Blocks, CutKeeps::InOrder];
        CutKeeps::NAMES.iter().position(|known| *known == name).map(|place| all[place])
    }

    fn is_default(&self) -> bool {
        *self == CutKeeps::default()
    }
}

/// What happens to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// All of its processes are killed, and it is started again on what is there.
    Kill,
    /// It is stopped in order, and started again.
    Stop,
    /// All of its processes stand still, and go on.
    Pause,
    /// The power of its disk goes, its processes are killed, and it is started again on what the disk has kept.
    CutPower,
}

impl EventKind {
    /// Its name in studies.
    pub fn name(self) -> &'static str {
        match self {
            EventKind::Kill => "kill",
            EventKind::Stop => "stop",
            EventKind::Pause => "pause",
            EventKind::CutPower => "cut-power",
        }
    }
}
