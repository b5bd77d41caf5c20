//! Agents on other machines, reached over NATS: the run's side. Main types: [`Muster`] and [`RemoteAgent`].
//!
//! Invariant: no password leaves the run; an agent knows its own.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use serde::{Deserialize, Serialize};

use super::super::notes::note;
use super::bus::Bus;
use super::message::{FromAgent, ToAgent};
use super::{Heard, Link, show};
use crate::load::no_thread;
use crate::server::interrupted;

/// The subject on which a run asks who is there.
pub const CALL: &str = "loadline.call";
/// How long a run waits for agents, for those that are left if it goes on with these, and how often it asks.
const THERE_WITHIN: Duration = Duration::from_secs(5);
const LEFT_WITHIN: Duration = Duration::from_millis(1_200);
const CALL_EVERY: Duration = Duration::from_millis(500);
/// Longest name of a host or an agent that is taken over.
const NAME_BYTES_MOST: usize = 100;

/// Returns the subject on which an agent receives.
pub fn subject_of(agent: &str) -> String {
    format!("loadline.agent.{agent}")
}

/// Returns what must be the same on both sides: the version, and the program itself.
pub fn version() -> String {
    version_of(Path::new("/proc/self/exe"))
}

/// Returns the version of a program of loadline's, with its checksum.
pub fn version_of(program: &Path) -> String {
    format!("{} ({:08x})", env!("CARGO_PKG_VERSION"), checksum_of(program).unwrap_or_default())
}

fn checksum_of(program: &Path) -> std::io::Result<u32> {
    let (mut file, mut part, mut sum) = (std::fs::File::open(program)?, vec![0; 64 << 10], crc32fast::Hasher::new());
    loop {
        match file.read(&mut part)? {
            0 => return Ok(sum.finalize()),
            bytes => sum.update(&part[..bytes]),
        }
    }
}

/// What a run says to agents, and the subject on which it receives their answers.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToAgents {
    /// It asks who is free.
    Call {
        /// Where answers go.
        reply: String,
    },
    /// It says something of a trial to one agent.
    OfTrial {
        /// Where answers go.
        reply: String,
        /// What it says.
        message: ToAgent,
    },
}

/// What an agent says.
#[derive(Serialize, Deserialize)]
pub struct Said {
    /// The agent.
    pub agent: String,
    /// What it says.
    pub what: What,
}

/// What an agent says.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// It is free.
    Here {
        /// The name of its host.
        host: String,
        /// Its version, as [`version`] returns it.
        version: String,
    },
    /// Something of the trial that it works for.
    OfTrial(FromAgent),
    /// Its process has ended, or its answers cannot be understood.
    Gone(String),
}

/// What a run does if agents are lacking that were there when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lacking {
    /// It waits until there are as many again.
    #[default]
    Wait,
    /// Those that are left drive the load.
    Fewer,
}

/// The agents that are free, as far as they have answered.
pub struct Muster {
    bus: Arc<Bus>,
    version: String,
    lacking: Lacking,
    /// What was said already, by what it was about.
    said: Mutex<BTreeSet<String>>,
}

/// Who has answered a call.
#[derive(Default)]
struct There {
    /// Hosts and names of agents.
    agents: BTreeSet<(String, String)>,
    /// Something about an agent that cannot be taken.
    stranger: Option<String>,
}

impl Muster {
    /// Makes a muster over a connection.
    pub fn new(bus: Arc<Bus>, lacking: Lacking) -> Self {
        Muster { bus, version: version(), lacking, said: Mutex::default() }
    }

    /// The connection to the NATS server.
    pub(super) fn bus(&self) -> &Arc<Bus> {
        &self.bus
    }

    /// Says something about a host, or about the agents, unless that was said in this run before.
    pub fn say_once(&self, about: &str, line: &str) {
        let is_new = self.said.lock().is_ok_and(|mut said| said.insert(about.to_owned()));
        if is_new {
            note(line);
        }
    }

    /// Waits until as many agents have said that they are free.
    ///
    /// # Errors
    /// Fails with who has answered, if these are too few; agents of other versions do not count.
    pub fn wait_for(&self, wanted: usize) -> anyhow::Result<()> {
        let There { agents, stranger } = self.call(wanted, THERE_WITHIN)?;
        if agents.len() < wanted {
            let hosts: Vec<&str> = agents.iter().map(|(host, _)| host.as_str()).collect();
            let who = if hosts.is_empty() { String::new() } else { format!(" ({})", hosts.join(", ")) };
            bail!(
                "{} of {wanted} agents{who} answered at {} within {}{}; start more with loadline agent --nats, or write fewer",
                agents.len(),
                self.bus.shown(),
                show(THERE_WITHIN),
                stranger.unwrap_or_default()
            );
        }
        Ok(())
    }

    /// Calls until as many agents have answered, or until this time has passed.
    fn call(&self, wanted: usize, within: Duration) -> anyhow::Result<There> {
        let reply = format!("loadline.run.{}.muster", self.bus.own);
        let said = self.bus.receive::<Said>(std::slice::from_ref(&reply))?;
        let (begun, mut called, mut there) = (Instant::now(), None::<Instant>, There::default());
        while there.agents.len() < wanted && begun.elapsed() <= within {
            if interrupted() {
                bail!("interrupted");
            }
            if called.is_none_or(|called| called.elapsed() >= CALL_EVERY) {
                called = Some(Instant::now());
                self.bus.send(CALL, &ToAgents::Call { reply: reply.clone() })?;
            }
            match said.recv_timeout(Duration::from_millis(20)) {
                Ok(Said { agent, what: What::Here { host, version } }) => {
                    if [&agent, &host, &version].iter().any(|name| name.len() > NAME_BYTES_MOST) {
                        continue;
                    }
                    if version != self.version {
                        // It is passed over, and named where there are too few of the right version.
                        let own = &self.version;
                        there.stranger = Some(format!(
                            ", and the one on {host} is loadline {version}, where this is {own}: both must be the same program"
                        ));
                        continue;
                    }
                    there.agents.insert((host, agent));
                }
                Ok(_) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("the connection to {} is closed", self.bus.shown()),
            }
        }
        Ok(there)
    }

    /// Returns as many agents, each as its name and its host, in the order of these; or those that are left, if the run shall go on with them.
    fn gather(&self, wanted: usize) -> anyhow::Result<Vec<(String, String)>> {
        let within = match self.lacking {
            Lacking::Wait => THERE_WITHIN,
            Lacking::Fewer => LEFT_WITHIN,
        };
        loop {
            let There { agents, .. } = self.call(wanted, within)?;
            let is_enough = agents.len() >= wanted || self.lacking == Lacking::Fewer && !agents.is_empty();
            if is_enough {
                return Ok(agents.into_iter().take(wanted).map(|(host, agent)| (agent, host)).collect());
            }
            let there = agents.len();
            self.say_once(
                &format!("{there} of {wanted}"),
                &format!(
                    "note: {there} of {wanted} agents are there at {}, and the run waits for the others: start them with loadline agent --nats, or end the \
                     run with Ctrl-C and continue it with --resume",
                    self.bus.shown()
                ),
            );
        }
    }

    /// Takes as many agents into a trial, or those that are left. What they say goes to `heard`, with their place.
    ///
    /// # Errors
    /// Fails if the NATS server does not answer, or if the run is interrupted.
    pub fn take(&self, wanted: usize, trial: &str, heard: Sender<Heard>) -> anyhow::Result<Vec<RemoteAgent>> {
        let agents = self.gather(wanted)?;
        let reply = format!("loadline.run.{}.{trial}", self.bus.own);
        let said = self.bus.receive::<Said>(std::slice::from_ref(&reply))?;
        let places: BTreeMap<String, usize> =
            (0..).zip(&agents).map(|(place, (agent, _))| (agent.clone(), place)).collect();
        let trial = Arc::new(());
        let is_over = Arc::downgrade(&trial);
        let listening = std::thread::Builder::new().name("listen".to_owned()).spawn(move || {
            while is_over.strong_count() > 0 {
                let Said { agent, what } = match said.recv_timeout(CALL_EVERY) {
                    Ok(said) => said,
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
                let Some(place) = places.get(&agent) else { continue };
                let message = match what {
                    What::OfTrial(message) => Ok(message),
                    What::Gone(why) => Err(why),
                    What::Here { .. } => continue,
                };
                if heard.send((*place, message)).is_err() {
                    break;
                }
            }
        });
        listening.map_err(|error| anyhow!(no_thread("what agents say", &error)))?;
        let agent = |(name, host): (String, String)| RemoteAgent {
            bus: Arc::clone(&self.bus),
            subject: subject_of(&name),
            host,
            reply: reply.clone(),
            _trial: Arc::clone(&trial),
        };
        Ok(agents.into_iter().map(agent).collect())
    }
}

/// An agent on another machine.
pub struct RemoteAgent {
    bus: Arc<Bus>,
    subject: String,
    host: String,
    reply: String,
    /// Whoever listens to the agents of a trial does so as long as there is one.
    _trial: Arc<()>,
}

impl Link for RemoteAgent {
    fn tell(&mut self, message: &ToAgent) -> anyhow::Result<()> {
        let mut message = message.clone();
        if let Some(endpoint) = message.endpoint() {
            endpoint.password.clear();
        }
        self.bus.send(&self.subject, &ToAgents::OfTrial { reply: self.reply.clone(), message })
    }

    fn host(&self) -> Option<&str> {
        Some(&self.host)
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn let_go(&mut self) {
        // An agent that cannot be told ends by itself, because it does not hear of the run any more.
        let _ = self.tell(&ToAgent::Stop);
    }
}
