//! What a durability test found, as `durability --json` prints it and as a run keeps it.
//!
//! Main type: [`DurabilityTest`]. Invariant: what was never seen is bounded, not called impossible.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trial::{FaultKind, Levels};

/// What was found about a database, or about those of a study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DurabilityTest {
    /// Name of the database or study.
    pub target: String,
    /// The versions of the servers, each once, with commas between them.
    pub server: String,
    /// What decided the operations, the moments of the failures and what the disk kept.
    #[serde(default)]
    pub seed: u64,
    /// Whether it was shrunk to a rehearsal; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rehearsal: bool,
    /// One entry for each case and each kind of failure.
    pub cases: Vec<DurabilityCase>,
}

/// What one kind of failure did to one case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DurabilityCase {
    /// The factors' levels.
    pub levels: Levels,
    /// Version of its server.
    pub server: String,
    /// What failed.
    pub fault: FaultKind,
    /// How often.
    pub cuts: u64,
    /// Failures behind which something acknowledged was not as promised.
    pub cuts_with_loss: u64,
    /// Failures at which the disk had something that was not synced.
    pub cuts_unsynced: u64,
    /// Writes of records that were acknowledged.
    pub acknowledged: u64,
    /// Of these, those that are gone.
    pub lost: u64,
    /// Records with content that nobody has written.
    pub changed: u64,
    /// Records that the database refuses to read.
    pub unreadable: u64,
    /// Transactions of which a part is there.
    pub half_transactions: u64,
    /// Operations that are gone although a later one of the same connection is there.
    pub reordered: u64,
    /// Records that are there and should not be.
    pub duplicated: u64,
    /// Failures behind which the database did not start.
    pub did_not_start: u64,
    /// Failures that could not be judged; they are in no other count.
    pub not_judged: u64,
    /// The largest share of failures that do harm which goes together with what was seen, at 95 %.
    pub loss_share_upper95: f64,
    /// From the acknowledgement of the oldest write that is gone to the failure, in seconds; the longest of all.
    pub longest_lost_s: f64,
    /// From the start of the server to its first answer.
    pub recovery_s: RecoveryTimes,
    /// What is proved: `power-cut`, `crash`, `none`, or `unknown`.
    pub level: String,
    /// What its settings promise.
    pub promised: Option<String>,
    /// Whether less was found than its settings promise.
    #[serde(default)]
    pub breaks_promise: bool,
    /// The first failures that did harm.
    pub found: Vec<HarmfulFailure>,
}

/// Times to answer again, in seconds; none where the database never did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryTimes {
    /// Their median.
    pub p50: Option<f64>,
    /// The longest.
    pub max: Option<f64>,
}

/// A failure that did harm, told by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarmfulFailure {
    /// Its number among the failures, from 1: with the same seed the same is drawn for it again.
    pub number: u64,
    /// What happened.
    pub what: String,
    /// Acknowledged writes of records that are gone.
    pub lost: u64,
    /// Records with what nobody has written.
    pub changed: u64,
    /// What the database said against being started or read; none where it said nothing.
    pub says: Option<String>,
}

impl DurabilityCase {
    /// Failures behind which not all that was acknowledged could be had.
    pub fn harmed(&self) -> u64 {
        self.cuts_with_loss + self.did_not_start
    }

    /// Failures that tell something: a disk that has synced everything loses nothing by a cut, whatever the database promises.
    pub fn telling(&self) -> u64 {
        if self.fault == FaultKind::Power { self.cuts_unsynced.max(self.harmed()) } else { self.cuts }
    }

    /// Whether failures that could do harm did none.
    pub fn is_harmless(&self) -> bool {
        self.telling() > 0 && self.harmed() == 0
    }

    /// Records that are wrong in any way, and transactions and operations that are not as they were sent.
    pub fn wrong(&self) -> u64 {
        self.changed + self.unreadable + self.half_transactions + self.reordered + self.duplicated
    }
}

impl DurabilityTest {
    /// Its cases, each with its kinds of failure.
    pub fn by_case(&self) -> Vec<(&Levels, Vec<&DurabilityCase>)> {
        let mut cases: Vec<(&Levels, Vec<&DurabilityCase>)> = Vec::new();
        for case in &self.cases {
            match cases.iter_mut().find(|(levels, _)| **levels == case.levels) {
                Some((_, kinds)) => kinds.push(case),
                None => cases.push((&case.levels, vec![case])),
            }
        }
        cases
    }

    /// Whether every failure was judged, and nothing was lost that the settings promise.
    pub fn is_as_promised(&self) -> bool {
        self.cases.iter().all(|case| !case.breaks_promise && case.not_judged == 0)
    }
}
