//! The front of the database for a study that sets `recorder.path`: private recorders, and a private NATS server in front of one recorder or behind several.
//! With a network link they run on the server's host, next to the database, unless each recorder has a host of its own.
//!
//! Main type: [`Front`]. Invariant: when it is dropped, all servers are gone and the stage knows the tables that the recorders made.

mod configuration;
mod lines;
mod port;
mod shared;
mod uploads;

use super::stage::Current;
use crate::database::recipe::Reach;
use crate::database::station::StationDatabase;
use crate::database::{Endpoint, Target, TargetSession};
use crate::monitor::PidSource;
use crate::reason::Reason;
use crate::recorder::writer::StoredTables;
use crate::server::Server;
use crate::trial::{RecorderSettings, Settings};

pub use configuration::database_section;
pub use lines::check;

/// Name of the stream, and of the subject that messages are published below.
const STREAM: &str = "measurements";
/// Layout of the statements that represent records on their way: whole records, one row each.
const RECORDS: &str = "wide";

/// The servers in front of the database.
pub struct Front {
    /// The target that the load's clients connect to.
    pub target: Box<dyn Target>,
    /// A connection that has already shown that the recorder accepts the records.
    pub opened: Option<Box<dyn TargetSession>>,
    /// The tables that the recorder fills with records of lines.
    pub tables: Option<StoredTables>,
    /// The uploaded blocks, if blocks are uploaded.
    pub uploads: Option<StationDatabase>,
    recorders: Vec<Running>,
    broker: Option<Server>,
    /// Whether the recorders share a stream of the NATS server.
    is_shared: bool,
}

/// A recorder that runs.
struct Running {
    server: Server,
    /// The address of the recorder's own status, from its own host.
    watched: Endpoint,
}

impl Running {
    fn new(server: Server, reach: &Reach) -> Self {
        let watched = Endpoint { namespace: reach.namespace.clone(), ..server.endpoint().clone() };
        Running { server, watched }
    }
}

/// Returns the settings of the records on their way: whole records, whatever the recorder makes of them.
pub fn on_the_way(settings: &Settings) -> Settings {
    let mut sent = settings.clone();
    RECORDS.clone_into(&mut sent.layout.name);
    sent
}

impl Front {
    /// Starts the servers of the settings, in front of a database without a recorder's tables.
    ///
    /// # Errors
    /// Fails if a server does not start or the database already has a recorder's tables.
    pub fn start(settings: &Settings, recorder: &RecorderSettings, current: &mut Current) -> anyhow::Result<Self> {
        current.remove_tables()?;
        if recorder.path.is_upload() {
            return uploads::start(settings, recorder, current);
        }
        lines::start(settings, recorder, current)
    }

    fn new(target: Box<dyn Target>, recorders: Vec<Running>, broker: Option<Server>) -> Self {
        Front { target, opened: None, tables: None, uploads: None, recorders, broker, is_shared: false }
    }

    fn with_uploads(self, uploads: StationDatabase) -> Self {
        Front { uploads: Some(uploads), ..self }
    }

    /// Returns the address of each recorder's HTTP status, from its own host, in the order of their numbers.
    pub fn watched(&self) -> impl Iterator<Item = &Endpoint> {
        self.recorders.iter().map(|recorder| &recorder.watched)
    }

    /// Returns the address of the NATS server whose stream the recorders share, and the stream's name; `None` if they share none.
    pub fn stream(&self) -> Option<(&Endpoint, &'static str)> {
        let broker = self.broker.as_ref().filter(|_| self.is_shared)?;
        Some((broker.endpoint(), STREAM))
    }

    /// Returns the directory in which the first recorder keeps its files; `None` without a recorder.
    pub fn directory(&self) -> Option<std::path::PathBuf> {
        self.recorders.first().map(|recorder| recorder.server.directory())
    }

    /// Returns the ids of the recorders' own processes, in the order of their numbers; `None` for a recorder that has ended.
    pub fn pids(&self) -> Vec<Option<u32>> {
        self.recorders.iter().map(|recorder| recorder.server.pids().first().copied()).collect()
    }

    /// Returns the source of the process ids of all servers.
    pub fn pid_source(&self) -> PidSource {
        let servers = self.recorders.iter().map(|recorder| &recorder.server).chain(&self.broker);
        let mut sources: Vec<PidSource> = servers.map(Server::pid_source).collect();
        Box::new(move |pids| sources.iter_mut().for_each(|source| source(pids)))
    }

    /// Returns why one of the servers ended by itself, if one did.
    pub fn failure(&self) -> Option<Reason> {
        let count = self.recorders.len();
        let name = |place: usize| if count > 1 { format!("recorder {}", place + 1) } else { "recorder".to_owned() };
        let recorders = self.recorders.iter().enumerate().map(|(place, one)| (name(place), &one.server));
        let broker = self.broker.iter().map(|broker| ("NATS server".to_owned(), broker));
        let (program, server) = recorders.chain(broker).find(|(_, server)| !server.is_running())?;
        let log = server.log_lines();
        let log = log.lines().last().unwrap_or_default().trim().to_owned();
        Some(Reason::ProgramEnded { program, log })
    }

    /// Stops the servers; returns false if a recorder had to be killed. A NATS server in front of a recorder is stopped first; one whose stream recorders share
    /// is stopped last, because they give their parts of the stream back.
    pub fn stop(self) -> bool {
        let Front { recorders, mut broker, is_shared, .. } = self;
        if !is_shared {
            broker = None;
        }
        // All at once: a recorder that is stopped alone leaves its parts of a stream to the others.
        let is_in_order = std::thread::scope(|scope| {
            let stop =
                |recorder: Running| std::thread::Builder::new().spawn_scoped(scope, move || recorder.server.stop());
            let stopping: Vec<_> = recorders.into_iter().map(stop).collect();
            // Without a thread the server was dropped, which stops it too.
            stopping.into_iter().all(|thread| thread.map_or(true, |thread| thread.join().unwrap_or(false)))
        });
        drop(broker);
        is_in_order
    }
}
