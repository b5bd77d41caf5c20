//! What a process costs, seen from outside while it runs. Main function: [`watched`].

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Child;
use std::time::{Duration, Instant};

/// What a process cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    /// Its own CPU time, without that of its children, in seconds.
    pub cpu_s: f64,
    /// Time from its start to its end, in seconds.
    pub elapsed_s: f64,
    /// Its largest resident memory, in bytes.
    pub memory_most_bytes: f64,
}

/// Waits for a process and returns what it cost.
pub fn watched(mut child: Child) -> Cost {
    let (begun, pid) = (Instant::now(), child.id());
    let mut cost = Cost::default();
    loop {
        let (cpu_s, memory) = seen(pid).unwrap_or_default();
        cost.cpu_s = cost.cpu_s.max(cpu_s);
        cost.memory_most_bytes = cost.memory_most_bytes.max(memory);
        if child.try_wait().expect("the process can be waited for").is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    cost.elapsed_s = begun.elapsed().as_secs_f64();
    cost
}

/// Returns CPU time in seconds and the largest resident memory in bytes so far.
fn seen(pid: u32) -> Option<(f64, f64)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
    let ticks = fields.get(11)?.parse::<f64>().ok()? + fields.get(12)?.parse::<f64>().ok()?;
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    // The kernel counts in hundredths of a second.
    Some((ticks / 100.0, kib * 1024.0))
}

/// Asks for a page of a server on this machine; `None` if it does not answer.
pub fn page(port: u16, path: &str) -> Option<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    connection.set_read_timeout(Some(Duration::from_secs(5))).ok()?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut text = String::new();
    connection.read_to_string(&mut text).ok()?;
    Some(text.split_once("\r\n\r\n")?.1.to_owned())
}
