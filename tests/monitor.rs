//! Monitoring of real servers and of this process. MariaDB and PostgreSQL must be installed: a machine without them fails.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

use std::io::Write;
use std::time::{Duration, Instant};

use loadline::database::mysql::recipe::MARIADB;
use loadline::database::postgres::recipe::POSTGRES;
use loadline::database::recipe::Recipe;
use loadline::database::{Session, find};
use loadline::monitor::{Monitor, SHORT_INTERVAL, Targets};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

fn start(recipe: &dyn Recipe) -> Server {
    match Server::start(recipe, &DatabaseSettings::default(), None) {
        Ok(server) => server,
        Err(error) => panic!("this test needs an installed server: {error}"),
    }
}

fn connect(server: &Server) -> Box<dyn Session> {
    let mariadb = find("mariadb").unwrap();
    mariadb.open_sql(&DatabaseSettings::default(), Some(server.endpoint())).unwrap().connect().unwrap()
}

fn own_cpu() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure may be written to during the call.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

#[test]
fn a_servers_work_is_told_apart_from_loadlines() {
    let server = start(&MARIADB);
    let mut connection = connect(&server);
    connection.run("CREATE TABLE t (id INT PRIMARY KEY AUTO_INCREMENT, text VARCHAR(1000))").unwrap();
    let monitor = Monitor::start(Targets::server(server.pid_source()), SHORT_INTERVAL).unwrap();
    let before = own_cpu();
    connection.run("DO BENCHMARK(2000000, MD5('loadline'))").unwrap();
    for _ in 0..20 {
        connection.run("INSERT INTO t (text) SELECT REPEAT('x', 1000)").unwrap();
    }
    let own = (own_cpu() - before).as_secs_f64();
    let (samples, resources) = monitor.stop().unwrap();
    let mean = resources.mean;
    assert_eq!(samples.len(), resources.samples as usize);
    // Two million digests take 0.1 s and more on any CPU.
    assert!(mean.server_cpu * mean.at_s > 0.1, "{mean:?}");
    assert!(mean.client_cpu * mean.at_s >= own * 0.99, "{own} {mean:?}");
    assert!(mean.client_cpu < mean.server_cpu, "{mean:?}");
    assert!(mean.server_memory_bytes > 3e7 && mean.server_memory_bytes < mean.memory_used_bytes * 2.0, "{mean:?}");
    assert!(mean.server_written_bytes_per_s * mean.at_s >= 20_000.0, "20 rows of 1000 bytes: {mean:?}");
    assert!(resources.monitor_cpu_s > 0.0 && resources.monitor_cpu_s < mean.at_s, "{resources:?}");
    let shares = mean.user + mean.system + mean.iowait + mean.idle;
    assert!(shares > 0.0 && shares < 1.001, "{mean:?}");
}

#[test]
fn a_server_that_vanishes_does_not_stop_monitoring() {
    let server = start(&POSTGRES);
    let monitor = Monitor::start(Targets::server(server.pid_source()), Duration::from_millis(10)).unwrap();
    // Some samples are of the running server: it may stop within one interval.
    std::thread::sleep(Duration::from_millis(100));
    let stopped = Instant::now();
    server.stop();
    std::thread::sleep(Duration::from_millis(100));
    let (samples, resources) = monitor.stop().unwrap();
    assert!(samples.len() > 2);
    let (first, last) = (samples.first().unwrap(), samples.last().unwrap());
    assert!(first.server_memory_bytes > 1e6, "{first:?}");
    assert_eq!((last.server_memory_bytes, last.server_cpu), (0.0, 0.0));
    assert!(resources.mean.at_s <= stopped.elapsed().as_secs_f64() + 1.0 && resources.mean.server_cpu >= 0.0);
}

#[test]
fn means_are_over_the_time_asked_for() {
    let monitor = Monitor::start(Targets::none(), Duration::from_millis(50)).unwrap();
    let from = Instant::now();
    std::thread::sleep(Duration::from_millis(300));
    let to = Instant::now();
    let (samples, resources) = monitor.stop_between(from, to).unwrap();
    let length = (to - from).as_secs_f64();
    assert!((resources.mean.at_s - length).abs() < 1e-9, "{} {length}", resources.mean.at_s);
    assert!((samples.last().unwrap().at_s - length).abs() < 1e-9);
    assert!(samples.windows(2).all(|pair| pair[0].at_s < pair[1].at_s));
}

#[test]
fn what_an_embedded_database_writes_is_counted() {
    // Files of other tests' processes do not matter; those of this process's other threads can only add.
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("monitored-{}", std::process::id()));
    let monitor = Monitor::start(Targets::embedded(), SHORT_INTERVAL).unwrap();
    let mut file = std::fs::File::create(&path).unwrap();
    file.write_all(&vec![7; 8 << 20]).unwrap();
    file.sync_all().unwrap();
    let (_, resources) = monitor.stop().unwrap();
    std::fs::remove_file(&path).unwrap();
    let written = resources.mean.server_written_bytes_per_s * resources.mean.at_s;
    assert!(written > f64::from(8 << 20) * 0.999, "{written}");
    assert_eq!(resources.mean.server_memory_bytes, 0.0, "its memory is loadline's");
}
