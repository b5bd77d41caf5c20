//! Names of measurements and fields that become names of tables and columns.

use super::harness::{Directory, Started, Target, write};

/// Where the values of a field are, by the registry: the table of its records, and its column.
fn place(target: &Target, measurement: &str, field: &str) -> (String, String) {
    let quote = if target.name == "mariadb" { '`' } else { '"' };
    let sql = format!(
        "SELECT table_name, column_name FROM loadline_column WHERE measurement = '{measurement}' AND name = '{field}' \
         AND role = 'field'"
    );
    let found = target.query(&sql);
    let (table, column) =
        found.first().unwrap_or_else(|| panic!("no {field} of {measurement}")).split_once('|').unwrap();
    (format!("{quote}{table}_values{quote}"), format!("{quote}{column}{quote}"))
}

/// The values of a field, in the order of their records; none as "-".
fn values(target: &Target, measurement: &str, field: &str) -> Vec<String> {
    let (table, column) = place(target, measurement, field);
    target.query(&format!("SELECT {column} FROM {table} ORDER BY record_id"))
}

fn stored(started: &Started, lines: &[&str]) {
    for line in lines {
        assert_eq!(write(started.http, line).status, 204, "{line}");
        started.wait_until_committed();
    }
}

/// A name that is replaced may become what another client calls its own; each keeps its own column and table.
pub fn names_that_become_alike_stay_apart(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    stored(&started, &["alike Time_NS_255cbe53=666 1\n", "alike Time_NS=5 2\n", "alike a=1,A=2 3\n"]);
    stored(&started, &["mittaus_1d1e4955 f=1 1\n", "mittaus\\ ä f=2 2\n"]);
    // Tables of one measurement, and an index, that another is called after.
    stored(&started, &["grid f=1 1\n", "grid_values f=2 2\n", "grid_values_measurement f=3 3\n", "GRID f=4 4\n"]);
    let long = "n".repeat(70);
    stored(&started, &[&format!("long {long}1=1,{long}2=2 1\n")]);
    assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    assert_eq!(values(target, "alike", "Time_NS_255cbe53"), ["666", "-", "-"]);
    assert_eq!(values(target, "alike", "Time_NS"), ["-", "5", "-"]);
    assert_eq!(
        (values(target, "alike", "a"), values(target, "alike", "A")),
        (strings(["-", "-", "1"]), strings(["-", "-", "2"]))
    );
    assert_eq!(values(target, "mittaus_1d1e4955", "f"), ["1"]);
    assert_eq!(values(target, "mittaus %c3%a4", "f"), ["2"]);
    for (measurement, value) in [("grid", "1"), ("grid_values", "2"), ("grid_values_measurement", "3"), ("GRID", "4")] {
        let of = |measurement| place(target, measurement, "f").0.to_lowercase();
        let found: Vec<_> = values(target, measurement, "f");
        assert_eq!(found, [value], "{measurement} in {}", of(measurement));
    }
    assert_eq!(
        (values(target, "long", &format!("{long}1")), values(target, "long", &format!("{long}2"))),
        (strings(["1"]), strings(["2"]))
    );
}

fn strings<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).to_vec()
}

/// Tables and columns of somebody else are neither written into nor held to be the recorder's, however much they look like it.
pub fn what_is_there_and_is_not_the_recorders_is_never_used(target: &Target) {
    let mut session = target.session();
    session
        .run("CREATE TABLE shop_values (record_id BIGINT PRIMARY KEY, measurement BIGINT, time_ns BIGINT, f BIGINT)")
        .unwrap();
    session.run("CREATE TABLE loyal_identity (id BIGINT)").unwrap();
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    stored(&started, &["shop f=1.5 1\n", "loyal f=2.5 2\n", "ours f=1 1\n"]);
    session.run("ALTER TABLE ours_values ADD COLUMN theirs BIGINT").unwrap();
    stored(&started, &["ours f=2,theirs=3.5 2\n"]);
    assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    assert_eq!(target.query("SELECT COUNT(*) FROM shop_values"), ["0"]);
    assert_eq!(target.query("SELECT COUNT(*) FROM loyal_identity"), ["0"]);
    assert_eq!(target.query("SELECT COUNT(*) FROM ours_values WHERE theirs IS NOT NULL"), ["0"]);
    assert_eq!((values(target, "shop", "f"), values(target, "loyal", "f")), (strings(["1.5"]), strings(["2.5"])));
    assert_eq!(values(target, "ours", "theirs"), ["-", "3.5"]);
}

/// Names that a database keeps for itself are replaced, and nobody else waits for them.
pub fn names_of_the_database_itself_stop_nobody(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    let lines = ["sqlite f=1 1\n", "sqlite_master f=2 2\n", "pg_class f=3 3\n", "loadline_writer f=4 4\n"];
    stored(&started, &lines);
    stored(
        &started,
        &["kept DB_TRX_ID=1,db_row_id=2,DB_ROLL_PTR=3,FTS_DOC_ID=4,xmin=5,rowid=6,oid=7 1\n", "others f=5 5\n"],
    );
    assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    for (measurement, value) in
        [("sqlite", "1"), ("sqlite_master", "2"), ("pg_class", "3"), ("loadline_writer", "4"), ("others", "5")]
    {
        assert_eq!(values(target, measurement, "f"), [value], "{measurement}");
    }
    assert_eq!((values(target, "kept", "DB_TRX_ID"), values(target, "kept", "oid")), (strings(["1"]), strings(["7"])));
}

/// Two recorders that make the same tables, columns and identities at the same time: neither takes the other's work for a refusal.
pub fn recorders_that_make_the_same_tables_at_once_store_everything(target: &Target) {
    const ROUNDS: usize = 40;
    let directories = [Directory::new(), Directory::new()];
    let recorders = directories.each_ref().map(|directory| target.start(directory, "name = \"star\"", ""));
    let barrier = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        for (number, started) in recorders.iter().enumerate() {
            let barrier = &barrier;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    barrier.wait();
                    let time = number + 2;
                    let lines = format!(
                        "rival{round},t=a,t{number}=b f=1,f{number}=2 {number}\nrival{round},t=both f=3 {time}\n"
                    );
                    assert_eq!(write(started.http, &lines).status, 204);
                }
            });
        }
    });
    for started in recorders {
        started.wait_until_committed();
        assert_eq!(started.stop().counts.quarantined, 0, "{}", target.name);
    }
    for round in 0..ROUNDS {
        assert_eq!(
            target.query(&format!("SELECT f, f0, f1 FROM rival{round}_values ORDER BY time_ns")),
            ["1|2|-", "1|-|2", "3|-|-", "3|-|-"],
            "{}",
            target.name
        );
        let both = format!("SELECT COUNT(*) FROM rival{round}_identity WHERE t = 'both'");
        assert_eq!(target.query(&both), ["1"], "{}", target.name);
    }
}
