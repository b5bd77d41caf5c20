//! Those who send: clients with batches, one after the other or at a rate, and sources with single rows. Each request's time runs from
//! when it was due.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// Columns that say who measured.
pub const TAGS: usize = 13;
/// Columns that say what was measured.
pub const FIELDS: usize = 48;
/// Rows of a request of those who send batches.
pub const BATCH: usize = 1_000;
/// How many send batches.
pub const CLIENTS: usize = 8;
/// How many send single rows, and how often.
pub const SOURCES: usize = 350;
pub const PER_SOURCE_S: f64 = 20.0;

/// The value of a field of a row: a number with one decimal.
pub fn value(row: usize, field: usize) -> f64 {
    ((row * 7 + field * 13) % 1_000) as f64 / 10.0
}

fn line(source: usize, row: usize, at_ns: Option<i64>, out: &mut String) {
    out.push_str("qos");
    (0..TAGS).for_each(|tag| write!(out, ",tag{tag:02}={}", source * 31 + tag).unwrap());
    for field in 0..FIELDS {
        let separator = if field == 0 { ' ' } else { ',' };
        write!(out, "{separator}f{field}={}", value(row, field)).unwrap();
    }
    // Sources do not have the same time stamps, nor do rows.
    at_ns.into_iter().for_each(|at_ns| write!(out, " {}", at_ns + (row * 1_000 + source) as i64).unwrap());
    out.push('\n');
}

/// What became of a load.
#[derive(Debug, Default)]
pub struct Sent {
    /// Rows acknowledged.
    pub rows: usize,
    /// Requests that were told to come again later.
    pub refused: usize,
    /// From when a request was due to its acknowledgement, in seconds, in order.
    pub times: Vec<f64>,
    /// From the first request that was due to the last acknowledgement.
    pub elapsed_s: f64,
}

impl Sent {
    /// A quantile of the times, in milliseconds.
    pub fn ms_at(&self, quantile: f64) -> f64 {
        self.times[((self.times.len() - 1) as f64 * quantile) as usize] * 1e3
    }
}

/// What each of those who send does.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many send.
    pub senders: usize,
    /// Rows of a request.
    pub batch: usize,
    /// Requests a second of each; none: the next one follows the answer.
    pub per_s: Option<f64>,
    /// How long.
    pub lasts: Duration,
    /// The time stamps of the rows, more or less; none: when they arrive.
    pub at_ns: Option<i64>,
}

impl Load {
    /// Sends it all.
    pub fn send(self, http: SocketAddr) -> Sent {
        let begun = Instant::now() + Duration::from_millis(300);
        let mut all = Sent::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.senders)
                .map(|sender| {
                    let builder = std::thread::Builder::new().stack_size(256 << 10);
                    builder.spawn_scoped(scope, move || self.send_one(sender, http, begun)).unwrap()
                })
                .collect();
            for thread in threads {
                let one = thread.join().unwrap();
                all.rows += one.rows;
                all.refused += one.refused;
                all.times.extend(one.times);
                all.elapsed_s = all.elapsed_s.max(one.elapsed_s);
            }
        });
        all.times.sort_by(f64::total_cmp);
        all
    }

    fn send_one(self, sender: usize, http: SocketAddr, begun: Instant) -> Sent {
        let mut stream = TcpStream::connect(http).unwrap();
        stream.set_nodelay(true).unwrap();
        let mut body = String::new();
        (0..self.batch).for_each(|row| line(sender, row, self.at_ns, &mut body));
        let mut request = format!(
            "POST /api/v2/write HTTP/1.1\r\nHost: x\r\nX-Loadline-Source: s{sender}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        request.push_str(&body);
        drop(body);
        let period = self.per_s.map(|per_s| Duration::from_secs_f64(1.0 / per_s));
        let mut due = begun + period.unwrap_or_default().mul_f64(sender as f64 / self.senders as f64);
        let mut sent = Sent::default();
        let mut answer = [0; 4096];
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        while due < begun + self.lasts {
            stream.write_all(request.as_bytes()).unwrap();
            let length = stream.read(&mut answer).unwrap();
            match &answer[..length.min(12)] {
                b"HTTP/1.1 204" => {
                    sent.rows += self.batch;
                    sent.times.push(due.elapsed().as_secs_f64());
                    // Before the sleep until the next is due, which would count as time without rows at the end.
                    sent.elapsed_s = begun.elapsed().as_secs_f64();
                }
                b"HTTP/1.1 503" | b"HTTP/1.1 429" => {
                    sent.refused += 1;
                    std::thread::sleep(Duration::from_millis(100));
                }
                _ => panic!("{}", String::from_utf8_lossy(&answer[..length])),
            }
            due = period.map_or_else(Instant::now, |period| due + period);
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
        }
        sent
    }
}
