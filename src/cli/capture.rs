//! `loadline capture`, as written.

use std::path::PathBuf;

use clap::Args;

/// `capture`
#[derive(Debug, Clone, Args)]
pub struct CaptureArguments {
    /// Logs of statements, in the order in which they were written: PostgreSQL's (text, CSV or JSON; log_min_duration_statement = 0, and a prefix with
    /// the process, as '%m [%p] ' has it), or the slow log (long_query_time = 0) or general log of MySQL and MariaDB
    #[arg(required = true, value_name = "FILE.log")]
    pub logs: Vec<PathBuf>,
    /// File to write. It has the values of all statements, and only you may read it
    #[arg(long, value_name = "TRACE")]
    pub out: PathBuf,
    /// Takes only the statements on this database, if the log names the database of each
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
}
