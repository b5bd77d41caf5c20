//! What the benchmarks beside other programs share: child processes, runs of the real binary, and ratios with intervals.

pub mod ours;
pub mod process;
pub mod ratio;
