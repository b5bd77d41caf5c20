//! A disk that fails: a file system in user space that knows what has been synced, loses its power on command, and keeps what a real disk would keep.
//!
//! A [`Disk`] holds files and names, without a kernel: its operations are those of a file system. [`Mounted`] mounts it on a directory with FUSE, where any
//! program can use it. What is left after a cut follows from [`Keeps`] and a seed; nothing that was synced is ever lost, unless a fault was asked for.
//!
//! Invariant: the files below, which hold the content, belong to this disk alone; nothing outside of its directory is touched.

pub mod disk;
pub mod mount;

pub use disk::{Disk, DiskError, Faults, Keeps, Lost, Names, Plan, When};
pub use mount::{MountError, Mounted};
