//! Arguments of `loadline size`, as written.

use std::path::PathBuf;

use clap::Args;

/// `size`
#[derive(Debug, Clone, Args)]
pub struct SizeArguments {
    /// Blocks that a source makes in each interval of --every
    #[arg(long, default_value_t = 1.0)]
    pub blocks: f64,
    /// The interval, as in 5s
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub every: String,
    /// Size of a block, as in 2MB
    #[arg(long, value_name = "SIZE")]
    pub block: String,
    /// Link of each source, as in 384kbit/s
    #[arg(long, value_name = "RATE")]
    pub link: Option<String>,
    /// Link of the server, as in 1Gbit/s; a measured one as 910Mbit/s..940Mbit/s
    #[arg(long, value_name = "RATE")]
    pub server_link: Option<String>,
    /// What the server's disk writes in a second, as in 85MB or 80MB..90MB
    #[arg(long, value_name = "SIZE")]
    pub disk: Option<String>,
    /// How often each byte of a block is written there: into the inbox and into the store
    #[arg(long, value_name = "N", default_value_t = 2.0)]
    pub writes: f64,
    /// CPU time to process a block, as in 20ms or 18ms..22ms
    #[arg(long, value_name = "TIME")]
    pub processing: Option<String>,
    /// Cores that process
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub cores: f64,
    /// Load line of the database in operations per second, as in 800 or 760..850
    #[arg(long, value_name = "RATE", conflicts_with = "run")]
    pub load_line: Option<String>,
    /// Run whose load line is that of the database
    #[arg(long, value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// Which load line of the run, if it has several, as in layout.name=star; can be repeated for several settings
    #[arg(long = "where", value_name = "SETTING=LEVEL", requires = "run")]
    pub levels: Vec<String>,
    /// Operations of a block in the database
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    pub operations: f64,
    /// Share of link, disk and cores that may be used; the rest is for bursts. A load line is used whole
    #[arg(long, value_name = "SHARE", default_value_t = 0.8)]
    pub use_at_most: f64,
    /// Says instead what this many sources need
    #[arg(long, value_name = "N")]
    pub sources: Option<f64>,
}
