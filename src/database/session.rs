//! Blocking sessions over a [`Wire`]: what tables are created, loaded and checked with, for every database with a codec of
//! its own. The main type is [`WireSession`]; [`Channel`] is the blocking end of its socket and [`dial`] opens one.
//!
//! A database implements [`Wire`] for the hot path and [`Prepare`] for what happens around it, and has sessions for free.
//!
//! Invariant: while bytes wait to be sent, bytes that arrive are taken in, so two full socket buffers never lock up.

use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use super::{Answer, DatabaseError, Endpoint, Namespace, Session, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request};

/// How long opening a connection and proving who we are may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes read from a socket at a time.
const READ_BYTES: usize = 16 << 10;

/// What a wire can do besides executing requests. The channel is the wire's own socket, used in a blocking way; between two
/// calls nothing is left unread in it.
pub trait Prepare: Wire {
    /// As [`Session::run`].
    ///
    /// # Errors
    /// As the database answers; [`DatabaseError::Lost`] when the connection broke.
    fn run(&mut self, channel: &mut Channel, sql: &str) -> Result<(), DatabaseError>;

    /// As [`Session::query`].
    ///
    /// # Errors
    /// As the database answers; [`DatabaseError::Lost`] when the connection broke.
    fn query(&mut self, channel: &mut Channel, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError>;

    /// As [`Session::prepare`].
    ///
    /// # Errors
    /// As the database answers, with the statement's text; [`DatabaseError::Lost`] when the connection broke.
    fn prepare(&mut self, channel: &mut Channel, program: &Program) -> Result<(), DatabaseError>;

    /// As [`Session::version`].
    ///
    /// # Errors
    /// As the database answers; [`DatabaseError::Lost`] when the connection broke.
    fn version(&mut self, channel: &mut Channel) -> Result<String, DatabaseError>;

    /// As [`Session::listen`].
    ///
    /// # Errors
    /// When the database has no notifications, or refuses.
    fn listen(&mut self, _channel: &mut Channel, name: &str) -> Result<(), DatabaseError> {
        Err(DatabaseError::Unavailable(format!("the database has no notifications that \"{name}\" could bring")))
    }

    /// Takes in messages that came without being asked for, and forgets how many there were: whether there was a notification.
    ///
    /// # Errors
    /// When the database has no notifications.
    fn take_notices(&mut self, _channel: &mut Channel) -> Result<bool, DatabaseError> {
        Err(DatabaseError::Unavailable("the database has no notifications".to_owned()))
    }
}

/// A wire used in a blocking way.
#[derive(Debug)]
pub struct WireSession<W> {
    wire: W,
    channel: Channel,
    out: Vec<u8>,
    /// Why the last program could not be prepared: the wire has a part of it, and nothing of it is executed.
    unprepared: Option<DatabaseError>,
}

impl<W: Prepare + 'static> WireSession<W> {
    /// A session over a wire that is connected and idle: nothing of the server's is unread.
    pub fn new(wire: W) -> Self {
        let channel = Channel::new(wire.fd());
        WireSession { wire, channel, out: Vec::new(), unprepared: None }
    }

    /// The wire inside.
    pub fn wire(&mut self) -> &mut W {
        &mut self.wire
    }

    fn drive(&mut self, request: &Request) -> Result<Answer, DatabaseError> {
        if let Some(error) = &self.unprepared {
            return Err(error.clone());
        }
        self.out.clear();
        self.wire.start(request, &mut self.out);
        loop {
            // A server that refuses a request halfway says so and then hangs up: what it said counts.
            let sent = self.channel.send(&self.out);
            self.out.clear();
            loop {
                let progress = self.wire.advance(request, self.channel.input(), &mut self.out);
                self.channel.consume(progress.consumed);
                if let Some(outcome) = progress.outcome {
                    return outcome;
                }
                sent.clone()?;
                if !self.out.is_empty() {
                    break;
                }
                self.channel.receive()?;
            }
        }
    }
}

impl<W: Prepare + 'static> Session for WireSession<W> {
    fn run(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.wire.run(&mut self.channel, sql)
    }

    fn query(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        self.wire.query(&mut self.channel, sql)
    }

    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        let outcome = self.wire.prepare(&mut self.channel, program);
        self.unprepared = outcome.as_ref().err().cloned();
        outcome
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let Some(rows) = rows else {
            return self.drive(request);
        };
        self.wire.keep_rows(Some(std::mem::take(rows)));
        let outcome = self.drive(request);
        *rows = self.wire.keep_rows(None).unwrap_or_default();
        outcome
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.wire.version(&mut self.channel)
    }

    fn listen(&mut self, channel: &str) -> Result<(), DatabaseError> {
        self.wire.listen(&mut self.channel, channel)
    }

    fn await_notice(&mut self, patience: Duration) -> Result<bool, DatabaseError> {
        let until = Instant::now() + patience;
        loop {
            if self.wire.take_notices(&mut self.channel)? {
                return Ok(true);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.channel.receive_within(left)? {
                return Ok(false);
            }
        }
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn Session>> {
        if self.channel.input().is_empty() { Ok(Box::new(self.wire)) } else { Err(self) }
    }
}

/// The blocking end of a socket that something else owns and keeps open. Works whatever mode the socket is in.
#[derive(Debug)]
pub struct Channel {
    fd: RawFd,
    input: Vec<u8>,
    taken: usize,
    timeout_ms: i32,
}

impl Channel {
    /// A channel over an open socket; waits without limit.
    pub fn new(fd: RawFd) -> Self {
        Channel { fd, input: Vec::new(), taken: 0, timeout_ms: -1 }
    }

    /// From now on gives up after waiting this long in one go; none waits without limit.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout_ms = timeout.map_or(-1, |timeout| i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX));
    }

    /// Sends all bytes, and takes in what arrives meanwhile.
    ///
    /// # Errors
    /// [`DatabaseError::Lost`] when the connection broke; what had arrived until then is in [`Channel::input`].
    pub fn send(&mut self, mut bytes: &[u8]) -> Result<(), DatabaseError> {
        while !bytes.is_empty() {
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
                    return Err(error);
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
        while self.receive_some()? == 0 {
            self.wait(libc::POLLIN)?;
        }
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

    /// Takes in what is there; 0 when nothing is there yet.
    fn receive_some(&mut self) -> Result<usize, DatabaseError> {
        if self.taken > self.input.len() / 2 {
            self.input.drain(..self.taken);
            self.taken = 0;
        }
        self.input.reserve(READ_BYTES);
        let free = self.input.spare_capacity_mut();
        // SAFETY: the pointer and length are those of the vector's own spare memory, which the call only writes.
        let received = unsafe { libc::recv(self.fd, free.as_mut_ptr().cast(), free.len(), libc::MSG_DONTWAIT) };
        match usize::try_from(received) {
            Ok(0) => Err(DatabaseError::Lost("the server closed the connection".into())),
            Ok(received) => {
                // SAFETY: the call has just initialised this many bytes of the spare memory.
                unsafe { self.input.set_len(self.input.len() + received) };
                Ok(received)
            }
            Err(_) => self.again("receiving").map(|()| 0),
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

    /// Waits for one of the events; those that are there.
    fn wait(&self, events: i16) -> Result<i16, DatabaseError> {
        let mut poll = libc::pollfd { fd: self.fd, events, revents: 0 };
        loop {
            // SAFETY: one pollfd that lives on this stack, and the count is 1.
            match unsafe { libc::poll(&mut poll, 1, self.timeout_ms) } {
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

/// Opens a socket to an endpoint, the unix one where there is one.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the address and what went wrong.
pub fn dial(endpoint: &Endpoint) -> Result<OwnedFd, DatabaseError> {
    if let Some(path) = &endpoint.unix {
        let failed = |error| DatabaseError::Unavailable(format!("cannot connect to {}: {error}", path.display()));
        return UnixStream::connect(path).map(OwnedFd::from).map_err(failed);
    }
    let Some((host, port)) = &endpoint.tcp else {
        return Err(DatabaseError::Unavailable("the endpoint has neither a unix socket nor a host and port".into()));
    };
    let failed = |error| DatabaseError::Unavailable(format!("cannot connect to {host}:{port}: {error}"));
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "the host name has no address");
    let _inside = endpoint.namespace.as_ref().map(Namespace::enter).transpose().map_err(failed)?;
    for address in (host.as_str(), *port).to_socket_addrs().map_err(failed)? {
        match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
            Ok(stream) => return stream.set_nodelay(true).map(|()| stream.into()).map_err(failed),
            Err(error) => last = error,
        }
    }
    Err(failed(last))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::Progress;
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;

    /// Sends as many bytes as the request has steps, and is done when as many came back.
    #[derive(Debug)]
    struct Echo {
        socket: UnixStream,
        left: usize,
        kept: Option<Cells>,
    }

    impl Wire for Echo {
        fn fd(&self) -> RawFd {
            self.socket.as_raw_fd()
        }

        fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
            self.left = request.steps[0].rows as usize;
            out.resize(self.left, 7);
        }

        fn advance(&mut self, _request: &Request, input: &[u8], _out: &mut Vec<u8>) -> Progress {
            self.left -= input.len();
            if let Some(rows) = &mut self.kept {
                rows.int(input.len() as i64);
            }
            let outcome = (self.left == 0).then(|| Ok(Answer::default()));
            Progress { consumed: input.len(), outcome }
        }

        fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
            std::mem::replace(&mut self.kept, rows)
        }
    }

    impl Prepare for Echo {
        fn run(&mut self, channel: &mut Channel, sql: &str) -> Result<(), DatabaseError> {
            channel.send(sql.as_bytes())
        }

        fn query(&mut self, channel: &mut Channel, _sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
            channel.receive().map(|()| Vec::new())
        }

        fn prepare(&mut self, _channel: &mut Channel, _program: &Program) -> Result<(), DatabaseError> {
            Ok(())
        }

        fn version(&mut self, _channel: &mut Channel) -> Result<String, DatabaseError> {
            Ok("echo".into())
        }
    }

    fn echo() -> (WireSession<Echo>, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (WireSession::new(Echo { socket: ours, left: 0, kept: None }), theirs)
    }

    fn request(bytes: u32) -> Request {
        let expect = crate::statement::Expect::Anything;
        let step = crate::statement::Step { statement: 0, rows: bytes, first_cell: 0, expect };
        Request { steps: vec![step], cells: Cells::new() }
    }

    #[test]
    fn a_request_and_an_answer_larger_than_the_socket_buffers_do_not_lock_up() {
        let (mut session, mut server) = echo();
        // The server answers each block before it reads the next, so it stops reading when we do.
        let server = std::thread::spawn(move || {
            let mut block = vec![0; 1 << 16];
            loop {
                let read = server.read(&mut block).unwrap();
                if read == 0 {
                    return;
                }
                server.write_all(&block[..read]).unwrap();
            }
        });
        let mut rows = Cells::new();
        session.execute(&request(8 << 20), Some(&mut rows)).unwrap();
        assert!(!rows.is_empty(), "the rows kept are handed back");
        session.execute(&request(1), None).unwrap();
        assert!(Box::new(session).into_wire().is_ok());
        server.join().unwrap();
    }

    #[test]
    fn a_closed_connection_is_lost_and_silence_ends_at_the_time_limit() {
        let (mut session, server) = echo();
        session.channel.set_timeout(Some(Duration::from_millis(5)));
        let silent = session.query("").unwrap_err();
        assert!(matches!(&silent, DatabaseError::Lost(text) if text.contains("0.005 s")), "{silent}");
        drop(server);
        assert_eq!(session.query(""), Err(DatabaseError::Lost("the server closed the connection".into())));
        assert!(matches!(session.run("more"), Err(DatabaseError::Lost(_))));
        assert!(matches!(session.execute(&request(1), None), Err(DatabaseError::Lost(_))));
    }

    #[test]
    fn unread_bytes_keep_a_session_from_becoming_a_wire() {
        let (mut session, mut server) = echo();
        server.write_all(b"left over").unwrap();
        session.query("").unwrap();
        assert!(Box::new(session).into_wire().is_err());
    }

    #[test]
    fn a_missing_socket_is_named() {
        let endpoint = Endpoint { unix: Some("/nowhere/at-all.sock".into()), ..Endpoint::default() };
        assert!(dial(&endpoint).unwrap_err().to_string().contains("/nowhere/at-all.sock"));
        assert!(dial(&Endpoint::default()).is_err());
    }
}
