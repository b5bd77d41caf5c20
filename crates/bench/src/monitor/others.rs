//! The activity of other processes: CPU time of everything on the machine that is neither loadline nor the database.
//!
//! Main types: [`Others`] and [`pids_named`]. Invariant: loadline's own process and all its descendants never count as
//! others; neither do kernel threads, because they work for other processes.

use std::collections::BTreeMap;
use std::time::Instant;

/// Flag of a kernel thread in `/proc/PID/stat` (PF_KTHREAD).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The properties of a process that matter here.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Process {
    name: String,
    parent: u32,
    is_kernel: bool,
    /// CPU time in clock ticks.
    ticks: u64,
}

/// The processes at the start of a measurement.
#[derive(Debug)]
pub struct Others {
    at: Instant,
    processes: BTreeMap<u32, Process>,
    /// Names of the processes that belong to the database.
    servers: Vec<String>,
}

impl Others {
    /// Notes all processes; those with one of these names belong to the database.
    pub fn begin(servers: &[impl AsRef<str>]) -> Self {
        let servers = servers.iter().map(|name| name.as_ref().to_owned()).collect();
        Others { at: Instant::now(), processes: processes(), servers }
    }

    /// Returns the CPU time that others have used since the start, in nanoseconds; `None` if processes cannot be seen. Processes that have ended since are not counted.
    pub fn cpu_ns(&self) -> Option<u64> {
        // SAFETY: sysconf only returns a number.
        let per_s = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok().filter(|per_s| *per_s > 0)?;
        Some(grown(&self.processes, &processes(), std::process::id(), &self.servers)? * (1_000_000_000 / per_s))
    }

    /// Returns how many CPUs others kept busy since the start; `None` if processes cannot be seen.
    pub fn end(self) -> Option<f64> {
        let (seconds, now) = (self.at.elapsed().as_secs_f64(), processes());
        // SAFETY: sysconf only returns a number.
        let per_s = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
        let ticks = grown(&self.processes, &now, std::process::id(), &self.servers)?;
        (seconds > 0.0 && per_s > 0.0).then(|| ticks as f64 / per_s / seconds)
    }
}

/// Returns the pids of all processes with one of these names.
pub fn pids_named(names: &[impl AsRef<str>]) -> Vec<u32> {
    let is_named = |process: &Process| names.iter().any(|name| name.as_ref() == process.name);
    let named = |(pid, process): (u32, Process)| is_named(&process).then_some(pid);
    processes().into_iter().filter_map(named).collect()
}

/// Returns the ticks that others used between two readings.
fn grown(
    before: &BTreeMap<u32, Process>,
    after: &BTreeMap<u32, Process>,
    own: u32,
    servers: &[impl AsRef<str>],
) -> Option<u64> {
    after.get(&own)?;
    let is_own = |pid: u32| {
        let parent = |pid: &u32| after.get(pid).map(|process| process.parent).filter(|parent| *parent > 0);
        // Pids are reused: the limit ends a chain of parents that leads in a circle.
        std::iter::successors(Some(pid), parent).take(64).any(|pid| pid == own)
    };
    let others = after.iter().filter(|(pid, process)| {
        !process.is_kernel && !servers.iter().any(|name| name.as_ref() == process.name) && !is_own(**pid)
    });
    // A process that was not there before has started since.
    let used = |(pid, process): (&u32, &Process)| {
        process.ticks.saturating_sub(before.get(pid).map_or(0, |before| before.ticks))
    };
    Some(others.map(used).sum())
}

fn processes() -> BTreeMap<u32, Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    // A process may have ended by now.
    let look = |pid: u32| Some((pid, parse(&std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)?));
    pids.filter_map(look).collect()
}

/// Parses `/proc/PID/stat`. The name may contain spaces and parentheses: it ends at the last parenthesis.
fn parse(stat: &str) -> Option<Process> {
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |place: usize| fields.get(place)?.parse::<u64>().ok();
    // The fields are: state, ppid, pgrp, session, tty, tpgid, flags, 4 counts of faults, utime, stime.
    Some(Process {
        name: name.to_owned(),
        parent: u32::try_from(number(1)?).ok()?,
        is_kernel: number(6)? & KERNEL_THREAD != 0,
        ticks: number(11)? + number(12)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let line = "42 (odd ) name) S 7 42 42 0 -1 4194304 1 2 3 4 50 60 700 800 20 0 1 0 9";
        let process = Process { name: "odd ) name".to_owned(), parent: 7, is_kernel: false, ticks: 110 };
        assert_eq!(parse(line), Some(process));
        assert_eq!(parse("42 (short) S 7"), None);
    }

    #[test]
    fn only_what_is_neither_ours_nor_the_databases_counts() {
        let process = |name: &str, parent, ticks| Process { name: name.to_owned(), parent, is_kernel: false, ticks };
        let before = BTreeMap::from([(1, process("init", 0, 5)), (10, process("loadline", 1, 5))]);
        let mut after = before.clone();
        after.insert(10, process("loadline", 1, 500));
        after.insert(11, process("mariadbd", 10, 500));
        after.insert(12, process("worker", 11, 500));
        after.insert(20, process("postgres", 1, 500));
        after.insert(30, process("compiler", 1, 70));
        after.insert(31, Process { is_kernel: true, ..process("kworker", 2, 500) });
        assert_eq!(grown(&before, &after, 10, &["postgres"]), Some(70));
        assert_eq!(grown(&before, &after, 10, &[""; 0]), Some(570));
        assert_eq!(grown(&before, &after, 99, &[""; 0]), None, "processes cannot be seen");
    }

    #[test]
    fn a_loop_elsewhere_is_seen_and_ones_own_is_not() {
        let begun = Others::begin(&[""; 0]);
        assert!(begun.end().is_some_and(|cpus| cpus >= 0.0));
        assert!(pids_named(&["no such process"]).is_empty());
    }
}
