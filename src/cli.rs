//! The command line, as written: arguments are read here and understood in `commands/`.
//!
//! Main type: [`Cli`]. Invariant: every command of the contract is known here.

mod block;
mod capture;
mod data;
mod draft;
mod durability;
mod fetch;
mod init;
pub mod size;
mod watch;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub use block::{BlockAction, MakeArguments};
pub use capture::CaptureArguments;
pub use data::{DataArguments, DataFormat, ExportFormat, ImportArguments, ImportedTool};
pub use draft::DraftArguments;
pub use durability::DurabilityArguments;
pub use fetch::{FetchArguments, Fetched};
pub use init::{Aim, InitArguments};
pub use watch::WatchArguments;

/// Finds the load line of a database that records measurement data, and holds the load there.
#[derive(Debug, Clone, Parser)]
#[command(name = "loadline", version, max_term_width = 110, disable_help_subcommand = true)]
pub struct Cli {
    /// Prints one JSON document to standard output instead of text
    #[arg(long, global = true)]
    pub json: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum Command {
    /// Lists studies, record types, layouts, databases and workloads, and says which databases can start on this machine
    List {
        /// Lists only this kind
        what: Option<Listed>,
    },
    /// Checks a study and prints its cases, its trials and how long it will take; starts nothing
    Plan {
        /// The study.
        #[command(flatten)]
        study: StudyArguments,
    },
    /// Writes a first study of your own, from three answers
    Init(InitArguments),
    /// Drafts a study from an existing database, its tables and the statements that run on it; only reads
    Draft(DraftArguments),
    /// Makes a trace from logs for the workload replay: statements with their times, sessions and values
    Capture(CaptureArguments),
    /// Runs a study: starts the database, loads it case by case, repeats, and reports
    Run(RunArguments),
    /// Cuts the power of a database again and again while it records, and counts the acknowledged records that are gone
    Durability(DurabilityArguments),
    /// Fetches the library or server of a database that loadline does not contain, checks it, and keeps it for later runs
    Fetch(FetchArguments),
    /// Watches this machine for a run elsewhere whose server is here: CPU, disk, memory, network, the server's processes
    Watch(WatchArguments),
    /// Prints the tables and verdicts of a run again, and writes RUN/report.html
    Report {
        /// Directories that `loadline run` or `import` made
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<PathBuf>,
        /// Ends with status 1 when a claim of the study's source is contradicted
        #[arg(long)]
        strict: bool,
    },
    /// Compares the alternatives of a run, two runs with each other, or published figures: which is faster, slower or equal
    Compare(CompareArguments),
    /// Fits formulas for how response times grow with the arrival rate (queueing models) to a run or to points
    Fit(FitArguments),
    /// Prints the response times that a model predicts at an arrival rate, or the highest rate for a bound
    Predict(PredictArguments),
    /// Says how many sources of data a server carries, or what a number of sources needs
    Size(Box<size::SizeArguments>),
    /// Gives each alternative points for writing and for reading, and says which has the most
    Score(ScoreArguments),
    /// Prints generated records, as studies write them
    Data(DataArguments),
    /// Makes a run directory from the output of YCSB, sysbench or pgbench
    Import(ImportArguments),
    /// Writes the trials of a run as CSV, JSON lines or Parquet for other tools
    Export {
        /// Directory of the run
        run: PathBuf,
        /// Form of the files
        #[arg(long)]
        format: ExportFormat,
        /// Directory for the files
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
    },
    /// Records measurement data into a database until SIGTERM or SIGINT (Ctrl-C)
    Record(RecordArguments),
    /// Makes, verifies and opens transport blocks of cameras, and shows those that were refused
    Block {
        /// What to do with them
        #[command(subcommand)]
        action: BlockAction,
    },
    /// Prints a JSON Schema of study files, of the recorder's file, or of the JSON that run and report print
    Schema {
        /// What to describe
        what: Described,
    },
    /// Prints the help of a command, or what a setting means: loadline help load.clients
    Help {
        /// A command, a setting, or a table of settings such as load
        #[arg(value_name = "COMMAND|SETTING")]
        what: Vec<String>,
    },
    /// Does a part of a trial, as another loadline says on the standard input
    #[command(hide = true)]
    Work {
        /// Which part
        what: WorkKind,
    },
    /// Makes a password for a camera that uploads blocks, or a token for a sender of measurement data, with its hash for the recorder
    Password(PasswordArguments),
    /// Waits for a share of the load of runs elsewhere: loadline run STUDY --agents N --nats URL. Drives it from this machine
    Agent(NatsArguments),
}

/// Parts of trials that separate processes do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkKind {
    /// A group of readers.
    Readers,
    /// Storing what is published.
    Historian,
    /// Writing what is looked for behind a failure.
    Writers,
    /// A share of a load.
    Load,
}

/// What has a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Described {
    /// Study files
    Study,
    /// Files of loadline record
    Recorder,
    /// Files of other recorders for loadline durability
    OtherRecorder,
    /// The JSON that run and report print
    Results,
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
    pub study: Option<String>,
    /// Runs a property file of YCSB, such as workloads/workloada, instead of a study; --set takes YCSB's properties too
    #[arg(long, value_name = "FILE", conflicts_with = "study")]
    pub ycsb: Option<String>,
    /// Changes a setting of the study: load.clients=4. A list is measured level by level: load.clients=[1, 4]. An empty
    /// value removes the setting. The password for database.url can be given in the environment variable LOADLINE_PASSWORD instead
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Rehearses the study in about a minute with smaller sizes and fewer trials; its figures are not to be quoted
    #[arg(long)]
    pub quick: bool,
    /// Number that determines the order of trials and everything random in them; equal seeds repeat both
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

/// `run`
#[derive(Debug, Clone, Args)]
pub struct RunArguments {
    /// The study.
    #[command(flatten)]
    pub study: StudyArguments,
    /// Directory to make for the run [default: runs/STUDY-TIME]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    pub out: Option<PathBuf>,
    /// Continues the run in this directory: runs the trials that are missing there
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
    /// Spends this much time, as in 10m: cases that are not settled are repeated beyond repeat.most, and no trial begins that would end later
    #[arg(long, value_name = "TIME")]
    pub budget: Option<String>,
    /// Ends with status 1 when a claim of the study's source is contradicted
    #[arg(long)]
    pub strict: bool,
    /// Has this many processes drive the load together, each with its share, as load.agents = N does
    #[arg(long, value_name = "N")]
    pub agents: Option<u32>,
    /// NATS server at which agents on other machines wait (loadline agent); without it, agents are processes of this machine
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// What becomes of a trial that has lost an agent, if no other agent is free: the run waits until there are as many again, or those that are left
    /// drive the whole load
    #[arg(long, value_name = "WHAT", requires = "nats", default_value = "wait")]
    pub agents_lost: AgentsLost,
    /// What else the NATS server asks for
    #[command(flatten)]
    pub nats_files: NatsFiles,
}

/// What a run does if agents are lacking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentsLost {
    /// Waits for as many agents
    Wait,
    /// Goes on with those that are left
    Fewer,
}

/// Files with what is needed to reach a NATS server.
#[derive(Debug, Clone, Args)]
pub struct NatsFiles {
    /// File with the authority that must have signed the certificate of the NATS server, in PEM
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_ca: Option<PathBuf>,
    /// File with a user's JWT and key for the NATS server, as nsc generate creds writes it
    #[arg(long, value_name = "FILE", requires = "nats", conflicts_with = "nats_nkey")]
    pub nats_creds: Option<PathBuf>,
    /// File with the seed of a user's key for the NATS server, as nk -gen user writes it
    #[arg(long, value_name = "FILE", requires = "nats")]
    pub nats_nkey: Option<PathBuf>,
}

/// `agent`
#[derive(Debug, Clone, Args)]
pub struct NatsArguments {
    /// NATS server over which runs give work: nats://host:4222, or tls:// for TLS; with user:password@ or token@ before the host
    #[arg(long, value_name = "URL")]
    pub nats: String,
    /// What else the NATS server asks for
    #[command(flatten)]
    pub files: NatsFiles,
}

/// `compare`
#[derive(Debug, Clone, Args)]
pub struct CompareArguments {
    /// Directory of a run
    #[arg(required_unless_present = "summaries", conflicts_with = "summaries")]
    pub run: Option<PathBuf>,
    /// Directory of a second run, to compare the first with
    pub run2: Option<PathBuf>,
    /// Factor whose levels are compared within each run. Without it: all factors with alternatives; with two runs, the runs
    #[arg(long, value_name = "SETTING", conflicts_with = "summaries")]
    pub factor: Option<String>,
    /// Figure to compare: throughput, response_time_mean, response_time_p99, ... Without it: the one that the report compares by
    #[arg(long, value_name = "NAME")]
    pub metric: Option<String>,
    /// File of published figures with the columns machine,case,variant,mean,sd,n, and if known metric and operation
    #[arg(long, value_name = "FILE.csv")]
    pub summaries: Option<PathBuf>,
    /// How often a verdict may be wrong by chance: a difference counts when its adjusted p is below this
    #[arg(long, default_value_t = 0.05, allow_negative_numbers = true)]
    pub alpha: f64,
    /// Relative difference that is too small to matter: 0.05 is 5 %
    #[arg(long, default_value_t = 0.05, allow_negative_numbers = true)]
    pub margin: f64,
    /// How verdicts allow for the number of comparisons, of which some differ by chance alone
    #[arg(long, value_enum, default_value_t = Adjusting::Bonferroni)]
    pub adjust: Adjusting,
    /// Writes tables and figures as a page to this file, or to compare.html in this directory
    #[arg(long, visible_alias = "out", value_name = "FILE.html")]
    pub html: Option<PathBuf>,
}

/// How p-values are adjusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Adjusting {
    /// No finding at all is false, with probability 1 - alpha; all intervals hold together (Bonferroni)
    Bonferroni,
    /// No finding at all is false, with probability 1 - alpha; finds somewhat more (Holm)
    Holm,
    /// Of the findings a share of alpha is false on average (Benjamini and Hochberg)
    Bh,
}

/// `fit`
#[derive(Debug, Clone, Args)]
pub struct FitArguments {
    /// Directory of a run
    #[arg(required_unless_present = "points", conflicts_with = "points")]
    pub run: Option<PathBuf>,
    /// File of points with the columns arrival_rate, mean_s, and if known se_s, p50_s, p90_s, p99_s, workers, throughput
    #[arg(long, value_name = "FILE.csv")]
    pub points: Option<PathBuf>,
    /// Model to fit, by the name that a fit prints; auto tries all that suit the data
    #[arg(long, default_value = "auto")]
    pub model: String,
    /// Where the times of the points begin: when an operation was due (intended), or when it was sent (sent)
    #[arg(long, default_value = "intended")]
    pub timer: String,
    /// Connections that send the operations, where the points do not say
    #[arg(long, value_name = "N")]
    pub workers: Option<u32>,
    /// Operations that the system serves at once, for the model mmc; without it they are fitted
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=SERVERS_MOST))]
    pub servers: Option<u32>,
    /// Fits the curve of this quantile (0 to 1) instead of the mean
    #[arg(long, value_name = "Q")]
    pub quantile: Option<f64>,
}

/// Servers of one queue, and clients of a closed loop: what a model says takes as many steps as there are.
const SERVERS_MOST: i64 = 100_000;
const CLIENTS_MOST: i64 = 1_000_000;

/// `predict`
#[derive(Debug, Clone, Args)]
pub struct PredictArguments {
    /// Model, by the name that a fit prints: mm1, mmc, mg1, usl, ...
    #[arg(long)]
    pub model: String,
    /// Operations that one server completes per second when it is busy; usl: throughput of one client
    #[arg(long)]
    pub mu: f64,
    /// Additional time that every operation takes, as in 1.6ms
    #[arg(long, default_value = "0s")]
    pub delta: String,
    /// Operations that arrive per second; models of closed loops take --clients instead
    #[arg(long)]
    pub arrival_rate: Option<f64>,
    /// Quantile of response time, 0 to 1
    #[arg(long)]
    pub quantile: Option<f64>,
    /// Finds the highest arrival rate at which the quantile, or the mean if there is none, stays below this, as in 10ms
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=SERVERS_MOST))]
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
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=CLIENTS_MOST))]
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
    /// Directories of runs
    #[arg(required_unless_present = "writes", value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// File of write throughputs with the columns alternative,throughput
    #[arg(long, value_name = "FILE.csv", requires = "reads", conflicts_with = "runs")]
    pub writes: Option<PathBuf>,
    /// File of read times with the columns alternative,query,case,time_s
    #[arg(long, value_name = "FILE.csv", requires = "writes")]
    pub reads: Option<PathBuf>,
    /// How many times as much writing counts as reading
    #[arg(long, default_value_t = 2.0, value_name = "WEIGHT")]
    pub write_weight: f64,
    /// What counts the same in reading: every query, or every case of every query
    #[arg(long, default_value = "query", value_name = "WHICH")]
    pub query_weighting: QueryWeighting,
    /// Factor whose levels are the alternatives
    #[arg(long, default_value = "layout.name", value_name = "SETTING", conflicts_with = "writes")]
    pub factor: String,
    /// Factor whose levels are the queries. Without it: workload.query, where Q1.2 is a case of Q1; where there is none, every
    /// kind of operation that reads is a query
    #[arg(long, value_name = "SETTING", conflicts_with = "writes")]
    pub query: Option<String>,
    /// Kinds of operation that write, as in insert,update. Without it: those that write in loadline's workloads
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', conflicts_with = "writes")]
    pub write_operations: Vec<String>,
    /// Kinds of operation that read, as in read,statement-1
    #[arg(long, value_name = "KIND,...", value_delimiter = ',', conflicts_with = "writes")]
    pub read_operations: Vec<String>,
    /// Writes the tables, and a plot of how the choice depends on the weight, as a page to this file
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
    /// File with the recorder's settings
    #[arg(value_name = "CONFIG.toml")]
    pub config: PathBuf,
    /// Instead of recording, shows the records that the database refused, gives them back to the queue, or removes them
    #[arg(long, value_name = "ACTION")]
    pub quarantine: Option<QuarantineAction>,
}

/// `password`
#[derive(Debug, Clone, Args)]
pub struct PasswordArguments {
    /// Name of the camera
    #[arg(required_unless_present = "token", conflicts_with = "token")]
    pub camera: Option<String>,
    /// Makes a token for a sender in the recorder's configuration instead
    #[arg(long)]
    pub token: bool,
    /// Takes the password or token from standard input instead of making one
    #[arg(long)]
    pub stdin: bool,
}

/// What can be done with the recorder's quarantine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QuarantineAction {
    /// Shows each record with its reason
    List,
    /// Gives all of them back to the queue; the recorder must be stopped
    Replay,
    /// Removes all of them; the recorder must be stopped
    Discard,
}

/// Reads the arguments of this process.
///
/// # Errors
/// What clap says of wrong arguments, and of `--help` and `--version`.
pub fn parse() -> Result<Cli, clap::Error> {
    Cli::try_parse()
}

#[cfg(test)]
mod tests;
