//! The workload `replay`: the statements of a trace, each at its own time and over the connection of its session.
//!
//! Main type: `Replaying`. Invariant: in the measured phase each statement is sent exactly once, those of a session in order.

use std::sync::Arc;

use super::sql::OwnSteps;
use super::{Client, Entry, Workload};
use crate::layout::Access;
use crate::operation::Operation;
use crate::record::Cells;
use crate::statement::{Expect, Program, SqlForm, Statement};
use crate::trace::{Event, Replay, Sent};
use crate::trial::Settings;

/// Registry entry.
pub(super) static REPLAY: Entry = Entry {
    name: "replay",
    summary: "the statements of a trace that loadline capture made, each at its own time, as fast as workload.speed says",
    needs_tables: false,
    keeps_records: false,
    access: |_, _| Ok(Access::default()),
    build: |settings, client| Ok(Box::new(Replaying::new(settings, client)?)),
};

/// Adds the statements of the trace to those that connections prepare, and to `how` the steps that execute each.
pub(super) fn add_statements(settings: &Settings, program: &mut Program, how: &mut Vec<OwnSteps>) {
    let Some(replay) = &settings.workload.replayed.0 else { return };
    for (statement, is_prepared) in replay.trace.statements.iter().zip(&replay.is_prepared) {
        let place = program.statements.len() as u16;
        let (sql, form) = (statement.sql.clone(), if *is_prepared { SqlForm::Either } else { SqlForm::Text });
        program.statements.push(Statement::Sql { sql, allow_empty: true, form });
        how.push(OwnSteps { steps: vec![(place, Expect::Anything, statement.parameters)], carries: Vec::new() });
    }
}

/// The statements of one connection. The warm-up sends the read-only statements in the beginning of the trace; then all are sent from the beginning.
struct Replaying {
    replay: Arc<Replay>,
    connection: usize,
    /// Index of the next statement among those of the connection.
    place: usize,
    is_warming_up: bool,
    /// Number of times that the trace was sent, and number of times to send it.
    passed: u32,
    passes: u32,
    /// Nanoseconds of the trial per microsecond of the trace.
    ns_per_us: f64,
    warmup_ns: f64,
}

impl Replaying {
    fn new(settings: &Settings, client: Client) -> Result<Self, String> {
        let (Some(replay), Some(load)) = (&settings.workload.replayed.0, settings.load.replay) else {
            return Err("workload \"replay\" needs a trace; write workload.trace = \"FILE\"".to_owned());
        };
        let speed = load.speed(settings.load.rate_per_s);
        let mut replaying = Replaying {
            replay: Arc::clone(replay),
            connection: client.number as usize,
            place: 0,
            is_warming_up: true,
            passed: 0,
            passes: load.passes.unwrap_or(1),
            ns_per_us: 1e3 / speed,
            warmup_ns: settings.load.warmup_s * 1e9,
        };
        replaying.settle();
        Ok(replaying)
    }

    fn next_sent(&self) -> Option<(&Event, Sent)> {
        self.replay.sent(self.connection, self.place)
    }

    /// Moves on to the next statement that may be sent in the warm-up; if there is none, ends the warm-up.
    fn settle(&mut self) {
        while self.is_warming_up {
            match self.next_sent() {
                Some((event, _)) if event.at_us as f64 * self.ns_per_us < self.warmup_ns => {
                    if self.replay.only_reads(event) {
                        return;
                    }
                    self.place += 1;
                }
                _ => (self.is_warming_up, self.place) = (false, 0),
            }
        }
        if self.next_sent().is_none() && self.passed + 1 < self.passes {
            (self.passed, self.place) = (self.passed + 1, 0);
        }
    }

    fn advance(&mut self) {
        self.place += 1;
        self.settle();
    }

    fn operation(&self, event: &Event) -> Operation {
        let kind = self.replay.kinds.get(usize::from(event.statement)).copied().unwrap_or_default();
        Operation::Replayed { statement: event.statement, kind }
    }
}

impl Workload for Replaying {
    #[inline]
    fn next(&mut self, parameters: &mut Cells) -> Operation {
        // A client asks only after it was told when the next statement is due, so there is one.
        let Some((event, _)) = self.next_sent() else { return Operation::Replayed { statement: 0, kind: 0 } };
        self.replay.trace.append_values(event, parameters);
        let operation = self.operation(event);
        self.advance();
        operation
    }

    #[inline]
    fn due_ns(&self) -> Option<i64> {
        let (event, _) = self.next_sent()?;
        let before_us = u64::from(self.passed) * self.replay.span_us;
        let due_ns = (before_us + event.at_us) as f64 * self.ns_per_us;
        Some(if self.is_warming_up { due_ns - self.warmup_ns } else { due_ns } as i64)
    }

    fn is_inside(&self) -> bool {
        !self.is_warming_up && self.next_sent().is_some_and(|(_, sent)| sent.is_inside)
    }

    fn pass_over(&mut self) -> Option<Operation> {
        let (event, _) = self.next_sent()?;
        let operation = self.operation(event);
        self.advance();
        Some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::Trace;
    use crate::trial::{ReplayLoad, Replayed};

    /// Statements 0 to 2 read, begin and end.
    fn trace() -> Trace {
        let lines = [
            r#"{"loadline_trace":1}"#,
            r#"{"statement":0,"name":"r","sql":"SELECT ?","does":"reads"}"#,
            r#"{"statement":1,"name":"b","sql":"BEGIN","does":"begins"}"#,
            r#"{"statement":2,"name":"e","sql":"COMMIT","does":"ends"}"#,
            "[0,1,0,[7]]",
            "[1000,1,1,[]]",
            "[2000,1,0,[8]]",
            "[3000,1,2,[]]",
            "[4000,2,0,[9]]",
        ];
        let mut sum = crate::trace::Sum::default();
        lines.iter().for_each(|line| sum.add(line.as_bytes()));
        let end = serde_json::to_string(&crate::trace::End { events: 5, sum: sum.shown() }).unwrap();
        Trace::read(&mut format!("{}\n{end}\n", lines.join("\n")).as_bytes()).unwrap()
    }

    /// Returns for each statement when it is due, in microseconds, its number and its values.
    fn sent(speed: f64, warmup_s: f64, passes: u32) -> Vec<(i64, u16, Vec<String>)> {
        let replay = Replay::of(Arc::new(trace()), None, false).unwrap();
        assert_eq!((replay.connections.len(), replay.span_us), (1, 5001), "one session after the other");
        let mut settings = Settings::default();
        let load = ReplayLoad { statements: 5, seconds: 0.005, least_s: None, passes: Some(passes) };
        (settings.load.replay, settings.load.warmup_s) = (Some(load), warmup_s);
        settings.load.rate_per_s = Some(1_000.0 * speed);
        settings.workload.replayed = Replayed(Some(Arc::new(replay)));
        let mut workload = Replaying::new(&settings, Client { number: 0, of: 1, seed: 1 }).unwrap();
        let mut sent = Vec::new();
        while let Some(due_ns) = workload.due_ns() {
            let mut cells = Cells::new();
            let Operation::Replayed { statement, .. } = workload.next(&mut cells) else { panic!() };
            let values = cells.as_slice().iter().map(|cell| cells.to_json(*cell).to_string()).collect();
            sent.push((due_ns / 1_000, statement, values));
        }
        sent
    }

    fn value(text: &str) -> Vec<String> {
        vec![text.to_owned()]
    }

    #[test]
    fn each_is_sent_once_at_its_time() {
        let right =
            [(0, 0, value("7")), (500, 1, vec![]), (1_000, 0, value("8")), (1_500, 2, vec![]), (2_000, 0, value("9"))];
        assert_eq!(sent(2.0, 0.0, 1), right);
    }

    #[test]
    fn the_warm_up_sends_what_reads_in_the_beginning() {
        let sent = sent(1.0, 0.0025, 1);
        assert_eq!(sent[..3], [(-2_500, 0, value("7")), (-500, 0, value("8")), (0, 0, value("7"))]);
        assert_eq!(sent.len(), 7);
    }

    #[test]
    fn a_trace_that_is_sent_again_goes_on_where_it_ended() {
        let sent = sent(1.0, 0.0, 3);
        assert_eq!(sent.len(), 15);
        assert_eq!(sent[5..7], [(5_001, 0, value("7")), (6_001, 1, vec![])]);
        assert_eq!(sent[14], (14_002, 0, value("9")));
    }
}
