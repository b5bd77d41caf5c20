//! Commits that the database may forget: up to which entry, since when, and where the database's log stood. Main type: [`Kept`], pure
//! except for the counter that it reports to.
//!
//! Invariant: an entry is settled only when it is old enough and, if the database tells how far its log is durable, the log is durable beyond it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::database::LogPosition;
use crate::recorder::meter::Meter;

/// Commits within this fraction of the keeping time are treated as one.
const MARKS: u32 = 20;
/// The shortest time between two looks at the log.
const LOOK_EVERY_LEAST: Duration = Duration::from_millis(50);

/// The commits of a lane that are kept.
pub(super) struct Kept {
    marks: VecDeque<Mark>,
    looked: Instant,
    meter: Arc<Meter>,
}

/// Commits that are settled together.
struct Mark {
    through: i64,
    rows: u64,
    /// The times of the first commit and of the last.
    begun: Instant,
    at: Instant,
    /// The position of the log after the last commit; `None` until the log was looked at.
    position: Option<u64>,
}

impl Kept {
    pub(super) fn new(meter: Arc<Meter>, now: Instant) -> Self {
        Kept { marks: VecDeque::new(), looked: now, meter }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// Notes that everything up to this entry is committed now.
    pub(super) fn add(&mut self, through: i64, rows: u64, keep: Duration, now: Instant) {
        self.meter.kept_rows.add(rows);
        match self.marks.back_mut().filter(|mark| now.duration_since(mark.begun) < keep / MARKS) {
            Some(mark) => {
                (mark.through, mark.at, mark.position) = (through, now, None);
                mark.rows += rows;
            }
            None => self.marks.push_back(Mark { through, rows, begun: now, at: now, position: None }),
        }
    }

    /// Forgets all commits: nothing is known of them any more.
    pub(super) fn clear(&mut self) {
        self.meter.kept_rows.subtract(self.marks.drain(..).map(|mark| mark.rows).sum());
    }

    /// Returns whether the log is to be looked at now.
    pub(super) fn wants_look(&self, keep: Duration, now: Instant) -> bool {
        !self.marks.is_empty() && now.duration_since(self.looked) >= (keep / MARKS).max(LOOK_EVERY_LEAST)
    }

    /// Takes the log's position after all commits so far; returns the entry up to which nothing can be forgotten any more.
    pub(super) fn give_back(&mut self, log: Option<LogPosition>, keep: Duration, now: Instant) -> Option<i64> {
        self.looked = now;
        let mut through = None;
        for mark in &mut self.marks {
            mark.position = mark.position.or(log.map(|log| log.written));
        }
        while let Some(mark) = self.marks.front() {
            let is_durable = log.is_none_or(|log| mark.position.is_some_and(|position| position <= log.durable));
            if !is_durable || now.duration_since(mark.at) < keep {
                break;
            }
            through = Some(mark.through);
            self.meter.kept_rows.subtract(mark.rows);
            self.marks.pop_front();
        }
        through
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_given_back_when_it_is_old_and_the_log_is_on_the_disk_beyond_it() {
        let (begun, keep) = (Instant::now(), Duration::from_secs(10));
        let at = |seconds: f64| begun + Duration::from_secs_f64(seconds);
        let log = |written, durable| Some(LogPosition { written, durable });
        let meter = Arc::new(Meter::default());
        let mut kept = Kept::new(Arc::clone(&meter), begun);
        kept.add(3, 30, keep, at(0.0));
        assert!(!kept.wants_look(keep, at(0.1)) && kept.wants_look(keep, at(0.5)));
        assert_eq!(kept.give_back(log(100, 0), keep, at(1.0)), None);
        kept.add(5, 20, keep, at(2.0));
        assert_eq!(meter.kept_rows.get(), 50);
        assert_eq!(kept.give_back(log(200, 150), keep, at(9.9)), None, "it is too young");
        assert_eq!(kept.give_back(log(300, 150), keep, at(10.0)), Some(3));
        assert_eq!(
            kept.give_back(log(300, 199), keep, at(60.0)),
            None,
            "the log is not on the disk, however old it is"
        );
        assert_eq!(kept.give_back(log(300, 200), keep, at(60.0)), Some(5));
        assert_eq!((kept.is_empty(), meter.kept_rows.get()), (true, 0));
    }

    #[test]
    fn commits_that_follow_each_other_are_one_and_as_old_as_the_last() {
        let (begun, keep) = (Instant::now(), Duration::from_secs(1));
        let meter = Arc::new(Meter::default());
        let mut kept = Kept::new(Arc::clone(&meter), begun);
        for millis in 0..10_000_u64 {
            kept.add(millis as i64, 1, keep, begun + Duration::from_millis(millis));
        }
        assert!(kept.marks.len() <= 210, "{}", kept.marks.len());
        let through = kept.give_back(None, keep, begun + Duration::from_millis(9_999));
        assert!(through.is_some_and(|through| (8_900..=8_999).contains(&through)), "{through:?}");
        kept.clear();
        assert_eq!(meter.kept_rows.get(), 0);
    }
}
