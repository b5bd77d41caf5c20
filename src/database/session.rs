//! Blocking sessions over a [`Wire`]: what tables are created, loaded and checked with, for every database with a codec of
//! its own. The main type is [`WireSession`]; a [`Channel`] is the blocking end of its socket.
//!
//! A database implements [`Wire`] for the hot path and [`Prepare`] for what happens around it, and has sessions for free.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Answer, DatabaseError, Session, Wire, WriterLimits};
use crate::record::Cells;
use crate::statement::{Program, Request};

pub use super::channel::{CONNECT_TIMEOUT, Channel, Pace, dial, dial_writer};

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

    /// What begins a dry run, as texts; see [`Session::begin_dry_run`]. Empty where there are none.
    fn dry_run_texts(&self) -> &'static [&'static str] {
        &[]
    }

    /// From now on requests are parts of a dry run, in which the inserts before them are kept or undone first; or not any more.
    fn set_dry_run(&mut self, _before: Option<Before>) {}

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

/// What becomes, within a dry run, of what was attempted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    /// It stays, until the end of the dry run.
    Kept,
    /// It is undone.
    Undone,
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

    /// From now on the session waits for its server within limits.
    pub fn set_limits(&mut self, limits: Arc<WriterLimits>) {
        self.channel.set_limits(limits, Pace::Usual);
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

    fn run_change(&mut self, sql: &str) -> Result<(), DatabaseError> {
        self.channel.set_pace(Pace::Change);
        let outcome = self.run(sql);
        self.channel.set_pace(Pace::Usual);
        outcome
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

    fn begin_dry_run(&mut self) -> Result<(), DatabaseError> {
        let texts = self.wire.dry_run_texts();
        if texts.is_empty() {
            return Err(DatabaseError::Unavailable("the database has no dry runs".to_owned()));
        }
        texts.iter().try_for_each(|text| self.run(text))?;
        self.wire.set_dry_run(Some(Before::Kept));
        Ok(())
    }

    fn attempt(&mut self, request: &Request) -> Result<(), DatabaseError> {
        let outcome = self.drive(request);
        self.wire.set_dry_run(Some(if outcome.is_ok() { Before::Kept } else { Before::Undone }));
        outcome.map(drop)
    }

    fn end_dry_run(&mut self) -> Result<(), DatabaseError> {
        self.wire.set_dry_run(None);
        // A session that is still in a transaction must not be used.
        self.run("ROLLBACK").map_err(|error| DatabaseError::Lost(format!("a dry run could not be undone: {error}")))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Endpoint, Progress};
    use std::io::{Read, Write};
    use std::os::fd::{AsRawFd, RawFd};
    use std::os::unix::net::UnixStream;

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
    fn a_limit_holds_for_the_whole_answer_and_no_longer_than_the_writers_own_time() {
        let (mut session, mut server) = echo();
        session.set_limits(Arc::new(WriterLimits::new("", Duration::from_millis(300), Box::new(|| None))));
        // One byte now and then is no answer to a request of many.
        let server = std::thread::spawn(move || {
            while server.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(20));
            }
        });
        let late = session.execute(&request(1 << 20), None).unwrap_err();
        assert!(matches!(&late, DatabaseError::Lost(text) if text.contains("0.3 s")), "{late}");
        drop(session);
        server.join().unwrap();
        let (mut session, _server) = echo();
        let over_at = Instant::now() + Duration::from_millis(50);
        session.set_limits(Arc::new(WriterLimits::new("", Duration::from_secs(3600), Box::new(move || Some(over_at)))));
        let over = session.query("").unwrap_err();
        assert!(matches!(&over, DatabaseError::Lost(text) if text.contains("is over")), "{over}");
    }

    #[test]
    fn a_unix_socket_whose_queue_is_full_is_refused_at_once() {
        let path = std::env::temp_dir().join(format!("loadline-queue-{}", std::process::id()));
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let endpoint = Endpoint { unix: Some(path.clone()), ..Endpoint::default() };
        let limits = WriterLimits::new("", Duration::from_secs(3600), Box::new(|| None));
        let mut opened = Vec::new();
        let refused = loop {
            match dial_writer(&endpoint, &limits) {
                Ok(socket) => opened.push(socket),
                Err(error) => break error.to_string(),
            }
        };
        assert!(!opened.is_empty() && refused.contains("loadline-queue"), "{refused}");
        drop(listener);
        std::fs::remove_file(path).unwrap();
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
