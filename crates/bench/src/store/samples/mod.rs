//! Raw samples: the times of every operation of a trial, in compressed columns, as `samples/<trial>.samples` in a run directory.
//!
//! Main types: [`Sample`], [`SampleWriter`], [`SampleReader`]. Invariant: the samples read back are a prefix of those
//! written; a torn or damaged rest is reported and never taken for samples.
//!
//! The format, all numbers little-endian:
//!
//! 1. A line of text, `loadline samples 1`, which is the format's version.
//! 2. The header: its length in bytes (u32), JSON ([`SampleHeader`]: the trial with all settings of the generator, and what the
//!    columns mean), CRC-32 of the JSON (u32).
//! 3. Blocks: `LLSB`, number of samples (u32), length of the payload (u32), CRC-32 of those two and the payload (u32), payload.
//! 4. A last block without samples, whose payload is the number of all samples as a varint. Without it the file is torn.
//!
//! A payload consists of the names of its kinds of operation (their number, then length and UTF-8 of each) and five
//! consecutive columns. Varints have seven bits a byte, the lowest first, the highest bit set on all but the last:
//!
//! - intended: difference to the sample before it, zigzag, varint
//! - sent - intended: varint
//! - done - sent: varint
//! - client: varint
//! - runs of equal samples: length (varint), outcome + 8 if the operation counts (one byte), place of the kind's name (varint)

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
/// Maximum number of samples of a block; a reader needs memory for one block.
pub const BLOCK_SAMPLES_MAX: usize = 65_536;

/// One operation. Times are nanoseconds since the start of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Time at which it should have been sent.
    pub intended_ns: u64,
    /// Time at which it was sent; equal to `done_ns` for an unsent one.
    pub sent_ns: u64,
    /// Time at which its answer was complete, or at which it was given up.
    pub done_ns: u64,
    /// Place of the client among all clients of the trial; 0 for an unsent operation.
    pub client: u32,
    /// Place of the kind's name in [`SampleBlock::kinds`].
    pub kind: u16,
    /// How the operation ended.
    pub outcome: SampleOutcome,
    /// Whether the operation belongs to the measured phase; otherwise to the warm-up, and no figure contains it.
    pub is_measured: bool,
}

/// How an operation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampleOutcome {
    /// The operation succeeded.
    Completed,
    /// The operation succeeded, and found nothing although it should have.
    Empty,
    /// The operation failed with an error.
    Failed,
    /// The operation was sent, and not answered when the trial ended.
    Abandoned,
    /// The operation was due, and not sent when the trial ended.
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

    /// Returns the name in exported files.
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
    /// Returns whether the operation has a response time: it was answered without an error.
    pub fn is_completed(&self) -> bool {
        matches!(self.outcome, SampleOutcome::Completed | SampleOutcome::Empty)
    }

    /// Returns whether the operation was not answered when the trial ended, so that its response time is only known to be longer.
    pub fn is_censored(&self) -> bool {
        matches!(self.outcome, SampleOutcome::Abandoned | SampleOutcome::Unsent)
    }
}

/// The header of a file of samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SampleHeader {
    /// Version of loadline that wrote the file.
    pub loadline: String,
    /// The trial: its seed, and all settings of the generator (arrivals, rate, clients, loops, phases), database and workload.
    pub trial: Trial,
    /// Start of the trial, UTC, RFC 3339.
    pub started: String,
    /// Unit of all times: `ns`.
    pub time_unit: String,
    /// The moment from which times count.
    pub time_zero: String,
    /// Start of the measured phase, in nanoseconds.
    pub measure_ns: u64,
    /// Names of the columns, in their order.
    pub columns: Vec<String>,
    /// Names of the outcomes, by number.
    pub outcomes: Vec<SampleOutcome>,
}

impl SampleHeader {
    /// Makes the header of a trial's samples.
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
