//! `[intake.nats]`, `[intake.store]` and `[forward]`: what is taken from a NATS server or brought to one. Main types:
//! [`NatsServer`], [`BucketConfig`].

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use serde_json::json;

use super::listening::read_tls;
use super::{TlsConfig, rows};
use crate::fault::fault;
use crate::written::place::Errors;
use crate::written::section::{Section, masked_url, shown};
use crate::written::tree::Table;
use crate::written::{Absent, Form, Kind, Part, Setting, Span};

/// Address and credentials of a NATS server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsServer {
    /// The address of the server.
    pub url: String,
    /// File with the authority that must have signed the server's certificate, in PEM; `None` for those that the system trusts.
    pub authority: Option<PathBuf>,
    /// The certificate that the recorder presents, and its key.
    pub tls: Option<TlsConfig>,
    /// A token, instead of user and password in the address.
    pub token: Option<String>,
}

impl NatsServer {
    /// Returns the address for logs: without user and password.
    pub fn shown(&self) -> String {
        masked_url(&self.url)
    }

    /// Returns a message about the server without the secrets that it may repeat.
    pub fn without_secrets(&self, said: &str) -> String {
        let mut said = said.replace(&self.url, &self.shown());
        if let Some(token) = self.token.as_ref().filter(|token| !token.is_empty()) {
            said = said.replace(token, "***");
        }
        if let Some((_, rest)) = self.url.split_once("://")
            && let Some((user, _)) = rest.rsplit_once('@')
        {
            said = said.replace(user, "***");
        }
        said
    }
}

/// `[intake.nats]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatsConfig {
    /// The server.
    pub server: NatsServer,
    /// The name of the stream.
    pub stream: String,
    /// The name of the durable consumer, which several recorders may share.
    pub consumer: String,
    /// The address of the server's monitoring, which tells whether the server syncs before it acknowledges.
    pub monitor: Option<String>,
    /// How recorders share the stream so that each source keeps its order; `None` if they do not.
    pub shared: Option<SharedConfig>,
}

/// How recorders share a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedConfig {
    /// The number of parts of the stream, each of which one recorder has at a time.
    pub partitions: u32,
    /// How long a recorder has a part after its last sign of life.
    pub lease: Duration,
    /// Whether requests over HTTP and TCP go into the stream too.
    pub publishes: bool,
}

/// A bucket of a NATS object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketConfig {
    /// The server.
    pub server: NatsServer,
    /// The name of the bucket.
    pub name: String,
}

/// `[forward]`: blocks of the inbox are brought to the recorder that processes them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForwardConfig {
    /// The bucket that carries the blocks.
    pub bucket: BucketConfig,
    /// The size in bytes with which a missing bucket is created.
    pub bound: u64,
    /// The most objects under way at a time.
    pub objects: u32,
}

/// `[intake.store]`: blocks that another recorder forwards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreConfig {
    /// The bucket that the blocks are taken from.
    pub bucket: BucketConfig,
    /// The most objects that are read at a time.
    pub objects: u32,
    /// How long reading an object may pause without new bytes.
    pub patience: Duration,
}

/// The most characters of a bucket's name.
const BUCKET_NAME_MAX: usize = 64;
/// The most characters of the names of a stream that is shared and of the group that shares it.
const SHARED_NAME_MAX: usize = 64;

const fn url() -> Setting {
    Setting::new(
        "url",
        Kind::Own(&URL),
        Absent::Refused,
        "The address of the NATS server. User and password can be in it.",
    )
}

static URL: Form = Form {
    says: "address, as in `\"nats://host:4222\"`, or `tls://…` for TLS",
    schema: || json!({ "type": "string", "pattern": "^[^ ]+$" }),
    example: "\"nats://127.0.0.1:4222\"",
};

static MONITOR: Form = Form {
    says: "address, as in `\"http://127.0.0.1:8222\"`",
    schema: || json!({ "type": "string", "pattern": "^http://" }),
    example: "\"http://127.0.0.1:8222\"",
};

const AUTHORITY: Setting = Setting::new(
    "authority",
    Kind::Text,
    Absent::Means("what the system trusts"),
    "The file with the authority that must have signed the server's certificate, in PEM.",
);
const CERTIFICATE: Setting = Setting::new(
    "certificate",
    Kind::Text,
    Absent::Means("none"),
    "The file with the recorder's own certificate, in PEM; `key` must be given too.",
);
const TOKEN: Setting =
    Setting::new("token", Kind::Text, Absent::Means("none"), "A token instead of user and password in the address.");
const BUCKET: Setting = Setting::new(
    "bucket",
    Kind::Text,
    Absent::Refused,
    "The name of the bucket in the object store: 1 to 64 letters, digits, - and _",
);

/// `[intake.nats]`
pub static NATS: Part = Part {
    name: "intake.nats",
    help: "Messages of a NATS stream, each a batch of line protocol.",
    settings: &[
        url(),
        Setting::new("stream", Kind::Text, Absent::Refused, "The stream."),
        Setting::new(
            "consumer",
            Kind::Text,
            Absent::Refused,
            "The durable consumer, which several recorders may share. With `shared`, the name of the group of recorders that share the stream.",
        ),
        Setting::new(
            "shared",
            Kind::Truth,
            Absent::Truth(false),
            "Whether recorders share the stream in parts, each part one recorder at a time, so that each source keeps its order however many recorders there are. The database must be a server.",
        ),
        Setting::new(
            "partitions",
            Kind::Whole(1, 256),
            Absent::Whole(16),
            "Number of parts of the stream: messages of part 3 of stream `s` have subjects `s.3.>`. At most so many recorders work at a time.",
        )
        .only("`shared = true`"),
        Setting::new(
            "lease",
            Kind::Duration(Span::Within(2.0, 300.0)),
            Absent::Text("10s"),
            "Time after which another recorder takes over the parts of one that gives no sign of life; the same for all recorders that share a stream.",
        )
        .only("`shared = true`"),
        Setting::new(
            "publish",
            Kind::Truth,
            Absent::Truth(false),
            "Whether requests over HTTP and TCP go into the stream, too, and are answered when it has them. Any recorder that shares the stream stores them, so senders can use another recorder at any time. Without it they go into this recorder's spool.",
        )
        .only("`shared = true`"),
        AUTHORITY,
        CERTIFICATE,
        rows::KEY,
        TOKEN,
        Setting::new(
            "monitor",
            Kind::Own(&MONITOR),
            Absent::Means("none"),
            "The address of the server's monitoring, which says whether it syncs before it acknowledges.",
        ),
    ],
};

/// `[intake.store]`
pub static STORE: Part = Part {
    name: "intake.store",
    help: "Blocks that another recorder forwards through a bucket of a NATS object store.",
    settings: &[
        url(),
        BUCKET,
        AUTHORITY,
        CERTIFICATE,
        rows::KEY,
        TOKEN,
        Setting::new("objects", Kind::Whole(1, 64), Absent::Whole(4), "Maximum number of objects read at a time."),
        Setting::new(
            "patience",
            Kind::Duration(Span::Within(0.1, 3600.0)),
            Absent::Text("30s"),
            "Maximum time without any data of an object.",
        ),
    ],
};

/// `[forward]`
pub static FORWARD: Part = Part {
    name: "forward",
    help: "Blocks of the inbox are forwarded to a bucket of a NATS object store, for another recorder. It excludes `[processing]`.",
    settings: &[
        url(),
        BUCKET,
        AUTHORITY,
        CERTIFICATE,
        rows::KEY,
        TOKEN,
        Setting::new(
            "bound",
            Kind::Bytes(1 << 20, 1 << 50),
            Absent::Means("1 GiB, or four blocks if that is more"),
            "Size of the bucket if it is created.",
        ),
        Setting::new(
            "objects",
            Kind::Whole(1, 1_000),
            Absent::Whole(16),
            "Maximum number of objects being forwarded at a time.",
        ),
    ],
};

pub(super) fn read_nats(tables: &Table, errors: &mut Errors) -> Option<NatsConfig> {
    tables.get("nats")?;
    let section = Section::open(tables, &NATS, errors);
    let monitor: Option<String> = section.read("monitor", errors);
    if let Some(address) = monitor.as_ref().filter(|address| !address.starts_with("http://")) {
        let must = "it must be an address as in \"http://127.0.0.1:8222\"";
        let place = section.get("monitor").map_or(section.place, |entry| entry.place);
        errors.push(place, fault!("intake.nats.monitor is {address:?}"; "{must}"));
    }
    let server = read_server(&section, errors);
    let needed = |key: &str, errors: &mut Errors| {
        if section.get(key).is_none() {
            errors.push(section.place, format!("intake.nats.{key} is missing"));
        }
        section.read::<String>(key, errors)
    };
    let (stream, consumer) = (needed("stream", errors), needed("consumer", errors));
    let shared = read_shared(&section, (&stream, &consumer), errors);
    Some(NatsConfig { server, stream, consumer, monitor, shared })
}

fn read_shared(section: &Section<'_>, names: (&str, &str), errors: &mut Errors) -> Option<SharedConfig> {
    let is_shared: bool = section.read("shared", errors);
    let shared = SharedConfig {
        partitions: section.read("partitions", errors),
        lease: section.read("lease", errors),
        publishes: section.read("publish", errors),
    };
    for key in ["partitions", "lease", "publish"] {
        if let Some(entry) = section.get(key).filter(|_| !is_shared) {
            let remedy = "write shared = true, or leave it out";
            errors.push(entry.place, fault!("intake.nats.{key} is for recorders that share a stream"; "{remedy}"));
        }
    }
    if !is_shared {
        return None;
    }
    // Both are parts of the names of subjects, consumers and the bucket with the leases.
    let is_plain = |name: &str| name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    for (key, name) in [("stream", names.0), ("consumer", names.1)] {
        let Some(entry) = section.get(key) else { continue };
        if !is_plain(name) || name.is_empty() || name.len() > SHARED_NAME_MAX {
            let must = "with shared = true it must have 1 to 64 letters, digits, - and _";
            errors.push(entry.place, fault!("intake.nats.{key} is {name:?}"; "{must}"));
        }
    }
    Some(shared)
}

pub(super) fn read_store(tables: &Table, errors: &mut Errors) -> Option<StoreConfig> {
    tables.get("store")?;
    let section = Section::open(tables, &STORE, errors);
    Some(StoreConfig {
        bucket: read_bucket(&section, errors),
        objects: section.read("objects", errors),
        patience: section.read("patience", errors),
    })
}

/// Reads `[forward]`, which excludes processing of the same inbox, and fetching from the bucket that it fills.
pub(super) fn read_forward(
    root: &Table,
    store: Option<&StoreConfig>,
    block_bytes: u64,
    errors: &mut Errors,
) -> Option<ForwardConfig> {
    root.get("forward")?;
    let section = Section::open(root, &FORWARD, errors);
    if root.get("processing").is_some() {
        let remedy = "leave one of them out: a block goes one way";
        errors.push(section.place, fault!("[forward] and [processing] both take blocks out of the inbox"; "{remedy}"));
    }
    let bucket = read_bucket(&section, errors);
    if store.is_some_and(|store| store.bucket.name == bucket.name && store.bucket.server.url == bucket.server.url) {
        let remedy = "name another bucket in one of them";
        let what = format!("[forward] and [intake.store] name the same bucket \"{}\"", bucket.name);
        errors.push(section.place, fault!("{what}; blocks would go round in it"; "{remedy}"));
    }
    let bound = section.find("bound", errors).unwrap_or((1 << 30).max(4 * block_bytes));
    // An object's metadata, and room to answer it.
    if bound < block_bytes + (1 << 18) {
        let place = section.get("bound").map_or(section.place, |entry| entry.node.place);
        let shown = crate::units::show_bytes(block_bytes as f64);
        let remedy = "make it several times as large";
        errors.push(place, fault!("forward.bound leaves no room for a block of {shown} (inbox.block)"; "{remedy}"));
    }
    let objects = section.read("objects", errors);
    Some(ForwardConfig { bucket, bound, objects })
}

fn read_bucket(section: &Section<'_>, errors: &mut Errors) -> BucketConfig {
    let server = read_server(section, errors);
    let remedy = "name a bucket, as in bucket = \"blocks\"";
    let Some(entry) = section.get("bucket") else {
        errors.push(section.place, fault!("{} is missing", section.path("bucket"); "{remedy}"));
        return BucketConfig { server, name: String::new() };
    };
    let name = section.text("bucket", errors).unwrap_or_default();
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_".contains(character);
    if name.is_empty() || name.len() > BUCKET_NAME_MAX || !name.chars().all(is_allowed) {
        let must = format!("it must be 1 to {BUCKET_NAME_MAX} letters, digits, - and _");
        errors.push(entry.node.place, fault!("{} is {}", section.path("bucket"), entry.node; "{must}"));
    }
    BucketConfig { server, name: name.to_owned() }
}

/// Reads the server that `url`, `token`, `authority`, `certificate` and `key` describe.
fn read_server(section: &Section<'_>, errors: &mut Errors) -> NatsServer {
    let tls = read_tls(section, errors);
    let (authority, token) = (section.read("authority", errors), section.read("token", errors));
    let url: String = section.read("url", errors);
    let example = "as in \"nats://127.0.0.1:4222\", or tls:// for TLS";
    match section.get("url") {
        None => {
            let path = section.path("url");
            errors.push(section.place, fault!("{path} is missing"; "write the server's address, {example}"));
        }
        Some(entry) => {
            let is_spoken = async_nats::ServerAddr::from_str(&url)
                .is_ok_and(|address| ["nats", "tls"].contains(&address.scheme()) && !address.host().is_empty());
            if !is_spoken {
                let must = format!("it must be the address of a NATS server, {example}");
                errors.push(
                    entry.node.place,
                    fault!("{} is {}", section.path("url"), shown("url", &entry.node); "{must}"),
                );
            }
        }
    }
    NatsServer { url, authority, tls, token }
}

#[cfg(test)]
mod tests {
    use crate::recorder::config::read;

    const BUCKET: &str = "url = \"nats://127.0.0.1:4222\"\nbucket = \"blocks\"\n";

    fn said(text: &str) -> String {
        read(text, "c.toml").map_or_else(|errors| errors.to_string(), |config| format!("{:?}", config.forward))
    }

    #[test]
    fn forwarding_and_fetching_need_no_database_and_no_intake_beside_them() {
        let forward = read(&format!("[forward]\n{BUCKET}"), "c.toml").unwrap();
        let settings = forward.forward.unwrap();
        assert_eq!((settings.bound, settings.objects, settings.bucket.name.as_str()), (1 << 30, 16, "blocks"));
        let fetch = read(&format!("[intake.store]\n{BUCKET}token = \"t\""), "c.toml").unwrap();
        assert!(fetch.takes_blocks() && !fetch.takes_lines());
        assert_eq!(fetch.intake.store.unwrap().bucket.server.token.as_deref(), Some("t"));
        let large = read(&format!("[inbox]\nblock = \"1GiB\"\n[forward]\n{BUCKET}"), "c.toml").unwrap();
        assert_eq!(large.forward.unwrap().bound, 4 << 30);
    }

    #[test]
    fn what_is_wrong_with_a_bucket_is_said_with_place_value_and_remedy() {
        for (text, says) in [
            ("[forward]\nbucket = \"b\"", "c.toml:1: forward.url is missing; write the server's address"),
            ("[forward]\nurl = \"nats://h\"", "c.toml:1: forward.bucket is missing; name a bucket"),
            ("[forward]\nurl = \"http://h\"\nbucket = \"b\"", "c.toml:2: forward.url is \"http://h\"; it must be"),
            (
                "[forward]\nurl = \"nats://h\"\nbucket = \"a.b\"",
                "c.toml:3: forward.bucket is \"a.b\"; it must be 1 to 64",
            ),
            (&format!("[forward]\n{BUCKET}objects = 0"), "c.toml:4: forward.objects is 0; it must be"),
            (&format!("[forward]\n{BUCKET}bound = \"2MiB\""), "c.toml:4: forward.bound leaves no room for a block"),
            (&format!("[forward]\n{BUCKET}certificate = \"c\""), "forward needs both certificate and key"),
            (
                &format!("[forward]\n{BUCKET}stream = \"c\""),
                "c.toml:4: unknown key \"stream\" in forward; known: url, bucket",
            ),
            ("[intake.store]\nurl = \"nats://h\"", "intake.store.bucket is missing"),
            (&format!("[intake.store]\n{BUCKET}patience = \"0s\""), "intake.store.patience is"),
            (
                &format!(
                    "[processing]\nidentity = \"i\"\nsigners = \"s\"\n[database]\npath = \"d\"\n[forward]\n{BUCKET}"
                ),
                "[forward] and [processing] both take blocks out of the inbox; leave one of them out",
            ),
            (
                &format!("[intake.store]\n{BUCKET}[forward]\n{BUCKET}"),
                "name the same bucket \"blocks\"; blocks would go",
            ),
            ("[intake.nats]\nurl = \"h:x\"\nstream = \"s\"\nconsumer = \"c\"", "c.toml:2: intake.nats.url is \"h:x\""),
        ] {
            let said = said(text);
            assert!(said.contains(says), "{text}: {said}");
        }
    }
}
