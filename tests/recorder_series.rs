//! Many writers that meet the same new series at the same time: each record is stored once, none is held to be to blame for another's series.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;

use harness::{Directory, Target, send};

/// Series that are new to everybody.
const SERIES: usize = 4_000;
/// Sources at each recorder; each sends all series, in another order.
const SOURCES: usize = 4;
const RECORDERS: usize = 2;
/// Lines of a request.
const LINES: usize = 500;

/// The lines of a source: its own time stamps, and the series in an order of its own.
fn requests(source: usize) -> Vec<String> {
    let line = |place: usize| {
        // Prime to their number, so that each comes once.
        let series = (place * (7 + 2 * source) * 11 + source * 97) % SERIES;
        format!("link,probe=p{series},kind=lte rtt={series}.5 {}\n", (source * SERIES + place + 1) * 1_000)
    };
    let lines: Vec<String> = (0..SERIES).map(line).collect();
    lines.chunks(LINES).map(<[String]>::concat).collect()
}

fn many_writers_meet_the_same_new_series(target: &Target, layout: &str) {
    let directories: Vec<_> = (0..RECORDERS).map(|_| Directory::new()).collect();
    let started: Vec<_> = directories
        .iter()
        .map(|directory| target.start(directory, &format!("name = \"{layout}\""), "[writer]\ncount = 4\n"))
        .collect();
    std::thread::scope(|scope| {
        for (place, recorder) in started.iter().enumerate() {
            for source in (0..SOURCES).map(|source| place * SOURCES + source) {
                let address = recorder.http;
                scope.spawn(move || {
                    for body in requests(source) {
                        let header = format!("X-Loadline-Source: s{source}\r\n");
                        let answer = send(address, "POST", "/write", &header, body.as_bytes());
                        assert_eq!(answer.status, 204, "{}", answer.body);
                    }
                });
            }
        }
    });
    for recorder in &started {
        recorder.wait_until_committed();
        let counts = recorder.recorder.counts();
        assert_eq!((counts.quarantined, counts.committed), (0, (SOURCES * SERIES) as u64), "{counts:?}");
    }
    started.into_iter().for_each(|recorder| drop(recorder.stop()));
    let one = |sql: &str| target.query(sql)[0].parse::<usize>().unwrap();
    assert_eq!(one("SELECT count(*) FROM link_values"), RECORDERS * SOURCES * SERIES);
    assert_eq!(one("SELECT count(*) FROM link_identity"), SERIES);
    let joined = "SELECT count(*) FROM link_values v JOIN link_identity i ON i.measurement = v.measurement \
                  WHERE i.probe = concat('p', cast(floor(v.rtt) AS char(9)))";
    let joined = if target.name == "postgres" { joined.replace("char(9)", "varchar(9)") } else { joined.to_owned() };
    assert_eq!(one(&joined), RECORDERS * SOURCES * SERIES, "each record belongs to its own series");
}

#[test]
fn in_postgres() {
    many_writers_meet_the_same_new_series(&Target::server("postgres"), "star");
}

#[test]
fn in_mariadb() {
    many_writers_meet_the_same_new_series(&Target::server("mariadb"), "star");
}
