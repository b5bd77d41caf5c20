//! How load threads share the machine's CPUs: how many there are, where each runs, and the CPU time that the scheduler gives it.
//!
//! Main functions: [`loop_count`], [`give_way`], [`turns`]; [`CpuSpan`] measures what a thread used in the measured
//! phase. Invariant: nothing here changes any thread except the calling one.

use super::clock::thread_cpu_s;
use crate::server::{CpuList, allowed_to_this_thread};

/// Maximum number of connections of one event loop if there are CPUs for more loops, unless the study says otherwise:
/// reading more answers in one pass would inflate the times of the last ones.
pub const CLIENTS_PER_LOOP: u32 = 64;

/// Number of connections from which on a second loop pays if there are plenty of CPUs.
const CLIENTS_PER_SPARE_LOOP: usize = 16;

/// One in this many CPUs is for load threads as long as no loop is full: the others are the server's.
const CPUS_PER_SPARE_LOOP: usize = 4;

/// Returns how many loops carry these connections on these CPUs if the study does not say: one per 64 connections, more if there are plenty of CPUs,
/// and never more than there are CPUs, because loops that take turns only delay each other.
pub fn loop_count(connections: usize, cpus: usize) -> usize {
    let needed = connections.div_ceil(CLIENTS_PER_LOOP as usize);
    let spare = (connections / CLIENTS_PER_SPARE_LOOP).min(cpus / CPUS_PER_SPARE_LOOP);
    needed.max(spare).clamp(1, cpus.max(1))
}

/// Number of connections from which on a loop of a closed loop is pinned to one CPU; with fewer, pinning makes no measurable difference.
pub const BUSY_LOOP_CLIENTS: usize = 32;

/// Returns a CPU for each of several busy loops, from the last one that the calling thread may use downwards: loops that move keep waking the server
/// on each other's CPUs. Empty if there are fewer CPUs than loops, or if a loop has few connections.
pub fn cpus_of_loops(loops: usize, least_connections: usize) -> Vec<CpuList> {
    let allowed = allowed_to_this_thread().filter(|_| loops > 1 && least_connections >= BUSY_LOOP_CLIENTS);
    let cpus = allowed.map_or(Vec::new(), |allowed| allowed.each_alone());
    if cpus.len() < loops { Vec::new() } else { cpus.into_iter().rev().take(loops).collect() }
}

/// Returns the number of CPUs that the calling thread may use; 1 if the kernel does not say.
pub fn cpu_count() -> usize {
    allowed_to_this_thread().map_or(1, |cpus| cpus.as_slice().len())
}

/// Makes the calling thread wait for a free CPU or for its turn when an answer wakes it, instead of preempting a
/// running thread. More answers have then arrived, and one pass reads them all. Returns whether the kernel agreed.
pub fn give_way() -> bool {
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 names the calling thread, and the pointer is to a value of ours that outlives the call.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_BATCH, &none) == 0 }
}

/// The scheduler's account of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Turns {
    /// Time in which the thread was ready to run and had no CPU, in seconds.
    pub delayed_s: f64,
    /// Number of times that the thread got a CPU.
    pub count: u64,
}

impl Turns {
    /// Returns the difference to an earlier reading.
    pub fn since(self, earlier: Turns) -> Turns {
        let count = self.count.saturating_sub(earlier.count);
        Turns { delayed_s: (self.delayed_s - earlier.delayed_s).max(0.0), count }
    }
}

/// Returns the scheduler's account of the calling thread so far; `None` if the kernel does not keep one.
pub fn turns() -> Option<Turns> {
    parse_turns(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)
}

/// Parses nanoseconds on a CPU, nanoseconds ready without one, and the number of turns. A kernel that keeps no account writes zeros.
fn parse_turns(text: &str) -> Option<Turns> {
    let mut fields = text.split_ascii_whitespace().map(str::parse::<u64>);
    let mut next = || fields.next()?.ok();
    let (_running_ns, delayed_ns, count) = (next()?, next()?, next()?);
    (count > 0).then_some(Turns { delayed_s: delayed_ns as f64 / 1e9, count })
}

/// Measures the resources that a loop's thread used since the start of the measured phase.
pub struct CpuSpan {
    measure_ns: u64,
    begun: Option<Looked>,
}

/// The counters of a thread at one time.
#[derive(Clone, Copy)]
struct Looked {
    at_ns: u64,
    cpu_s: f64,
    turns: Option<Turns>,
}

/// The resources that a thread used between two readings.
pub struct Used {
    /// CPU time, in seconds.
    pub cpu_s: f64,
    /// Elapsed time, in seconds.
    pub wall_s: f64,
    /// The scheduler's account; `None` if the kernel does not keep one.
    pub turns: Option<Turns>,
}

impl Looked {
    fn at(at_ns: u64) -> Self {
        Looked { at_ns, cpu_s: thread_cpu_s(), turns: turns() }
    }
}

impl CpuSpan {
    /// Makes a span that begins with the measured phase.
    pub fn new(measure_ns: u64) -> Self {
        CpuSpan { measure_ns, begun: None }
    }

    /// Notes the first time within the measured phase; called often by the loop's thread.
    #[inline]
    pub fn observe(&mut self, now_ns: u64) {
        if self.begun.is_none() && now_ns >= self.measure_ns {
            self.begun = Some(Looked::at(now_ns));
        }
    }

    /// Returns the resources used since that time.
    pub fn finish(&self, now_ns: u64) -> Used {
        let end = Looked::at(now_ns);
        let begun = self.begun.unwrap_or(end);
        Used {
            cpu_s: end.cpu_s - begun.cpu_s,
            wall_s: end.at_ns.saturating_sub(begun.at_ns) as f64 / 1e9,
            turns: end.turns.zip(begun.turns).map(|(end, begun)| end.since(begun)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_never_more_loops_than_cpus_and_more_where_cpus_are_plenty() {
        let loops = |connections| [1, 2, 4, 16].map(|cpus| loop_count(connections, cpus));
        assert_eq!(loops(1), [1, 1, 1, 1]);
        assert_eq!(loops(64), [1, 1, 1, 4]);
        assert_eq!(loops(130), [1, 2, 3, 4]);
        assert_eq!(loops(512), [1, 2, 4, 8]);
        assert_eq!(loop_count(0, 0), 1);
    }

    #[test]
    fn what_the_scheduler_gave_is_read_and_zeros_are_nothing() {
        let turns = parse_turns("833248 41572000 2\n").unwrap();
        assert_eq!(turns, Turns { delayed_s: 0.041572, count: 2 });
        assert_eq!(turns.since(Turns { delayed_s: 0.041, count: 1 }).count, 1);
        assert_eq!(parse_turns("0 0 0\n"), None, "a kernel without these statistics");
        assert_eq!(parse_turns("1 2"), None);
        assert_eq!(parse_turns("a b c"), None);
    }

    #[test]
    fn a_thread_that_gives_way_is_a_batch_job_and_no_other_is() {
        let policy = || {
            // SAFETY: 0 names the calling thread, and no pointer is passed.
            unsafe { libc::sched_getscheduler(0) }
        };
        let before = policy();
        let inside = std::thread::spawn(move || (give_way(), policy())).join().unwrap();
        assert_eq!(inside, (true, libc::SCHED_BATCH));
        assert_eq!(policy(), before);
    }
}
