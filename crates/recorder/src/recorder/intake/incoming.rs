//! A request as the door is given it, and why nothing of one was stored. Main types: [`Incoming`] and [`Refused`].

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::recorder::access::Sender;
use crate::recorder::line::{LineError, Precision};

/// A request as it arrived.
#[derive(Debug)]
pub struct Incoming {
    /// The sender that the token names: it decides what may be sent, and who owns the message id.
    pub sender: Arc<Sender>,
    /// The name that the sender gives itself.
    pub source: Arc<str>,
    /// The message id that the sender chose; empty for none.
    pub message_id: String,
    /// The unit of the time stamps.
    pub precision: Precision,
    /// The lines, in line protocol.
    pub body: Vec<u8>,
    /// True if one bad line refuses the whole request, whatever the configuration says.
    pub is_whole: bool,
    /// When the last byte arrived, in nanoseconds since 1970.
    pub received_ns: i64,
    /// The same moment on a monotonic clock.
    pub received: Instant,
}

/// The reason why nothing of a request was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Lines are wrong: the first errors, and their total number.
    Bad(Vec<LineError>, usize),
    /// The sender holds more than its share of the quarantine; a sentence that says so.
    Closed(String),
    /// The sender may not send this: the line number, if one line is the cause, and a sentence.
    Forbidden(Option<usize>, String),
    /// The sender exceeds its rate: a sentence, and the time to wait.
    TooFast(String, Duration),
    /// The sender has had more than its share while others wait; the time to wait.
    Unfair(Duration),
    /// There is no room: a sentence, and the time after which the request can be sent again.
    Full(String, Duration),
    /// Nothing can be made durable; the reason.
    Broken(String),
    /// The outcome is unknown: storing failed on the way, so the request may be stored or not; the reason.
    Unknown(String),
}
