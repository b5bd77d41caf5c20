//! State that all ways to upload share, and the number of connections of each camera. Main types: [`Blocks`] and [`Session`].

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use super::{CameraList, Cameras, Login, Rates, UploadMeter, Why};
use crate::recorder::access;
use crate::recorder::config::BlocksConfig;
use crate::recorder::inbox::Receiving;

/// The intake of blocks, shared by all ways to upload.
#[derive(Debug)]
pub struct Blocks {
    /// The inbox's intake, which makes the blocks durable.
    pub receiving: Receiving,
    /// The counters.
    pub meter: Arc<UploadMeter>,
    strangers: access::Strangers,
    pub(super) rates: Rates,
    /// Bytes per second below which a client is too slow.
    pub(super) slowest_per_s: f64,
    cameras: Cameras,
    /// The number of sessions of each camera.
    sessions: Mutex<HashMap<String, u32>>,
    sessions_max: u32,
    /// Further parts of `/metrics`.
    also: Mutex<Vec<AlsoShown>>,
}

/// A part of `/metrics` that another component writes.
struct AlsoShown(Box<dyn Fn() -> String + Send + Sync>);

impl std::fmt::Debug for AlsoShown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("AlsoShown")
    }
}

impl Blocks {
    /// Creates the intake, ready for uploads.
    ///
    /// # Errors
    /// A sentence, when the list of cameras cannot be read.
    pub fn new(config: &BlocksConfig, receiving: Receiving) -> Result<Self, String> {
        let cameras = CameraList::read(config.users.as_deref()).and_then(Cameras::new)?;
        Ok(Blocks {
            receiving,
            meter: Arc::default(),
            strangers: access::Strangers::default(),
            rates: Rates::new(config.rates),
            slowest_per_s: config.slowest_per_s,
            cameras,
            sessions: Mutex::default(),
            sessions_max: config.connections_per_camera,
            also: Mutex::default(),
        })
    }

    /// Adds a part to `/metrics` that another component of this process writes.
    pub(super) fn show_also(&self, page: Box<dyn Fn() -> String + Send + Sync>) {
        self.also.lock().unwrap_or_else(PoisonError::into_inner).push(AlsoShown(page));
    }

    /// Returns the further parts of `/metrics`.
    pub(super) fn also(&self) -> String {
        self.also.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|shown| (shown.0)()).collect()
    }

    /// Returns why no block can be accepted now; `None` if blocks can.
    pub fn why_not_ready(&self) -> Option<String> {
        // No camera's own bound counts here.
        self.receiving.ask("ready").err().map(|reason| reason.to_string())
    }

    /// Replaces the list of cameras for later logins; those that are logged in stay.
    pub fn renew_cameras(&self, list: CameraList) {
        self.cameras.renew(list);
    }

    /// Returns whether no password is needed.
    pub fn is_open(&self) -> bool {
        self.cameras.is_open()
    }

    /// Checks a password, after a pause if there were wrong ones.
    pub async fn login(&self, camera: &str, password: &str, from: IpAddr) -> Login {
        let login = self.cameras.login(camera, password, from).await;
        if login != Login::Known {
            self.meter.refuse(Why::Login);
            self.strangers.refuse("blocks", access::Why::Token, from);
        }
        login
    }

    /// Counts one more connection of a camera for as long as the returned session lives; `None` if the camera has as many as it may.
    pub fn session(self: &Arc<Self>, camera: &str) -> Option<Session> {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let own = sessions.get(camera).copied().unwrap_or(0);
        if own >= self.sessions_max {
            self.meter.refuse(Why::Connections);
            return None;
        }
        sessions.insert(camera.to_owned(), own + 1);
        Some(Session { blocks: Arc::clone(self), camera: camera.to_owned() })
    }
}

/// A connection of a camera.
#[derive(Debug)]
pub struct Session {
    blocks: Arc<Blocks>,
    camera: String,
}

impl Session {
    /// Returns the name of the camera.
    pub fn camera(&self) -> &str {
        &self.camera
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let mut sessions = self.blocks.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = sessions.get_mut(&self.camera) {
            *own -= 1;
            if *own == 0 {
                sessions.remove(&self.camera);
            }
        }
    }
}
