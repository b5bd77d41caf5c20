//! The stream that recorders share, and the consumers of its parts. Main type: [`Source`].
//!
//! Invariant: each subject of the stream belongs to one part, so no message is in none.

use std::collections::BTreeSet;
use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::GetStreamErrorKind;
use async_nats::jetstream::stream::{Config, Info, RetentionPolicy, StorageType, Stream};
use async_nats::jetstream::{self, Context, ErrorCode};
use futures_util::StreamExt;

use super::super::jetstream::tell_about_syncs;
use crate::layout::recorded::hash_hex;
use crate::recorder::access::random_token;
use crate::recorder::config::{NatsConfig, SharedConfig};
use crate::recorder::{log, nats};

/// How long the server waits for an acknowledgement. A part that could not store a message is opened again, which asks for it again at once.
const ACK_WAIT: Duration = Duration::from_secs(24 * 3_600);
/// The most messages of a part that are on their way to the database.
const UNACKNOWLEDGED_MAX: i64 = 2_000;
/// After this time without a request the server removes a part's consumer; how far the part has come is in the database.
const INACTIVE: Duration = Duration::from_secs(600);
/// The number of characters that tell the consumers of a part apart.
const TOKEN_CHARACTERS: usize = 8;
/// The most consumers of the stream that are looked at.
const CONSUMERS_MAX: usize = 10_000;

/// The stream that is shared.
#[derive(Clone)]
pub(super) struct Source {
    pub client: async_nats::Client,
    pub context: Context,
    stream: Stream,
    /// The name by which the ledger knows the stream; a stream that was removed and created again has another one.
    pub ledger: String,
    /// The number of servers that keep the stream.
    pub replicas: usize,
    group: String,
    /// Whether the stream forgets what is acknowledged.
    forgets: bool,
}

/// Returns the subjects of a part.
fn subject_of(stream: &str, part: u32) -> String {
    format!("{stream}.{part}.>")
}

/// Connects, and opens the stream, which is created if there is none.
pub(super) async fn open(config: &NatsConfig, shared: SharedConfig) -> Result<Source, String> {
    let client = nats::connect(&config.server).await?;
    let version = client.server_info().version;
    let mut context = jetstream::new(client.clone());
    context.set_timeout(shared.lease / 4);
    let stream = match context.get_stream(&config.stream).await {
        Ok(stream) => stream,
        Err(error) if is_missing(&error.kind()) => create(&context, config, shared).await?,
        Err(error) => return Err(format!("stream {:?} cannot be opened: {error}", config.stream)),
    };
    let information = stream.get_info().await.map_err(|error| error.to_string())?;
    check(&information, shared.partitions)?;
    if information.config.storage != StorageType::File {
        log::warning(
            "the stream is kept in memory: what the server acknowledges is lost when it ends",
            &[("stream", &config.stream)],
        );
    }
    tell_about_syncs(config, &version).await;
    let created = serde_json::to_string(&information.created).map_err(|error| error.to_string())?;
    Ok(Source {
        client,
        context,
        stream,
        ledger: hash_hex(&["parts of a stream", &config.stream, &created]),
        replicas: information.config.num_replicas.max(1),
        group: config.consumer.clone(),
        forgets: information.config.retention == RetentionPolicy::WorkQueue,
    })
}

fn is_missing(kind: &GetStreamErrorKind) -> bool {
    matches!(kind, GetStreamErrorKind::JetStream(error) if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

async fn create(context: &Context, config: &NatsConfig, shared: SharedConfig) -> Result<Stream, String> {
    let wanted = Config {
        name: config.stream.clone(),
        subjects: (0..shared.partitions).map(|part| subject_of(&config.stream, part)).collect(),
        retention: RetentionPolicy::WorkQueue,
        storage: StorageType::File,
        ..Config::default()
    };
    let stream = context.get_or_create_stream(wanted).await;
    let stream = stream.map_err(|error| format!("stream {:?} cannot be created: {error}", config.stream))?;
    let parts = shared.partitions.to_string();
    log::info("the stream is created", &[("stream", &config.stream), ("parts", &parts)]);
    Ok(stream)
}

/// Checks that a stream consists of parts, and keeps messages until they are acknowledged.
fn check(information: &Info, partitions: u32) -> Result<(), String> {
    let Config { name, subjects, retention, .. } = &information.config;
    let wanted: BTreeSet<_> = (0..partitions).map(|part| subject_of(name, part)).collect();
    let found: BTreeSet<_> = subjects.iter().cloned().collect();
    if found != wanted {
        let own = (1..=256).find(|parts| found == (0..*parts).map(|part| subject_of(name, part)).collect());
        return Err(match own {
            Some(parts) => format!(
                "stream {name:?} has {parts} parts and intake.nats.partitions is {partitions}; write partitions = {parts}"
            ),
            None => format!(
                "the subjects of stream {name:?} are not those of {partitions} parts; a shared stream has the subjects {} … {}, and each message belongs to \
                 one of them. Name another stream, or let the recorder create it",
                subject_of(name, 0),
                subject_of(name, partitions - 1)
            ),
        });
    }
    if *retention == RetentionPolicy::Interest {
        return Err(format!(
            "stream {name:?} forgets messages while nobody asks for them (retention interest); make it with retention workqueue or limits"
        ));
    }
    Ok(())
}

impl Source {
    fn consumers_of(&self, part: u32) -> String {
        format!("{}-{part}-", self.group)
    }

    /// Creates the consumer of a part, behind the message with this number, and removes those of its earlier holders.
    pub(super) async fn consumer(&self, part: u32, through: i64) -> Result<PullConsumer, String> {
        let last = self.stream.get_info().await.map_err(|error| error.to_string())?.state.last_sequence;
        let through = u64::try_from(through).unwrap_or(0);
        if last < through {
            return Err(format!(
                "the stream has gone back: its last message has number {last}, and the database has number {through}. It was restored from an older copy; \
                 copy its messages into a new stream, and name that one in intake.nats.stream"
            ));
        }
        self.remove_consumers(part).await?;
        let token: String = random_token()?.chars().take(TOKEN_CHARACTERS).collect();
        let wanted = pull::Config {
            durable_name: Some(format!("{}{token}", self.consumers_of(part))),
            filter_subject: subject_of(&self.stream.cached_info().config.name, part),
            // A stream that forgets what is acknowledged has nothing before it.
            deliver_policy: match self.forgets {
                true => DeliverPolicy::All,
                false => DeliverPolicy::ByStartSequence { start_sequence: through + 1 },
            },
            ack_policy: AckPolicy::Explicit,
            ack_wait: ACK_WAIT,
            max_ack_pending: UNACKNOWLEDGED_MAX,
            inactive_threshold: INACTIVE,
            ..pull::Config::default()
        };
        self.stream.create_consumer(wanted).await.map_err(|error| error.to_string())
    }

    /// Removes the consumers of a part: their holders get nothing more from the stream.
    pub(super) async fn remove_consumers(&self, part: u32) -> Result<(), String> {
        let prefix = self.consumers_of(part);
        let mut names = self.stream.consumer_names().take(CONSUMERS_MAX);
        while let Some(name) = names.next().await {
            let name = name.map_err(|error| error.to_string())?;
            // A longer rest belongs to a group whose name begins like this prefix.
            if name.strip_prefix(&prefix).is_some_and(|rest| rest.chars().count() == TOKEN_CHARACTERS) {
                // One that is gone meanwhile is no obstacle; one that is still there is.
                let _ = self.stream.delete_consumer(&name).await;
            }
        }
        Ok(())
    }
}
