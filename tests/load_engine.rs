//! The load engine against the simulated database, whose behaviour is known from queueing theory.

#![expect(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod quiet;

use std::collections::BTreeMap;

use loadline::database::{self, DatabaseError, Target, TargetSession};
use loadline::load::{Connections, Observed, Observer, Source, drive};
use loadline::operation::Operation;
use loadline::statement::{Expect, Request, Step};
use loadline::trial::{Arrivals, DatabaseSettings, Length, LoadSettings};
use quiet::in_a_quiet_moment;

/// Reads of one row each.
struct Reads;

impl Source for Reads {
    fn next(&mut self, request: &mut Request) -> Operation {
        request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Rows });
        Operation::Read { record: 0 }
    }
}

#[derive(Default)]
struct Phase {
    measured: u32,
    drained: u32,
    asked: u32,
    interrupt_after: Option<u32>,
}

impl Observer for Phase {
    fn measure(&mut self) {
        self.measured += 1;
    }
    fn drained(&mut self) {
        self.drained += 1;
    }
    fn is_interrupted(&mut self) -> bool {
        self.asked += 1;
        self.interrupt_after.is_some_and(|most| self.asked > most)
    }
}

fn simulated(config: &[(&str, &str)]) -> Box<dyn Target> {
    let config: BTreeMap<_, _> = config.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let settings = DatabaseSettings { name: "simulated".to_owned(), config, ..Default::default() };
    database::find("simulated").unwrap().open(&settings, None).unwrap()
}

fn load(clients: u32, length: Length) -> LoadSettings {
    LoadSettings { clients, length, drain_s: 60.0, ..LoadSettings::default() }
}

fn run(target: &dyn Target, settings: &LoadSettings, on_threads: bool, phase: &mut Phase) -> Observed {
    let sessions = (0..settings.clients).map(|_| target.open().unwrap());
    let connections = if on_threads {
        Connections::Sessions(sessions.collect())
    } else {
        Connections::Wires(sessions.map(|session| session.into_wire().ok().unwrap()).collect())
    };
    let sources = (0..settings.clients).map(|_| Box::new(Reads) as Box<dyn Source>).collect();
    let session = |_| target.open();
    let wire = |_| {
        let lost = |_: Box<dyn TargetSession>| DatabaseError::Unavailable("no wire".to_owned());
        target.open()?.into_wire().map_err(lost)
    };
    drive(settings, 1, connections, sources, (&wire, &session), phase).unwrap()
}

#[test]
fn exactly_the_operations_asked_for_are_done_by_both_drivers() {
    let database = simulated(&[("service", "10us")]);
    for on_threads in [false, true] {
        let mut phase = Phase::default();
        let total = run(&*database, &load(3, Length::Operations(1_000)), on_threads, &mut phase);
        let reads = &total.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert_eq!((reads.scheduled, reads.completed, reads.failed, reads.abandoned), (1_000, 1_000, 0, 0));
        assert_eq!((phase.measured, phase.drained), (1, 1));
        let each = run(&*database, &load(3, Length::OperationsPerClient(70)), on_threads, &mut phase);
        assert!(each.clients.iter().all(|client| client.completed == 70), "{:?}", each.clients);
    }
}

#[test]
fn residence_times_are_never_shorter_than_the_service_and_throughput_never_above_capacity() {
    let database = simulated(&[("service", "2ms"), ("distribution", "constant"), ("servers", "2")]);
    in_a_quiet_moment(10, || {
        let observed = run(&*database, &load(4, Length::Operations(400)), false, &mut Phase::default());
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert!(reads.residence_time.min_ns() >= 2_000_000);
        assert!(400.0 / observed.measured_s <= 1_000.0, "two servers of 2 ms carry 1,000 per second");
        let running = reads.residence_time.sum_ns() as f64 / 1e9 / observed.measured_s;
        assert!(running <= 4.0, "there are four clients, and {running} operations");
        let what = || format!("four clients without pause keep almost four running, here {running}");
        (running > 3.0).then_some(()).ok_or_else(what)
    });
}

#[test]
fn warm_up_is_not_counted_and_does_not_shorten_the_measured_phase() {
    let database = simulated(&[("service", "1ms"), ("distribution", "constant")]);
    let settings = LoadSettings { warmup_s: 0.2, ..load(1, Length::Seconds(0.3)) };
    let observed = run(&*database, &settings, false, &mut Phase::default());
    assert_eq!(observed.measured_s, 0.3);
    assert!(observed.tally.operations(&loadline::operation::KindNames::default())["read"].completed <= 300);
}

#[test]
fn a_client_thinks_between_its_operations() {
    let database = simulated(&[("service", "100us"), ("distribution", "constant")]);
    for on_threads in [false, true] {
        let settings = LoadSettings { think_s: 0.01, ..load(2, Length::OperationsPerClient(20)) };
        let observed = run(&*database, &settings, on_threads, &mut Phase::default());
        assert!(observed.measured_s >= 19.0 * 0.0101, "{}", observed.measured_s);
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert!(reads.response_time.min_ns() >= reads.residence_time.min_ns());
    }
}

#[test]
fn refused_and_empty_answers_are_counted_apart() {
    let database = simulated(&[("service", "10us"), ("fail_share", "0.5"), ("empty_share", "0.5")]);
    let observed = run(&*database, &load(2, Length::Operations(2_000)), false, &mut Phase::default());
    let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
    assert_eq!(reads.scheduled, reads.completed + reads.failed);
    assert!((800..1200).contains(&reads.failed), "{}", reads.failed);
    assert!(reads.empty > reads.completed / 3 && reads.empty < reads.completed, "{}", reads.empty);
    assert_eq!(reads.response_time.count(), reads.completed, "times are those of completed operations only");
}

#[test]
fn an_answer_that_never_comes_is_abandoned_and_said() {
    let database = simulated(&[("service", "1h"), ("distribution", "constant")]);
    let settings = LoadSettings { drain_s: 0.2, ..load(3, Length::Operations(10)) };
    let observed = run(&*database, &settings, false, &mut Phase::default());
    let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
    assert_eq!((reads.scheduled, reads.completed, reads.abandoned), (3, 0, 3));
    assert!(observed.is_cut_short);
}

#[test]
fn an_interrupt_ends_the_trial_at_once() {
    let database = simulated(&[("service", "1ms")]);
    for on_threads in [false, true] {
        let mut phase = Phase { interrupt_after: Some(2), ..Phase::default() };
        let observed = run(&*database, &load(2, Length::Seconds(600.0)), on_threads, &mut phase);
        assert!(observed.is_cut_short);
        assert!(observed.measured_s < 60.0);
    }
}

#[test]
fn many_clients_are_spread_over_loops() {
    let database = simulated(&[("service", "10us"), ("servers", "200")]);
    let settings = LoadSettings { loops: Some(3), ..load(130, Length::OperationsPerClient(5)) };
    let observed = run(&*database, &settings, false, &mut Phase::default());
    let carried: Vec<_> = observed.loops.iter().map(|each| each.clients).collect();
    assert_eq!(carried, [44, 43, 43]);
    assert_eq!(observed.tally.operations(&loadline::operation::KindNames::default())["read"].completed, 650);
}

fn open(rate_per_s: f64, clients: u32, seconds: f64) -> LoadSettings {
    let settings = load(clients, Length::Seconds(seconds));
    LoadSettings { arrivals: Arrivals::Poisson, rate_per_s: Some(rate_per_s), ..settings }
}

#[test]
fn slow_responses_do_not_delay_the_schedule_and_a_frozen_server_shows() {
    let frozen = [("service", "500us"), ("servers", "4"), ("freeze", "500ms"), ("freeze_after", "1s")];
    for on_threads in [false, true] {
        in_a_quiet_moment(5, || {
            let observed = run(&*simulated(&frozen), &open(1_000.0, 4, 4.0), on_threads, &mut Phase::default());
            let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
            let (response_s, residence_s) = (
                reads.response_time.quantile_ns(0.99) as f64 / 1e9,
                reads.residence_time.quantile_ns(0.99) as f64 / 1e9,
            );
            // Of 4,000 arrivals 500 fell into the freeze; the hundredth part of all waited for more than nine tenths of it.
            assert!(response_s >= 0.40, "response time p99 {response_s} s");
            assert_eq!((reads.failed, reads.abandoned), (0, 0));
            assert!((reads.scheduled as f64 - 4_000.0).abs() < 5.0 * 4_000.0_f64.sqrt(), "{}", reads.scheduled);
            let what = || format!("p99 of response times {response_s} s, of residence times {residence_s} s");
            (response_s < 0.60 && residence_s < 0.05).then_some(()).ok_or_else(what)
        });
    }
}

#[test]
fn an_overloaded_database_is_measured_at_what_it_carries_and_nothing_is_dropped() {
    let database = simulated(&[("service", "2ms"), ("distribution", "constant")]);
    let settings = LoadSettings { warmup_s: 0.3, drain_s: 0.2, ..open(2_000.0, 8, 1.0) };
    in_a_quiet_moment(10, || {
        let observed = run(&*database, &settings, false, &mut Phase::default());
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert!(!observed.is_cut_short, "overload is no reason to end a trial");
        let carried_per_s = observed.tally.carried as f64 / observed.measured_s;
        assert!(carried_per_s <= 501.0, "one server of 2 ms carries 500 per second, here {carried_per_s}");
        assert_eq!(reads.scheduled, reads.completed + reads.failed + reads.abandoned);
        assert!((reads.scheduled as f64 - 2_000.0).abs() < 5.0 * 2_000.0_f64.sqrt(), "{}", reads.scheduled);
        assert!(reads.abandoned > 1_000, "{}", reads.abandoned);
        assert_eq!(reads.censored_time.count(), reads.abandoned);
        let scheduled: u64 = observed.tally.series(1.0).iter().map(|interval| interval.scheduled).sum();
        assert_eq!(scheduled, reads.scheduled, "the series shows every arrival, so that the backlog can be drawn");
        let what = || format!("one server of 2 ms carries 500 per second, here {carried_per_s}");
        (carried_per_s >= 400.0).then_some(()).ok_or_else(what)
    });
}

#[test]
fn constant_arrivals_come_as_counted_over_several_loops() {
    let database = simulated(&[("service", "100us"), ("servers", "8")]);
    let settings = LoadSettings {
        arrivals: Arrivals::Constant,
        rate_per_s: Some(2_000.0),
        loops: Some(2),
        ..load(8, Length::Operations(1_000))
    };
    in_a_quiet_moment(10, || {
        let observed = run(&*database, &settings, false, &mut Phase::default());
        let reads = &observed.tally.operations(&loadline::operation::KindNames::default())["read"];
        assert_eq!((reads.scheduled, reads.completed), (1_000, 1_000));
        let measured_s = observed.measured_s;
        assert!(measured_s >= 0.49, "{measured_s} s");
        (measured_s < 0.8).then_some(()).ok_or_else(|| format!("{measured_s} s instead of half of one"))
    });
}
