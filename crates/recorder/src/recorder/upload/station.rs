//! Running uploads, with the threads that they need. Main type: [`Station`].
//!
//! It needs no database: the blocks may be processed by the same process, another one, or another machine.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::{Blocks, CameraList, REGISTRY, Surroundings, page};
use crate::recorder::config::Config;
use crate::recorder::inbox::{Inbox, Receiving};
use crate::recorder::intake::{Renewal, Running, connections_page};
use crate::recorder::pulse::Heartbeat;
use crate::recorder::stop::Stop;
use crate::recorder::threads;

/// How long uploads that are under way at a stop may take.
const LAST_UPLOADS: Duration = Duration::from_secs(5);
/// The most uploads that wait for the disk at the same time: the disk completes syncs together that wait at the same time.
const DISK_THREADS: usize = 16;

/// The running uploads.
#[derive(Debug)]
pub struct Station {
    runtime: tokio::runtime::Runtime,
    running: Vec<Running>,
    blocks: Arc<Blocks>,
    stop: Arc<Stop>,
    heartbeat: Heartbeat,
}

impl Station {
    /// Starts every configured way to upload.
    ///
    /// # Errors
    /// A sentence about what cannot be started; nothing runs then.
    pub fn start(config: &Config) -> Result<Self, String> {
        let inbox = Inbox::open(&config.inbox.path, config.inbox.bounds).map_err(|error| error.to_string())?;
        Self::start_on(config, &inbox)
    }

    /// As [`Station::start`], on an inbox that is open already.
    ///
    /// # Errors
    /// As [`Station::start`].
    pub fn start_on(config: &Config, inbox: &Inbox) -> Result<Self, String> {
        let receiving = Receiving::start(inbox).map_err(|error| error.to_string())?;
        let blocks = Arc::new(Blocks::new(&config.intake.blocks, receiving)?);
        let runtime = threads::runtime("upload", 2, DISK_THREADS)
            .map_err(|error| format!("uploads cannot be started: {error}"))?;
        let stop = Arc::new(Stop::default());
        let surroundings =
            Surroundings { config: config.intake.clone(), blocks: Arc::clone(&blocks), stop: Arc::clone(&stop) };
        let heartbeat = Heartbeat::start(runtime.handle());
        let mut station = Station { runtime, running: Vec::new(), blocks, stop, heartbeat };
        match station.start_all(&surroundings) {
            Ok(()) => Ok(station),
            Err(reason) => {
                station.stop();
                Err(reason)
            }
        }
    }

    fn start_all(&mut self, surroundings: &Surroundings) -> Result<(), String> {
        let _inside = self.runtime.enter();
        for entry in REGISTRY {
            if let Some(started) = (entry.start)(surroundings) {
                self.running.push(started?);
            }
        }
        self.blocks.show_also(connections_page("upload_", &self.running));
        Ok(())
    }

    /// Returns the addresses on which it listens, by name.
    pub fn addresses(&self) -> Vec<(&'static str, SocketAddr)> {
        self.running.iter().filter_map(|running| Some((running.name, running.address?))).collect()
    }

    /// Reads the certificates again; nothing is changed.
    ///
    /// # Errors
    /// A sentence that names the intake and the file.
    pub fn read_certificates(&self) -> Result<Renewal, String> {
        Renewal::read(&self.running)
    }

    /// Replaces the list of cameras for later logins.
    pub fn renew_cameras(&self, list: CameraList) {
        self.blocks.renew_cameras(list);
    }

    /// Returns the function that writes the part of `/metrics` about uploads.
    pub fn metrics(&self) -> impl Fn() -> String + Send + Sync + 'static {
        let blocks = Arc::clone(&self.blocks);
        move || page::text(&blocks)
    }

    /// Adds a part to `/metrics`, such as that of the processing in the same process.
    pub fn show_also(&self, page: Box<dyn Fn() -> String + Send + Sync>) {
        self.blocks.show_also(page);
    }

    /// Returns why it cannot go on; `None` while it can.
    pub fn failure(&self) -> Option<String> {
        self.blocks.receiving.broken().map(|broken| broken.to_string())
    }

    /// Returns whether it did nothing for this long, not even what it does by itself.
    pub fn is_stuck(&self, within: Duration) -> bool {
        self.heartbeat.is_stuck(within)
    }

    /// Returns the number of blocks acknowledged since the start.
    pub fn acknowledged(&self) -> u64 {
        self.blocks.receiving.acknowledged()
    }

    /// Stops, and returns how many blocks were acknowledged: no upload begins any more, and those under way have a little time.
    pub fn stop(self) -> u64 {
        self.stop.ask(LAST_UPLOADS);
        self.runtime.block_on(async {
            for running in self.running {
                let _ = tokio::time::timeout(LAST_UPLOADS + Duration::from_secs(1), running.task).await;
            }
        });
        // Tasks that are cut off here were not answered.
        self.runtime.shutdown_timeout(Duration::from_secs(2));
        self.blocks.receiving.acknowledged()
    }
}
