//! YCSB's status lines (`-s`): the number of operations after a number of seconds.
//!
//! Main type: [`Status`]. Invariant: intervals end one after the other, and their operations add up to those of the last line.

use crate::measurement::IntervalMeasurement;

/// A status line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Status {
    /// Whole seconds since the start.
    pub at_s: f64,
    /// Number of operations since the start.
    pub operations: u64,
}

impl Status {
    /// Parses a line such as `2026-11-21 08:00:10:123 10 sec: 5000 operations; 500 current ops/sec; [READ: Count=...]`; `None` for another line.
    pub fn of_line(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" sec: ")?;
        let at_s = before.rsplit(' ').next()?.parse::<u64>().ok()?;
        let operations = after.split_once(" operations;")?.0.parse().ok()?;
        Some(Status { at_s: at_s as f64, operations })
    }
}

/// Returns the intervals between status lines. Response times stay 0: the times in the lines begin at sending.
pub fn series(lines: &[Status]) -> Vec<IntervalMeasurement> {
    let mut series: Vec<IntervalMeasurement> = Vec::new();
    let (mut operations, mut at_s) = (0, 0.0);
    for line in lines.iter().filter(|line| line.at_s > 0.0) {
        let done = line.operations.saturating_sub(operations);
        match series.last_mut().filter(|_| line.at_s <= at_s) {
            Some(last) => (last.completed, last.scheduled) = (last.completed + done, last.scheduled + done),
            None => series.push(IntervalMeasurement {
                end_s: line.at_s,
                scheduled: done,
                completed: done,
                ..IntervalMeasurement::default()
            }),
        }
        (operations, at_s) = (operations.max(line.operations), at_s.max(line.at_s));
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_add_up_and_the_last_line_of_a_second_belongs_to_it() {
        let lines = [
            "2026-11-21 08:00:00:001 0 sec: 0 operations; est completion in 0 second ",
            "2026-11-21 08:00:10:001 10 sec: 400 operations; 40 current ops/sec; est completion in 1 minute [READ: Count=400, Max=9]",
            "label 2026-11-21 08:00:20:001 20 sec: 900 operations; 50 current ops/sec; ",
            "2026-11-21 08:00:20:101 20 sec: 1000 operations; 100 current ops/sec; ",
        ];
        let status: Vec<Status> = lines.iter().filter_map(|line| Status::of_line(line)).collect();
        assert_eq!(status.len(), 4);
        let series = series(&status);
        assert_eq!(
            series.iter().map(|each| (each.end_s, each.completed)).collect::<Vec<_>>(),
            [(10.0, 400), (20.0, 600)]
        );
        assert_eq!(Status::of_line("something in 3 sec: later"), None);
    }
}
