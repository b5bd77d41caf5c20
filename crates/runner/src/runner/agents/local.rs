//! An agent on this machine: a process of loadline's own program. Main type: [`LocalAgent`].

use std::io::{BufRead, Read};
use std::sync::mpsc::Sender;

use anyhow::{Context, anyhow};

use super::message::{FromAgent, MESSAGE_BYTES_MOST, ToAgent};
use super::{Heard, Link};
use crate::load::no_thread;
use crate::server::Worker;

/// An agent on this machine. Dropping it ends the process.
pub struct LocalAgent {
    worker: Worker,
}

impl LocalAgent {
    /// Starts the agent with this place; what it says is passed on from a thread of its own.
    ///
    /// # Errors
    /// Fails if the process or the thread cannot be started.
    pub fn start(place: usize, heard: Sender<Heard>) -> anyhow::Result<LocalAgent> {
        let mut worker = Worker::start(&["work", "load"]).with_context(|| format!("starting agent {}", place + 1))?;
        let mut output = worker.take_output().context("an agent without output")?;
        let listening = std::thread::Builder::new().name("listen".to_owned()).spawn(move || {
            loop {
                let mut line = Vec::new();
                let message = match output.by_ref().take(MESSAGE_BYTES_MOST).read_until(b'\n', &mut line) {
                    Ok(0) => Err("its process has ended".to_owned()),
                    Ok(_) => serde_json::from_slice(&line)
                        .map_err(|error| format!("what it says is not understood: {error}")),
                    Err(error) => Err(error.to_string()),
                };
                let is_last = !matches!(message, Ok(FromAgent::Ready(_) | FromAgent::Pong(..) | FromAgent::Alive));
                if heard.send((place, message)).is_err() || is_last {
                    break;
                }
            }
        });
        listening.map_err(|error| anyhow!(no_thread("what an agent says", &error)))?;
        Ok(LocalAgent { worker })
    }
}

impl Link for LocalAgent {
    fn tell(&mut self, message: &ToAgent) -> anyhow::Result<()> {
        Ok(self.worker.tell(&serde_json::to_string(message)?)?)
    }

    fn host(&self) -> Option<&str> {
        None
    }

    fn pid(&self) -> Option<u32> {
        Some(self.worker.pid())
    }

    fn let_go(&mut self) {
        self.worker.close_input();
    }

    fn end(&mut self) {
        self.worker.kill();
    }
}
