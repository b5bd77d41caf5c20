//! Programs that run beside servers, such as the daemons of a link's tunnel: started, ended and removed in the same manner.

use std::path::PathBuf;
use std::process::Child;

use super::directory::{PrivateDirectory, root};
use super::process::{self, Conditions};
use super::readiness::relevant_lines;
use super::{STOP_WITHIN, ServerError, start};
use crate::database::Namespace;
use crate::database::recipe::CommandLine;

/// A program in a private directory that runs as loadline's user. Dropping it ends the program and removes the directory.
#[derive(Debug)]
pub struct Companion {
    /// Ended before the directory is removed.
    child: Option<Child>,
    directory: PrivateDirectory,
    stop_signal: i32,
}

impl Companion {
    /// Makes the program's directory. Nothing runs yet.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn prepare(stop_signal: i32) -> Result<Companion, ServerError> {
        let directory = PrivateDirectory::create(&root(), None, None, stop_signal)?;
        Ok(Companion { child: None, directory, stop_signal })
    }

    /// Returns the directory of the program's files, which is its working directory.
    pub fn directory(&self) -> PathBuf {
        self.directory.server()
    }

    /// Writes a new file to the directory that no other user may read.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, content: &str) -> Result<(), ServerError> {
        self.directory.write(name, content, None)
    }

    /// Starts the program in this network namespace, or in loadline's own for `None`. Its output goes to the log.
    ///
    /// # Errors
    /// When it cannot be executed.
    pub fn start(&mut self, line: &CommandLine, namespace: Option<&Namespace>) -> Result<(), ServerError> {
        // If loadline dies, the program is of no use.
        let conditions = Conditions { namespace: namespace.cloned(), ..Conditions::own(libc::SIGKILL) };
        self.child = Some(start::execute(line, &mut self.directory, &conditions)?);
        Ok(())
    }

    /// Returns whether the program is running.
    pub fn is_running(&self) -> bool {
        self.child.as_ref().is_some_and(|child| !process::has_ended(child))
    }

    /// Returns the pids of the program and its descendants; empty if it does not run.
    pub fn pids(&self) -> Vec<u32> {
        let mut pids = Vec::new();
        if let Some(child) = self.child.as_ref().filter(|child| !process::has_ended(child)) {
            process::append_tree(child.id(), &mut pids);
        }
        pids
    }

    /// Returns the log lines that report errors, or else its last lines, joined to one line.
    pub fn log_tail(&self) -> String {
        let lines = relevant_lines(&start::read_log(&self.directory.log()));
        lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
    }

    /// Returns the program's output so far, at most the last 1 MiB.
    pub fn log(&self) -> String {
        start::read_log(&self.directory.log())
    }

    /// Sends the program a signal and does not wait for it to end.
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
