//! A lane whose turns are run one by one by its owner. Main type: [`Stepped`].

use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

use super::feed::{Direct, DirectHandle, queue};
use super::lane::{IDLE, Lane, LaneSettings};
use super::leave::{LaneEnd, Leave};
use super::spooled::Course;
use super::turns::Waiting;
use crate::recorder::clock::SharedClock;
use crate::recorder::spool::Reader;

/// The source of the lane's entries.
enum Fed {
    Spool(Reader, Course),
    Intake(mpsc::Receiver<Direct>, Waiting),
}

/// A lane between two of its turns.
pub struct Stepped {
    lane: Lane,
    fed: Fed,
}

impl Stepped {
    /// Returns a lane that is fed by the spool, and not connected yet.
    pub fn new(settings: LaneSettings) -> Self {
        let reader = settings.reader.clone();
        let mut lane = Lane::new(settings);
        lane.feed_from_spool();
        Stepped { lane, fed: Fed::Spool(reader, Course::default()) }
    }

    /// Returns a lane that is fed by the intake, and the handle that offers are given to.
    pub fn direct(settings: LaneSettings) -> (Self, DirectHandle) {
        let (receiver, handle) = queue(SharedClock::clone(&settings.clock));
        (Stepped { lane: Lane::new(settings), fed: Fed::Intake(receiver, Waiting::default()) }, handle)
    }

    /// Runs the next turn; returns how the lane has ended, if it has.
    pub fn turn(&mut self) -> Option<LaneEnd> {
        let turned = match &mut self.fed {
            Fed::Spool(reader, course) => self.lane.turn(reader, course),
            Fed::Intake(receiver, waiting) => turn_directly(&mut self.lane, receiver, waiting),
        };
        let ended = match turned {
            Ok(end) => end?,
            Err(leave) => LaneEnd::of(Err(leave)),
        };
        self.lane.disconnect();
        Some(ended)
    }
}

fn turn_directly(
    lane: &mut Lane,
    receiver: &mut mpsc::Receiver<Direct>,
    waiting: &mut Waiting,
) -> Result<Option<LaneEnd>, Leave> {
    if lane.settings.stop.is_over() {
        return Ok(Some(LaneEnd::Stopped));
    }
    let mut is_closed = false;
    if waiting.is_empty() {
        match receiver.try_recv() {
            Ok(first) => waiting.add(first),
            Err(TryRecvError::Disconnected) => is_closed = true,
            Err(TryRecvError::Empty) => lane.settings.clock.sleep(IDLE),
        }
    }
    lane.turn_directly(receiver, waiting, is_closed)
}
