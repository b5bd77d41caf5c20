//! A subscriber that receives the messages of some subjects, in a blocking way.
//!
//! Main type: [`Subscriber`].

use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use super::protect::connect;
use super::wire::{Line, greeting, read_line};
use crate::database::session::Channel;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint};

/// The maximum time for the server to confirm a subscription.
const AGREED_WITHIN: Duration = Duration::from_secs(20);

/// A connection that receives messages.
#[derive(Debug)]
pub struct Subscriber {
    channel: Channel,
    /// Closed when the subscriber is dropped.
    _socket: Socket,
    message: Vec<u8>,
}

impl Subscriber {
    /// Opens a connection and subscribes; messages published from then on are delivered.
    ///
    /// # Errors
    /// When the server cannot be reached or refuses.
    pub fn open(endpoint: &Endpoint, subjects: &[String]) -> Result<Self, DatabaseError> {
        let (socket, _) = connect(endpoint)?;
        Self::over(Channel::over(socket.as_raw_fd(), socket.secure()), socket, endpoint, subjects)
    }

    /// Subscribes over an open socket.
    pub(super) fn over(
        mut channel: Channel,
        socket: Socket,
        endpoint: &Endpoint,
        subjects: &[String],
    ) -> Result<Self, DatabaseError> {
        channel.set_timeout(Some(AGREED_WITHIN));
        let mut lines = greeting(endpoint);
        for (number, subject) in (1..).zip(subjects) {
            lines += &format!("SUB {subject} {number}\r\n");
        }
        channel.send(format!("{lines}PING\r\n").as_bytes())?;
        let mut agreed = 0;
        while agreed < 2 {
            while let Some((line, length)) = read_line(channel.input()) {
                if let Line::Error(text) = line {
                    return Err(DatabaseError::Lost(format!("the NATS server says: {text}")));
                }
                agreed += u32::from(line == Line::Pong);
                channel.consume(length);
                if agreed == 2 {
                    break;
                }
            }
            if agreed < 2 {
                channel.receive()?;
            }
        }
        Ok(Subscriber { channel, _socket: socket, message: Vec::new() })
    }

    /// Receives the next message, which [`Subscriber::message`] then returns; waits for at most `patience`. Returns whether there was one.
    ///
    /// # Errors
    /// When the connection is lost: the server has ended, or has disconnected a subscriber that cannot keep up.
    pub fn receive(&mut self, patience: Duration) -> Result<bool, DatabaseError> {
        let until = Instant::now() + patience;
        loop {
            while let Some((line, length)) = read_line(self.channel.input()) {
                match line {
                    Line::Message(bytes) => {
                        let whole = length + bytes + 2;
                        if self.channel.input().len() < whole {
                            break;
                        }
                        self.message.clear();
                        self.message.extend_from_slice(&self.channel.input()[length..length + bytes]);
                        self.channel.consume(whole);
                        return Ok(true);
                    }
                    Line::Error(text) => return Err(DatabaseError::Lost(format!("the NATS server says: {text}"))),
                    Line::Ping => {
                        self.channel.consume(length);
                        self.channel.send(b"PONG\r\n")?;
                    }
                    Line::Pong | Line::Other => self.channel.consume(length),
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if !self.channel.receive_within(left)? && left.is_zero() {
                return Ok(false);
            }
        }
    }

    /// Returns the last received message.
    pub fn message(&self) -> &[u8] {
        &self.message
    }
}
