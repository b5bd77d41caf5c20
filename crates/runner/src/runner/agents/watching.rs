//! `loadline watch` over a NATS server: what a watcher and a run say to each other goes through it as it goes through a connection otherwise.
//!
//! Main functions: [`watch`], and [`Muster::watched`] for the run. Each run that reads is a session, with a pair of connected sockets on both sides;
//! what is written to one comes out at the other. Invariants: a session whose run is not heard of any more ends; a message is bounded before it is
//! passed on.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::super::notes::note;
use super::Muster;
use super::bus::{Bus, BusAddress, Receiving};
use super::show;
use crate::fault::{Fault, fault};
use crate::load::{monotonic, no_thread};
use crate::monitor::{LINE_BYTES_MOST, serve};
use crate::server::interrupted;

/// Largest number of runs that read at once; the machine under watch has other work to do.
const SESSIONS_MOST: usize = 16;
/// Largest size of the subject on which a run receives, in bytes.
const SUBJECT_BYTES_MOST: usize = 200;
/// How long a run may take to say what it wants, and how long passing something on to this process may take.
const ASK_WITHIN: Duration = Duration::from_secs(10);
const PASSED_ON_WITHIN: Duration = Duration::from_millis(200);
/// How often a run says that it is there, and after which time without it a session ends.
const ALIVE_EVERY: Duration = Duration::from_secs(1);
const SILENT_MOST: Duration = Duration::from_secs(10);
/// How long a run waits for a watcher, and then for a second one of the same name.
const THERE_WITHIN: Duration = Duration::from_secs(5);
const SECOND_WITHIN: Duration = Duration::from_millis(100);
/// Longest wait between two looks at what else there is to do.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Returns the subject on which all watchers of a name receive, and that of one watcher.
fn subject_of_name(name: &str) -> String {
    format!("loadline.watch.{name}")
}

fn subject_of_watcher(watcher: &str) -> String {
    format!("loadline.watcher.{watcher}")
}

/// What a run says to a watcher.
#[derive(Debug, Serialize, Deserialize)]
struct ToWatcher {
    /// The subject on which the run receives; it stands for the session.
    reply: String,
    what: Wants,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Wants {
    /// A session begins.
    Open,
    /// A line for the watcher.
    Line(String),
    /// The run is there.
    Alive,
    /// The session ends.
    Close,
}

/// A line of a watcher for a run.
#[derive(Debug, Serialize, Deserialize)]
struct FromWatcher {
    watcher: String,
    line: String,
}

/// A run that reads.
struct Session {
    reply: String,
    /// The end of the pair that this process writes to.
    stream: UnixStream,
    heard: Instant,
}

impl Drop for Session {
    fn drop(&mut self) {
        // Both threads of the session end with it.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Shows runs the counters of this machine, until loadline is told to end. With a token, only to runs that know it.
///
/// # Errors
/// Fails if the NATS server cannot be reached.
pub fn watch(address: &BusAddress, name: &str, token: Option<&str>, is_there: impl FnOnce()) -> anyhow::Result<()> {
    let own = format!("{:x}-{:x}", std::process::id(), monotonic::now_ns());
    let bus = Arc::new(Bus::connect(address, &own)?);
    let received: Receiving<ToWatcher> = bus.receive(&[subject_of_name(name), subject_of_watcher(&own)])?;
    is_there();
    let mut sessions: Vec<Session> = Vec::new();
    while !interrupted() {
        sessions.retain(|session| session.heard.elapsed() <= SILENT_MOST);
        let ToWatcher { reply, what } = match received.recv_timeout(LOOK_EVERY) {
            Ok(message) => message,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the connection to {} is closed", bus.shown()),
        };
        let known = sessions.iter().position(|session| session.reply == reply);
        match (what, known) {
            (Wants::Open, None) if sessions.len() < SESSIONS_MOST && reply.len() <= SUBJECT_BYTES_MOST => {
                match begin(&bus, reply, token) {
                    Ok(session) => sessions.push(session),
                    Err(why) => note(&format!("a run is not served: {why}")),
                }
            }
            (Wants::Line(line), Some(known)) if line.len() < LINE_BYTES_MOST => {
                sessions[known].heard = Instant::now();
                // A session whose threads have ended is removed when its run says so, or is silent.
                let _ = sessions[known].stream.write_all(format!("{line}\n").as_bytes());
            }
            (Wants::Alive, Some(known)) => sessions[known].heard = Instant::now(),
            (Wants::Close, Some(known)) => drop(sessions.swap_remove(known)),
            _ => {}
        }
    }
    Ok(())
}

/// Begins a session: one thread shows counters on one end of a pair of sockets, and another one sends what comes out at the other end.
fn begin(bus: &Arc<Bus>, reply: String, token: Option<&str>) -> Result<Session, String> {
    let (ours, mut theirs) = pair(ASK_WITHIN).map_err(|error| error.to_string())?;
    let token = token.map(str::to_owned);
    let showing = move || {
        if let Err(error) = serve(&mut theirs, token.as_deref(), &interrupted)
            && error.kind() == std::io::ErrorKind::PermissionDenied
        {
            note(&format!("a run was refused: {error}"));
        }
    };
    let ends = ours.try_clone().map_err(|error| error.to_string())?;
    let (bus, subject) = (Arc::clone(bus), reply.clone());
    let sending = move || {
        pass_on(&ends, |line| bus.send(&subject, &FromWatcher { watcher: bus.own.clone(), line }));
        // The thread that shows counters ends, too.
        let _ = ends.shutdown(std::net::Shutdown::Both);
    };
    spawn("watch", showing)?;
    spawn("send", sending)?;
    Ok(Session { reply, stream: ours, heard: Instant::now() })
}

/// Returns two connected sockets: one for this process's messages, and one for a reader that waits at most this long.
fn pair(read_within: Duration) -> std::io::Result<(UnixStream, UnixStream)> {
    let (ours, theirs) = UnixStream::pair()?;
    ours.set_write_timeout(Some(PASSED_ON_WITHIN))?;
    theirs.set_read_timeout(Some(read_within))?;
    theirs.set_write_timeout(Some(ASK_WITHIN))?;
    Ok((ours, theirs))
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<(), String> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| no_thread("a session", &error))
}

/// Sends each line that comes out of a stream, until the stream ends or a line is too long or cannot be sent.
fn pass_on(stream: &UnixStream, mut send: impl FnMut(String) -> anyhow::Result<()>) {
    let mut lines = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        let read = lines.by_ref().take(LINE_BYTES_MOST as u64).read_until(b'\n', &mut line);
        let is_whole = read.is_ok() && line.pop() == Some(b'\n');
        let Some(line) = String::from_utf8(line).ok().filter(|_| is_whole) else { return };
        if send(line).is_err() {
            return;
        }
    }
}

impl Muster {
    /// Returns a stream to the watcher of a name.
    ///
    /// # Errors
    /// A sentence if no watcher of this name answers, or several do.
    pub fn watched(&self, name: &str) -> Result<OwnedFd, Fault> {
        let failed = |error: anyhow::Error| Fault::from(format!("{error:#}"));
        let (bus, number) = (self.bus(), monotonic::now_ns());
        let reply = format!("loadline.run.{}.watch.{number:x}", bus.own);
        let received: Receiving<FromWatcher> = bus.receive(std::slice::from_ref(&reply)).map_err(failed)?;
        let say = {
            let reply = reply.clone();
            move |bus: &Bus, to: &str, what| bus.send(to, &ToWatcher { reply: reply.clone(), what })
        };
        say(bus, &subject_of_name(name), Wants::Open).map_err(failed)?;
        let first = received.recv_timeout(THERE_WITHIN).map_err(|_| {
            let (shown, within) = (bus.shown(), show(THERE_WITHIN));
            fault!("no watcher of the name {name} answered at {shown} within {within}"; "start it there with: loadline watch --nats URL --name {name}")
        })?;
        let subject = subject_of_watcher(&first.watcher);
        let until = Instant::now() + SECOND_WITHIN;
        while let Ok(next) = received.recv_timeout(until.saturating_duration_since(Instant::now())) {
            if next.watcher != first.watcher {
                let _ = say(bus, &subject, Wants::Close);
                let _ = say(bus, &subject_of_watcher(&next.watcher), Wants::Close);
                return Err(
                    fault!("several watchers have the name {name}"; "start each with a --name of its own, and write that one"),
                );
            }
        }
        let (mut ours, theirs) = pair(ASK_WITHIN).map_err(|error| Fault::from(error.to_string()))?;
        let no_thread = |why: String| Fault::new(why, "raise the limit of processes");
        let ends = ours.try_clone().map_err(|error| Fault::from(error.to_string()))?;
        let (sender, is_over) = (Arc::clone(bus), Arc::new(AtomicBool::new(false)));
        let (is_over_here, say_here, to) = (Arc::clone(&is_over), say.clone(), subject.clone());
        let speaking = move || {
            pass_on(&ends, |line| say_here(&sender, &to, Wants::Line(line)));
            is_over_here.store(true, Ordering::Relaxed);
            // A watcher that cannot be told ends the session by itself, because it does not hear of the run any more.
            let _ = say_here(&sender, &to, Wants::Close);
        };
        let bus = Arc::clone(bus);
        let listening = move || {
            let mut told = Instant::now();
            let mut next = Some(first);
            while !is_over.load(Ordering::Relaxed) {
                if let Some(FromWatcher { line, .. }) = next.take().filter(|said| said.line.len() < LINE_BYTES_MOST)
                    && ours.write_all(format!("{line}\n").as_bytes()).is_err()
                {
                    break;
                }
                if told.elapsed() >= ALIVE_EVERY {
                    told = Instant::now();
                    // Without the server nothing comes any more, either: the readings until then stand.
                    let _ = say(&bus, &subject, Wants::Alive);
                }
                next = match received.recv_timeout(LOOK_EVERY) {
                    Ok(said) => Some(said).filter(|said| subject_of_watcher(&said.watcher) == subject),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => break,
                };
            }
            let _ = ours.shutdown(std::net::Shutdown::Both);
        };
        spawn("to the watcher", speaking).map_err(no_thread)?;
        spawn("of the watcher", listening).map_err(no_thread)?;
        Ok(OwnedFd::from(theirs))
    }
}
