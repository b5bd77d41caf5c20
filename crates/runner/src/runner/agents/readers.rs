//! Groups of readers on the hosts of agents: the run's side. Main type: [`RemoteReaders`].
//!
//! An agent starts the process that a run would start here, and passes its lines on. Invariant: times that go to an agent and come from it are by the
//! agent's own clock; whoever uses them knows how far that can be wrong.

use std::collections::VecDeque;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::bail;

use super::super::lost::AgentLost;
use super::super::reading::ReadersOrder;
use super::clocks::ClockReading;
use super::message::{FromAgent, ToAgent};
use super::remote::RemoteAgent;
use super::{Heard, LOOK_EVERY, Link, Muster, PINGS, READY_WITHIN, SILENT_MOST, WATCHED_EVERY, show};
use crate::load::monotonic;
use crate::server::interrupted;

/// What was heard of each agent of a trial and is not read yet.
struct Letters {
    heard: Receiver<Heard>,
    each: Vec<Mailbox>,
}

/// What was heard of one agent.
struct Mailbox {
    messages: VecDeque<FromAgent>,
    lost: Option<String>,
    last: Instant,
}

impl Letters {
    /// Waits for something to be heard, at most for `most`, and sorts all that has been heard.
    fn sort(&mut self, most: Duration) {
        let mut next = self.heard.recv_timeout(most).ok();
        while let Some((place, what)) = next {
            if let Some(own) = self.each.get_mut(place) {
                own.last = Instant::now();
                match what {
                    Ok(FromAgent::Alive) => {}
                    Ok(FromAgent::Failed(why)) | Err(why) => own.lost = own.lost.take().or(Some(why)),
                    Ok(message) => own.messages.push_back(message),
                }
            }
            next = self.heard.try_recv().ok();
        }
    }
}

/// A group of readers on the host of an agent. Dropping it ends it.
pub struct RemoteReaders {
    agent: RemoteAgent,
    place: usize,
    of: usize,
    letters: Arc<Mutex<Letters>>,
    clock: ClockReading,
    watched: Instant,
}

impl Drop for RemoteReaders {
    fn drop(&mut self) {
        self.agent.let_go();
    }
}

/// Takes an agent for each of `of` groups, and reads their clocks.
///
/// # Errors
/// Fails if the NATS server or an agent does not answer.
pub fn take_readers(muster: &Muster, trial: &str, of: usize) -> anyhow::Result<Vec<RemoteReaders>> {
    let (sender, heard) = mpsc::channel();
    let agents = muster.take(of, trial, sender)?;
    if agents.len() < of {
        bail!("{} of {of} agents are left, and each group of readers needs one", agents.len());
    }
    let own = || Mailbox { messages: VecDeque::new(), lost: None, last: Instant::now() };
    let letters = Arc::new(Mutex::new(Letters { heard, each: (0..of).map(|_| own()).collect() }));
    let (clock, watched) = (ClockReading::own(), Instant::now());
    let group = |(place, agent)| RemoteReaders { agent, place, of, letters: Arc::clone(&letters), clock, watched };
    let mut groups: Vec<RemoteReaders> = agents.into_iter().enumerate().map(group).collect();
    for group in &mut groups {
        group.clock = group.read_clock()?;
    }
    Ok(groups)
}

impl RemoteReaders {
    /// Returns the name of the agent's host.
    pub fn host(&self) -> Option<&str> {
        self.agent.host()
    }

    /// Returns the time by which the agent's clock is ahead of this machine's, in nanoseconds.
    pub fn ahead_ns(&self) -> i64 {
        self.clock.ahead_ns
    }

    /// Has the agent start the readers, and waits until all of them are connected.
    ///
    /// # Errors
    /// Fails if they cannot be started or cannot connect.
    pub fn prepare(&mut self, order: ReadersOrder) -> anyhow::Result<()> {
        self.tell_agent(&ToAgent::Read(Box::new(order)))?;
        match self.hear_line(READY_WITHIN)? {
            line if line == "ready" => Ok(()),
            why => Err(self.lost(why)),
        }
    }

    /// Tells the readers a word with a time by this machine's clock.
    pub fn tell(&mut self, word: &str, time_ns: u64) {
        let there_ns = time_ns.saturating_add_signed(self.clock.ahead_ns);
        // An agent that is gone says so when its answer is read.
        let _ = self.tell_agent(&ToAgent::Line(format!("{word} {there_ns}")));
    }

    /// Tells the agent that the run is there, and returns whether the agent is.
    pub fn is_there(&mut self) -> bool {
        self.watch();
        let mut letters = self.letters();
        letters.sort(Duration::ZERO);
        let own = &letters.each[self.place];
        own.lost.is_none() && own.last.elapsed() < SILENT_MOST
    }

    /// Returns whether the readers have said what they saw, or will not say it any more.
    pub fn has_answered(&mut self) -> bool {
        let is_there = self.is_there();
        let letters = self.letters();
        !is_there || letters.each[self.place].messages.iter().any(|message| matches!(message, FromAgent::Line(_)))
    }

    /// Waits for what the readers have seen, as a line, and returns it with the largest error of each of their times, in seconds.
    ///
    /// # Errors
    /// Fails if the agent is gone or silent, or if its clock was set meanwhile.
    pub fn finish(&mut self, within: Duration) -> anyhow::Result<(String, f64)> {
        let line = self.hear_line(within)?;
        let (before, after) = (self.clock, self.read_clock()?);
        let drift_s = after.drift_s(before).abs();
        if let Some(within_s) = after.stepped(before) {
            let (drift, within) = (crate::units::show_seconds(drift_s), crate::units::show_seconds(within_s));
            return Err(self.lost(format!("its clock went {drift} apart from that of this machine within {within}")));
        }
        // Between both readings the clock has gone from the one to the other.
        Ok((line, (before.error_ns as f64 / 1e9).max(drift_s + after.error_ns as f64 / 1e9)))
    }

    fn letters(&self) -> std::sync::MutexGuard<'_, Letters> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lost(&self, why: impl Into<String>) -> anyhow::Error {
        let host = self.agent.host().map(str::to_owned);
        let (agent, of) = (self.place as u32 + 1, self.of as u32);
        anyhow::Error::new(AgentLost { agent, of, host, why: why.into() })
    }

    fn tell_agent(&mut self, message: &ToAgent) -> anyhow::Result<()> {
        self.agent.tell(message).map_err(|error| self.lost(format!("{error:#}")))
    }

    fn watch(&mut self) {
        if self.watched.elapsed() >= WATCHED_EVERY {
            self.watched = Instant::now();
            let _ = self.tell_agent(&ToAgent::Watched);
        }
    }

    fn hear_line(&mut self, within: Duration) -> anyhow::Result<String> {
        let until = Instant::now() + within;
        // What was silent before is not asked about.
        self.letters().each[self.place].last = Instant::now();
        loop {
            self.watch();
            if let FromAgent::Line(line) = self.hear(until)? {
                return Ok(line);
            }
        }
    }

    /// Waits for the next message.
    fn hear(&mut self, until: Instant) -> anyhow::Result<FromAgent> {
        loop {
            self.watch();
            let mut letters = self.letters();
            letters.sort(LOOK_EVERY);
            let own = &mut letters.each[self.place];
            let (message, lost) = (own.messages.pop_front(), own.lost.clone());
            let is_silent = own.last.elapsed() > SILENT_MOST;
            drop(letters);
            if let Some(message) = message {
                return Ok(message);
            }
            if let Some(why) = lost {
                return Err(self.lost(why));
            }
            if is_silent {
                return Err(self.lost(format!("nothing was heard of it for {}", show(SILENT_MOST))));
            }
            if interrupted() {
                bail!("interrupted");
            }
            if Instant::now() > until {
                return Err(self.lost("it did not answer in time"));
            }
        }
    }

    fn read_clock(&mut self) -> anyhow::Result<ClockReading> {
        let mut best = None::<ClockReading>;
        for number in 0..PINGS {
            let sent_ns = monotonic::now_ns();
            self.tell_agent(&ToAgent::Ping(number))?;
            let until = Instant::now() + SILENT_MOST;
            let reading = loop {
                match self.hear(until)? {
                    FromAgent::Pong(of, there_ns) if of == number => break ClockReading::within(sent_ns, there_ns),
                    _ => {}
                }
            };
            best = Some(best.map_or(reading, |best| best.better(reading)));
        }
        Ok(best.unwrap_or(ClockReading::own()))
    }
}
