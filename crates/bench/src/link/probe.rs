//! Measures a link: a short transfer in each direction and a few small ones back and forth.
//!
//! Main function: [`measure`]. Invariant: rates are measured between arrivals at the receiver's interface, so that
//! neither the start of the transfer nor data that the sender has buffered counts.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::{Host, LinkError, WIRE};
use crate::database::Namespace;
use crate::measurement::LinkMeasurement;
use crate::trial::LinkSettings;

/// Links below this rate, in bits per second, are measured for longer: a single packet must not matter.
const SLOW_BITS_PER_S: f64 = 2e6;
const SLOW_FOR: Duration = Duration::from_millis(1500);
const FAST_FOR: Duration = Duration::from_millis(400);
/// Share of a transfer that is not counted: TCP has not found the rate yet, and the buckets are full.
const WARM_UP: f64 = 0.4;
const LOOK_EVERY: Duration = Duration::from_millis(1);
const ROUND_TRIPS: usize = 5;
const PATIENCE: Duration = Duration::from_secs(20);

/// Measures a link between two hosts.
pub fn measure(client: &Host, server: &Host, link: &LinkSettings) -> Result<LinkMeasurement, LinkError> {
    let failed = |what: &str| LinkError::system(format!("measure the link {what}"));
    let length = if link.rate_bits_per_s.is_some_and(|rate| rate < SLOW_BITS_PER_S) { SLOW_FOR } else { FAST_FOR };
    let length = length + Duration::from_secs_f64(4.0 * link.delay_s);
    let round_trip_s = round_trip(client, server).map_err(failed("there and back"))?;
    let up = transfer(client, server, length).map_err(failed("from the client to the server"))?;
    let down = transfer(server, client, length).map_err(failed("from the server to the client"))?;
    Ok(LinkMeasurement {
        up_bits_per_s: up.wire_bits_per_s,
        down_bits_per_s: down.wire_bits_per_s,
        up_payload_bits_per_s: up.payload_bits_per_s,
        down_payload_bits_per_s: down.payload_bits_per_s,
        round_trip_s,
        suite: None,
    })
}

struct Rates {
    wire_bits_per_s: f64,
    payload_bits_per_s: f64,
}

fn listen(host: &Host) -> io::Result<(TcpListener, SocketAddr)> {
    let _inside = host.namespace.enter()?;
    let listener = TcpListener::bind((host.address, 0))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn connect(namespace: &Namespace, address: SocketAddr) -> io::Result<TcpStream> {
    let _inside = namespace.enter()?;
    let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

/// Sends from one host to another for `length`, and returns the rates.
fn transfer(from: &Host, to: &Host, length: Duration) -> io::Result<Rates> {
    let (listener, address) = listen(to)?;
    let mut sender = connect(&from.namespace, address)?;
    let (mut receiver, _) = listener.accept()?;
    receiver.set_read_timeout(Some(PATIENCE))?;
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        // The count starts before the first byte: otherwise data that arrived while a thread was started would be payload without a frame.
        let before = wire_bytes(&to.namespace)?;
        let is_over = &is_over;
        let watching = scope.spawn(move || watch(&to.namespace, before, is_over));
        let receiving = scope.spawn(move || io::copy(&mut receiver, &mut io::sink()));
        let sent = send(&mut sender, length);
        // The receiver ends when it has read everything.
        drop(sender);
        let gone = |_| io::Error::other("a thread of the transfer panicked");
        let payload = receiving.join().map_err(gone);
        is_over.store(true, Ordering::Release);
        let arrivals = watching.join().map_err(gone)??;
        sent?;
        let (payload, wire) = (payload?? as f64, arrivals.last().map_or(0, |(_, bytes)| *bytes) as f64);
        let wire_bits_per_s = rate_of(&arrivals).ok_or_else(|| io::Error::other("too little arrived"))?;
        Ok(Rates { wire_bits_per_s, payload_bits_per_s: wire_bits_per_s * payload / wire })
    })
}

fn send(stream: &mut TcpStream, length: Duration) -> io::Result<()> {
    let block = [0x5a; 4096];
    let end = Instant::now() + length;
    while Instant::now() < end {
        stream.write_all(&block)?;
    }
    Ok(())
}

/// Returns the arrivals on a host's link until the end of a transfer, as seconds and bytes since the first one. TCP
/// would deliver them to an application later, and many at once, if one of them had been lost.
fn watch(namespace: &Namespace, before: u64, is_over: &AtomicBool) -> io::Result<Vec<(f64, u64)>> {
    let mut arrivals: Vec<(f64, u64)> = Vec::new();
    let mut begun = Instant::now();
    loop {
        // The counter is read once more after the end: the last bytes came before it.
        let is_last = is_over.load(Ordering::Acquire);
        let (now, bytes) = (Instant::now(), wire_bytes(namespace)? - before);
        if arrivals.is_empty() {
            begun = now;
        }
        if bytes > arrivals.last().map_or(0, |(_, bytes)| *bytes) {
            arrivals.push(((now - begun).as_secs_f64(), bytes));
        }
        if is_last {
            return Ok(arrivals);
        }
        thread::sleep(LOOK_EVERY);
    }
}

/// Returns the rate in bits per second between the first arrival after the warm-up and the last one; `None` if there are not two.
fn rate_of(arrivals: &[(f64, u64)]) -> Option<f64> {
    let (last_s, last_bytes) = *arrivals.last()?;
    let (first_s, first_bytes) = *arrivals.iter().find(|(at_s, _)| *at_s >= WARM_UP * last_s)?;
    (last_s > first_s).then(|| 8.0 * (last_bytes - first_bytes) as f64 / (last_s - first_s))
}

/// Returns the median time that a byte takes there and another one back, in seconds.
fn round_trip(client: &Host, server: &Host) -> io::Result<f64> {
    let (listener, address) = listen(server)?;
    let mut asking = connect(&client.namespace, address)?;
    let (mut answering, _) = listener.accept()?;
    answering.set_nodelay(true)?;
    answering.set_read_timeout(Some(PATIENCE))?;
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut byte = [0];
            while let Ok(1) = answering.read(&mut byte) {
                if answering.write_all(&byte).is_err() {
                    return;
                }
            }
        });
        let mut times = Vec::with_capacity(ROUND_TRIPS);
        for _ in 0..ROUND_TRIPS {
            let begun = Instant::now();
            asking.write_all(&[1])?;
            asking.read_exact(&mut [0])?;
            times.push(begun.elapsed().as_secs_f64());
        }
        drop(asking);
        times.sort_by(f64::total_cmp);
        Ok(times[ROUND_TRIPS / 2])
    })
}

/// Returns the bytes that a host has received over its link so far, headers included.
fn wire_bytes(namespace: &Namespace) -> io::Result<u64> {
    let _inside = namespace.enter()?;
    let text = std::fs::read_to_string("/proc/thread-self/net/dev")?;
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(WIRE)?.strip_prefix(':'));
    let bytes = line.and_then(|figures| figures.split_ascii_whitespace().next()?.parse().ok());
    bytes.ok_or_else(|| io::Error::other("the link's interface is not in /proc/net/dev"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_between_arrivals_after_the_warm_up() {
        let arrivals = [(0.0, 9000), (0.1, 9100), (0.5, 10_000), (1.0, 15_000)];
        assert_eq!(rate_of(&arrivals), Some(8.0 * 5000.0 / 0.5));
        assert_eq!(rate_of(&arrivals[..1]), None);
        assert_eq!(rate_of(&[]), None);
    }
}
