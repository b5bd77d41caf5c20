//! Tests of sessions over a wire that echoes.

use super::*;
use crate::database::{Endpoint, Progress};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// A wire that sends one byte for each step of the request, and is done when as many have come back.
#[derive(Debug)]
struct Echo {
    socket: UnixStream,
    left: usize,
    kept: Option<Cells>,
    refuses: &'static str,
}

impl Wire for Echo {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.left = request.steps[0].rows as usize;
        out.resize(out.len() + self.left, 7);
    }

    fn advance(&mut self, _request: &Request, input: &[u8], _out: &mut Vec<u8>) -> Progress {
        let consumed = input.len().min(self.left);
        self.left -= consumed;
        if let Some(rows) = &mut self.kept {
            rows.int(consumed as i64);
        }
        let outcome = (self.left == 0).then(|| Ok(Answer::default()));
        Progress { consumed, outcome }
    }

    fn keep_rows(&mut self, rows: Option<Cells>) -> Option<Cells> {
        std::mem::replace(&mut self.kept, rows)
    }
}

impl Prepare for Echo {
    fn prepare(&mut self, _channel: &mut Channel, _program: &Program) -> Result<(), DatabaseError> {
        Ok(())
    }

    fn version(&mut self, _channel: &mut Channel) -> Result<String, DatabaseError> {
        Ok("echo".into())
    }

    fn as_sql(session: &mut WireSession<Self>) -> Option<&mut dyn Session> {
        Some(session)
    }
}

impl Speak for Echo {
    fn dialect(&self) -> &dyn Dialect {
        &crate::database::postgres::PostgresDialect
    }

    fn run(&mut self, channel: &mut Channel, sql: &str) -> Result<(), DatabaseError> {
        channel.send(sql.as_bytes())?;
        if sql == self.refuses { Err(DatabaseError::refused("1", "not now")) } else { Ok(()) }
    }

    fn dry_run_texts(&self) -> [&'static [&'static str]; 3] {
        [&["first;", "second;", "third;"], &["undo;", "as before;"], &["commit;", "as before;"]]
    }

    fn query(&mut self, channel: &mut Channel, _sql: &str) -> Result<Vec<Vec<Option<String>>>, DatabaseError> {
        channel.receive().map(|()| Vec::new())
    }

    fn can_follow(&self, _request: &Request) -> bool {
        true
    }
}

fn echo() -> (WireSession<Echo>, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    (WireSession::new(Echo { socket: ours, left: 0, kept: None, refuses: "" }), theirs)
}

fn request(bytes: u32) -> Request {
    let expect = crate::statement::Expect::Anything;
    let step = crate::statement::Step { statement: 0, rows: bytes, first_cell: 0, expect };
    Request { steps: vec![step], ..Request::default() }
}

#[test]
fn a_request_and_an_answer_larger_than_the_socket_buffers_do_not_lock_up() {
    let (mut session, mut server) = echo();
    // The server answers each block before it reads the next, so it stops reading when the client does.
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
    session.set_limits(Arc::new(SessionLimits::new("", Duration::from_millis(300), Box::new(|| None))));
    // One byte now and then does not complete the answer to a request of many steps.
    let server = std::thread::spawn(move || {
        server.read_exact(&mut [0]).unwrap();
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
    session.set_limits(Arc::new(SessionLimits::new("", Duration::from_secs(3600), Box::new(move || Some(over_at)))));
    let over = session.query("").unwrap_err();
    assert!(matches!(&over, DatabaseError::Lost(text) if text.contains("is over")), "{over}");
}

#[test]
fn each_of_many_requests_that_leave_together_has_the_limit_for_its_own_answer() {
    let (mut session, mut server) = echo();
    session.set_limits(Arc::new(SessionLimits::new("", Duration::from_secs(3), Box::new(|| None))));
    let requests: Vec<_> = (1..4).map(request).collect();
    let server = std::thread::spawn(move || {
        let mut all = [0; 6];
        server.read_exact(&mut all).unwrap();
        for bytes in 1..4 {
            std::thread::sleep(Duration::from_millis(1_200));
            server.write_all(&all[..bytes]).unwrap();
        }
        server
    });
    assert_eq!(session.attempt_each(&requests), vec![Ok(()); 3]);
    drop(server.join().unwrap());
    let lost = session.attempt_each(&requests);
    assert!(matches!(&lost[..], [Err(DatabaseError::Lost(_))]), "{lost:?}");
}

#[test]
fn a_dry_run_that_does_not_begin_leaves_nothing_begun() {
    let (mut session, mut server) = echo();
    session.wire.refuses = "second;";
    assert_eq!(session.begin_dry_run(), Err(DatabaseError::refused("1", "not now")));
    drop(session);
    let mut sent = String::new();
    server.read_to_string(&mut sent).unwrap();
    assert_eq!(sent, "first;second;undo;as before;");
    // A failed rollback ends the connection.
    let (mut session, _server) = echo();
    session.wire.refuses = "undo;";
    session.begin_dry_run().unwrap();
    assert!(session.end_dry_run().unwrap_err().is_lost());
}

#[test]
fn a_dry_run_that_is_kept_goes_back_behind_what_was_refused_and_commits() {
    let kept = |before: Before, refuses: &'static str| {
        let (mut session, mut server) = echo();
        session.begin_dry_run().unwrap();
        (session.before, session.wire.refuses) = (before, refuses);
        let outcome = session.keep_dry_run();
        drop(session);
        let mut sent = String::new();
        server.read_to_string(&mut sent).unwrap();
        (outcome, sent.strip_prefix("first;second;third;").unwrap().to_owned())
    };
    let (release, back) = ("RELEASE SAVEPOINT attempt", "ROLLBACK TO SAVEPOINT attempt");
    assert_eq!(kept(Before::Kept, ""), (Ok(()), format!("{release}commit;as before;")));
    assert_eq!(kept(Before::Undone, ""), (Ok(()), format!("{back}commit;as before;")));
    let refused = Err(DatabaseError::refused("1", "not now"));
    assert_eq!(kept(Before::Kept, release), (refused.clone(), format!("{release}undo;as before;")));
    assert_eq!(kept(Before::Kept, "commit;"), (refused, format!("{release}commit;undo;as before;")));
    // The transaction is committed, but the session must not be used any more.
    assert!(kept(Before::Kept, "as before;").0.unwrap_err().is_lost());
}

#[test]
fn a_unix_socket_whose_queue_is_full_is_refused_at_once() {
    let path = std::env::temp_dir().join(format!("loadline-queue-{}", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let endpoint = Endpoint { unix: Some(path.clone()), ..Endpoint::default() };
    let limits = SessionLimits::new("", Duration::from_secs(3600), Box::new(|| None));
    let mut opened = Vec::new();
    let refused = loop {
        match dial_within(&endpoint, &limits) {
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
    let server = std::thread::spawn(move || {
        let mut asked = [0];
        server.read_exact(&mut asked).unwrap();
        server.write_all(&[7, 7]).unwrap();
        server
    });
    session.execute(&request(1), None).unwrap();
    let _server = server.join().unwrap();
    assert!(Box::new(session).into_wire().is_err());
}

#[test]
fn an_answer_too_many_is_never_taken_for_the_one_to_what_is_asked_next() {
    // The message comes with the first answer, or on its own while no request is running.
    for is_late in [false, true] {
        let (mut session, mut server) = echo();
        let answers = std::thread::spawn(move || {
            let mut asked = [0];
            server.read_exact(&mut asked).unwrap();
            server.write_all(if is_late { &[7] } else { &[7, 7] }).unwrap();
            server
        });
        session.execute(&request(1), None).unwrap();
        let mut server = answers.join().unwrap();
        if is_late {
            server.write_all(&[7]).unwrap();
        }
        for _ in 0..2 {
            let error = session.execute(&request(1), None).unwrap_err();
            assert!(error.is_lost() && error.to_string().contains("more than the answer"), "{error}");
        }
        let texts = [session.run("").unwrap_err(), session.query("").map(drop).unwrap_err()];
        assert!(texts.iter().all(DatabaseError::is_lost), "{texts:?}");
        let mut asked = Vec::new();
        server.set_nonblocking(true).unwrap();
        let _ = server.read_to_end(&mut asked);
        assert!(asked.is_empty(), "nothing is asked of such a server any more: {asked:?}");
    }
}

#[test]
fn a_missing_socket_is_named() {
    let endpoint = Endpoint { unix: Some("/nowhere/at-all.sock".into()), ..Endpoint::default() };
    assert!(dial(&endpoint).unwrap_err().to_string().contains("/nowhere/at-all.sock"));
    assert!(dial(&Endpoint::default()).is_err());
}
