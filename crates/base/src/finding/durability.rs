//! Results of a durability test, as `durability --json` prints them and as a run stores them.
//!
//! Main type: [`DurabilityTest`]. Invariant: the probability of what was never seen is bounded, and not called zero.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::trial::{FaultKind, Levels};

/// Results for a database, or for the databases of a study.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DurabilityTest {
    /// Name of the database or study.
    pub target: String,
    /// The versions of the servers, each once, separated by commas.
    pub server: String,
    /// Seed of the operations, the moments of the failures and the unsynced data that the disk kept.
    #[serde(default)]
    pub seed: u64,
    /// Whether the test was shrunk to a rehearsal; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rehearsal: bool,
    /// Whether everything on the disk was synced before records were written; left out otherwise.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sync_first: bool,
    /// One entry for each case and each kind of failure.
    pub cases: Vec<DurabilityCase>,
    /// Cases that could not be tested; left out if there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_tested: Vec<NotTested>,
}

/// A case that could not be tested.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NotTested {
    /// The factors' levels.
    pub levels: Levels,
    /// Why, as in the error that ended its test.
    pub why: String,
}

/// The results of one kind of failure for one case.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct DurabilityCase {
    /// The factors' levels.
    pub levels: Levels,
    /// Version of the server.
    pub server: String,
    /// The kind of failure.
    pub fault: FaultKind,
    /// Number of failures.
    pub cuts: u64,
    /// Failures after which something acknowledged was not as promised.
    pub cuts_with_loss: u64,
    /// Failures at which the disk had unsynced data.
    pub cuts_unsynced: u64,
    /// Writes of records that were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged writes that are gone.
    pub lost: u64,
    /// Records with content that was never written.
    pub changed: u64,
    /// Records that the database fails to read.
    pub unreadable: u64,
    /// Transactions of which only a part is stored.
    pub half_transactions: u64,
    /// Operations that are gone although a later one of the same connection is stored.
    pub reordered: u64,
    /// Records that are stored and should not be.
    pub duplicated: u64,
    /// Records of a recorder that are stored behind a later one of their source; left out if there is none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub out_of_order: u64,
    /// Failures after which the database did not start.
    pub did_not_start: u64,
    /// Failures that could not be judged; they are in no other count.
    pub not_judged: u64,
    /// Upper bound on the share of failures that do harm, at 95 % confidence.
    pub loss_share_upper95: f64,
    /// Longest time from the acknowledgement of a lost write to the failure, in seconds.
    pub longest_lost_s: f64,
    /// Time from the start of the server to its first answer.
    pub recovery_s: RecoveryTimes,
    /// The level that is proved: `power-cut`, `crash`, `none`, or `unknown`.
    pub level: String,
    /// The level that the settings promise.
    pub promised: Option<String>,
    /// Whether the proved level is lower than the promised one.
    #[serde(default)]
    pub breaks_promise: bool,
    /// The first failures that did harm.
    pub found: Vec<HarmfulFailure>,
}

/// Times until the database answers again, in seconds; null where it never did.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RecoveryTimes {
    /// Median.
    pub p50: Option<f64>,
    /// Longest time.
    pub max: Option<f64>,
}

/// A single failure that did harm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HarmfulFailure {
    /// Its number among the failures, from 1: with the same seed, the same failure is drawn for this number again.
    pub number: u64,
    /// Description of the failure.
    pub what: String,
    /// Acknowledged writes of records that are gone.
    pub lost: u64,
    /// Records with content that was never written.
    pub changed: u64,
    /// The database's error on being started or read; null where it reported none.
    pub says: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The setting under which the results of a recorder state which one was tested.
pub const RECORDER_NAME: &str = "recorder.name";

impl DurabilityCase {
    /// Returns the word for what was tested: `database` or `recorder`.
    pub fn subject(&self) -> &'static str {
        if self.levels.contains_key(RECORDER_NAME) { "recorder" } else { "database" }
    }

    /// Returns the number of failures after which acknowledged data were lost or the database did not start.
    pub fn harmed(&self) -> u64 {
        self.cuts_with_loss + self.did_not_start
    }

    /// Returns the number of failures that are evidence: a disk that has synced everything loses nothing by a cut, whatever the database promises.
    pub fn telling(&self) -> u64 {
        if self.fault == FaultKind::Power { self.cuts_unsynced.max(self.harmed()) } else { self.cuts }
    }

    /// Returns whether failures that could do harm did none.
    pub fn is_harmless(&self) -> bool {
        self.telling() > 0 && self.harmed() == 0
    }

    /// Returns the number of records, transactions and operations that are wrong in any way other than being lost.
    pub fn wrong(&self) -> u64 {
        self.changed + self.unreadable + self.half_transactions + self.reordered + self.duplicated + self.out_of_order
    }
}

impl DurabilityTest {
    /// Returns the cases, each with its kinds of failure.
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

    /// Returns whether every case was tested, every failure was judged, and nothing was lost that the settings promise to keep.
    pub fn is_as_promised(&self) -> bool {
        self.not_tested.is_empty() && self.cases.iter().all(|case| !case.breaks_promise && case.not_judged == 0)
    }
}
