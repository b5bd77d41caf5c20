//! Requests over HTTP and TCP that go into the stream that recorders share, and from there into the database by any of them. Main type: [`Publisher`].
//!
//! A request is a message of its source's part, `STREAM.PART.request`. What its lines do not say (source, id, precision, time of arrival) is in the header
//! `Loadline-Request`.
//!
//! Invariant: a request is answered as stored only when the stream has it.

use std::error::Error;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::{Context, Message};
use async_nats::{Client, HeaderMap};
use serde::{Deserialize, Serialize};

use super::incoming::{Incoming, Refused};
use crate::layout::recorded::hash_hex;
use crate::recorder::config::Config;
use crate::recorder::line::Precision;
use crate::recorder::meter::Meter;
use crate::recorder::spool::Offer;

/// The header of a message that was a request.
const HEADER: &str = "Loadline-Request";
/// The most bytes of that header that are read.
pub(super) const HEADER_BYTES_MAX: usize = 64 << 10;
/// Room for the other headers in a message.
const HEADERS_BYTES: usize = 1 << 10;
/// When a request may come again that finds no connection to the stream.
const AGAIN: Duration = Duration::from_secs(2);

/// What brings requests into the stream.
pub struct Publisher {
    stream: String,
    parts: u32,
    server: RwLock<Option<(Client, Context)>>,
    meter: Arc<Meter>,
}

/// What the lines of a request do not say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct About {
    source: String,
    /// The key under which its id is kept; empty for none.
    id: String,
    /// The number of its precision in stored entries.
    precision: u8,
    /// When it arrived, in nanoseconds since 1970.
    received_ns: i64,
}

impl Publisher {
    /// Returns that of a configuration; `None` if requests go another way.
    pub(in crate::recorder) fn of(config: &Config, meter: &Arc<Meter>) -> Option<Arc<Self>> {
        let nats = config.intake.nats.as_ref()?;
        let shared = nats.shared.filter(|shared| shared.publishes)?;
        let (stream, parts) = (nats.stream.clone(), shared.partitions);
        Some(Arc::new(Publisher { stream, parts, server: RwLock::default(), meter: Arc::clone(meter) }))
    }

    /// Brings requests to this server from now on.
    pub(super) fn connect(&self, client: Client, context: Context) {
        *self.server.write().unwrap_or_else(PoisonError::into_inner) = Some((client, context));
    }

    fn server(&self) -> Option<(Client, Context)> {
        let server = self.server.read().unwrap_or_else(PoisonError::into_inner).clone();
        server.filter(|(client, _)| client.connection_state() == State::Connected)
    }

    /// Returns whether there is a connection to the stream.
    pub fn is_connected(&self) -> bool {
        self.server().is_some()
    }

    /// Brings a request into the stream; returns whether the stream had it already.
    ///
    /// # Errors
    /// [`Refused::Full`] without a connection, [`Refused::Forbidden`] if it is larger than a message may be, and [`Refused::Unknown`] if the stream does not
    /// answer.
    pub(super) async fn publish(&self, offer: &Offer) -> Result<bool, Refused> {
        let Some((client, context)) = self.server() else {
            return Err(Refused::Full("the stream cannot be reached".to_owned(), AGAIN));
        };
        let about = header(&offer.source, &offer.message_id, offer.precision, offer.received_ns);
        let about = about.map_err(|error| Refused::Broken(error.to_string()))?;
        let (bytes, most) = (offer.body.len() + about.len() + HEADERS_BYTES, client.server_info().max_payload);
        if bytes > most || about.len() > HEADER_BYTES_MAX {
            let says = format!(
                "the request has {bytes} bytes, and a message of the stream {most}; send fewer lines at a time, or raise max_payload of the NATS server"
            );
            return Err(Refused::Forbidden(None, says));
        }
        let mut headers = HeaderMap::new();
        headers.insert(HEADER, about);
        if !offer.message_id.is_empty() {
            // The server leaves out what it had within its window of duplicates, and the database what is repeated later.
            headers.insert("Nats-Msg-Id", hash_hex(&[&offer.source, &offer.message_id]));
        }
        let subject = format!("{}.{}.request", self.stream, self.part_of(&offer.source));
        let sent = context.publish_with_headers(subject, headers, offer.body.clone().into()).await;
        let published = match sent {
            Ok(acknowledged) => acknowledged.await,
            Err(error) => Err(error),
        };
        match published {
            Ok(acknowledged) => {
                self.meter.shared.published.add(1);
                Ok(acknowledged.duplicate)
            }
            Err(error) if error.kind() == PublishErrorKind::StreamNotFound => {
                Err(Refused::Full(format!("the stream is not there: {error}"), AGAIN))
            }
            Err(error) if is_refused(&error) => {
                Err(Refused::Full(format!("the stream takes nothing more: {error}"), AGAIN))
            }
            Err(error) => Err(Refused::Unknown(format!("the stream did not answer: {error}"))),
        }
    }

    /// Returns the part of a source, the same in every recorder.
    fn part_of(&self, source: &str) -> u32 {
        let hash = hash_hex(&[source]);
        u32::from_str_radix(&hash[..8], 16).unwrap_or(0) % self.parts
    }
}

/// Returns whether the server has said that it did not take a message: its store or its disk is full, for instance.
fn is_refused(error: &PublishError) -> bool {
    error.source().is_some_and(|source| source.is::<async_nats::jetstream::Error>())
}

/// Returns what is written of a request beside its lines.
pub(super) fn header(
    source: &str,
    id: &str,
    precision: Precision,
    received_ns: i64,
) -> Result<String, serde_json::Error> {
    let (source, id) = (source.to_owned(), id.to_owned());
    serde_json::to_string(&About { source, id, precision: precision.code(), received_ns })
}

/// Returns the request that a message was, if it was one; otherwise the message as it is.
pub(super) fn incoming(own: Incoming, message: &Message) -> Incoming {
    match message.headers.as_ref().and_then(|headers| headers.get(HEADER)) {
        Some(header) => request(header.as_str(), own),
        None => own,
    }
}

/// Returns a message with what its header says of it. A header that no recorder has written changes nothing.
pub(super) fn request(header: &str, own: Incoming) -> Incoming {
    if header.len() > HEADER_BYTES_MAX {
        return own;
    }
    let Ok(about) = serde_json::from_str::<About>(header) else { return own };
    let Some(precision) = Precision::from_code(about.precision) else { return own };
    let message_id = if about.id.is_empty() { own.message_id } else { about.id };
    Incoming { source: about.source.into(), message_id, precision, received_ns: about.received_ns, ..own }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::recorder::access::{Owner, Sender};

    fn message() -> Incoming {
        Incoming {
            sender: Arc::new(Sender::free(Owner::Stream)),
            source: "measurements.3.request".into(),
            message_id: "3:7".to_owned(),
            precision: Precision::default(),
            body: b"m f=1".to_vec(),
            is_whole: false,
            received_ns: 5,
            received: Instant::now(),
        }
    }

    #[test]
    fn a_request_comes_out_of_the_stream_as_it_went_in() {
        let about =
            About { source: "ä\n\"s".to_owned(), id: "access a\nid".to_owned(), precision: 2, received_ns: -3 };
        let read = request(&serde_json::to_string(&about).unwrap(), message());
        assert_eq!((&*read.source, &*read.message_id), (&*about.source, &*about.id));
        assert_eq!((read.precision.code(), read.received_ns, &*read.body), (2, -3, &b"m f=1"[..]));
        let without_id = About { id: String::new(), ..about };
        assert_eq!(request(&serde_json::to_string(&without_id).unwrap(), message()).message_id, "3:7");
    }

    #[test]
    fn a_header_that_no_recorder_wrote_changes_nothing() {
        let good = r#"{"source":"s","id":"","precision":0,"received_ns":1}"#;
        assert_eq!(&*request(good, message()).source, "s");
        let long = format!(r#"{{"source":"{}","id":"","precision":0,"received_ns":1}}"#, "s".repeat(HEADER_BYTES_MAX));
        let wrong =
            [&good.replace(":0,", ":9,"), &good.replace("1}", "1,\"x\":2}"), &good.replace("\"s\"", "5"), &long];
        for header in wrong.into_iter().map(String::as_str).chain(["", "x", "null", "[]"]) {
            assert_eq!(&*request(header, message()).source, "measurements.3.request", "{header:.60}");
        }
    }
}
