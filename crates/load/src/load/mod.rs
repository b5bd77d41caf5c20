//! The load engine: clients that send operations to a database on a schedule, and the record of what was observed.
//!
//! Main function: [`drive`]. Share-nothing loops drive the clients through the [`Phases`] of a trial and fill a [`Tally`] each. There are as many
//! threads as [`loop_count`] says, over epoll or io_uring; databases without a lean codec get a thread per client.
//!
//! Invariant: the engine only measures. It knows neither layouts nor studies; it judges nothing ([`validity`] does).

mod acknowledged;
mod arrivals;
mod asides;
mod blocking;
mod changing;
mod client;
mod clock;
mod disk_writer;
mod ending;
mod epoll;
mod event_loop;
pub mod monotonic;
mod observed;
mod phases;
mod profile;
mod recording;
mod scheduling;
mod series;
mod share;
pub mod sightings;
mod source;
mod tally;
mod uring;
pub mod validity;
#[cfg(test)]
mod virtual_time;

use std::sync::{Arc, mpsc};

use crate::database::{DatabaseError, TargetSession, Wire};
use crate::file;
use crate::measurement::LoopMeasurement;
use crate::server::{allowed_to_this_thread, pin_this_thread};
use crate::trial::{Arrivals, Length, LoadSettings};

pub use acknowledged::Acknowledged;
pub use arrivals::read_trace;
pub use changing::{Changing, OUTSIDE};
pub use clock::{Clock, thread_cpu_s};
pub use disk_writer::DiskWriter;
pub use observed::Observed;
pub use phases::Phases;
pub use recording::{Recorder, Recording, Written};
pub use scheduling::{BUSY_LOOP_CLIENTS, cpu_count, loop_count};
pub use share::Share;
pub use source::Source;
pub use tally::{Ending, Tally, Times};

use arrivals::{Process, Schedule, SourceTimes};
use client::{Client, Finished};
use epoll::Epoll;
use event_loop::{EventLoop, Transport};
use observed::merge_groups;
use scheduling::{CpuSpan, cpus_of_loops, give_way};
use uring::Uring;

/// Number of connections of a loop from which on io_uring is used, if the kernel has it: with fewer, epoll is as cheap.
const URING_CLIENTS_LEAST: usize = 8;

/// Number of clients up to which response times are kept per client: 2.6 KiB each. With more clients, only counts are kept.
const TIMED_CLIENTS_MOST: u32 = 1_024;

/// Makes a new connection for a client of an event loop, with its statements prepared.
pub type Reconnect<'a> = dyn Fn(u32) -> Result<Box<dyn Wire>, DatabaseError> + Sync + 'a;
/// Makes a new connection for a blocking client, with its statements prepared.
pub type ReconnectSession<'a> = dyn Fn(u32) -> Result<Box<dyn TargetSession>, DatabaseError> + Sync + 'a;

/// The connections of all clients, with their statements prepared.
pub enum Connections {
    /// Connections for event loops.
    Wires(Vec<Box<dyn Wire>>),
    /// Connections for one thread each.
    Sessions(Vec<Box<dyn TargetSession>>),
}

/// Follows the progress of a trial; its functions are called on the caller's thread.
pub trait Observer {
    /// Waits until the load may begin, and returns the clock of the trial, which reads 0 at that time.
    fn start(&mut self) -> Clock {
        Clock::start()
    }
    /// Called when the measured phase begins.
    fn measure(&mut self);
    /// Called when all clients have ended their part of the measured phase.
    fn drained(&mut self);
    /// Returns the schema changes that will be made during the trial, if there are any; called before anything is sent.
    /// All times of the trial are read from `clock`.
    fn changing(&mut self, _clock: Clock) -> Option<Arc<Changing>> {
        None
    }
    /// Called before anything is sent with the time at which the measured phase will begin. All times of the trial are read from `clock`.
    fn begins(&mut self, _clock: Clock, _measure_ns: u64) {}
    /// Returns whether the trial must end at once; called several times a second.
    fn is_interrupted(&mut self) -> bool;
    /// Returns where to record the raw times of every operation; called once, before the trial. `None`, the default, records none.
    fn recording(&self) -> Option<&Recording> {
        None
    }
}

/// Clients that follow the same settings: all clients of a trial, or one side of its load.
pub struct Group<'a> {
    /// The settings that decide what the clients do and when. All groups of a trial have the same warm-up.
    pub settings: &'a LoadSettings,
    /// The share of the load that these clients are: connections and sources are those of the share.
    pub share: Share,
    /// The connections of the clients.
    pub connections: Connections,
    /// The source of operations of each client.
    pub sources: Vec<Box<dyn Source>>,
    /// Whether to keep which records were acknowledged.
    pub keeps_acknowledged: bool,
    /// Whether several loops of a closed loop are pinned to one CPU each.
    pub pins_loops: bool,
}

/// Drives a load of one group and returns the observations.
///
/// # Errors
/// See [`drive_groups`].
pub fn drive(
    settings: &LoadSettings,
    seed: u64,
    connections: Connections,
    sources: Vec<Box<dyn Source>>,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    observer: &mut dyn Observer,
) -> Result<Observed, String> {
    let share = Share::WHOLE;
    let group = Group { settings, share, connections, sources, keeps_acknowledged: false, pins_loops: false };
    let mut observed = drive_groups(vec![group], seed, reconnect, observer)?;
    observed.pop().ok_or_else(|| "nothing was driven".to_owned())
}

/// Drives the groups of a load at the same time, each on its own loops, and returns the observations of each. Raw times
/// are recorded only for the first group.
///
/// # Errors
/// A sentence, if a loop could not be set up or panicked.
pub fn drive_groups(
    groups: Vec<Group<'_>>,
    seed: u64,
    reconnect: (&Reconnect<'_>, &ReconnectSession<'_>),
    observer: &mut dyn Observer,
) -> Result<Vec<Observed>, String> {
    let clock = observer.start();
    let changing = observer.changing(clock);
    let start_ns = 0;
    let recorder = |observer: &dyn Observer| observer.recording().map(|recording| recording.recorder(start_ns));
    let phases = groups.iter().zip(0..).map(|(group, place)| phases(group, seed + place, start_ns));
    let phases = phases.map(|phases| Ok(phases?.beside(changing.clone())));
    let phases: Vec<Phases> = phases.collect::<Result<_, String>>()?;
    observer.begins(clock, phases.iter().map(|phases| phases.measure_ns).min().unwrap_or(start_ns));
    let works: Vec<(usize, Work<'_>, Option<Recorder>)> = groups
        .into_iter()
        .zip(&phases)
        .enumerate()
        .flat_map(|(place, (group, phases))| {
            let recording = || recorder(observer).filter(|_| place == 0);
            let works = group_works(group, seed, start_ns, phases.measure_ns, reconnect).into_iter();
            works.map(|work| (place, work, recording())).collect::<Vec<_>>()
        })
        .collect();
    let unsent = recorder(observer);
    let (sender, receiver) = mpsc::channel();
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = works
            .into_iter()
            .map(|(place, work, recorder)| {
                let sender = sender.clone();
                let context = LoopContext::new(&phases[place], clock, recorder, changing.clone());
                let run = move || {
                    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(context)));
                    // The receiver is gone only if the caller no longer waits.
                    let _ = sender.send(());
                    let result =
                        result.unwrap_or_else(|panic| Err(format!("a load thread panicked: {}", panic_text(&*panic))));
                    result.map(|result| (place, result))
                };
                std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, run)
            })
            .collect();
        // If a thread could not be started, the others run to their end, and their observations do not count.
        attend(&phases, clock, threads.iter().flatten().count(), &receiver, observer);
        let joined = threads.into_iter().map(|thread| {
            let thread = thread.map_err(|error| no_thread("the load", &error))?;
            thread.join().unwrap_or_else(|_| Err("a load thread is gone".to_owned()))
        });
        joined.collect::<Result<Vec<_>, String>>()
    })?;
    Ok(merge_groups(&phases, results, clock.now_ns(), unsent))
}

/// Returns a message that no thread could be started for something, with a remedy.
pub fn no_thread(what: &str, error: &std::io::Error) -> String {
    format!(
        "the system gave no thread to {what}: {error}; raise the limit of processes (ulimit -u, or pids.max of the cgroup) or of memory"
    )
}

/// Returns the phases of a group, with its arrivals.
fn phases(group: &Group<'_>, seed: u64, start_ns: u64) -> Result<Phases, String> {
    let settings = group.settings;
    let length = match settings.replay {
        Some(replay) => Length::Seconds(replay.lasts_s(settings.rate_per_s)),
        None => group.share.length(settings.length),
    };
    let phases = Phases::bounded(start_ns, settings.warmup_s, length, settings.at_most_s, settings.drain_s);
    if settings.arrivals == Arrivals::Replay {
        return Ok(phases);
    }
    if settings.arrivals == Arrivals::Sources {
        return Ok(phases.with_tail(settings.warmup_s));
    }
    Ok(match schedule(group, seed, start_ns, &phases)? {
        Some(schedule) => phases.with_schedule(schedule),
        None => phases,
    })
}

/// Returns the work of each of a group's threads.
fn group_works<'a>(
    group: Group<'_>,
    seed: u64,
    start_ns: u64,
    measure_ns: u64,
    reconnect: (&'a Reconnect<'a>, &'a ReconnectSession<'a>),
) -> Vec<Work<'a>> {
    let settings = group.settings;
    let think_ns = (settings.think_s * 1e9) as u64;
    let clients = group
        .share
        .clients(settings.clients)
        .zip(group.sources)
        .map(|(number, source)| Client::new(number, source, think_ns, start_ns, measure_ns))
        .map(|client| if settings.clients <= TIMED_CLIENTS_MOST { client.timed() } else { client })
        .map(|client| if group.keeps_acknowledged { client.keeping() } else { client }.retrying(settings.retries))
        .map(|client| {
            let times = source_times(settings, client.number, seed).map(|times| times.from(start_ns));
            client.with_times(times).replaying(settings.arrivals == Arrivals::Replay)
        })
        .collect();
    works(group.connections, clients, (settings, group.pins_loops), reconnect)
}

/// Returns the times of a client that is a source; `None` if clients are no sources.
fn source_times(settings: &LoadSettings, number: u32, seed: u64) -> Option<SourceTimes> {
    let rate_per_s = settings.source_rate_per_s.filter(|_| settings.arrivals == Arrivals::Sources)?;
    let Length::Seconds(measure_s) = settings.length else { return None };
    Some(SourceTimes::new((number, settings.clients), rate_per_s, (settings.warmup_s, measure_s), seed))
}

/// Returns the arrivals of an open loop; `None` for a closed loop.
fn schedule(group: &Group<'_>, seed: u64, start_ns: u64, phases: &Phases) -> Result<Option<Schedule>, String> {
    let Group { settings, share, .. } = group;
    let trace_ns = match (settings.arrivals, &settings.trace) {
        (Arrivals::Closed | Arrivals::Replay, _) => return Ok(None),
        (Arrivals::Trace, Some(path)) => {
            let text =
                file::read_text(path, file::MADE_MOST).map_err(|error| format!("load.trace: {path}: {error}"))?;
            read_trace(&text).map_err(|why| format!("load.trace: {path}: {why}"))?
        }
        _ => Vec::new(),
    };
    let rate_per_s = settings.rate_per_s.unwrap_or(1.0);
    let (arrivals, profile) = (settings.arrivals, settings.profile.as_slice());
    let process = Process { arrivals, rate_per_s, profile, trace_ns: &trace_ns, seed, share: *share };
    let clients = share.clients(settings.clients).len() as u64;
    let schedule = Schedule::new(process, start_ns, phases.measure_ns, share.length(settings.length), clients);
    Ok(Some(schedule.ending_at(phases.end_ns)))
}

/// Most loops with a client each, where clients work long on their answers.
const LOOPS_ALONE_MOST: usize = 64;

/// The work of one thread: takes its context and returns its result.
type Work<'a> = Box<dyn FnOnce(LoopContext<'_>) -> Result<LoopResult, String> + Send + 'a>;

/// Divides the clients into the work of single threads.
fn works<'a>(
    connections: Connections,
    clients: Vec<Client>,
    (settings, pins_loops): (&LoadSettings, bool),
    (reconnect, reconnect_session): (&'a Reconnect<'a>, &'a ReconnectSession<'a>),
) -> Vec<Work<'a>> {
    let connects_each_time = settings.connects_each_time;
    // In an open loop, or after a think time in a closed one, a thread that gives way would be late.
    let gives_way = settings.arrivals == Arrivals::Closed && settings.think_s == 0.0;
    match connections {
        Connections::Wires(wires) => {
            let alone = clients.iter().any(Client::works_long).then(|| clients.len().min(LOOPS_ALONE_MOST));
            let loops = settings.loops.map(|loops| loops as usize).or(alone);
            let parts = in_parts(clients.into_iter().zip(wires).collect(), loops);
            let least = parts.iter().map(Vec::len).min().unwrap_or(0);
            let cpus = if pins_loops && gives_way { cpus_of_loops(parts.len(), least) } else { Vec::new() };
            let cpus = cpus.into_iter().map(Some).chain(std::iter::repeat(None));
            let works = parts.into_iter().zip(cpus).map(|(part, cpu)| -> Work<'a> {
                Box::new(move |mut context| {
                    // If the CPU was taken from this process in the meantime, the loop runs on any other one.
                    let _ = cpu.map(|cpu| pin_this_thread(&cpu));
                    context.gives_way = gives_way && give_way();
                    run_loop(part, context, reconnect)
                })
            });
            works.collect()
        }
        Connections::Sessions(sessions) => clients
            .into_iter()
            .zip(sessions)
            .map(|(client, session)| -> Work<'a> {
                let session = (!connects_each_time).then_some(session);
                Box::new(move |context| Ok(blocking::run(client, session, context, reconnect_session)))
            })
            .collect(),
    }
}

/// Runs one event loop over the transport that suits its connections best.
fn run_loop(
    part: Vec<(Client, Box<dyn Wire>)>,
    context: LoopContext<'_>,
    reconnect: &Reconnect<'_>,
) -> Result<LoopResult, String> {
    fn run<T: Transport>(
        transport: T,
        part: Vec<(Client, Box<dyn Wire>)>,
        context: LoopContext<'_>,
        reconnect: &Reconnect<'_>,
    ) -> Result<LoopResult, String> {
        let event_loop = EventLoop::new(part, transport, context, reconnect);
        Ok(event_loop.map_err(|error| format!("the event loop cannot be set up: {error}"))?.run())
    }
    let are_sockets = part.iter().all(|(_, wire)| is_socket(wire.fd()));
    if part.len() >= URING_CLIENTS_LEAST && are_sockets {
        // If the kernel has no io_uring, or forbids it, epoll does the same work.
        if let Ok(uring) = Uring::new(part.len()) {
            return run(uring, part, context, reconnect);
        }
    }
    let epoll = Epoll::new().map_err(|error| format!("the kernel gives no epoll instance: {error}"))?;
    run(epoll, part, context, reconnect)
}

fn is_socket(fd: std::os::fd::RawFd) -> bool {
    let mut kind: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both pointers are to values of ours that outlive the call, and the length is that of the value.
    let result =
        unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_TYPE, (&raw mut kind).cast(), &raw mut length) };
    result == 0
}

/// Waits on the caller's thread while the loops work, and calls the observer.
fn attend(groups: &[Phases], clock: Clock, loops: usize, ended: &mpsc::Receiver<()>, observer: &mut dyn Observer) {
    const PATIENCE: std::time::Duration = std::time::Duration::from_millis(50);
    let measure_ns = groups.iter().map(|phases| phases.measure_ns).min().unwrap_or(0);
    let mut running = loops;
    let mut measuring = false;
    while running > 0 {
        let now_ns = clock.now_ns();
        if !measuring && now_ns >= measure_ns {
            measuring = true;
            observer.measure();
        }
        let until_measure = std::time::Duration::from_nanos(measure_ns.saturating_sub(now_ns));
        let patience = if measuring { PATIENCE } else { PATIENCE.min(until_measure) };
        match ended.recv_timeout(patience) {
            Ok(()) => running -= 1,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
        if observer.is_interrupted() {
            groups.iter().for_each(Phases::stop);
        }
    }
    if !measuring {
        observer.measure();
    }
    observer.drained();
}

/// Distributes connections evenly over loops, as many as asked for.
fn in_parts<T>(connections: Vec<T>, asked: Option<usize>) -> Vec<Vec<T>> {
    let most = connections.len().max(1);
    let loops = asked.unwrap_or_else(|| loop_count(most, cpu_count())).clamp(1, most);
    let mut parts: Vec<Vec<T>> = (0..loops).map(|_| Vec::new()).collect();
    for (number, connection) in connections.into_iter().enumerate() {
        parts[number % loops].push(connection);
    }
    parts
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// The parts that a loop uses and fills besides its clients.
pub struct LoopContext<'a> {
    phases: &'a Phases,
    clock: Clock,
    tally: Tally,
    cpu: CpuSpan,
    /// Whether the thread never preempts another one.
    gives_way: bool,
    /// Number of parts of answers that were read in the measured phase.
    answers: u64,
}

impl<'a> LoopContext<'a> {
    fn new(phases: &'a Phases, clock: Clock, recorder: Option<Recorder>, changing: Option<Arc<Changing>>) -> Self {
        LoopContext {
            phases,
            clock,
            tally: Tally::new(phases.measure_ns, phases.end_ns).recorded_by(recorder).with_asides(changing),
            cpu: CpuSpan::new(phases.measure_ns),
            gives_way: false,
            answers: 0,
        }
    }

    fn finish(mut self, driver: &str, clients: Vec<Finished>) -> LoopResult {
        self.tally.recorder = None;
        let used = self.cpu.finish(self.clock.now_ns());
        let passes = &self.tally.passes;
        let measurement = LoopMeasurement {
            driver: driver.to_owned(),
            clients: clients.len() as u32,
            cpu: only_cpu(),
            cpu_s: used.cpu_s,
            wall_s: used.wall_s,
            pass_s_p99: passes.quantile_ns(0.99) as f64 / 1e9,
            passes: (self.answers > 0).then(|| passes.count()),
            answers: (self.answers > 0).then_some(self.answers),
            delayed_s: used.turns.map(|turns| turns.delayed_s),
            turns: used.turns.map(|turns| turns.count),
            gives_way: self.gives_way,
        };
        LoopResult { tally: self.tally, clients, measurement }
    }
}

/// Returns the CPU that the calling thread is pinned to; `None` if it may use several.
fn only_cpu() -> Option<u32> {
    let allowed = allowed_to_this_thread()?;
    let [cpu] = allowed.as_slice() else { return None };
    u32::try_from(*cpu).ok()
}

/// The result of a loop.
#[derive(Debug)]
pub struct LoopResult {
    tally: Tally,
    clients: Vec<Finished>,
    measurement: LoopMeasurement,
}
