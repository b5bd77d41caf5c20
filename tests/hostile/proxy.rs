//! A proxy that damages one message of what a server answers. Main type: [`Proxy`].

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use loadline::random::Stream;

/// How messages of a protocol are told apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Protocol {
    Postgres,
    Mysql,
    Redis,
    /// Of answers over HTTP: each head, with its body if it tells the length, and each chunk with its size.
    Http,
    Cassandra,
    Mongodb,
}

impl Protocol {
    /// The bytes of the whole message at the front; none while it is incomplete.
    fn length(self, input: &[u8]) -> Option<usize> {
        let length = match self {
            Protocol::Postgres => 1 + u32::from_be_bytes(input.get(1..5)?.try_into().ok()?) as usize,
            Protocol::Mysql => 4 + u32::from_le_bytes([*input.first()?, *input.get(1)?, *input.get(2)?, 0]) as usize,
            // A line, and behind that of a byte string its bytes.
            Protocol::Redis => {
                let line = input.windows(2).position(|pair| pair == b"\r\n")? + 2;
                let bytes = input.strip_prefix(b"$").and_then(|text| std::str::from_utf8(&text[..line - 3]).ok());
                line + bytes.and_then(|text| text.parse::<usize>().ok()).map_or(0, |bytes| bytes + 2)
            }
            Protocol::Http if input.starts_with(b"HTTP/") => {
                let head = input.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
                let lines = String::from_utf8_lossy(&input[..head]).to_lowercase();
                let told = lines.lines().find_map(|line| line.strip_prefix("content-length:"));
                head + told.and_then(|length| length.trim().parse::<usize>().ok()).unwrap_or(0)
            }
            Protocol::Http => {
                let line = input.windows(2).position(|pair| pair == b"\r\n")?;
                let size = std::str::from_utf8(&input[..line]).ok();
                line + 4 + size.and_then(|size| usize::from_str_radix(size, 16).ok()).unwrap_or(0)
            }
            Protocol::Cassandra => 9 + u32::from_be_bytes(input.get(5..9)?.try_into().ok()?) as usize,
            Protocol::Mongodb => u32::from_le_bytes(input.get(0..4)?.try_into().ok()?) as usize,
        };
        (input.len() >= length).then_some(length)
    }

    /// Where the bytes of a message's length stand, and where its body begins.
    fn places(self) -> (std::ops::Range<usize>, usize) {
        match self {
            Protocol::Postgres => (1..5, 5),
            Protocol::Mysql => (0..3, 4),
            Protocol::Redis => (1..2, 1),
            Protocol::Http => (0..1, 3),
            Protocol::Cassandra => (5..9, 9),
            Protocol::Mongodb => (0..4, 16),
        }
    }
}

/// What happens to a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damage {
    /// Neither it nor anything behind it arrives, on any connection.
    Stall,
    /// The connection ends before it.
    Cut,
    /// The connection ends in the middle of it.
    CutWithin,
    /// One bit of it is another.
    Flip,
    /// Its length is said to be as large as can be said.
    Giant,
    /// Its length is said to be a little more or less.
    WrongLength,
    /// It is left out.
    Lost,
    /// It arrives twice.
    Twice,
    /// It arrives behind the next one.
    Late,
    /// It is of another kind.
    OtherKind,
    /// Its body is zeros.
    Zeros,
    /// Bytes that nobody knows arrive before it.
    Noise,
}

pub const DAMAGES: [Damage; 12] = [
    Damage::Stall,
    Damage::Cut,
    Damage::CutWithin,
    Damage::Flip,
    Damage::Giant,
    Damage::WrongLength,
    Damage::Lost,
    Damage::Twice,
    Damage::Late,
    Damage::OtherKind,
    Damage::Zeros,
    Damage::Noise,
];

/// Which message is damaged, counted over all connections, and how.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    pub at: u64,
    pub damage: Damage,
    pub seed: u64,
}

struct Shared {
    protocol: Protocol,
    server: (String, u16),
    order: Mutex<Option<Order>>,
    messages: AtomicU64,
    /// Whether nothing arrives any more.
    is_still: std::sync::atomic::AtomicBool,
}

/// A port that leads to a server.
pub struct Proxy {
    pub port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    pub fn start(protocol: Protocol, server: (String, u16)) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            protocol,
            server,
            order: Mutex::new(None),
            messages: AtomicU64::new(0),
            is_still: false.into(),
        });
        let own = Arc::clone(&shared);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = TcpStream::connect((own.server.0.as_str(), own.server.1)) else { continue };
                let (back, forth) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                let shared = Arc::clone(&own);
                std::thread::spawn(move || ask(client, server));
                std::thread::spawn(move || shared.answer(forth, back));
            }
        });
        Proxy { port, shared }
    }

    /// Begins to count at zero, with another order.
    pub fn begin(&self, order: Option<Order>) {
        *self.shared.order.lock().unwrap() = order;
        self.shared.is_still.store(false, Ordering::SeqCst);
        self.shared.messages.store(0, Ordering::SeqCst);
    }

    /// Messages that a server has sent since the beginning.
    pub fn messages(&self) -> u64 {
        self.shared.messages.load(Ordering::SeqCst)
    }
}

/// What the client says arrives as it is.
fn ask(mut from: TcpStream, mut to: TcpStream) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

impl Shared {
    fn answer(&self, mut from: TcpStream, mut to: TcpStream) {
        let (mut input, mut buffer, mut held) = (Vec::new(), vec![0; 64 << 10], Vec::new());
        'connection: while let Ok(length @ 1..) = from.read(&mut buffer) {
            input.extend_from_slice(&buffer[..length]);
            let mut output = Vec::new();
            while let Some(length) = self.protocol.length(&input) {
                let message: Vec<u8> = input.drain(..length).collect();
                let number = self.messages.fetch_add(1, Ordering::SeqCst);
                let order = *self.order.lock().unwrap();
                match order.filter(|order| order.at == number) {
                    None => {
                        output.extend_from_slice(&message);
                        output.append(&mut held);
                    }
                    Some(order) => {
                        if self.damage(order, message, &mut output, &mut held) {
                            let _ = to.write_all(&output);
                            break 'connection;
                        }
                    }
                }
            }
            if !self.is_still.load(Ordering::SeqCst) && to.write_all(&output).is_err() {
                break;
            }
        }
        let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }

    /// Damages a message; whether the connection ends.
    fn damage(&self, order: Order, mut message: Vec<u8>, output: &mut Vec<u8>, held: &mut Vec<u8>) -> bool {
        let mut random = Stream::seeded(order.seed);
        let (length_at, body_at) = self.protocol.places();
        match order.damage {
            Damage::Stall => {
                self.is_still.store(true, Ordering::SeqCst);
                return false;
            }
            Damage::Cut => return true,
            Damage::CutWithin => {
                message.truncate(random.below(message.len() as u64) as usize);
                output.append(&mut message);
                return true;
            }
            Damage::Flip => {
                let bit = random.below(8 * message.len() as u64) as usize;
                message[bit / 8] ^= 1 << (bit % 8);
            }
            Damage::Giant if matches!(self.protocol, Protocol::Redis | Protocol::Http) => {
                message.splice(length_at, *b"99999999999");
            }
            Damage::Giant => {
                message[length_at.clone()].fill(0xff);
                // The largest number that has a sign.
                message[length_at.start] &= if self.protocol == Protocol::Postgres { 0x7f } else { 0xff };
            }
            Damage::WrongLength => {
                let ends = matches!(self.protocol, Protocol::Postgres | Protocol::Cassandra);
                let place = if ends { length_at.end - 1 } else { length_at.start };
                let by = 1 + random.below(12) as u8;
                let is_more = random.below(2) == 0;
                message[place] =
                    if is_more { message[place].wrapping_add(by) } else { message[place].wrapping_sub(by) };
            }
            Damage::Lost => message.clear(),
            Damage::Twice => message.extend_from_within(..),
            Damage::Late => {
                held.append(&mut message);
                return false;
            }
            Damage::OtherKind => {
                let place = if self.protocol == Protocol::Postgres { 0 } else { body_at.min(message.len() - 1) };
                message[place] = random.below(256) as u8;
            }
            Damage::Zeros => message[body_at..].fill(0),
            Damage::Noise => {
                let count = 1 + random.below(40);
                output.extend((0..count).map(|_| random.below(256) as u8));
            }
        }
        output.append(&mut message);
        false
    }
}
