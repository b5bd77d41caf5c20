//! A station in the place of a database: every record to insert becomes an upload of a block, over FTP, FTPS or HTTP PUT.
//!
//! Main type: [`StationDatabase`], which like a recorder is not in the registry: commands create one for the station that they load. Its sessions
//! are blocking, with one connection each (for FTP plus a data connection for each block), so the engine drives them on threads; times, phases
//! and validity are those of every other load.
//!
//! Invariant: a request succeeds only when the station has acknowledged the block, and every block belongs to one camera and is numbered by its
//! sequence, so that acknowledged blocks can be looked for where blocks are stored.

mod content;
mod ftp;
mod put;
mod stream;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Answer, DatabaseError, Namespace, Target, TargetSession, Wire};
use crate::record::Cells;
use crate::statement::{Program, Request};

pub use content::{Content, Sealing};
use stream::Dialer;

/// The protocol for uploads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadWay {
    /// FTP in plain text.
    Ftp,
    /// FTP with `AUTH TLS` and `PROT P`.
    FtpTls,
    /// FTP with TLS from the first byte.
    FtpImplicit,
    /// HTTP PUT.
    Put,
    /// HTTP PUT over TLS.
    PutTls,
}

/// A camera that uploads blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Camera {
    /// The camera's name.
    pub name: String,
    /// The camera's password; any value where the station admits everybody.
    pub password: String,
}

/// The station to upload to, and the content.
#[derive(Debug, Clone)]
pub struct StationSettings {
    /// The protocol.
    pub way: UploadWay,
    /// The name or address of the station.
    pub host: String,
    /// The station's port.
    pub port: u16,
    /// The cameras, at least one; connections are assigned to them in turn.
    pub cameras: Vec<Camera>,
    /// The network namespaces that connections are made from, assigned in turn; empty for the machine's own.
    pub networks: Vec<Namespace>,
    /// The PEM file of the certificate to trust, for TLS.
    pub certificate: Option<PathBuf>,
    /// The content to upload.
    pub content: Content,
    /// True if every block has a connection and a login of its own, as with curl.
    pub connects_for_each: bool,
}

/// A station to load. Clones load the same station.
#[derive(Debug, Clone)]
pub struct StationDatabase {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: StationSettings,
    dialer: Dialer,
    /// The prefix of the blocks' names, different for each run.
    run: String,
    outcomes: Mutex<Outcomes>,
}

/// The outcomes of the uploads so far.
#[derive(Debug, Default)]
struct Outcomes {
    /// The slots of the open connections; a slot determines the camera and the network. A freed slot is taken first, so that a camera whose
    /// connection broke comes back as itself.
    places: BTreeSet<u64>,
    sent: Sent,
    /// The number of blocks of each camera so far, sent or not.
    sequences: Vec<u64>,
}

/// The blocks sent, by index of the camera and sequence number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sent {
    /// The acknowledged blocks.
    pub acknowledged: Vec<(usize, u64)>,
    /// The total bytes of the acknowledged blocks.
    pub acknowledged_bytes: u64,
    /// The blocks whose connection broke before an answer came: it is not known whether they are stored.
    pub unknown: Vec<(usize, u64)>,
}

impl StationDatabase {
    /// Creates a target that uploads to a station.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] when the certificate cannot be read or is missing, or when there is no camera.
    pub fn new(settings: StationSettings) -> Result<Self, DatabaseError> {
        if settings.cameras.is_empty() {
            return Err(DatabaseError::Unavailable("there is no camera to upload as; name at least one".to_owned()));
        }
        let needs_tls = !matches!(settings.way, UploadWay::Ftp | UploadWay::Put);
        let dialer = Dialer::new(&settings, needs_tls)?;
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        let run = format!("{:x}-{:x}", since.as_nanos(), std::process::id());
        let outcomes = Outcomes { sequences: vec![0; settings.cameras.len()], ..Outcomes::default() };
        let outcomes = Mutex::new(outcomes);
        Ok(StationDatabase { shared: Arc::new(Shared { settings, dialer, run, outcomes }) })
    }

    /// Returns the name under which a camera's block with this sequence number is uploaded.
    pub fn name_of(&self, sequence: u64) -> String {
        self.shared.name_of(sequence)
    }

    /// Returns the blocks sent so far.
    pub fn sent(&self) -> Sent {
        self.shared.outcomes().sent.clone()
    }
}

impl Shared {
    fn name_of(&self, sequence: u64) -> String {
        format!("{}-{sequence}.block", self.run)
    }

    fn outcomes(&self) -> MutexGuard<'_, Outcomes> {
        self.outcomes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Outcomes {
    fn take_place(&mut self) -> u64 {
        let free = (0..).find(|place| !self.places.contains(place)).unwrap_or(u64::MAX);
        self.places.insert(free);
        free
    }
}

impl Target for StationDatabase {
    fn name(&self) -> &'static str {
        "station"
    }

    fn open(&self) -> Result<Box<dyn TargetSession>, DatabaseError> {
        let place = self.shared.outcomes().take_place();
        let camera = (place % self.shared.settings.cameras.len() as u64) as usize;
        let mut uploading = Uploading { shared: Arc::clone(&self.shared), camera, place, line: None };
        uploading.line = Some(uploading.open()?);
        Ok(Box::new(uploading))
    }
}

/// An open connection to the station.
trait Line: Send {
    /// Uploads a block; returns when it is acknowledged.
    fn upload(&mut self, name: &str, parts: [&[u8]; 2]) -> Result<(), DatabaseError>;
}

/// One connection of a camera.
struct Uploading {
    shared: Arc<Shared>,
    /// The camera's index in the list.
    camera: usize,
    place: u64,
    line: Option<Box<dyn Line>>,
}

impl Uploading {
    fn open(&self) -> Result<Box<dyn Line>, DatabaseError> {
        let settings = &self.shared.settings;
        let (dialer, camera) = (self.shared.dialer.at(&settings.networks, self.place), &settings.cameras[self.camera]);
        Ok(match settings.way {
            UploadWay::Put | UploadWay::PutTls => Box::new(put::PutLine::open(&dialer, camera)?),
            way => Box::new(ftp::FtpLine::open(&dialer, camera, way)?),
        })
    }

    fn upload(&mut self) -> Result<(), DatabaseError> {
        let shared = Arc::clone(&self.shared);
        let sequence = {
            let mut outcomes = shared.outcomes();
            outcomes.sequences[self.camera] += 1;
            outcomes.sequences[self.camera]
        };
        let block = shared.settings.content.block(self.camera, sequence)?;
        let name = shared.name_of(sequence);
        let mut line = match self.line.take() {
            Some(line) => line,
            None => self.open()?,
        };
        let uploaded = line.upload(&name, block.parts());
        // Over HTTP, a station closes the connection after a refusal: it does not read the rest of the block.
        let is_http = matches!(self.shared.settings.way, UploadWay::Put | UploadWay::PutTls);
        let is_usable = match &uploaded {
            Ok(()) => true,
            Err(error) => matches!(error, DatabaseError::Refused { .. }) && !is_http,
        };
        if is_usable && !self.shared.settings.connects_for_each {
            self.line = Some(line);
        }
        let sent = &mut shared.outcomes().sent;
        match &uploaded {
            Ok(()) => {
                sent.acknowledged.push((self.camera, sequence));
                sent.acknowledged_bytes += block.parts().iter().map(|part| part.len() as u64).sum::<u64>();
            }
            Err(DatabaseError::Refused { .. }) => {}
            Err(_) => sent.unknown.push((self.camera, sequence)),
        }
        uploaded
    }
}

impl Drop for Uploading {
    fn drop(&mut self) {
        self.shared.outcomes().places.remove(&self.place);
    }
}

impl TargetSession for Uploading {
    fn prepare(&mut self, _: &Program) -> Result<(), DatabaseError> {
        Ok(())
    }

    /// Uploads as many blocks as the request's first step has rows.
    fn execute(&mut self, request: &Request, _: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let rows = request.steps.first().map_or(0, |step| step.rows);
        for _ in 0..rows {
            self.upload()?;
        }
        Ok(Answer { changed: u64::from(rows), ..Answer::default() })
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

/// Converts an error of a broken connection.
fn lost(error: &std::io::Error) -> DatabaseError {
    DatabaseError::Lost(error.to_string())
}
