//! The gate in front of the spool. Main types: [`GateState`], pure, and [`Gate`], which threads share.
//!
//! Hysteresis: the gate closes when the spool is filled to 90 %, and opens again at 75 %; otherwise it would flutter at the edge. From 50 % on
//! the sources that send most are asked to wait, so that all together send less: none less at 50 %, and all of it at 90 %. A source that sends less
//! than an equal share, while another sends more, comes in until 98 %.
//!
//! Records that have come in are written by the same rule: once records wait too long in the lanes of all sources, those of the sources
//! that send most go to lanes of their own.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::fairness::{Shares, Short};
use crate::recorder::clock::SharedClock;
use crate::recorder::log;

/// The gate closes when this share of the spool is filled.
pub const CLOSES_AT: f64 = 0.90;
/// A closed gate opens when this share is filled.
pub const OPENS_AT: f64 = 0.75;
/// From this share on, sources are compared.
const FAIR_FROM: f64 = 0.50;
/// Modest sources come in up to this share.
const MODEST_UNTIL: f64 = 0.98;

/// Sources are compared once records wait this long to be written; and from the second time on, most strictly.
const LATE_FROM: Duration = Duration::from_millis(250);
const LATE_AT_MOST: Duration = Duration::from_millis(1_000);
/// In the strictest comparison, the lanes of all sources keep this share of what is sent: if nothing can be written for a while, sources that send
/// little stay there.
const LATE_KEEPS: f64 = 0.5;

/// How full the spool is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// The filled share of the bound, 0 to 1.
    pub filled: f64,
    /// How fast the spool empties, in shares a second; 0 or less if it does not.
    pub empties_per_s: f64,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// The request may come in.
    In,
    /// The source has sent more than others and must wait this long.
    Unfair(Duration),
    /// Nobody comes in: the reason, and for how long.
    Closed(String, Duration),
}

/// The gate's state.
#[derive(Debug, Default)]
pub struct GateState {
    is_closed: bool,
    shares: Shares,
}

impl GateState {
    /// Returns whether the gate is closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Updates the gate for the filled share, and returns whether it is closed.
    pub fn see(&mut self, filled: f64) -> bool {
        self.is_closed = if self.is_closed { filled > OPENS_AT } else { filled >= CLOSES_AT };
        self.is_closed
    }

    /// Answers a source that wants to bring this many bytes.
    pub fn ask(&mut self, source: &str, bytes: u64, usage: Usage, now_s: f64) -> Turn {
        let is_short = usage.filled >= FAIR_FROM;
        let is_let_in = is_short && usage.filled < MODEST_UNTIL && self.shares.is_modest(source);
        if self.see(usage.filled) && !is_let_in {
            let missing = usage.filled - OPENS_AT;
            let wait_s =
                if usage.empties_per_s > 0.0 { (missing / usage.empties_per_s).clamp(1.0, 60.0) } else { 30.0 };
            let reason = format!(
                "the spool is {:.0} % full and takes in again at {:.0} %",
                100.0 * usage.filled,
                100.0 * OPENS_AT
            );
            return Turn::Closed(reason, Duration::from_secs_f64(wait_s));
        }
        if is_short && !is_let_in {
            let shortness = ((usage.filled - FAIR_FROM) / (CLOSES_AT - FAIR_FROM)).min(1.0);
            let times = self.shares.times_level(source, Short::Room, shortness, now_s);
            if times > 1.0 {
                return Turn::Unfair(Duration::from_secs_f64(times.clamp(1.0, 10.0)));
            }
        }
        self.shares.add(source, bytes, now_s);
        Turn::In
    }

    /// Returns whether a source sends more than its share while records wait this long in the lanes of all sources; its records are then to wait in a lane of
    /// their own. The level is the one at which all of them, each cut to it, would send less together: none less at 0.25 s, and half at 1 s.
    pub fn is_greedy(&mut self, source: &str, wait: Duration, now_s: f64) -> bool {
        let Some(late) = wait.checked_sub(LATE_FROM) else { return false };
        let shortness = late.as_secs_f64() / (LATE_AT_MOST - LATE_FROM).as_secs_f64();
        self.shares.is_greedy(source, (1.0 - LATE_KEEPS) * shortness.min(1.0), now_s)
    }
}

/// Reads the filled share of the spool.
type ReadUsage = Box<dyn Fn() -> f64 + Send + Sync>;
/// Reads how long records wait to be written.
type ReadWait = Box<dyn Fn() -> Duration + Send + Sync>;

/// The gate that all intakes share.
pub struct Gate {
    state: Mutex<Guarded>,
    read: ReadUsage,
    read_wait: ReadWait,
    begun: Instant,
    clock: SharedClock,
}

#[derive(Default)]
struct Guarded {
    gate: GateState,
    /// The time and the filled share when last measured, from which the emptying rate follows.
    seen: Option<(f64, f64)>,
    empties_per_s: f64,
}

impl Guarded {
    /// Closes or opens the gate, and logs it.
    fn look(&mut self, filled: f64) {
        let was_closed = self.gate.is_closed();
        let is_closed = self.gate.see(filled);
        if was_closed == is_closed {
            return;
        }
        let percent = format!("{:.0}", 100.0 * filled);
        match is_closed {
            true => log::warning("the spool is full; requests are turned away", &[("percent", &percent)]),
            false => log::info("there is room in the spool again", &[("percent", &percent)]),
        }
    }
}

impl Gate {
    /// Returns a gate that reads how filled the spool is, 0 to 1, and how long records wait in the lanes of all sources.
    pub fn new(read: ReadUsage, read_wait: ReadWait, clock: SharedClock) -> Self {
        Gate { state: Mutex::default(), read, read_wait, begun: clock.now(), clock }
    }

    /// Returns whether a source that was let in sends more than its share while the records of others wait.
    pub fn is_greedy(&self, source: &str) -> bool {
        let wait = (self.read_wait)();
        if wait < LATE_FROM {
            return false;
        }
        let now_s = self.clock.since(self.begun).as_secs_f64();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).gate.is_greedy(source, wait, now_s)
    }

    /// Returns whether the gate is closed. It opens again even if no request asks.
    pub fn is_closed(&self) -> bool {
        let filled = (self.read)();
        let mut guarded = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        guarded.look(filled);
        guarded.gate.is_closed()
    }

    /// Answers a source that wants to bring this many bytes.
    pub fn ask(&self, source: &str, bytes: u64) -> Turn {
        let filled = (self.read)();
        let now_s = self.clock.since(self.begun).as_secs_f64();
        let mut guarded = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match guarded.seen {
            Some((at_s, before)) if now_s - at_s >= 1.0 => {
                guarded.empties_per_s = (before - filled) / (now_s - at_s);
                guarded.seen = Some((now_s, filled));
            }
            None => guarded.seen = Some((now_s, filled)),
            Some(_) => {}
        }
        guarded.look(filled);
        let usage = Usage { filled, empties_per_s: guarded.empties_per_s };
        guarded.gate.ask(source, bytes, usage, now_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recorder::clock::machine;

    fn usage(filled: f64) -> Usage {
        Usage { filled, empties_per_s: 0.01 }
    }

    #[test]
    fn a_gate_that_closed_opens_only_when_there_is_room_again() {
        let mut gate = GateState::default();
        let mut ask = |filled| gate.ask("a", 1, usage(filled), 0.0);
        assert_eq!(ask(0.899), Turn::In);
        assert!(
            matches!(ask(0.90), Turn::Closed(reason, wait) if reason.contains("90 %") && wait == Duration::from_secs(15))
        );
        assert!(matches!(ask(0.80), Turn::Closed(..)), "it does not flutter");
        assert_eq!(ask(0.75), Turn::In);
        assert_eq!(ask(0.80), Turn::In);
    }

    #[test]
    fn a_gate_opens_again_without_being_asked_by_a_request() {
        let filled = std::sync::Arc::new(Mutex::new(0.95));
        let for_gate = std::sync::Arc::clone(&filled);
        let gate = Gate::new(Box::new(move || *for_gate.lock().unwrap()), Box::new(|| Duration::ZERO), machine());
        assert!(gate.is_closed() && matches!(gate.ask("a", 1), Turn::Closed(..)));
        *filled.lock().unwrap() = 0.80;
        assert!(gate.is_closed());
        *filled.lock().unwrap() = 0.10;
        assert!(!gate.is_closed());
    }

    #[test]
    fn greedy_sources_wait_first_and_a_single_source_may_have_it_all() {
        let mut gate = GateState::default();
        for tick in 0..100 {
            assert_eq!(gate.ask("greedy", 9_000, usage(0.4), f64::from(tick)), Turn::In);
            for modest in 0..9 {
                assert_eq!(gate.ask(&format!("modest {modest}"), 100, usage(0.4), f64::from(tick)), Turn::In);
            }
        }
        assert!(matches!(gate.ask("greedy", 1, usage(0.6), 100.0), Turn::Unfair(_)));
        assert_eq!(gate.ask("modest 1", 1, usage(0.89), 100.0), Turn::In);
        assert!(matches!(gate.ask("greedy", 1, usage(0.95), 100.0), Turn::Closed(..)));
        assert_eq!(gate.ask("modest 1", 1, usage(0.95), 100.0), Turn::In);
        assert!(matches!(gate.ask("modest 1", 1, usage(0.99), 100.0), Turn::Closed(..)));
        let mut alone = GateState::default();
        (0..1_000).for_each(|tick| assert_eq!(alone.ask("a", 1_000_000, usage(0.89), f64::from(tick)), Turn::In));
    }

    #[test]
    fn sources_are_greedy_while_records_wait_and_they_send_more_than_their_share() {
        let mut gate = GateState::default();
        for tick in 0..100 {
            gate.ask("greedy", 9_000, usage(0.1), f64::from(tick));
            (0..50).for_each(|modest| drop(gate.ask(&modest.to_string(), 100, usage(0.1), f64::from(tick))));
        }
        let mut is_greedy = |source, wait_ms| gate.is_greedy(source, Duration::from_millis(wait_ms), 99.0);
        assert!(!is_greedy("greedy", 249));
        assert!(is_greedy("greedy", 300));
        assert!(!is_greedy("7", 300));
        // Nothing is written for a minute: sources that send little stay where they are.
        assert!(is_greedy("greedy", 60_000) && !is_greedy("7", 60_000));
        assert!(!is_greedy("new", 60_000));
        let mut alike = GateState::default();
        (0..100_u32).for_each(|tick| {
            drop(alike.ask(&(tick % 5).to_string(), 9_000 + 100 * u64::from(tick % 7), usage(0.1), 0.0))
        });
        assert!((0..5).all(|source| !alike.is_greedy(&source.to_string(), Duration::from_secs(60), 0.0)));
        let mut few = GateState::default();
        drop([("few", 900), ("fewer", 90)].map(|(source, bytes)| few.ask(source, bytes, usage(0.1), 0.0)));
        assert!(!few.is_greedy("few", Duration::from_secs(60), 0.0), "a few records are in nobody's way");
        let mut alone = GateState::default();
        alone.ask("a", 1_000_000, usage(0.1), 0.0);
        assert!(!alone.is_greedy("a", Duration::from_secs(60), 0.0), "nobody else waits");
    }

    /// Simulates a spool that holds 20 s of what the database takes, and sources that send requests of ten rows. Returns the share of each source that came in,
    /// and the used share of what the database takes.
    fn overload(rates: &[f64]) -> (Vec<f64>, f64) {
        const DRAIN_PER_S: f64 = 4_000.0;
        const SECONDS: u32 = 600;
        const TICK_S: f64 = 0.01;
        let bound = 20.0 * DRAIN_PER_S;
        let (mut gate, mut held, mut drained) = (GateState::default(), 0.0, 0.0);
        let names: Vec<_> = (0..rates.len()).map(|source| source.to_string()).collect();
        let (mut due, mut sent, mut came_in) = (vec![0.0; rates.len()], vec![0.0; rates.len()], vec![0.0; rates.len()]);
        for tick in 0..(f64::from(SECONDS) / TICK_S) as u32 {
            let now_s = f64::from(tick) * TICK_S;
            for (source, rate) in rates.iter().enumerate() {
                due[source] += rate * TICK_S;
                while due[source] >= 10.0 {
                    due[source] -= 10.0;
                    sent[source] += 10.0;
                    if gate.ask(&names[source], 1_000, usage(held / bound), now_s) == Turn::In {
                        came_in[source] += 10.0;
                        held += 10.0;
                    }
                }
            }
            let taken = (DRAIN_PER_S * TICK_S).min(held);
            held -= taken;
            drained += taken;
        }
        let shares = came_in.iter().zip(&sent).map(|(came_in, sent)| came_in / sent).collect();
        (shares, drained / (DRAIN_PER_S * f64::from(SECONDS)))
    }

    #[test]
    fn sources_below_their_fair_share_come_in_while_others_are_above_it() {
        // One source that asks for three times what the database takes, beside 19 that send a little.
        let mut rates = vec![10.0; 20];
        rates[0] = 12_000.0;
        let (came_in, used) = overload(&rates);
        assert!(came_in[1..].iter().all(|share| *share == 1.0), "{came_in:?}");
        assert!(used > 0.95 && came_in[0] > 0.28, "{used} {came_in:?}");
        // Three levels: the fair share is 1,000 of each of the three largest.
        let (came_in, used) = overload(&[500.0, 500.0, 4_000.0, 4_000.0, 4_000.0]);
        assert!(came_in[..2].iter().all(|share| *share == 1.0), "{came_in:?}");
        assert!(used > 0.95 && came_in[2..].iter().all(|share| (0.2..0.32).contains(share)), "{used} {came_in:?}");
        // All alike: all wait alike.
        let (came_in, used) = overload(&[60.0; 200]);
        assert!(used > 0.95 && came_in.iter().all(|share| (0.28..0.42).contains(share)), "{used} {came_in:?}");
    }
}
