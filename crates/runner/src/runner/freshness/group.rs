//! A group of readers, one of the reading computers in the slides. It runs as threads of this process or as its own process.
//!
//! Main functions: [`read_group`], which both ways call, and [`Group::start`]. Invariant: a group is ready, with every reader
//! connected, before the first event is written.

use std::io::BufRead;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::super::agents::RemoteReaders;
use super::super::entry::as_session;
use super::super::reading::ReadersOrder as Order;
use super::super::workers::{order_of, say, start_worker};
use crate::database::nats::Subscriber;
use crate::database::{self, DatabaseError, Target, TargetSession};
use crate::load::no_thread;
use crate::load::sightings::{
    Asking, Control, ReaderTask, Sightings, SubscriberTask, monotonic, read_messages, read_tables,
};
use crate::server::Worker;
use crate::statement::Request;
use crate::trial::{FreshnessSettings, Poll, RunAs, Settings};
use crate::workload::Work;
use crate::workload::freshness::{Events, POLL_ROWS_MAX, RESULT_ROWS};

/// A group of readers that is running.
pub struct Group {
    /// The group's name in reports.
    pub name: String,
    running: Running,
}

enum Running {
    Threads { control: Arc<Control>, thread: JoinHandle<anyhow::Result<Vec<Sightings>>> },
    Process(Worker),
    Agent(Box<RemoteReaders>),
}

/// What a group has seen.
pub struct Seen {
    /// What each of its readers saw.
    pub sightings: Vec<Sightings>,
    /// The host on which they read, if it is another machine.
    pub host: Option<String>,
    /// Largest error of each freshness because that has another clock, in seconds.
    pub clock_error_s: f64,
}

impl Group {
    /// Starts a group and waits until all of its readers are connected.
    ///
    /// # Errors
    /// Fails if a reader cannot connect or the process cannot be started.
    pub fn start(order: Order, target: &Arc<dyn Target>, agent: Option<RemoteReaders>) -> anyhow::Result<Group> {
        let name = name_of(&order.settings, order.group);
        let running = match (freshness_of(&order.settings).run_as, agent) {
            (RunAs::Agents, Some(mut agent)) => {
                let ahead_ns = agent.ahead_ns();
                agent.prepare(Order { ahead_ns, ..order })?;
                Running::Agent(Box::new(agent))
            }
            (RunAs::Processes | RunAs::Agents, _) => start_process(&order)?,
            (RunAs::Threads, _) => start_threads(order, Arc::clone(target))?,
        };
        Ok(Group { name, running })
    }

    /// Returns whether the group is still at work, as far as that can be seen.
    pub fn is_there(&mut self) -> bool {
        if let Running::Agent(agent) = &mut self.running { agent.is_there() } else { true }
    }

    /// Returns the id of the group's process; `None` for threads.
    pub fn pid(&self) -> Option<u32> {
        if let Running::Process(worker) = &self.running { Some(worker.pid()) } else { None }
    }

    /// Returns whether the group has said what it saw, or is gone; always for a group on this machine, which is waited for.
    pub fn has_answered(&mut self) -> bool {
        if let Running::Agent(agent) = &mut self.running { agent.has_answered() } else { true }
    }

    /// Lets the readers begin; events stamped from `from_ns` on count.
    pub fn begin(&mut self, from_ns: u64) {
        match &mut self.running {
            Running::Threads { control, .. } => control.begin(from_ns),
            Running::Process(worker) => tell(worker, "begin", from_ns),
            Running::Agent(agent) => agent.tell("begin", from_ns),
        }
    }

    /// Tells the readers that the writers have ended.
    pub fn written(&mut self, now_ns: u64) {
        match &mut self.running {
            Running::Threads { control, .. } => control.written(now_ns),
            Running::Process(worker) => tell(worker, "written", now_ns),
            Running::Agent(agent) => agent.tell("written", now_ns),
        }
    }

    /// Waits until the readers have ended and returns what they saw; readers on other machines get `patience` for that.
    ///
    /// # Errors
    /// Fails if a reader panicked or the process ended without an answer.
    pub fn finish(self, patience: Duration) -> anyhow::Result<Seen> {
        let here = |sightings| Seen { sightings, host: None, clock_error_s: 0.0 };
        match self.running {
            Running::Threads { thread, .. } => {
                thread.join().map_err(|_| anyhow!("a group of readers panicked"))?.map(here)
            }
            Running::Process(mut worker) => answer_of(&mut worker).map(here),
            Running::Agent(mut agent) => {
                let host = agent.host().map(str::to_owned);
                let (line, clock_error_s) = agent.finish(patience)?;
                let sightings = read_answer(&line)?;
                sightings.iter().try_for_each(Sightings::check).map_err(anyhow::Error::msg)?;
                Ok(Seen { sightings, host, clock_error_s })
            }
        }
    }
}

/// Returns the group's name: its number, followed by `subscribing` or `polling` if events are published.
fn name_of(settings: &Settings, group: u32) -> String {
    let freshness = freshness_of(settings);
    let number = group % freshness.groups.max(1) + 1;
    match (freshness.path, freshness.path.subscribes(group, freshness.groups)) {
        (crate::trial::EventPath::Database | crate::trial::EventPath::Notify, _) => number.to_string(),
        (_, true) => format!("{number} subscribing"),
        (_, false) => format!("{number} polling"),
    }
}

fn freshness_of(settings: &Settings) -> FreshnessSettings {
    settings.freshness.clone().unwrap_or_default()
}

fn start_threads(order: Order, target: Arc<dyn Target>) -> anyhow::Result<Running> {
    let control = Arc::new(Control::default());
    let own = Arc::clone(&control);
    let (ready, is_ready) = mpsc::channel();
    let thread = std::thread::Builder::new().name("readers".to_owned()).spawn(move || {
        let told = ready.clone();
        let outcome = read_group(&order, &*target, &own, move || {
            // The receiver waits for this and cannot be gone.
            let _ = told.send(());
        });
        // Dropping the sender without a message says that the readers could not get ready.
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
    start_worker("readers", order).map(Running::Process)
}

/// Tells a worker that the writers begin or have ended. A worker that has ended reports so when its answer is read.
pub(super) fn tell(worker: &mut Worker, word: &str, time_ns: u64) {
    let _ = worker.tell(&format!("{word} {time_ns}"));
}

/// Reads what a worker saw.
///
/// # Errors
/// Fails if the worker ended without an answer or could not do its work.
pub(super) fn answer_of(worker: &mut Worker) -> anyhow::Result<Vec<Sightings>> {
    read_answer(&worker.hear()?)
}

fn read_answer(line: &str) -> anyhow::Result<Vec<Sightings>> {
    let answer: Result<Vec<Sightings>, String> = serde_json::from_str(line)?;
    answer.map_err(anyhow::Error::msg)
}

/// Connects all readers of a group, calls `ready`, and reads until the writers have ended.
///
/// # Errors
/// Fails if a reader cannot connect.
pub fn read_group(
    order: &Order,
    target: &dyn Target,
    control: &Control,
    ready: impl FnOnce(),
) -> anyhow::Result<Vec<Sightings>> {
    let work = Work::new(&order.settings).map_err(anyhow::Error::msg)?;
    let events = work.events().context("the workload has no events")?;
    let freshness = freshness_of(&order.settings);
    let subscribes = freshness.path.subscribes(order.group, freshness.groups);
    let mut readers = Vec::new();
    for reader in 0..freshness.readers {
        let tables = freshness.tables_read(reader, order.settings.load.clients);
        let connection = match &order.nats {
            Some(nats) if subscribes => {
                Subscriber::open(nats, &subjects_of(events, &tables)).map(Connection::Messages).map_err(Into::into)
            }
            _ => connect(target, events, &freshness, &tables).map(Connection::Tables),
        };
        readers.push((reader, tables, connection.with_context(|| format!("connecting reader {}", reader + 1))?));
    }
    ready();
    let run = |reader: u32, tables: Vec<u32>, connection: Connection| {
        let clients = order.settings.load.clients as usize;
        let writers_of =
            |table: u32| (0..clients).filter(|writer| events.table_of(*writer) == table as usize).collect();
        let own = tables.iter().flat_map(|table| -> Vec<usize> { writers_of(*table) }).map(|writer| writer as u32);
        let ahead_ns = order.ahead_ns;
        let sightings = Sightings { ahead_ns, ..Sightings::new(reader, own.collect(), clients) };
        let place_of = |event| events.numbering.place_of(event);
        match connection {
            Connection::Messages(mut subscriber) => {
                let again = || match &order.nats {
                    Some(nats) => Subscriber::open(nats, &subjects_of(events, &tables)),
                    None => Err(DatabaseError::Unavailable("there is no NATS server".to_owned())),
                };
                let drain_ns = (order.settings.load.drain_s * 1e9) as u64;
                let task = SubscriberTask { place_of: &place_of, open: &again, drain_ns };
                read_messages(&mut subscriber, &task, control, sightings)
            }
            Connection::Tables(mut session) => {
                let ask = |table: u32, behind: u64, request: &mut Request| events.ask(table as usize, behind, request);
                let questions = Questions { ask: &ask, place_of: &place_of, writers_of: &writers_of };
                let task = task_of(order, &freshness, events, reader, tables, questions);
                read_tables(&mut *session, &task, control, sightings)
            }
        }
    };
    std::thread::scope(|scope| {
        let run = &run;
        let threads: Vec<_> = readers
            .into_iter()
            .map(|(reader, tables, connection)| {
                std::thread::Builder::new().spawn_scoped(scope, move || run(reader, tables, connection))
            })
            .collect();
        let joined = threads.into_iter().map(|thread| {
            let thread = thread.map_err(|error| anyhow!(no_thread("a reader", &error)))?;
            thread.join().map_err(|_| anyhow!("a reader panicked"))
        });
        joined.collect()
    })
}

/// The way events reach a reader.
enum Connection {
    Tables(Box<dyn TargetSession>),
    Messages(Subscriber),
}

/// The functions with which a reader queries and locates events.
struct Questions<'a> {
    ask: &'a (dyn Fn(u32, u64, &mut Request) + Sync),
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
        // The polls of all readers are spread evenly: polls at the same time would wait for each other.
        phase_ns: every_ns * place / in_all,
        width: events.width,
        rows_max: POLL_ROWS_MAX as usize,
        results: events.results.get(order.group as usize).map(|statement| (*statement, RESULT_ROWS)),
        drain_ns: (order.settings.load.drain_s * 1e9) as u64,
    }
}

fn subjects_of(events: &Events, tables: &[u32]) -> Vec<String> {
    tables.iter().map(|table| database::nats::subject_of(&events.tables[*table as usize])).collect()
}

fn connect(
    target: &dyn Target,
    events: &Events,
    freshness: &FreshnessSettings,
    tables: &[u32],
) -> anyhow::Result<Box<dyn TargetSession>> {
    let mut session = target.open()?;
    session.prepare(&events.program)?;
    if freshness.poll == Poll::Notify {
        let session = as_session(&mut *session)?;
        for table in tables {
            session.listen(events.channel(*table as usize))?;
        }
    }
    Ok(session)
}

/// Runs `loadline work readers`: a group as a process that takes commands on its standard input. It answers `ready` or the
/// reason why not, and at the end writes what its readers saw.
///
/// # Errors
/// Fails if the input ends or cannot be read.
pub fn work_as_readers() -> anyhow::Result<()> {
    work(|order, target, control, ready| read_group(order, target, control, ready))
}

type DoWork = fn(&Order, &dyn Target, &Control, &mut dyn FnMut()) -> anyhow::Result<Vec<Sightings>>;

/// Reads an order from the standard input and carries it out, as all workers do.
///
/// # Errors
/// Fails if the input ends or cannot be read.
pub(super) fn work(do_work: DoWork) -> anyhow::Result<()> {
    let order: Order = order_of()?;
    let entry = database::find(&order.reach.settings.name).context("the database")?;
    let target = entry.open(&order.reach.settings, order.reach.endpoint.as_ref())?;
    let control = Arc::new(Control::default());
    let own = Arc::clone(&control);
    let following = std::thread::Builder::new().name("follow".to_owned()).spawn(move || follow(&own));
    following.map_err(|error| anyhow!(no_thread("a worker", &error)))?;
    // The receiver is gone only when loadline has ended, and then this process ends too.
    let outcome = do_work(&order, &*target, &control, &mut || drop(say("ready")));
    let outcome = outcome.map_err(|error| super::super::notes::sentence(&error));
    say(&serde_json::to_string(&outcome)?)?;
    Ok(())
}

/// Follows the commands on the standard input and exits the process when the input ends.
fn follow(control: &Control) {
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
