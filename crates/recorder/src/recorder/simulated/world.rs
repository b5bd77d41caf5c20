//! One life of a recorder from a seed. Main function: [`run`].

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use loadline_segments::segments::simulated::{Cut, MemoryDisk, Told};
use rusqlite::Connection;

use super::clock::MadeClock;
use super::copied::{Copies, Held, PutBack};
use super::failing::Failing;
use super::faults::Faults;
use super::neighbour::{FIRST_NUMBER, Neighbour};
use super::others::{Others, lanes_of_writers, record_tables, stored_records, undo_later};
use super::process::{LANES, Process, Setup, one_of, opened};
use super::scratch::Scratch;
use super::senders::{Manners, Senders};
use super::truth::{Fate, Sighting, Truth, numbers_of};
use crate::random::Stream;
use crate::recorder::clock::Clock;
use crate::recorder::config::NewColumns;
use crate::recorder::spool::simulated::inventory;
use crate::recorder::spool::{Clearing, Span};

/// The number of steps in a run.
const STEPS: u64 = 70;
/// The room of each disk when it is not full, in bytes.
const ROOM: u64 = 16 << 20;
/// The number of turns within which everything must be written once nothing stands in the way.
const TURNS_MAX: u64 = 20_000;
/// The beginning of 2020, in nanoseconds since 1970.
const BEGIN_NS: i64 = 1_577_836_800_000_000_000;
const HOUR_NS: i64 = 3_600_000_000_000;

struct World {
    random: Stream,
    setup: Setup,
    clock: Arc<MadeClock>,
    disks: [MemoryDisk; 2],
    failing: Failing,
    senders: Arc<Mutex<Senders>>,
    truth: Arc<Mutex<Truth>>,
    process: Option<Process>,
    faults: Faults,
    history: Vec<String>,
    /// Whether somebody changes the database now and then.
    is_meddled_with: bool,
    /// Copies of the spool, in some lives.
    copies: Option<Copies>,
    /// A second recorder on the same database, in some lives.
    neighbour: Option<Arc<Mutex<Neighbour>>>,
}

/// Runs one life of a recorder from a seed, and returns what was done to it.
///
/// # Errors
/// Returns what the recorder has lost, doubled or reported falsely, with everything that happened before.
pub fn run(seed: u64) -> Result<Faults, Told> {
    let scratch = Scratch::new()?;
    let mut world = World::new(seed, &scratch)?;
    let outcome = world.live();
    world.end();
    let told = |why: Told| format!("recorder, seed {seed}: {why}\n{}", world.history.join("\n"));
    outcome.map_err(told)?;
    let mut faults = world.faults;
    faults.add(&world.failing.faults());
    faults.again = world.senders().again;
    Ok(faults)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    fn new(seed: u64, scratch: &Scratch) -> Result<Self, Told> {
        let mut random = Stream::seeded(seed);
        let clock = Arc::new(MadeClock::new(BEGIN_NS));
        let (setup, forgets) = Setup::drawn(&mut random);
        // In a quiet world each source's records of a measurement keep their order, and that is checked.
        let is_quiet = random.below(3) == 0 && setup.new_columns != NewColumns::Refuse;
        let manners = match is_quiet {
            true => Manners { conflicts: 0, bad_lines: 5, large: 3 },
            false => Manners { conflicts: 8, bad_lines: 5, large: one_of(&mut random, &[3, 40]) },
        };
        let holds_order = is_quiet && forgets.is_none();
        let truth = Arc::new(Mutex::new(Truth::new(holds_order)));
        let of_database = Stream::seeded(random.word());
        let of_senders = Stream::seeded(random.word());
        let senders = Senders::new(of_senders, manners, Arc::clone(&clock), Arc::clone(&truth));
        let failing = Failing::new(scratch.path(), Arc::clone(&clock), of_database, forgets)?;
        let neighbour = Neighbour::of(seed, (setup, manners, Truth::new(holds_order)), &clock, &failing)?;
        Ok(World {
            neighbour: neighbour.map(|neighbour| Arc::new(Mutex::new(neighbour))),
            failing,
            senders: Arc::new(Mutex::new(senders)),
            disks: [MemoryDisk::new(ROOM), MemoryDisk::new(ROOM)],
            history: vec![format!("{setup:?}, quiet {is_quiet}, forgets {forgets:?}")],
            random,
            setup,
            clock,
            truth,
            process: None,
            faults: Faults::default(),
            is_meddled_with: !is_quiet,
            // What a database forgets is kept in the spool, and not in its older copies.
            copies: Copies::of(seed).filter(|_| forgets.is_none()),
        })
    }

    fn live(&mut self) -> Result<(), Told> {
        self.start()?;
        for _ in 0..STEPS {
            if let Some(copies) = &mut self.copies {
                copies.copy(&self.disks);
            }
            self.step()?;
            if let Some(neighbour) = self.neighbour.as_ref().filter(|_| !self.failing.has_killed()) {
                self.failing.meanwhile(None);
                lock(neighbour).step();
            }
            self.look()?;
        }
        self.come_to_an_end()
    }

    fn senders(&self) -> MutexGuard<'_, Senders> {
        lock(&self.senders)
    }

    fn truth(&self) -> MutexGuard<'_, Truth> {
        lock(&self.truth)
    }

    fn note(&mut self, what: impl Into<String>) {
        self.history.push(format!("{:?}: {}", self.clock, what.into()));
    }

    fn step(&mut self) -> Result<(), Told> {
        match self.random.below(100) {
            0..25 => {
                let requests = 1 + self.random.below(6);
                self.note(format!("{requests} requests"));
                (0..requests).for_each(|_| self.senders().send());
            }
            25..65 => self.write()?,
            65..69 => self.restart()?,
            69..73 => {
                self.note("kill");
                self.failing.count(|faults| faults.kills += 1);
                self.end_process(false);
                self.put_back()?;
                self.start()?;
            }
            73..78 => {
                self.note("power cut");
                self.kill(true)?;
            }
            78..81 => {
                let (disk, after) = (self.random.below(2) as usize, self.random.below(14));
                self.note(format!("disk {disk} fails after {after}"));
                self.faults.failures += 1;
                self.disks[disk].fail_after(after);
            }
            81..83 => self.fill_disks(),
            83..87 => {
                let per_mille = one_of(&mut self.random, &[0, 5, 20, 60]);
                self.note(format!("of 1000 calls {per_mille} fail"));
                self.failing.set_trouble(per_mille);
            }
            87..90 => {
                self.note("the database crashes");
                self.failing.crash()?;
            }
            90..92 => {
                let time = Duration::from_millis(self.random.below(20_000));
                self.note(format!("the database is down for {time:?}"));
                self.failing.be_down_for(time);
            }
            92..94 => {
                let by_ns = (self.random.below(48) as i64 - 24) * HOUR_NS;
                self.note(format!("the clock of the day jumps by {by_ns} ns"));
                self.faults.jumps += 1;
                self.clock.jump(by_ns);
            }
            94..96 => {
                let time = Duration::from_secs(one_of(&mut self.random, &[1, 60, 1_200, 5_000]));
                self.note(format!("{time:?} pass"));
                self.clock.pass(time);
            }
            96..98 => self.operate(),
            _ => self.meddle(),
        }
        Ok(())
    }

    /// Makes the disks full for a while.
    fn fill_disks(&mut self) {
        self.note("the disks are full");
        self.faults.full += 1;
        self.disks.iter().for_each(|disk| disk.set_room(0));
        let disks = self.disks.clone();
        let time = Duration::from_millis(self.random.below(30_000));
        self.clock.plan(time, move || disks.iter().for_each(|disk| disk.set_room(ROOM)));
    }

    /// Lets writers take turns.
    fn write(&mut self) -> Result<(), Told> {
        for _ in 0..1 + self.random.below(6) {
            let Some(process) = &self.process else { return Ok(()) };
            let busy = process.at_work()?;
            let place = match busy.len() as u64 {
                0 => self.random.below(process.lanes() as u64) as usize,
                _ if self.random.below(10) == 0 => self.random.below(process.lanes() as u64) as usize,
                _ => one_of(&mut self.random, &busy),
            };
            self.turn(place)?;
        }
        Ok(())
    }

    /// Lets a writer take a turn, while others do their part.
    fn turn(&mut self, place: usize) -> Result<(), Told> {
        let Some(process) = &self.process else { return Ok(()) };
        let (turning, senders) = (process.turning(), Arc::clone(&self.senders));
        let lanes = process.lanes() as u64;
        let neighbour = self.neighbour.clone();
        let mut random = Stream::seeded(self.random.word());
        let meanwhile = move || match random.below(100) {
            0..8 => lock(&senders).send(),
            8..12 => turning(random.below(lanes) as usize),
            // It may be its own turn in which this happens.
            12..20 => drop(neighbour.as_ref().and_then(|neighbour| neighbour.try_lock().ok()).map(|mut it| it.turn())),
            _ => {}
        };
        self.failing.meanwhile(Some(Box::new(meanwhile)));
        let others = Others {
            clock: Arc::clone(&self.clock),
            failing: self.failing.clone(),
            turning: Box::new(process.turning()),
            random: Stream::seeded(self.random.word()),
            lanes,
            ticks: 0,
            is_over: Arc::default(),
        };
        let is_over = Arc::clone(&others.is_over);
        others.plan();
        let took = process.turn(place);
        is_over.store(true, Ordering::Relaxed);
        let ended = self.failing.came_to_an_end();
        self.failing.meanwhile(None);
        self.senders().listen();
        if took {
            self.note(format!("writer {place} took a turn"));
        }
        ended
    }

    /// Stops the recorder, which writes what it can until its time is over, and starts it again.
    fn restart(&mut self) -> Result<(), Told> {
        self.note("restart");
        self.senders().hang_up();
        if let Some(process) = &mut self.process {
            process.door = None;
            process.stop.ask(Duration::from_millis(self.random.below(3_000)));
        }
        for _ in 0..200 {
            let Some(process) = self.process.as_ref().filter(|process| !process.has_ended()) else { break };
            let place = self.random.below(process.lanes() as u64) as usize;
            self.turn(place)?;
        }
        let in_order =
            !self.failing.has_killed() && self.process.as_ref().is_some_and(|process| process.spool.broken().is_none());
        self.end_process(in_order);
        self.start()
    }

    fn end_process(&mut self, in_order: bool) {
        self.senders().hang_up();
        self.failing.end();
        if let Some(process) = self.process.take() {
            self.faults.prepared += process.prepared();
            process.end(in_order);
        }
        self.disks.iter().for_each(|disk| disk.fail_after(u64::MAX));
    }

    /// Ends the recorder's process in the middle, with or without the power.
    fn kill(&mut self, is_power: bool) -> Result<(), Told> {
        self.end_process(false);
        if is_power {
            self.faults.cuts += 1;
            let cut = Cut {
                sectors: one_of(&mut self.random, &[0, 50, 90, 100]),
                names: one_of(&mut self.random, &[0, 50, 100]),
            };
            self.note(format!("{cut:?}"));
            for disk in &self.disks {
                disk.cut(&mut self.random, cut);
            }
        }
        self.start()
    }

    /// Puts an older copy of the spool in its place now and then.
    fn put_back(&mut self) -> Result<(), Told> {
        if self.copies.is_none() {
            return Ok(());
        }
        // Before the first writer there is no such table.
        let lanes = self.read(lanes_of_writers).unwrap_or_default();
        let lane_of = |writer: i64| lanes.get(&writer).copied().unwrap_or(u32::MAX);
        let own = self.read(stored_records)?.into_iter().filter(|(_, number)| *number <= FIRST_NUMBER);
        let stored = own.map(|(writer, number)| (number, lane_of(writer))).collect();
        let Some(PutBack { disks, kept, doubles }) = self.copies.as_mut().and_then(|copies| copies.put_back(&stored))
        else {
            return Ok(());
        };
        self.note("an older copy of the spool is put back");
        self.faults.copies += 1;
        disks.iter().for_each(|disk| disk.set_room(ROOM));
        self.disks = disks;
        self.senders().forget();
        self.truth().go_back(&kept, doubles);
        Ok(())
    }

    fn start(&mut self) -> Result<(), Told> {
        let process = loop {
            match Process::start(self.setup, opened(&self.disks), &self.clock, &self.failing) {
                Ok(process) => break process,
                Err(error) => {
                    self.note(format!("not started: {error}"));
                    self.disks.iter().for_each(|disk| {
                        disk.fail_after(u64::MAX);
                        disk.set_room(ROOM);
                    });
                }
            }
        };
        let (disks, stop) = (self.disks.clone(), Arc::clone(&process.stop));
        self.failing.begin(Box::new(move || {
            // A dead process writes nothing more.
            disks.iter().for_each(|disk| disk.fail_after(0));
            stop.ask(Duration::ZERO);
        }));
        if let Some(door) = &process.door {
            self.senders().set_door(door);
        }
        self.process = Some(process);
        Ok(())
    }

    /// Replays or discards what is in quarantine, as an operator would.
    fn operate(&mut self) {
        let Some(process) = &self.process else { return };
        let what = if self.random.below(3) == 0 { Clearing::Discard } else { Clearing::Replay };
        if what == Clearing::Discard {
            let Ok(all) = inventory(&process.reader, LANES) else { return };
            let numbers: Vec<i64> = all.quarantined.iter().flat_map(|(_, offer)| numbers_of(&offer.body)).collect();
            self.truth().set(&numbers, Fate::MayBeDiscarded);
        }
        let done = process.spool.clear(what, Span::ALL).now_or_never();
        self.note(format!("{what:?}: {done:?}"));
    }

    /// Changes a table of the database for a while: it refuses some records, or has another name.
    fn meddle(&mut self) {
        let Ok(Some(other)) = self.failing.other() else { return };
        let tables = if self.is_meddled_with { record_tables(&other) } else { Vec::new() };
        if tables.is_empty() {
            return;
        }
        let table = tables[self.random.below(tables.len() as u64) as usize].clone();
        let (done, undone) = if self.random.below(2) == 0 {
            let of = 2 + self.random.below(6);
            (
                format!(
                    "CREATE TRIGGER \"refuses {table}\" BEFORE INSERT ON \"{table}\" WHEN NEW.time_ns % {of} = 1 \
                     BEGIN SELECT RAISE(ABORT, 'not this one'); END"
                ),
                format!("DROP TRIGGER IF EXISTS \"refuses {table}\""),
            )
        } else {
            (
                format!("ALTER TABLE \"{table}\" RENAME TO \"{table} away\""),
                format!("ALTER TABLE \"{table} away\" RENAME TO \"{table}\""),
            )
        };
        drop(other);
        let is_done = self.failing.change(&done);
        self.note(format!("{done}: {is_done}"));
        if is_done {
            self.failing.count(|faults| faults.meddled += 1);
            let after = Duration::from_millis(self.random.below(60_000));
            undo_later(&self.clock, self.failing.clone(), undone, after);
        }
    }

    /// Checks everything that there is, and restarts a recorder that has ended.
    fn look(&mut self) -> Result<(), Told> {
        self.senders().listen();
        self.senders().failed()?;
        let is_broken = self.process.as_ref().is_none_or(|process| process.spool.broken().is_some());
        let failed = self.process.as_ref().and_then(Process::failed);
        if self.failing.has_killed() || is_broken || failed.is_some() {
            self.note(format!("the recorder has ended: broken {is_broken}, {failed:?}"));
            let is_power = self.random.below(2) == 0;
            self.kill(is_power)?;
        }
        self.compare(false)
    }

    fn compare(&mut self, at_end: bool) -> Result<(), Told> {
        let Some(process) = &self.process else { return Ok(()) };
        let all = match inventory(&process.reader, LANES) {
            Ok(all) if all.unreadable > 0 => return Err(format!("{} in the spool cannot be read", all.unreadable)),
            Ok(all) => all,
            Err(error) => return Err(format!("the spool cannot be read: {error}")),
        };
        let numbers = |bodies: Vec<&[u8]>| bodies.into_iter().flat_map(numbers_of).collect::<Vec<_>>();
        let stored = self.read(stored_records)?;
        let sighting = Sighting {
            stored: stored.iter().copied().filter(|(_, number)| *number <= FIRST_NUMBER).collect(),
            waiting: numbers(all.waiting.iter().map(|entry| &entry.offer.body[..]).collect()),
            quarantined: numbers(all.quarantined.iter().map(|(_, offer)| &offer.body[..]).collect()),
        };
        if let Some(neighbour) = &self.neighbour {
            lock(neighbour).compare(&stored, at_end)?;
        }
        self.faults.quarantined += sighting.quarantined.len() as u64;
        if let Some(copies) = &mut self.copies {
            copies.look(Held::of(&all));
        }
        self.truth().compare(&sighting, at_end)
    }

    /// Reads from the database, while no transaction is open.
    fn read<T>(&self, what: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, Told> {
        let Some(other) = self.failing.other()? else { return Err("a transaction is left open".to_owned()) };
        what(&other).map_err(|error| error.to_string())
    }

    /// Removes all faults, and checks that everything acknowledged comes to the database.
    fn come_to_an_end(&mut self) -> Result<(), Told> {
        self.note("nothing stands in the way any more");
        self.failing.be_well()?;
        self.clock.pass(Duration::from_secs(120));
        self.disks.iter().for_each(|disk| {
            disk.fail_after(u64::MAX);
            disk.set_room(ROOM);
        });
        self.look()?;
        for round in 0..TURNS_MAX {
            let Some(process) = &self.process else { return Ok(()) };
            let busy = process.at_work()?;
            let waits = inventory(&process.reader, LANES).map_err(|error| error.to_string())?.waiting.len();
            if waits == 0 && !self.senders().is_waiting() {
                break;
            }
            // Records without room in quarantine come back when there is some.
            if busy.is_empty() || round % 50 == 49 {
                let done = process.spool.clear(Clearing::Discard, Span::ALL);
                let Ok(all) = inventory(&process.reader, LANES) else { break };
                let numbers: Vec<i64> = all.quarantined.iter().flat_map(|(_, offer)| numbers_of(&offer.body)).collect();
                self.truth().set(&numbers, Fate::MayBeDiscarded);
                drop(done.now_or_never());
            }
            let Some(process) = &self.process else { return Ok(()) };
            for place in busy {
                process.turn(place);
                self.senders().listen();
            }
            if round + 1 == TURNS_MAX {
                return Err(format!("{waits} entries wait after {TURNS_MAX} turns"));
            }
        }
        if let Some(neighbour) = &self.neighbour {
            lock(neighbour).drain(TURNS_MAX)?;
            self.faults.records += lock(neighbour).acknowledged();
            self.faults.neighbours += 1;
        }
        self.compare(true)?;
        let acknowledged = self.truth().acknowledged();
        self.faults.records += acknowledged;
        Ok(())
    }

    fn end(&mut self) {
        self.clock.forget_plans();
        self.end_process(false);
        let neighbour = self.neighbour.take().and_then(Arc::into_inner);
        neighbour.into_iter().for_each(|one| one.into_inner().unwrap_or_else(PoisonError::into_inner).end());
    }
}
