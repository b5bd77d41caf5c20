//! `loadline draft`, as written.

use std::path::PathBuf;

use clap::Args;

/// `draft`
#[derive(Debug, Clone, Args)]
pub struct DraftArguments {
    /// Address of the database, as in postgres://me@db.example/shop or mysql://me@db.example/shop, or the path of an SQLite file. The password is
    /// taken from the environment variable LOADLINE_PASSWORD, or from the address; the study does not contain it
    #[arg(value_name = "URL|FILE.db")]
    pub database: String,
    /// Where the statements come from: pg_stat_statements, performance_schema, or a file: a log of PostgreSQL (text, CSV, JSON), a slow or general
    /// log of MySQL and MariaDB, or SQL; can be repeated for further files [default: what the server counts]
    #[arg(long, value_name = "SOURCE")]
    pub statements: Vec<String>,
    /// Counts statements from now on for this long, as in 60s, instead of all since the server began to count
    #[arg(long = "for", value_name = "TIME")]
    pub period: Option<String>,
    /// Writes texts from the database's logs into the study, where statements ask for few of them; without it, only numbers and times
    #[arg(long)]
    pub values: bool,
    /// Describes the tables too, with rows that look alike, so that the study runs on a private server anywhere, without the original. Unless --values is given,
    /// the study contains no text of a row, and of numbers and times only their distribution in rounded bounds
    #[arg(long)]
    pub private: bool,
    /// File to write [default: NAME.toml, after the database]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
