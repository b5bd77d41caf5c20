//! The gate in front of the spool. Main types: [`GateState`], pure, and [`Gate`], which threads share.
//!
//! Hysteresis: it closes when the spool is filled to 90 %, and opens again at 75 %; otherwise it would flutter at the edge. From 50 % on
//! sources that have sent several times their equal share are asked to wait; how many times shrinks to one at 90 %.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::fairness::Shares;
use crate::recorder::log;

/// The gate closes when this share of the spool is filled.
pub const CLOSES_AT: f64 = 0.90;
/// A closed gate opens when this share is filled.
pub const OPENS_AT: f64 = 0.75;
/// From this share on sources are compared.
const FAIR_FROM: f64 = 0.50;
/// There, a source may have sent this many times its equal share.
const TIMES_EQUAL_MAX: f64 = 4.0;

/// How full the spool is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Usage {
    /// Share of the bound, 0 to 1.
    pub filled: f64,
    /// How fast it empties, in shares a second; 0 or less where it does not.
    pub empties_per_s: f64,
}

/// What a request is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Come in.
    In,
    /// This source has sent more than others: wait this long.
    Unfair(Duration),
    /// Nobody comes in: why, and for how long.
    Closed(String, Duration),
}

/// The gate's state.
#[derive(Debug, Default)]
pub struct GateState {
    is_closed: bool,
    shares: Shares,
}

impl GateState {
    /// Whether nobody comes in.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// So much is filled now; whether nobody comes in.
    pub fn see(&mut self, filled: f64) -> bool {
        self.is_closed = if self.is_closed { filled > OPENS_AT } else { filled >= CLOSES_AT };
        self.is_closed
    }

    /// A source wants to bring this many bytes.
    pub fn ask(&mut self, source: &str, bytes: u64, usage: Usage, now_s: f64) -> Turn {
        if self.see(usage.filled) {
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
        if usage.filled >= FAIR_FROM {
            let shortness = (usage.filled - FAIR_FROM) / (CLOSES_AT - FAIR_FROM);
            let most = TIMES_EQUAL_MAX + shortness * (1.0 - TIMES_EQUAL_MAX);
            let times = self.shares.times_equal(source);
            if times > most {
                return Turn::Unfair(Duration::from_secs_f64((times - most).clamp(1.0, 10.0)));
            }
        }
        self.shares.add(source, bytes, now_s);
        Turn::In
    }
}

/// Where the usage is read.
type ReadUsage = Box<dyn Fn() -> f64 + Send + Sync>;

/// The gate that intakes share.
pub struct Gate {
    state: Mutex<Guarded>,
    read: ReadUsage,
    begun: Instant,
}

#[derive(Default)]
struct Guarded {
    gate: GateState,
    /// When, and how filled, to see how fast it empties.
    seen: Option<(f64, f64)>,
    empties_per_s: f64,
}

impl Guarded {
    /// Closes or opens, and says so.
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
    /// A gate that reads how filled the spool is, 0 to 1.
    pub fn new(read: ReadUsage) -> Self {
        Gate { state: Mutex::default(), read, begun: Instant::now() }
    }

    /// Whether nobody comes in. It need not be asked by a request to open again.
    pub fn is_closed(&self) -> bool {
        let filled = (self.read)();
        let mut guarded = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        guarded.look(filled);
        guarded.gate.is_closed()
    }

    /// A source wants to bring this many bytes.
    pub fn ask(&self, source: &str, bytes: u64) -> Turn {
        let filled = (self.read)();
        let now_s = self.begun.elapsed().as_secs_f64();
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
        let gate = Gate::new(Box::new(move || *for_gate.lock().unwrap()));
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
        let mut alone = GateState::default();
        (0..1_000).for_each(|tick| assert_eq!(alone.ask("a", 1_000_000, usage(0.89), f64::from(tick)), Turn::In));
    }
}
