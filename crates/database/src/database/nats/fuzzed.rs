//! Fuzzing of a subscriber and a publisher against a hostile NATS server, and of messages that other clients could have published.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use super::protect::greeting;
use super::subscriber::Subscriber;
use super::wire::{NatsWire, read_line};
use super::{decode, encode};
use crate::database::Endpoint;
use crate::database::session::{Channel, WireSession};
use crate::fuzzed::{Target, said_by_a_server, texts};
use crate::record::Cells;

/// The input as a message, and as the output of a server on a connection.
pub static NATS: Target = Target {
    name: "nats",
    run: |input| {
        message(input);
        if let Some((_, length)) = read_line(input) {
            assert!(length <= input.len());
        }
        subscriber(input);
        greeted(input);
        let Some(socket) = said_by_a_server(input) else { return };
        let mut session = WireSession::new(NatsWire::new(OwnedFd::from(socket.0).into()));
        let _ = session.greet(&Endpoint::default());
    },
    seeds: || {
        let mut seeds = texts(&[
            "INFO {}\r\nPONG\r\nPONG\r\nMSG events.t 1 5\r\nhello\r\nPING\r\nMSG a 1 reply 2\r\nhi\r\n-ERR 'no'\r\n",
            "PONG\r\nPONG\r\nMSG a 1 18446744073709551615\r\nx",
            "INFO {\"version\":\"2.9.10\",\"tls_required\":true}\r\nPONG\r\n",
        ]);
        let (mut cells, mut written) = (Cells::new(), Vec::new());
        cells.int(-7);
        cells.text("päivä");
        encode(&cells, 0, 1, 2, &mut written);
        seeds.push(written);
        seeds
    },
    words: &["PONG\r\n", "PING\r\n", "MSG a 1 ", "-ERR", "18446744073709551615"],
    memory: (256 << 10, 128),
    is_linear: true,
};

fn message(input: &[u8]) {
    let mut cells = Cells::new();
    let Some((rows, width)) = decode(input, &mut cells) else { return };
    assert_eq!(cells.len() as u64, u64::from(rows) * u64::from(width));
    let mut again = Vec::new();
    encode(&cells, 0, rows, width, &mut again);
    assert_eq!(again, input, "what was read is written as it was");
}

/// Checks the greeting before TLS: the bytes behind it must remain in the channel.
fn greeted(input: &[u8]) {
    let Some((ours, _theirs)) = said_by_a_server(input) else { return };
    let mut channel = Channel::new(ours.as_raw_fd());
    if greeting(&mut channel).is_ok() {
        let end = input.windows(2).position(|pair| pair == b"\r\n").map(|end| end + 2);
        assert!(end.is_some_and(|end| input[end..].starts_with(channel.input())));
    }
}

fn subscriber(input: &[u8]) {
    let Some((ours, _theirs)) = said_by_a_server(input) else { return };
    let channel = Channel::new(ours.as_raw_fd());
    let Ok(mut subscriber) =
        Subscriber::over(channel, OwnedFd::from(ours).into(), &Endpoint::default(), &["a".to_owned()])
    else {
        return;
    };
    while let Ok(true) = subscriber.receive(Duration::from_secs(1)) {
        assert!(subscriber.message().len() < input.len());
    }
}
