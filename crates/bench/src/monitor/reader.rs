//! Reads the kernel's counters repeatedly: files stay open, and the buffer is reused.
//!
//! Main type: [`Reader`]. Invariant: a process that vanishes is left out from then on and causes no error. An open file
//! below `/proc/PID` belongs to one process for ever, so that a reused pid is not mistaken for the old process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::counters::{
    Counters, ProcessCounters, parse_disks, parse_ended_children_ticks, parse_machine, parse_memory_used_bytes,
    parse_network, parse_resident_pages, parse_written_bytes,
};
use super::{MonitorError, PidSource, Targets};

/// The counters of the interfaces of a thread's network namespace; an open file keeps the namespace in which it was opened.
const NETWORK: &str = "/proc/thread-self/net/dev";

/// The open files and the state of reading.
pub(super) struct Reader {
    embedded: bool,
    /// The network interface that is counted; `None` for all.
    interface: Option<&'static str>,
    machine: File,
    memory: File,
    disks: File,
    network: File,
    own: ProcessFiles,
    server: Family,
    recorder: Family,
    /// Processes that drive a part of the load.
    agents: Family,
    devices: Vec<String>,
    buffer: Vec<u8>,
    previous: Counters,
    units: Units,
}

/// Processes that are counted together.
struct Family {
    find: Option<PidSource>,
    files: BTreeMap<u32, ProcessFiles>,
    pids: Vec<u32>,
    before: ProcessCounters,
}

#[derive(Debug, Clone, Copy)]
struct Units {
    tick_ns: u64,
    page_bytes: u64,
}

struct ProcessFiles {
    stat: File,
    /// `None` if reading it is not permitted.
    io: Option<File>,
    pages: File,
}

impl ProcessFiles {
    fn open(directory: &Path) -> io::Result<Self> {
        Ok(ProcessFiles {
            stat: File::open(directory.join("stat"))?,
            io: File::open(directory.join("io")).ok(),
            pages: File::open(directory.join("statm"))?,
        })
    }
}

/// Opens the counters of the network that is watched.
fn open_network(targets: &Targets) -> io::Result<File> {
    let _inside = targets.network.as_ref().map(|(namespace, _)| namespace.enter()).transpose()?;
    File::open(NETWORK)
}

impl Reader {
    pub fn new(targets: Targets) -> Result<Self, MonitorError> {
        let open = |path: &'static str| File::open(path).map_err(|source| MonitorError { path: path.into(), source });
        let own = Path::new("/proc/self");
        Ok(Reader {
            embedded: targets.embedded,
            interface: targets.network.as_ref().map(|(_, interface)| *interface),
            machine: open("/proc/stat")?,
            memory: open("/proc/meminfo")?,
            disks: open("/proc/diskstats")?,
            network: open_network(&targets).map_err(|source| MonitorError { path: NETWORK.into(), source })?,
            own: ProcessFiles::open(own).map_err(|source| MonitorError { path: own.to_owned(), source })?,
            server: Family::new(targets.server_pids),
            recorder: Family::new(targets.recorder_pids),
            agents: Family::new(targets.agent_pids),
            devices: whole_disks(),
            buffer: vec![0; 16 * 1024],
            previous: Counters::zero(Instant::now()),
            units: Units {
                tick_ns: 1_000_000_000 / configuration(libc::_SC_CLK_TCK),
                page_bytes: configuration(libc::_SC_PAGESIZE),
            },
        })
    }

    /// Returns the counters as they are now; a counter that cannot be read keeps its previous value.
    pub fn read(&mut self) -> Counters {
        let mut now = Counters { at: Instant::now(), ..self.previous };
        if let Some((cpu, context_switches)) = read_text(&self.machine, &mut self.buffer).and_then(parse_machine) {
            (now.machine, now.context_switches) = (cpu, context_switches);
        }
        if let Some(bytes) = read_text(&self.memory, &mut self.buffer).and_then(parse_memory_used_bytes) {
            now.memory_used_bytes = bytes;
        }
        let disks = read_text(&self.disks, &mut self.buffer).and_then(|text| parse_disks(text, &self.devices));
        if let Some(disks) = disks {
            (now.write_requests, now.written_bytes) = disks;
        }
        let interface = self.interface;
        let network = read_text(&self.network, &mut self.buffer).and_then(|text| parse_network(text, interface));
        if let Some(network) = network {
            (now.received_bytes, now.sent_bytes) = network;
        }
        now.client.cpu_ns = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap_or(now.client.cpu_ns);
        if let Some((_, counters, _)) = read_process(&self.own, None, &mut self.buffer, self.units) {
            now.client.memory_bytes = counters.memory_bytes;
            now.client.written_bytes = counters.written_bytes;
        }
        let agents = self.agents.read(&mut self.buffer, self.units);
        now.client.cpu_ns += agents.cpu_ns;
        now.client.memory_bytes += agents.memory_bytes;
        now.client.written_bytes += agents.written_bytes;
        now.server = self.server.read(&mut self.buffer, self.units);
        now.recorder = self.recorder.read(&mut self.buffer, self.units);
        if self.embedded {
            now.server.written_bytes = now.client.written_bytes;
        }
        now.monitor_cpu_ns = clock_ns(libc::CLOCK_THREAD_CPUTIME_ID).unwrap_or(now.monitor_cpu_ns);
        self.previous = now;
        now
    }
}

impl Family {
    fn new(find: Option<PidSource>) -> Self {
        Family { find, files: BTreeMap::new(), pids: Vec::new(), before: ProcessCounters::default() }
    }

    /// Returns the counters of all processes together.
    fn read(&mut self, buffer: &mut Vec<u8>, units: Units) -> ProcessCounters {
        self.pids.clear();
        if let Some(find) = &mut self.find {
            find(&mut self.pids);
        }
        let pids = &self.pids;
        self.files.retain(|pid, _| pids.contains(pid));
        let mut sum = ProcessCounters::default();
        // Processes of one family share memory: the largest shared part is counted once.
        let mut shared_bytes = 0;
        let mut found = false;
        for pid in pids {
            if !self.files.contains_key(pid) {
                let Ok(files) = ProcessFiles::open(&PathBuf::from(format!("/proc/{pid}"))) else { continue };
                self.files.insert(*pid, files);
            }
            match read_process(&self.files[pid], Some(*pid), buffer, units) {
                Some((cpu_ns, counters, shared)) => {
                    found = true;
                    sum.cpu_ns += cpu_ns;
                    sum.written_bytes += counters.written_bytes;
                    sum.memory_bytes += counters.memory_bytes.saturating_sub(shared);
                    shared_bytes = shared.max(shared_bytes);
                }
                None => drop(self.files.remove(pid)),
            }
        }
        sum.memory_bytes += shared_bytes;
        if !found {
            // The processes have ended: they hold no memory, and what they used stays counted.
            return ProcessCounters { memory_bytes: 0, ..self.before };
        }
        self.before = sum;
        sum
    }
}

/// Reads CPU time, other counters, and the shared part of the memory in bytes; `None` if the process has ended. CPU
/// time is read only if a pid is given.
fn read_process(
    files: &ProcessFiles,
    pid: Option<u32>,
    buffer: &mut Vec<u8>,
    units: Units,
) -> Option<(u64, ProcessCounters, u64)> {
    let mut counters = ProcessCounters::default();
    let (resident, shared) = read_text(&files.pages, buffer).and_then(parse_resident_pages)?;
    counters.memory_bytes = resident * units.page_bytes;
    if let Some(bytes) = files.io.as_ref().and_then(|file| read_text(file, buffer)).and_then(parse_written_bytes) {
        counters.written_bytes = bytes;
    }
    if let Some(pid) = pid {
        // The time of ended children is their parent's now; the process's own time is exact to the nanosecond.
        let ended = read_text(&files.stat, buffer).and_then(parse_ended_children_ticks)?;
        counters.cpu_ns = clock_ns(process_clock(pid))? + ended * units.tick_ns;
    }
    Some((counters.cpu_ns, counters, shared * units.page_bytes))
}

/// Reads a whole file of `/proc` from its beginning.
fn read_text<'a>(file: &File, buffer: &'a mut Vec<u8>) -> Option<&'a str> {
    let mut length = 0;
    loop {
        if length == buffer.len() {
            buffer.resize(buffer.len() * 2, 0);
        }
        match file.read_at(&mut buffer[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    // Process names may be any bytes; the fields after them are plain text.
    let text = &mut buffer[..length];
    text.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
    std::str::from_utf8(text).ok()
}

/// Returns the disks whose writes are counted: whole devices, without those in memory and those made of other devices, which are counted already.
fn whole_disks() -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/sys/block") else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| {
        let has_parts = std::fs::read_dir(entry.path().join("slaves")).is_ok_and(|mut parts| parts.next().is_some());
        (!has_parts).then(|| entry.file_name().into_string().ok()).flatten()
    });
    names.filter(|name| !["loop", "ram", "zram"].iter().any(|prefix| name.starts_with(prefix))).collect()
}

/// Returns the clock of another process's CPU time, as clock_getcpuclockid(3) makes it.
fn process_clock(pid: u32) -> libc::clockid_t {
    (!(pid as libc::clockid_t) << 3) | 2
}

/// Returns the time of a clock, in nanoseconds; `None` if there is no such clock, for instance because the process has ended.
fn clock_ns(clock: libc::clockid_t) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure may be written to during the call.
    match unsafe { libc::clock_gettime(clock, &mut time) } {
        0 => Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64),
        _ => None,
    }
}

/// Returns a configuration value of the operating system; never 0.
fn configuration(name: libc::c_int) -> u64 {
    // SAFETY: sysconf has no conditions.
    unsafe { libc::sysconf(name) }.max(1) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn burn_cpu() -> u64 {
        (0..3_000_000_u64).fold(1, |sum, number| std::hint::black_box(sum ^ number.wrapping_mul(sum | 1)))
    }

    #[test]
    fn the_clock_of_a_process_is_the_one_it_sees_itself() {
        burn_cpu();
        let before = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap();
        let by_pid = clock_ns(process_clock(std::process::id())).unwrap();
        let after = clock_ns(libc::CLOCK_PROCESS_CPUTIME_ID).unwrap();
        assert!(before <= by_pid && by_pid <= after && before > 0);
    }

    #[test]
    fn a_process_that_ends_and_its_children_stay_counted() {
        // This shell's child works and ends; the shell then waits for input.
        let mut shell = std::process::Command::new("sh")
            .args(["-c", "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; echo done; read line"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = shell.id();
        let targets = Targets::server(Box::new(move |pids: &mut Vec<u32>| pids.push(pid)));
        let mut reader = Reader::new(targets).unwrap();
        reader.read();
        io::Read::read_exact(shell.stdout.as_mut().unwrap(), &mut [0; 5]).unwrap();
        let after = reader.read();
        assert!(after.server.cpu_ns > 10_000_000, "the child's work: {} ns", after.server.cpu_ns);
        assert!(after.server.memory_bytes > 100_000);
        drop(shell.stdin.take());
        shell.wait().unwrap();
        let gone = reader.read();
        assert_eq!(gone.server.cpu_ns, after.server.cpu_ns, "what it used stays counted");
        assert_eq!(gone.server.memory_bytes, 0);
    }

    #[test]
    fn counters_of_this_machine_grow() {
        let mut reader = Reader::new(Targets::none()).unwrap();
        let first = reader.read();
        burn_cpu();
        let second = reader.read();
        assert!(second.client.cpu_ns > first.client.cpu_ns);
        assert!(second.monitor_cpu_ns > first.monitor_cpu_ns);
        assert!(second.context_switches >= first.context_switches);
        assert!(first.machine.user > 0 && first.memory_used_bytes > 0 && first.client.memory_bytes > 0);
        assert_eq!(second.server, ProcessCounters::default());
    }

    #[test]
    fn an_embedded_database_writes_as_this_process() {
        let mut reader = Reader::new(Targets::embedded()).unwrap();
        let counters = reader.read();
        assert_eq!(counters.server.written_bytes, counters.client.written_bytes);
        assert_eq!(counters.server.cpu_ns, 0);
    }

    #[test]
    fn partitions_and_disks_in_memory_are_left_out() {
        for name in whole_disks() {
            assert!(!name.starts_with("loop") && !name.starts_with("zram"), "{name}");
            assert!(!Path::new("/sys/class/block").join(&name).join("partition").exists(), "{name}");
        }
    }
}
