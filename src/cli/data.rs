//! `loadline data`, `import` and `export`, as written: generated records, and other tools' output.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `import`
#[derive(Debug, Clone, Args)]
pub struct ImportArguments {
    /// The tool that wrote the files
    pub tool: ImportedTool,
    /// Its output: one file for each repetition; pgbench's logs and YCSB's .hdr logs beside it
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Directory to make for the run
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Levels that hold for all files and are not in them, as in layout.name=json
    #[arg(long = "level", value_name = "SETTING=VALUE")]
    pub levels: Vec<String>,
    /// Where levels stand in the files' names, as in '{layout.name}-{load.clients}-*.txt'
    #[arg(long, value_name = "PATTERN")]
    pub pattern: Option<String>,
    /// Leaves the first repetition of each case out of all analyses
    #[arg(long)]
    pub discard_first: bool,
}

/// `data`
#[derive(Debug, Clone, Args)]
pub struct DataArguments {
    /// Record type
    pub record: String,
    /// How many records
    #[arg(long, value_name = "N")]
    pub rows: u64,
    /// Seed of the data
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Form of the records; csv unless --json asks for one document
    #[arg(long)]
    pub format: Option<DataFormat>,
}

/// Forms of generated records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DataFormat {
    /// RFC 4180 with a heading; null is nothing, an empty text `""`, bytes are hexadecimal.
    Csv,
    /// One JSON object a line; bytes are a hexadecimal string.
    Jsonl,
    /// InfluxDB line protocol: identity columns are tags, values are fields, the time stamp is in nanoseconds.
    Line,
    /// One JSON document, an array of objects; what `--json` asks for.
    #[value(skip)]
    Json,
}

/// Forms of exported runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// Comma-separated values with a header
    Csv,
    /// One JSON document a line
    Jsonl,
    /// Apache Parquet
    Parquet,
}

/// Tools whose output can be imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ImportedTool {
    /// YCSB
    Ycsb,
    /// sysbench
    Sysbench,
    /// pgbench
    Pgbench,
}
