//! What older versions have acknowledged, before lines were bounded: it waits in a spool, and is stored or kept in quarantine.

use loadline::recorder::spool::{Offer, SpoolFile, Stored};

use super::harness::{Directory, Target};

/// Fields of the lines that no door lets in today.
const LARGE: u64 = 40_000;
const LARGER: u64 = 400_000;

/// A line with so many fields; each has its number.
fn line(measurement: &str, tags: &str, fields: u64) -> String {
    let fields: Vec<_> = (0..fields).map(|number| format!("f{number}={number}")).collect();
    format!("{measurement}{tags} {} {}\n", fields.join(","), fields.len())
}

/// Puts requests into the spool, as an older version has acknowledged them.
fn acknowledge(target: &Target, directory: &Directory, layout: &str, more: &str, bodies: &[String]) {
    let config = target.config(directory, layout, more);
    let mut file = SpoolFile::open(&config.spool.path, config.spool.bound_bytes, config.spool.remember).unwrap();
    let mut group = file.begin().unwrap();
    for body in bodies {
        let offer = Offer {
            lane: 0,
            source: "older".into(),
            sender: "".into(),
            message_id: String::new(),
            received_ns: 7,
            precision: Default::default(),
            rows: body.lines().count() as u32,
            body: body.clone().into_bytes(),
            is_packed: false,
        };
        assert!(matches!(group.append(&offer).unwrap(), Stored::New(_)));
    }
    group.commit().unwrap();
}

/// Lines with tens and hundreds of thousands of fields or tags stop no writer. Work that grows with their square is hours.
pub fn large_lines_of_an_older_spool_are_stored_or_kept(target: &Target) {
    // Whether such lines have room in the layout.
    let layouts = [
        ("wide", "add", false),
        ("star", "add", false),
        ("star", "json", true),
        ("star-hot", "add", false),
        ("json", "add", true),
        ("eav", "add", true),
    ];
    for (layout, new_columns, has_room) in layouts {
        let directory = Directory::new();
        let measurement = format!("older_{}_{new_columns}", layout.replace('-', "_"));
        let hot = if layout == "star-hot" { "hot = [\"f0\"]" } else { "" };
        let (settings, more) = (
            format!("name = \"{layout}\"\n{hot}"),
            format!("[schema]\ncolumns_max = 60\nnew_columns = \"{new_columns}\"\n"),
        );
        let tags: String = (0..LARGE).map(|number| format!(",t{number}=1")).collect();
        let bodies = [
            line(&measurement, "", 1),
            line(&measurement, "", LARGE),
            line(&measurement, "", LARGER) + &line(&measurement, "", 2),
            line(&measurement, &tags, 4),
            line(&measurement, "", 3),
        ];
        acknowledge(target, &directory, &settings, &more, &bodies);
        let started = target.start(&directory, &settings, &more);
        started.wait_until_committed();
        let counts = started.stop().counts;
        let stored = stored(target, layout, new_columns, &measurement);
        let sum = |fields: u64| fields * (fields - 1) / 2;
        let shown = |fields: u64| (fields, fields, sum(fields));
        let mut expected: Vec<_> = [1, 2, 3].map(shown).into();
        if has_room {
            expected.extend([LARGE, LARGER].map(shown));
        }
        // Tags have columns everywhere but where these may go to JSON.
        if new_columns == "json" {
            expected.push(shown(4));
        }
        expected.sort_unstable();
        assert_eq!(stored, expected, "{} {layout} {new_columns}: {counts:?}", target.name);
        assert_eq!((counts.committed, counts.quarantined), (stored.len() as u64, 6 - stored.len() as u64));
    }
}

/// Of each record its time, which is the number of its fields, how many are stored, and their sum; in rising order.
fn stored(target: &Target, layout: &str, new_columns: &str, measurement: &str) -> Vec<(u64, u64, u64)> {
    let number = |text: &str| text.parse::<f64>().unwrap_or_else(|error| panic!("{text}: {error}")) as u64;
    let of_json = |fields: &str| -> Vec<u64> {
        let fields: serde_json::Map<String, serde_json::Value> = serde_json::from_str(fields).unwrap();
        fields.values().map(|value| value.as_f64().unwrap() as u64).collect()
    };
    let rows = match (layout, new_columns) {
        ("eav", _) => target.query(&format!(
            "SELECT v.time_ns, COUNT(*), SUM(c.float_value) FROM {measurement}_values v \
             JOIN {measurement}_cells c ON c.record_id = v.record_id GROUP BY v.record_id, v.time_ns"
        )),
        ("json", _) => target.query(&format!("SELECT time_ns, fields FROM {measurement}_values")),
        // What has no column stands in the last one.
        (_, "json") => target.query(&format!("SELECT v.time_ns, v.* FROM {measurement}_values v")),
        ("wide", _) => target.query(&format!("SELECT time_ns, f0, f1, f2 FROM {measurement}")),
        ("star", _) => target.query(&format!("SELECT time_ns, f0, f1, f2 FROM {measurement}_values")),
        _ => target.query(&format!(
            "SELECT m.time_ns, m.f0, s.f1, s.f2 FROM {measurement}_main m \
             JOIN {measurement}_secondary s ON s.record_id = m.record_id"
        )),
    };
    let mut stored: Vec<_> = rows
        .iter()
        .map(|row| {
            let cells: Vec<_> = row.split('|').collect();
            let numbers = |cells: &[&str]| cells.iter().filter(|cell| **cell != "-").map(|cell| number(cell)).collect();
            let values: Vec<u64> = match (layout, new_columns) {
                ("eav", _) => return (number(cells[0]), number(cells[1]), number(cells[2])),
                ("json", _) => of_json(cells[1]),
                // Behind the time twice and two numbers.
                (_, "json") => match cells.split_last() {
                    Some((more, columns)) if more.starts_with('{') => [numbers(&columns[4..]), of_json(more)].concat(),
                    _ => numbers(&cells[4..]),
                },
                _ => numbers(&cells[1..]),
            };
            (number(cells[0]), values.len() as u64, values.iter().sum())
        })
        .collect();
    stored.sort_unstable();
    stored
}
