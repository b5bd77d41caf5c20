//! Tests with recorders and NATS servers that lie: records count as acknowledged only where the server said so of these records, and no wait is endless.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::fuzzed::record_type;
use super::http::HttpWire;
use super::lines::Lines;
use super::nats::NatsWire;
use super::*;
use crate::database::session::Prepare;
use crate::database::{Answer, SessionLimits};
use crate::record::ColumnKind;
use crate::statement::{Expect, Request, Step, TableColumn};

/// The time that a session waits for an answer in these tests.
const PATIENCE: Duration = Duration::from_millis(300);
/// The maximum time of a request, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(20);

/// Returns the answer to the n-th request, from 0; `None` to end the connection instead.
type Lie = fn(usize) -> Option<Vec<u8>>;

/// Starts a server that reads each request in one go and answers with `lie`. Returns its endpoint.
fn served(greeting: &'static [u8], lie: Lie) -> Endpoint {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let Ok((stream, _)) = listener.accept() else { return };
        let _ = answer(stream, greeting, lie);
    });
    Endpoint { tcp: Some((Ipv4Addr::LOCALHOST.to_string(), port)), ..Endpoint::default() }
}

fn answer(mut stream: TcpStream, greeting: &[u8], lie: Lie) -> std::io::Result<()> {
    let mut asked = vec![0; 64 << 10];
    if !greeting.is_empty() && stream.read(&mut asked)? > 0 {
        stream.write_all(greeting)?;
    }
    for number in 0.. {
        if stream.read(&mut asked)? == 0 {
            return Ok(());
        }
        match lie(number) {
            Some(bytes) => stream.write_all(&bytes)?,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// Returns the outcomes of three requests of one record each.
fn outcomes<W: Prepare + 'static>(wire: W) -> Vec<Result<Answer, DatabaseError>> {
    let mut session = WireSession::new(wire);
    session.set_limits(Arc::new(SessionLimits::of_trials(PATIENCE, || false)));
    let column = TableColumn { name: "lost".to_owned(), kind: ColumnKind::Int32, nullable: false };
    let statements = vec![Statement::Insert { table: "t".to_owned(), columns: vec![column] }];
    session.prepare(&Program { statements, rows_max: 1, ..Program::default() }).unwrap();
    let mut found = Vec::new();
    for number in 0..3 {
        let mut request = Request::default();
        [number, 80, -3].into_iter().for_each(|value| request.cells.int(value));
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
        let begun = Instant::now();
        let outcome = session.execute(&request, None);
        assert!(begun.elapsed() < LONGEST, "{outcome:?}");
        let is_lost = outcome.as_ref().is_err_and(DatabaseError::is_lost);
        found.push(outcome);
        if is_lost {
            break;
        }
    }
    found
}

/// Returns how each request ended: `+` acknowledged, `-` refused, `x` lost.
fn marks(outcomes: &[Result<Answer, DatabaseError>]) -> String {
    let mark = |outcome: &Result<Answer, DatabaseError>| match outcome {
        Ok(answer) => {
            assert_eq!(answer.changed, 1);
            '+'
        }
        Err(error) if error.is_lost() => 'x',
        Err(_) => '-',
    };
    outcomes.iter().map(mark).collect()
}

fn over_http(lie: Lie) -> (String, String) {
    let endpoint = served(b"", lie);
    let found = outcomes(HttpWire::connect(&endpoint, Arc::new(Lines::new("t", &record_type(), 1))).unwrap());
    (marks(&found), format!("{:?}", found.last()))
}

const TAKEN: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

#[test]
fn a_recorder_that_lies_has_acknowledged_nothing() {
    let lies: [(&str, Lie, &str); 12] = [
        (
            "an answer too many",
            |number| {
                Some(if number == 0 {
                    TAKEN.repeat(2)
                } else {
                    b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n".to_vec()
                })
            },
            "+x",
        ),
        ("as it should be", |_| Some(TAKEN.to_vec()), "+++"),
        ("nothing", |_| Some(Vec::new()), "x"),
        ("the connection ends", |_| None, "x"),
        ("it ends within an answer", |number| (number == 0).then(|| TAKEN[..9].to_vec()), "x"),
        ("a body that never comes", |_| Some(b"HTTP/1.1 503 No\r\ncontent-length: 9\r\n\r\nfu".to_vec()), "x"),
        (
            "a body as large as can be said",
            |_| Some(b"HTTP/1.1 204 No\r\ncontent-length: 18446744073709551615\r\n\r\n".to_vec()),
            "x",
        ),
        ("another protocol", |_| Some(b"SSH-2.0-OpenSSH_9.2\r\n\r\n".to_vec()), "x"),
        ("a status that is none", |_| Some(b"HTTP/1.1 2o4 No Content\r\n\r\n".to_vec()), "x"),
        ("a page", |_| Some(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi".to_vec()), "---"),
        ("a refusal without an end of its head", |_| Some(vec![b'x'; 70 << 10]), "x"),
        ("zeros", |_| Some(vec![0; 100]), "x"),
    ];
    for (what, lie, right) in lies {
        let (found, told) = over_http(lie);
        assert_eq!(found, right, "{what}: {told}");
        assert!(told.len() < 2_000, "{what}: {told}");
    }
}

const GREETING: &[u8] = b"INFO {\"version\":\"2.9.10\"}\r\nPONG\r\n";

/// Returns JetStream's answer to the message of this number.
fn taken(number: usize, what: &str) -> Vec<u8> {
    format!("MSG _INBOX.l.{number} 1 {}\r\n{what}\r\n", what.len()).into_bytes()
}

fn over_nats(greeting: &'static [u8], lie: Lie) -> Result<(String, String), DatabaseError> {
    let socket = crate::database::session::dial(&served(greeting, lie))?;
    let wire = NatsWire::over(
        socket.into(),
        None,
        "s",
        ("_INBOX.l".to_owned(), Arc::new(Lines::new("t", &record_type(), 1))),
    )?;
    let found = outcomes(wire);
    Ok((marks(&found), format!("{:?}", found.last())))
}

#[test]
fn a_nats_server_that_lies_has_acknowledged_nothing() {
    const SEQ: &str = "{\"stream\":\"s\",\"seq\":1}";
    let lies: [(&str, Lie, &str); 12] = [
        ("as it should be", |number| Some(taken(number + 1, SEQ)), "+++"),
        ("nothing", |_| Some(Vec::new()), "x"),
        ("the connection ends", |_| None, "x"),
        ("the answer to the message before", |number| Some(taken(number, SEQ)), "x"),
        ("the answer to the message after", |number| Some(taken(number + 2, SEQ)), "x"),
        ("an answer too many", |number| Some([taken(number + 1, SEQ), taken(number + 1, SEQ)].concat()), "+++"),
        ("an answer without a number of the stream", |number| Some(taken(number + 1, "{\"stream\":\"s\"}")), "---"),
        (
            "an error and a number",
            |number| Some(taken(number + 1, "{\"seq\":1,\"error\":{\"code\":503,\"description\":\"full\"}}")),
            "---",
        ),
        ("no JSON", |number| Some(taken(number + 1, "\u{0}\u{1}")), "---"),
        ("a length as large as can be said", |_| Some(b"MSG _INBOX.l.1 1 18446744073709551615\r\n".to_vec()), "x"),
        ("a line without an end", |_| Some(vec![b'M'; 300 << 10]), "x"),
        ("an error", |_| Some(b"-ERR 'Authorization Violation'\r\n".to_vec()), "x"),
    ];
    for (what, lie, right) in lies {
        let (found, told) = over_nats(GREETING, lie).unwrap();
        assert_eq!(found, right, "{what}: {told}");
        assert!(told.len() < 2_000, "{what}: {told}");
    }
}

#[test]
fn a_nats_server_that_never_takes_a_hello_in_is_given_up() {
    let refused = |greeting: &'static [u8]| match over_nats(greeting, |_| Some(Vec::new())) {
        Err(error) => error.to_string(),
        Ok(found) => panic!("{found:?}"),
    };
    // A server that talks without end does not hold a client that connects.
    let talking: &'static [u8] = Box::leak(b"+OK\r\n".repeat(1_000).into_boxed_slice());
    assert!(refused(talking).contains("says 100 other things"), "{}", refused(talking));
    assert!(refused(b"-ERR 'no'\r\n").contains("'no'"));
    assert!(refused(b"HTTP/1.1 400 Bad Request\r\n").contains("HTTP/1.1 400"));
    let endless: &'static [u8] = Box::leak(vec![b'I'; 300 << 10].into_boxed_slice());
    assert!(refused(endless).contains("does not end"), "{}", refused(endless));
}
