//! A log in a world that fails: a disk in memory that forgets, tears, damages and refuses, and runs from seeds that hold what a log says against what was really appended.
//!
//! Main types: [`MemoryDisk`] and [`Faults`]; main function: [`run`]. Everything comes from a seed; a run that fails is repeated by it.

mod exhaustive;
mod memory;
mod run;
mod truth;

pub use exhaustive::{End, Frame, SMALL, cuts, flips, losses, opened, small_log};
pub use memory::{AfterSync, Cut, MemoryDisk};
pub use run::{Faults, run};
pub use truth::Told;
