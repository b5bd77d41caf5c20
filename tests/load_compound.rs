//! Operations of two parts in the load engine: a read and the update that follows it at once are reported apart and together, count
//! once, and are never lost.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod quiet;

use std::collections::BTreeMap;

use loadline::database::{self, DatabaseError, Target, TargetSession};
use loadline::load::{Connections, Observed, Observer, Source, drive};
use loadline::measurement::OperationMeasurement;
use loadline::operation::{Fields, Operation, OperationKind};
use loadline::statement::{Expect, Request, Step};
use loadline::trial::{Arrivals, DatabaseSettings, Length, LoadSettings};
use quiet::in_a_quiet_moment;

/// A plain read and a read-modify-write in turn.
#[derive(Default)]
struct Turns {
    begun: u64,
    rewrites: bool,
}

fn push(request: &mut Request, expect: Expect) {
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect });
}

impl Source for Turns {
    fn next(&mut self, request: &mut Request) -> Operation {
        self.begun += 1;
        self.rewrites = self.begun.is_multiple_of(2);
        push(request, Expect::Rows);
        Operation::Read { record: self.begun }
    }

    fn compound(&self) -> Option<OperationKind> {
        self.rewrites.then_some(OperationKind::ReadModifyWrite)
    }

    fn done(&mut self, succeeded: bool, request: &mut Request) -> Option<Operation> {
        if !std::mem::take(&mut self.rewrites) || !succeeded {
            return None;
        }
        request.clear();
        push(request, Expect::Changed(1));
        Some(Operation::Update { record: self.begun, like: 0, fields: Fields::All })
    }
}

struct Quiet(Option<u32>);

impl Observer for Quiet {
    fn measure(&mut self) {}
    fn drained(&mut self) {}
    fn is_interrupted(&mut self) -> bool {
        let is_over = self.0 == Some(0);
        self.0 = self.0.map(|left| left.saturating_sub(1));
        is_over
    }
}

fn simulated(config: &[(&str, &str)]) -> Box<dyn Target> {
    let config: BTreeMap<_, _> = config.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = DatabaseSettings { name: "simulated".to_owned(), config, ..Default::default() };
    database::find("simulated").unwrap().open(&settings, None).unwrap()
}

fn run(target: &dyn Target, settings: &LoadSettings, on_threads: bool, interrupt: Option<u32>) -> Observed {
    let sessions = (0..settings.clients).map(|_| target.open().unwrap());
    let connections = if on_threads {
        Connections::Sessions(sessions.collect())
    } else {
        Connections::Wires(sessions.map(|session| session.into_wire().ok().unwrap()).collect())
    };
    let sources = (0..settings.clients).map(|_| Box::new(Turns::default()) as Box<dyn Source>).collect();
    let session = |_| target.open();
    let wire = |_| {
        let lost = |_: Box<dyn TargetSession>| DatabaseError::Unavailable("no wire".to_owned());
        target.open()?.into_wire().map_err(lost)
    };
    drive(settings, 1, connections, sources, (&wire, &session), &mut Quiet(interrupt)).unwrap()
}

fn load(clients: u32, length: Length) -> LoadSettings {
    LoadSettings { clients, length, drain_s: 60.0, ..LoadSettings::default() }
}

fn open(clients: u32, rate_per_s: f64, length: Length) -> LoadSettings {
    LoadSettings { arrivals: Arrivals::Poisson, rate_per_s: Some(rate_per_s), ..load(clients, length) }
}

/// What was seen of a kind: as operations of their own, and as parts of others.
fn seen(observed: &Observed) -> [OperationMeasurement; 4] {
    let (whole, parts) = (
        observed.tally.operations(&loadline::operation::KindNames::default()),
        observed.tally.parts(&loadline::operation::KindNames::default()),
    );
    let found = [whole.get("read"), whole.get("read-modify-write"), parts.get("read"), parts.get("update")];
    for operation in whole.values().chain(parts.values()) {
        assert_eq!(operation.scheduled, operation.completed + operation.failed + operation.abandoned, "{operation:?}");
    }
    assert!(whole.len() <= 2 && parts.len() <= 2, "nothing is counted twice: {whole:?} {parts:?}");
    found.map(|operation| operation.cloned().map(|found| *found).unwrap_or_default())
}

#[test]
fn a_read_modify_write_counts_once_and_its_parts_are_reported_beside_it() {
    let database = simulated(&[("service", "20us")]);
    for settings in [load(2, Length::OperationsPerClient(200)), open(2, 2000.0, Length::Operations(400))] {
        for on_threads in [false, true] {
            let observed = run(&*database, &settings, on_threads, None);
            let [read, whole, part_read, part_update] = seen(&observed);
            assert_eq!(read.completed + whole.completed, 400, "each counts once towards the length");
            assert!((195..=205).contains(&whole.completed), "{}", whole.completed);
            assert_eq!((part_read.completed, part_update.completed), (whole.completed, whole.completed));
            assert_eq!(whole.records, whole.completed, "it is about one record");
            let clients: u64 = observed.clients.iter().map(|client| client.completed).sum();
            let series: u64 =
                observed.tally.series(observed.measured_s).iter().map(|interval| interval.completed).sum();
            assert_eq!((clients, observed.tally.carried), (400, 400));
            assert!(series <= 400);
        }
    }
}

#[test]
fn the_whole_takes_as_long_as_its_parts_from_first_intended_to_last_done() {
    let database = simulated(&[("service", "2ms"), ("distribution", "constant"), ("servers", "4")]);
    for settings in [load(2, Length::OperationsPerClient(20)), open(2, 100.0, Length::Operations(40))] {
        for on_threads in [false, true] {
            let [_, whole, read, update] = seen(&run(&*database, &settings, on_threads, None));
            assert!(whole.residence_time.min_ns() >= 4_000_000, "two services of 2 ms");
            // Sums are exact: the update is intended when the read is done.
            assert_eq!(whole.response_time.sum_ns(), read.response_time.sum_ns() + update.response_time.sum_ns());
            assert_eq!(whole.schedule_lag.sum_ns(), read.schedule_lag.sum_ns());
        }
    }
}

#[test]
fn a_whole_fails_with_the_part_that_failed() {
    let database = simulated(&[("service", "10us"), ("fail_share", "0.3")]);
    for on_threads in [false, true] {
        let observed = run(&*database, &load(2, Length::Operations(2000)), on_threads, None);
        let [read, whole, part_read, part_update] = seen(&observed);
        assert_eq!(part_update.scheduled, part_read.completed, "nothing is written after a read that failed");
        assert_eq!(whole.scheduled, part_read.scheduled);
        assert_eq!((whole.completed, whole.failed), (part_update.completed, part_read.failed + part_update.failed));
        let messages: u64 = observed.tally.errors.values().sum();
        assert_eq!(
            messages,
            read.failed + whole.failed,
            "a message for each operation that failed, not for its parts too"
        );
    }
}

#[test]
fn a_whole_whose_read_found_nothing_is_empty() {
    let database = simulated(&[("service", "10us"), ("empty_share", "0.5")]);
    let [_, whole, read, _] = seen(&run(&*database, &load(2, Length::Operations(1000)), false, None));
    assert!(read.empty > 100);
    assert_eq!(whole.empty, read.empty);
}

#[test]
fn a_whole_that_is_not_answered_in_time_is_abandoned() {
    let database = simulated(&[("service", "300ms"), ("distribution", "constant"), ("servers", "8")]);
    let settings = LoadSettings { drain_s: 0.4, ..load(3, Length::Operations(40)) };
    let long = simulated(&[("service", "1h"), ("distribution", "constant")]);
    let [_, whole, ..] =
        seen(&run(&*long, &LoadSettings { drain_s: 0.1, ..open(3, 1000.0, Length::Seconds(0.2)) }, false, None));
    assert_eq!(whole.completed, 0);
    for on_threads in [false, true] {
        // An interrupt comes while reads or updates are running.
        let observed = run(&*database, &settings, on_threads, Some(8));
        assert!(observed.is_cut_short);
        let [read, whole, part_read, part_update] = seen(&observed);
        assert_eq!(whole.scheduled, part_read.scheduled, "{whole:?}");
        assert!(part_update.scheduled <= part_read.completed);
        assert!(read.scheduled + whole.scheduled <= 40);
    }
}

#[test]
fn a_read_modify_write_that_has_begun_is_finished_after_the_end_of_the_phase() {
    let database = simulated(&[("service", "30ms"), ("distribution", "constant"), ("servers", "8")]);
    for on_threads in [false, true] {
        in_a_quiet_moment(10, || {
            let [_, whole, _, update] = seen(&run(&*database, &load(4, Length::Seconds(0.1)), on_threads, None));
            assert_eq!((whole.abandoned, update.abandoned, whole.completed), (0, 0, update.completed));
            (whole.completed > 0).then_some(()).ok_or_else(|| "none was begun in a tenth of a second".to_owned())
        });
    }
}
