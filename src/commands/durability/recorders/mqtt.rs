//! MQTT 3.1.1, as much of it as sources and a bridge need: messages with quality of service 1 in both directions, and a session that the broker keeps.
//!
//! ```text
//! type and flags (one byte)   length of the rest (7 bits per byte, the lowest first; the high bit says that another byte follows)   the rest
//!     CONNECT 0x10   CONNACK 0x20   PUBLISH 0x3_   PUBACK 0x40   SUBSCRIBE 0x82   SUBACK 0x90
//! ```
//!
//! Main types: [`MqttConnection`], a source's; [`Session`], a bridge's. Invariant: what a broker sends is bounded, and nothing is taken for an
//! acknowledgement but the PUBACK of the message that is under way.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::connection::{ANSWER_WITHIN, Answered, Connection, Said, dial};

/// The maximum bytes of a packet from a broker.
const PACKET_BYTES_MAX: usize = 1 << 20;
/// How many bytes are read at a time.
const READ_BYTES: usize = 16 << 10;

const CONNACK: u8 = 0x20;
const PUBACK: u8 = 0x40;
const SUBACK: u8 = 0x90;
/// PUBLISH with quality of service 1.
const PUBLISH: u8 = 0x32;
/// What a broker says instead of a quality of service when it refuses a subscription.
const REFUSED: u8 = 0x80;

/// A message that was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Its number on this session, which an acknowledgement names; `None` if none is wanted.
    pub id: Option<u16>,
    /// Its content.
    pub payload: Vec<u8>,
}

/// A connection of a source.
pub struct MqttConnection {
    client: Client,
    topic: String,
    id: u16,
}

impl MqttConnection {
    /// Opens a connection for the source with this number.
    ///
    /// # Errors
    /// Fails if the broker cannot be reached or refuses.
    pub fn open(address: SocketAddr, topic: &str, source: u64) -> anyhow::Result<Self> {
        let client = Client::open(address, &format!("loadline-s{source}"), false)?;
        Ok(MqttConnection { client, topic: format!("{topic}/s{source}"), id: 0 })
    }
}

impl Connection for MqttConnection {
    fn send(&mut self, lines: &str, _: u64) -> anyhow::Result<Answered> {
        // 0 is no number of a message.
        self.id = self.id.checked_add(1).unwrap_or(1);
        let rest = [&text(&self.topic)?, &self.id.to_be_bytes()[..], lines.as_bytes()].concat();
        self.client.write(PUBLISH, &rest)?;
        let acknowledged = self.client.await_packet(PUBACK)?;
        ensure!(acknowledged == self.id.to_be_bytes(), "the broker acknowledges another message");
        Ok((Said::Acknowledged, true))
    }
}

/// A connection with a session that the broker keeps for it, subscribed to some messages.
pub struct Session {
    client: Client,
}

impl Session {
    /// Opens a connection and subscribes to all messages below a topic.
    ///
    /// # Errors
    /// Fails if the broker cannot be reached or refuses.
    pub fn open(address: SocketAddr, name: &str, topic: &str) -> anyhow::Result<Self> {
        let mut client = Client::open(address, name, true)?;
        let id = 1_u16.to_be_bytes();
        client.write(0x82, &[&id[..], &text(&format!("{topic}/#"))?, &[1]].concat())?;
        let answer = client.await_packet(SUBACK)?;
        ensure!(answer.len() == 3 && answer[..2] == id && answer[2] != REFUSED, "the broker refuses the subscription");
        Ok(Session { client })
    }

    /// Returns the messages that have arrived; waits for the first of them, for at most `within`.
    ///
    /// # Errors
    /// Fails if the connection is lost.
    pub fn receive(&mut self, within: Duration) -> anyhow::Result<Vec<Message>> {
        if self.client.messages.is_empty() {
            self.client.receive(within)?;
        }
        Ok(self.client.messages.drain(..).collect())
    }

    /// Acknowledges messages.
    ///
    /// # Errors
    /// Fails if the connection is lost.
    pub fn acknowledge(&mut self, messages: &[Message]) -> anyhow::Result<()> {
        messages.iter().filter_map(|message| message.id).try_for_each(|id| self.client.write(PUBACK, &id.to_be_bytes()))
    }
}

/// What both kinds of connections have in common.
struct Client {
    stream: TcpStream,
    arrived: Vec<u8>,
    /// Messages that have arrived and were not asked for yet.
    messages: VecDeque<Message>,
}

impl Client {
    fn open(address: SocketAddr, name: &str, is_kept: bool) -> anyhow::Result<Self> {
        let mut client = Client { stream: dial(address)?, arrived: Vec::new(), messages: VecDeque::new() };
        client.stream.write_all(&connect(name, is_kept))?;
        let answer = client.await_packet(CONNACK)?;
        ensure!(answer.len() == 2 && answer[1] == 0, "the broker refuses the connection");
        Ok(client)
    }

    fn write(&mut self, kind: u8, rest: &[u8]) -> anyhow::Result<()> {
        Ok(self.stream.write_all(&packet(kind, rest)?)?)
    }

    /// Waits for a packet of this kind, and returns what it says. Messages that come before it are kept.
    fn await_packet(&mut self, kind: u8) -> anyhow::Result<Vec<u8>> {
        let until = Instant::now() + ANSWER_WITHIN;
        loop {
            if let Some((found, rest)) = self.take()? {
                if found == kind {
                    return Ok(rest);
                }
                self.keep(found, &rest)?;
                continue;
            }
            ensure!(self.read(until)?, "the broker does not answer within {} s", ANSWER_WITHIN.as_secs());
        }
    }

    /// Keeps the messages that have arrived; waits for the first bytes of them, for at most `within`.
    fn receive(&mut self, within: Duration) -> anyhow::Result<()> {
        self.read(Instant::now() + within)?;
        while let Some((kind, rest)) = self.take()? {
            self.keep(kind, &rest)?;
        }
        Ok(())
    }

    /// Takes the first packet of what has arrived, if it is whole.
    fn take(&mut self) -> anyhow::Result<Option<(u8, Vec<u8>)>> {
        let Some((kind, rest)) = read_packet(&self.arrived)? else { return Ok(None) };
        let end = rest.end;
        let rest = self.arrived[rest].to_vec();
        self.arrived.drain(..end);
        Ok(Some((kind, rest)))
    }

    fn keep(&mut self, kind: u8, rest: &[u8]) -> anyhow::Result<()> {
        ensure!(kind & 0xf0 == PUBLISH & 0xf0, "the broker sends a packet of type {kind:#04x}, which nobody asked for");
        self.messages.push_back(message(kind, rest)?);
        Ok(())
    }

    /// Reads what comes until a moment; returns whether something came.
    fn read(&mut self, until: Instant) -> anyhow::Result<bool> {
        // A timeout of zero would wait for ever.
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        self.stream.set_read_timeout(Some(left))?;
        let mut more = [0; READ_BYTES];
        match self.stream.read(&mut more) {
            Ok(0) => bail!("the broker ended the connection"),
            Ok(read) => {
                self.arrived.extend_from_slice(&more[..read]);
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns what asks a broker whether it takes in.
pub fn hello() -> Vec<u8> {
    connect("loadline-hello", false)
}

/// Returns whether the beginning of a broker's answer accepts a connection.
pub fn is_accepted(answer: &[u8]) -> bool {
    matches!(answer, [CONNACK, 2, _, 0, ..])
}

/// Returns the first packet of a connection, without a time by which the client must say something.
fn connect(name: &str, is_kept: bool) -> Vec<u8> {
    let flags = if is_kept { 0 } else { 2 };
    let name_bytes = name.as_bytes();
    // Names are those of this module, and short.
    let head = [0, 4, b'M', b'Q', b'T', b'T', 4, flags, 0, 0, 0, name_bytes.len() as u8];
    let rest = [&head[..], name_bytes].concat();
    [&[0x10, rest.len() as u8], &rest[..]].concat()
}

/// Returns a text with its length.
fn text(text: &str) -> anyhow::Result<Vec<u8>> {
    let length = u16::try_from(text.len()).context("a topic of more than 64 KiB")?;
    Ok([&length.to_be_bytes(), text.as_bytes()].concat())
}

fn packet(kind: u8, rest: &[u8]) -> anyhow::Result<Vec<u8>> {
    ensure!(rest.len() <= PACKET_BYTES_MAX, "a packet of more than 1 MiB");
    let (mut packet, mut left) = (vec![kind], rest.len());
    loop {
        let more = if left >= 128 { 128 } else { 0 };
        packet.push((left % 128) as u8 | more);
        left /= 128;
        if more == 0 {
            packet.extend_from_slice(rest);
            return Ok(packet);
        }
    }
}

/// Returns the kind of the first packet and the place of its rest; `None` while it is incomplete.
fn read_packet(input: &[u8]) -> anyhow::Result<Option<(u8, Range<usize>)>> {
    let Some((kind, after)) = input.split_first() else { return Ok(None) };
    let mut length = 0;
    for (place, byte) in after.iter().enumerate() {
        ensure!(place < 4, "a packet with a length of more than four bytes");
        length |= usize::from(byte & 127) << (7 * place);
        if byte & 128 == 0 {
            ensure!(length <= PACKET_BYTES_MAX, "a packet of {length} bytes, and {PACKET_BYTES_MAX} are read at most");
            let from = place + 2;
            return Ok((input.len() >= from + length).then_some((*kind, from..from + length)));
        }
    }
    Ok(None)
}

/// Reads a PUBLISH.
fn message(kind: u8, rest: &[u8]) -> anyhow::Result<Message> {
    let cut = || anyhow::anyhow!("a message that is shorter than it says");
    let (length, rest) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
    let (_topic, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length))).ok_or_else(cut)?;
    let (id, payload) = match kind & 0x06 {
        0 => (None, rest),
        _ => {
            let (id, payload) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
            (Some(u16::from_be_bytes(*id)), payload)
        }
    };
    Ok(Message { id, payload: payload.to_vec() })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn packets_are_read_as_they_were_written_and_not_before_they_are_whole() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 300_000] {
            let rest = vec![7; length];
            let written = packet(PUBLISH, &rest).unwrap();
            let (kind, place) = read_packet(&written).unwrap().unwrap();
            assert_eq!((kind, &written[place]), (PUBLISH, &rest[..]));
            assert_eq!(read_packet(&written[..written.len() - 1]).unwrap(), None, "{length}");
        }
        assert!(read_packet(&[PUBLISH, 0xff, 0xff, 0xff, 0xff, 1]).is_err(), "no length has five bytes");
        assert!(read_packet(&[PUBLISH, 0xff, 0xff, 0xff, 0x7f]).is_err(), "no broker sends so much here");
    }

    #[test]
    fn a_message_has_a_number_if_an_acknowledgement_is_wanted() {
        let rest = [&[0, 3][..], b"a/b", &[1, 2], b"hi"].concat();
        assert_eq!(message(0x32, &rest).unwrap(), Message { id: Some(258), payload: b"hi".to_vec() });
        assert_eq!(message(0x30, &rest).unwrap(), Message { id: None, payload: b"\x01\x02hi".to_vec() });
        for cut in 0..7 {
            assert!(message(0x32, &rest[..cut]).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(Some((kind, place))) = read_packet(&bytes) {
                let _ = message(kind, &bytes[place]);
            }
        }
    }
}
