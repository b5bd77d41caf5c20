//! The process that drives one share of a trial's load. Main function: [`work_as_load`].
//!
//! Invariant: what it says while it drives comes from the thread that attends the load, never from a load thread.

use std::io::BufRead;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};

use super::super::asked::ask;
use super::super::connections::check_share;
use super::super::driving::{connect_all, connect_session, connect_wire, sources};
use super::super::entry::{entry_of, open_within_limits};
use super::super::machine::MachineWatch;
use super::super::notes::sentence;
use super::super::pinned::Pinned;
use super::super::workers::say;
use super::message::{FromAgent, Order, Readiness, ShareDone, ToAgent};
use super::show;
use crate::load::{Clock, Group, Observer, drive_groups, monotonic, no_thread};
use crate::monitor::{Others, Targets, machine_cpus};
use crate::workload::{Client, Work};

/// Time between two signs of life.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
/// How long an agent waits for the start once its clients are connected.
const START_WITHIN: Duration = Duration::from_secs(600);
/// An agent that is told to begin so far ahead, in nanoseconds, has another clock than the run believes.
const AHEAD_MOST_NS: u64 = 60_000_000_000;

/// How long an agent looks at its host at least before the load begins: the kernel counts in hundredths of a second.
const LOOK_LEAST: Duration = Duration::from_millis(200);

/// Runs `loadline work load`: takes one order on the standard input, carries it out, and writes the outcome.
///
/// # Errors
/// Fails if the input is not an order, or if nobody reads the output.
pub fn work_as_load() -> anyhow::Result<()> {
    let (sender, told) = mpsc::channel();
    let following = std::thread::Builder::new().name("follow".to_owned()).spawn(move || {
        // The sender is dropped when the input ends: the run is gone, and so is the reason to go on.
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(message) = serde_json::from_str::<ToAgent>(&line) else { break };
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    following.map_err(|error| anyhow!(no_thread("an agent", &error)))?;
    let outcome = match told.recv().context("the order")? {
        ToAgent::Prepare(order) => carry_out(&order, &told),
        _ => bail!("the first message is no order"),
    };
    tell(&outcome.unwrap_or_else(|error| FromAgent::Failed(sentence(&error))))
}

fn tell(message: &FromAgent) -> anyhow::Result<()> {
    say(&serde_json::to_string(message)?)?;
    Ok(())
}

/// Connects the clients of a share, waits for the start, and drives them.
fn carry_out(order: &Order, told: &Receiver<ToAgent>) -> anyhow::Result<FromAgent> {
    let Order { trial, share, opening, loops, watches_host } = order;
    check_share(share.clients(trial.case.settings.load.clients).len())?;
    let before = watches_host.then(|| (Instant::now(), Others::begin(&[""; 0])));
    let mut settings = trial.case.settings.clone();
    settings.load.loops = settings.load.loops.or(*loops);
    let settings = &settings;
    let target = open_within_limits(entry_of(&opening.settings)?, &opening.settings, opening.endpoint.as_ref(), None)?;
    let work = Arc::new(Work::new(settings).map_err(anyhow::Error::msg)?);
    work.count_rows()?;
    let work = ask(settings, work, &*target, true)?;
    let connections = connect_all(&*target, &work, settings, (&settings.load, *share))?;
    let clients = settings.load.clients;
    let of = |number| Client { number, of: clients, seed: trial.seed };
    let sources = sources(&work, share.clients(clients), |number| work.workload(of(number)))?;
    let (load, share) = (&settings.load, *share);
    let group = Group { settings: load, share, connections, sources, keeps_acknowledged: false, pins_loops: false };
    tell(&FromAgent::Ready(before.map(readiness).unwrap_or_default()))?;
    let start_ns = wait_for_start(told)?;
    let wire = |client| connect_wire(&*target, client, &work, settings);
    let session = |client| connect_session(&*target, client, &work, settings);
    let host = watches_host.then(|| MachineWatch::new(Targets::none(), settings, &[]));
    let mut attending = Attending { start_ns, began_late_s: 0.0, told, said: Instant::now(), host };
    let _pinned = Pinned::as_asked(settings)?;
    let observed = drive_groups(vec![group], trial.seed, (&wire, &session), &mut attending);
    let observed = observed.map_err(anyhow::Error::msg)?.pop().context("nothing was driven")?;
    let Attending { began_late_s, host, .. } = attending;
    let resources = host.and_then(|host| host.finish(None, observed.measured_s)).map(|(_, resources)| resources);
    Ok(FromAgent::Done(Box::new(ShareDone { observed, began_late_s, resources })))
}

/// Returns what others did on this host while the clients connected, and for at least [`LOOK_LEAST`].
fn readiness((begun, others): (Instant, Others)) -> Readiness {
    std::thread::sleep(LOOK_LEAST.saturating_sub(begun.elapsed()));
    Readiness { cpus: machine_cpus(), others_cpu: others.end() }
}

/// Answers pings until the run says when to begin. Returns that time, by this machine's monotonic clock in nanoseconds.
fn wait_for_start(told: &Receiver<ToAgent>) -> anyhow::Result<u64> {
    loop {
        match told.recv_timeout(START_WITHIN) {
            Ok(ToAgent::Ping(number)) => tell(&FromAgent::Pong(number, monotonic::now_ns()))?,
            Ok(ToAgent::Start(at_ns)) if at_ns > monotonic::now_ns().saturating_add(AHEAD_MOST_NS) => {
                bail!("it was told to begin in more than a minute; its clock was set while it was compared")
            }
            Ok(ToAgent::Start(at_ns)) => return Ok(at_ns),
            Ok(ToAgent::Watched) => {}
            Ok(ToAgent::Prepare(_) | ToAgent::Read(_) | ToAgent::Line(_)) => bail!("it was given a second order"),
            Ok(ToAgent::Stop) | Err(RecvTimeoutError::Disconnected) => bail!("it was stopped before it began"),
            Err(RecvTimeoutError::Timeout) => bail!("it was not told to begin within {}", show(START_WITHIN)),
        }
    }
}

/// Begins the load at the time that was told, and gives signs of life while it lasts.
struct Attending<'a> {
    start_ns: u64,
    began_late_s: f64,
    told: &'a Receiver<ToAgent>,
    said: Instant,
    host: Option<MachineWatch>,
}

impl Observer for Attending<'_> {
    fn start(&mut self) -> Clock {
        monotonic::sleep_until_ns(self.start_ns);
        self.began_late_s = monotonic::now_ns().saturating_sub(self.start_ns) as f64 / 1e9;
        Clock::since(self.start_ns)
    }

    fn measure(&mut self) {
        self.host.iter_mut().for_each(MachineWatch::measure);
    }

    fn drained(&mut self) {
        self.host.iter_mut().for_each(MachineWatch::drained);
    }

    fn is_interrupted(&mut self) -> bool {
        let is_told = matches!(self.told.try_recv(), Ok(ToAgent::Stop) | Err(TryRecvError::Disconnected));
        let mut is_gone = false;
        if self.said.elapsed() >= ALIVE_EVERY {
            self.said = Instant::now();
            is_gone = tell(&FromAgent::Alive).is_err();
        }
        is_told || is_gone
    }
}
