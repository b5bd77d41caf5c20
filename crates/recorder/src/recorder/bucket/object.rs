//! Metadata of the objects in a bucket. Main types: [`Name`], [`Meta`] and [`Answer`].
//!
//! All that is read here was written by a client with access to the bucket, and is checked.

use async_nats::jetstream::object_store::{ObjectInfo, ObjectOptions};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE;
use ring::digest::{Context, SHA256, digest};

use crate::recorder::inbox::{Waiting, check_camera, check_name};

/// Metadata key of an object that is a block; the value is the version of this format.
const MARK: &str = "loadline-block";
const VERSION: &str = "1";
/// Metadata key of an object that is answered.
const ANSWER: &str = "loadline-answer";
const STORED: &str = "stored";
const REFUSED: &str = "refused";
const REASON: &str = "loadline-reason";
/// The most bytes of a reason that are sent.
const REASON_MAX: usize = 500;
/// Number of digits of a station's name.
pub(super) const STATION_DIGITS: usize = 32;

/// The name of an upload in a bucket: `<station>/<camera>/<arrived, in ns>/<name>`. No two uploads have the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    /// The station, which is the inbox that the upload comes from.
    pub station: String,
    /// The camera that uploaded it.
    pub camera: String,
    /// When its last byte arrived at the station, in nanoseconds since 1970.
    pub arrived_ns: i64,
    /// The name under which it was uploaded.
    pub block: String,
}

impl Name {
    /// Returns the name of a waiting block.
    pub fn new(station: &str, waiting: &Waiting) -> Self {
        let (camera, block) = (waiting.camera.clone(), waiting.name.clone());
        Name { station: station.to_owned(), camera, arrived_ns: waiting.arrived_ns, block }
    }

    /// Parses a name.
    ///
    /// # Errors
    /// A sentence that says what is wrong with the name.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.splitn(4, '/');
        let parts = [(); 4].map(|()| parts.next());
        let [Some(station), Some(camera), Some(arrived), Some(block)] = parts else {
            return Err("the object's name is not station/camera/arrived/block".to_owned());
        };
        if station.len() != STATION_DIGITS || !station.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("the object's name does not begin with a station's number".to_owned());
        }
        check_camera(camera).map_err(|error| error.to_string())?;
        check_name(block).map_err(|error| error.to_string())?;
        let is_plain = arrived.bytes().all(|byte| byte.is_ascii_digit());
        let arrived_ns = arrived.parse().ok().filter(|arrived| is_plain && *arrived > 0);
        let arrived_ns = arrived_ns.ok_or("the time of arrival in the object's name is none")?;
        let [station, camera, block] = [station, camera, block].map(str::to_owned);
        Ok(Name { station, camera, arrived_ns, block })
    }

    /// Returns the name as it is written in the bucket.
    pub fn text(&self) -> String {
        format!("{}/{}/{}/{}", self.station, self.camera, self.arrived_ns, self.block)
    }

    /// Returns the common prefix of the ids of all attempts to put it: `<station>.<hash>`.
    pub fn id(&self) -> String {
        let hash = digest(&SHA256, self.text().as_bytes());
        let hash: String = hash.as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{}.{hash}", self.station)
    }
}

/// The outcome of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The block is durable in the receiver's inbox.
    Stored,
    /// The block is refused; the reason.
    Refused(String),
}

/// The state that an object's metadata describe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Says {
    /// A block that is to be fetched.
    Block,
    /// A block with this digest is durable at the receiver.
    Stored(String),
    /// The block was refused; the reason.
    Refused(String),
    /// No block: an object of another application, or one that was removed.
    Nothing,
}

/// The metadata of an object, and its sequence number in the stream.
#[derive(Debug, Clone)]
pub struct Meta {
    pub(super) sequence: u64,
    pub(super) info: ObjectInfo,
}

impl Meta {
    /// Reads metadata; a payload that cannot be read gives empty ones. The name is taken from the subject, whatever the payload says.
    pub fn read(name: &str, sequence: u64, payload: &[u8]) -> Self {
        let mut info = serde_json::from_slice(payload).unwrap_or_else(|_| empty());
        info.name = name.to_owned();
        Meta { sequence, info }
    }

    /// Returns the metadata of an object that is put.
    pub(super) fn put(name: &Name, bucket: &str, id: &str, bytes: usize, chunks: usize, digest: String) -> ObjectInfo {
        ObjectInfo {
            name: name.text(),
            bucket: bucket.to_owned(),
            nuid: id.to_owned(),
            size: bytes,
            chunks,
            digest: Some(digest),
            options: Some(ObjectOptions { link: None, max_chunk_size: Some(super::CHUNK_BYTES) }),
            modified: Some(async_nats::datetime::now()),
            metadata: [(MARK.to_owned(), VERSION.to_owned())].into(),
            ..empty()
        }
    }

    /// Returns the metadata of the answered object: deleted, as other clients mark it, with the outcome.
    pub(super) fn answered(&self, answer: &Answer) -> ObjectInfo {
        let mut info = self.info.clone();
        (info.deleted, info.size, info.chunks) = (true, 0, 0);
        info.modified = Some(async_nats::datetime::now());
        let (kind, reason) = match answer {
            Answer::Stored => (STORED, ""),
            Answer::Refused(reason) => (REFUSED, reason.as_str()),
        };
        info.metadata = [(MARK, VERSION), (ANSWER, kind), (REASON, &reason[..reason.floor_char_boundary(REASON_MAX)])]
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into();
        info
    }

    /// Returns the state that the metadata describe.
    pub fn says(&self) -> Says {
        let value = |key: &str| self.info.metadata.get(key).map_or("", String::as_str);
        match (value(MARK), self.info.deleted, value(ANSWER)) {
            (VERSION, false, _) => Says::Block,
            (VERSION, true, STORED) => Says::Stored(self.info.digest.clone().unwrap_or_default()),
            (VERSION, true, REFUSED) => Says::Refused(value(REASON).chars().take(REASON_MAX).collect()),
            _ => Says::Nothing,
        }
    }

    /// Returns the sequence number; every put and every answer has its own.
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns the size of the object in bytes, as the metadata give it.
    pub fn bytes(&self) -> u64 {
        self.info.size as u64
    }

    /// Returns the id under which the chunks are stored; `None` if it is not a possible one.
    pub(super) fn id(&self) -> Option<&str> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let is_token = |token: &str| !token.is_empty() && token.bytes().all(is_plain);
        let id = self.info.nuid.as_str();
        (id.len() <= 100 && id.split('.').all(is_token)).then_some(id)
    }
}

/// Returns a digest in the format of object stores.
pub fn digest_of(hash: Context) -> String {
    digest_text(hash.finish().as_ref())
}

fn digest_text(sha256: &[u8]) -> String {
    format!("SHA-256={}", URL_SAFE.encode(sha256))
}

fn empty() -> ObjectInfo {
    ObjectInfo {
        name: String::new(),
        description: None,
        metadata: Default::default(),
        headers: None,
        options: None,
        bucket: String::new(),
        nuid: String::new(),
        size: 0,
        chunks: 0,
        modified: None,
        digest: None,
        deleted: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATION: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn names_come_back_and_those_that_lead_elsewhere_are_refused() {
        let name = Name {
            station: STATION.to_owned(),
            camera: "GDA-017".to_owned(),
            arrived_ns: 1_763_794_800_000_000_001,
            block: "a b.block".to_owned(),
        };
        assert_eq!(Name::parse(&name.text()), Ok(name.clone()));
        assert!(name.id().starts_with(STATION) && name.id().len() == 65);
        for (text, says) in [
            ("", "is not station/camera"),
            ("a/b", "is not station/camera"),
            ("x/GDA/1/b", "station's number"),
            (&format!("{STATION}/../1/b"), "camera name"),
            (&format!("{STATION}/GDA 1/1/b"), "camera name"),
            (&format!("{STATION}/GDA/1/../b"), "block name"),
            (&format!("{STATION}/GDA/1/a\0b"), "block name"),
            (&format!("{STATION}/GDA/1/.b"), "block name"),
            (&format!("{STATION}/GDA/1/{}", "b".repeat(201)), "block name"),
            (&format!("{STATION}/GDA/-1/b"), "time of arrival"),
            (&format!("{STATION}/GDA/+1/b"), "time of arrival"),
            (&format!("{STATION}/GDA/99999999999999999999/b"), "time of arrival"),
        ] {
            let error = Name::parse(text).unwrap_err();
            assert!(error.contains(says), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_a_note_says_is_what_was_said_and_notes_of_others_say_nothing() {
        let name = Name::parse(&format!("{STATION}/GDA/1/b")).unwrap();
        let info = Meta::put(&name, "blocks", "abc.1", 7, 1, digest_text(&[1; 32]));
        let meta = Meta::read(&name.text(), 5, &serde_json::to_vec(&info).unwrap());
        assert_eq!((meta.says(), meta.id(), meta.bytes()), (Says::Block, Some("abc.1"), 7));
        let again = |info: &ObjectInfo| Meta::read("n", 6, &serde_json::to_vec(info).unwrap()).says();
        assert_eq!(again(&meta.answered(&Answer::Stored)), Says::Stored(digest_text(&[1; 32])));
        let long = "ä".repeat(400);
        let Says::Refused(reason) = again(&meta.answered(&Answer::Refused(long.clone()))) else { panic!() };
        assert!(long.starts_with(&reason) && reason.len() <= REASON_MAX);
        for payload in ["", "{}", "[1]", "{\"name\":\"x\",\"bucket\":\"b\",\"deleted\":true}"] {
            assert_eq!(Meta::read("n", 1, payload.as_bytes()).says(), Says::Nothing, "{payload}");
        }
        for id in ["", "*", "a.>", "a..b", "a b", &"a".repeat(101)] {
            let mut meta = meta.clone();
            meta.info.nuid = id.to_owned();
            assert_eq!(meta.id(), None, "{id}");
        }
    }
}
