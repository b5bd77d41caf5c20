//! The blocking end of a connection's socket, and the functions that open one. Main type: [`Channel`]; [`dial`] opens a socket.
//!
//! Invariant: while bytes wait to be sent, arriving bytes are taken in, so two full socket buffers never lock up. With limits, no wait
//! exceeds them. The memory for what a server sends is bounded.

mod pace;
mod script;

use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::tls::{SharedSecure, Tls};
use super::{DatabaseError, Endpoint, Namespace, SessionLimits};
use crate::quote::shortened;

pub use pace::Pace;

/// The maximum time to open a connection and log in.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// The number of bytes read from a socket at a time.
const READ_BYTES: usize = 16 << 10;

/// The maximum bytes from a server that wait for the end of their message, and the maximum that the kept rows of one answer take. No request of
/// a study or a recorder comes near it.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// Allowance for the framing of a message of the maximum size.
const FRAMING_BYTES: usize = 1 << 20;

/// The interval at which a wait with limits checks whether loadline is to end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The remedy to name when nothing answers at the address.
const DIAL_REMEDY: &str = "check the address, and that the server is running";

/// The maximum characters of a statement that are quoted in the error for a late answer.
const ASKED_MAX: usize = 200;

/// The silence in seconds after which the system probes the connection, and the seconds between two probes.
const KEEPALIVE_S: [i32; 2] = [15, 5];

/// The blocking end of a socket that another value owns and keeps open. Works in whatever mode the socket is.
#[derive(Debug)]
pub struct Channel {
    fd: RawFd,
    input: Vec<u8>,
    taken: usize,
    timeout_ms: i32,
    limits: Option<Arc<SessionLimits>>,
    /// The deadline for the answer to the last request, and the limit that it follows from; `None` without limits.
    until: Option<(Instant, Duration)>,
    /// The bytes that the kept rows of the answer take so far.
    kept: usize,
    /// The kind of request, which determines the limit.
    pace: Pace,
    /// True if loadline had already been told to end when the request was sent.
    was_told: bool,
    /// The statement that is being answered; empty where none is to be named.
    asked: String,
    /// The TLS connection on the socket; `None` for plain text.
    secure: Option<SharedSecure>,
    /// Sealed bytes between the TLS connection and the socket.
    sealed: Vec<u8>,
    /// True if the server's messages are given in advance, before any request.
    #[cfg(any(test, fuzzing, feature = "fuzzed"))]
    is_scripted: bool,
}

impl Channel {
    /// Creates a channel over an open socket; it waits without limit.
    pub fn new(fd: RawFd) -> Self {
        Channel {
            fd,
            input: Vec::new(),
            taken: 0,
            timeout_ms: -1,
            limits: None,
            until: None,
            kept: 0,
            pace: Pace::Usual,
            was_told: false,
            asked: String::new(),
            secure: None,
            sealed: Vec::new(),
            #[cfg(any(test, fuzzing, feature = "fuzzed"))]
            is_scripted: false,
        }
    }

    /// Creates a channel over an open socket and its TLS connection, if any.
    pub fn over(fd: RawFd, secure: Option<SharedSecure>) -> Self {
        Channel { secure, ..Channel::new(fd) }
    }

    /// Performs the TLS handshake with the server, as the host of that name. Returns the TLS connection that protects the channel from here on.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection breaks, the server has no suitable TLS, or fails to prove what `tls` demands.
    pub fn protect(&mut self, tls: &Tls, host: &str) -> Result<SharedSecure, DatabaseError> {
        // An attacker in between could have sent it in plain text, to be taken for sealed data of the server.
        if !self.input().is_empty() {
            return Err(DatabaseError::Lost("the server sent something before TLS that was not asked for".to_owned()));
        }
        let secure = SharedSecure::begin(tls, host).map_err(DatabaseError::Unavailable)?;
        self.secure = Some(secure.clone());
        self.begin_answer();
        self.seal_and_send(&[])?;
        while secure.is_beginning() {
            self.time_left()?;
            let received = self.receive_some();
            // On failure this sends the alert that tells the server why.
            let sent = self.seal_and_send(&[]);
            if received? == 0 && secure.is_beginning() {
                self.wait(libc::POLLIN)?;
            }
            sent?;
        }
        Ok(secure)
    }

    /// Sets the limits for each answer from now on, including the greeting that the server sends unasked.
    pub fn set_limits(&mut self, limits: Arc<SessionLimits>, pace: Pace) {
        self.limits = Some(limits);
        self.set_pace(pace);
        self.begin_answer();
    }

    /// Sets the kind of request for the answers from now on.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Notes the statement that is sent next; an error for a late answer quotes it.
    pub fn ask(&mut self, statement: &str) {
        self.asked.clear();
        if self.limits.is_some() {
            self.asked.push_str(&shortened(statement, ASKED_MAX));
        }
    }

    /// Sets the maximum duration of a single wait from now on; `None` waits without limit.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout_ms = timeout.map_or(-1, |timeout| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    }

    /// Sends all bytes and takes in what arrives meanwhile.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection breaks; bytes that arrived before are in [`Channel::input`].
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        self.begin_answer();
        self.seal_and_send(bytes)
    }

    fn seal_and_send(&mut self, bytes: &[u8]) -> Result<(), DatabaseError> {
        let Some(secure) = &self.secure else { return self.send_all(bytes) };
        let mut sealed = std::mem::take(&mut self.sealed);
        sealed.clear();
        let outcome = secure.seal(bytes, &mut sealed).and_then(|()| self.send_all(&sealed));
        sealed.shrink_to(4 * READ_BYTES);
        self.sealed = sealed;
        outcome
    }

    fn send_all(&mut self, mut bytes: &[u8]) -> Result<(), DatabaseError> {
        while !bytes.is_empty() {
            self.time_left()?;
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            // SAFETY: the pointer and length are those of a live slice, which the call only reads.
            let sent = unsafe { libc::send(self.fd, bytes.as_ptr().cast(), bytes.len(), flags) };
            if let Ok(sent) = usize::try_from(sent) {
                bytes = &bytes[sent..];
                continue;
            }
            match self.again("sending") {
                Ok(()) => {}
                Err(error) => {
                    while matches!(self.receive_some(), Ok(1..)) {}
                    let told = self.secure.as_ref().and_then(SharedSecure::failure);
                    return Err(told.unwrap_or(error));
                }
            }
            if self.wait(libc::POLLIN | libc::POLLOUT)? & libc::POLLIN != 0 {
                self.receive_some()?;
            }
        }
        Ok(())
    }

    /// Waits until at least one more byte is in [`Channel::input`].
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection breaks or is closed.
    pub fn receive(&mut self) -> Result<(), DatabaseError> {
        // A server that sends a few bytes now and then does not get more time.
        self.time_left()?;
        while self.receive_some()? == 0 {
            self.wait(libc::POLLIN)?;
        }
        // A server that answers the login may stand still all the same.
        self.limits.iter().filter(|_| self.pace != Pace::Login).for_each(|limits| limits.note_heard());
        Ok(())
    }

    /// Waits for at most this time until at least one more byte is in [`Channel::input`]. Returns whether one arrived.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection breaks or is closed.
    pub fn receive_within(&mut self, patience: Duration) -> Result<bool, DatabaseError> {
        if self.receive_some()? > 0 {
            return Ok(true);
        }
        let mut poll = libc::pollfd { fd: self.fd, events: libc::POLLIN, revents: 0 };
        let patience =
            libc::timespec { tv_sec: patience.as_secs() as i64, tv_nsec: i64::from(patience.subsec_nanos()) };
        // SAFETY: one pollfd and a time that live on this stack, the count is 1, and no signals are masked.
        if unsafe { libc::ppoll(&mut poll, 1, &patience, std::ptr::null()) } > 0 {
            return self.receive_some().map(|received| received > 0);
        }
        Ok(false)
    }

    /// Returns the bytes that arrived and were not consumed.
    pub fn input(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Removes the first bytes of [`Channel::input`].
    pub fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
        debug_assert!(self.taken <= self.input.len(), "consumed {bytes} bytes that never arrived");
        if self.taken >= self.input.len() {
            self.input.clear();
            self.taken = 0;
            self.input.shrink_to(4 * READ_BYTES);
        }
    }

    /// Adds to the bytes of the answer that are kept until it is complete.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when their sum exceeds [`ANSWER_BYTES_MAX`].
    pub fn keep(&mut self, bytes: usize) -> Result<(), DatabaseError> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > ANSWER_BYTES_MAX { Err(self.endless("the server answers with rows of")) } else { Ok(()) }
    }

    #[cold]
    fn endless(&self, what: &str) -> DatabaseError {
        let asked = if self.asked.is_empty() { String::new() } else { format!(", to: {}", self.asked) };
        DatabaseError::Lost(format!("{what} more than {} MiB, and no more are read{asked}", ANSWER_BYTES_MAX >> 20))
    }

    /// Takes in the bytes that are available and returns their number; 0 when none are there yet.
    pub(super) fn receive_some(&mut self) -> Result<usize, DatabaseError> {
        let waiting = self.input.len() - self.taken;
        if waiting > ANSWER_BYTES_MAX + FRAMING_BYTES {
            return Err(self.endless("the server sends a message of"));
        }
        if self.taken > self.input.len() / 2 {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        match self.secure.clone() {
            None => {
                let most = ANSWER_BYTES_MAX + 2 * FRAMING_BYTES - waiting;
                receive_into(self.fd, &mut self.input, most)?.map_or_else(|| self.again("receiving").map(|()| 0), Ok)
            }
            Some(secure) => {
                let mut sealed = std::mem::take(&mut self.sealed);
                sealed.clear();
                let received = receive_into(self.fd, &mut sealed, READ_BYTES);
                let outcome = match received {
                    Ok(Some(_)) => {
                        secure.open(&sealed, &mut self.input).map(|()| self.input.len() - self.taken - waiting)
                    }
                    Ok(None) => self.again("receiving").map(|()| 0),
                    Err(error) => Err(error),
                };
                self.sealed = sealed;
                outcome
            }
        }
    }

    /// Returns `Ok` if the call that has just failed should be tried again, else the error.
    fn again(&self, doing: &str) -> Result<(), DatabaseError> {
        let error = std::io::Error::last_os_error();
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted => Ok(()),
            _ => Err(DatabaseError::Lost(format!("{doing}: {error}"))),
        }
    }

    /// Starts the time limit for the answer to the request that is sent now, or for the next answer to requests already sent.
    pub(super) fn begin_answer(&mut self) {
        self.kept = 0;
        let Some(limits) = &self.limits else { return };
        let limit = self.pace.limit(limits);
        self.was_told = limits.is_told_to_end();
        let limit = if self.was_told || limits.stands_still() { limit.min(limits.last()) } else { limit };
        limits.note_wait(limit);
        self.until = Some((Instant::now() + limit, limit));
    }

    /// Returns the time left to wait; `None` without limits.
    fn time_left(&self) -> Result<Option<Duration>, DatabaseError> {
        let (Some(limits), Some((until, limit))) = (&self.limits, self.until) else { return Ok(None) };
        let now = Instant::now();
        let over_at = limits.over_at();
        if over_at.is_some_and(|over_at| over_at <= now) {
            return Err(DatabaseError::Lost("the time to write is over, and the server has not answered".to_owned()));
        }
        let asked = || if self.asked.is_empty() { String::new() } else { format!(", to: {}", self.asked) };
        if limits.is_told_to_end() && !self.was_told {
            return Err(DatabaseError::Lost(format!("loadline was told to end before the server answered{}", asked())));
        }
        if until <= now {
            limits.note_late();
            let (seconds, by) = (limit.as_secs_f64(), self.pace.set_by(limits, limit));
            return Err(DatabaseError::Lost(format!("the server did not answer within {seconds} s{by}{}", asked())));
        }
        let until = over_at.map_or(until, |over_at| over_at.min(until));
        Ok(Some(until - now))
    }

    /// Waits for one of the events and returns those that occurred.
    fn wait(&self, events: i16) -> Result<i16, DatabaseError> {
        let mut poll = libc::pollfd { fd: self.fd, events, revents: 0 };
        loop {
            let left = self.time_left()?;
            let look_ms = |left: Duration| left.min(LOOK_EVERY).as_millis() as i32 + 1;
            // SAFETY: one pollfd that lives on this stack, and the count is 1.
            match unsafe { libc::poll(&mut poll, 1, left.map_or(self.timeout_ms, look_ms)) } {
                0 if left.is_some() => {}
                0 => {
                    let seconds = f64::from(self.timeout_ms) / 1e3;
                    return Err(DatabaseError::Lost(format!("the server did not answer within {seconds} s")));
                }
                1.. => return Ok(poll.revents),
                _ => self.again("waiting")?,
            }
        }
    }
}

/// Appends up to `most` bytes that a socket has. Returns their number; `None` where the call failed, with the error in `errno`.
fn receive_into(fd: RawFd, input: &mut Vec<u8>, most: usize) -> Result<Option<usize>, DatabaseError> {
    input.reserve(READ_BYTES);
    let free = input.spare_capacity_mut();
    // Without a bound, one call takes as much as a fast server can send while the call lasts.
    let most = free.len().min(most);
    // SAFETY: the pointer is that of the vector's own spare memory, which has this length at least, and which the call only writes.
    let received = unsafe { libc::recv(fd, free.as_mut_ptr().cast(), most, libc::MSG_DONTWAIT) };
    match usize::try_from(received) {
        Ok(0) => Err(DatabaseError::Lost("the server closed the connection".into())),
        Ok(received) => {
            // SAFETY: the call has just initialised this many bytes of the spare memory.
            unsafe { input.set_len(input.len() + received) };
            Ok(Some(received))
        }
        Err(_) => Ok(None),
    }
}

/// Opens a socket to an endpoint; the unix socket where the endpoint has one.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the address and the cause.
pub fn dial(endpoint: &Endpoint) -> Result<OwnedFd, DatabaseError> {
    let Some(path) = &endpoint.unix else { return dial_tcp(endpoint, CONNECT_TIMEOUT) };
    let failed =
        |error| DatabaseError::Unavailable(format!("cannot connect to {}: {error}; {DIAL_REMEDY}", path.display()));
    UnixStream::connect(path).map(OwnedFd::from).map_err(failed)
}

/// Opens a socket within limits. For a writer, the system detects a peer that is gone without closing the connection.
///
/// # Errors
/// The errors of [`dial`].
pub fn dial_within(endpoint: &Endpoint, limits: &SessionLimits) -> Result<OwnedFd, DatabaseError> {
    if !limits.notices_silence() {
        return dial(endpoint);
    }
    if let Some(path) = &endpoint.unix {
        let failed =
            |error| DatabaseError::Unavailable(format!("cannot connect to {}: {error}; {DIAL_REMEDY}", path.display()));
        return connect_at_once(path).map_err(failed);
    }
    let socket = dial_tcp(endpoint, limits.connect())?;
    let [idle_s, between_s] = KEEPALIVE_S;
    let unanswered_ms = i32::try_from(limits.answer().as_millis()).unwrap_or(i32::MAX);
    let options = [
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1),
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle_s),
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, between_s),
        (libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, unanswered_ms),
    ];
    for (level, option, value) in options {
        let length = size_of_val(&value) as libc::socklen_t;
        // SAFETY: the pointer and length are those of a whole number on this stack, which the call only reads.
        let outcome =
            unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, std::ptr::from_ref(&value).cast(), length) };
        if outcome != 0 {
            let error = std::io::Error::last_os_error();
            return Err(DatabaseError::Unavailable(format!("a connection cannot be told to notice silence: {error}")));
        }
    }
    Ok(socket)
}

fn dial_tcp(endpoint: &Endpoint, within: Duration) -> Result<OwnedFd, DatabaseError> {
    let Some((host, port)) = &endpoint.tcp else {
        return Err(DatabaseError::Unavailable("the endpoint has neither a unix socket nor a host and port".into()));
    };
    let failed = |error| DatabaseError::Unavailable(format!("cannot connect to {host}:{port}: {error}; {DIAL_REMEDY}"));
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host name has no address");
    let _inside = endpoint.namespace.as_ref().map(Namespace::enter).transpose().map_err(failed)?;
    for address in (host.as_str(), *port).to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, within) {
            Ok(stream) => return stream.set_nodelay(true).map(|()| stream.into()).map_err(failed),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

/// Connects to a unix socket without waiting: if a server that stands still has a full queue, a waiting connect would have no limit.
fn connect_at_once(path: &Path) -> std::io::Result<OwnedFd> {
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::socket(libc::AF_UNIX, kind, 0) };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, and nobody else has it.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: all zeros is a valid address, of no name.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let name = path.as_os_str().as_bytes();
    if name.len() >= address.sun_path.len() || name.contains(&0) {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "the path is too long for a socket"));
    }
    for (place, byte) in address.sun_path.iter_mut().zip(name) {
        *place = *byte as libc::c_char;
    }
    let length = size_of_val(&address) as libc::socklen_t;
    // SAFETY: the pointer and length are those of an address on this stack, which the call only reads.
    match unsafe { libc::connect(socket.as_raw_fd(), std::ptr::from_ref(&address).cast(), length) } {
        0 => Ok(socket),
        _ => Err(std::io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_message_without_an_end_is_given_up() {
        let (ours, mut server) = UnixStream::pair().unwrap();
        // The thread ends with the test, so that a channel that takes everything fails rather than fills the machine's memory.
        std::thread::spawn(move || (0..300).try_for_each(|_| server.write_all(&[7; 1 << 20])));
        let mut channel = Channel::new(ours.as_raw_fd());
        let error = std::iter::from_fn(|| channel.receive().err().map_or(Some(None), |error| Some(Some(error))));
        let error = error.flatten().next().unwrap();
        let right = "connection lost: the server sends a message of more than 64 MiB, and no more are read";
        assert_eq!(error.to_string(), right);
        assert!(channel.input().len() <= ANSWER_BYTES_MAX + 2 * FRAMING_BYTES);
    }

    #[test]
    fn what_is_kept_counts_for_one_answer() {
        let (ours, _server) = UnixStream::pair().unwrap();
        let mut channel = Channel::new(ours.as_raw_fd());
        channel.keep(ANSWER_BYTES_MAX).unwrap();
        channel.send(b"x").unwrap();
        channel.keep(ANSWER_BYTES_MAX).unwrap();
        assert!(channel.keep(1).unwrap_err().is_lost());
    }
}
