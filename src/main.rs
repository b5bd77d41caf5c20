//! The `loadline` command.

use std::process::ExitCode;

use loadline::commands::output::note;
use loadline::commands::{Failure, Status, execute_command};

fn main() -> ExitCode {
    match execute_command(loadline::cli::parse()) {
        Ok(Status::Valid) => ExitCode::from(0),
        Ok(Status::Invalid) => ExitCode::from(1),
        Err(Failure::Broken(message)) => {
            note(&format!("loadline: {message}"));
            ExitCode::from(1)
        }
        Err(Failure::Usage(message)) => {
            note(&format!("loadline: {message}"));
            ExitCode::from(2)
        }
    }
}
