//! Failures of what has a disk: a database or a recorder under load.
//!
//! Main type: [`Failure`]; [`Failing`] is what it happens to. Invariant: everything drawn follows from the failure's seed and the stream of its life.

use std::time::{Duration, Instant};

use crate::random::Stream;
use crate::server::{DiskPlan, Faults, Keeps, PowerDisk, When};
use crate::trial::FaultKind;

/// Number of disk calls among which the moment of a failure is drawn.
const CALLS: u64 = 200;

/// Largest free space that is left on a disk that runs full, in bytes.
const ROOM_MOST: u64 = 512 << 10;

/// One read in this many has a flipped bit.
const FLIPS_ONE_IN: u64 = 50;

const KEEPS: [(Keeps, &str); 4] = [
    (Keeps::Nothing, "nothing"),
    (Keeps::Sectors, "sectors"),
    (Keeps::Blocks, "blocks"),
    (Keeps::Prefix, "what came first"),
];

/// A power cut that has happened.
pub struct Cut {
    /// When the power went.
    pub at: Instant,
    /// Number of blocks and names that the disk had not synced.
    pub unsynced: u64,
}

/// A failure that has happened.
pub struct Happened {
    /// When it was.
    pub at: Instant,
    /// Description.
    pub what: String,
    /// Number of blocks and names that the disk had not synced; 0 where it kept its power.
    pub unsynced: u64,
}

/// A thing under load whose disk or processes can fail.
pub trait Failing {
    /// Returns the disk that holds its data.
    ///
    /// # Errors
    /// Fails if the data is on no disk that can fail.
    fn disk(&self) -> anyhow::Result<&PowerDisk>;

    /// Lets the load begin.
    ///
    /// # Errors
    /// Fails if there is no load.
    fn begin(&mut self) -> anyhow::Result<()>;

    /// Cuts the power of the disk, if the plan has not cut it already, kills all processes that use it, and restores it.
    ///
    /// # Errors
    /// Fails if the disk does not come back.
    fn lose_power(&mut self, plan: DiskPlan) -> anyhow::Result<Cut>;

    /// Kills its processes; the disk stays as it is.
    ///
    /// # Errors
    /// Fails if they do not end.
    fn kill(&mut self) -> anyhow::Result<()>;

    /// Ends the load, stops it in order, and makes the kernel drop what it has cached of the disk.
    ///
    /// # Errors
    /// Fails if it does not end, or a file is still open.
    fn stop_and_forget(&mut self) -> anyhow::Result<()>;

    /// Takes the store behind it away for a while; it goes on meanwhile. Describes what was done.
    ///
    /// # Errors
    /// Fails if there is no store behind it, or it does not come back.
    fn lose_store(&mut self, chance: &mut Stream) -> anyhow::Result<String>;
}

/// The kind and time of a failure.
pub struct Failure {
    /// The kind.
    pub fault: FaultKind,
    /// How long the load lasts before it.
    pub lasts: Duration,
    /// The seed of what the disk keeps.
    pub seed: u64,
}

impl Failure {
    /// Begins the load and makes the failure happen.
    ///
    /// # Errors
    /// The errors of [`Failing`].
    pub fn happen(&self, to: &mut dyn Failing, chance: &mut Stream) -> anyhow::Result<Happened> {
        let nothing = DiskPlan { seed: self.seed, ..DiskPlan::default() };
        let (plan, what) = match self.fault {
            FaultKind::Power => {
                let (keeps, kept) = KEEPS[chance.below(KEEPS.len() as u64) as usize];
                let (when, moment) = draw_moment(chance);
                let plan = DiskPlan { when, keeps, ..nothing };
                to.disk()?.plan(plan);
                to.begin()?;
                let is_as_planned = when != When::Told && to.disk()?.wait_until_off(self.lasts);
                if when == When::Told {
                    std::thread::sleep(self.lasts);
                }
                let moment = if is_as_planned { &moment } else { "at a random moment" };
                (plan, format!("{moment}, {kept} kept"))
            }
            FaultKind::Eio => {
                let (faults, what) = draw_faults(chance);
                to.disk()?.plan(DiskPlan { faults, ..nothing });
                to.begin()?;
                std::thread::sleep(self.lasts);
                (nothing, what)
            }
            FaultKind::Enospc => {
                let room = to.disk()?.used_bytes() + chance.below(ROOM_MOST);
                to.disk()?.plan(DiskPlan { faults: Faults { room: Some(room), ..Faults::default() }, ..nothing });
                to.begin()?;
                std::thread::sleep(self.lasts.mul_f64(0.7));
                to.disk()?.plan(nothing);
                std::thread::sleep(self.lasts.mul_f64(0.3));
                (nothing, "the disk was full for a while".to_owned())
            }
            FaultKind::Kill | FaultKind::Bits | FaultKind::Store => return self.happen_on(to, chance),
        };
        let Cut { at, unsynced } = to.lose_power(plan)?;
        Ok(Happened { at, what, unsynced })
    }

    /// Makes a failure happen that takes no power.
    fn happen_on(&self, to: &mut dyn Failing, chance: &mut Stream) -> anyhow::Result<Happened> {
        to.begin()?;
        std::thread::sleep(self.lasts);
        let at = Instant::now();
        let what = match self.fault {
            FaultKind::Store => to.lose_store(chance)?,
            FaultKind::Bits => {
                to.stop_and_forget()?;
                let faults = Faults { flips_one_in: Some(FLIPS_ONE_IN), ..Faults::default() };
                to.disk()?.plan(DiskPlan { faults, seed: self.seed, ..DiskPlan::default() });
                "bits flipped by reading".to_owned()
            }
            _ => {
                to.kill()?;
                "killed".to_owned()
            }
        };
        Ok(Happened { at, what, unsynced: 0 })
    }
}

/// Draws when the power goes: at a random time, or at a disk call if there are that many by then.
fn draw_moment(chance: &mut Stream) -> (When, String) {
    let call = 1 + chance.below(CALLS);
    match chance.below(6) {
        0 => (When::BeforeSync(call), format!("before sync {call}")),
        1 => (When::AfterSync(call), format!("after sync {call}")),
        2 => (When::BeforeWrite(call), format!("before write {call}")),
        _ => (When::Told, "at a random moment".to_owned()),
    }
}

/// Draws which call of the disk fails, once or from then on, and describes it.
fn draw_faults(chance: &mut Stream) -> (Faults, String) {
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
