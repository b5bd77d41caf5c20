//! Messages of any size over NATS: each is sent in parts that a server takes, and put together again by its receiver.
//!
//! Main type: [`Bus`]. Invariants: a message is received whole or not at all; what a sender leaves unfinished takes a bounded amount of memory, and is
//! his own loss.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use async_nats::{Client, ConnectOptions};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use super::message::MESSAGE_BYTES_MOST;
use super::show;
use crate::written::section::masked_url;

/// The size of a part in bytes: a NATS server takes 1 MiB if it is not told otherwise.
const PART_BYTES: usize = 512 << 10;
/// How long the server may take to take or to confirm something.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether a subscription is still wanted.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Most senders whose messages are unfinished at a time, and most bytes of a part's first line.
const SENDERS_MOST: usize = 4_096;
const HEAD_BYTES_MOST: usize = 512;

/// Address and credentials of the NATS server over which a run and its agents speak.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BusAddress {
    /// The address, as in `nats://host:4222`, or `tls://` for TLS; a user and a password, or a token, can be in it.
    pub url: String,
    /// File with the authority that must have signed the server's certificate; `None` for those that the system trusts.
    pub authority: Option<PathBuf>,
    /// Credentials that are in no address.
    pub credentials: Option<Credentials>,
}

/// Credentials in a file, as NATS's own tools write them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A user's JWT and the seed of his key: `nsc generate creds` writes it.
    Creds(PathBuf),
    /// The seed of a user's key alone: `nk -gen user` writes it.
    Nkey(PathBuf),
}

impl BusAddress {
    /// Returns the address without user and password.
    pub fn shown(&self) -> String {
        masked_url(&self.url)
    }
}

/// The first line of a part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// The sender, unique among all.
    from: String,
    /// Number of the message among those of the sender.
    message: u64,
    /// Number of this part, from 0.
    part: u32,
    /// Number of parts.
    of: u32,
}

/// A connection to a NATS server. It is made again by itself when it breaks.
pub struct Bus {
    runtime: Runtime,
    client: Client,
    /// The name under which this process sends.
    pub own: String,
    sent: std::sync::atomic::AtomicU64,
    address: BusAddress,
}

impl Bus {
    /// Connects.
    ///
    /// # Errors
    /// Fails if the server cannot be reached or refuses.
    pub fn connect(address: &BusAddress, own: &str) -> anyhow::Result<Bus> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("nats")
            .enable_all()
            .build()
            .context("starting the thread of the NATS connection")?;
        let (url, token) = without_token(&address.url);
        let options = match &address.credentials {
            Some(credentials) => with_credentials(credentials)?,
            None => ConnectOptions::new(),
        };
        let mut options = options.name("loadline");
        if let Some(authority) = &address.authority {
            options = options.add_root_certificates(authority.clone()).require_tls(true);
        }
        if let Some(token) = token {
            options = options.token(token);
        }
        let client = runtime.block_on(options.connect(url)).map_err(|error| {
            // The message may repeat the address.
            let said = error.to_string().replace(&address.url, &address.shown());
            anyhow!("the NATS server at {}: {said}", address.shown())
        })?;
        Ok(Bus { runtime, client, own: own.to_owned(), sent: Default::default(), address: address.clone() })
    }

    /// Returns the server's address without user and password.
    pub fn shown(&self) -> String {
        self.address.shown()
    }

    /// Sends a message to those who receive a subject.
    ///
    /// # Errors
    /// Fails if the server does not answer.
    pub fn send(&self, subject: &str, message: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_vec(message)?;
        let of = u32::try_from(text.len().div_ceil(PART_BYTES).max(1))?;
        let message = self.sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        self.wait_for(async {
            for (part, bytes) in (0..).zip(text.chunks(PART_BYTES)) {
                let head = Head { from: self.own.clone(), message, part, of };
                let mut payload = serde_json::to_vec(&head)?;
                payload.push(b'\n');
                payload.extend_from_slice(bytes);
                self.client.publish(subject.to_owned(), payload.into()).await?;
            }
            Ok(())
        })
    }

    /// Waits for the server, at most [`ANSWERS_WITHIN`]: without a connection, what is sent waits for the next one.
    fn wait_for<T>(&self, what: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        let within = self.runtime.block_on(async { tokio::time::timeout(ANSWERS_WITHIN, what).await });
        within.map_err(|_| {
            anyhow!("the NATS server at {} has not answered for {}; is it running?", self.shown(), show(ANSWERS_WITHIN))
        })?
    }

    /// Receives the messages of some subjects from now on, as long as the receiver lives: the server knows of it when this returns. What is no message
    /// is left out.
    ///
    /// # Errors
    /// Fails if the server does not answer.
    pub fn receive<T: DeserializeOwned + Send + 'static>(&self, subjects: &[String]) -> anyhow::Result<Receiving<T>> {
        let (sender, received) = mpsc::channel();
        let receiving = Arc::new(());
        for subject in subjects {
            let mut subscriber = self.wait_for(async { Ok(self.client.subscribe(subject.clone()).await?) })?;
            let (sender, receiving) = (sender.clone(), Arc::downgrade(&receiving));
            self.runtime.spawn(async move {
                let mut whole = Whole::default();
                while receiving.strong_count() > 0 {
                    let part = match tokio::time::timeout(LOOK_EVERY, subscriber.next()).await {
                        Ok(Some(part)) => part,
                        Ok(None) => break,
                        Err(_) => continue,
                    };
                    let message = whole.take(&part.payload).and_then(|text| serde_json::from_slice(&text).ok());
                    if message.is_some_and(|message| sender.send(message).is_err()) {
                        break;
                    }
                }
            });
        }
        self.wait_for(async { Ok(self.client.flush().await?) })?;
        Ok(Receiving { received, _receiving: receiving })
    }
}

/// Messages as they come. The subscriptions end when it is dropped.
pub struct Receiving<T> {
    received: Receiver<T>,
    _receiving: Arc<()>,
}

impl<T> std::ops::Deref for Receiving<T> {
    type Target = Receiver<T>;

    fn deref(&self) -> &Receiver<T> {
        &self.received
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        // What was sent last, such as the order to stop, must not stay in the buffer; a server that is gone does not hold up the end.
        let flushed = async { tokio::time::timeout(Duration::from_secs(1), self.client.flush()).await };
        drop(self.runtime.block_on(flushed));
    }
}

/// Largest size of a file with credentials, in bytes.
const CREDENTIALS_BYTES_MOST: u64 = 64 << 10;

/// Returns options with the credentials of a file.
///
/// # Errors
/// Fails with the file if it cannot be read or contains none.
fn with_credentials(credentials: &Credentials) -> anyhow::Result<ConnectOptions> {
    let (Credentials::Creds(path) | Credentials::Nkey(path)) = credentials;
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| path.display().to_string())?;
    file.take(CREDENTIALS_BYTES_MOST).read_to_string(&mut text).with_context(|| path.display().to_string())?;
    match credentials {
        Credentials::Creds(_) => ConnectOptions::with_credentials(&text)
            .map_err(|_| anyhow!("{} contains no credentials as nsc generate creds writes them", path.display())),
        Credentials::Nkey(_) => {
            // The seed may stand between comments.
            let seed = text.lines().map(str::trim).find(|line| line.starts_with("SU"));
            let seed = seed.filter(|seed| nkeys::KeyPair::from_seed(seed).is_ok());
            let seed = seed.with_context(|| {
                format!("{} contains no seed of a user's key as nk -gen user writes it", path.display())
            })?;
            Ok(ConnectOptions::with_nkey(seed.to_owned()))
        }
    }
}

/// Returns an address without its token, and the token: the text before the `@` if it has no colon.
fn without_token(url: &str) -> (String, Option<String>) {
    let Some((scheme, rest)) = url.split_once("://") else { return (url.to_owned(), None) };
    match rest.rsplit_once('@') {
        Some((token, host)) if !token.contains(':') && !token.is_empty() => {
            (format!("{scheme}://{host}"), Some(token.to_owned()))
        }
        _ => (url.to_owned(), None),
    }
}

/// Puts messages together from their parts.
#[derive(Debug, Default)]
struct Whole {
    /// For each sender, the head of the part that was received last, and all bytes until then.
    unfinished: BTreeMap<String, (Head, Vec<u8>)>,
    bytes: u64,
}

impl Whole {
    /// Takes a part; returns the message if it was the last one. A part that does not follow the previous one of its sender ends his message.
    fn take(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let end = payload.iter().take(HEAD_BYTES_MOST).position(|byte| *byte == b'\n')?;
        let head: Head = serde_json::from_slice(&payload[..end]).ok()?;
        let bytes = &payload[end + 1..];
        if head.of == 0 || head.part >= head.of {
            return None;
        }
        let before = self.unfinished.remove(&head.from);
        let before_bytes = before.as_ref().map_or(0, |(_, bytes)| bytes.len() as u64);
        self.bytes -= before_bytes;
        let mut text = match before {
            Some((last, text)) if last.message == head.message && last.of == head.of && last.part + 1 == head.part => {
                text
            }
            _ if head.part == 0 => Vec::new(),
            _ => return None,
        };
        text.extend_from_slice(bytes);
        if head.part + 1 == head.of {
            return Some(text);
        }
        let held = self.bytes + text.len() as u64;
        if held <= MESSAGE_BYTES_MOST && self.unfinished.len() < SENDERS_MOST {
            self.bytes = held;
            self.unfinished.insert(head.from.clone(), (head, text));
        }
        None
    }
}

/// Checks an address of a NATS server.
///
/// # Errors
/// A sentence if it is none.
pub fn check_address(url: &str) -> anyhow::Result<()> {
    let is_right =
        ["nats://", "tls://"].iter().any(|scheme| url.strip_prefix(scheme).is_some_and(|host| !host.is_empty()));
    if !is_right {
        bail!(
            "--nats is \"{}\"; write the address of a NATS server, as in nats://host:4222, or tls:// for TLS",
            masked_url(url)
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(from: &str, message: u64, part: u32, of: u32, text: &str) -> Vec<u8> {
        let head = Head { from: from.to_owned(), message, part, of };
        [serde_json::to_vec(&head).unwrap(), b"\n".to_vec(), text.as_bytes().to_vec()].concat()
    }

    #[test]
    fn parts_of_several_senders_are_put_together_and_a_gap_ends_only_his_own_message() {
        let mut whole = Whole::default();
        assert_eq!(whole.take(&part("a", 1, 0, 1, "one")), Some(b"one".to_vec()));
        assert_eq!(whole.take(&part("a", 2, 0, 3, "x")), None);
        assert_eq!(whole.take(&part("b", 7, 0, 2, "1")), None);
        assert_eq!(whole.take(&part("a", 2, 1, 3, "y")), None);
        assert_eq!(whole.take(&part("b", 7, 1, 2, "2")), Some(b"12".to_vec()));
        assert_eq!(whole.take(&part("a", 2, 2, 3, "z")), Some(b"xyz".to_vec()));
        assert_eq!(whole.take(&part("a", 3, 0, 3, "x")), None);
        assert_eq!(whole.take(&part("a", 3, 2, 3, "z")), None, "the second part is missing");
        assert_eq!(whole.take(&part("a", 3, 1, 3, "y")), None, "and comes too late");
        assert_eq!((whole.unfinished.len(), whole.bytes), (0, 0));
    }

    #[test]
    fn what_is_no_part_is_left_out() {
        let mut whole = Whole::default();
        for payload in
            [&b""[..], b"\n", b"{}\n", b"{\"from\":\"a\",\"message\":1,\"part\":4,\"of\":2}\nx", &[b'x'; 2_000]]
        {
            assert_eq!(whole.take(payload), None);
        }
        for sender in 0..2 * SENDERS_MOST {
            assert_eq!(whole.take(&part(&sender.to_string(), 0, 0, 2, "x")), None);
        }
        assert_eq!((whole.unfinished.len(), whole.bytes), (SENDERS_MOST, SENDERS_MOST as u64));
    }

    #[test]
    fn a_token_is_what_stands_alone_before_the_host() {
        assert_eq!(without_token("nats://secret@h:1"), ("nats://h:1".to_owned(), Some("secret".to_owned())));
        assert_eq!(without_token("tls://user:pass@h"), ("tls://user:pass@h".to_owned(), None));
        assert_eq!(without_token("nats://h"), ("nats://h".to_owned(), None));
        assert!(check_address("nats://h").is_ok() && check_address("tls://h").is_ok());
        let said = check_address("http://me:secret@h").unwrap_err().to_string();
        assert!(said.contains("nats://host:4222") && !said.contains("secret"), "{said}");
    }
}
