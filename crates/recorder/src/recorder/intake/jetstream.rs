//! Access to the messages of a NATS server: the stream, the durable consumer, and the check whether the server syncs before it acknowledges its
//! publishers. Main function: [`connect`].

use std::time::Duration;

use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::StorageType;
use async_nats::jetstream::{self};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::recorder::config::NatsConfig;
use crate::recorder::{log, nats};

/// How long the server waits for an acknowledgement before it delivers again.
pub(super) const ACK_WAIT: Duration = Duration::from_secs(30);
/// The most messages that may be unacknowledged at a time, of all recorders together.
const UNACKNOWLEDGED_MAX: i64 = 2_000;
/// The most bytes of the monitoring page that tells whether a server syncs.
const PAGE_BYTES_MAX: u64 = 1 << 20;

/// Connects, and returns the durable consumer, which is created if there is none.
pub(super) async fn connect(config: &NatsConfig) -> Result<PullConsumer, String> {
    let client = nats::connect(&config.server).await?;
    let server = client.server_info();
    let context = jetstream::new(client);
    let mut stream = context.get_stream(&config.stream).await.map_err(|error| {
        format!(
            "there is no stream {:?}: {error}; make it with storage file and the subjects to be recorded",
            config.stream
        )
    })?;
    let information = stream.info().await.map_err(|error| error.to_string())?;
    if information.config.storage != StorageType::File {
        log::warning(
            "the stream is kept in memory: what the server acknowledges is lost when it ends",
            &[("stream", &config.stream)],
        );
    }
    tell_about_syncs(config, &server.version).await;
    let durable = pull::Config {
        durable_name: Some(config.consumer.clone()),
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: UNACKNOWLEDGED_MAX,
        ..pull::Config::default()
    };
    let consumer = stream.get_or_create_consumer(&config.consumer, durable).await.map_err(|error| error.to_string())?;
    if consumer.cached_info().config.ack_policy != AckPolicy::Explicit {
        return Err(format!(
            "consumer {:?} does not acknowledge explicitly; remove it, or name another",
            config.consumer
        ));
    }
    Ok(consumer)
}

/// Logs a warning about acknowledged messages that the server may lose, unless it is known to sync first.
pub(super) async fn tell_about_syncs(config: &NatsConfig, version: &str) {
    let loses = "up to two minutes of acknowledged messages are lost at a power cut";
    let note = match &config.monitor {
        _ if version_of(version) < (2, 10) => format!(
            "this version cannot be told to sync before it acknowledges: {loses}; use 2.10 or newer with jetstream {{ sync_interval: always }}"
        ),
        Some(monitor) => match syncs_always(monitor).await {
            Ok(true) => {
                log::info("the NATS server syncs before it acknowledges", &[("version", version)]);
                return;
            }
            Ok(false) => format!("its configuration lacks jetstream {{ sync_interval: always }}: {loses}"),
            Err(reason) => format!("intake.nats.monitor {monitor:?} does not say whether it syncs: {reason}"),
        },
        None => format!(
            "unless its configuration says jetstream {{ sync_interval: always }}, {loses}; name its monitoring address in \
             intake.nats.monitor to have that looked at"
        ),
    };
    log::warning("the NATS server acknowledges publishers by its own rules", &[("version", version), ("note", &note)]);
}

/// Reads the server's monitoring page, and returns whether the server always syncs.
async fn syncs_always(monitor: &str) -> Result<bool, String> {
    const WITHIN: Duration = Duration::from_secs(5);
    let Some(address) = monitor.strip_prefix("http://").map(|rest| rest.trim_end_matches('/')) else {
        return Err("it must be an address as in \"http://127.0.0.1:8222\"".to_owned());
    };
    let read = async {
        let mut stream = TcpStream::connect(address).await?;
        let request = format!("GET /jsz HTTP/1.0\r\nHost: {address}\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut page = Vec::new();
        stream.take(PAGE_BYTES_MAX).read_to_end(&mut page).await?;
        Ok::<_, std::io::Error>(page)
    };
    let page = match tokio::time::timeout(WITHIN, read).await {
        Ok(page) => page.map_err(|error| error.to_string())?,
        Err(_) => return Err("it does not answer".to_owned()),
    };
    says_always(&String::from_utf8_lossy(&page)).ok_or_else(|| "its page /jsz shows no configuration".to_owned())
}

fn says_always(page: &str) -> Option<bool> {
    let (_, body) = page.split_once("\r\n\r\n")?;
    let body: serde_json::Value = serde_json::from_str(body).ok()?;
    let configuration = body.get("config")?.as_object()?;
    Some(configuration.get("sync_always").and_then(serde_json::Value::as_bool).unwrap_or(false))
}

fn version_of(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        assert!(version_of("2.9.10") < (2, 10) && version_of("2.10.1") >= (2, 10) && version_of("3") >= (2, 10));
        assert_eq!(version_of("x"), (0, 0));
    }

    #[test]
    fn the_monitoring_page_says_whether_the_server_syncs() {
        let page = |config: &str| format!("HTTP/1.0 200 OK\r\n\r\n{{\"config\":{config}}}");
        assert_eq!(
            says_always(&page(r#"{"store_dir":"/x","sync_interval":120000000000,"sync_always":true}"#)),
            Some(true)
        );
        assert_eq!(says_always(&page(r#"{"store_dir":"/x","sync_interval":120000000000}"#)), Some(false));
        assert_eq!(says_always(&page("7")), None);
        assert_eq!(says_always("HTTP/1.0 404 Not Found\r\n\r\n"), None);
    }
}
