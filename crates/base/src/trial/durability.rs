//! Failures that a database is exposed to, to find out which writes survive. Main types: [`FaultKind`] and [`DurabilityPlan`].

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The power of the disk is cut: unsynced data are gone, or a part of them.
    #[default]
    Power,
    /// The processes are killed; the machine continues.
    Kill,
    /// Reads, writes or syncs fail, once or from then on; then the power is cut.
    Eio,
    /// The disk is full for a while; then the power is cut.
    Enospc,
    /// Reads from the disk give flipped bits, after the database was stopped in order.
    Bits,
    /// The store behind a recorder is away for a while; the recorder continues.
    Store,
}

impl FaultKind {
    /// All kinds.
    pub const ALL: [FaultKind; 6] =
        [FaultKind::Power, FaultKind::Kill, FaultKind::Eio, FaultKind::Enospc, FaultKind::Bits, FaultKind::Store];

    /// The kinds that a database can be exposed to; a recorder can be exposed to all.
    pub const OF_DATABASES: [FaultKind; 5] =
        [FaultKind::Power, FaultKind::Kill, FaultKind::Eio, FaultKind::Enospc, FaultKind::Bits];

    /// Names on the command line, in studies and in results.
    pub const NAMES: [&'static str; 6] = ["power", "kill", "eio", "enospc", "bits", "store"];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        FaultKind::NAMES[self as usize]
    }

    /// Returns the kind with a name; `None` where no kind has it.
    pub fn of_name(name: &str) -> Option<Self> {
        FaultKind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns whether the failure ends with a power cut.
    pub fn takes_power(self) -> bool {
        matches!(self, FaultKind::Power | FaultKind::Eio | FaultKind::Enospc)
    }
}

/// `[durability]` of a study: the number and the kinds of failures for each case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DurabilityPlan {
    /// Number of failures of each kind for each case.
    pub cuts: u32,
    /// The kinds of failure. Where empty: power cuts, and kills of the processes where power cuts lose something.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<FaultKind>,
    /// Whether everything on the disk is synced before records are written, as an operating system does within half a minute.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sync_first: bool,
    /// How the recorder under test was started, without secrets; `None` for a test of databases. A study cannot ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recorder: Option<String>,
}

impl DurabilityPlan {
    /// Default of [`DurabilityPlan::cuts`].
    pub const CUTS: u32 = 100;
    /// Largest value of [`DurabilityPlan::cuts`].
    pub const CUTS_MOST: u32 = 1_000_000;
}

impl Default for DurabilityPlan {
    fn default() -> Self {
        DurabilityPlan { cuts: DurabilityPlan::CUTS, faults: Vec::new(), sync_first: false, recorder: None }
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
