//! What refused rows cost: batches of which some rows violate a unique index, beside batches without any. Main function: [`refused`].

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use loadline::database;

use crate::Target;
use crate::process::Recorder;
use crate::shared::ratio::{from_environment, median, show};

/// How many send, and rows of a request.
const CLIENTS: usize = 4;
const ROWS: usize = 1_000;
/// One row in so many is bad; 0 is none.
const SHARES: [usize; 3] = [0, 100, 2];

/// Rows a second that were dealt with, and those of them that were sent: in turns, the clean ones first.
pub fn refused(target: &Target, recorder: &Recorder) {
    let (rounds, batches) = (from_environment("ROUNDS", 5.0) as usize, from_environment("BATCHES", 100.0) as usize);
    let next = AtomicUsize::new(1);
    send(recorder.http, &next, 0, 1);
    recorder.drained();
    let mut session =
        database::find(target.name).unwrap().open_sql(&target.settings, target.endpoint()).unwrap().connect().unwrap();
    session.run("CREATE UNIQUE INDEX refused_once ON refused_values (f0)").unwrap();
    let mut rates = SHARES.map(|_| Vec::new());
    for _ in 0..rounds {
        for (share, rates) in SHARES.into_iter().zip(&mut rates) {
            let begun = Instant::now();
            let sent = send(recorder.http, &next, share, batches / CLIENTS);
            recorder.drained();
            rates.push(sent as f64 / begun.elapsed().as_secs_f64());
        }
    }
    for (share, with) in SHARES.into_iter().zip(&rates).skip(1) {
        let ratios: Vec<f64> = with.iter().zip(&rates[0]).map(|(with, clean)| with / clean).collect();
        println!(
            "{}: one row in {share} bad: {:.0} rows/s; clean {:.0} rows/s; ratio {} (median of {rounds} rounds [95 % interval, or \
             smallest and largest])",
            target.name,
            median(with),
            median(&rates[0]),
            show(&ratios)
        );
    }
    let counts = recorder.counts();
    assert_eq!(counts.acknowledged, counts.committed + counts.spooled + counts.quarantined, "rows are missing");
}

/// Sends batches, so many from each client, each after the answer to the one before; how many rows.
fn send(http: SocketAddr, next: &AtomicUsize, share: usize, batches: usize) -> usize {
    let client = |number: usize| {
        let mut stream = TcpStream::connect(http).unwrap();
        stream.set_nodelay(true).unwrap();
        let (mut body, mut answer, mut sent) = (String::new(), [0; 4096], 0);
        while sent < batches * ROWS {
            body.clear();
            let first = next.fetch_add(ROWS, Ordering::Relaxed);
            for row in first..first + ROWS {
                // What is bad is as the very first row, which is stored.
                let unique = if share > 0 && row % share == 0 { 1 } else { row };
                writeln!(body, "refused,probe=p{number} f0={unique}i,f1={row}i,f2=2.5,f3=3.5 {row}").unwrap();
            }
            let head = format!(
                "POST /write HTTP/1.1\r\nHost: x\r\nX-Loadline-Source: s{number}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).unwrap();
            let length = stream.read(&mut answer).unwrap();
            assert!(answer.starts_with(b"HTTP/1.1 204"), "{}", String::from_utf8_lossy(&answer[..length]));
            sent += ROWS;
        }
        sent
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..CLIENTS).map(|number| scope.spawn(move || client(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}
