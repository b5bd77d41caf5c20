//! Workers: further processes of loadline's own program, which do a part of a trial apart from the one that writes.
//!
//! Main type: [`Worker`]. A worker is given lines on its standard input and answers with lines on its standard output. Invariant: it
//! ends when its [`Worker`] is dropped, and when loadline dies.

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
    /// None once somebody else listens to it.
    output: Option<BufReader<ChildStdout>>,
}

impl Worker {
    /// Starts loadline's own program with these arguments.
    ///
    /// # Errors
    /// As the operating system answers.
    pub fn start(arguments: &[&str]) -> io::Result<Worker> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let conditions = Conditions::own(libc::SIGKILL);
        let mut child = process::spawn(command, &conditions)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let output = output.ok_or_else(|| io::Error::other("a worker without output"))?;
        Ok(Worker { child, input, output: Some(BufReader::new(output)) })
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Gives it a line.
    ///
    /// # Errors
    /// When it has ended.
    pub fn tell(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or_else(|| io::Error::other("its input is closed"))?;
        input.write_all(format!("{line}\n").as_bytes())
    }

    /// Waits for its next line.
    ///
    /// # Errors
    /// When it has ended.
    pub fn hear(&mut self) -> io::Result<String> {
        let mut line = String::new();
        let output = self.output.as_mut().ok_or_else(|| io::Error::other("somebody else listens to it"))?;
        match output.read_line(&mut line)? {
            0 => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended without an answer")),
            _ => Ok(line.trim_end().to_owned()),
        }
    }

    /// All that it will say from now on, for somebody else to listen to; none where somebody does already.
    pub fn take_output(&mut self) -> Option<BufReader<ChildStdout>> {
        self.output.take()
    }

    /// Closes its input, at which it ends in order.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Kills it; it is gone when it waits for nothing any more that cannot be interrupted.
    pub fn kill(&self) {
        ProcessIdentity::of(self.pid()).into_iter().for_each(|identity| identity.signal(libc::SIGKILL));
    }

    /// Waits until it is gone; whether it is.
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
