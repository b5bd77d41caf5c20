//! Simulates a log on a failing disk: a disk in memory that forgets, tears, damages and refuses, and runs from seeds that compare what a log reports with what was really appended.
//!
//! Main types: [`MemoryDisk`] and [`Faults`]; main function: [`run`]. Everything follows from a seed, which repeats a failing run.

mod exhaustive;
mod memory;
mod run;
mod truth;

pub use exhaustive::{End, Frame, SMALL, cuts, flips, losses, opened, small_log};
pub use memory::{AfterSync, Cut, MemoryDisk};
pub use run::{Faults, run};
pub use truth::Told;
