//! The sources: each sends its records over a connection of its own, request after request, and keeps what was acknowledged in the protocol's own terms.
//!
//! Main type: [`Sources`]. Invariant: a record is sent once, and counts as acknowledged only if the whole answer said so before the next request was sent.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, ensure};

use super::judge::Sent;
use crate::database::http::{Part, Reading, TOLD_MOST, shown};
use crate::load::no_thread;
use crate::random::{Stream, derive};
use crate::record::time_of_number;

/// Name of the measurement that the sources send.
pub const MEASUREMENT: &str = "durability";

/// Number of sources.
pub const SOURCES: u64 = 4;
/// The largest number of records in a request.
const LINES_MOST: u64 = 10;
/// Pause before a source connects again, or sends again after a refusal.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// Longest wait for an answer: the request then counts as sent, and the connection is given up.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The maximum bytes of an answer's body.
const BODY_BYTES_MAX: usize = 1 << 20;
/// How many bytes are read at a time.
const READ_BYTES: usize = 4 << 10;

/// The address to which sources send.
#[derive(Debug, Clone)]
pub struct Intake {
    /// The address.
    pub address: SocketAddr,
    /// Path of the request, with its parameters.
    pub path: String,
    /// Further header lines, as in `Authorization: Token x`.
    pub headers: Vec<String>,
}

/// Sources that are sending.
pub struct Sources {
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<(Vec<Sent>, Option<String>)>>,
}

/// What the sources have sent.
pub struct Answers {
    /// The requests of each source, in their order.
    pub sent: Vec<Vec<Sent>>,
    /// The first answer that refused a request for good (4xx but 429), if there was one.
    pub refused: Option<String>,
}

/// Lets all sources begin; answers are timed from `clock`.
///
/// # Errors
/// Fails if there is no thread left for one.
pub fn start(intake: &Intake, seed: u64, clock: Instant) -> anyhow::Result<Sources> {
    let is_over = Arc::new(AtomicBool::new(false));
    let mut sources = Sources { is_over, threads: Vec::new() };
    for number in 0..SOURCES {
        let (intake, is_over) = (intake.clone(), Arc::clone(&sources.is_over));
        let chance = Stream::seeded(derive(seed, number));
        let mut source =
            Source { intake, number, chance, clock, next: 0, sent: Vec::new(), refused: None, connection: None };
        let send = move || {
            while !is_over.load(Ordering::Relaxed) {
                source.send();
            }
            (source.sent, source.refused)
        };
        let thread = std::thread::Builder::new().name("source".to_owned()).spawn(send);
        sources.threads.push(thread.map_err(|error| anyhow!(no_thread("a source", &error)))?);
    }
    Ok(sources)
}

impl Sources {
    /// Tells the sources to end, each after the answer that it waits for, and returns what was sent.
    ///
    /// # Errors
    /// Fails if a source has panicked.
    pub fn finish(mut self) -> anyhow::Result<Answers> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut answers = Answers { sent: Vec::new(), refused: None };
        for thread in std::mem::take(&mut self.threads) {
            let (sent, refused) = thread.join().map_err(|_| anyhow!("a source panicked"))?;
            answers.sent.push(sent);
            answers.refused = answers.refused.or(refused);
        }
        Ok(answers)
    }
}

impl Drop for Sources {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// One source.
struct Source {
    intake: Intake,
    number: u64,
    chance: Stream,
    clock: Instant,
    /// Number of records that it has sent.
    next: u64,
    sent: Vec<Sent>,
    refused: Option<String>,
    connection: Option<Connection>,
}

impl Source {
    /// Sends one request and keeps what became of it.
    fn send(&mut self) {
        if self.connection.is_none() {
            match connect(self.intake.address) {
                Ok(connection) => self.connection = Some(connection),
                Err(_) => return std::thread::sleep(AGAIN_AFTER),
            }
        }
        let Some(mut connection) = self.connection.take() else { return };
        let lines = 1 + self.chance.below(LINES_MOST);
        let records: Vec<u64> = (self.next..self.next + lines).map(|own| own * SOURCES + self.number).collect();
        self.next += lines;
        let request = request(&self.intake, self.number, &records);
        let Connection { stream, arrived } = &mut connection;
        let sent = stream.write_all(&request).map_err(anyhow::Error::from);
        let answer = sent.and_then(|()| read_answer(stream, arrived));
        let now_ns = u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let status = answer.as_ref().ok().map(|answer| answer.status);
        let is_acknowledged = status.is_some_and(|status| (200..300).contains(&status));
        self.sent.push(Sent { records, acknowledged_ns: is_acknowledged.then_some(now_ns) });
        if let Ok(answer) = answer {
            if (400..500).contains(&answer.status) && answer.status != 429 {
                let says = || format!("{} {}", answer.status, answer.body.trim());
                self.refused.get_or_insert_with(says);
            }
            // Whatever says more than it was asked for is not trusted with the next request.
            if !answer.closes && connection.arrived.is_empty() {
                self.connection = Some(connection);
            }
        }
        if !is_acknowledged {
            std::thread::sleep(AGAIN_AFTER);
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<Connection> {
    let stream = TcpStream::connect_timeout(&address, ANSWER_WITHIN)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.set_write_timeout(Some(ANSWER_WITHIN))?;
    stream.set_nodelay(true)?;
    Ok(Connection { stream, arrived: Vec::new() })
}

fn request(intake: &Intake, source: u64, records: &[u64]) -> Vec<u8> {
    let line = |number: &u64| {
        let time_ns = time_of_number(*number);
        format!("{MEASUREMENT},source=s{source} number={number}i {time_ns}\n")
    };
    let body: String = records.iter().map(line).collect();
    let headers: String = intake.headers.iter().map(|header| format!("{header}\r\n")).collect();
    let (path, address, length) = (&intake.path, intake.address, body.len());
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\n{headers}Content-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\r\n"
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// A connection of a source, with what has arrived and was not read yet.
struct Connection {
    stream: TcpStream,
    arrived: Vec<u8>,
}

/// The answer to a request.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    status: u16,
    body: String,
    /// Whether the other side closes the connection behind it.
    closes: bool,
}

/// Reads one answer. Bytes behind it are left where they are.
fn read_answer(from: &mut impl Read, arrived: &mut Vec<u8>) -> anyhow::Result<Answer> {
    let (mut reading, mut answer, mut body) = (Reading::default(), None, Vec::new());
    loop {
        let Some((part, consumed)) = reading.take(arrived).map_err(anyhow::Error::msg)? else {
            let mut more = [0; READ_BYTES];
            let read = from.read(&mut more)?;
            ensure!(read > 0, "the connection ended within an answer");
            arrived.extend_from_slice(&more[..read]);
            continue;
        };
        let is_end = part == Part::End;
        match part {
            Part::Head(head) => answer = Some((head.status, head.closes)),
            Part::Body(bytes) => {
                ensure!(body.len() + bytes.len() <= BODY_BYTES_MAX, "an answer of more than 1 MiB");
                body.extend_from_slice(bytes);
            }
            Part::Framing | Part::End => {}
        }
        arrived.drain(..consumed);
        if is_end {
            let (status, closes) = answer.context("an answer without a head")?;
            return Ok(Answer { status, body: shown(&String::from_utf8_lossy(&body), TOLD_MOST), closes });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> anyhow::Result<Answer> {
        read_answer(&mut text.as_bytes(), &mut Vec::new())
    }

    #[test]
    fn answers_of_each_form_are_read_and_what_follows_stays() {
        let answer = |status, body: &str, closes| Answer { status, body: body.to_owned(), closes };
        assert_eq!(read("HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n").unwrap(), answer(204, "", false));
        assert_eq!(read("HTTP/1.1 400 Bad\r\ncontent-length: 3\r\n\r\nwhy").unwrap(), answer(400, "why", false));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1;x\r\nc\r\n0\r\n\r\n";
        assert_eq!(read(chunked).unwrap(), answer(200, "abc", true));
        let mut arrived = Vec::new();
        read_answer(&mut &b"HTTP/1.1 204 No Content\r\n\r\nHTTP"[..], &mut arrived).unwrap();
        assert_eq!(arrived, b"HTTP");
    }

    #[test]
    fn answers_that_are_cut_or_endless_acknowledge_nothing() {
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab";
        for cut in 0..whole.len() {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
        assert!(read(&format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(1 << 17))).is_err());
        let endless =
            format!("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{}", "x".repeat(BODY_BYTES_MAX + 1));
        assert!(read(&endless).unwrap_err().to_string().contains("1 MiB"));
        assert!(read("SSH-2.0-x\r\n\r\n").is_err());
    }

    #[test]
    fn each_source_numbers_its_records_by_itself() {
        let intake = Intake {
            address: "127.0.0.1:1".parse().unwrap(),
            path: "/write".to_owned(),
            headers: vec!["A: b".to_owned()],
        };
        let text = String::from_utf8(request(&intake, 3, &[3, 7])).unwrap();
        let lines: String =
            [3, 7].map(|number| format!("durability,source=s3 number={number}i {}\n", time_of_number(number))).concat();
        assert!(text.starts_with("POST /write HTTP/1.1\r\nHost: 127.0.0.1:1\r\nA: b\r\n"), "{text}");
        assert!(text.ends_with(&format!("Content-Length: {}\r\n\r\n{lines}", lines.len())), "{text}");
    }
}
