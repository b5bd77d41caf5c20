//! NATS JetStream: messages of a stream, each a batch of lines, acknowledged only after its commit in the database.
//!
//! A durable pull consumer with explicit acknowledgement; several recorders may share it. Messages of one subject keep their order while
//! one recorder takes all of them; between several recorders only the stream's own order of delivery helps, unless they share the stream in parts (`shared`). A message that is delivered again is recognised by its
//! `Nats-Msg-Id`, or by its number and time in the stream, in the database itself. Lines that are not points go to quarantine: no
//! client waits for an answer.

use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use async_nats::jetstream::consumer::PullConsumer;
use async_nats::jetstream::{AckKind, Message};
use futures_util::StreamExt;
use futures_util::future::join_all;

use super::checking::reason_of;
use super::door::{Begun, Taken};
use super::incoming::{Incoming, Refused};
use super::jetstream::{ACK_WAIT, connect};
use super::{Entry, Running, Surroundings};
use crate::recorder::access::{Owner, Sender};
use crate::recorder::clock::now_ns;
use crate::recorder::config::NatsConfig;
use crate::recorder::line::Precision;
use crate::recorder::log;

/// Registry entry.
pub(super) static NATS: Entry = Entry {
    name: "nats",
    start: |surroundings| {
        let config = surroundings.config.nats.clone().filter(|config| config.shared.is_none())?;
        Some(Ok(start(config, surroundings)))
    },
};

/// The most messages of one fetch.
const FETCH_MAX: usize = 500;
/// The most bytes of one fetch.
pub(super) const FETCH_BYTES_MAX: usize = 8 << 20;
/// The pause before connecting again.
const PAUSE: Duration = Duration::from_secs(1);

fn start(config: NatsConfig, surroundings: &Surroundings) -> Running {
    let surroundings = surroundings.clone();
    let task = tokio::spawn(async move {
        while !surroundings.stop.is_asked() {
            if let Err(reason) = take_in(&config, &surroundings).await {
                log::warning("waiting for NATS", &[("url", &config.server.shown()), ("reason", &reason)]);
                tokio::time::sleep(PAUSE).await;
            }
        }
    });
    Running { name: "nats", address: None, anteroom: None, certificates: Vec::new(), task }
}

/// Stores messages until a stop is asked for, or something fails.
async fn take_in(config: &NatsConfig, surroundings: &Surroundings) -> Result<(), String> {
    let mut consumer = connect(config).await?;
    await_unanswered(&mut consumer, surroundings).await?;
    log::info("taking in from NATS", &[("stream", &config.stream), ("consumer", &config.consumer)]);
    let mut is_large = false;
    while !surroundings.stop.is_asked() {
        let (messages, error) = fetch(&consumer, is_large, FETCH_BYTES_MAX).await?;
        is_large = messages.is_empty() && error.is_some();
        take_all(messages, surroundings).await;
        // Messages that were delivered before an error are stored all the same: dropped ones would come again behind later messages.
        match error {
            Some(reason) if !reason.contains("MaxBytes") => return Err(reason),
            _ => {}
        }
    }
    Ok(())
}

/// Waits until the server delivers the messages again that were on their way when a recorder ended or lost its connection: they come behind [`ACK_WAIT`], and
/// before all others. Messages of their subjects that were published later would otherwise be stored before them.
async fn await_unanswered(consumer: &mut PullConsumer, surroundings: &Surroundings) -> Result<(), String> {
    const LOOK_EVERY: Duration = Duration::from_millis(500);
    let until = Instant::now() + ACK_WAIT + PAUSE;
    let mut unanswered = consumer.cached_info().num_ack_pending;
    if unanswered > 0 {
        let facts = [("messages", &*unanswered.to_string()), ("most", &format!("{} s", ACK_WAIT.as_secs()))];
        log::info("waiting for messages that the server delivers again", &facts);
    }
    // With several recorders of one consumer, they may be those of another one, which answers them.
    while unanswered > 0 && Instant::now() < until && !surroundings.stop.is_asked() {
        tokio::time::sleep(LOOK_EVERY).await;
        unanswered = consumer.info().await.map_err(|error| error.to_string())?.num_ack_pending;
    }
    Ok(())
}

/// Fetches messages, or a single one if it is larger than a fetch; returns the messages, and the error that ended the fetch early.
pub(super) async fn fetch(
    consumer: &PullConsumer,
    is_large: bool,
    bytes_max: usize,
) -> Result<(Vec<Message>, Option<String>), String> {
    let asked = consumer.fetch().expires(Duration::from_millis(500));
    let asked = if is_large { asked.max_messages(1) } else { asked.max_messages(FETCH_MAX).max_bytes(bytes_max) };
    let mut fetched = asked.messages().await.map_err(|error| error.to_string())?;
    let mut messages = Vec::new();
    while let Some(message) = fetched.next().await {
        match message {
            Ok(message) => messages.push(message),
            Err(error) => return Ok((messages, Some(error.to_string()))),
        }
    }
    Ok((messages, None))
}

/// Stores messages in their order, and answers each. Until then the server is told that they are in progress.
async fn take_all(messages: Vec<Message>, surroundings: &Surroundings) {
    let mut begun = Vec::with_capacity(messages.len());
    for message in messages {
        let received = Instant::now();
        // One after another: the future that is polled first is not always the first to enter the lane's queue.
        let Some(outcome) = begin(&message, received, surroundings).await else { return };
        begun.push((message, received, outcome));
    }
    let answers = begun.iter().map(|(message, _, _)| message.clone()).collect::<Vec<_>>();
    let finished = join_all(begun.into_iter().map(|(message, received, outcome)| async move {
        let outcome = match outcome {
            Ok(begun) => begun.finish().await,
            Err(refused) => Err(refused),
        };
        surroundings.direct_door.count(&outcome, received);
        answer(&message, outcome, surroundings).await;
    }));
    tokio::pin!(finished);
    loop {
        match tokio::time::timeout(ACK_WAIT / 3, finished.as_mut()).await {
            Ok(_) => return,
            // The server ignores this for messages that are answered already.
            Err(_) => drop(join_all(answers.iter().map(|message| message.ack_with(AckKind::Progress))).await),
        }
    }
}

/// Gives a message its place in the order of its source. Waits while there is no room, so that no later message overtakes
/// it; `None` if the recorder stops meanwhile.
async fn begin(message: &Message, received: Instant, surroundings: &Surroundings) -> Option<Result<Begun, Refused>> {
    let mut told = Instant::now();
    loop {
        match surroundings.direct_door.begin(incoming(message, received, None)).await {
            Err(Refused::Unfair(wait) | Refused::Full(_, wait)) => {
                tokio::time::sleep(wait.min(Duration::from_secs(1))).await;
                if surroundings.stop.is_asked() {
                    return None;
                }
                if told.elapsed() > ACK_WAIT / 3 {
                    // If the message does not reach the server, the server delivers it again, and it is recognised.
                    let _ = message.ack_with(AckKind::Progress).await;
                    told = Instant::now();
                }
            }
            outcome => return Some(outcome),
        }
    }
}

/// The sender of all messages: NATS itself authenticates publishers, and the ids are those of the stream.
static PUBLISHERS: LazyLock<Arc<Sender>> = LazyLock::new(|| Arc::new(Sender::free(Owner::Stream)));

/// Returns the id by which a message is recognised when it is delivered again. `stream` is what a message without an id names its stream by, instead of the
/// stream's own name.
fn id_of(message: &Message, stream: Option<&str>) -> String {
    let id = message.headers.as_ref().and_then(|headers| headers.get("Nats-Msg-Id")).map(ToString::to_string);
    // With a line break it could equal the id of a client of another intake.
    match (id.filter(|id| !id.contains('\n')), message.info()) {
        (Some(id), _) => id,
        // A server that has lost its newest messages gives their numbers to others, and so does a stream that is made again; the time tells them apart.
        (None, Ok(place)) if stream.is_none() => {
            format!("{}:{}@{}", place.stream, place.stream_sequence, place.published.unix_timestamp_nanos())
        }
        (None, Ok(place)) => format!("{}:{}", stream.unwrap_or(place.stream), place.stream_sequence),
        (None, Err(_)) => String::new(),
    }
}

/// Returns the request that a message is; for `stream` see the id.
pub(super) fn incoming(message: &Message, received: Instant, stream: Option<&str>) -> Incoming {
    Incoming {
        sender: Arc::clone(&PUBLISHERS),
        source: message.subject.as_str().into(),
        message_id: id_of(message, stream),
        precision: Precision::default(),
        body: message.payload.to_vec(),
        is_whole: false,
        received_ns: now_ns(),
        received,
    }
}

/// Answers a message.
async fn answer(message: &Message, outcome: Result<Taken, Refused>, surroundings: &Surroundings) {
    let kind = match outcome {
        Ok(taken) if taken.bad_lines == 0 => AckKind::Ack,
        Ok(taken) => keep(surroundings, message, &taken.errors, taken.bad_lines, true).await,
        Err(Refused::Bad(errors, bad_lines)) => keep(surroundings, message, &errors, bad_lines, false).await,
        Err(Refused::Unfair(wait) | Refused::Full(_, wait) | Refused::TooFast(_, wait)) => AckKind::Nak(Some(wait)),
        // If it is stored after all, it is recognised when it is delivered again.
        Err(Refused::Broken(_) | Refused::Unknown(_) | Refused::Forbidden(..) | Refused::Closed(_)) => {
            AckKind::Nak(Some(Duration::from_secs(30)))
        }
    };
    // After a lost acknowledgement the message is delivered again and recognised.
    if let Err(error) = message.ack_with(kind).await {
        log::warning("a message could not be answered", &[("reason", &error.to_string())]);
    }
}

/// Keeps a message's bad lines in quarantine; returns the answer.
async fn keep(
    surroundings: &Surroundings,
    message: &Message,
    errors: &[crate::recorder::line::LineError],
    bad_lines: usize,
    is_partial: bool,
) -> AckKind {
    let reason = reason_of(errors, bad_lines);
    let reason = if is_partial { format!("the message's other lines are stored; {reason}") } else { reason };
    let (source, body) = (message.subject.as_str().into(), message.payload.to_vec());
    let kept = surroundings.direct_door.quarantine(
        (&PUBLISHERS, source),
        id_of(message, None),
        body,
        reason,
        bad_lines as u32,
    );
    match kept.await {
        Ok(()) => AckKind::Ack,
        Err(_) => AckKind::Nak(Some(Duration::from_secs(30))),
    }
}
