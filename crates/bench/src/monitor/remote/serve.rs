//! The watcher's side of a connection.
//!
//! Main function: [`serve`].

use std::io::{Error, ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use ring::rand::{SecureRandom, SystemRandom};

use super::{Answer, Ask, Hello, INTERVAL_MS, LINE_BYTES_MOST, Line, NAME_BYTES_MOST, NAMES_MOST, VERSION, is_proof};
use crate::monitor::others::{Others, pids_named};
use crate::monitor::reader::Reader;
use crate::monitor::{Targets, environment, machine_cpus};

/// How often processes are searched for by name: some databases start processes for each connection.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long a reader may take to send its request.
const ASK_WITHIN: Duration = Duration::from_secs(10);
/// Longest sleep before the next check whether to end.
const SLEEP_MOST: Duration = Duration::from_millis(200);

/// Sends counters to a reader that proves that it knows the token, until it disconnects or `is_over`. The time limits of the stream bound each step.
///
/// # Errors
/// Returns the stream's error; for a reader that was refused it is [`ErrorKind::PermissionDenied`].
pub fn serve<S: Read + Write>(stream: &mut S, token: Option<&str>, is_over: &dyn Fn() -> bool) -> Result<(), Error> {
    let nonce = nonce()?;
    put(stream, &Hello { loadline_watch: VERSION, nonce: nonce.clone(), asks_token: token.is_some() })?;
    let ask: Ask = match serde_json::from_slice(&read_line(stream)?) {
        Ok(ask) => ask,
        Err(error) => {
            return refuse(stream, ErrorKind::InvalidData, &format!("what is asked is not understood: {error}"));
        }
    };
    if token.is_some_and(|token| !is_proof(token, &nonce, &ask.proof)) {
        return refuse(stream, ErrorKind::PermissionDenied, "the token is wrong");
    }
    let are_names = ask.processes.len() <= NAMES_MOST && ask.processes.iter().all(|name| name.len() <= NAME_BYTES_MOST);
    if !are_names || !INTERVAL_MS.contains(&ask.interval_ms) {
        return refuse(stream, ErrorKind::InvalidData, "too many processes, or an interval that is none");
    }
    let names = ask.processes;
    let of_server = names.clone();
    let mut looked: Option<(Instant, Vec<u32>)> = None;
    let found = move |pids: &mut Vec<u32>| {
        if looked.as_ref().is_none_or(|(at, _)| at.elapsed() >= LOOK_EVERY) {
            looked = Some((Instant::now(), pids_named(&of_server)));
        }
        pids.extend(looked.iter().flat_map(|(_, pids)| pids));
    };
    let mut reader = match Reader::new(Targets::server(Box::new(found))) {
        Ok(reader) => reader,
        Err(error) => return refuse(stream, ErrorKind::Unsupported, &error.to_string()),
    };
    let host = environment(std::path::Path::new("/"));
    put(
        stream,
        &Answer::Host(super::RemoteHost {
            machine: host.machine,
            cpu: host.cpu,
            cpus: machine_cpus().unwrap_or(host.cpus),
            memory_bytes: host.memory_bytes,
            kernel: host.kernel,
        }),
    )?;
    let (began, interval) = (Instant::now(), Duration::from_millis(ask.interval_ms));
    // If the run is on this machine too, loadline does not count as others.
    let known: Vec<String> = names.iter().cloned().chain(["loadline".to_owned()]).collect();
    let others = Others::begin(&known);
    let mut next = began;
    while !is_over() {
        let now = Instant::now();
        if now < next {
            std::thread::sleep((next - now).min(SLEEP_MOST));
            continue;
        }
        let counters = reader.read();
        let at_ns = (counters.at - began).as_nanos() as u64;
        put(stream, &Line::of(&counters, at_ns, others.cpu_ns(), pids_named(&names).len() as u32))?;
        // Missed readings are not made up for.
        while next <= now {
            next += interval;
        }
    }
    Ok(())
}

fn nonce() -> Result<String, Error> {
    let mut bytes = [0; 16];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::other("the system gives no random numbers"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn put(stream: &mut impl Write, what: &impl serde::Serialize) -> Result<(), Error> {
    let mut line = serde_json::to_vec(what)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    stream.flush()
}

fn refuse(stream: &mut impl Write, kind: ErrorKind, why: &str) -> Result<(), Error> {
    put(stream, &Answer::Refused { refused: why.to_owned() })?;
    Err(Error::new(kind, why.to_owned()))
}

/// Reads a line of at most [`LINE_BYTES_MOST`].
fn read_line(stream: &mut impl Read) -> Result<Vec<u8>, Error> {
    let (mut line, mut part) = (Vec::new(), [0; 512]);
    // A peer that sends a few bytes now and then does not get more time.
    let until = Instant::now() + ASK_WITHIN;
    while line.len() < LINE_BYTES_MOST && Instant::now() < until {
        let received = stream.read(&mut part)?;
        if received == 0 {
            break;
        }
        line.extend_from_slice(&part[..received]);
        if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
            line.truncate(end);
            return Ok(line);
        }
    }
    Err(Error::new(ErrorKind::UnexpectedEof, "no whole line was asked"))
}
