//! `loadline agent`: waits on a NATS server for shares of trials. Main function: [`serve`].
//!
//! Each share is driven by a process of its own, to which the agent passes messages on. Invariant: an agent works for one run at a time, and a share
//! ends if nothing more is heard of its run.

use std::io::{BufRead, Read};
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use super::super::notes::note;
use super::super::opening::PASSWORD;
use super::bus::{Bus, BusAddress, Receiving};
use super::message::{FromAgent, MESSAGE_BYTES_MOST, ToAgent};
use super::remote::{CALL, Said, ToAgents, What, subject_of, version};
use crate::load::{monotonic, no_thread};
use crate::server::{Worker, interrupted};

/// How long nothing may be heard of a run while its share is driven, and before that: a run may have to prepare something.
const SILENT_MOST: Duration = Duration::from_secs(5);
const SILENT_BEFORE_MOST: Duration = Duration::from_secs(120);
/// Time between two signs of life of an agent whose readers are at work.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
/// Longest wait between two looks at what else there is to do.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A share that is driven.
struct Busy {
    worker: Worker,
    reply: String,
    /// When something was last heard of the run.
    heard: Instant,
    has_begun: bool,
    /// When a sign of life was given last, if this process gives them: readers do not.
    said: Option<Instant>,
}

impl Busy {
    fn is_left_alone(&self) -> bool {
        self.heard.elapsed() > if self.has_begun { SILENT_MOST } else { SILENT_BEFORE_MOST }
    }
}

/// Waits for shares of trials and drives them, until loadline is told to end.
///
/// # Errors
/// Fails if the NATS server cannot be reached.
pub fn serve(address: &BusAddress) -> anyhow::Result<()> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
    let own = format!("{:x}-{:x}", std::process::id(), monotonic::now_ns());
    let bus = Arc::new(Bus::connect(address, &own)?);
    let received: Receiving<ToAgents> = bus.receive(&[CALL.to_owned(), subject_of(&own)])?;
    let (host, version) = (if host.is_empty() { "an unnamed host".to_owned() } else { host }, version());
    note(&format!("agent on {host} waits for work at {}; Ctrl-C ends it", bus.shown()));
    let (ended, worker_ends) = mpsc::channel::<String>();
    let mut busy: Option<Busy> = None;
    while !interrupted() {
        let message = match received.recv_timeout(LOOK_EVERY) {
            Ok(message) => Some(message),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("the connection to {} is closed", bus.shown())),
        };
        // An agent is free as soon as it has said that its share is done.
        while let Ok(reply) = worker_ends.try_recv() {
            busy = busy.take().filter(|busy| busy.reply != reply);
        }
        if busy.as_ref().is_some_and(Busy::is_left_alone) {
            note("nothing more is heard of the run: its share is ended");
            busy = None;
        }
        if let Some(Busy { reply, said: Some(said), .. }) = &mut busy
            && said.elapsed() >= ALIVE_EVERY
        {
            *said = Instant::now();
            bus.send(reply, &Said { agent: own.clone(), what: What::OfTrial(FromAgent::Alive) })?;
        }
        match message {
            Some(ToAgents::Call { reply }) if busy.is_none() => {
                let what = What::Here { host: host.clone(), version: version.clone() };
                bus.send(&reply, &Said { agent: own.clone(), what })?;
            }
            Some(ToAgents::OfTrial { reply, message }) => take((reply, message), &bus, &mut busy, &ended)?,
            Some(ToAgents::Call { .. }) | None => {}
        }
    }
    Ok(())
}

/// Does what a run says.
fn take(
    (reply, message): (String, ToAgent),
    bus: &Arc<Bus>,
    busy: &mut Option<Busy>,
    ended: &mpsc::Sender<String>,
) -> anyhow::Result<()> {
    let is_its = busy.as_ref().is_some_and(|busy| busy.reply == reply);
    if let Some(busy) = busy.as_mut().filter(|_| is_its) {
        busy.heard = Instant::now();
    }
    let say = |what| bus.send(&reply, &Said { agent: bus.own.clone(), what });
    match message {
        ToAgent::Prepare(_) | ToAgent::Read(_) if busy.is_some() => {
            say(What::Gone("it works for another run".to_owned()))
        }
        mut order @ (ToAgent::Prepare(_) | ToAgent::Read(_)) => {
            if let (Some(endpoint), Ok(password)) = (order.endpoint(), std::env::var(PASSWORD)) {
                // No run sends one.
                endpoint.password = password;
            }
            match begin(&order, &reply, bus, ended) {
                Ok(worker) => {
                    let said = matches!(order, ToAgent::Read(_)).then(Instant::now);
                    *busy = Some(Busy { worker, reply, heard: Instant::now(), has_begun: false, said });
                }
                Err(error) => say(What::Gone(format!("{error:#}")))?,
            }
            Ok(())
        }
        ToAgent::Line(line) => {
            if let Some(busy) = busy.as_mut().filter(|_| is_its) {
                busy.has_begun = true;
                // A process that has ended says so itself.
                let _ = busy.worker.tell(&line);
            }
            Ok(())
        }
        ToAgent::Ping(number) => say(What::OfTrial(FromAgent::Pong(number, monotonic::now_ns()))),
        ToAgent::Watched => Ok(()),
        ToAgent::Stop => {
            // Nothing that it would still say counts, and it may be one that stands still.
            if let Some(busy) = busy.take_if(|_| is_its) {
                busy.worker.kill();
            }
            Ok(())
        }
        ToAgent::Start(_) => {
            if let Some(busy) = busy.as_mut().filter(|_| is_its) {
                busy.has_begun = true;
                // A worker that has ended says so itself.
                let _ = busy.worker.tell(&serde_json::to_string(&message)?);
            }
            Ok(())
        }
    }
}

/// Starts the process that drives a share or reads, and passes on what it says.
fn begin(order: &ToAgent, reply: &str, bus: &Arc<Bus>, ended: &mpsc::Sender<String>) -> anyhow::Result<Worker> {
    let (what, line) = match order {
        ToAgent::Read(order) => {
            note(&format!("readers of group {}", order.group + 1));
            ("readers", serde_json::to_string(order)?)
        }
        order => {
            if let ToAgent::Prepare(order) = order {
                note(&format!("share {} of {} of trial {}", order.share.place + 1, order.share.of, order.trial.id));
            }
            ("load", serde_json::to_string(order)?)
        }
    };
    let mut worker = Worker::start(&["work", what]).context("starting a process for the share")?;
    worker.tell(&line)?;
    let mut output = worker.take_output().context("a process without output")?;
    let (bus, ended, reply, are_lines) = (Arc::clone(bus), ended.clone(), reply.to_owned(), what == "readers");
    let passing_on = std::thread::Builder::new().name("pass on".to_owned()).spawn(move || {
        // Readers say that they are ready, or why not, and at the end what they saw.
        for number in 1.. {
            let mut line = Vec::new();
            let what = match output.by_ref().take(MESSAGE_BYTES_MOST).read_until(b'\n', &mut line) {
                Ok(0) => What::Gone("its process has ended".to_owned()),
                Ok(_) if are_lines => {
                    What::OfTrial(FromAgent::Line(String::from_utf8_lossy(line.trim_ascii_end()).into_owned()))
                }
                Ok(_) => {
                    serde_json::from_slice(&line).map_or_else(|error| What::Gone(error.to_string()), What::OfTrial)
                }
                Err(error) => What::Gone(error.to_string()),
            };
            let is_last = match &what {
                What::OfTrial(FromAgent::Line(line)) => number > 1 || line != "ready",
                what => matches!(what, What::Gone(_) | What::OfTrial(FromAgent::Done(_) | FromAgent::Failed(_))),
            };
            let is_sent = bus.send(&reply, &Said { agent: bus.own.clone(), what }).is_ok();
            if is_last || !is_sent {
                break;
            }
        }
        // The agent is gone only if the process ends.
        let _ = ended.send(reply);
    });
    passing_on.map_err(|error| anyhow!(no_thread("what a share says", &error)))?;
    Ok(worker)
}
