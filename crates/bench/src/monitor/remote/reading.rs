//! The reading side of a connection to a watcher on another machine.
//!
//! Main type: [`Remote`].

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::{Answer, Ask, Hello, LINE_BYTES_MOST, Line, PORT, VERSION, proof};
use crate::database::channel::{Channel, dial};
use crate::database::tls::{TlsMode, TlsOption, TlsParts};
use crate::database::{DatabaseError, Endpoint};
use crate::fault::{Fault, fault};
use crate::monitor::MOST_READINGS;
use crate::monitor::counters::Counters;
use crate::monitor::thin;
use crate::quote::in_quotes;
use crate::units::show_bytes;

/// How long the watcher may take to answer, and the time between checks whether reading must end.
const ANSWER_WITHIN: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How late a line may come.
const ANSWER_SOON: Duration = Duration::from_secs(1);

/// The machine that is watched.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RemoteHost {
    /// Name of the machine.
    pub machine: String,
    /// Model of its CPU.
    pub cpu: String,
    /// Number of its CPUs.
    pub cpus: u32,
    /// Size of its memory, in bytes.
    pub memory_bytes: u64,
    /// Its system and kernel.
    pub kernel: String,
}

impl std::fmt::Display for RemoteHost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let RemoteHost { machine, cpu, cpus, memory_bytes, kernel } = self;
        write!(f, "{machine}, {cpu}, {cpus} CPUs, {}, {kernel}", show_bytes(*memory_bytes as f64))
    }
}

/// Where a watcher is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum WatchAddress {
    /// At an address of its own.
    Direct(Endpoint),
    /// Under this name, over the NATS server of the run.
    Named(String),
}

/// Largest number of characters of a watcher's name.
const WATCHER_NAME_MOST: usize = 64;

/// Checks the name of a watcher, which is a part of a NATS subject.
///
/// # Errors
/// A fault that says what a name is.
pub fn check_watcher_name(name: &str) -> Result<(), Fault> {
    let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '-' | '_');
    if !name.is_empty() && name.len() <= WATCHER_NAME_MOST && name.chars().all(is_part) {
        return Ok(());
    }
    let form = format!("write 1 to {WATCHER_NAME_MOST} letters, digits, - and _");
    Err(Fault::new(format!("{} is no name of a watcher", in_quotes(name)), form))
}

/// Parses an address, `watch://db.example:7481?sslmode=verify-full&sslrootcert=ca.pem` or `nats:NAME`.
///
/// # Errors
/// A fault that says what is wrong with the address.
pub fn read_address(address: &str) -> Result<WatchAddress, Fault> {
    match address.strip_prefix("nats:") {
        Some(name) => check_watcher_name(name).map(|()| WatchAddress::Named(name.to_owned())),
        None => read_endpoint(address).map(WatchAddress::Direct),
    }
}

fn read_endpoint(address: &str) -> Result<Endpoint, Fault> {
    let form =
        "write watch://HOST:PORT, and behind it ?sslmode=verify-full&sslrootcert=FILE where it has TLS; or nats:NAME";
    let rest = address
        .strip_prefix("watch://")
        .ok_or_else(|| Fault::new(format!("{address} is no address of a watcher"), form))?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let place = place.trim_end_matches('/');
    let (host, port) = match place.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => {
            (host, port.parse().map_err(|_| Fault::new(format!("{port} in {address} is no port"), form))?)
        }
        _ => (place, PORT),
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    if host.is_empty() || host.contains(['/', '@']) {
        return Err(Fault::new(format!("{address} names no host"), form));
    }
    let mut parts = TlsParts::default();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let option = TlsOption::of(key).ok_or_else(|| Fault::new(format!("{key} in {address} is not known"), form))?;
        parts.set(option, key, value).map_err(|why| Fault::new(why, form))?;
    }
    let tls = parts.tls(TlsMode::Disable).map_err(|why| Fault::new(why, form))?;
    Ok(Endpoint { tcp: Some((host.to_owned(), port)), tls, ..Endpoint::default() })
}

/// The readings of another machine.
#[derive(Debug, Default)]
pub(in crate::monitor) struct Read {
    /// Counters, with times of this machine's clock.
    pub counters: Vec<Counters>,
    /// CPU time that others had used at each of them; `None` if it could not be seen.
    pub others_cpu_ns: Vec<Option<u64>>,
    /// Whether processes of the server were found.
    pub has_server: bool,
}

impl Read {
    /// Returns how many CPUs others kept busy between these times, as far as that was seen.
    pub fn others_cpu(&self, from: Instant, to: Instant) -> Option<f64> {
        let seen =
            self.counters.iter().zip(&self.others_cpu_ns).filter_map(|(counters, ns)| Some((counters.at, (*ns)?)));
        let seen: Vec<(Instant, u64)> = seen.collect();
        // These are the readings around both ends, or the nearest ones.
        let first = seen.iter().rev().find(|(at, _)| *at <= from).or(seen.first())?;
        let last = seen.iter().find(|(at, _)| *at >= to).or(seen.last())?;
        let seconds = last.0.checked_duration_since(first.0)?.as_secs_f64();
        (seconds > 0.0).then(|| last.1.saturating_sub(first.1) as f64 / 1e9 / seconds)
    }
}

/// Returns what turns an error into a sentence that says why the watcher is not reached, with the remedy.
fn not_reached(remedy: &'static str) -> impl Fn(DatabaseError) -> Fault + Copy {
    move |error| {
        let why = match error {
            DatabaseError::Lost(why) | DatabaseError::Unavailable(why) => why,
            other => other.to_string(),
        };
        Fault::new(why, remedy)
    }
}

/// A thread that reads the counters of another machine until it is stopped. Dropping it stops it.
#[derive(Debug)]
pub struct Remote {
    /// The machine that is watched.
    pub host: RemoteHost,
    thread: Option<JoinHandle<Read>>,
    end: Arc<OnceLock<End>>,
    interval: Duration,
}

/// The end of reading: the first counters of this time or later, or a time limit.
#[derive(Debug, Clone, Copy)]
struct End {
    covered: Instant,
    latest: Instant,
}

impl Remote {
    /// Connects and begins to read; the first counters have arrived on return.
    ///
    /// # Errors
    /// A sentence with what to do, without the address.
    pub fn connect(address: &Endpoint, token: &str, processes: &[&str], interval: Duration) -> Result<Self, Fault> {
        let not_reached = not_reached("start it there with: loadline watch --listen ADDRESS");
        let socket = dial(address).map_err(&not_reached)?;
        let mut channel = Channel::new(socket.as_raw_fd());
        channel.set_timeout(Some(ANSWER_WITHIN));
        if address.tls.is_tried()
            && let Some((host, _)) = &address.tcp
        {
            channel.protect(&address.tls, host).map_err(&not_reached)?;
        }
        Self::begin((socket, channel), token, (processes, interval), not_reached)
    }

    /// Begins to read over a stream that somebody else carries to the watcher; the first counters have arrived on return.
    ///
    /// # Errors
    /// A sentence with what to do.
    pub fn over(stream: OwnedFd, token: &str, processes: &[&str], interval: Duration) -> Result<Self, Fault> {
        let mut channel = Channel::new(stream.as_raw_fd());
        channel.set_timeout(Some(ANSWER_WITHIN));
        let not_reached = not_reached("start it there with: loadline watch --nats URL");
        Self::begin((stream, channel), token, (processes, interval), not_reached)
    }

    fn begin(
        (socket, mut channel): (OwnedFd, Channel),
        token: &str,
        (processes, interval): (&[&str], Duration),
        not_reached: impl Fn(DatabaseError) -> Fault + Copy,
    ) -> Result<Self, Fault> {
        let hello: Hello = parsed(&mut channel).map_err(not_reached)?;
        if hello.loadline_watch != VERSION {
            let theirs = hello.loadline_watch;
            return Err(
                fault!("it speaks version {theirs}, and this loadline {VERSION}"; "take the same loadline on both machines"),
            );
        }
        if hello.asks_token && token.is_empty() {
            return Err(
                fault!("it asks for a token"; "set the environment variable LOADLINE_WATCH_TOKEN to the one that it was started with"),
            );
        }
        let proof = if hello.asks_token { proof(token, &hello.nonce) } else { String::new() };
        let processes = processes.iter().map(|name| (*name).to_owned()).collect();
        let ask = Ask { proof, processes, interval_ms: interval.as_millis() as u64 };
        let mut line = serde_json::to_vec(&ask).map_err(|error| Fault::from(error.to_string()))?;
        line.push(b'\n');
        let asked = Instant::now();
        channel.send(&line).map_err(not_reached)?;
        let host = match parsed(&mut channel).map_err(not_reached)? {
            Answer::Host(host) => host,
            Answer::Refused { refused } => {
                return Err(Fault::new(
                    format!("it refuses: {refused}"),
                    "set LOADLINE_WATCH_TOKEN to the token that it was started with",
                ));
            }
        };
        let first: Line = parsed(&mut channel).map_err(not_reached)?;
        // The first counters belong to a time between the request and now; its middle is off by at most half of that.
        let middle = asked + asked.elapsed() / 2;
        let end = Arc::new(OnceLock::new());
        let seen = Arc::clone(&end);
        let reading = move || {
            // The socket stays open as long as the channel uses it.
            let _socket = socket;
            read(channel, (first, middle), &seen)
        };
        let thread = std::thread::Builder::new().name("watched".to_owned()).spawn(reading);
        let thread =
            thread.map_err(|error| fault!("there is no thread for it: {error}"; "raise the limit of processes"))?;
        Ok(Remote { host, thread: Some(thread), end, interval })
    }

    /// Ends reading once counters cover the time until `until`, and returns what was read.
    pub(in crate::monitor) fn finish(mut self, until: Instant) -> Read {
        let latest = Instant::now() + 2 * self.interval + ANSWER_SOON;
        self.end_with(End { covered: until, latest }).unwrap_or_default()
    }

    fn end_with(&mut self, end: End) -> Option<Read> {
        let thread = self.thread.take()?;
        // This is set only once, because the thread was taken.
        let _ = self.end.set(end);
        thread.join().ok()
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let now = Instant::now();
        self.end_with(End { covered: now, latest: now });
    }
}

/// Reads lines until it must end, or the watcher is lost: the readings made so far then stand for the time until then.
fn read(mut channel: Channel, (first, at_first): (Line, Instant), end: &OnceLock<End>) -> Read {
    let mut read = Read::default();
    take(&mut read, &first, (&first, at_first));
    loop {
        while let Some(end) = channel.input().iter().position(|byte| *byte == b'\n') {
            match serde_json::from_slice(&channel.input()[..end]) {
                Ok(line) => take(&mut read, &line, (&first, at_first)),
                Err(_) => return read,
            }
            channel.consume(end + 1);
        }
        let is_over = |end: &End| {
            let is_covered = read.counters.last().is_some_and(|last| last.at >= end.covered);
            is_covered || Instant::now() >= end.latest
        };
        if channel.input().len() > LINE_BYTES_MOST || end.get().is_some_and(is_over) {
            return read;
        }
        if channel.receive_within(LOOK_EVERY).is_err() {
            return read;
        }
    }
}

/// Adds the counters of a line.
fn take(read: &mut Read, line: &Line, (first, at_first): (&Line, Instant)) {
    let Some(since_ns) = line.at_ns.checked_sub(first.at_ns) else { return };
    let at = at_first + Duration::from_nanos(since_ns.min(86_400_000_000_000));
    // Counters of a later line must have a later time; others are dropped, whatever the watcher says.
    if read.counters.last().is_some_and(|last: &Counters| last.at >= at) {
        return;
    }
    read.has_server |= line.processes > 0;
    read.counters.push(line.counters(at));
    read.others_cpu_ns.push(line.others_cpu_ns);
    if read.counters.len() >= MOST_READINGS {
        thin(&mut read.counters);
        thin(&mut read.others_cpu_ns);
    }
}

/// Reads the next line.
fn parsed<T: for<'de> Deserialize<'de>>(channel: &mut Channel) -> Result<T, DatabaseError> {
    let until = Instant::now() + ANSWER_WITHIN;
    loop {
        if let Some(end) = channel.input().iter().position(|byte| *byte == b'\n') {
            let read = serde_json::from_slice(&channel.input()[..end]);
            channel.consume(end + 1);
            return read.map_err(|_| DatabaseError::Lost("it is no loadline that watches".to_owned()));
        }
        if channel.input().len() > LINE_BYTES_MOST {
            return Err(DatabaseError::Lost("it is no loadline that watches".to_owned()));
        }
        if Instant::now() > until {
            return Err(DatabaseError::Lost(format!("it has not answered within {} s", ANSWER_WITHIN.as_secs())));
        }
        channel.receive_within(LOOK_EVERY)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_refused() {
        let direct = |address| match read_address(address).unwrap() {
            WatchAddress::Direct(endpoint) => endpoint,
            WatchAddress::Named(name) => panic!("{name}"),
        };
        let tcp = |address| direct(address).tcp.unwrap();
        assert_eq!(tcp("watch://db.example"), ("db.example".to_owned(), PORT));
        assert_eq!(tcp("watch://10.0.0.1:99/"), ("10.0.0.1".to_owned(), 99));
        assert_eq!(tcp("watch://[::1]:99"), ("::1".to_owned(), 99));
        assert_eq!(tcp("watch://[::1]"), ("::1".to_owned(), PORT));
        let tls = direct("watch://a?sslrootcert=ca.pem&sslmode=verify-full").tls;
        assert_eq!(tls.mode, TlsMode::VerifyFull);
        assert_eq!(direct("watch://a").tls.mode, TlsMode::Disable);
        assert_eq!(read_address("nats:db-1"), Ok(WatchAddress::Named("db-1".to_owned())));
        let long = format!("nats:{}", "a".repeat(WATCHER_NAME_MOST + 1));
        for wrong in [
            "http://a",
            "watch://",
            "watch://a:b",
            "watch://a?x=1",
            "watch://me@a",
            "nats:",
            "nats:a.b",
            "nats://a:4222",
            &long,
        ] {
            assert!(read_address(wrong).is_err(), "{wrong}");
        }
    }
}
