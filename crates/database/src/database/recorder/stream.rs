//! What is asked of a NATS server about a stream: that it creates one, and how many messages are in one. Main type: [`StreamSession`].
//!
//! Invariant: an answer is that to the last question.

use std::os::fd::AsRawFd;

use serde_json::Value;

use super::nats::{ASIDES_MOST, GREETING_WITHIN, Said, TOLD_MOST, greet, is_answer, new_inbox, read_said};
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

    /// Asks the server to do this with the stream, and returns the answer.
    fn ask(&mut self, what: &str, with: &str) -> Result<Value, DatabaseError> {
        self.question += 1;
        let StreamSession { stream, inbox, question, .. } = self;
        let sent = format!("PUB $JS.API.STREAM.{what}.{stream} {inbox}.{question} {}\r\n{with}\r\n", with.len());
        self.channel.send(sent.as_bytes())?;
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
                    let answer: Value = serde_json::from_slice(payload).unwrap_or_default();
                    let refused = answer["error"]["description"].as_str();
                    Some(refused.map_or(Ok(answer.clone()), |why| Err(self.failed(what, why))))
                }
                Said::Error(why) => Some(Err(self.failed(what, why))),
                Said::Message(..) | Said::Ping | Said::Nothing => None,
            };
            self.channel.consume(length);
            if let Some(answer) = answer {
                return answer;
            }
            if is_ping {
                self.channel.send(b"PONG\r\n")?;
            }
            asides += 1;
        }
        Err(self.failed(what, "it does not answer"))
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
