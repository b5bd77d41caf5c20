//! The plan of what happens to a disk: when its power goes, what is left afterwards, and which operations fail before.
//!
//! Invariant: everything follows from the plan, its seed and the order of the operations.

use std::time::Duration;

/// The moment at which the power goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum When {
    /// When [`Disk::cut_now`](super::Disk::cut_now) is called.
    #[default]
    Told,
    /// When the n-th sync arrives, before it has any effect; counted from 1.
    BeforeSync(u64),
    /// After the n-th sync is done, before it is answered.
    AfterSync(u64),
    /// Before the n-th write.
    BeforeWrite(u64),
}

/// The unsynced changes that a cut keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keeps {
    /// None: only synced changes are left.
    #[default]
    Nothing,
    /// Sectors of 512 bytes drawn by chance, each with a probability of one half, and a beginning of the changes to names: pages are torn.
    Sectors,
    /// Blocks of 4,096 bytes drawn by chance, each kept or lost as a whole.
    Blocks,
    /// The blocks whose last write was among the first n, with n drawn by chance: the disk wrote in order.
    Prefix,
}

/// The sync that makes a name safe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Names {
    /// A sync of its directory, as POSIX requires.
    Strict,
    /// Any sync that writes the journal, which is written as a whole, as by ext4 and XFS; an `fdatasync` of an old file of unchanged length does not.
    #[default]
    Journal,
}

/// The faults of a disk that has power. Operations are counted from 1; `None` means no such fault.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// The n-th sync fails with EIO; the content that it should have written is lost at a cut, although later syncs succeed.
    pub failing_sync: Option<u64>,
    /// The n-th write fails with EIO.
    pub failing_write: Option<u64>,
    /// The n-th read fails with EIO.
    pub failing_read: Option<u64>,
    /// Whether all operations of the same kind after the failing one fail, too.
    pub is_for_ever: bool,
    /// Maximum bytes of all files together; a write beyond fails with ENOSPC.
    pub room: Option<u64>,
    /// One in this many reads, by chance, returns a flipped bit.
    pub flips_one_in: Option<u64>,
    /// Time that a sync takes in addition to that of the disk below.
    pub sync_takes: Duration,
}

/// The plan of what happens to a disk.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Plan {
    /// The moment at which the power goes.
    pub when: When,
    /// The unsynced changes that the cut keeps.
    pub keeps: Keeps,
    /// The sync that makes a name safe.
    pub names: Names,
    /// The faults before the cut.
    pub faults: Faults,
    /// The seed of everything that is drawn by chance.
    pub seed: u64,
}
