//! `loadline watch`: reports the resource use of a server's machine to a run on another machine.
//!
//! Main function: [`run`]. Invariants: it reports only counters, and only to clients with the token; a client that sends its request slowly or
//! wrongly keeps no other client waiting.

use std::cell::Cell;
use std::io::{Error, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::agent::address_of;
use super::output::{note, print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::WatchArguments;
use crate::load::no_thread;
use crate::monitor::{check_watcher_name, serve};
use crate::recorder::config::TlsConfig;
use crate::recorder::intake::Protection;
use crate::runner::agents::{check_address, watch};
use crate::runner::facts::WATCH_TOKEN;
use crate::server::{install_signal_handlers, interrupted};

/// Largest number of clients at once; the machine under watch has other work to do.
const CONNECTIONS_MOST: usize = 16;
/// Largest number of clients of one address, so that it cannot take all places.
const OF_ADDRESS_MOST: usize = 8;
/// Longest time a client may take to send its request, and to take a line.
const PATIENCE: Duration = Duration::from_secs(10);
/// Shortest time between two messages about refused clients.
const TELL_EVERY: Duration = Duration::from_secs(60);
/// Smallest number of characters of a token.
const TOKEN_LEAST: usize = 16;
/// Interval between two checks for new clients and for the end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Serves clients until SIGTERM or SIGINT.
///
/// # Errors
/// [`Failure::Usage`] for an address that cannot be listened on or may not be without a token, for files that are no certificate, and for a NATS
/// server that cannot be reached.
pub fn run(arguments: &WatchArguments, is_json: bool) -> Result<Status, Failure> {
    let token = std::env::var(WATCH_TOKEN).ok().filter(|token| !token.is_empty());
    if token.as_ref().is_some_and(|token| token.len() < TOKEN_LEAST) {
        let remedy = "make one with: loadline password --token";
        return Err(Failure::refused(Refusal::at(
            WATCH_TOKEN,
            format!("it has fewer than {TOKEN_LEAST} characters"),
            remedy,
        )));
    }
    match (&arguments.nats, arguments.listen) {
        (Some(url), _) => over_nats(arguments, url, token.as_deref(), is_json),
        (None, Some(listen)) => at(listen, arguments, token, is_json),
        (None, None) => Err(Failure::usage(anyhow::anyhow!("write --listen ADDRESS or --nats URL"))),
    }
}

/// Serves runs that read over a NATS server.
fn over_nats(arguments: &WatchArguments, url: &str, token: Option<&str>, is_json: bool) -> Result<Status, Failure> {
    check_address(url).map_err(Failure::usage)?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => own_name(),
    };
    check_watcher_name(&name).map_err(|fault| Failure::refused(fault.about("--name")))?;
    install_signal_handlers();
    let address = address_of(url, &arguments.nats_files);
    let told = Cell::new(Ok(()));
    let is_there = || {
        told.set(if is_json {
            print_json(&json!({ "nats": address.shown(), "name": name, "token": token.is_some() }))
        } else {
            print(&format!(
                "watching; a study's database.watch is nats:{name}, and its run has --nats {}\n",
                address.shown()
            ))
        });
    };
    watch(&address, &name, token, is_there).map_err(Failure::usage)?;
    told.into_inner()?;
    Ok(Status::Valid)
}

/// Returns the name of this machine, with what no name may have replaced by hyphens.
fn own_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let part = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    host.trim().chars().take(60).map(part).collect()
}

/// Serves clients at an address of this machine.
fn at(listen: SocketAddr, arguments: &WatchArguments, token: Option<String>, is_json: bool) -> Result<Status, Failure> {
    let refuse = |what: String, remedy: String| Failure::refused(Refusal::at("--listen", what, remedy));
    if token.is_none() && !listen.ip().is_loopback() {
        let what = format!("{} is reached from other machines, and there is no token", listen.ip());
        return Err(refuse(
            what,
            format!("set the environment variable {WATCH_TOKEN} here, and where the run is, or listen on 127.0.0.1"),
        ));
    }
    let tls = arguments.tls_certificate.clone().zip(arguments.tls_key.clone());
    let tls = tls.map(|(certificate, key)| Protection::new(&TlsConfig { certificate, key, client_authority: None }));
    let tls = tls.transpose().map_err(|why| {
        Failure::refused(Refusal::at("--tls-certificate", why, "name PEM files that belong together"))
    })?;
    let listener = TcpListener::bind(listen).and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let cannot = |error: Error| {
        refuse(format!("{listen} cannot be listened on: {error}"), "name another address or port".to_owned())
    };
    let listener = listener.map_err(cannot)?;
    let address = listener.local_addr().map_err(cannot)?;
    install_signal_handlers();
    if is_json {
        print_json(&json!({ "listen": address.to_string(), "tls": tls.is_some(), "token": token.is_some() }))?;
    } else {
        print(&format!(
            "watching; a study's database.watch is watch://{address}{}\n",
            if tls.is_some() {
                "?sslmode=verify-full, with the name in the certificate instead of the address"
            } else {
                ""
            }
        ))?;
    }
    accept(
        &listener,
        &Arc::new(Watcher {
            token,
            tls,
            served: AtomicUsize::new(0),
            places: Default::default(),
            told: Default::default(),
        }),
    );
    Ok(Status::Valid)
}

/// State that all connections share.
struct Watcher {
    token: Option<String>,
    tls: Option<Protection>,
    served: AtomicUsize,
    places: std::sync::Mutex<Vec<IpAddr>>,
    /// Time of the last message about refused clients, and number of refusals since.
    told: std::sync::Mutex<(Option<Instant>, u64)>,
}

impl Watcher {
    /// Reports a refused client, at most once in [`TELL_EVERY`], so that frequent refusals do not fill the log.
    fn refused(&self, from: IpAddr, error: &Error) {
        let mut told = self.told.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if told.0.is_some_and(|at| at.elapsed() < TELL_EVERY) {
            told.1 += 1;
            return;
        }
        let more = match told.1 {
            0 => String::new(),
            count => format!("; {count} more were since the last time that this was told"),
        };
        note(&format!("{from} was refused: {error}{more}"));
        *told = (Some(Instant::now()), 0);
    }
}

/// A place for one client, free again when it is dropped.
struct Place {
    watcher: Arc<Watcher>,
    address: IpAddr,
}

impl Place {
    /// Takes a place for a client at this address; `None` if there is none left.
    fn take(watcher: &Arc<Watcher>, address: IpAddr) -> Option<Self> {
        let mut places = watcher.places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let of_address = places.iter().filter(|other| **other == address).count();
        if places.len() >= CONNECTIONS_MOST || of_address >= OF_ADDRESS_MOST {
            return None;
        }
        places.push(address);
        Some(Place { watcher: Arc::clone(watcher), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut places = self.watcher.places.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(own) = places.iter().position(|address| *address == self.address) {
            places.swap_remove(own);
        }
    }
}

fn accept(listener: &TcpListener, watcher: &Arc<Watcher>) {
    while !interrupted() {
        match listener.accept() {
            Ok((stream, from)) => {
                let Some(place) = Place::take(watcher, from.ip()) else { continue };
                let number = watcher.served.fetch_add(1, Ordering::Relaxed);
                let serve = move || tell(stream, &place, from.ip());
                let thread = std::thread::Builder::new().name(format!("watch-{number}")).spawn(serve);
                if let Err(error) = thread {
                    note(&format!("{from} is not served: {}", no_thread("it", &error)));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK_EVERY),
            // The client has gone already, or there is no file descriptor left: the next one may be served.
            Err(_) => std::thread::sleep(LOOK_EVERY),
        }
    }
}

/// Serves one connection.
fn tell(stream: TcpStream, place: &Place, from: IpAddr) {
    let token = place.watcher.token.as_deref();
    let patient = Patient { stream: &stream, until: Instant::now() + PATIENCE };
    let served = prepared(&stream).and_then(|()| match &place.watcher.tls {
        None => serve(&mut { patient }, token, &interrupted),
        Some(protection) => serve(&mut protection.over(patient)?, token, &interrupted),
    });
    match served {
        Err(error)
            if matches!(
                error.kind(),
                ErrorKind::PermissionDenied | ErrorKind::InvalidData | ErrorKind::Unsupported
            ) =>
        {
            place.watcher.refused(from, &error);
        }
        // The client has gone, which is the normal end.
        _ => {}
    }
}

/// A stream that is read only until a deadline, however slowly bytes arrive: TLS handshake and request must be complete by then.
struct Patient<'s> {
    stream: &'s TcpStream,
    until: Instant,
}

impl Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Error> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        self.stream.read(buffer)
    }
}

impl Write for Patient<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.stream.flush()
    }
}

fn prepared(stream: &TcpStream) -> Result<(), Error> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))
}
