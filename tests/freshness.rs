//! Freshness against the simulated database, whose delay is known: the arithmetic, order of keys, and that readers hold nobody up.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod quiet;

use std::sync::Arc;
use std::time::{Duration, Instant};

use loadline::database::{self, Answer, DatabaseError, Target, TargetSession, Wire};
use loadline::load::sightings::{Asking, Control, Ledger, ReaderTask, Sightings, Stamper, monotonic, read_tables};
use loadline::load::{Clock, Connections, Observed, Observer, Source, drive};
use loadline::operation::Operation;
use loadline::record::Cells;
use loadline::statement::{Program, Request};
use loadline::trial::{Arrivals, CustomColumn, DatabaseSettings, Fill, FreshnessSettings, Length, Settings};
use loadline::workload::freshness::{Events, POLL_ROWS_MAX};
use loadline::workload::{Client, Work};
use quiet::in_a_quiet_moment;

fn settings(writers: u32, tables: u32) -> Settings {
    let mut settings = Settings::default();
    settings.record.type_name = "custom".to_owned();
    settings.record.table = "e".to_owned();
    settings.record.per_measurement = 100;
    let fill = Fill::Uniform(0.0, 1.0);
    settings.record.values = vec![CustomColumn { name: "x".to_owned(), kind: "float".to_owned(), fill, hot: true }];
    settings.layout.name = "wide".to_owned();
    settings.workload.name = "freshness".to_owned();
    settings.workload.batch = 2;
    settings.load.clients = writers;
    settings.load.arrivals = Arrivals::Constant;
    settings.load.rate_per_s = Some(500.0);
    settings.load.length = Length::Seconds(1.0);
    settings.load.warmup_s = 0.05;
    settings.load.drain_s = 10.0;
    settings.freshness = Some(FreshnessSettings { tables: Some(tables), ..FreshnessSettings::default() });
    settings
}

fn simulated(config: &[(&str, &str)]) -> Arc<dyn Target> {
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = DatabaseSettings { name: "simulated".to_owned(), config, ..DatabaseSettings::default() };
    Arc::from(database::find("simulated").unwrap().open(&settings, None).unwrap())
}

struct Beginner(Arc<Control>);

impl Observer for Beginner {
    fn measure(&mut self) {}
    fn drained(&mut self) {}
    fn begins(&mut self, clock: Clock, measure_ns: u64) {
        self.0.begin(monotonic::now_ns() + measure_ns.saturating_sub(clock.now_ns()));
    }
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

struct Seen {
    observed: Observed,
    sightings: Sightings,
    expected: u64,
    lost: u64,
}

/// Writes and reads with one reader of all tables; `session` wraps the reader's connection.
fn run(
    settings: &Settings,
    database: &Arc<dyn Target>,
    every: Duration,
    look_back: Duration,
    session: impl FnOnce(Box<dyn TargetSession>) -> Box<dyn TargetSession>,
) -> Seen {
    let work = Arc::new(Work::new(settings).unwrap());
    let events = Arc::clone(work.events().unwrap());
    let control = Arc::new(Control::default());
    let writers = settings.load.clients;
    let ledger = Ledger::new(writers);
    let prepared = || -> Box<dyn TargetSession> {
        let mut session = database.open().unwrap();
        session.prepare(&events.program).unwrap();
        session
    };
    let wires: Vec<Box<dyn Wire>> =
        (0..writers).map(|_| prepared().into_wire().map_err(|_| "no wire").unwrap()).collect();
    let source = |number| -> Box<dyn Source> {
        let mut own = work.workload(Client { number, of: writers, seed: 1 }).unwrap();
        let events = Arc::clone(&events);
        let fill = move |request: &mut Request, written_ns| {
            let operation = own.next(&mut request.cells);
            let Operation::Insert { first, records } = operation else { panic!("{operation:?}") };
            events.write(first, records, written_ns, request);
            operation
        };
        Box::new(Stamper::new(number, Box::new(fill), Arc::clone(&control), ledger.clone()))
    };
    let mut reader = session(prepared());
    let observed_and_seen = std::thread::scope(|scope| {
        let (events, control) = (&events, &control);
        let reading = scope.spawn(move || {
            let questions = questions(events, writers);
            let sightings = Sightings::new(0, (0..writers).collect(), writers as usize);
            read_tables(&mut *reader, &task(events, &questions, every, look_back), control, sightings)
        });
        let none = |_| Err(DatabaseError::Unavailable("not again".to_owned()));
        let none_either = |_| Err(DatabaseError::Unavailable("not again".to_owned()));
        let sources = (0..writers).map(source).collect();
        let connections = Connections::Wires(wires);
        let mut beginner = Beginner(Arc::clone(control));
        let observed = drive(&settings.load, 7, connections, sources, (&none, &none_either), &mut beginner).unwrap();
        control.written(monotonic::now_ns());
        (observed, reading.join().unwrap())
    });
    let (observed, sightings) = observed_and_seen;
    let (expected, lost) = sightings.missed(&ledger.read());
    Seen { observed, sightings, expected, lost }
}

/// Fills a request with what a reader asks: of a table, behind a key.
type Ask = Box<dyn Fn(u32, u64, &mut Request) + Sync>;

/// What a reader's task refers to.
struct Questions {
    ask: Ask,
    place_of: Box<dyn Fn(u64) -> (usize, u64) + Sync>,
    writers_of: Box<dyn Fn(u32) -> Vec<usize> + Sync>,
}

fn questions(events: &Arc<Events>, writers: u32) -> Questions {
    let (asked, placed, written) = (Arc::clone(events), Arc::clone(events), Arc::clone(events));
    Questions {
        ask: Box::new(move |table, behind, request| asked.ask(table as usize, behind, request)),
        place_of: Box::new(move |event| placed.numbering.place_of(event)),
        writers_of: Box::new(move |table| {
            (0..writers as usize).filter(|writer| written.table_of(*writer) == table as usize).collect()
        }),
    }
}

fn task<'a>(events: &Events, questions: &'a Questions, every: Duration, look_back: Duration) -> ReaderTask<'a> {
    let is_window = events.program.statements.iter().any(
        |statement| matches!(statement, loadline::statement::Statement::Select(select) if select.conditions.is_empty()),
    );
    let by_key = Asking::ByKey { look_back_ns: look_back.as_nanos() as u64 };
    ReaderTask {
        ask: &*questions.ask,
        place_of: &*questions.place_of,
        writers_of: &*questions.writers_of,
        tables: (0..events.tables.len() as u32).collect(),
        asking: if is_window { Asking::Window } else { by_key },
        every_ns: Some(every.as_nanos() as u64),
        phase_ns: 0,
        width: events.width,
        rows_max: POLL_ROWS_MAX as usize,
        results: None,
        drain_ns: 10_000_000_000,
    }
}

const SOON: Duration = Duration::from_micros(200);
const SHORT: Duration = Duration::from_millis(100);
/// Longer than any test thread has to wait for its turn.
const LONG: Duration = Duration::from_secs(2);

#[test]
fn freshness_is_the_known_delay_to_50_microseconds() {
    let service_ns = 50_000;
    let visible_ns = 3_000_000;
    let config = [("service", "50us"), ("distribution", "constant"), ("servers", "64"), ("visible", "3ms")];
    let mut settings = settings(2, 2);
    settings.load.length = Length::Seconds(0.3);
    // From the write's start: its own service, the time until it can be read, and the service of the poll that finds it.
    let known_ns = 2 * service_ns + visible_ns;
    in_a_quiet_moment(20, || {
        let seen = run(&settings, &simulated(&config), SOON, SHORT, |session| session);
        let freshness = &seen.sightings.freshness;
        assert_eq!((seen.lost, seen.sightings.duplicates, seen.sightings.error), (0, 0, None));
        assert_eq!(freshness.count(), seen.expected);
        let least_ns = freshness.min_ns();
        assert!(least_ns >= known_ns, "{least_ns} ns is less than there can be");
        // Of hundreds of events, some become readable right before a poll: what is left is the error of the clock and of waking up,
        // and of whoever else has the CPU then.
        let is_right = least_ns <= known_ns + 50_000;
        is_right.then_some(()).ok_or_else(|| format!("at least {least_ns} ns instead of {known_ns}"))
    });
}

#[test]
fn keys_that_appear_after_higher_ones_are_lost_to_a_reader_that_does_not_look_back_and_to_no_other() {
    let config = [("service", "2ms"), ("servers", "64")];
    let mut settings = settings(8, 1);
    settings.load.rate_per_s = Some(2_000.0);
    // A reader that gets no turn until all is written misses nothing.
    in_a_quiet_moment(5, || {
        let hasty = run(&settings, &simulated(&config), SOON, Duration::ZERO, |session| session);
        assert_eq!(hasty.sightings.freshness.count() + hasty.lost, hasty.expected);
        (hasty.lost > 0).then_some(()).ok_or_else(|| format!("of {} sightings none was lost", hasty.expected))
    });
    let patient = run(&settings, &simulated(&config), SOON, LONG, |session| session);
    assert_eq!((patient.lost, patient.sightings.duplicates), (0, 0));
    assert_eq!(patient.sightings.freshness.count(), patient.expected);
}

#[test]
fn a_window_shows_all_that_fits_into_it_and_the_rest_is_counted_as_lost() {
    let lost = |window| {
        let mut settings = settings(2, 1);
        let freshness = settings.freshness.as_mut().unwrap();
        (freshness.poll, freshness.window) = (loadline::trial::Poll::Window, window);
        let database = simulated(&[("service", "50us"), ("servers", "64")]);
        let seen = run(&settings, &database, Duration::from_millis(20), LONG, |session| session);
        assert_eq!(seen.sightings.freshness.count() + seen.lost, seen.expected);
        seen.lost
    };
    assert!(lost(2) > 0, "twenty events come from one poll to the next");
    assert_eq!(lost(100_000), 0);
}

/// A connection that stands still once, for a time, at the first poll when it has been used for a while.
struct Stalling {
    session: Box<dyn TargetSession>,
    begun: Option<Instant>,
    stall: Option<Duration>,
}

impl TargetSession for Stalling {
    fn prepare(&mut self, program: &Program) -> Result<(), DatabaseError> {
        self.session.prepare(program)
    }

    fn execute(&mut self, request: &Request, rows: Option<&mut Cells>) -> Result<Answer, DatabaseError> {
        let is_due = self.begun.get_or_insert_with(Instant::now).elapsed() > SHORT;
        if let Some(stall) = self.stall.take_if(|_| is_due) {
            std::thread::sleep(stall);
        }
        self.session.execute(request, rows)
    }

    fn version(&mut self) -> Result<String, DatabaseError> {
        self.session.version()
    }

    fn into_wire(self: Box<Self>) -> Result<Box<dyn Wire>, Box<dyn TargetSession>> {
        Err(self)
    }
}

#[test]
fn a_reader_that_stands_still_shows_as_large_freshness_and_holds_no_writer_up() {
    let database = simulated(&[("service", "50us"), ("distribution", "constant"), ("servers", "64")]);
    let every = Duration::from_millis(2);
    in_a_quiet_moment(10, || {
        let stall = Some(Duration::from_millis(600));
        let stalling = |session| -> Box<dyn TargetSession> { Box::new(Stalling { session, begun: None, stall }) };
        let seen = run(&settings(2, 2), &database, every, SHORT, stalling);
        let insert = &seen.observed.tally.operations(&loadline::operation::KindNames::default())["insert"];
        assert_eq!((insert.scheduled, insert.completed), (500, 500), "the schedule knows nothing of readers");
        assert_eq!((seen.lost, seen.sightings.freshness.count()), (0, seen.expected));
        // Whoever is held up by other work writes less while the reader stands still, or later.
        let freshness = &seen.sightings.freshness;
        let waited =
            freshness.buckets().filter(|(low_ns, ..)| *low_ns > 300_000_000).map(|(.., count)| count).sum::<u64>();
        let (largest_ns, write_ns) = (freshness.max_ns(), insert.response_time.quantile_ns(0.5));
        let is_shown = largest_ns > 500_000_000 && waited > 50;
        let is_free = write_ns < 300_000_000;
        let what = || format!("largest {largest_ns} ns, {waited} events waited; half of the writes took {write_ns} ns");
        (is_shown && is_free).then_some(()).ok_or_else(what)
    });
}
