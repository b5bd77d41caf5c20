//! A proxy in front of a database that can become a black hole: connections stay open, and nothing that is sent arrives.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use loadline::database::Endpoint;

/// What the proxy does.
#[derive(Default)]
pub struct Hole {
    /// Connections of numbers up to this are holes.
    pub through: AtomicU64,
    /// The next connection that commits becomes a hole, with its commit in it.
    pub at_commit: AtomicBool,
    /// What was sent into holes arrives now.
    pub is_released: AtomicBool,
    /// Nobody ends the session of a connection that was given up.
    pub spares_sessions: AtomicBool,
    /// Connections that were opened.
    pub opened: AtomicU64,
    /// Holes that something was sent into, and answers that did not come out.
    pub swallowed: AtomicU64,
    /// Commits that arrived late.
    pub released: AtomicU64,
    /// Messages that were forwarded to the server: round trips, about.
    pub sent: AtomicU64,
}

impl Hole {
    /// All connections that are open become holes.
    pub fn swallow_all(&self) {
        self.through.store(self.opened.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    /// Also those that are opened from now on.
    pub fn swallow_for_ever(&self) {
        self.through.store(u64::MAX, Ordering::SeqCst);
    }

    /// Those that are opened from now on are forwarded.
    pub fn let_through(&self) {
        self.swallow_all();
    }
}

/// Starts a proxy in front of an endpoint's TCP port; the endpoint that leads through it.
pub fn start(endpoint: &Endpoint) -> (Endpoint, Arc<Hole>) {
    let (host, port) = endpoint.tcp.clone().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let hole = Arc::new(Hole::default());
    let for_thread = Arc::clone(&hole);
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect((host.as_str(), port)) else { continue };
            for stream in [&client, &server] {
                stream.set_nodelay(true).unwrap();
            }
            let number = for_thread.opened.fetch_add(1, Ordering::SeqCst) + 1;
            let own = Arc::new(AtomicBool::new(false));
            for (from, to, is_request) in
                [(client.try_clone().unwrap(), server.try_clone().unwrap(), true), (server, client, false)]
            {
                let way = Way { number, is_request, hole: Arc::clone(&for_thread), own: Arc::clone(&own) };
                std::thread::spawn(move || {
                    way.pass(from.try_clone().unwrap(), to.try_clone().unwrap());
                    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                });
            }
        }
    });
    (Endpoint { unix: None, tcp: Some((address.ip().to_string(), address.port())), ..endpoint.clone() }, hole)
}

/// One direction of a connection.
struct Way {
    number: u64,
    is_request: bool,
    hole: Arc<Hole>,
    /// Whether this connection became a hole by its commit.
    own: Arc<AtomicBool>,
}

impl Way {
    fn is_hole(&self) -> bool {
        self.own.load(Ordering::SeqCst) || self.number <= self.hole.through.load(Ordering::SeqCst)
    }

    fn pass(&self, mut from: TcpStream, mut to: TcpStream) {
        from.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (mut buffer, mut held, mut is_closed) = (vec![0; 64 << 10], Vec::new(), false);
        loop {
            if !held.is_empty() && self.hole.is_released.load(Ordering::SeqCst) {
                self.hole.released.fetch_add(1, Ordering::SeqCst);
                let _ = to.write_all(&std::mem::take(&mut held));
                // The server has time to read it before the connection is closed.
                std::thread::sleep(Duration::from_millis(100));
                return;
            }
            if is_closed {
                // Nobody tells the server that its client is gone.
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
            match from.read(&mut buffer) {
                Ok(0) if self.is_hole() => is_closed = true,
                Ok(0) => return,
                Ok(length) => {
                    self.note_commit(&buffer[..length]);
                    if self.is_hole() {
                        if held.is_empty() {
                            self.hole.swallowed.fetch_add(1, Ordering::SeqCst);
                        }
                        held.extend_from_slice(if self.is_request { &buffer[..length] } else { &[] });
                        continue;
                    }
                    if self.is_request {
                        self.hole.sent.fetch_add(1, Ordering::SeqCst);
                        self.spare(&mut buffer[..length]);
                    }
                    if to.write_all(&buffer[..length]).is_err() {
                        return;
                    }
                }
                Err(error)
                    if [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut].contains(&error.kind()) => {}
                Err(_) if self.is_hole() => is_closed = true,
                Err(_) => return,
            }
        }
    }

    fn note_commit(&self, bytes: &[u8]) {
        // PostgreSQL commits at a Sync, which is sent by itself once all counts are known.
        let is_commit = bytes == b"S\0\0\0\x04" || bytes.windows(6).any(|window| window == b"COMMIT");
        if self.is_request && is_commit && !self.is_hole() && self.hole.at_commit.swap(false, Ordering::SeqCst) {
            self.own.store(true, Ordering::SeqCst);
        }
    }

    /// Makes what ends a session into something of the same length that ends nothing.
    fn spare(&self, bytes: &mut [u8]) {
        if !self.hole.spares_sessions.load(Ordering::SeqCst) {
            return;
        }
        let endings: [(&[u8], &[u8]); 2] =
            [(b"pg_terminate_backend(pid)", b"length(text(pid)) /* */ "), (b"KILL CONNECTION", b"DO 0 +         ")];
        for (ending, harmless) in endings {
            let found = bytes.windows(ending.len()).position(|window| window == ending);
            if let Some(at) = found {
                bytes[at..at + ending.len()].fill(b' ');
                bytes[at..at + harmless.len()].copy_from_slice(harmless);
            }
        }
    }
}
