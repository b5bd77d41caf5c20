//! Readings that are thrown away while others come in: how many are left is held against what the data say, and each reading is accounted for.

use loadline::database::Database;
use loadline::database::postgres::{Postgres, recipe::POSTGRES};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::run_study;

/// Held by each test: they share a disk, and each writes to it as others wait.
fn alone() -> MutexGuard<'static, ()> {
    static DISK: Mutex<()> = Mutex::new(());
    DISK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A study of one trial that writes readings of ten sources, one a second each, and keeps a minute of them. Two clients pause between their transactions of a second each: the data's clock goes at
/// most a hundred times as fast as ours, however fast the machine is.
fn study(database: &str, more: &str) -> String {
    format!(
        "name = \"retention\"\n[database]\n{database}\n[record]\ntype = \"qos\"\nrows = 1500\nsources = 10\n{more}\
         [workload]\nname = \"write\"\nbatch = 10\n[load]\nclients = 2\nthink = \"20ms\"\nduration = \"500ms\"\n\
         warmup = \"50ms\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

const KEEPS: &str = "[layout]\nname = \"wide\"\n[retention]\nkeep = \"60s\"\nstep = \"2s\"\n";

/// Keeps the times of what is in the table when it is removed, in a table of the test's own.
const KEEP: &str = "CREATE FUNCTION keep() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF to_regclass('qos') IS NOT NULL AND to_regclass('kept') IS NULL THEN CREATE TABLE kept AS \
                    SELECT time_ns FROM qos; END IF; END $$";

/// Deletes a reading too many once.
const TOO_MANY: &str = "CREATE FUNCTION too_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF OLD.record_id = 901 THEN DELETE FROM qos WHERE record_id = (SELECT max(record_id) \
                        FROM qos); END IF; RETURN OLD; END $$";
const HOOK: &str = "CREATE FUNCTION hook() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN IF to_regclass('qos') IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgname = \
                    'extra') THEN CREATE TRIGGER extra AFTER DELETE ON qos FOR EACH ROW EXECUTE FUNCTION too_many(); END IF; END $$";

#[test]
fn what_is_old_goes_what_is_young_stays_and_a_reading_too_many_is_noticed() {
    let _alone = alone();
    let server = Server::start(&POSTGRES, &DatabaseSettings::default(), None).unwrap();
    let end = server.endpoint();
    let (host, port) = end.tcp.as_ref().unwrap();
    let url = format!("postgres://{}:{}@{host}:{port}/{}", end.user, end.password, end.database);
    let database = format!("name = \"postgres\"\nurl = \"{url}\"");
    let mut session = Postgres::new(end.clone()).connect().unwrap();
    session.run(KEEP).unwrap();
    session
        .run("CREATE EVENT TRIGGER keep ON ddl_command_start WHEN TAG IN ('DROP TABLE') EXECUTE FUNCTION keep()")
        .unwrap();
    let (document, report) = run_study("retention", &study(&database, KEEPS), true);
    assert!(report.contains("Old readings"));
    let finding = &document["cases"][0]["retention"];
    let steps = finding["steps"].as_u64().unwrap();
    assert!(steps > 0 && finding["by"] == "delete" && finding["step_s"] == 2.0, "{finding}");
    // Ten sources have twenty readings in two seconds.
    assert_eq!(finding["rows"].as_u64(), Some(steps * 20), "{finding}");
    let delete = &finding["meanwhile"]["changes"]["delete"];
    assert_eq!((delete["count"].as_u64(), delete["failed"].as_u64()), (Some(steps), Some(0)), "{finding}");
    assert!(delete["statements"][0].as_str().unwrap().starts_with("DELETE FROM \"qos\" WHERE"), "{delete}");
    let kept = session.query("SELECT min(time_ns), max(time_ns), count(*), count(DISTINCT time_ns) FROM kept").unwrap();
    let kept: Vec<i64> = kept[0].iter().map(|cell| cell.as_ref().unwrap().parse().unwrap()).collect();
    let [oldest, newest, count, times] = kept[..] else { panic!("{kept:?}") };
    // What is kept, and one step that is not old as a whole. The faster of two clients may be a little ahead of the clock.
    let span_s = (newest - oldest) / 1_000_000_000;
    let behind_s = finding["behind_s"].as_f64().unwrap() as i64;
    assert!((59..=80 + behind_s).contains(&span_s), "{span_s} s are left, and {behind_s} s were due");
    assert!(oldest % 2_000_000_000 < 1_000_000_000, "the oldest reading is the first of its step: {oldest}");
    assert!(count == times && count > 590, "every reading has a time of its own here: {count}, {times}");
    session.run(TOO_MANY).unwrap();
    session.run(HOOK).unwrap();
    session
        .run("CREATE EVENT TRIGGER hook ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION hook()")
        .unwrap();
    let (document, _) = run_study("extra", &study(&database, KEEPS), false);
    let why = document["cases"][0]["invalid_because"].to_string();
    assert!(why.contains("are in the table"), "{why}");
}

#[test]
fn partitions_are_dropped_and_made_while_readings_come_in() {
    let _alone = alone();
    for (database, drops, adds) in [
        ("postgres", "DROP TABLE \"qos_p34", "CREATE TABLE \"qos_p34"),
        ("mariadb", "ALTER TABLE `qos` DROP PARTITION `p34", "ALTER TABLE `qos` ADD PARTITION (PARTITION `p34"),
    ] {
        let parts = "[layout]\nname = \"wide\"\n[retention]\nkeep = \"60s\"\nstep = \"5s\"\nby = \"drop\"\n";
        let (document, _) =
            run_study(&format!("drop-{database}"), &study(&format!("name = \"{database}\""), parts), true);
        let finding = &document["cases"][0]["retention"];
        assert!(finding["steps"].as_u64().unwrap() > 0 && finding["rows"].is_null(), "{finding}");
        let statement =
            |what: &str| finding["meanwhile"]["changes"][what]["statements"][0].as_str().unwrap().to_owned();
        assert!(statement("drop").starts_with(drops), "{finding}");
        assert!(statement("add").starts_with(adds), "{finding}");
        let bytes = document["cases"][0]["bytes_per_record"]["mean"].as_f64().unwrap();
        assert!(bytes > 50.0, "partitions have sizes too: {bytes} bytes a record");
    }
}

#[test]
fn a_table_in_partitions_takes_more_than_it_was_made_for() {
    let _alone = alone();
    let parts = "[layout]\nname = \"wide\"\npartition = \"2s\"\n";
    let counted = study("name = \"postgres\"", parts).replace("duration = \"500ms\"\n", "operations = 60\n");
    let (document, _) = run_study("partitions", &counted.replace("think = \"20ms\"\n", ""), true);
    let case = &document["cases"][0];
    assert!(case["retention"].is_null(), "nothing is retired: {case}");
    let written = case["operations"]["insert"]["count"].as_u64();
    assert_eq!(
        written,
        Some(60),
        "a minute of readings is more than the sixteen partitions of two seconds that are kept ready"
    );
}

#[test]
fn questions_are_answered_right_while_readings_are_thrown_away() {
    let _alone = alone();
    let study = "name = \"asked\"\n[database]\nname = \"sqlite\"\n[record]\ntype = \"qos\"\nrows = 20000\nsources = 20\n\
                 late = { share = 0.02, up_to = \"10s\" }\nrepeated = 0.01\n[layout]\nname = \"wide\"\n\
                 [workload]\nname = \"questions\"\nquestions = [\n\
                 { name = \"newest\", ask = \"newest\", of = [\"ul_delay\"], sources = \"all\" },\n\
                 { name = \"curve\", ask = \"range\", of = [\"ul_delay\"], span = \"1m\", places = \"newest\" },\n\
                 { name = \"minutes\", ask = \"buckets\", of = [\"ul_delay\"], sources = \"all\", span = \"1m\", bucket = \"10s\" },\n\
                 { name = \"sum\", ask = \"aggregate\", of = [\"ul_dupl\"], span = \"1m\", places = \"uniform\" },\n]\n\
                 [retention]\nkeep = \"6m\"\nstep = \"1s\"\n[load]\nclients = 1\nduration = \"1s\"\nwarmup = \"50ms\"\n\
                 [background]\nworkload = \"write\"\narrivals = \"constant\"\nrate = 10\nbatch = 20\n\
                 [repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n";
    let (document, _) = run_study("asked", study, true);
    let case = &document["cases"][0];
    assert!(case["retention"]["steps"].as_u64().unwrap() > 0, "{case}");
    let asked = case["operations"].as_object().unwrap();
    assert_eq!(asked.keys().collect::<Vec<_>>(), ["curve", "insert beside", "minutes", "newest", "sum"]);
    // What is kept for too short a time would take readings away that questions are about.
    let short = study.replace("keep = \"6m\"", "keep = \"50s\"").replace("span = \"1m\"", "span = \"10s\"");
    let (document, _) = run_study("held", &short, false);
    let why = document["cases"][0]["invalid_because"].to_string();
    assert!(why.contains("raise retention.keep, lower load.duration or write less"), "{why}");
}

#[test]
fn nothing_old_makes_the_trial_invalid_with_the_remedy() {
    let _alone = alone();
    let slow = study("name = \"sqlite\"", &KEEPS.replace("step = \"2s\"", "step = \"60s\""))
        .replace("think = \"20ms\"", "think = \"400ms\"");
    let (document, _) = run_study("nothing", &slow, false);
    let why = document["cases"][0]["invalid_because"].to_string();
    assert!(why.contains("lower retention.step, or raise load.duration"), "{why}");
}
