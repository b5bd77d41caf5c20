//! TCP ports for servers that tests start by themselves.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU16, Ordering};

/// The lowest port that is tried: services of a machine rarely have one between it and those that the kernel gives away.
const LOWEST: u16 = 10_000;

/// A TCP port of 127.0.0.1 on which nobody listens, and which the kernel gives to nobody until the server of a test has it.
///
/// The kernel gives whoever connects, and whoever listens on port 0, a port from `ip_local_port_range`. A test that found a free one there could lose it to a
/// neighbour, or to its own attempt to connect, before the server listens. These lie below that range; each is given once by a process.
pub fn free() -> u16 {
    static GIVEN: AtomicU16 = AtomicU16::new(0);
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first_given_away = range.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(32_768_u16);
    let ports =
        first_given_away.checked_sub(LOWEST).filter(|ports| *ports > 0).expect("ports that the kernel gives to nobody");
    // Processes begin at places of their own, so that two that run at the same time do not try the same ports.
    let begin = (u64::from(std::process::id()) * 101 % u64::from(ports)) as u16;
    let port =
        || LOWEST + ((u32::from(begin) + u32::from(GIVEN.fetch_add(1, Ordering::SeqCst))) % u32::from(ports)) as u16;
    (0..ports).map(|_| port()).find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("a free port")
}
