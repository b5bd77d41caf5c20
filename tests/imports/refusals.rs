//! Torn and foreign files, contradictions, and what is left behind: nothing.

use crate::command::{Place, loadline, sample};

/// Asserts that files are refused with this message, with exit status 2, and that nothing is left.
#[track_caller]
fn assert_refused(place: &Place, tool: &str, arguments: &[&str], says: &[&str]) {
    let out = place.path("run");
    let before = std::fs::read_dir(&place.0).unwrap().count();
    let output = loadline(&[&["import", tool, "--out", &out], arguments].concat());
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(says.iter().all(|text| message.contains(text)), "{message}");
    assert_eq!(std::fs::read_dir(&place.0).unwrap().count(), before, "something was written");
}

#[test]
fn every_cut_of_a_ycsb_output_is_refused_with_file_and_line() {
    let place = Place::new();
    let text = std::fs::read_to_string(sample("ycsb", "osc-a-1.txt")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let operations = lines.iter().position(|line| line.starts_with("[UPDATE], Return")).unwrap();
    for kept in [0, 3, 7, 9, operations - 8] {
        let whole = lines[..kept].join("\n") + "\n";
        let file = place.write("cut.txt", &whole);
        assert_refused(&place, "ycsb", &[&file], &["cut.txt:", ";"]);
    }
    let within = &text[..text.len() - 2];
    let file = place.write("cut.txt", within);
    assert_refused(&place, "ycsb", &[&file], &["cut.txt:35: the last line ends within", "torn"]);
}

#[test]
fn torn_and_foreign_files_are_named_with_the_line_and_the_remedy() {
    let place = Place::new();
    let (pgbench, sysbench) = (sample("pgbench", "rate.txt"), sample("sysbench", "rate.txt"));
    assert_refused(&place, "ycsb", &[&pgbench], &["rate.txt:", "no line of YCSB's output is in it"]);
    assert_refused(&place, "sysbench", &[&pgbench], &["rate.txt:1: ", "is not how sysbench begins"]);
    assert_refused(&place, "pgbench", &[&sysbench], &["rate.txt:1: ", "neither a summary nor a log of pgbench"]);
    let log = std::fs::read_to_string(sample("pgbench", "scripts.17172")).unwrap();
    let torn = place.write("torn.1", &log[..log.len() - 5]);
    assert_refused(&place, "pgbench", &[&torn], &["torn.1:80: the last line ends within"]);
    let packed = place.0.join("packed.txt");
    std::fs::write(&packed, [b'a', b'\n', 0xff, 0xfe]).unwrap();
    assert_refused(&place, "ycsb", &[packed.to_str().unwrap()], &["packed.txt:2: this is no text"]);
    let missing = place.path("missing.txt");
    assert_refused(&place, "ycsb", &[&missing], &["missing.txt cannot be read"]);
}

#[test]
fn logs_that_do_not_fit_their_summary_are_refused() {
    let place = Place::new();
    let (summary, first, other) =
        (sample("pgbench", "rate.txt"), sample("pgbench", "rate.17126"), sample("pgbench", "scripts.17172"));
    assert_refused(&place, "pgbench", &[&summary, &first], &["rate.17126:1: its transactions are not the 240"]);
    assert_refused(&place, "pgbench", &[&first], &["the seventh number can be the schedule lag or the retries"]);
    let select = sample("pgbench", "select-1-1.txt");
    assert_refused(&place, "pgbench", &[&select, &other], &["scripts.17172:1: no summary has as many transactions"]);
}

#[test]
fn different_rates_are_no_repetitions() {
    let place = Place::new();
    let text = std::fs::read_to_string(sample("pgbench", "rate.txt")).unwrap();
    let slow = text.lines().map(|line| if line.starts_with("tps") { "tps = 21.5" } else { line });
    let (slow, other) = (slow.collect::<Vec<_>>().join("\n") + "\n", place.write("fast.txt", &text));
    let slow = place.write("slow.txt", &slow);
    assert_refused(&place, "pgbench", &[&other, &slow], &["these are no repetitions", "{load.rate}"]);
}

#[test]
fn what_the_user_tells_must_not_contradict_the_file() {
    let place = Place::new();
    let file = sample("sysbench", "rate.txt");
    let wrong = [file.as_str(), "--level", "load.clients=7"];
    assert_refused(&place, "sysbench", &wrong, &["the file tells load.clients = 2, and you 7"]);
    assert_refused(
        &place,
        "sysbench",
        &[&file, "--level", "layout=x"],
        &["--level layout=x", "did you mean layout.name?"],
    );
    assert_refused(&place, "sysbench", &[&file, &file], &["the file is given twice"]);
    std::fs::create_dir(place.0.join("run")).unwrap();
    assert_refused(&place, "sysbench", &[&file], &["exists already; name another with --out"]);
}
