//! `/metrics`: what it says of a recorder at work, in the form that Prometheus reads.

use crate::exposition::{Metric, read};
use crate::harness::{Directory, Target, send};
use crate::process::{Process, config_file, database_of};
use crate::spools::damage_entry;

/// All that a recorder says that takes in lines and blocks, processes them, and has had some trouble.
pub fn page_of_everything(directory: &Directory, target: &Target) -> (Process, String) {
    let identity = loadline::block::age::Identity::generate().unwrap();
    std::fs::write(directory.path("centre.key"), identity.secret_text()).unwrap();
    std::fs::write(directory.path("signers"), "").unwrap();
    let [inbox, key, signers, images] = ["inbox", "centre.key", "signers", "images"].map(|name| directory.path(name));
    let more = format!(
        "[inbox]\npath = \"{inbox}\"\n[intake.put]\nlisten = \"127.0.0.1:0\"\n\
         [processing]\nidentity = \"{key}\"\nsigners = \"{signers}\"\nimages = \"{images}\"\n"
    );
    let process = Process::start(&config_file(directory, &database_of(target), &more), "");
    let write = |source: &str, body: &str| {
        let header = format!("X-Loadline-Source: {source}\r\n");
        assert_eq!(send(process.http, "POST", "/write", &header, body.as_bytes()).status, 204, "{source}");
    };
    for source in 0..250 {
        write(&format!("probe-{source}"), "m f=1\nm f=2\n");
    }
    write("a\\\"b\"{c}=\\n, d", "m f=1\n");
    for _ in 0..40 {
        write("loud", &format!("{}m f=4\n", "m f=3\n".repeat(99)));
    }
    write("others", "m f=\"x\"\n");
    let page = send(process.http, "GET", "/metrics", "", b"").body;
    (process, page)
}

fn one(metrics: &std::collections::BTreeMap<String, Metric>, name: &str) -> f64 {
    let metric = metrics.get(name).unwrap_or_else(|| panic!("there is no {name}"));
    assert_eq!(metric.samples.len(), 1, "{name}");
    metric.samples[0].value
}

#[test]
fn the_page_is_read_by_a_strict_reader_and_the_sums_over_all_sources_are_true() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let (process, page) = page_of_everything(&directory, &target);
    let metrics = read(&page);
    let rows = &metrics["loadline_source_rows_total"].samples;
    let sum: f64 = rows.iter().map(|sample| sample.value).sum();
    assert_eq!((sum, one(&metrics, "loadline_acknowledged_rows_total")), (4_502.0, 4_502.0));
    assert!(rows.len() <= 101, "{} sources are shown", rows.len());
    let of = |source: &str| {
        let sample = rows.iter().find(|sample| sample.label("source") == Some(source));
        sample.unwrap_or_else(|| panic!("{source} is not shown in {page}")).value
    };
    // Many were there before it, and all of them sent little.
    assert!(of("loud") >= 3_900.0 && of("others") >= 301.0, "{page}");
    let bytes = &metrics["loadline_source_bytes_total"].samples;
    let sum: f64 = bytes.iter().map(|sample| sample.value).sum();
    assert_eq!(sum, 6.0 * 4_501.0 + 8.0, "as they were sent");
    let kind = |name: &str| metrics.get(name).unwrap_or_else(|| panic!("there is no {name}")).kind.as_str();
    for (name, known) in [
        ("process_cpu_seconds_total", "counter"),
        ("process_resident_memory_bytes", "gauge"),
        ("process_open_fds", "gauge"),
        ("process_max_fds", "gauge"),
        ("process_start_time_seconds", "gauge"),
        ("process_threads", "gauge"),
        ("loadline_build_info", "gauge"),
        ("loadline_ready", "gauge"),
        ("loadline_damaged_rows", "gauge"),
        ("loadline_commit_seconds", "histogram"),
    ] {
        assert_eq!(kind(name), known, "{name}");
    }
    let build = &metrics["loadline_build_info"].samples[0];
    assert_eq!((build.label("version"), build.value), (Some(env!("CARGO_PKG_VERSION")), 1.0));
    assert_eq!((one(&metrics, "loadline_ready"), one(&metrics, "loadline_damaged_rows")), (1.0, 0.0));
    assert!(one(&metrics, "process_threads") >= 5.0);
    assert_eq!(process.stop(), Some(0), "a text in a column of numbers is no failure of the run");
}

#[test]
fn the_name_of_a_source_is_a_label_whatever_it_is() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let process = Process::start(&config_file(&directory, &database_of(&target), ""), "");
    let strange = "a\\\"b\"{c}=\\n, d";
    let header = format!("X-Loadline-Source: {strange}\r\n");
    assert_eq!(send(process.http, "POST", "/write", &header, b"m f=1\n").status, 204);
    let metrics = read(&send(process.http, "GET", "/metrics", "", b"").body);
    for name in ["loadline_source_rows_total", "loadline_source_bytes_total", "loadline_source_lag_seconds"] {
        let samples = &metrics[name].samples;
        assert!(samples.iter().any(|sample| sample.label("source") == Some(strange)), "{name}: {samples:?}");
    }
    assert_eq!(process.stop(), Some(0));
}

#[test]
fn damaged_rows_of_the_spool_are_counted_and_stay_counted() {
    let directory = Directory::new();
    let nobody = "name = \"mariadb\"\nurl = \"mysql://nobody@127.0.0.1:1/nothing\"";
    let process = Process::start(&config_file(&directory, nobody, "[writer]\ndrain = \"0s\"\n"), "");
    for body in ["m f=1\nm f=2\nm f=3\n", "m f=4\n"] {
        assert_eq!(send(process.http, "POST", "/write", "", body.as_bytes()).status, 204);
    }
    assert_eq!(process.stop(), Some(0));
    assert!(damage_entry(&directory.path("disk/spool"), "m f=2"));
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    // Whoever starts it again knows of it already.
    for (start, status) in [("the first", 1), ("the second", 0)] {
        let process = Process::start(&config, "");
        crate::wait_until("all is written or set aside", || process.metric("loadline_spooled_rows") == 0.0);
        assert_eq!(process.metric("loadline_damaged_rows"), 3.0, "{start}");
        assert_eq!(process.metric("loadline_quarantined_rows"), 3.0, "{start}");
        process.assert_conserved();
        assert_eq!(process.stop(), Some(status), "{start}");
    }
    assert_eq!(target.query("SELECT f FROM m_values"), ["4"]);
}
