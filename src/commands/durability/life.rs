//! One life of a database: it records, something fails, it comes back, and every acknowledged record is looked for.
//!
//! Main function: [`live`]. Invariant: everything drawn follows from the life's seed.

use std::path::Path;
use std::time::{Duration, Instant};

use super::failure::{Cut, Failing, Failure, Happened};
use super::oracle::{Holds, Judged, judge};
use super::reference::{Content, Reference, holds};
use super::subject::{Back, Subject};
use super::writers::{self, Answers, Order, Writers};
use crate::database::TargetSession;
use crate::random::Stream;
use crate::server::{DiskPlan, PowerDisk};
use crate::trial::{FaultKind, Settings};
use crate::workload::{Client, Work};

/// Longest time the writers write before something fails: long enough to include what a server writes to its disk once a second.
const SERVER_WRITES: Duration = Duration::from_millis(1500);
const EMBEDDED_WRITES: Duration = Duration::from_millis(200);

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
    /// Whether everything on the disk is synced before records are written.
    pub sync_first: bool,
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
    if scene.sync_first {
        subject.disk()?.sync_all()?;
    }
    let longest = if subject.is_embedded() { EMBEDDED_WRITES } else { SERVER_WRITES };
    let lasts = longest.mul_f64(0.1 + 0.9 * chance.unit());
    let mut life = Life { number, ..Life::default() };
    let failure = Failure { fault: scene.fault, lasts, seed: chance.word() };
    let mut failing = Written { subject, writers: &mut writers };
    let failed = failure.happen(&mut failing, &mut chance);
    let mut written = writers.finish()?;
    let Happened { at, what, unsynced } = failed?;
    (life.what, life.unsynced) = (what, unsynced);
    let failed_ns = at.saturating_duration_since(clock).as_nanos() as u64;
    if scene.fault.takes_power() {
        // A machine without power reports nothing: a server that did not need its disk at that moment may have gone on until it was killed.
        let late = |answer: &&mut Option<u64>| answer.is_some_and(|answer_ns| answer_ns > failed_ns);
        written.iter_mut().flatten().filter(late).for_each(|answer| *answer = None);
    }
    look(scene, subject, &written, seed, &mut life)?;
    life.lost_s = life.judged.first_lost_ns.map(|first_ns| failed_ns.saturating_sub(first_ns) as f64 / 1e9);
    Ok(life)
}

/// A database with its writers.
struct Written<'a> {
    subject: &'a mut Subject,
    writers: &'a mut Writers,
}

impl Failing for Written<'_> {
    fn disk(&self) -> anyhow::Result<&PowerDisk> {
        self.subject.disk()
    }

    fn begin(&mut self) -> anyhow::Result<()> {
        self.writers.begin()
    }

    fn lose_power(&mut self, plan: DiskPlan) -> anyhow::Result<Cut> {
        self.subject.lose_power(plan, self.writers)
    }

    fn kill(&mut self) -> anyhow::Result<()> {
        self.subject.kill(self.writers)
    }

    fn stop_and_forget(&mut self) -> anyhow::Result<()> {
        self.writers.end()?;
        self.subject.stop_in_order()?;
        self.subject.forget_cached()
    }

    /// Refused before anything is started.
    fn lose_store(&mut self, _: &mut Stream) -> anyhow::Result<String> {
        anyhow::bail!("a database has no store behind it")
    }
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
