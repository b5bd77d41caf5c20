//! Agents: processes that drive one load together, each its share, at the same time, over connections of their own.
//!
//! Main type: [`Agents`]. A trial with `load.agents` has as many; the run sets up the database, watches the machine and the server, and joins what
//! the agents have observed. Invariants: all agents begin at one time of one clock; observations join bucket for bucket; a trial that has
//! lost an agent has no figures.

mod bus;
mod clocks;
mod local;
mod message;
#[cfg(any(test, feature = "fuzzed"))]
pub mod pretended;
mod readers;
mod remote;
mod serve;
mod watching;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};

use super::lost::AgentLost;
use super::opening::Opening;
use crate::load::{Clock, Observed, Observer, Share, cpu_count, loop_count, monotonic};
use crate::measurement::{APART_LEAST_S, AgentMeasurement, Measurement, OperationMeasurement, starts_apart_s};
use crate::operation::KindNames;
use crate::reason::Reason;
use crate::server::interrupted;
use crate::trial::{Settings, Trial};
use crate::units::show_seconds;

pub use bus::{Bus, BusAddress, Credentials, check_address};
pub use readers::{RemoteReaders, take_readers};
pub use remote::{Lacking, Muster, version_of};
pub use serve::serve;
pub use watching::watch;
pub use worker::work_as_load;

use clocks::ClockReading;
use message::{FromAgent, Order, Readiness, ShareDone, ToAgent};

/// How long agents may take to connect all clients.
const READY_WITHIN: Duration = Duration::from_secs(120);
/// How long an agent may be silent while it drives, or while its clock is read.
const SILENT_MOST: Duration = Duration::from_millis(1_800);
/// Time from the last agent's readiness to the start: the message with the time of the start has to reach all of them before it.
const LEAD: Duration = Duration::from_millis(50);
const LEAD_EACH: Duration = Duration::from_millis(2);
/// Longest wait of the run between two looks at the time.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often agents on other machines are told that the run is there.
const WATCHED_EVERY: Duration = Duration::from_millis(500);
/// How often an agent's clock is read before the load, and after it.
const PINGS: u32 = 16;
const PINGS_AFTER: u32 = 4;
/// How many agents are asked for their clocks one after the other, at most.
const READ_IN_TURN: usize = 32;

/// The way to an agent.
trait Link: Send {
    /// Sends a message.
    ///
    /// # Errors
    /// Fails if the agent is gone.
    fn tell(&mut self, message: &ToAgent) -> anyhow::Result<()>;

    /// Returns the name of the agent's host, if it is another machine; its clock is another one, then.
    fn host(&self) -> Option<&str>;

    /// Returns the agent's process, if it is on this machine.
    fn pid(&self) -> Option<u32>;

    /// Lets the agent end, without waiting for it.
    fn let_go(&mut self);

    /// Ends an agent that says nothing any more, and would not end by itself.
    fn end(&mut self) {
        self.let_go();
    }
}

/// Something that was heard of an agent: its place, and a message or why there will be none.
type Heard = (usize, Result<FromAgent, String>);

/// The agents of a trial, with all clients connected. Dropping it ends them.
pub struct Agents {
    links: Vec<Box<dyn Link>>,
    heard: Receiver<Heard>,
    /// The clock of each agent, as it was read last before the load.
    clocks: Vec<ClockReading>,
    /// What each agent said when its clients were connected.
    readiness: Vec<Readiness>,
    clients: Vec<u32>,
    /// When agents on other machines were last told that the run is there.
    watched: Instant,
}

impl Drop for Agents {
    fn drop(&mut self) {
        // All of them end at the same time; then each is waited for.
        self.links.iter_mut().for_each(|link| link.let_go());
    }
}

impl fmt::Debug for Agents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Agents({})", self.links.len())
    }
}

impl Agents {
    /// Starts the agents of a trial, and waits until all of their clients are connected to the database of `opening`. With a muster they are those that
    /// have joined it, otherwise processes of this machine. `None` if the trial has no agents.
    ///
    /// # Errors
    /// Fails if an agent cannot be started or cannot connect, or if its clock steps.
    pub fn start(trial: &Trial, opening: Opening, muster: Option<&Muster>) -> anyhow::Result<Option<Agents>> {
        let load = &trial.case.settings.load;
        let Some(wanted) = load.agents else { return Ok(None) };
        let (sender, heard) = mpsc::channel();
        let mut links: Vec<Box<dyn Link>> = Vec::new();
        match muster {
            Some(muster) => {
                let agents = muster.take(wanted as usize, &trial.id, sender)?;
                links.extend(agents.into_iter().map(|agent| Box::new(agent) as Box<dyn Link>));
            }
            None => {
                for place in 0..wanted {
                    links.push(Box::new(local::LocalAgent::start(place as usize, sender.clone())?));
                }
            }
        }
        // These may be fewer than were wanted.
        let of = links.len() as u32;
        let shares = (0..of).map(|place| Share { place, of });
        let clients = shares.clone().map(|share| share.clients(load.clients).len() as u32).collect();
        let (clocks, readiness) = (vec![ClockReading::own(); links.len()], vec![Readiness::default(); links.len()]);
        let mut agents = Agents { links, heard, clocks, readiness, clients, watched: Instant::now() };
        let clocks_before = agents.read_clocks(PINGS)?;
        // The agents of one machine share its CPUs.
        let loops = loop_count(load.clients as usize, cpu_count()).div_ceil(of as usize);
        for share in shares {
            let loops = u32::try_from(loops).ok().filter(|_| muster.is_none());
            let watches_host = muster.is_some();
            let order = Order { trial: trial.clone(), share, opening: opening.clone(), loops, watches_host };
            agents.tell(share.place as usize, &ToAgent::Prepare(Box::new(order)))?;
        }
        agents.wait_until_ready()?;
        agents.clocks = agents.read_clocks(PINGS)?;
        agents.check_clocks(&clocks_before)?;
        muster.into_iter().for_each(|muster| agents.tell_of_hosts(muster));
        Ok(Some(agents))
    }

    /// Says which hosts are not quiet, once each in a run.
    fn tell_of_hosts(&self, muster: &Muster) {
        for (link, readiness) in self.links.iter().zip(&self.readiness) {
            if let (Some(host), Some((others_cpu, cpus))) = (link.host(), readiness.is_disturbed()) {
                muster.say_once(host, &format!("note: others keep {others_cpu:.1} of the {cpus} CPUs of {host} busy, from where an agent drives a share of the load"));
            }
        }
    }

    /// Returns the processes of the agents on this machine.
    pub fn pids(&self) -> Vec<u32> {
        self.links.iter().filter_map(|link| link.pid()).collect()
    }

    fn lost(&self, place: usize, why: impl Into<String>) -> anyhow::Error {
        let host = self.links[place].host().map(str::to_owned);
        let (agent, of) = (place as u32 + 1, self.links.len() as u32);
        anyhow::Error::new(AgentLost { agent, of, host, why: why.into() })
    }

    fn tell(&mut self, place: usize, message: &ToAgent) -> anyhow::Result<()> {
        self.links[place].tell(message).map_err(|error| self.lost(place, format!("{error:#}")))
    }

    /// Waits for the next message of an agent; `None` if none came within `most`.
    fn hear(&self, most: Duration) -> anyhow::Result<Option<(usize, FromAgent)>> {
        match self.heard.recv_timeout(most) {
            Ok((place, Ok(FromAgent::Failed(error)))) => Err(self.lost(place, error)),
            Ok((place, Ok(message))) => Ok(Some((place, message))),
            Ok((place, Err(why))) => Err(self.lost(place, why)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(anyhow!("nothing more is heard of any agent")),
        }
    }

    /// Tells agents on other machines from time to time that the run is there; those on this machine end with it.
    fn watch(&mut self) -> anyhow::Result<()> {
        if self.watched.elapsed() < WATCHED_EVERY {
            return Ok(());
        }
        self.watched = Instant::now();
        let remote = |place: &usize| self.links[*place].host().is_some();
        let remote: Vec<usize> = (0..self.links.len()).filter(remote).collect();
        remote.into_iter().try_for_each(|place| self.tell(place, &ToAgent::Watched))
    }

    fn wait_until_ready(&mut self) -> anyhow::Result<()> {
        let until = Instant::now() + READY_WITHIN;
        let mut ready = vec![false; self.links.len()];
        while let Some(waiting) = ready.iter().position(|is_ready| !is_ready) {
            self.watch()?;
            if let Some((place, FromAgent::Ready(readiness))) = self.hear(LOOK_EVERY)? {
                (ready[place], self.readiness[place]) = (true, readiness);
            }
            if interrupted() {
                bail!("interrupted");
            }
            if Instant::now() > until {
                return Err(self.lost(waiting, format!("its clients were not connected within {}", show(READY_WITHIN))));
            }
        }
        Ok(())
    }

    /// Reads the clocks of the agents in several round trips; that of agents on this machine is its own. Many agents are asked at a time, each with a round
    /// trip of its own, so that a thousand take no longer than [`READ_IN_TURN`].
    fn read_clocks(&mut self, pings: u32) -> anyhow::Result<Vec<ClockReading>> {
        let is_remote = |place: &usize| self.links[*place].host().is_some();
        let remote: Vec<usize> = (0..self.links.len()).filter(is_remote).collect();
        let mut best: Vec<Option<ClockReading>> = vec![None; self.links.len()];
        for number in 0..pings {
            for together in remote.chunks(remote.len().div_ceil(READ_IN_TURN).max(1)) {
                self.ping(together, number, &mut best)?;
            }
        }
        Ok(best.into_iter().map(|best| best.unwrap_or(ClockReading::own())).collect())
    }

    fn ping(&mut self, agents: &[usize], number: u32, best: &mut [Option<ClockReading>]) -> anyhow::Result<()> {
        let mut sent: BTreeMap<usize, u64> = BTreeMap::new();
        for place in agents {
            sent.insert(*place, monotonic::now_ns());
            self.tell(*place, &ToAgent::Ping(number))?;
        }
        let until = Instant::now() + SILENT_MOST;
        while let Some(waiting) = sent.keys().next().copied() {
            if let Some((place, FromAgent::Pong(of, there_ns))) = self.hear(LOOK_EVERY)?
                && of == number
                && let Some(sent_ns) = sent.remove(&place)
            {
                let reading = ClockReading::within(sent_ns, there_ns);
                best[place] = Some(best[place].map_or(reading, |best| best.better(reading)));
            }
            if Instant::now() > until {
                return Err(self.lost(waiting, "it did not say what its clock reads"));
            }
        }
        Ok(())
    }

    /// Checks that no clock was set since it was read before.
    fn check_clocks(&self, before: &[ClockReading]) -> anyhow::Result<()> {
        for (place, (now, before)) in self.clocks.iter().zip(before).enumerate() {
            if let Some(within_s) = now.stepped(*before) {
                let (drift, within) = (show_seconds(now.drift_s(*before).abs()), show_seconds(within_s));
                let why = format!(
                    "its clock went {drift} apart from that of this machine within {within}; wait until its time synchronisation has settled"
                );
                return Err(self.lost(place, why));
            }
        }
        Ok(())
    }

    /// Lets all agents begin at one time, and returns what became of it. `attendant` watches the measured phase.
    ///
    /// # Errors
    /// Fails with an `AgentLost` as soon as one has failed, has ended or is silent; the others are ended.
    pub fn drive(mut self, settings: &Settings, attendant: &mut dyn Observer) -> anyhow::Result<Together> {
        let shares = self.drive_all(settings, attendant)?;
        // Their figures are complete: an agent that has gone since takes nothing from them.
        let after = self.read_clocks(PINGS_AFTER).ok();
        let after: Vec<Option<ClockReading>> = (0..shares.len()).map(|place| Some(after.as_ref()?[place])).collect();
        let each = shares.iter().zip(&after).enumerate();
        let agents = each.map(|(place, (share, after))| self.measured(place, share, *after)).collect();
        let against =
            after.iter().enumerate().filter_map(|(place, after)| self.clock_reason(place, (*after)?)).collect();
        let observed = Observed::joined(shares.into_iter().map(|share| share.observed).collect());
        let observed = observed.ok_or_else(|| anyhow!("nothing was driven"))?;
        Ok(Together { observed, agents, against })
    }

    /// Returns why a trial is invalid if the clock of an agent was set during the load.
    fn clock_reason(&self, place: usize, after: ClockReading) -> Option<Reason> {
        let (before, host) = (self.clocks[place], self.links[place].host()?.to_owned());
        let within_s = after.stepped(before)?;
        let drift_s = after.drift_s(before).abs();
        Some(Reason::AgentClock { agent: place as u32 + 1, host: Some(host), drift_s, within_s })
    }

    fn drive_all(&mut self, settings: &Settings, attendant: &mut dyn Observer) -> anyhow::Result<Vec<ShareDone>> {
        let of = self.links.len();
        let start_ns = monotonic::now_ns() + (LEAD + LEAD_EACH * of as u32).as_nanos() as u64;
        for place in 0..of {
            let there_ns = start_ns.saturating_add_signed(self.clocks[place].ahead_ns);
            self.tell(place, &ToAgent::Start(there_ns))?;
        }
        let clock = Clock::since(start_ns);
        let measure_ns = (settings.load.warmup_s * 1e9) as u64;
        attendant.begins(clock, measure_ns);
        let mut silent = Silent::until(Instant::now() + LEAD + LEAD_EACH * of as u32, of);
        let mut done: Vec<Option<ShareDone>> = (0..of).map(|_| None).collect();
        let (mut is_measuring, mut is_stopped) = (false, false);
        let outcome = loop {
            if done.iter().all(Option::is_some) {
                break Ok(());
            }
            if let Err(error) = self.watch() {
                break Err(error);
            }
            let now_ns = clock.now_ns();
            if !is_measuring && now_ns >= measure_ns {
                is_measuring = true;
                attendant.measure();
            }
            let until_measure = Duration::from_nanos(measure_ns.saturating_sub(now_ns));
            match self.hear(if is_measuring { LOOK_EVERY } else { LOOK_EVERY.min(until_measure) }) {
                Err(error) => break Err(error),
                Ok(Some((place, message))) => {
                    silent.ends(place);
                    if let FromAgent::Done(share) = message {
                        if let Err(why) = share.check(self.clients[place] as usize) {
                            break Err(self.lost(place, why));
                        }
                        done[place] = Some(*share);
                    }
                }
                Ok(None) => {}
            }
            silent.goes_on(Instant::now());
            if let Some(place) = (0..of).find(|place| done[*place].is_none() && silent.is_too_long(*place)) {
                self.links[place].end();
                break Err(self.lost(place, format!("nothing was heard of it for {}", show(SILENT_MOST))));
            }
            if !is_stopped && attendant.is_interrupted() {
                is_stopped = true;
                (0..of).try_for_each(|place| self.tell(place, &ToAgent::Stop))?;
            }
        };
        if !is_measuring {
            attendant.measure();
        }
        attendant.drained();
        outcome.map(|()| done.into_iter().flatten().collect())
    }

    fn measured(&self, place: usize, share: &ShareDone, after: Option<ClockReading>) -> AgentMeasurement {
        let (host, clock) = (self.links[place].host().map(str::to_owned), self.clocks[place]);
        let clock_drift_s = after.filter(|_| host.is_some()).map(|after| after.drift_s(clock));
        let mut all = OperationMeasurement::default();
        share.observed.tally.operations(&KindNames::default()).values().for_each(|operation| all.merge(operation));
        AgentMeasurement {
            host,
            clients: self.clients[place],
            began_late_s: share.began_late_s,
            clock_error_s: clock.error_ns as f64 / 1e9,
            clock_drift_s,
            scheduled: all.scheduled,
            completed: all.completed,
            failed: all.failed,
            cpu_s: share.observed.loops.iter().map(|each| each.cpu_s).sum(),
            load_threads: share.observed.loops.len() as u32,
            resources: share.resources.clone(),
            others_cpu_before: self.readiness[place].others_cpu,
            response_time: all.response_time.packed(),
        }
    }
}

/// Shows a time as everywhere else.
fn show(time: Duration) -> String {
    show_seconds(time.as_secs_f64())
}

/// How long each agent has been silent. Time in which the run itself stood still does not count: what agents said meanwhile is not read yet.
struct Silent {
    looked: Instant,
    each: Vec<Duration>,
}

impl Silent {
    /// Nothing is expected of `of` agents until a time.
    fn until(begin: Instant, of: usize) -> Self {
        Silent { looked: begin, each: vec![Duration::ZERO; of] }
    }

    /// Notes that an agent has said something.
    fn ends(&mut self, place: usize) {
        self.each[place] = Duration::ZERO;
    }

    /// Notes that time has passed since the last look.
    fn goes_on(&mut self, now: Instant) {
        let passed = now.saturating_duration_since(self.looked).min(2 * LOOK_EVERY);
        self.looked = self.looked.max(now);
        self.each.iter_mut().for_each(|silent| *silent += passed);
    }

    fn is_too_long(&self, place: usize) -> bool {
        self.each[place] > SILENT_MOST
    }
}

/// What agents have done together.
pub struct Together {
    /// What they have observed together.
    pub observed: Observed,
    /// Each of them, in their order.
    pub agents: Vec<AgentMeasurement>,
    /// What speaks against the trial.
    pub against: Vec<Reason>,
}

/// Judges a trial by its agents. It is invalid if they did not begin together; a late start within the warm-up takes nothing from the measured phase, which
/// begins and ends at the same times for all.
pub fn judge(measurement: &mut Measurement, settings: &Settings, against: Vec<Reason>) {
    let agents = &measurement.agents;
    let errors_s = agents.iter().map(|agent| agent.clock_error_s).fold(0.0, f64::max);
    let (apart_s, most_s) = (starts_apart_s(agents) + errors_s, settings.load.warmup_s.max(APART_LEAST_S));
    measurement.invalid_because.extend((apart_s > most_s).then_some(Reason::AgentsApart { apart_s, most_s }));
    measurement.invalid_because.extend(against);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_silent_for_as_long_as_the_run_has_listened() {
        let begin = Instant::now();
        let mut silent = Silent::until(begin + Duration::from_secs(1), 2);
        silent.goes_on(begin + Duration::from_millis(900));
        silent.goes_on(begin + Duration::from_secs(600));
        assert!(!silent.is_too_long(0), "the run stood still for ten minutes");
        for look in 1..=100 {
            silent.goes_on(begin + Duration::from_secs(600) + look * LOOK_EVERY);
            silent.ends(1);
        }
        assert!(silent.is_too_long(0) && !silent.is_too_long(1));
    }
}
