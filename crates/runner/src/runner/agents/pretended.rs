//! Agents that say what agents say and drive nothing, so that a run and a NATS server can be tried with a thousand of them on one machine.
//!
//! Main function: [`pretend`]. Invariant: messages have the form, the size and the frequency of those of an agent that drives a share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::bus::{Bus, BusAddress};
use super::message::{FromAgent, Order, Readiness, ShareDone, ToAgent};
use super::remote::{CALL, Said, ToAgents, What, subject_of};
use crate::load::{Ending, Observed, Tally, Times, monotonic};
use crate::measurement::{ClientMeasurement, LoopMeasurement, Resources};
use crate::operation::OperationKind;
use crate::random::Stream;
use crate::trial::Length;

/// Operations of which a share consists.
const OPERATIONS: u32 = 2_000;
/// Time between two signs of life, and between two looks at the time.
const ALIVE_EVERY: Duration = Duration::from_millis(200);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A share that is pretended to be driven.
struct Share {
    order: Box<Order>,
    reply: String,
    start_ns: Option<u64>,
    said: Instant,
}

/// Answers as an agent of this name and version would, until `stop` is set.
///
/// # Errors
/// Fails if the NATS server cannot be reached.
pub fn pretend(address: &BusAddress, own: &str, version: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    let bus = Bus::connect(address, own)?;
    let received = bus.receive::<ToAgents>(&[CALL.to_owned(), subject_of(own)])?;
    let say = |reply: &str, what| bus.send(reply, &Said { agent: own.to_owned(), what });
    let mut share: Option<Share> = None;
    while !stop.load(Ordering::Relaxed) {
        match received.recv_timeout(LOOK_EVERY).ok() {
            Some(ToAgents::Call { reply }) if share.is_none() => {
                say(&reply, What::Here { host: format!("host-of-{own}"), version: version.to_owned() })?;
            }
            Some(ToAgents::OfTrial { reply, message }) => match message {
                ToAgent::Prepare(order) => {
                    say(&reply, What::OfTrial(FromAgent::Ready(Readiness::default())))?;
                    share = Some(Share { order, reply, start_ns: None, said: Instant::now() });
                }
                ToAgent::Ping(number) => say(&reply, What::OfTrial(FromAgent::Pong(number, monotonic::now_ns())))?,
                ToAgent::Start(at_ns) => share.iter_mut().for_each(|share| share.start_ns = Some(at_ns)),
                ToAgent::Stop => share = None,
                ToAgent::Watched | ToAgent::Read(_) | ToAgent::Line(_) => {}
            },
            Some(ToAgents::Call { .. }) | None => {}
        }
        let Some(driven) = &mut share else { continue };
        let Some(start_ns) = driven.start_ns else { continue };
        if monotonic::now_ns() >= start_ns.saturating_add(phases_ns(&driven.order).1) {
            let done = ShareDone {
                observed: seen(&driven.order),
                began_late_s: 0.0,
                resources: Some(Resources { cpus: Some(1), ..Resources::default() }),
            };
            say(&driven.reply, What::OfTrial(FromAgent::Done(Box::new(done))))?;
            share = None;
        } else if driven.said.elapsed() >= ALIVE_EVERY {
            driven.said = Instant::now();
            say(&driven.reply, What::OfTrial(FromAgent::Alive))?;
        }
    }
    Ok(())
}

/// Returns begin and end of the measured phase, in nanoseconds from the start.
fn phases_ns(order: &Order) -> (u64, u64) {
    let load = &order.trial.case.settings.load;
    let measured_s = if let Length::Seconds(seconds) = load.length { seconds } else { 1.0 };
    let measure_ns = (load.warmup_s * 1e9) as u64;
    (measure_ns, measure_ns + (measured_s * 1e9) as u64)
}

/// Returns what a share could have observed: operations that are spread evenly, whose times differ by chance.
fn seen(order: &Order) -> Observed {
    let (measure_ns, end_ns) = phases_ns(order);
    let clients = order.share.clients(order.trial.case.settings.load.clients).len() as u32;
    let mut random = Stream::seeded(order.trial.seed ^ u64::from(order.share.place));
    let mut tally = Tally::new(measure_ns, end_ns);
    let every_ns = (end_ns - measure_ns) / u64::from(OPERATIONS + 1);
    for number in 0..u64::from(OPERATIONS) {
        let intended_ns = measure_ns + number * every_ns;
        // Between 100 µs and a bit over 100 ms, most of them short.
        let lasts_ns = 100_000 << (random.word() % 11).min(random.word() % 11);
        let times = Times { intended_ns, sent_ns: intended_ns, done_ns: intended_ns + lasts_ns };
        tally.completed(OperationKind::Insert, 1, (times.sent_ns, times.done_ns));
        tally.count(OperationKind::Insert, 1, times, intended_ns, Ending::Completed { empty: false });
    }
    let measured_s = (end_ns - measure_ns) as f64 / 1e9;
    let client = ClientMeasurement { completed: u64::from(OPERATIONS / clients), ..ClientMeasurement::default() };
    let each =
        LoopMeasurement { driver: "epoll".to_owned(), clients, wall_s: measured_s, ..LoopMeasurement::default() };
    Observed {
        tally,
        clients: vec![client; clients as usize],
        loops: vec![each],
        acknowledged: Vec::new(),
        measure_ns,
        measured_s,
        is_cut_short: false,
    }
}
