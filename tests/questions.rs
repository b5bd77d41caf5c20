//! The oracle of questions: whatever is asked about sources and times, every target that can answers what the records say, in every layout, with late, repeated and
//! missing readings, before and after more have been written. An answer from changed tables is noticed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#[path = "behind/mod.rs"]
#[expect(dead_code, reason = "shared with tests that stop the server")]
mod behind;
#[path = "questions/covering.rs"]
mod covering;
#[path = "questions/mariadb.rs"]
mod mariadb;
#[path = "questions/packed.rs"]
mod packed;
#[path = "questions/written.rs"]
mod written;

#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use behind::Behind;
use loadline::database::dialect::{create_table, remove_table};
use loadline::database::{self, Database, Session};
use loadline::operation::Operation;
use loadline::question::{Ask, Figure, Places, Question};
use loadline::random::Stream;
use loadline::record::Cells;
use loadline::server::Server;
use loadline::statement::Request;
use loadline::trial::{CustomColumn, DatabaseSettings, Fill, RecordSettings, SeriesSettings, Settings, TimeIndex};
use loadline::workload::Work;
use program::Scratch;

const LAYOUTS: [&str; 4] = ["wide", "star", "star-hot", "gorilla"];
const ROWS: u64 = 1500;
const MORE: u64 = 500;
const SECOND_NS: i64 = 1_000_000_000;

fn question(ask: Ask, of: &[&str], span_s: Option<i64>) -> Question {
    Question {
        name: format!("{ask:?} of {of:?} in {span_s:?}"),
        ask,
        of: of.iter().map(|column| (*column).to_owned()).collect(),
        all_sources: ask == Ask::Top,
        span_ns: span_s.map(|span_s| span_s * SECOND_NS),
        bucket_ns: if ask == Ask::Buckets { 7 * SECOND_NS } else { 0 },
        above: 0.0,
        most: if ask == Ask::Top { 3 } else { 0 },
        by: Figure::Mean,
        figures: Vec::new(),
        places: Places::Recent,
        weight: 1.0,
    }
}

/// Figures that not every database has an aggregate for, among others.
fn ends_and_quantiles() -> Vec<Figure> {
    ["last", "max", "p50", "first", "p99.9", "mean"].map(|name| Figure::named(name).unwrap()).to_vec()
}

/// Questions of every kind, about one source and about all, over a span and over all times.
fn questions() -> Vec<Question> {
    let mut questions = Vec::new();
    for span_s in [Some(20), None] {
        questions.extend([
            question(Ask::Range, &["object", "value_1", "kind", "payload"], span_s),
            question(Ask::Newest, &["value_2", "quality", "source"], span_s.filter(|_| false)),
            question(Ask::Aggregate, &["value_3", "object", "quality"], span_s),
            question(Ask::Buckets, &["value_4", "object"], span_s),
            Question { figures: ends_and_quantiles(), ..question(Ask::Aggregate, &["value_3", "object"], span_s) },
            Question { figures: ends_and_quantiles(), ..question(Ask::Buckets, &["value_4", "quality"], span_s) },
            question(Ask::Top, &["value_1"], span_s),
            Question { by: Figure::Max, most: 100, ..question(Ask::Top, &["object"], span_s) },
            Question { by: Figure::Sum, ..question(Ask::Top, &["quality"], span_s) },
            Question { above: 500.0, ..question(Ask::Above, &["quality"], span_s) },
            Question { above: 0.5, ..question(Ask::Above, &["value_3"], span_s) },
        ]);
    }
    let of_all = questions.clone().into_iter().map(|question| Question { all_sources: true, ..question });
    questions.extend(of_all);
    (0..).zip(&mut questions).for_each(|(number, question)| question.name = format!("{number}: {}", question.name));
    questions
}

fn series() -> SeriesSettings {
    SeriesSettings {
        sources: 7,
        interval_ns: SECOND_NS,
        jitter: 0.2,
        missing: 0.05,
        late_share: 0.1,
        late_up_to_ns: 15 * SECOND_NS,
        repeated: 0.05,
    }
}

fn settings(layout: &str, questions: Vec<Question>) -> Settings {
    let mut settings = Settings::default();
    let table = "sensor".to_owned();
    settings.record = RecordSettings {
        type_name: table.clone(),
        table,
        rows: ROWS,
        per_measurement: 10,
        seed: 1,
        length: Some(120),
        series: Some(series()),
        ..RecordSettings::default()
    };
    settings.layout.name = layout.to_owned();
    settings.layout.time_index = Some(TimeIndex::SourceTime);
    settings.workload.name = "questions".to_owned();
    settings.workload.batch = 1;
    settings.workload.questions = questions;
    settings.load.clients = 1;
    settings
}

/// Tables on a database, filled, with a connection.
struct Filled<'a> {
    database: &'a dyn Database,
    work: Work,
    session: Box<dyn Session>,
}

impl<'a> Filled<'a> {
    fn new(database: &'a dyn Database, settings: &Settings) -> Self {
        let work = Work::new(settings).unwrap();
        work.count_rows().unwrap();
        let mut session = database.connect().unwrap();
        for sql in work.program().tables.iter().flat_map(|table| create_table(database.dialect(), table)) {
            session.run(&sql).unwrap();
        }
        session.prepare(work.program()).unwrap();
        let mut filled = Filled { database, work, session };
        let preload: Vec<_> = filled.work.preload().collect();
        preload.iter().for_each(|operation| drop(filled.execute(operation).unwrap()));
        filled
    }

    fn execute(&mut self, operation: &Operation) -> Result<Cells, String> {
        let mut request = Request::default();
        self.work.bind(operation, &mut request);
        assert!(!request.steps.is_empty(), "{operation:?} does nothing");
        let mut rows = Cells::new();
        self.session.execute(&request, Some(&mut rows)).map_err(|error| error.to_string())?;
        Ok(rows)
    }

    /// Asks a question with these draws; returns what is wrong with the first wrong answer.
    fn ask(&mut self, question: usize, draws: std::ops::Range<u64>) -> Result<(), String> {
        for draw in draws {
            let operation = Operation::Ask { question: question as u16, draw };
            let mut rows = self.execute(&operation)?;
            self.work.unpack(&operation, &mut rows)?;
            self.work.check(&operation, &rows)?;
        }
        Ok(())
    }
}

impl Drop for Filled<'_> {
    fn drop(&mut self) {
        for table in self.work.program().tables.iter().rev() {
            remove_table(self.database.dialect(), &table.name).iter().for_each(|sql| self.session.run(sql).unwrap());
        }
    }
}

fn assert_all_right(database: &dyn Database) {
    for layout in LAYOUTS {
        let questions = questions();
        let count = questions.len();
        let mut filled = Filled::new(database, &settings(layout, questions));
        for question in 0..count {
            filled.ask(question, 0..8).unwrap_or_else(|why| panic!("{layout}: {why}"));
        }
    }
}

fn on_server(name: &str, config: &[(&str, &str)], check: impl FnOnce(&dyn Database)) {
    let entry = database::find(name).unwrap();
    let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let settings = DatabaseSettings { name: name.to_owned(), config, ..DatabaseSettings::default() };
    let server = Server::start(entry.recipe.unwrap(), &settings, None)
        .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
    let endpoint = server.endpoint().clone();
    check(&*entry.open_sql(&settings, Some(&endpoint)).unwrap());
}

fn check_both(database: &dyn Database) {
    assert_all_right(database);
    written::assert_right(database);
    covering::assert_right(database);
}

#[test]
fn postgres_answers_what_the_records_say() {
    on_server("postgres", &[("fsync", "off")], check_both);
}

#[test]
fn mariadb_answers_what_the_records_say() {
    on_server("mariadb", &[("innodb_flush_log_at_trx_commit", "0")], check_both);
}

#[test]
fn servers_behind_odbc_answer_what_the_records_say() {
    for (name, config) in [("postgres", ("fsync", "off")), ("mariadb", ("innodb_flush_log_at_trx_commit", "0"))] {
        let Some(behind) = Behind::start(name, &[config]) else { return };
        check_both(&*behind.open());
    }
}

mod with_duckdb {
    #[test]
    fn duckdb_answers_what_the_records_say() {
        super::in_file("duckdb", super::check_both);
    }
}

/// Gives an embedded database with a file of its own.
fn in_file(name: &str, check: impl FnOnce(&dyn Database)) {
    let scratch = Scratch::new();
    let path = Some(scratch.path("questions.db").display().to_string());
    let settings = DatabaseSettings { name: name.to_owned(), path, ..DatabaseSettings::default() };
    check(&*database::find(name).unwrap().open_sql(&settings, None).unwrap());
}

fn in_sqlite(check: impl FnOnce(&dyn Database)) {
    in_file("sqlite", check);
}

#[test]
fn sqlite_answers_what_the_records_say() {
    in_sqlite(check_both);
}

/// A random question about a custom record.
fn random_question(stream: &mut Stream, number: usize) -> Question {
    let asks = Ask::NAMES.map(|(_, ask)| ask);
    let ask = asks[stream.below(asks.len() as u64) as usize];
    let columns = ["level", "small", "huge", "reading"];
    let of: Vec<&str> = match ask {
        Ask::Top | Ask::Above => vec![columns[stream.below(4) as usize]],
        _ => columns.into_iter().filter(|_| stream.below(2) == 0).collect(),
    };
    let span_s = (ask != Ask::Newest && stream.below(4) > 0).then(|| 1 + stream.below(200) as i64);
    let ranks = Figure::RANKS.map(|(_, figure)| figure);
    let some = ["mean", "sum", "min", "max", "first", "last", "p50", "p95", "p0.01"];
    let figures = some.into_iter().filter(|_| stream.below(3) == 0).map(|name| Figure::named(name).unwrap()).collect();
    let places = Places::NAMES.map(|(_, places)| places);
    Question {
        name: format!("{number}: {ask:?} of {of:?}"),
        all_sources: ask == Ask::Top || stream.below(2) == 0,
        bucket_ns: if ask == Ask::Buckets { 1 + stream.below(30 * SECOND_NS as u64) as i64 } else { 0 },
        above: stream.unit() * 200.0 - 100.0,
        most: if ask == Ask::Top { 1 + stream.below(20) } else { 0 },
        by: ranks[stream.below(4) as usize],
        figures,
        places: places[stream.below(3) as usize],
        ..question(ask, &of, span_s)
    }
}

fn random_settings(stream: &mut Stream, seed: u64) -> Settings {
    let column = |name: &str, kind: &str, fill: Fill| {
        let (name, kind) = (name.to_owned(), kind.to_owned());
        CustomColumn { name, kind, fill, hot: true }
    };
    let questions = (0..12).map(|number| random_question(stream, number)).collect();
    let mut settings = settings(["wide", "star", "gorilla"][stream.below(3) as usize], questions);
    let half = |stream: &mut Stream| if stream.below(3) == 0 { 0.0 } else { stream.unit() * 0.5 };
    settings.record.type_name = "custom".to_owned();
    settings.record.seed = seed;
    settings.record.rows = 1 + stream.below(3000);
    settings.record.length = None;
    settings.record.identity = vec![column("site", "text", Fill::RandomText(8))];
    settings.record.values = vec![
        column("level", "int", Fill::Uniform(-5.0, 100.0)),
        column("small", "smallint", Fill::Uniform(-100.0, 100.0)),
        column("huge", "bigint", Fill::Uniform(-1e15, 1e15)),
        column("reading", "float", Fill::Normal(0.1, 1e3)),
    ];
    settings.record.series = Some(SeriesSettings {
        sources: 1 + stream.below(40) as u32,
        interval_ns: 1000 + stream.below(10 * SECOND_NS as u64) as i64,
        jitter: half(stream),
        missing: half(stream),
        late_share: half(stream),
        late_up_to_ns: stream.below(1000 * SECOND_NS as u64) as i64,
        repeated: half(stream),
    });
    let indexes = TimeIndex::NAMES.map(|(_, index)| index);
    settings.layout.time_index = Some(indexes[stream.below(3) as usize]);
    settings
}

#[test]
fn random_questions_over_random_records_get_the_right_answers() {
    for seed in 0..60 {
        let mut stream = Stream::new(seed, 0, 0);
        let settings = random_settings(&mut stream, seed);
        in_sqlite(|database| {
            let mut filled = Filled::new(database, &settings);
            for question in 0..settings.workload.questions.len() {
                let asked = filled.ask(question, 0..5);
                asked.unwrap_or_else(|why| panic!("seed {seed}, {:?}: {why}", settings.record.series));
            }
        });
    }
}

/// Of each kind one question that looks at everything; each must notice what happens to any reading.
fn watchful() -> Vec<Question> {
    let all = |question: Question| Question { all_sources: true, ..question };
    vec![
        all(question(Ask::Range, &["object", "value_1", "payload"], None)),
        all(question(Ask::Aggregate, &["object", "value_1"], None)),
        all(question(Ask::Buckets, &["object", "value_1"], None)),
        Question { most: 100, ..question(Ask::Top, &["value_1"], None) },
        all(Question { above: -1e9, ..question(Ask::Above, &["value_1"], None) }),
    ]
}

#[test]
fn a_reading_that_is_gone_changed_or_there_twice_makes_every_answer_wrong() {
    let sensor = "sensor_values";
    let doubled = format!(
        "INSERT INTO {sensor} SELECT 999999, measurement, source_id, time_ns, observed_ns, stamp_ns, object, quality, \
        value_1, value_2, value_3, value_4, payload FROM {sensor} WHERE record_id = 700"
    );
    let harms = [
        ("gone", format!("DELETE FROM {sensor} WHERE record_id = 700")),
        ("twice", doubled),
        (
            "changed",
            format!(
                "UPDATE {sensor} SET value_1 = value_1 * 1.0000001 + 0.001, object = object + 1 WHERE record_id = 700"
            ),
        ),
        ("of another source", format!("UPDATE {sensor} SET source_id = 1 + source_id % 7 WHERE record_id = 700")),
    ];
    for (what, sql) in &harms {
        for (question, has_noticed) in noticed_by("star", sql) {
            // Figures over all sources are the same whichever source a reading is of.
            let is_blind = *what == "of another source" && matches!(question.ask, Ask::Aggregate | Ask::Buckets);
            assert!(is_blind || has_noticed, "{what}: {} did not notice", question.name);
        }
    }
}

/// Changes tables on SQLite, whose answers were right before. Returns of each watchful question whether its answer is wrong then.
fn noticed_by(layout: &str, change: &str) -> Vec<(Question, bool)> {
    let mut noticed = Vec::new();
    in_sqlite(|database| {
        let mut filled = Filled::new(database, &settings(layout, watchful()));
        for question in 0..watchful().len() {
            filled.ask(question, 0..1).unwrap_or_else(|why| panic!("before: {why}"));
        }
        filled.session.run(change).unwrap();
        noticed =
            (0..).zip(watchful()).map(|(number, question)| (question, filled.ask(number, 0..1).is_err())).collect();
    });
    noticed
}

#[test]
fn a_newest_reading_that_is_older_or_of_no_reading_at_all_is_noticed() {
    let newest = |all_sources| Question { all_sources, ..question(Ask::Newest, &["value_1"], None) };
    for all in [false, true] {
        for sql in [
            "DELETE FROM sensor WHERE time_ns > (SELECT MAX(time_ns) - 100000000000 FROM sensor)",
            "UPDATE sensor SET time_ns = time_ns + 1",
            "UPDATE sensor SET value_1 = value_1 + 1",
        ] {
            in_sqlite(|database| {
                let mut filled = Filled::new(database, &settings("wide", vec![newest(all)]));
                filled.ask(0, 0..10).unwrap();
                filled.session.run(sql).unwrap();
                assert!(filled.ask(0, 0..10).is_err(), "{sql}");
            });
        }
    }
}

const STUDY: &str = r#"
name = "asked"
question = "Are all answers right?"
[record]
type = "sensor"
rows = 3000
sources = 20
missing = 0.02
late = { share = 0.05, up_to = "20s" }
repeated = 0.03
[layout]
name = "wide"
[workload]
name = "questions"
questions = [
    { ask = "newest", of = ["value_1"], sources = "all" },
    { name = "hour", ask = "range", of = ["value_1", "object"], span = "1h" },
    { ask = "buckets", of = ["value_1"], span = "1m", bucket = "10s" },
    { ask = "top", of = ["object"], span = "30s", by = "max" },
]
[load]
clients = 2
duration = "700ms"
[repeat]
rule = "fixed"
least = 1
"#;

#[test]
fn a_run_tells_how_many_answers_were_checked_and_names_each_question() {
    let place = Scratch::new();
    place.write("study.toml", STUDY);
    let sets = ["--set", "background.rate=50", "--set", "background.batch=10"];
    for sets in [&sets[..0], &sets[..]] {
        // Whether the writers beside were on time is another question.
        let done = place.run(&[&["run", "study.toml", "--json", "--out", "run"], sets].concat());
        assert!(!done.stdout.contains("answers were wrong"), "{}", done.stdout);
        let stored = place.stored("run");
        for name in ["newest", "hour", "buckets", "top"] {
            let operation = &stored[0].operations[name];
            assert_eq!((operation.wrong, operation.failed), (Some(0), 0), "{name}");
            assert!(operation.completed > 0 && operation.rows.is_some_and(|rows| rows > 0), "{name}: {operation:?}");
        }
        let told = &done.json()["cases"][0]["operations"]["newest"]["wrong"];
        assert!(!sets.is_empty() || *told == 0, "{}", done.stdout);
        std::fs::remove_dir_all(place.path("run")).unwrap();
    }
}

/// ClickHouse takes no SQL through loadline's sessions; its questions go the way of all its requests.
#[test]
fn clickhouse_answers_what_the_records_say_in_the_order_of_any_key() {
    let place = Scratch::new();
    let more = "{ name = \"sums\", ask = \"aggregate\", of = [\"object\", \"value_2\"], sources = \"all\", span = \"20s\" },\n    \
        { ask = \"above\", of = [\"quality\"], above = 500, span = \"20s\" },\n]\n[load]";
    place.write("study.toml", &STUDY.replace("]\n[load]", more));
    let sets = [
        "--set",
        "database.name=clickhouse",
        "--set",
        "layout.time_index=[source-time-key, time-source-key, none]",
        "--set",
        "layout.name=[wide, gorilla]",
    ];
    place.run(&[&["run", "study.toml", "--json", "--out", "run"], &sets[..]].concat());
    let stored = place.stored("run");
    assert_eq!(stored.len(), 6);
    for (kind, operation) in stored.iter().flat_map(|trial| &trial.operations) {
        assert_eq!((operation.wrong, operation.failed), (Some(0), 0), "{kind}: {:?}", stored[0].errors);
        assert!(operation.completed > 0, "{kind}");
    }
}

#[test]
fn a_run_over_tables_with_another_content_is_invalid_and_says_what_was_wrong() {
    let place = Scratch::new();
    place.write("study.toml", STUDY);
    let file = place.path("sensors.db");
    let mut settings = settings("wide", vec![question(Ask::Newest, &["value_1"], None)]);
    settings.record = RecordSettings { rows: 3000, length: None, ..settings.record };
    settings.record.series = Some(SeriesSettings {
        sources: 20,
        jitter: 0.1,
        missing: 0.02,
        late_share: 0.05,
        late_up_to_ns: 20 * SECOND_NS,
        repeated: 0.03,
        ..series()
    });
    let of_file = DatabaseSettings { path: Some(file.display().to_string()), ..DatabaseSettings::default() };
    let database = database::find("sqlite").unwrap().open_sql(&of_file, None).unwrap();
    let filled = Filled::new(&*database, &settings);
    let path = format!("database.path={}", file.display());
    let arguments = ["run", "study.toml", "--json", "--set", "record.existing=true", "--set", &path];
    place.run(&[&arguments[..], &["--out", "right"]].concat()).expect(0);
    let mut session = database.connect().unwrap();
    session.run("UPDATE sensor SET value_1 = value_1 + 1 WHERE record_id = 2990").unwrap();
    drop(session);
    let done = place.run(&[&arguments[..], &["--out", "wrong"]].concat()).expect(1);
    let because = done.json()["cases"][0]["invalid_because"].to_string();
    assert!(because.contains("answers were wrong") && because.contains("value_1 is"), "{because}");
    drop(filled);
}
