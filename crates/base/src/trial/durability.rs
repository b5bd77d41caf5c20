//! What a database is made to suffer to find out what survives. Main types: [`FaultKind`] and [`DurabilityPlan`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The power of the disk: what was not synced is gone, or a part of it.
    #[default]
    Power,
    /// The processes are killed; the machine goes on.
    Kill,
    /// Reads, writes or syncs fail, once or from then on; then the power goes.
    Eio,
    /// The disk is full for a while; then the power goes.
    Enospc,
    /// Reads from the disk give flipped bits, after the database was stopped in order.
    Bits,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [FaultKind; 5] =
        [FaultKind::Power, FaultKind::Kill, FaultKind::Eio, FaultKind::Enospc, FaultKind::Bits];

    /// Their names on the command line, in studies and in results.
    pub const NAMES: [&'static str; 5] = ["power", "kill", "eio", "enospc", "bits"];

    /// Its name.
    pub fn name(self) -> &'static str {
        FaultKind::NAMES[self as usize]
    }

    /// What a name says; none where nothing does.
    pub fn of_name(name: &str) -> Option<Self> {
        FaultKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it ends with a cut of the power.
    pub fn takes_power(self) -> bool {
        matches!(self, FaultKind::Power | FaultKind::Eio | FaultKind::Enospc)
    }
}

/// `[durability]` of a study: how often each case is made to fail, and by what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurabilityPlan {
    /// Failures of each kind for each case.
    pub cuts: u32,
    /// The kinds. Where there are none: the power, and the processes alone where cuts of it lose something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultKind>,
}

impl DurabilityPlan {
    /// Failures of each kind for each case where nobody says.
    pub const CUTS: u32 = 100;
    /// At most.
    pub const CUTS_MOST: u32 = 1_000_000;
}

impl Default for DurabilityPlan {
    fn default() -> Self {
        DurabilityPlan { cuts: DurabilityPlan::CUTS, faults: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_a_name_of_its_own() {
        for kind in FaultKind::ALL {
            assert_eq!(FaultKind::of_name(kind.name()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.name());
        }
        assert_eq!(FaultKind::of_name("fire"), None);
    }
}
