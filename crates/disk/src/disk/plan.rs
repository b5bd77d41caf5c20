//! What is to happen to a disk: when its power goes, what is there afterwards, and what fails before.
//!
//! Invariant: everything follows from the plan, its seed and the order of the operations.

use std::time::Duration;

/// When the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// When [`Disk::cut_now`](super::Disk::cut_now) says so.
    #[default]
    Told,
    /// As the n-th sync arrives, before it has done anything; counted from 1.
    BeforeSync(u64),
    /// After the n-th sync is done, before anybody is told.
    AfterSync(u64),
    /// Before the n-th write.
    BeforeWrite(u64),
}

/// What a cut keeps of what was not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keeps {
    /// Nothing: only what was synced is there.
    #[default]
    Nothing,
    /// Sectors of 512 bytes by chance, each with a probability of a half, and a beginning of the changes to names: pages are torn.
    Sectors,
    /// Blocks of 4,096 bytes by chance, each wholly.
    Blocks,
    /// The blocks whose last write was among the first so many, drawn by chance: the disk wrote in order.
    Prefix,
}

/// What makes a name safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// A sync of its directory, as POSIX says.
    Strict,
    /// Any sync of a file or directory, since the journal is written as a whole: ext4 and XFS.
    #[default]
    Journal,
}

/// What fails while there is power.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// The n-th sync fails with EIO, counted from 1; what it should have written is lost at a cut although later syncs succeed.
    pub failing_sync: Option<u64>,
    /// The n-th write fails with EIO.
    pub failing_write: Option<u64>,
    /// The n-th read fails with EIO.
    pub failing_read: Option<u64>,
    /// All after the first that fails, fail too.
    pub is_for_ever: bool,
    /// Bytes of all files together; a write that goes beyond fails with ENOSPC.
    pub room: Option<u64>,
    /// Of so many reads one gives back a flipped bit.
    pub flips_one_in: Option<u64>,
    /// What a sync takes longer than the disk below.
    pub sync_takes: Duration,
}

/// What is to happen to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Plan {
    /// When the power goes.
    pub when: When,
    /// What is there afterwards.
    pub keeps: Keeps,
    /// What makes a name safe.
    pub names: Names,
    /// What fails before.
    pub faults: Faults,
    /// What decides by chance.
    pub seed: u64,
}
