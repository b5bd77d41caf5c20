//! Programs that run beside servers, such as the daemons of a link's tunnel: started, ended and cleared away in the same manner.

use std::path::PathBuf;
use std::process::Child;

use super::directory::{PrivateDirectory, root};
use super::process::{self, Conditions};
use super::readiness::relevant_lines;
use super::{STOP_WITHIN, ServerError, start};
use crate::database::Namespace;
use crate::database::recipe::CommandLine;

/// A program in a private directory, as loadline's user. Dropping it ends the program and removes the directory.
#[derive(Debug)]
pub struct Companion {
    /// Ended before the directory goes.
    child: Option<Child>,
    directory: PrivateDirectory,
    stop_signal: i32,
}

impl Companion {
    /// Makes its directory. Nothing runs yet.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn prepare(stop_signal: i32) -> Result<Companion, ServerError> {
        let directory = PrivateDirectory::create(&root(), None, None, stop_signal)?;
        Ok(Companion { child: None, directory, stop_signal })
    }

    /// The directory that its files are in, which is the program's working directory.
    pub fn directory(&self) -> PathBuf {
        self.directory.server()
    }

    /// Writes a new file there that nobody else may read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> Result<(), ServerError> {
        self.directory.write(name, content, None)
    }

    /// Starts the program, in this network or in loadline's own. Its output goes to the log.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn start(&mut self, line: &CommandLine, namespace: Option<&Namespace>) -> Result<(), ServerError> {
        // Should loadline die, the program is of no use for anything.
        let conditions = Conditions { namespace: namespace.cloned(), ..Conditions::own(libc::SIGKILL) };
        self.child = Some(start::execute(line, &mut self.directory, &conditions)?);
        Ok(())
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.child.as_ref().is_some_and(|child| !process::has_ended(child))
    }

    /// Its processes; empty when it does not run.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        if let Some(child) = self.child.as_ref().filter(|child| !process::has_ended(child)) {
            process::append_tree(child.id(), &mut pids);
        }
        pids
    }

    /// What its log says, on one line: lines that tell of errors, or the last ones.
    pub fn log_tail(&self) -> String {
        let lines = relevant_lines(&start::read_log(&self.directory.log()));
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// All that it printed so far, at most the last mebibyte.
    pub fn log(&self) -> String {
        start::read_log(&self.directory.log())
    }

    /// Asks it to end; it does so in its own time.
    pub fn signal(&self, signal: i32) {
        if let Some(child) = &self.child
            && let Some(process) = process::ProcessIdentity::of(child.id())
        {
            process.signal(signal);
        }
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            process::end(&mut child, self.stop_signal, STOP_WITHIN);
        }
    }
}
