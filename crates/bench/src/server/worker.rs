//! Workers: further processes of loadline's own program, which do a part of a trial separately from the process that writes.
//!
//! Main type: [`Worker`]. A worker reads lines from its standard input and answers with lines on its standard output.
//! Invariant: it ends when its [`Worker`] is dropped, and when loadline dies.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use super::process::{self, Conditions, ProcessIdentity};

/// How long a worker may take to end once its input is closed.
const END_WITHIN: Duration = Duration::from_secs(2);

/// A running worker.
#[derive(Debug)]
pub struct Worker {
    child: Child,
    input: Option<ChildStdin>,
    /// The worker's standard output; `None` after [`Worker::take_output`].
    output: Option<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts loadline's own program with these arguments.
    ///
    /// # Errors
    /// Returns the operating system's error.
    pub fn start(arguments: &[&str]) -> io::Result<Worker> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let conditions = Conditions::own(libc::SIGKILL);
        let mut child = process::spawn(command, &conditions)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| io::Error::other("a worker without output"))?;
        Ok(Worker { child, input, output: Some(BufReader::new(output)) })
    }

    /// Returns the worker's pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the worker a line.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("its input is closed"))?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// Waits for the worker's next line and returns it.
    ///
    /// # Errors
    /// When the worker has ended.
    pub fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let output = self.output.as_mut().ok_or_else(|| io::Error::other("somebody else listens to it"))?;
        match output.read_line(&mut line)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without an answer")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// Returns the rest of the worker's output, for another reader; `None` if it was taken before.
    pub fn take_output(&mut self) -> Option<BufReader<ChildStdout>> {
        self.output.take()
    }

    /// Closes the worker's input, which makes it end in order.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Kills the worker; it is gone as soon as it is not in an uninterruptible wait.
    pub fn kill(&self) {
        ProcessIdentity::of(self.pid()).into_iter().for_each(|identity| identity.signal(libc::SIGKILL));
    }

    /// Waits until the worker is gone, for at most `most`. Returns whether it is gone.
    pub fn is_gone_within(&self, most: Duration) -> bool {
        process::wait_until(most, || process::has_ended(&self.child))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.input = None;
        process::wait_until(END_WITHIN, || process::has_ended(&self.child));
        process::end(&mut self.child, libc::SIGKILL, Duration::ZERO);
    }
}
