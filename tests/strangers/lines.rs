//! Lines that are made to cost much: very many tags, fields and names, and strings that are never closed.

use super::harness::{Directory, Target, send, write};

/// Names with a number, each with what is behind it.
fn many(count: u32, name: &str, behind: &str) -> String {
    (0..count).map(|number| format!("{name}{number}{behind}")).collect::<Vec<_>>().join(",")
}

/// Lines with more than anybody needs are refused with the place and the setting, and cost no more than others of their length.
pub fn lines_that_are_too_large_are_refused_at_the_door(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    // In falling order, so that each is compared with those before it.
    let tags: Vec<_> = (0..40_000).rev().map(|number| format!("t{number:05}=1")).collect();
    let name = "n".repeat(513);
    let attacks = [
        (format!("large,{} f=1\n", tags.join(",")), "more than 256 tags; limits.tags bounds them"),
        (format!("large {}\n", many(400_000, "f", "=1")), "more than 4096 fields; limits.fields bounds them"),
        (format!("large {name}=1\n"), "more than 512 bytes; limits.name bounds them"),
        (format!("large,t{name}=1 f=1\n"), "more than 512 bytes; limits.name bounds them"),
        (format!("{name} f=1\n"), "more than 512 bytes; limits.name bounds them"),
        ("large a=1,f=9223372036854775808u\n".to_owned(), "whole numbers are stored up to 9223372036854775807"),
        (format!("large,t={} f=1\n", "v".repeat(70_000)), "more than 65536 bytes; limits.series bounds them"),
    ];
    for (line, reason) in &attacks {
        let answer = write(started.http, line);
        assert_eq!(answer.status, 400, "{reason}: {}", answer.body);
        assert!(answer.body.contains("line 1, column") && answer.body.contains(reason), "{reason}: {}", answer.body);
    }
    // Quadratic work on these 6 MB is hours.
    let costly: [(&[u8], &str); 3] = [
        (b"m f=\"\\\"\n", "behind a string there must be"),
        (b"m f=\"\xff\n\"\n", "not UTF-8"),
        (b"m f=1,\"\n", "has no value"),
    ];
    for (line, reason) in costly {
        let body = line.repeat(6_000_000 / line.len());
        let answer = send(started.http, "POST", "/api/v2/write", "", &body);
        assert_eq!(answer.status, 400, "{}", answer.body);
        assert!(answer.body.contains(reason), "{}", answer.body);
    }
    let good = format!("large,{} {}\n", many(256, "t", "=1"), many(20, "f", "=1"));
    assert_eq!(write(started.http, &good).status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 0);
    let stored = target.query("SELECT COUNT(*) FROM large_values");
    assert_eq!(stored, ["1"], "{}", target.name);
}

/// One batch gives a table no more columns than it may have, and its other lines and everybody else's are stored.
pub fn columns_are_bounded_within_a_batch(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "[schema]\ncolumns_max = 20\n");
    let wide: String = (0..200).map(|line| format!("bounded w{line}=1,v{line}=2 {line}\n")).collect();
    let batch = format!("bounded f=1 1\n{wide}bounded f=2 2\nbeside f=3 3\n");
    assert_eq!(write(started.http, &batch).status, 204);
    assert_eq!(write(started.http, &format!("widest {}\n", many(1_000, "f", "=1"))).status, 204);
    started.wait_until_committed();
    assert!(started.stop().counts.quarantined > 150);
    for measurement in ["bounded", "widest"] {
        let columns = format!(
            "SELECT COUNT(*) FROM loadline_column WHERE measurement = '{measurement}' AND role IN ('tag', 'field')"
        );
        let columns: u32 = target.query(&columns)[0].parse().unwrap();
        assert!((10..=20).contains(&columns), "{measurement} has {columns} in {}", target.name);
    }
    assert_eq!(target.query("SELECT f FROM bounded_values WHERE f IS NOT NULL ORDER BY f"), ["1", "2"]);
    assert_eq!(target.query("SELECT f FROM beside_values"), ["3"]);
}

/// Names that occur twice in what goes to the column of JSON: both values are stored, or the record is kept in quarantine.
pub fn values_without_columns_are_stored_whole_or_kept(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"wide\"", "[schema]\nnew_columns = \"json\"\n");
    assert_eq!(write(started.http, "twice f=1 1\n").status, 204);
    // Whatever comes with the first line gets columns, too.
    started.wait_until_committed();
    let bad = ["twice f=1,g=1,g=2 2\n", "twice,g=1 f=1,g=2 3\n", "twice,f=a f=\"text\" 4\n"];
    assert_eq!(write(started.http, &(bad.concat() + "twice,t=1 f=5,g=2 5\n")).status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 3, "{}", target.name);
    let stored = target.query("SELECT f, time_ns, more FROM twice ORDER BY time_ns");
    let stored: Vec<_> = stored.iter().map(|row| row.replace(' ', "")).collect();
    assert_eq!(stored, ["1|1|-", "5|5|{\"g\":2.0,\"t\":\"1\"}"], "{}", target.name);
}

/// The first value of a field says what its column holds, although another kind comes in the same batch: who sent the first is not refused.
pub fn the_first_value_says_what_a_column_holds(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    let mixed = "mixed,t=a f=1 1\nmixed,t=b f=\"text\",g=t 2\nmixed,t=a f=2.5,g=\"text\" 3\nmixed,t=a f=3,g=f 4\n";
    assert_eq!(write(started.http, mixed).status, 204);
    started.wait_until_committed();
    assert_eq!(started.stop().counts.quarantined, 2, "{}", target.name);
    assert_eq!(target.query("SELECT f, g FROM mixed_values ORDER BY f"), ["1|-", "3|0"], "{}", target.name);
}
