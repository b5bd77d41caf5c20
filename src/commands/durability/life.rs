//! One life of a database: it records, something fails, it comes back, and every acknowledged record is looked for.
//!
//! Main function: [`live`]. Invariant: everything drawn follows from the life's seed.

use std::path::Path;
use std::time::{Duration, Instant};

use super::oracle::{Holds, Judged, judge};
use super::reference::{Content, Reference, holds};
use super::subject::{Back, Subject};
use super::writers::{self, Answers, Order, Writers};
use crate::database::TargetSession;
use crate::random::Stream;
use crate::server::{DiskPlan, Faults, Keeps, When};
use crate::trial::{FaultKind, Settings};
use crate::workload::{Client, Work};

/// Longest time the writers write before something fails: long enough to include what a server writes to its disk once a second.
const SERVER_WRITES: Duration = Duration::from_millis(1500);
const EMBEDDED_WRITES: Duration = Duration::from_millis(200);

/// Number of disk calls among which the moment of a failure is drawn.
pub const CALLS: u64 = 200;

/// Largest free space that is left on a disk that runs full, in bytes.
pub const ROOM_MOST: u64 = 512 << 10;

/// One read in this many has a flipped bit.
const FLIPS_ONE_IN: u64 = 50;

/// Number of connections opened to read the records, if each of them breaks again.
const ATTEMPTS: u32 = 20;

/// The result of a life.
#[derive(Debug, Clone, Default)]
pub struct Life {
    /// Number of the failure, from 1.
    pub number: u64,
    /// Description of the failure.
    pub what: String,
    /// Number of blocks and names that the disk had not synced when its power went.
    pub unsynced: u64,
    /// The judgement of the oracle.
    pub judged: Judged,
    /// Number of records that should not be there: duplicates or leftovers.
    pub duplicated: u64,
    /// Number of records of a recorder that are stored behind a later one of their source.
    pub out_of_order: u64,
    /// Whether a recorder does not promise that a record is stored once and in order.
    pub allows_duplicates: bool,
    /// Why the database did not start; `None` if it did.
    pub did_not_start: Option<String>,
    /// The first error the database reported on reading.
    pub says: Option<String>,
    /// Time until it answered again, in seconds.
    pub recovery_s: Option<f64>,
    /// Time from the acknowledgement of the first lost write to the failure, in seconds.
    pub lost_s: Option<f64>,
}

impl Life {
    /// Returns whether acknowledged records are not as promised.
    pub fn is_harmed(&self) -> bool {
        self.judged.is_harmed() || (!self.allows_duplicates && self.duplicated + self.out_of_order > 0)
    }
}

/// The circumstances of a life.
pub struct Scene<'a> {
    /// Directory for the reference.
    pub directory: &'a Path,
    /// The settings of the case.
    pub settings: &'a Settings,
    /// The work of the case.
    pub work: &'a Work,
    /// The kind of failure.
    pub fault: FaultKind,
}

/// Carries out one life.
///
/// # Errors
/// Fails if the life cannot be carried out: the server does not start before anything has failed, or a disk does not come back.
pub fn live(scene: &Scene<'_>, subject: &mut Subject, (number, seed): (u64, u64)) -> anyhow::Result<Life> {
    let mut chance = Stream::seeded(seed);
    let reach = subject.prepare(scene.work)?;
    let clock = Instant::now();
    let order = Order { settings: scene.settings.clone(), reach, seed };
    let mut writers = writers::start(&order, clock)?;
    let longest = if subject.is_embedded() { EMBEDDED_WRITES } else { SERVER_WRITES };
    let lasts = longest.mul_f64(0.1 + 0.9 * chance.unit());
    let mut life = Life { number, ..Life::default() };
    let failure = Failure { fault: scene.fault, lasts, seed: chance.word() };
    let failed = failure.happen(subject, &mut writers, &mut chance, &mut life);
    let mut written = writers.finish()?;
    let failed_ns = failed?.saturating_duration_since(clock).as_nanos() as u64;
    if scene.fault.takes_power() {
        // A machine without power reports nothing: a server that did not need its disk at that moment may have gone on until it was killed.
        let late = |answer: &&mut Option<u64>| answer.is_some_and(|answer_ns| answer_ns > failed_ns);
        written.iter_mut().flatten().filter(late).for_each(|answer| *answer = None);
    }
    look(scene, subject, &written, seed, &mut life)?;
    life.lost_s = life.judged.first_lost_ns.map(|first_ns| failed_ns.saturating_sub(first_ns) as f64 / 1e9);
    Ok(life)
}

/// The kind and time of a failure.
struct Failure {
    fault: FaultKind,
    lasts: Duration,
    seed: u64,
}

impl Failure {
    /// Makes the failure happen and returns when it was.
    fn happen(
        &self,
        subject: &mut Subject,
        writers: &mut Writers,
        chance: &mut Stream,
        life: &mut Life,
    ) -> anyhow::Result<Instant> {
        let nothing = DiskPlan { seed: self.seed, ..DiskPlan::default() };
        match self.fault {
            FaultKind::Power => {
                let (keeps, kept) = draw_kept(chance);
                let (when, moment) = draw_moment(chance);
                let plan = DiskPlan { when, keeps, ..nothing };
                subject.disk()?.plan(plan);
                writers.begin()?;
                let cut = subject.lose_power(plan, self.lasts, writers)?;
                let moment = if cut.is_as_planned { &moment } else { "at a random moment" };
                (life.what, life.unsynced) = (format!("{moment}, {kept} kept"), cut.unsynced);
                Ok(cut.at)
            }
            FaultKind::Kill => {
                writers.begin()?;
                std::thread::sleep(self.lasts);
                life.what = "killed".to_owned();
                let at = Instant::now();
                subject.kill(writers)?;
                Ok(at)
            }
            FaultKind::Eio => {
                let (faults, what) = draw_faults(chance);
                subject.disk()?.plan(DiskPlan { faults, ..nothing });
                writers.begin()?;
                std::thread::sleep(self.lasts);
                let cut = subject.lose_power(nothing, Duration::ZERO, writers)?;
                (life.what, life.unsynced) = (what, cut.unsynced);
                Ok(cut.at)
            }
            FaultKind::Enospc => {
                let room = subject.disk()?.used_bytes() + chance.below(ROOM_MOST);
                subject.disk()?.plan(DiskPlan { faults: Faults { room: Some(room), ..Faults::default() }, ..nothing });
                writers.begin()?;
                std::thread::sleep(self.lasts.mul_f64(0.7));
                subject.disk()?.plan(nothing);
                std::thread::sleep(self.lasts.mul_f64(0.3));
                let cut = subject.lose_power(nothing, Duration::ZERO, writers)?;
                (life.what, life.unsynced) = ("the disk was full for a while".to_owned(), cut.unsynced);
                Ok(cut.at)
            }
            FaultKind::Bits => {
                writers.begin()?;
                std::thread::sleep(self.lasts);
                let at = Instant::now();
                writers.end()?;
                subject.stop_in_order()?;
                let faults = Faults { flips_one_in: Some(FLIPS_ONE_IN), ..Faults::default() };
                subject.forget_cached()?;
                subject.disk()?.plan(DiskPlan { faults, ..nothing });
                life.what = "bits flipped by reading".to_owned();
                Ok(at)
            }
            // Refused before anything is started: a database is its own store.
            FaultKind::Store => anyhow::bail!("a database has no store behind it"),
        }
    }
}

const KEEPS: [(Keeps, &str); 4] = [
    (Keeps::Nothing, "nothing"),
    (Keeps::Sectors, "sectors"),
    (Keeps::Blocks, "blocks"),
    (Keeps::Prefix, "what came first"),
];

/// Draws which part of its unsynced data the disk keeps, with its name.
pub fn draw_kept(chance: &mut Stream) -> (Keeps, &'static str) {
    KEEPS[chance.below(KEEPS.len() as u64) as usize]
}

/// Draws when the power goes: at a random time, or at a disk call if there are that many by then.
pub fn draw_moment(chance: &mut Stream) -> (When, String) {
    let call = 1 + chance.below(CALLS);
    match chance.below(6) {
        0 => (When::BeforeSync(call), format!("before sync {call}")),
        1 => (When::AfterSync(call), format!("after sync {call}")),
        2 => (When::BeforeWrite(call), format!("before write {call}")),
        _ => (When::Told, "at a random moment".to_owned()),
    }
}

/// Draws which call of the disk fails, once or from then on, and describes it.
pub fn draw_faults(chance: &mut Stream) -> (Faults, String) {
    let call = 1 + chance.below(CALLS);
    let is_for_ever = chance.below(2) == 0;
    let all = Faults { is_for_ever, ..Faults::default() };
    let (faults, what) = match chance.below(3) {
        0 => (Faults { failing_sync: Some(call), ..all }, "sync"),
        1 => (Faults { failing_write: Some(call), ..all }, "write"),
        _ => (Faults { failing_read: Some(call), ..all }, "read"),
    };
    let ever = if is_for_ever { ", and all behind it" } else { "" };
    (faults, format!("{what} {call} failed{ever}"))
}

/// Starts the database on what the failure has left, and looks for every acknowledged record.
fn look(scene: &Scene<'_>, subject: &mut Subject, written: &Answers, seed: u64, life: &mut Life) -> anyhow::Result<()> {
    let of = scene.settings.load.clients;
    match subject.start_again()? {
        Back::Answers(after) => life.recovery_s = Some(after.as_secs_f64()),
        Back::Silent(why) => life.did_not_start = Some(why),
    }
    let mut reference = Reference::new(scene.directory, scene.settings)?;
    let mut looker = Looker { subject, work: scene.work, session: None, attempts: ATTEMPTS, says: None };
    for (number, answers) in (0_u32..).zip(written) {
        let sent = reference.sent(Client { number, of, seed }, answers)?;
        if life.did_not_start.is_some() {
            life.judged.acknowledged += judge(&sent, |_| Holds::Nothing).acknowledged;
            continue;
        }
        life.judged = life.judged.and(judge(&sent, |record| looker.holds(record)));
    }
    if life.did_not_start.is_none() {
        let known = life.judged.there + life.judged.unreadable;
        life.duplicated = looker.count().map_or(0, |rows| rows.saturating_sub(known));
    }
    life.says = looker.says;
    Ok(())
}

/// Reads records over a connection, and opens a new one after an error that ended it.
struct Looker<'a> {
    subject: &'a mut Subject,
    work: &'a Work,
    session: Option<Box<dyn TargetSession>>,
    /// Number of connections that may still be opened, so that a database that refuses connections is not asked for every record.
    attempts: u32,
    says: Option<String>,
}

impl Looker<'_> {
    fn holds(&mut self, record: u64) -> Holds<Content> {
        if self.session.is_none() && self.attempts > 0 {
            self.attempts -= 1;
            match self.subject.open(self.work) {
                Ok(session) => self.session = Some(session),
                Err(error) => return self.unreadable(error.to_string()),
            }
        }
        let Some(session) = &mut self.session else { return Holds::Unreadable };
        match holds(&mut **session, self.work, record) {
            Ok(holds) => holds,
            Err(error) => {
                if error.is_lost() {
                    self.session = None;
                }
                self.unreadable(error.to_string())
            }
        }
    }

    fn unreadable(&mut self, why: String) -> Holds<Content> {
        self.says.get_or_insert(why);
        Holds::Unreadable
    }

    /// Returns the number of records by the rows of the tables; `None` if they cannot be counted.
    fn count(&mut self) -> Option<u64> {
        let table = self.work.record_table()?.to_owned();
        let rows = self.session.as_mut()?.count_rows(&table).ok()??;
        rows.checked_div(self.work.rows_per_record())
    }
}
