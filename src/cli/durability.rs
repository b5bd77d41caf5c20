//! The arguments of `durability`.

use clap::{Args, ValueEnum};

/// `durability`
#[derive(Debug, Clone, Args)]
pub struct DurabilityArguments {
    /// Name of a database, or of a study or its file, whose databases and layouts are taken
    #[arg(value_name = "TARGET|STUDY")]
    pub target: String,
    /// Changes a setting: database.config.fsync=off. Each level of a list is tried: "database.config.synchronous_commit=[on, off]"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Failures of each kind for each case
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub cuts: u32,
    /// What fails; may be given several times. Without it: the power, and the server alone where power cuts lose something
    #[arg(long = "fault", value_enum)]
    pub faults: Vec<FaultKind>,
    /// Number that decides the operations, the moments of the failures, and what the disk keeps
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
}

/// What fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum FaultKind {
    /// The power of the disk: what was not synced is gone, or a part of it
    Power,
    /// The processes are killed; the machine goes on
    Kill,
    /// Reads, writes or syncs fail, once or from then on; then the power goes
    Eio,
    /// The disk is full for a while; then the power goes
    Enospc,
    /// Reads from the disk give flipped bits, after the database was stopped in order
    Bits,
}

impl FaultKind {
    /// Whether it ends with a cut of the power.
    pub fn takes_power(self) -> bool {
        matches!(self, FaultKind::Power | FaultKind::Eio | FaultKind::Enospc)
    }

    /// Its name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::Power => "power",
            FaultKind::Kill => "kill",
            FaultKind::Eio => "eio",
            FaultKind::Enospc => "enospc",
            FaultKind::Bits => "bits",
        }
    }
}
