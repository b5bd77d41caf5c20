//! Imports: turns the output of YCSB, sysbench and pgbench into a study with its measurements, as if loadline had run it.
//!
//! Main function: [`read`]. Invariant: either all files are understood, or nothing is imported. Facts that a tool does not report (the time between
//! intending and sending, reads that found nothing, CPU time) stay unknown, and the import says so.

mod assemble;
mod naming;
mod pgbench;
mod source;
mod sysbench;
mod times;
mod validity;
mod ycsb;

pub use assemble::{Import, Options};
pub use naming::Naming;
pub use source::{ImportError, SourceFile};

use crate::imported::ImportedFrom;
use crate::measurement::Measurement;
use crate::trial::{Case, Levels, Settings, Trial};
use naming::Level;

/// The tools whose output is understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// YCSB: text and JSON output, with status lines, verbose histograms, raw times, and .hdr logs beside it.
    Ycsb,
    /// sysbench 1.0 and 1.1: report lines, histogram and summary.
    Sysbench,
    /// pgbench: summary, log of transactions and aggregated log.
    Pgbench,
}

impl Tool {
    /// Returns the tool's own name.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Ycsb => "YCSB",
            Tool::Sysbench => "sysbench",
            Tool::Pgbench => "pgbench",
        }
    }
}

/// One repetition of a case, from a tool's output.
#[derive(Debug, Clone, PartialEq)]
pub struct Repetition {
    /// The main file of the repetition.
    pub file: SourceFile,
    /// Settings that the output states.
    pub told: Vec<Level>,
    /// Whether operations were scheduled independently of the answers.
    pub arrivals: crate::trial::Arrivals,
    /// The measurement; its trial is not resolved yet.
    pub measurement: Measurement,
}

impl Repetition {
    /// Makes a repetition of which only the origin is known.
    fn of(tool: Tool, file: &SourceFile) -> Self {
        let unresolved = Trial::new(Case::new(Levels::new(), Settings::default()), 0, 0);
        let imported =
            ImportedFrom { tool: tool.name().to_owned(), files: vec![file.name.clone()], ..ImportedFrom::default() };
        Repetition {
            file: file.clone(),
            told: Vec::new(),
            arrivals: crate::trial::Arrivals::Closed,
            measurement: Measurement { imported: Some(imported), ..Measurement::unmeasured(&unresolved) },
        }
    }

    /// Returns the facts about the import.
    fn from(&mut self) -> &mut ImportedFrom {
        self.measurement.imported.get_or_insert_default()
    }

    fn note(&mut self, sentence: impl Into<String>) {
        let sentence = sentence.into();
        let notes = &mut self.from().notes;
        if !notes.contains(&sentence) {
            notes.push(sentence);
        }
    }

    fn tell(&mut self, setting: &str, value: impl Into<serde_json::Value>) {
        self.told.push((setting.to_owned(), value.into()));
    }
}

/// Reads the output of a tool. Files of equal levels are repetitions of a case, in the order in which they are given.
///
/// # Errors
/// The first file that is torn, foreign, or contradicts the user's settings.
pub fn read(tool: Tool, files: &[SourceFile], naming: &Naming, options: &Options) -> Result<Import, ImportError> {
    for (place, file) in files.iter().enumerate() {
        if files[..place].iter().any(|other| other.name == file.name) {
            return Err(ImportError::new(&file.name, "the file is given twice", "give it once: it is one repetition"));
        }
        if file.text.trim().is_empty() {
            return Err(file.error(
                1,
                "the file is empty",
                "leave it out, or repeat the run that should have filled it",
            ));
        }
    }
    let repetitions = match tool {
        Tool::Ycsb => ycsb::read(files)?,
        Tool::Sysbench => files.iter().map(sysbench::read).collect::<Result<Vec<_>, _>>()?,
        Tool::Pgbench => pgbench::read(files)?,
    };
    assemble::assemble(tool, repetitions, naming, options)
}
