//! What is asked of a NATS server about a stream: that it creates one, that it keeps a message, and how many messages are in one. Main type:
//! [`StreamSession`].
//!
//! Invariant: an answer is that to the last question.

use std::os::fd::AsRawFd;
use std::time::Duration;

use serde_json::Value;

use super::nats::{
    ASIDES_MOST, GREETING_WITHIN, Said, TOLD_MOST, acknowledged, greet, is_answer, new_inbox, read_said,
};
use crate::database::nats::connect;
use crate::database::session::Channel;
use crate::database::tls::Socket;
use crate::database::{DatabaseError, Endpoint};
use crate::statement::shortened;

/// A connection over which a NATS server is asked about one stream.
pub struct StreamSession {
    /// Keeps the connection open.
    _socket: Socket,
    channel: Channel,
    stream: String,
    version: String,
    inbox: String,
    /// The number of the last question.
    question: u64,
}

impl StreamSession {
    /// Connects to a NATS server, to ask about a stream of this name. The stream need not be there yet.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the server's message.
    pub fn connect(endpoint: &Endpoint, stream: &str) -> Result<Self, DatabaseError> {
        let inbox = new_inbox();
        let (socket, greeting) = connect(endpoint)?;
        let version = greet(&socket, greeting.as_ref(), &inbox)?;
        let mut channel = Channel::over(socket.as_raw_fd(), socket.secure());
        channel.set_timeout(Some(GREETING_WITHIN));
        Ok(StreamSession { _socket: socket, channel, stream: stream.to_owned(), version, inbox, question: 0 })
    }

    /// Returns the number of messages in the stream: those that were published and are not acknowledged, if the stream forgets what is acknowledged.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the server's message, or if it does not answer.
    pub fn messages(&mut self) -> Result<u64, DatabaseError> {
        let information = self.ask("INFO", "")?;
        let messages = information["state"]["messages"].as_u64();
        messages.ok_or_else(|| self.failed("INFO", "its answer has no number of messages"))
    }

    /// Sets how long an answer may take from now on, instead of 20 s.
    pub fn answer_within(&mut self, most: Duration) {
        self.channel.set_timeout(Some(most));
    }

    /// Publishes a message under a subject, with an id by which it is recognised when it comes again, and waits until the stream has acknowledged it.
    ///
    /// # Errors
    /// [`DatabaseError::Refused`] if the stream does not take it, or there is none; other errors if the server does not answer.
    pub fn publish(&mut self, subject: &str, id: &str, message: &[u8]) -> Result<(), DatabaseError> {
        let header = format!("NATS/1.0\r\nNats-Msg-Id: {id}\r\n\r\n");
        let reply = self.next_reply();
        let (head, all) = (header.len(), header.len() + message.len());
        let mut sent = format!("HPUB {subject} {reply} {head} {all}\r\n{header}").into_bytes();
        sent.extend_from_slice(message);
        sent.extend_from_slice(b"\r\n");
        let answer = self.answer_to(&sent)?;
        let answer =
            answer.map_err(|why| DatabaseError::Lost(format!("the NATS server: {}", shortened(&why, TOLD_MOST))))?;
        acknowledged(&answer, 1).map(drop)
    }

    /// Asks the server to do this with the stream, and returns the answer.
    fn ask(&mut self, what: &str, with: &str) -> Result<Value, DatabaseError> {
        let reply = self.next_reply();
        let sent = format!("PUB $JS.API.STREAM.{what}.{} {reply} {}\r\n{with}\r\n", self.stream, with.len());
        let answer = self.answer_to(sent.as_bytes())?.map_err(|why| self.failed(what, &why))?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        match answer["error"]["description"].as_str() {
            Some(why) => Err(self.failed(what, why)),
            None => Ok(answer),
        }
    }

    /// Returns the subject for the answer to the next question.
    fn next_reply(&mut self) -> String {
        self.question += 1;
        format!("{}.{}", self.inbox, self.question)
    }

    /// Sends a question and returns the content of its answer, or what the server says is wrong.
    fn answer_to(&mut self, question: &[u8]) -> Result<Result<Vec<u8>, String>, DatabaseError> {
        self.channel.send(question)?;
        let mut asides = 0;
        while asides < ASIDES_MOST {
            let said = read_said(self.channel.input()).map_err(DatabaseError::Unavailable)?;
            let Some((said, length)) = said else {
                self.channel.receive()?;
                continue;
            };
            let is_ping = said == Said::Ping;
            let answer = match said {
                Said::Message(subject, payload) if is_answer(subject, &self.inbox, self.question) => {
                    Some(Ok(payload.to_vec()))
                }
                Said::Error(why) => Some(Err(why.to_owned())),
                Said::Message(..) | Said::Ping | Said::Nothing => None,
            };
            self.channel.consume(length);
            if let Some(answer) = answer {
                return Ok(answer);
            }
            if is_ping {
                self.channel.send(b"PONG\r\n")?;
            }
            asides += 1;
        }
        Ok(Err("it does not answer".to_owned()))
    }

    fn failed(&self, what: &str, why: &str) -> DatabaseError {
        let (stream, why) = (&self.stream, shortened(why, TOLD_MOST));
        DatabaseError::Unavailable(format!("the NATS server does not {} the stream {stream}: {why}", meaning(what)))
    }
}

fn meaning(what: &str) -> &'static str {
    if what == "CREATE" { "create" } else { "describe" }
}

/// Creates a file-backed stream that takes all messages below a subject. Returns the server's version.
///
/// # Errors
/// [`DatabaseError::Unavailable`] with the server's message.
pub fn create_stream(endpoint: &Endpoint, stream: &str, subject: &str) -> Result<String, DatabaseError> {
    let mut session = StreamSession::connect(endpoint, stream)?;
    let settings = serde_json::json!({
        "name": stream, "subjects": [format!("{subject}.>")], "storage": "file", "retention": "limits", "num_replicas": 1,
    });
    session.ask("CREATE", &settings.to_string())?;
    Ok(session.version)
}
