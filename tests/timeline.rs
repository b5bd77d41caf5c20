//! What went on within a trial, held against what the server itself counted.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use harness::Target;
use loadline::measurement::{Measurement, Timeline, ToldUnit};
use program::Scratch;

/// A study that writes for some seconds.
fn study(target: &Target) -> String {
    let endpoint = target.endpoint.as_ref().unwrap();
    let (host, port) = endpoint.tcp.clone().unwrap();
    let (user, password, database) = (&endpoint.user, &endpoint.password, &endpoint.database);
    let (name, scheme) = (target.name, if target.name == "postgres" { "postgres" } else { "mysql" });
    format!(
        "name = \"within\"\n[database]\nname = \"{name}\"\nurl = \"{scheme}://{user}:{password}@{host}:{port}/{database}?sslmode=disable\"\n\
         [workload]\nname = \"sql\"\nwrites = true\nstatements = [{{ sql = \"INSERT INTO written (content) VALUES (?)\", params = [{{ random_text = 400 }}] }}]\n\
         [load]\nclients = 2\nduration = \"4s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

/// The sum of a figure over time, where it was told.
fn sum(timeline: &Timeline, name: &str) -> f64 {
    let place =
        timeline.figures.iter().position(|figure| figure.name == name).unwrap_or_else(|| panic!("{timeline:?}"));
    let is_rate = matches!(timeline.figures[place].unit, ToldUnit::BytesPerSecond | ToldUnit::PerSecond);
    let mut begin_s = 0.0;
    let of_moment = |moment: &loadline::measurement::Moment| {
        let seconds = moment.at_s - begin_s;
        begin_s = moment.at_s;
        moment.told[place].unwrap_or_default() * if is_rate { seconds } else { 1.0 }
    };
    timeline.moments.iter().map(of_moment).sum()
}

fn trial(target: &Target, scratch: &Scratch, meanwhile: &mut dyn FnMut()) -> Measurement {
    scratch.write("s.toml", &study(target));
    let mut run = scratch.command(&["run", "s.toml", "--out", "run"]).spawn().unwrap();
    while run.try_wait().unwrap().is_none() {
        meanwhile();
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    scratch.stored("run").remove(0)
}

#[test]
fn what_is_written_within_a_trial_is_what_the_server_counted() {
    for (name, log, counter, checkpoint) in [
        ("postgres", "write-ahead log", "SELECT wal_bytes FROM pg_stat_wal", "CHECKPOINT"),
        (
            "mariadb",
            "redo log",
            "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'INNODB_OS_LOG_WRITTEN'",
            "SELECT 1",
        ),
    ] {
        let (target, scratch) = (Target::server(name), Scratch::new());
        let mut session = target.session();
        session.run("CREATE TABLE written (content TEXT)").unwrap();
        let count = || target.query(counter)[0].parse::<f64>().unwrap();
        let before = count();
        let stored = trial(&target, &scratch, &mut || session.run(checkpoint).unwrap_or_default());
        let grown = count() - before;
        let timeline = stored.timeline.as_ref().unwrap();
        let written = sum(timeline, log);
        // The rest came before the first reading and behind the last one, or is counted by a backend that has not told yet.
        assert!(written > 0.3 * grown && written < 1.05 * grown, "{name}: {written} of {grown}: {timeline:?}");
        assert!(
            grown > 400.0 * stored.completed() as f64,
            "{name}: {grown} bytes for {} rows of 400",
            stored.completed()
        );
        if name == "postgres" {
            assert!(sum(timeline, "checkpoints") >= 1.0, "{timeline:?}");
            // What only other versions have was not asked for: nobody finds loadline's mistakes in his server's log.
            let log = target.log();
            assert!(log.contains("ready to accept connections") && !log.contains("ERROR"), "{log}");
        }
        let last_s = timeline.moments.last().unwrap().at_s;
        assert!((last_s - stored.measured_s).abs() < 0.3 && timeline.moments.len() > 5, "{name}: {timeline:?}");
        assert!(timeline.moments.iter().all(|moment| moment.server_cpu.is_some_and(|cpus| cpus >= 0.0)), "{name}");
        let is_ordered = stored.series.iter().filter(|interval| interval.completed > 0).all(|interval| {
            let [p50_s, p99_s] = interval.response_time_quantiles_s.unwrap();
            p50_s <= p99_s && p99_s <= interval.response_time_max_s * 1.0001
        });
        assert!(is_ordered, "{name}: {:?}", stored.series);
        let page = std::fs::read_to_string(scratch.path("run").join("report.html")).unwrap();
        assert!(page.contains("Within a trial") && page.contains(log), "{name}");
    }
}
