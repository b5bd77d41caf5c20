//! A group of readers: one of the computers that read in the slides. It runs as threads of this process, or as a process of its own.
//!
//! Main functions: [`read_group`], which both ways end in, and [`Group::start`]. Invariant: a group is ready, with every reader
//! connected, before the first event is written.

use std::io::{BufRead, Write};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;

use anyhow::{Context, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::super::stage::Reach;
use crate::database::{self, Database, Session};
use crate::load::sightings::{Asking, Control, ReaderTask, Sightings, monotonic, read_tables};
use crate::server::Worker;
use crate::trial::{FreshnessSettings, Poll, RunAs, Settings};
use crate::workload::Work;
use crate::workload::freshness::{Events, POLL_ROWS_MAX, RESULT_ROWS};

/// What a group has to know, as it is given to a process.
#[derive(Clone, Serialize, Deserialize)]
pub struct Order {
    /// The trial's settings.
    pub settings: Settings,
    /// Its number, from 0.
    pub group: u32,
    /// Where the events are.
    pub reach: Reach,
}

/// A group that reads.
pub struct Group {
    /// Its name in reports.
    pub name: String,
    running: Running,
}

enum Running {
    Threads { control: Arc<Control>, thread: JoinHandle<anyhow::Result<Vec<Sightings>>> },
    Process(Worker),
}

impl Group {
    /// Starts a group and waits until all of its readers are connected.
    ///
    /// # Errors
    /// When one cannot connect, or the process cannot be started.
    pub fn start(order: Order, database: &Arc<dyn Database>) -> anyhow::Result<Group> {
        let name = name_of(&order.settings, order.group);
        let running = match freshness_of(&order.settings).run_as {
            RunAs::Threads => start_threads(order, Arc::clone(database))?,
            RunAs::Processes => start_process(&order)?,
        };
        Ok(Group { name, running })
    }

    /// Its process, where it has one.
    pub fn pid(&self) -> Option<u32> {
        if let Running::Process(worker) = &self.running { Some(worker.pid()) } else { None }
    }

    /// Readers begin; events stamped from this time on count.
    pub fn begin(&mut self, from_ns: u64) {
        match &mut self.running {
            Running::Threads { control, .. } => control.begin(from_ns),
            // A process that has ended says so when it is asked for what it saw.
            Running::Process(worker) => drop(worker.tell(&format!("begin {from_ns}"))),
        }
    }

    /// The writers have ended.
    pub fn written(&mut self, now_ns: u64) {
        match &mut self.running {
            Running::Threads { control, .. } => control.written(now_ns),
            Running::Process(worker) => drop(worker.tell(&format!("written {now_ns}"))),
        }
    }

    /// Waits until its readers have ended, and tells what they saw.
    ///
    /// # Errors
    /// When a reader panicked, or the process ended without an answer.
    pub fn finish(self) -> anyhow::Result<Vec<Sightings>> {
        match self.running {
            Running::Threads { thread, .. } => thread.join().map_err(|_| anyhow!("a group of readers panicked"))?,
            Running::Process(mut worker) => {
                let answer = worker.hear().context("a group of readers")?;
                let answer: Result<Vec<Sightings>, String> =
                    serde_json::from_str(&answer).context("a group of readers")?;
                answer.map_err(anyhow::Error::msg)
            }
        }
    }
}

/// `1`, `2`; with the way that its readers take where there are several.
fn name_of(settings: &Settings, group: u32) -> String {
    let freshness = freshness_of(settings);
    let number = group % freshness.groups.max(1) + 1;
    match (freshness.path, freshness.path.subscribes(group, freshness.groups)) {
        (crate::trial::EventPath::Database, _) => number.to_string(),
        (_, true) => format!("{number} subscribing"),
        (_, false) => format!("{number} polling"),
    }
}

fn freshness_of(settings: &Settings) -> FreshnessSettings {
    settings.freshness.clone().unwrap_or_default()
}

fn start_threads(order: Order, database: Arc<dyn Database>) -> anyhow::Result<Running> {
    let control = Arc::new(Control::default());
    let own = Arc::clone(&control);
    let (ready, is_ready) = mpsc::channel();
    let thread = std::thread::Builder::new().name("readers".to_owned()).spawn(move || {
        let told = ready.clone();
        let outcome = read_group(&order, &*database, &own, move || {
            // Whoever waits for this cannot be gone.
            let _ = told.send(());
        });
        // Closed without a word before the readers were ready, if they could not be.
        drop(ready);
        outcome
    })?;
    if is_ready.recv().is_err() {
        match thread.join() {
            Ok(Err(error)) => return Err(error),
            _ => bail!("a group of readers ended before it began"),
        }
    }
    Ok(Running::Threads { control, thread })
}

fn start_process(order: &Order) -> anyhow::Result<Running> {
    let mut worker = Worker::start(&["work", "readers"]).context("starting a process of readers")?;
    worker.tell(&serde_json::to_string(order)?).context("a process of readers")?;
    match worker.hear().context("a process of readers")?.as_str() {
        "ready" => Ok(Running::Process(worker)),
        why => bail!("a process of readers: {why}"),
    }
}

/// Connects all readers of a group, calls `ready`, and reads until the writers have ended.
///
/// # Errors
/// When a reader cannot connect.
pub fn read_group(
    order: &Order,
    database: &dyn Database,
    control: &Control,
    ready: impl FnOnce(),
) -> anyhow::Result<Vec<Sightings>> {
    let work = Work::new(&order.settings).map_err(anyhow::Error::msg)?;
    let events = work.events().context("the workload has no events")?;
    let freshness = freshness_of(&order.settings);
    let mut readers = Vec::new();
    for reader in 0..freshness.readers {
        let tables = freshness.tables_read(reader, order.settings.load.clients);
        let session = connect(database, events, &freshness, &tables);
        readers.push((reader, tables, session.with_context(|| format!("connecting reader {}", reader + 1))?));
    }
    ready();
    let run = |reader: u32, tables: Vec<u32>, mut session: Box<dyn Session>| {
        let clients = order.settings.load.clients as usize;
        let writers_of =
            |table: u32| (0..clients).filter(|writer| events.table_of(*writer) == table as usize).collect();
        let own = tables.iter().flat_map(|table| -> Vec<usize> { writers_of(*table) }).map(|writer| writer as u32);
        let sightings = Sightings::new(reader, own.collect(), clients);
        let ask = |table: u32, behind: u64, request: &mut crate::statement::Request| {
            events.ask(table as usize, behind, request)
        };
        let place_of = |event| events.numbering.place_of(event);
        let questions = Questions { ask: &ask, place_of: &place_of, writers_of: &writers_of };
        let task = task_of(order, &freshness, events, reader, tables, questions);
        read_tables(&mut *session, &task, control, sightings)
    };
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = readers
            .into_iter()
            .map(|(reader, tables, session)| scope.spawn(move || run(reader, tables, session)))
            .collect();
        let joined = threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a reader panicked")));
        joined.collect()
    })
}

/// What a reader has to know of the events.
struct Questions<'a> {
    ask: &'a (dyn Fn(u32, u64, &mut crate::statement::Request) + Sync),
    place_of: &'a (dyn Fn(u64) -> (usize, u64) + Sync),
    writers_of: &'a (dyn Fn(u32) -> Vec<usize> + Sync),
}

fn task_of<'a>(
    order: &Order,
    freshness: &FreshnessSettings,
    events: &Events,
    reader: u32,
    tables: Vec<u32>,
    questions: Questions<'a>,
) -> ReaderTask<'a> {
    let every_ns = (freshness.every_s * 1e9) as u64;
    let in_all = u64::from(freshness.readers * freshness.groups_in_all()).max(1);
    let place = u64::from(order.group * freshness.readers + reader);
    ReaderTask {
        ask: questions.ask,
        place_of: questions.place_of,
        writers_of: questions.writers_of,
        tables,
        asking: match freshness.poll {
            Poll::Window => Asking::Window,
            Poll::Key | Poll::Notify => Asking::ByKey { look_back_ns: (freshness.look_back_s * 1e9) as u64 },
        },
        every_ns: (freshness.poll != Poll::Notify).then_some(every_ns.max(1)),
        // Polls of all readers are spread evenly: at the same time they would only wait for each other.
        phase_ns: every_ns * place / in_all,
        width: events.width,
        rows_max: POLL_ROWS_MAX as usize,
        results: events.results.get(order.group as usize).map(|statement| (*statement, RESULT_ROWS)),
        drain_ns: (order.settings.load.drain_s * 1e9) as u64,
    }
}

fn connect(
    database: &dyn Database,
    events: &Events,
    freshness: &FreshnessSettings,
    tables: &[u32],
) -> anyhow::Result<Box<dyn Session>> {
    let mut session = database.connect()?;
    session.prepare(&events.program)?;
    if freshness.poll == Poll::Notify {
        for table in tables {
            session.listen(events.channel(*table as usize))?;
        }
    }
    Ok(session)
}

/// `loadline work readers`: a group as a process, told what to do on its standard input. Answers `ready` or why not, and
/// at the end what it saw.
///
/// # Errors
/// When its input ends or makes no sense.
pub fn work_as_readers() -> anyhow::Result<()> {
    let mut input = std::io::stdin().lock();
    let mut line = String::new();
    input.read_line(&mut line)?;
    let order: Order = serde_json::from_str(&line).context("the order")?;
    let entry = database::find(&order.reach.settings.name).context("the database")?;
    let database = (entry.open)(&order.reach.settings, order.reach.endpoint.as_ref())?;
    let control = Arc::new(Control::default());
    let own = Arc::clone(&control);
    drop(input);
    std::thread::spawn(move || follow(&own));
    let answer = |text: &str| -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    };
    let outcome = read_group(&order, &*database, &control, || drop(answer("ready")));
    let outcome = outcome.map_err(|error| super::super::output::sentence(&error));
    answer(&serde_json::to_string(&outcome)?)?;
    Ok(())
}

/// Does as the lines on the standard input say; ends all when there are no more.
pub(super) fn follow(control: &Control) {
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        match line.split_once(' ').and_then(|(word, time)| Some((word, time.parse().ok()?))) {
            Some(("begin", from_ns)) => control.begin(from_ns),
            Some(("written", now_ns)) => control.written(now_ns),
            _ => break,
        }
    }
    if control.written_ns().is_none() {
        control.stop();
        control.begin(monotonic::now_ns());
    }
}
