//! The `loadline` command.

use std::process::ExitCode;
use std::time::Duration;

use loadline::commands::output::give_up;
use loadline::commands::{Failure, Status, execute_command};
use loadline::recorder::log;

/// How long whoever reads stderr may take at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let code = execute();
    log::flush(LAST_LINES);
    code
}

fn execute() -> ExitCode {
    match execute_command(loadline::cli::parse()) {
        Ok(Status::Valid) => ExitCode::from(0),
        Ok(Status::Invalid) => ExitCode::from(1),
        Err(Failure::Broken(message)) => {
            give_up(&message);
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            give_up(&message);
            ExitCode::from(2)
        }
    }
}
