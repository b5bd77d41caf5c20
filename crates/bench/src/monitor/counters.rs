//! The kernel's counters, and the parsing of the texts that contain them.
//!
//! Main type: [`Counters`]. Invariant: the parsing functions are pure and return `None` for a text of another form; a
//! counter that could not be read keeps its previous value.

use std::time::Instant;

/// All counters at one time. Everything except the memory only grows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Counters {
    pub at: Instant,
    pub machine: MachineCpu,
    pub context_switches: u64,
    pub write_requests: u64,
    pub written_bytes: u64,
    pub received_bytes: u64,
    pub sent_bytes: u64,
    pub memory_used_bytes: u64,
    pub server: ProcessCounters,
    pub recorder: ProcessCounters,
    pub client: ProcessCounters,
    /// CPU time of the monitoring thread.
    pub monitor_cpu_ns: u64,
}

/// CPU time of all CPUs of the machine together, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct MachineCpu {
    pub user: u64,
    pub system: u64,
    pub iowait: u64,
    pub idle: u64,
    /// Time that a hypervisor gave to other machines.
    pub stolen: u64,
}

/// The counters of a group of processes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct ProcessCounters {
    pub cpu_ns: u64,
    pub written_bytes: u64,
    pub memory_bytes: u64,
}

impl Counters {
    /// Returns counters that are all zero.
    pub fn zero(at: Instant) -> Self {
        Counters {
            at,
            machine: MachineCpu::default(),
            context_switches: 0,
            write_requests: 0,
            written_bytes: 0,
            received_bytes: 0,
            sent_bytes: 0,
            memory_used_bytes: 0,
            server: ProcessCounters::default(),
            recorder: ProcessCounters::default(),
            client: ProcessCounters::default(),
            monitor_cpu_ns: 0,
        }
    }
}

/// Reads CPU times and context switches from `/proc/stat`.
pub(super) fn parse_machine(text: &str) -> Option<(MachineCpu, u64)> {
    let mut cpu = None;
    let mut context_switches = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("cpu ") {
            cpu = parse_cpu_line(rest);
        } else if let Some(rest) = line.strip_prefix("ctxt ") {
            context_switches = rest.trim().parse().ok();
            break;
        }
    }
    Some((cpu?, context_switches?))
}

/// Reads user nice system idle iowait irq softirq steal guest guest_nice; the guests' time is part of user and nice.
fn parse_cpu_line(text: &str) -> Option<MachineCpu> {
    let mut times = [0_u64; 8];
    let mut fields = text.split_ascii_whitespace();
    for (place, time) in times.iter_mut().enumerate() {
        *time = match fields.next() {
            Some(field) => field.parse().ok()?,
            // Old kernels have only four times.
            None if place >= 4 => 0,
            None => return None,
        };
    }
    let [user, nice, system, idle, iowait, interrupts, soft_interrupts, stolen] = times;
    Some(MachineCpu { user: user + nice, system: system + interrupts + soft_interrupts, iowait, idle, stolen })
}

/// Reads the memory in use from `/proc/meminfo`, without memory that the kernel would free at once.
pub(super) fn parse_memory_used_bytes(text: &str) -> Option<u64> {
    let total = meminfo_bytes(text, "MemTotal:")?;
    let available = meminfo_bytes(text, "MemAvailable:").or_else(|| {
        let parts = ["MemFree:", "Buffers:", "Cached:"].map(|name| meminfo_bytes(text, name));
        parts.into_iter().sum()
    })?;
    Some(total.saturating_sub(available))
}

/// Reads one line of `/proc/meminfo`, in bytes.
pub(super) fn meminfo_bytes(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = rest.split_ascii_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}

/// Reads the write requests and bytes written of the named devices together from `/proc/diskstats`.
pub(super) fn parse_disks(text: &str, devices: &[String]) -> Option<(u64, u64)> {
    let (mut requests, mut bytes) = (0, 0);
    for line in text.lines() {
        // The fields are: major minor name, four figures of reading, then writes, merged writes, sectors written.
        let mut fields = line.split_ascii_whitespace().skip(2);
        let name = fields.next()?;
        if devices.iter().any(|device| device == name) {
            requests += fields.nth(4)?.parse::<u64>().ok()?;
            // A sector is 512 bytes here, whatever the device's sector size is.
            bytes += fields.nth(1)?.parse::<u64>().ok()? * 512;
        }
    }
    Some((requests, bytes))
}

/// Reads the bytes received and sent from `/proc/net/dev`, of all interfaces or of one.
pub(super) fn parse_network(text: &str, interface: Option<&str>) -> Option<(u64, u64)> {
    let (mut received, mut sent) = (0, 0);
    for line in text.lines().skip(2) {
        // Names may contain colons: eth0:1.
        let (name, figures) = line.rsplit_once(':')?;
        if interface.is_some_and(|interface| name.trim() != interface) {
            continue;
        }
        let mut figures = figures.split_ascii_whitespace();
        received += figures.next()?.parse::<u64>().ok()?;
        sent += figures.nth(7)?.parse::<u64>().ok()?;
    }
    Some((received, sent))
}

/// Reads from `/proc/PID/stat` the user and system time of the process's ended children, in clock ticks. The name, in
/// parentheses, may contain spaces and parentheses.
pub(super) fn parse_ended_children_ticks(text: &str) -> Option<u64> {
    let mut fields = text[text.rfind(')')? + 1..].split_ascii_whitespace().skip(13);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Reads from `/proc/PID/io` the bytes that the process and its ended children passed to the kernel for storage.
pub(super) fn parse_written_bytes(text: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix("write_bytes:"))?;
    rest.trim().parse().ok()
}

/// Reads from `/proc/PID/statm` the resident pages, and how many of them may be shared with other processes.
pub(super) fn parse_resident_pages(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace().skip(1);
    let resident = fields.next()?.parse().ok()?;
    Some((resident, fields.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_cpu_times_are_in_one_of_five() {
        let text = "cpu  100 5 30 1000 20 1 2 7 50 3\ncpu0 1 1 1 1 1 1 1 1 1 1\nintr 99 1 2\nctxt 4711\nbtime 1\n";
        let (cpu, context_switches) = parse_machine(text).unwrap();
        assert_eq!(cpu, MachineCpu { user: 105, system: 33, iowait: 20, idle: 1000, stolen: 7 });
        assert_eq!(cpu.user + cpu.system + cpu.iowait + cpu.idle + cpu.stolen, 100 + 5 + 30 + 1000 + 20 + 1 + 2 + 7);
        assert_eq!(context_switches, 4711);
        assert_eq!(parse_machine("cpu 1 2 3\nctxt 1\n"), None);
        assert_eq!(parse_machine(""), None);
    }

    #[test]
    fn caches_are_not_memory_in_use() {
        let text = "MemTotal:       1000 kB\nMemFree:         100 kB\nMemAvailable:    700 kB\nBuffers: 50 kB\nCached: 200 kB\n";
        assert_eq!(parse_memory_used_bytes(text), Some(300 * 1024));
        let old = text.replace("MemAvailable", "Something");
        assert_eq!(parse_memory_used_bytes(&old), Some(650 * 1024));
        assert_eq!(parse_memory_used_bytes("MemTotal: 1 kB\n"), None);
    }

    #[test]
    fn only_the_disks_named_are_counted() {
        let text = " 254 0 vda 65871 12018 7897610 22359 25592 44553 14344104 66764 0 13256 89968 10737 17 2243024 788 2724 56\n 254 1 vda1 1 1 1 1 9999 1 9999 1 0 1 1 1 1 1 1 1 1\n   8 0 sda 1 2 3 4 5 6 7 8 9 10 11\n";
        let devices = ["vda".to_owned(), "sda".to_owned()];
        assert_eq!(parse_disks(text, &devices), Some((25_597, (14_344_104 + 7) * 512)));
        assert_eq!(parse_disks(text, &[]), Some((0, 0)));
        assert_eq!(parse_disks("254 0 vda 1 2\n", &devices), None);
    }

    #[test]
    fn all_interfaces_are_counted() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n    lo:    3193      29    0    0    0     0          0         0     3200      29    0    0    0     0       0          0\n  eth0: 100 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n";
        assert_eq!(parse_network(text, None), Some((3293, 3207)));
        assert_eq!(parse_network(text, Some("eth0")), Some((100, 7)));
        assert_eq!(parse_network("a\nb\nlo: 1 2 3\n", None), None);
    }

    #[test]
    fn a_process_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let text = "77 (my) R (b c)) S 12 77 77 0 -1 4194560 1 0 0 0 5 6 70 8 20 0 1 0 4711 1 2 3\n";
        assert_eq!(parse_ended_children_ticks(text), Some(78));
        assert_eq!(parse_ended_children_ticks("77 (x) S 1 2\n"), None);
        assert_eq!(parse_ended_children_ticks(""), None);
    }

    #[test]
    fn bytes_and_pages_of_a_process_are_read() {
        let text =
            "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 4096\ncancelled_write_bytes: 6\n";
        assert_eq!(parse_written_bytes(text), Some(4096));
        assert_eq!(parse_written_bytes(""), None);
        assert_eq!(parse_resident_pages("1000 300 200 1 0 50 0\n"), Some((300, 200)));
        assert_eq!(parse_resident_pages("1000"), None);
    }
}
