//! The command line, as written: arguments are read here and understood in `commands/`.
//!
//! Main type: [`Cli`]. Invariant: every command of the contract is known here; those that come later are refused
//! when they are to be executed, by [`not_available`].

mod block;
mod data;
pub mod size;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use block::{BlockAction, MakeArguments};
pub use data::{DataArguments, DataFormat, ExportFormat, ImportArguments, ImportedTool};

/// Finds the load line of a database that records measurement data, and holds the load there.
#[derive(Debug, Clone, Parser)]
#[command(name = "loadline", version, max_term_width = 110)]
pub struct Cli {
    /// Print one JSON document to stdout
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// What there is, and which databases can start here
    List {
        /// Only this
        what: Option<Listed>,
    },
    /// Check a study; print its cases, trials and an estimate; start nothing
    Plan {
        /// The study.
        #[command(flatten)]
        study: StudyArguments,
    },
    /// Run a study
    Run(RunArguments),
    /// Terminal tables and RUN/report.html
    Report {
        /// Run directories
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Exit with 1 when a claim is contradicted
        #[arg(long)]
        strict: bool,
    },
    /// Compare the alternatives of one run, of two runs, or of published summaries
    Compare(CompareArguments),
    /// Fit queueing models to a run or to points
    Fit(FitArguments),
    /// Say what a model expects at an arrival rate
    Predict(PredictArguments),
    /// Say how many sources a server takes, or what so many need
    Size(Box<size::SizeArguments>),
    /// Score alternatives by writing and reading
    Score(ScoreArguments),
    /// Print generated records
    Data(DataArguments),
    /// Read other tools' output as a run directory
    Import(ImportArguments),
    /// Write a run as files that other tools read
    Export {
        /// Run directory
        run: PathBuf,
        /// Form of the files
        #[arg(long)]
        format: ExportFormat,
        /// Directory for the files
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Record measurement data until SIGTERM or SIGINT
    Record(RecordArguments),
    /// Make, verify and open transport blocks of cameras, and look at those that were refused
    Block {
        /// What to do with them
        #[command(subcommand)]
        action: BlockAction,
    },
    /// Do a part of a trial, as another loadline says on the standard input
    #[command(hide = true)]
    Work {
        /// Which part
        what: WorkKind,
    },
    /// Make a password for a camera that uploads blocks, and the line of its hash
    Password(PasswordArguments),
    /// Generate load as told over NATS
    Agent {
        /// Address of the NATS server
        #[arg(long, value_name = "URL")]
        nats: String,
    },
}

/// Parts of trials that processes of their own do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkKind {
    /// A group of readers.
    Readers,
    /// Storing what is published.
    Historian,
}

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Bundled studies
    Studies,
    /// Record types
    Records,
    /// Layouts
    Layouts,
    /// Databases
    Databases,
    /// Workloads
    Workloads,
}

/// A study and how it is changed.
#[derive(Debug, Clone, Args)]
pub struct StudyArguments {
    /// Name of a bundled study, or path of a study file
    #[arg(required_unless_present = "ycsb")]
    pub study: Option<String>,
    /// Instead of a study, a property file of YCSB as it is, as in workloads/workloada; --set takes its properties too
    #[arg(long, value_name = "FILE", conflicts_with = "study")]
    pub ycsb: Option<String>,
    /// Change a setting, as in load.clients=4; a list makes it a factor, no value takes it out. A password for database.url can
    /// also come from the environment variable LOADLINE_PASSWORD
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Shrink sizes and repeats to a rehearsal of about a minute
    #[arg(long)]
    pub quick: bool,
    /// Seed of the order of trials and of all that is random in them
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `run`
#[derive(Debug, Clone, Args)]
pub struct RunArguments {
    /// The study.
    #[command(flatten)]
    pub study: StudyArguments,
    /// Run directory to be made; without it runs/STUDY-TIME
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Run directory to be continued: only what is missing is run
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Exit with 1 when a claim is contradicted
    #[arg(long)]
    pub strict: bool,
}

/// `compare`
#[derive(Debug, Clone, Args)]
pub struct CompareArguments {
    /// Run directory
    #[arg(required_unless_present = "summaries", conflicts_with = "summaries")]
    pub run: Option<PathBuf>,
    /// Second run directory
    pub run2: Option<PathBuf>,
    /// Factor whose levels are compared, in each run; without it all that are alternatives, or with two runs the runs
    #[arg(long, value_name = "SETTING", conflicts_with = "summaries")]
    pub factor: Option<String>,
    /// What is compared: throughput, response_time_mean, response_time_p99, ...; without it what the report compares by
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// Published summaries: machine,case,variant,mean,sd,n; if given, also metric and operation
    #[arg(long, value_name = "FILE.csv")]
    pub summaries: Option<PathBuf>,
    /// Level of the verdicts, below which an adjusted p counts
    #[arg(long, default_value_t = 0.05, allow_negative_numbers = true)]
    pub alpha: f64,
    /// Relative difference that counts as none: 0.05 is 5 %
    #[arg(long, default_value_t = 0.05, allow_negative_numbers = true)]
    pub margin: f64,
    /// How p-values and intervals are adjusted for their number: Bonferroni, Holm, or Benjamini and Hochberg
    #[arg(long, value_enum, default_value_t = Adjusting::Bonferroni)]
    pub adjust: Adjusting,
    /// Write tables and figures to this page too, or to compare.html in this directory
    #[arg(long, visible_alias = "out", value_name = "FILE.html")]
    pub html: Option<PathBuf>,
}

/// How p-values are adjusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Adjusting {
    /// Keeps the probability of any false finding below the level; all intervals hold together
    Bonferroni,
    /// Keeps the probability of any false finding below the level
    Holm,
    /// Keeps the expected share of false findings below the level
    Bh,
}

/// `fit`
#[derive(Debug, Clone, Args)]
pub struct FitArguments {
    /// Run directory
    #[arg(required_unless_present = "points", conflicts_with = "points")]
    pub run: Option<PathBuf>,
    /// Points, in columns: arrival_rate, mean_s, and if known se_s, p50_s, p90_s, p99_s, workers, throughput
    #[arg(long, value_name = "FILE.csv")]
    pub points: Option<PathBuf>,
    /// Model to fit
    #[arg(long, default_value = "auto")]
    pub model: String,
    /// Where the times of the points begin: intended or sent
    #[arg(long, default_value = "intended")]
    pub timer: String,
    /// Workers in front of the system, where the points do not say
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Servers of M/M/c, where they are not to be fitted
    #[arg(long, value_name = "N")]
    pub servers: Option<u32>,
    /// Fit the curve of this quantile, 0 to 1, instead of the mean
    #[arg(long, value_name = "Q")]
    pub quantile: Option<f64>,
}

/// `predict`
#[derive(Debug, Clone, Args)]
pub struct PredictArguments {
    /// Model
    #[arg(long)]
    pub model: String,
    /// Service rate of a server, per second; usl: throughput of one client
    #[arg(long)]
    pub mu: f64,
    /// Constant delay, as in 1.6ms
    #[arg(long, default_value = "0s")]
    pub delta: String,
    /// Arrival rate, per second; closed loops take --clients instead
    #[arg(long)]
    pub arrival_rate: Option<f64>,
    /// Quantile of response time, 0 to 1
    #[arg(long)]
    pub quantile: Option<f64>,
    /// Bound of that quantile, or of the mean without one, as in 10ms: how high may the arrival rate be?
    #[arg(long)]
    pub below: Option<String>,
    /// Parameters that only some models have.
    #[command(flatten)]
    pub special: SpecialParameters,
}

/// Parameters that only some models have.
#[derive(Debug, Clone, Default, Args)]
pub struct SpecialParameters {
    /// load-dependent, --timer sent: workers in front of the system
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// mmc: servers
    #[arg(long, value_name = "N")]
    pub servers: Option<u32>,
    /// load-dependent: p, by which each further operation present slows all down
    #[arg(long)]
    pub p: Option<f64>,
    /// mm1-scaled: the scale of 1 / (mu - arrival rate)
    #[arg(long)]
    pub a: Option<f64>,
    /// mg1: squared coefficient of variation of the service time
    #[arg(long)]
    pub cv2: Option<f64>,
    /// mm1-flush: mean time between stalls, as in 200ms
    #[arg(long, value_name = "TIME")]
    pub stall_every: Option<String>,
    /// mm1-flush: mean length of a stall, as in 20ms
    #[arg(long, value_name = "TIME")]
    pub stall: Option<String>,
    /// repairman, usl: clients of the closed loop
    #[arg(long, value_name = "N")]
    pub clients: Option<u32>,
    /// repairman: mean think time, as in 10ms
    #[arg(long, value_name = "TIME")]
    pub think: Option<String>,
    /// usl: contention
    #[arg(long)]
    pub alpha: Option<f64>,
    /// usl: coherency
    #[arg(long)]
    pub beta: Option<f64>,
    /// Where times begin: intended or sent
    #[arg(long, default_value = "intended")]
    pub timer: String,
}

/// `score`
#[derive(Debug, Clone, Args)]
pub struct ScoreArguments {
    /// Run directories
    #[arg(required_unless_present = "writes", value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Write throughputs: alternative,throughput
    #[arg(long, value_name = "FILE.csv", requires = "reads", conflicts_with = "runs")]
    pub writes: Option<PathBuf>,
    /// Read times: alternative,query,case,time_s
    #[arg(long, value_name = "FILE.csv", requires = "writes")]
    pub reads: Option<PathBuf>,
    /// Weight of writing against reading
    #[arg(long, default_value_t = 2.0, value_name = "WEIGHT")]
    pub write_weight: f64,
    /// What weighs the same in reading: every query, as in the source, or every case
    #[arg(long, default_value = "query", value_name = "WHICH")]
    pub query_weighting: QueryWeighting,
    /// Factor whose levels are the alternatives
    #[arg(long, default_value = "layout.name", value_name = "SETTING", conflicts_with = "writes")]
    pub factor: String,
    /// Factor whose levels are the queries; without it workload.query, where Q1.2 is a case of Q1, or else every kind of
    /// operation that reads is a query
    #[arg(long, value_name = "SETTING", conflicts_with = "writes")]
    pub query: Option<String>,
    /// Kinds of operation that write, as in insert,update; those of loadline's workloads without it
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', conflicts_with = "writes")]
    pub write_operations: Vec<String>,
    /// Kinds of operation that read, as in read,statement-1
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', conflicts_with = "writes")]
    pub read_operations: Vec<String>,
    /// Write tables and a plot of the sensitivity into a page
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// What weighs the same in reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QueryWeighting {
    /// Every query.
    Query,
    /// Every case, whatever its query.
    Case,
}

/// `record`
#[derive(Debug, Clone, Args)]
pub struct RecordArguments {
    /// Configuration of the recorder
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Instead of recording, list the records that the database refused, or give them back to the queue
    #[arg(long, value_name = "ACTION")]
    pub quarantine: Option<QuarantineAction>,
}

/// `password`
#[derive(Debug, Clone, Args)]
pub struct PasswordArguments {
    /// Name of the camera
    pub camera: String,
    /// Take the password from standard input instead of making one
    #[arg(long)]
    pub stdin: bool,
}

/// What can be done with the recorder's quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QuarantineAction {
    /// Show each record with its reason
    List,
    /// Give all of them back to the queue; the recorder must be stopped
    Replay,
    /// Give all of them up: they are removed; the recorder must be stopped
    Discard,
}

/// Reads the arguments of this process. On wrong usage clap prints what is wrong and exits with 2.
pub fn parse() -> Cli {
    Cli::parse()
}

/// Commands that can be executed.
pub const AVAILABLE: &[&str] = &[
    "list", "plan", "run", "report", "compare", "fit", "predict", "size", "score", "data", "import", "export",
    "record", "block", "password",
];

impl Command {
    /// Name as on the command line.
    pub fn name(&self) -> &'static str {
        match self {
            Command::List { .. } => "list",
            Command::Plan { .. } => "plan",
            Command::Run(_) => "run",
            Command::Report { .. } => "report",
            Command::Compare(_) => "compare",
            Command::Fit(_) => "fit",
            Command::Predict(_) => "predict",
            Command::Size(_) => "size",
            Command::Score(_) => "score",
            Command::Data(_) => "data",
            Command::Import(_) => "import",
            Command::Export { .. } => "export",
            Command::Record(_) => "record",
            Command::Block { .. } => "block",
            Command::Work { .. } => "work",
            Command::Password(_) => "password",
            Command::Agent { .. } => "agent",
        }
    }
}

/// The sentence that refuses a command that comes later.
pub fn not_available(command: &str) -> String {
    format!("{command} is not available yet; available: {}", AVAILABLE.join(", "))
}

#[cfg(test)]
mod tests;
