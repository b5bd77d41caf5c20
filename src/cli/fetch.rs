//! `loadline fetch`, as written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `fetch`
#[derive(Debug, Clone, Args)]
pub struct FetchArguments {
    /// What to fetch
    pub what: Fetched,
    /// Takes the files from this directory, where they were put before, and nothing from the network
    #[arg(long, value_name = "DIRECTORY")]
    pub from: Option<PathBuf>,
}

/// What can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Fetched {
    /// The library of DuckDB, out of its package for Node.js
    Duckdb,
    /// Cassandra's server, as its archives for Java
    Cassandra,
    /// QuestDB's server, as its archive for Java
    Questdb,
    /// The server FerretDB, which speaks MongoDB's protocol, built from its source with Go
    Mongodb,
}
