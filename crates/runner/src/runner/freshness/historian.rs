//! The historian: subscribes to published events and stores them, in its own process, like the component of that name in slide 6
//! of the source.
//!
//! Main functions: [`work_as_historian`], the work of the process, and [`Broker::start`], which starts the NATS server.
//!
//! A historian has one subscription and one connection for each table. Invariant: it is subscribed before the first event is published.

use anyhow::{Context, anyhow};

use super::super::reading::ReadersOrder as Order;
use super::super::stage::Current;
use super::super::workers::start_worker;
use super::group::{answer_of, tell, work};
use crate::database::nats::{NatsDatabase, Subscriber, subject_of};
use crate::database::recorder::recipe::NatsRecipe;
use crate::database::{Endpoint, Target};
use crate::load::no_thread;
use crate::load::sightings::{Control, Sightings, SubscriberTask, store_messages};
use crate::monitor::cpu_s_of;
use crate::server::{Server, Worker};
use crate::statement::Request;
use crate::trial::{DatabaseSettings, FreshnessSettings, Settings};
use crate::workload::Work;
use crate::workload::freshness::STORED_ROWS;

/// The recipe of the NATS server, which persists nothing: subjects are plain.
const BROKER: NatsRecipe = NatsRecipe { syncs: false };

/// A private NATS server, and the historian that subscribes to it.
pub struct Broker {
    server: Server,
    historian: Option<Worker>,
    /// Protection of the connections to it; `None` if they are not protected.
    pub protection: Option<String>,
}

impl Broker {
    /// Starts a NATS server, with a certificate if connections are to be protected.
    ///
    /// # Errors
    /// Fails if the server does not start.
    pub fn start(freshness: &FreshnessSettings) -> anyhow::Result<Broker> {
        let settings = DatabaseSettings { tls: freshness.tls.clone(), ..DatabaseSettings::default() };
        let server = Server::start(&BROKER, &settings, None).context("the NATS server")?;
        let mut broker = Broker { server, historian: None, protection: None };
        if settings.tls.is_some() {
            broker.protection = broker.database().open()?.protection();
        }
        Ok(broker)
    }

    /// Returns the address the server listens on.
    pub fn endpoint(&self) -> &Endpoint {
        self.server.endpoint()
    }

    /// Returns the database that writers publish to.
    pub fn database(&self) -> NatsDatabase {
        NatsDatabase::new(self.endpoint().clone())
    }

    /// Starts the historian and waits until it is subscribed.
    ///
    /// # Errors
    /// Fails if the historian cannot be started or cannot connect.
    pub fn start_historian(&mut self, order: &Order) -> anyhow::Result<()> {
        self.historian = Some(start_worker("historian", order)?);
        Ok(())
    }

    /// Tells the historian that the writers begin or have ended.
    pub fn tell(&mut self, word: &str, time_ns: u64) {
        if let Some(historian) = &mut self.historian {
            tell(historian, word, time_ns);
        }
    }

    /// Returns the CPU time that the server and the historian have used, in seconds, by name.
    pub fn cpu_s(&self) -> Vec<(String, f64)> {
        let historian = self.historian.as_ref().map(|worker| ("historian".to_owned(), cpu_s_of(&[worker.pid()])));
        [("NATS server".to_owned(), cpu_s_of(&self.server.pids()))].into_iter().chain(historian).collect()
    }

    /// Returns what the historian stored, once it has ended.
    ///
    /// # Errors
    /// Fails if the historian ended without an answer.
    pub fn stored(&mut self) -> anyhow::Result<Vec<Sightings>> {
        self.historian.as_mut().map_or(Ok(Vec::new()), |worker| answer_of(worker).context("the historian"))
    }
}

/// Checks that loadline's program and a NATS server can be started here, if the settings need them.
///
/// # Errors
/// Fails with a sentence that states the remedy.
pub fn check(settings: &Settings) -> anyhow::Result<()> {
    if settings.freshness.as_ref().is_some_and(|freshness| freshness.path.publishes()) {
        crate::server::check(&BROKER, &DatabaseSettings::default())?;
    }
    Ok(())
}

/// Returns whether the database of a trial is in this process, so that other processes cannot open it.
pub fn is_in_process(current: &Current) -> bool {
    current.reach().settings.name == "simulated"
}

/// Runs `loadline work historian`.
///
/// # Errors
/// Fails if the input ends or cannot be read.
pub fn work_as_historian() -> anyhow::Result<()> {
    work(store)
}

fn store(
    order: &Order,
    target: &dyn Target,
    control: &Control,
    ready: &mut dyn FnMut(),
) -> anyhow::Result<Vec<Sightings>> {
    let work = Work::new(&order.settings).map_err(anyhow::Error::msg)?;
    let events = work.events().context("the workload has no events")?;
    let nats = order.nats.as_ref().context("the order has no address of NATS")?;
    let clients = order.settings.load.clients as usize;
    let mut parts = Vec::new();
    for (table, name) in events.tables.iter().enumerate() {
        let subscriber = Subscriber::open(nats, &[subject_of(name)])?;
        let mut session = target.open()?;
        session.prepare(&events.program)?;
        parts.push((table, subscriber, session));
    }
    ready();
    let place_of = |event| events.numbering.place_of(event);
    let drain_ns = (order.settings.load.drain_s * 1e9) as u64;
    std::thread::scope(|scope| {
        let threads: Vec<_> = parts
            .into_iter()
            .map(|(table, mut subscriber, mut session)| {
                let place_of = &place_of;
                std::thread::Builder::new().spawn_scoped(scope, move || {
                    let again = || Subscriber::open(nats, &[subject_of(&events.tables[table])]);
                    let task = SubscriberTask { place_of, open: &again, drain_ns };
                    let writers = (0..clients).filter(|writer| events.table_of(*writer) == table);
                    let sightings =
                        Sightings::new(table as u32, writers.map(|writer| writer as u32).collect(), clients);
                    let insert = |rows: u32, request: &mut Request| events.insert(table, rows, request);
                    store_messages(&mut subscriber, &mut *session, &insert, STORED_ROWS, &task, control, sightings)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                let thread = thread.map_err(|error| anyhow!(no_thread("the historian", &error)))?;
                thread.join().map_err(|_| anyhow!("a thread of the historian panicked"))
            })
            .collect()
    })
}
