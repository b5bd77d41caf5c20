//! The `loadline` command.

use std::process::ExitCode;
use std::time::Duration;

use loadline::cli;
use loadline::commands::output::{give_up, refuse, refuse_arguments};
use loadline::commands::{Failure, Status, execute_command};
use loadline::recorder::log;

/// Longest time that writing the last lines to stderr may take at the end.
const LAST_LINES: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // The write itself reports a file that may not grow any more (ulimit -f). The signal would end the program without a message.
    // SAFETY: it sets the action of one signal, before there is any other thread.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    let code = execute();
    log::flush(LAST_LINES);
    code
}

fn execute() -> ExitCode {
    let cli = match cli::parse() {
        Ok(cli) => cli,
        Err(error) => {
            refuse_arguments(&error);
            return u8::try_from(error.exit_code()).map_or(ExitCode::FAILURE, ExitCode::from);
        }
    };
    let is_json = cli.json;
    match execute_command(cli) {
        Ok(Status::Valid) => ExitCode::from(0),
        Ok(Status::Invalid) => ExitCode::from(1),
        Err(Failure::Broken(message)) => {
            give_up(&message);
            ExitCode::from(1)
        }
        Err(Failure::Usage(refusal)) => {
            refuse(&refusal, is_json);
            ExitCode::from(2)
        }
    }
}
