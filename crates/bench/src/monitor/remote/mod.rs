//! The counters of another machine: `loadline watch` sends them there, and a run whose server is on that machine reads them.
//!
//! Main functions: [`serve`] and [`Remote::connect`]. Both sides exchange lines of JSON. The watcher greets with a random text; the reader uses it to
//! prove that it knows the token, which itself is never sent, and names the server's processes. Then a line of counters comes at each interval until
//! one side ends. Invariant: input from the other side is bounded before it is read, and never decides how much memory is taken.

mod reading;
mod serve;

use serde::{Deserialize, Serialize};

use super::counters::{Counters, MachineCpu, ProcessCounters};

pub use reading::{Remote, RemoteHost, WatchAddress, check_watcher_name, read_address};
pub use serve::serve;

/// Version of the protocol.
const VERSION: u32 = 2;
/// Default port.
pub const PORT: u16 = 7481;
/// Maximum bytes of a line.
pub const LINE_BYTES_MOST: usize = 4 << 10;
/// Maximum number of process names, and maximum bytes of each.
const NAMES_MOST: usize = 16;
const NAME_BYTES_MOST: usize = 64;
/// Minimum and maximum milliseconds between two lines.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 50..=60_000;

/// The watcher's greeting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hello {
    loadline_watch: u32,
    /// The random text that the proof is made from.
    nonce: String,
    /// Whether the watcher asks for a proof.
    asks_token: bool,
}

/// The reader's request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Ask {
    /// HMAC-SHA-256 of the nonce with the token, in hexadecimal digits; empty without a token.
    proof: String,
    /// Names of the server's processes.
    processes: Vec<String>,
    interval_ms: u64,
}

/// The watcher's answer to the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Answer {
    /// The watcher sends no counters.
    Refused {
        /// The reason.
        refused: String,
    },
    /// The watched machine.
    Host(RemoteHost),
}

/// A line of counters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Line {
    /// Time by the watcher's clock, in nanoseconds.
    at_ns: u64,
    /// CPU time of the machine in ticks: user, system, iowait, idle, stolen.
    cpu: [u64; 5],
    /// The machine: context switches, write requests, bytes written, received and sent, memory in use.
    machine: [u64; 6],
    /// The server's processes: CPU time in nanoseconds, bytes written, memory.
    server: [u64; 3],
    /// CPU time in nanoseconds that others have used since the first line; `None` if it cannot be seen.
    others_cpu_ns: Option<u64>,
    /// Number of the server's processes found.
    processes: u32,
    /// CPU time of the watching itself, in nanoseconds.
    monitor_cpu_ns: u64,
}

impl Line {
    fn of(counters: &Counters, at_ns: u64, others_cpu_ns: Option<u64>, processes: u32) -> Self {
        let MachineCpu { user, system, iowait, idle, stolen } = counters.machine;
        let ProcessCounters { cpu_ns, written_bytes, memory_bytes } = counters.server;
        let machine = [
            counters.context_switches,
            counters.write_requests,
            counters.written_bytes,
            counters.received_bytes,
            counters.sent_bytes,
            counters.memory_used_bytes,
        ];
        let (cpu, server) = ([user, system, iowait, idle, stolen], [cpu_ns, written_bytes, memory_bytes]);
        let monitor_cpu_ns = counters.monitor_cpu_ns;
        Line { at_ns, cpu, machine, server, others_cpu_ns, processes, monitor_cpu_ns }
    }

    fn counters(&self, at: std::time::Instant) -> Counters {
        let [user, system, iowait, idle, stolen] = self.cpu;
        let [context_switches, write_requests, written_bytes, received_bytes, sent_bytes, memory_used_bytes] =
            self.machine;
        let [cpu_ns, server_written_bytes, memory_bytes] = self.server;
        Counters {
            machine: MachineCpu { user, system, iowait, idle, stolen },
            context_switches,
            write_requests,
            written_bytes,
            received_bytes,
            sent_bytes,
            memory_used_bytes,
            server: ProcessCounters { cpu_ns, written_bytes: server_written_bytes, memory_bytes },
            monitor_cpu_ns: self.monitor_cpu_ns,
            ..Counters::zero(at)
        }
    }
}

/// Returns the proof of knowing a token.
fn proof(token: &str, nonce: &str) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, token.as_bytes());
    ring::hmac::sign(&key, nonce.as_bytes()).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns whether a proof is right, in a time that does not depend on how much of it is right.
fn is_proof(token: &str, nonce: &str, given: &str) -> bool {
    let right = proof(token, nonce);
    let differs = right.bytes().zip(given.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b));
    right.len() == given.len() && differs == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn proofs_are_those_of_rfc_4231() {
        // Test case 2 of RFC 4231.
        let right = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(proof("Jefe", "what do ya want for nothing?"), right);
        assert!(is_proof("Jefe", "what do ya want for nothing?", right));
        assert!(!is_proof("Jefe", "what do ya want for nothing?", &right.replace("5b", "5c")));
        assert!(!is_proof("Jefe", "what do ya want for nothing?", ""));
        assert!(!is_proof("jefe", "what do ya want for nothing?", right));
    }

    #[test]
    fn counters_come_back_as_they_went() {
        let at = Instant::now();
        let counters = Counters {
            machine: MachineCpu { user: 1, system: 2, iowait: 3, idle: 4, stolen: 5 },
            context_switches: 6,
            write_requests: 7,
            written_bytes: 8,
            received_bytes: 9,
            sent_bytes: 10,
            memory_used_bytes: 11,
            server: ProcessCounters { cpu_ns: 12, written_bytes: 13, memory_bytes: 14 },
            monitor_cpu_ns: 15,
            ..Counters::zero(at)
        };
        let line = serde_json::to_string(&Line::of(&counters, 7, Some(3), 1)).unwrap();
        let read: Line = serde_json::from_str(&line).unwrap();
        assert_eq!((read.counters(at), read.others_cpu_ns, read.at_ns), (counters, Some(3), 7));
    }
}
