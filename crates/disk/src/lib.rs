//! A disk that fails: a file system in user space that knows what has been synced, loses its power when told, and keeps what a real disk would keep.
//!
//! A [`Disk`] holds files and names, without a kernel: its operations are those of a file system. [`Mounted`] puts it under a directory with FUSE, where any
//! program uses it. What is there after a cut follows from [`Keeps`] and a seed; nothing that was synced is ever lost, unless a fault was asked for.
//!
//! Invariant: the files below, in which the content lies, are this disk's alone; nothing outside of its directory is touched.

pub mod disk;
pub mod mount;

pub use disk::{Disk, DiskError, Faults, Keeps, Lost, Names, Plan, When};
pub use mount::{MountError, Mounted};
