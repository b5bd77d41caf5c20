//! Raw samples: the times of every operation of a trial, in compressed columns, as `samples/<trial>.samples` in a run directory.
//!
//! Main types: [`Sample`], [`SampleWriter`], [`SampleReader`]. Invariant: what is read back is a prefix of what was written;
//! a torn or damaged rest is told and never taken for samples.
//!
//! The format, all numbers little-endian:
//!
//! 1. A line of text, `loadline samples 1`, which is the format's version.
//! 2. The header: its length in bytes (u32), JSON ([`SampleHeader`]: the trial with all settings of the generator, and what the
//!    columns mean), CRC-32 of the JSON (u32).
//! 3. Blocks: `LLSB`, number of samples (u32), length of the payload (u32), CRC-32 of those two and the payload (u32), payload.
//! 4. A last block without samples, whose payload is the number of all samples as a varint. Without it the file is torn.
//!
//! A payload is the names of its kinds of operation (how many, then length and UTF-8 of each) and five columns, one behind the
//! other. Varints carry seven bits a byte, the lowest first, the highest bit set on all but the last:
//!
//! - intended: difference to the sample before it, zigzag, varint
//! - sent - intended: varint
//! - done - sent: varint
//! - client: varint
//! - runs of samples alike: length (varint), outcome + 8 if the operation counts (one byte), place of the kind's name (varint)

mod block;
mod reader;
mod writer;

use serde::{Deserialize, Serialize};

use crate::trial::Trial;

pub use block::SampleBlock;
pub use reader::SampleReader;
pub use writer::SampleWriter;

/// The first line of every file.
const FIRST_LINE: &[u8] = b"loadline samples 1\n";
const BLOCK_MARK: &[u8; 4] = b"LLSB";
/// Samples of a block at most; a reader needs memory for one block.
pub const BLOCK_SAMPLES_MAX: usize = 65_536;

/// One operation. Times are nanoseconds since the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When it should have been sent.
    pub intended_ns: u64,
    /// When it was sent; equal to `done_ns` for an unsent one.
    pub sent_ns: u64,
    /// When its answer was complete, or when it was given up.
    pub done_ns: u64,
    /// Place of its client among all clients of the trial; 0 for an unsent one.
    pub client: u32,
    /// Place of the name of its kind in [`SampleBlock::kinds`].
    pub kind: u16,
    /// How it ended.
    pub outcome: SampleOutcome,
    /// Whether it belongs to the measured phase; else to the warm-up, and no figure contains it.
    pub is_measured: bool,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleOutcome {
    /// As it should.
    Completed,
    /// Completed, and nothing was found although something should have been.
    Empty,
    /// With an error.
    Failed,
    /// Sent, and not answered when the trial ended.
    Abandoned,
    /// Due, and not sent when the trial ended.
    Unsent,
}

impl SampleOutcome {
    /// All outcomes; the place of each is its number in files.
    pub const ALL: [SampleOutcome; 5] = [
        SampleOutcome::Completed,
        SampleOutcome::Empty,
        SampleOutcome::Failed,
        SampleOutcome::Abandoned,
        SampleOutcome::Unsent,
    ];

    /// Name in exported files.
    pub fn name(self) -> &'static str {
        match self {
            SampleOutcome::Completed => "completed",
            SampleOutcome::Empty => "empty",
            SampleOutcome::Failed => "failed",
            SampleOutcome::Abandoned => "abandoned",
            SampleOutcome::Unsent => "unsent",
        }
    }
}

impl Sample {
    /// Whether it was answered as a response time needs it.
    pub fn is_completed(&self) -> bool {
        matches!(self.outcome, SampleOutcome::Completed | SampleOutcome::Empty)
    }

    /// Whether it was not answered when the trial ended, so that its response time is only known to be longer.
    pub fn is_censored(&self) -> bool {
        matches!(self.outcome, SampleOutcome::Abandoned | SampleOutcome::Unsent)
    }
}

/// What a file of samples says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleHeader {
    /// Version of loadline that wrote the file.
    pub loadline: String,
    /// The trial: its seed, and all settings of the generator (arrivals, rate, clients, loops, phases), database and workload.
    pub trial: Trial,
    /// When the trial began, UTC, RFC 3339.
    pub started: String,
    /// Unit of all times: `ns`.
    pub time_unit: String,
    /// What times count from.
    pub time_zero: String,
    /// When the measured phase began.
    pub measure_ns: u64,
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// Names of the outcomes, by number.
    pub outcomes: Vec<SampleOutcome>,
}

impl SampleHeader {
    /// The header of a trial's samples.
    pub fn new(trial: &Trial, started: &str) -> Self {
        let columns = ["intended", "sent - intended", "done - sent", "client", "outcome, phase and kind of operation"];
        SampleHeader {
            loadline: env!("CARGO_PKG_VERSION").to_owned(),
            trial: trial.clone(),
            started: started.to_owned(),
            time_unit: "ns".to_owned(),
            time_zero: "start of the warm-up".to_owned(),
            measure_ns: (trial.case.settings.load.warmup_s * 1e9) as u64,
            columns: columns.map(str::to_owned).to_vec(),
            outcomes: SampleOutcome::ALL.to_vec(),
        }
    }
}
