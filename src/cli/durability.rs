//! The arguments of `durability`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use crate::trial::{DurabilityPlan, FaultKind};

/// `durability`
#[derive(Debug, Clone, Args)]
pub struct DurabilityArguments {
    /// Name of a database, or of a study or its file, whose databases and layouts are taken; without it the study `durability`, which tries settings of SQLite
    #[arg(value_name = "TARGET|STUDY")]
    pub target: Option<String>,
    /// Tests a recorder: the file of `loadline record`, or one that says how another recorder is started (docs/durability.md)
    #[arg(long, value_name = "FILE")]
    pub recorder: Option<PathBuf>,
    /// Changes a setting: database.config.fsync=off. Each level of a list is tried: "database.config.synchronous_commit=[on, off]"
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Failures of each kind for each case; by default as many as the study says, else 100
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(DurabilityPlan::CUTS_MOST)))]
    pub cuts: Option<u32>,
    /// What fails; can be repeated. By default what the study says, else the power, and the server alone if power cuts lose something
    #[arg(long = "fault", value_name = "FAULT", value_parser = fault_kinds())]
    pub faults: Vec<FaultKind>,
    /// Syncs everything on the disk before records are written, as an operating system does within half a minute: what a database wrote when it started is not lost then
    #[arg(long)]
    pub sync_first: bool,
    /// Number that determines the operations, the moments of the failures, and what the disk keeps
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Writes the results into this new directory, with a report as a page
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// The kinds of failures, with what each is.
fn fault_kinds() -> impl TypedValueParser<Value = FaultKind> {
    let help = |kind: FaultKind| match kind {
        FaultKind::Power => "The power of the disk: what was not synced is gone, or a part of it",
        FaultKind::Kill => "The processes are killed; the machine goes on",
        FaultKind::Eio => "Reads, writes or syncs fail, once or from then on; then the power goes",
        FaultKind::Enospc => "The disk is full for a while; then the power goes",
        FaultKind::Bits => "Reads from the disk give flipped bits, after the database was stopped in order",
        FaultKind::Store => {
            "The store behind a recorder is stopped, killed or suspended for a while; for --recorder only"
        }
    };
    let values = FaultKind::ALL.map(|kind| PossibleValue::new(kind.name()).help(help(kind)));
    PossibleValuesParser::new(values)
        .map(|name| FaultKind::of_name(&name).expect("only names of kinds are possible values"))
}
