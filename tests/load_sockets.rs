//! The load engine over real sockets: an echo server whose answers are as long as the requests.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use loadline::database::{Answer, DatabaseError, Progress, TargetSession, Wire};
use loadline::load::{Connections, Observed, Observer, Source, drive};
use loadline::operation::Operation;
use loadline::record::Cells;
use loadline::statement::Request;
use loadline::trial::{Length, LoadSettings};

/// Sends as many bytes as the request's first cell says and waits until they are back.
struct Echo {
    socket: UnixStream,
    missing: usize,
}

impl Echo {
    /// A connection to a server thread that closes it after `bytes`, if that is given.
    fn connect(close_after: Option<usize>) -> Box<dyn Wire> {
        let (socket, mut server) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 32 * 1024];
            let mut left = close_after.unwrap_or(usize::MAX);
            while left > 0 {
                let most = left.min(buffer.len());
                let Ok(count @ 1..) = server.read(&mut buffer[..most]) else { return };
                left -= count;
                if server.write_all(&buffer[..count]).is_err() {
                    return;
                }
            }
        });
        Box::new(Echo { socket, missing: 0 })
    }
}

impl Wire for Echo {
    fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        let loadline::record::Cell::Int(length) = request.cells.get(0) else { panic!("the length comes first") };
        self.missing = length as usize;
        out.resize(length as usize, 7);
    }

    fn advance(&mut self, _: &Request, input: &[u8], _: &mut Vec<u8>) -> Progress {
        assert!(input.iter().all(|byte| *byte == 7), "the echo is not what was sent");
        assert!(input.len() <= self.missing, "more came back than was sent");
        self.missing -= input.len();
        let outcome = (self.missing == 0).then_some(Ok(Answer { rows: 1, ..Answer::default() }));
        Progress { consumed: input.len(), outcome }
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        None
    }
}

/// An echo from a server that answers one request twice. Of what stands behind an answer nothing is consumed, as in every codec.
struct Twice(Echo);

impl Twice {
    /// A connection whose request of this number is answered twice; requests have one byte.
    fn connect(twice: usize) -> Box<dyn Wire> {
        let (socket, mut server) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let mut byte = [0];
            for request in 1.. {
                let Ok(1) = server.read(&mut byte) else { return };
                let answer: &[u8] = if request == twice { &[7, 7] } else { &[7] };
                if server.write_all(answer).is_err() {
                    return;
                }
            }
        });
        Box::new(Twice(Echo { socket, missing: 0 }))
    }
}

impl Wire for Twice {
    fn fd(&self) -> RawFd {
        self.0.fd()
    }

    fn start(&mut self, request: &Request, out: &mut Vec<u8>) {
        self.0.start(request, out);
    }

    fn advance(&mut self, request: &Request, input: &[u8], out: &mut Vec<u8>) -> Progress {
        self.0.advance(request, &input[..self.0.missing.min(input.len())], out)
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        None
    }
}

/// A connection whose answers have no end.
struct Endless(UnixStream);

impl Endless {
    /// The server gives up after 200 MiB, so that a client that takes everything waits in vain.
    fn connect() -> Box<dyn Wire> {
        let (socket, mut server) = UnixStream::pair().unwrap();
        std::thread::spawn(move || {
            let sent = server.read(&mut [0]).and_then(|_| (0..200).try_for_each(|_| server.write_all(&[7; 1 << 20])));
            // It stays connected.
            sent.map(|()| server.read(&mut [0; 2]))
        });
        Box::new(Endless(socket))
    }
}

impl Wire for Endless {
    fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    fn start(&mut self, _: &Request, out: &mut Vec<u8>) {
        out.push(7);
    }

    fn advance(&mut self, _: &Request, _: &[u8], _: &mut Vec<u8>) -> Progress {
        Progress { consumed: 0, outcome: None }
    }

    fn keep_rows(&mut self, _: Option<Cells>) -> Option<Cells> {
        None
    }
}

struct Lengths(Vec<i64>, usize);

impl Source for Lengths {
    fn next(&mut self, request: &mut Request) -> Operation {
        self.1 += 1;
        request.cells.int(self.0[self.1 % self.0.len()]);
        Operation::Read { record: 0 }
    }
}

struct Quiet;

impl Observer for Quiet {
    fn measure(&mut self) {}
    fn drained(&mut self) {}
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

fn run(clients: u32, length: Length, lengths: &[i64], connect: &(dyn Fn() -> Box<dyn Wire> + Sync)) -> Observed {
    run_to_the_end(60.0, clients, length, lengths, connect)
}

fn run_to_the_end(
    drain_s: f64,
    clients: u32,
    length: Length,
    lengths: &[i64],
    connect: &(dyn Fn() -> Box<dyn Wire> + Sync),
) -> Observed {
    let settings = LoadSettings { clients, length, drain_s, ..LoadSettings::default() };
    let wires = (0..clients).map(|_| connect()).collect();
    let sources = (0..clients).map(|i| Box::new(Lengths(lengths.to_vec(), i as usize)) as Box<dyn Source>).collect();
    let session =
        |_| -> Result<Box<dyn TargetSession>, _> { Err(DatabaseError::Unavailable("has no sessions".to_owned())) };
    drive(&settings, 1, Connections::Wires(wires), sources, (&|_| Ok(connect()), &session), &mut Quiet).unwrap()
}

#[test]
fn requests_of_all_lengths_arrive_whole_through_every_transport() {
    let for_many = if io_uring::IoUring::new(8).is_ok() { "io_uring" } else { "epoll" };
    for (clients, driver) in [(1, "epoll"), (4, "epoll"), (20, for_many)] {
        let length = Length::OperationsPerClient(30);
        let observed = run(clients, length, &[1, 100, 20_000, 3_000_000], &|| Echo::connect(None));
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert_eq!((reads.completed, reads.failed), (u64::from(clients) * 30, 0), "{:?}", observed.tally.errors);
        assert_eq!(observed.loops[0].driver, driver);
    }
}

#[test]
fn a_lost_connection_fails_its_operation_and_is_made_again() {
    for clients in [1, 2, 20] {
        let made = AtomicU32::new(0);
        // The first connections end within their third request; later ones last.
        let connect = || Echo::connect((made.fetch_add(1, Ordering::Relaxed) < clients).then_some(250));
        let observed = run(clients, Length::OperationsPerClient(10), &[100], &connect);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        let clients = u64::from(clients);
        assert_eq!((reads.scheduled, reads.failed), (clients * 10, clients), "{:?}", observed.tally.errors);
        assert_eq!(observed.tally.errors.values().sum::<u64>(), clients);
        assert!(observed.tally.errors.keys().all(|message| message.contains("connection lost")));
    }
}

#[test]
fn an_answer_too_many_is_never_taken_for_the_next_one() {
    for clients in [1, 2, 20] {
        let made = AtomicU32::new(0);
        let connect = || Twice::connect(if made.fetch_add(1, Ordering::Relaxed) < clients { 3 } else { usize::MAX });
        let observed = run(clients, Length::OperationsPerClient(10), &[1], &connect);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        let clients = u64::from(clients);
        assert_eq!((reads.scheduled, reads.failed), (clients * 10, clients), "{:?}", observed.tally.errors);
        assert!(observed.tally.errors.keys().all(|message| message.contains("more than the answer")));
    }
}

#[test]
fn a_server_that_is_gone_for_good_ends_the_trial() {
    for clients in [1, 2, 20] {
        let gone = || Echo::connect(Some(50));
        let observed = run_to_the_end(2.0, clients, Length::Operations(1_000_000), &[100], &gone);
        assert!(observed.is_cut_short);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert_eq!((reads.completed, reads.scheduled), (0, reads.failed + reads.abandoned));
    }
}

#[test]
fn an_answer_without_an_end_loses_its_connection() {
    for clients in [1, 4, 16] {
        let observed = run_to_the_end(20.0, clients, Length::OperationsPerClient(1), &[1], &Endless::connect);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert_eq!((reads.failed, reads.abandoned), (u64::from(clients), 0), "{:?}", observed.tally.errors);
        assert!(observed.tally.errors.keys().all(|message| message.contains("more than 64 MiB")));
    }
}
