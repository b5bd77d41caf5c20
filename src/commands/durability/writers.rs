//! The writers: clients in their own process, which can be killed while it waits for a disk without power. They send the operations of the workload
//! `turnover` or `additions` one after the other, and report for each whether it was acknowledged before they send the next.
//!
//! Main functions: [`start`] and [`work_as_writers`], the work of the process. Invariant: the operations of a client follow from the seed, so that one line
//! for each operation, which states only how it ended, is enough.

use std::io::BufRead;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::super::output::sentence;
use crate::database::{self, Target, TargetSession};
use crate::load::no_thread;
use crate::runner::opening::Opening;
use crate::runner::workers::{order_of, say, start_worker};
use crate::server::Worker;
use crate::statement::Request;
use crate::trial::Settings;
use crate::workload::{Client, Work};

/// The order of the writers.
#[derive(Serialize, Deserialize)]
pub struct Order {
    /// The settings of the case, with the workload.
    pub settings: Settings,
    /// The data with which the database is opened.
    pub reach: Opening,
    /// The seed of the operations.
    pub seed: u64,
}

/// Pause before a writer connects again.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Longest time until killed writers are gone.
const GONE_WITHIN: Duration = Duration::from_secs(10);

/// The answers to each client's operations, in the order in which they were sent: the time of the acknowledgement in nanoseconds, or `None` for a failure.
pub type Answers = Vec<Vec<Option<u64>>>;

/// Writers that are running.
pub struct Writers {
    worker: Worker,
    listening: JoinHandle<Answers>,
}

/// Starts the writers and waits until all are connected; answers are timed from `clock`.
///
/// # Errors
/// Fails if a writer cannot connect or the process does not start.
pub fn start(order: &Order, clock: Instant) -> anyhow::Result<Writers> {
    let mut worker = start_worker("writers", order)?;
    let output = worker.take_output().context("somebody else listens to the writers")?;
    let clients = order.settings.load.clients as usize;
    let listen = move || {
        let mut answers: Answers = vec![Vec::new(); clients];
        for line in output.lines().map_while(Result::ok) {
            let told = line.split_once(' ').and_then(|(client, word)| Some((client.parse::<usize>().ok()?, word)));
            // A line that a kill has cut off belongs to an operation without an answer.
            let Some((client, word @ ("acknowledged" | "failed"))) = told else { continue };
            let now_ns = u64::try_from(clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
            answers.get_mut(client).into_iter().for_each(|own| own.push((word == "acknowledged").then_some(now_ns)));
        }
        answers
    };
    let listening = std::thread::Builder::new().name("writers".to_owned()).spawn(listen);
    Ok(Writers { worker, listening: listening.map_err(|error| anyhow!(no_thread("the writers", &error)))? })
}

impl Writers {
    /// Tells the writers to begin.
    ///
    /// # Errors
    /// Fails if the writers have ended.
    pub fn begin(&mut self) -> anyhow::Result<()> {
        self.worker.tell("begin").context("the writers have ended before they began")
    }

    /// Kills the writers; a process that waits for a disk may go on existing.
    pub fn kill(&self) {
        self.worker.kill();
    }

    /// Waits until writers that were killed or told to end are gone, and all their files closed.
    ///
    /// # Errors
    /// Fails if they do not end in time.
    pub fn wait_until_gone(&self) -> anyhow::Result<()> {
        if !self.worker.is_gone_within(GONE_WITHIN) {
            bail!("the process \"work writers\" does not end");
        }
        Ok(())
    }

    /// Lets each writer finish its operation, and waits until the writers are gone.
    ///
    /// # Errors
    /// Fails if they do not end in time.
    pub fn end(&mut self) -> anyhow::Result<()> {
        self.worker.close_input();
        self.wait_until_gone()
    }

    /// Lets each writer finish its operation, and returns the answers.
    ///
    /// # Errors
    /// Fails if the thread that listens to the writers has panicked.
    pub fn finish(self) -> anyhow::Result<Answers> {
        drop(self.worker);
        self.listening.join().map_err(|_| anyhow!("the thread that listens to the writers panicked"))
    }
}

/// Runs `loadline work writers`.
///
/// # Errors
/// Fails if the input ends or cannot be read, or the database cannot be opened.
pub fn work_as_writers() -> anyhow::Result<()> {
    let order: Order = order_of()?;
    let mut input = std::io::stdin().lines();
    let (work, target, sessions) = match open(&order) {
        Ok(opened) => opened,
        Err(error) => return Ok(say(&sentence(&error).replace('\n', " "))?),
    };
    say("ready")?;
    if input.next().is_none_or(|line| line.is_err()) {
        return Ok(());
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, session) in (0_u32..).zip(sessions) {
            let (work, target, order, is_over) = (&work, &*target, &order, &is_over);
            let write = move || Writer { work, target, number, is_over }.write(session, order);
            std::thread::Builder::new()
                .spawn_scoped(scope, write)
                .map_err(|error| anyhow!(no_thread("a writer", &error)))?;
        }
        // The end of the input tells the writers to end.
        input.next();
        is_over.store(true, Ordering::Relaxed);
        Ok(())
    })
}

type Opened = (Work, Box<dyn Target>, Vec<Box<dyn TargetSession>>);

fn open(order: &Order) -> anyhow::Result<Opened> {
    let work = Work::new(&order.settings).map_err(anyhow::Error::msg)?;
    let entry = database::find(&order.reach.settings.name).context("the database")?;
    let target = entry.open(&order.reach.settings, order.reach.endpoint.as_ref())?;
    let mut sessions = Vec::new();
    for client in 0..order.settings.load.clients {
        let mut session = target.open()?;
        session.prepare(work.program_of(client))?;
        sessions.push(session);
    }
    Ok((work, target, sessions))
}

/// One client of the writers.
struct Writer<'a> {
    work: &'a Work,
    target: &'a dyn Target,
    number: u32,
    is_over: &'a AtomicBool,
}

impl Writer<'_> {
    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn write(&self, session: Box<dyn TargetSession>, order: &Order) {
        let client = Client { number: self.number, of: order.settings.load.clients, seed: order.seed };
        // This cannot fail: it succeeded before the writers reported that they were ready.
        let Ok(mut workload) = self.work.workload(client) else { return };
        let mut session = Some(session);
        let mut request = Request { client: self.number, ..Request::default() };
        while !self.is_over() {
            let Some(open) = &mut session else {
                std::thread::sleep(AGAIN_AFTER);
                session = self.connect();
                continue;
            };
            request.clear();
            self.work.next(&mut *workload, &mut request);
            let outcome = open.execute(&request, None);
            let word = if outcome.is_ok() { "acknowledged" } else { "failed" };
            if say(&format!("{} {word}", self.number)).is_err() {
                return;
            }
            if outcome.is_err_and(|error| error.is_lost()) {
                session = None;
            }
        }
    }

    fn connect(&self) -> Option<Box<dyn TargetSession>> {
        let mut session = self.target.open().ok()?;
        session.prepare(self.work.program_of(self.number)).ok()?;
        Some(session)
    }
}
