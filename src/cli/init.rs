//! `loadline init`, as written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `init`
#[derive(Debug, Clone, Args)]
pub struct InitArguments {
    /// What to find out; without it, loadline asks if there is a terminal
    #[arg(long, value_enum, value_name = "WHAT")]
    pub find: Option<Aim>,
    /// What is recorded: qos, sensor, usertable, or custom for columns of your own
    #[arg(long, value_name = "TYPE")]
    pub record: Option<String>,
    /// The database: sqlite, mariadb, mysql or postgres; all but sqlite are started privately if they are installed
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "study.toml")]
    pub out: PathBuf,
}

/// What a study finds out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Aim {
    /// Which table layout takes the most records per second
    Layout,
    /// The highest rate of records at which 99 % are stored within 20 ms
    Line,
    /// How throughput grows with the number of clients that read and write
    Clients,
}
