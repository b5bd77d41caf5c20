//! One life of a recorder: sources send, something fails, everything runs again, and every acknowledged record is looked for in the store.
//!
//! Main function: [`live`]. Invariant: everything drawn follows from the life's seed, and acknowledgements are kept outside of what fails.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;

use super::super::failure::{Cut, Failing, Failure, Happened};
use super::super::life::Life;
use super::super::oracle::Judged;
use super::bridge::Bridge;
use super::intake::{Intake, Way};
use super::judge::{Conserved, Sent, judge};
use super::recipe::{Places, TestedRecipe};
use super::source::{self, Answers, SOURCES, Sources};
use super::store::Store;
use super::stream;
use super::tested::Tested;
use crate::database::recipe::Reach;
use crate::database::recorder::recipe::NatsRecipe;
use crate::random::{Stream, derive};
use crate::server::{DiskPlan, PowerDisk, Server, interrupted};
use crate::trial::{DatabaseSettings, FaultKind};

/// Longest time the sources send before something fails.
const SENDS: Duration = Duration::from_millis(1500);
/// How long sources go on after the store is back, or the recorder runs again.
const GOES_ON: Duration = Duration::from_millis(200);
/// Longest time that a store is away.
const AWAY_MOST: Duration = Duration::from_millis(1500);
/// Error message for a recorder without a disk that can fail.
const NO_DISK: &str = "the recorder is on no disk that can fail";
/// Interval between two looks at the store.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// Carries out one life, in a directory that is on no disk that fails.
///
/// # Errors
/// Fails if the life cannot be carried out: the recorder does not start before anything has failed, or a disk or the store does not come back.
pub fn live(tested: &Tested, directory: &Path, fault: FaultKind, (number, seed): (u64, u64)) -> anyhow::Result<Life> {
    let mut chance = Stream::seeded(seed);
    let clock = Instant::now();
    let mut scene = Scene::new(tested, directory, chance.word(), clock)?;
    let mut life = Life { number, allows_duplicates: tested.own.is_none(), ..Life::default() };
    let is_away = fault != FaultKind::Store && scene.store.can_be_away() && chance.below(2) == 0;
    if is_away {
        scene.store.leave()?;
    }
    let failure = Failure { fault, lasts: SENDS.mul_f64(0.1 + 0.9 * chance.unit()), seed: chance.word() };
    let failed = failure.happen(&mut scene, &mut chance);
    let sources = scene.sources.take();
    let Happened { at, what, unsynced } = failed?;
    (life.what, life.unsynced) = (what, unsynced);
    let mut before = sources.context("the sources have not begun")?.finish()?;
    let failed_ns = at.saturating_duration_since(clock).as_nanos() as u64;
    if is_away {
        life.what += ", the store was away";
        scene.store.come_back()?;
    }
    if fault.takes_power() && scene.broker.is_none() {
        // A machine without power answers nothing: a recorder that did not need its disk at that moment may have gone on until it was killed.
        let late = |request: &&mut Sent| request.acknowledged_ns.is_some_and(|answer_ns| answer_ns > failed_ns);
        before.sent.iter_mut().flatten().filter(late).for_each(|request| request.acknowledged_ns = None);
    }
    look(&mut scene, before, fault, &mut life)?;
    life.lost_s = life.judged.first_lost_ns.map(|first_ns| failed_ns.saturating_sub(first_ns) as f64 / 1e9);
    Ok(life)
}

/// A recorder with its disk and its store.
struct Scene<'a> {
    tested: &'a Tested,
    /// What brings to the store what a broker has taken, if the recorder is one. Ended first.
    bridge: Option<Bridge>,
    /// Ended before its disk and its store.
    recorder: Server,
    /// The NATS server in front of loadline's own. It does not fail.
    broker: Option<Server>,
    recipe: TestedRecipe,
    intake: Intake,
    store: Store,
    /// The seed of the sources.
    seed: u64,
    /// The clock of all answers.
    clock: Instant,
    sources: Option<Sources>,
}

impl<'a> Scene<'a> {
    fn new(tested: &'a Tested, directory: &Path, seed: u64, clock: Instant) -> anyhow::Result<Self> {
        let disk = PowerDisk::mount(Some(directory))?;
        let data = disk.path().join("recorder");
        fs::create_dir(&data).with_context(|| format!("{} cannot be made", data.display()))?;
        // It is there before the first life begins, whatever the disk forgets.
        File::open(disk.path()).and_then(|parent| parent.sync_all()).context("the disk does not sync")?;
        let files = directory.join("files");
        fs::create_dir_all(&files).with_context(|| format!("{} cannot be made", files.display()))?;
        let _ = fs::remove_file(directory.join("store.db"));
        let port = free_port()?;
        let watched = if matches!(tested.way, Way::Http { .. }) { port } else { free_port()? };
        let store = Store::new(tested, port, directory, &data)?;
        let broker = tested.own.is_some() && tested.way == Way::Nats;
        let broker = broker.then(start_broker).transpose()?;
        let at = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let address = broker.as_ref().map_or(at(port), |(_, address)| *address);
        let store_url = store.address().map_or_else(String::new, |address| format!("http://{address}"));
        let broker_url = format!("nats://{address}");
        let places = Places { port, watched, broker: broker_url, store: store_url, data, files };
        let section = tested.own.as_ref().map(|own| store.section(&own.database)).transpose()?.flatten();
        let (section, password) = section.map_or_else(Default::default, |section| (section.text, section.password));
        for (name, text) in &tested.files {
            let path = places.files.join(name);
            let text = format!("{}\n{section}", places.in_text(text));
            fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
        }
        let command = tested.command.iter().map(|word| places.in_text(word)).collect();
        let way = tested.own.is_none().then(|| tested.way.clone());
        let recipe = TestedRecipe { command, password, port: if way.is_some() { port } else { watched }, way };
        let recorder = Server::start(&recipe, &DatabaseSettings::default(), None)?.on(disk);
        let broker = broker.map(|(server, _)| server);
        let intake = Intake { address, way: tested.way.clone() };
        let mut scene =
            Scene { tested, bridge: None, recorder, broker, recipe, intake, store, seed, clock, sources: None };
        scene.make_ready()?;
        Ok(scene)
    }

    /// Makes what a recorder of others needs before sources send: a stream, or a subscriber. It is on the disk then, as if it had been there for long.
    fn make_ready(&mut self) -> anyhow::Result<()> {
        if self.tested.own.is_some() {
            return Ok(());
        }
        match &self.tested.way {
            Way::Nats => stream::make(self.intake.address)?,
            Way::Mqtt { topic } => {
                let store = self.store.address().context("the store takes no line protocol")?;
                self.bridge = Some(Bridge::start(self.intake.address, topic, store)?);
            }
            Way::Http { .. } | Way::Tcp => return Ok(()),
        }
        Ok(self.disk()?.sync_all()?)
    }

    /// Lets the sources send more for a moment, and adds that to what they have sent.
    fn go_on(&self, sent: &mut [Vec<Sent>]) -> anyhow::Result<()> {
        let mut next = [0; SOURCES];
        for (next, requests) in next.iter_mut().zip(sent.iter()) {
            *next = requests.iter().map(|request| request.records.len() as u64).sum();
        }
        let sources = source::start(&self.intake, derive(self.seed, 1), self.clock, next)?;
        std::thread::sleep(GOES_ON);
        let more = sources.finish()?.sent;
        sent.iter_mut().zip(more).for_each(|(sent, more)| sent.extend(more));
        Ok(())
    }

    fn start_again(&mut self) -> Result<Duration, String> {
        let begun = Instant::now();
        let started = self.recorder.start_again(&Reach::LOOPBACK, &self.recipe, &DatabaseSettings::default());
        started.map(|()| begun.elapsed()).map_err(|error| error.to_string())
    }
}

/// Starts a NATS server with a stream, on no disk that fails, and returns its address.
fn start_broker() -> anyhow::Result<(Server, SocketAddr)> {
    let server = Server::start(&NatsRecipe { syncs: false }, &DatabaseSettings::default(), None)?;
    let port = server.endpoint().tcp.as_ref().map(|(_, port)| *port).context("the NATS server has no port")?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    stream::make(address)?;
    Ok((server, address))
}

/// Returns a port that is free now.
fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

impl Failing for Scene<'_> {
    fn disk(&self) -> anyhow::Result<&PowerDisk> {
        self.recorder.disk().context(NO_DISK)
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.sources = Some(source::start(&self.intake, self.seed, self.clock, [0; SOURCES])?);
        Ok(())
    }

    fn lose_power(&mut self, plan: DiskPlan) -> anyhow::Result<Cut> {
        let at = Instant::now();
        Ok(Cut { at, unsynced: self.recorder.lose_power(plan, || {})?.unsynced() })
    }

    fn kill(&mut self) -> anyhow::Result<()> {
        self.recorder.kill();
        Ok(())
    }

    fn stop_and_forget(&mut self) -> anyhow::Result<()> {
        self.recorder.stop_in_order();
        Ok(self.recorder.disk_mut().context(NO_DISK)?.remount()?)
    }

    /// The store is killed, stopped or paused, and comes back; sources go on for a moment.
    fn lose_store(&mut self, chance: &mut Stream) -> anyhow::Result<String> {
        let (away, what) = (AWAY_MOST.mul_f64(chance.unit()), chance.below(3));
        match what {
            0 => self.store.kill()?,
            1 => self.store.leave()?,
            _ => self.store.pause()?,
        }
        std::thread::sleep(away);
        if what > 1 {
            self.store.resume()?
        } else {
            self.store.come_back()?
        }
        std::thread::sleep(GOES_ON);
        Ok(format!("the store was {}", ["killed", "stopped", "paused"][what as usize]))
    }
}

/// Starts the recorder on what the failure has left, lets sources send a little more, and waits until the store has what was acknowledged.
fn look(scene: &mut Scene<'_>, mut before: Answers, fault: FaultKind, life: &mut Life) -> anyhow::Result<()> {
    if fault != FaultKind::Store {
        match scene.start_again() {
            Ok(after) => life.recovery_s = Some(after.as_secs_f64()),
            Err(why) => life.did_not_start = Some(why),
        }
    }
    if let Some(says) =
        before.refused.as_ref().filter(|_| before.sent.iter().flatten().all(|one| one.acknowledged_ns.is_none()))
    {
        anyhow::bail!("the recorder acknowledged nothing; it answered: {says}");
    }
    if fault != FaultKind::Store && life.did_not_start.is_none() {
        scene.go_on(&mut before.sent)?;
    }
    let acknowledged = before.sent.iter().flatten().filter(|request| request.acknowledged_ns.is_some());
    let wanted: u64 = acknowledged.map(|request| request.records.len() as u64).sum();
    let found = if life.did_not_start.is_some() {
        // What is in the store already is there; nothing more will come.
        judge(&before.sent, &scene.store.read()?)
    } else {
        arrived(scene, &before.sent, wanted)?
    };
    let Conserved { judged, duplicated, out_of_order } = found;
    life.judged = match life.did_not_start {
        // Nothing is lost silently.
        Some(_) => Judged { acknowledged: judged.acknowledged, there: judged.there, ..Judged::default() },
        None => judged,
    };
    (life.duplicated, life.out_of_order) = (duplicated, out_of_order);
    scene.bridge.as_mut().map_or(Ok(()), Bridge::check)?;
    if judged.lost > 0 && !scene.recorder.log().trim().is_empty() {
        life.says = Some(scene.recorder.log_lines().trim().to_owned());
    }
    Ok(())
}

/// Waits until the store has everything that was acknowledged, or has got nothing new for the time that the file gives. Records that come again are not new: a
/// recorder may send the same ones for ever.
fn arrived(scene: &Scene<'_>, sent: &[Vec<Sent>], wanted: u64) -> anyhow::Result<Conserved> {
    let (mut known, mut missing, mut changed) = (0, u64::MAX, Instant::now());
    loop {
        let count = scene.store.count()?;
        // With fewer rows than records, more rows may be new ones; with more, only a whole look tells.
        if count > known && count < wanted {
            changed = Instant::now();
        }
        known = count;
        let is_over = changed.elapsed() > scene.tested.patience || interrupted();
        let begun = Instant::now();
        if count >= wanted || is_over {
            let found = judge(sent, &scene.store.read()?);
            if found.judged.lost == 0 || is_over {
                return Ok(found);
            }
            if found.judged.lost < missing {
                (missing, changed) = (found.judged.lost, Instant::now());
            }
        }
        // Looking must not take the machine from the recorder.
        std::thread::sleep(LOOKS_EVERY.max(2 * begun.elapsed()));
    }
}
