//! The blocking end of a connection's socket, and how one is opened. Main type: [`Channel`]; [`dial`] opens a socket.
//!
//! Invariant: while bytes wait to be sent, bytes that arrive are taken in, so two full socket buffers never lock up. With limits, nothing is
//! waited for beyond them. What a server sends takes bounded memory.

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

/// How long opening a connection and proving who we are may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes read from a socket at a time.
const READ_BYTES: usize = 16 << 10;

/// Most bytes of a server that wait for the end of their message, and most that the rows of one answer take while they are kept. Nothing that
/// a study or a recorder asks for comes near it.
pub const ANSWER_BYTES_MAX: usize = 64 << 20;

/// A message of just that size has its framing besides.
const FRAMING_BYTES: usize = 1 << 20;

/// How often whoever waits within limits looks whether it is to end.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// What to do when nobody answers.
const DIAL_REMEDY: &str = "check the address, and that the server is running";

/// Characters of a statement that is told with what is late.
const ASKED_MAX: usize = 200;

/// How long a connection may be silent before it is asked whether it is still there, and between two questions, in seconds.
const KEEPALIVE_S: [i32; 2] = [15, 5];

/// The blocking end of a socket that something else owns and keeps open. Works whatever mode the socket is in.
#[derive(Debug)]
pub struct Channel {
    fd: RawFd,
    input: Vec<u8>,
    taken: usize,
    timeout_ms: i32,
    limits: Option<Arc<SessionLimits>>,
    /// Until when the answer to what was sent last is waited for, and how long that is in all.
    until: Option<(Instant, Duration)>,
    /// What the rows of the answer take so far that somebody keeps.
    kept: usize,
    /// How long an answer may take.
    pace: Pace,
    /// Whether loadline had been told to end when this was asked.
    was_told: bool,
    /// The statement that is being answered, where somebody waits for one.
    asked: String,
    /// What protects the socket, where something does.
    secure: Option<SharedSecure>,
    /// Bytes on their way between it and the socket.
    sealed: Vec<u8>,
    /// Whether the server has said everything before it is asked.
    #[cfg(any(test, fuzzing, feature = "fuzzed"))]
    is_scripted: bool,
}

impl Channel {
    /// A channel over an open socket; waits without limit.
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

    /// A channel over an open socket and what protects it.
    pub fn over(fd: RawFd, secure: Option<SharedSecure>) -> Self {
        Channel { secure, ..Channel::new(fd) }
    }

    /// Agrees with the server upon TLS, for a host by that name; what protects the connection from here on.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection broke, the server has no such TLS, or does not prove what it is to prove.
    pub fn protect(&mut self, tls: &Tls, host: &str) -> Result<SharedSecure, DatabaseError> {
        // Whoever sits between could have put it there, to be taken for what the server sealed.
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
            // Where it is refused, the server learns why.
            let sent = self.seal_and_send(&[]);
            if received? == 0 && secure.is_beginning() {
                self.wait(libc::POLLIN)?;
            }
            sent?;
        }
        Ok(secure)
    }

    /// From now on each answer is waited for within limits, also the one that comes first without being asked for.
    pub fn set_limits(&mut self, limits: Arc<SessionLimits>, pace: Pace) {
        self.limits = Some(limits);
        self.set_pace(pace);
        self.begin_answer();
    }

    /// From now on answers may take so long.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// This statement is sent next; what is late is told with it.
    pub fn ask(&mut self, statement: &str) {
        self.asked.clear();
        if self.limits.is_some() {
            self.asked.push_str(&shortened(statement, ASKED_MAX));
        }
    }

    /// From now on gives up after waiting this long in one go; none waits without limit.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout_ms = timeout.map_or(-1, |timeout| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    }

    /// Sends all bytes, and takes in what arrives meanwhile.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection broke; what had arrived until then is in [`Channel::input`].
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
    /// [`DatabaseError::Lost`] when the connection broke or was closed.
    pub fn receive(&mut self) -> Result<(), DatabaseError> {
        // A server that sends a little now and then does not get more time.
        self.time_left()?;
        while self.receive_some()? == 0 {
            self.wait(libc::POLLIN)?;
        }
        // Who only lets us in may stand still all the same.
        self.limits.iter().filter(|_| self.pace != Pace::Login).for_each(|limits| limits.note_heard());
        Ok(())
    }

    /// Waits for at most this time until at least one more byte is in [`Channel::input`]; whether there is.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection broke or was closed.
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

    /// Bytes that arrived and were not consumed.
    pub fn input(&self) -> &[u8] {
        &self.input[self.taken..]
    }

    /// Forgets the first bytes of [`Channel::input`].
    pub fn consume(&mut self, bytes: usize) {
        self.taken += bytes;
        debug_assert!(self.taken <= self.input.len(), "consumed {bytes} bytes that never arrived");
        if self.taken >= self.input.len() {
            self.input.clear();
            self.taken = 0;
            self.input.shrink_to(4 * READ_BYTES);
        }
    }

    /// Notes that so many bytes of the answer are kept until it is whole.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when they are more than [`ANSWER_BYTES_MAX`] together.
    pub fn keep(&mut self, bytes: usize) -> Result<(), DatabaseError> {
        self.kept = self.kept.saturating_add(bytes);
        if self.kept > ANSWER_BYTES_MAX { Err(self.endless("the server answers with rows of")) } else { Ok(()) }
    }

    #[cold]
    fn endless(&self, what: &str) -> DatabaseError {
        let asked = if self.asked.is_empty() { String::new() } else { format!(", to: {}", self.asked) };
        DatabaseError::Lost(format!("{what} more than {} MiB, and no more are read{asked}", ANSWER_BYTES_MAX >> 20))
    }

    /// Takes in what is there; 0 when nothing is there yet.
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

    /// Whether the call that has just failed is to be tried again.
    fn again(&self, doing: &str) -> Result<(), DatabaseError> {
        let error = std::io::Error::last_os_error();
        match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted => Ok(()),
            _ => Err(DatabaseError::Lost(format!("{doing}: {error}"))),
        }
    }

    /// What is sent now is to be answered within the limit, or what was sent and is answered next.
    pub(super) fn begin_answer(&mut self) {
        self.kept = 0;
        let Some(limits) = &self.limits else { return };
        let limit = match self.pace {
            Pace::Login => limits.login(),
            Pace::Usual => limits.answer(),
            Pace::Change => limits.change(),
        };
        self.was_told = limits.is_told_to_end();
        let limit = if self.was_told || limits.stands_still() { limit.min(limits.last()) } else { limit };
        limits.note_wait(limit);
        self.until = Some((Instant::now() + limit, limit));
    }

    /// How long may still be waited; none without limits.
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
            let (seconds, is_set) = (limit.as_secs_f64(), limit >= limits.answer());
            let by = if is_set { format!(", which {} sets", limits.setting()) } else { String::new() };
            return Err(DatabaseError::Lost(format!("the server did not answer within {seconds} s{by}{}", asked())));
        }
        let until = over_at.map_or(until, |over_at| over_at.min(until));
        Ok(Some(until - now))
    }

    /// Waits for one of the events; those that are there.
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

/// Appends what a socket has, up to so many bytes; how many they are, and none where the call failed, as the system says.
fn receive_into(fd: RawFd, input: &mut Vec<u8>, most: usize) -> Result<Option<usize>, DatabaseError> {
    input.reserve(READ_BYTES);
    let free = input.spare_capacity_mut();
    // A call takes as much as a fast server can send while it goes on.
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

/// Opens a socket to an endpoint, the unix one where there is one.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the address and what went wrong.
pub fn dial(endpoint: &Endpoint) -> Result<OwnedFd, DatabaseError> {
    let Some(path) = &endpoint.unix else { return dial_tcp(endpoint, CONNECT_TIMEOUT) };
    let failed =
        |error| DatabaseError::Unavailable(format!("cannot connect to {}: {error}; {DIAL_REMEDY}", path.display()));
    UnixStream::connect(path).map(OwnedFd::from).map_err(failed)
}

/// Opens a socket within limits: for a writer the system notices when nobody is at the other end any more.
///
/// # Errors
/// As [`dial`].
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

/// Connects to a unix socket, or fails: where a server that stands still has its queue full, others would wait without limit.
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
        // It ends with the test, so that a channel that takes everything fails rather than fills the machine.
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
