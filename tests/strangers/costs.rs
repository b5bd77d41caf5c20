//! What senders cost others who look after a recorder: its log, its quarantine, its audit file; and what of them stands there.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::harness::{Directory, Target, send};
use super::process::{Process, config_file, database_of};

fn metric(page: &str, name: &str) -> f64 {
    let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
    value.unwrap_or_else(|| panic!("there is no {name} in {page}"))
}

/// Nobody reads its log any more, and it goes on, and ends when it is asked to.
pub fn a_log_that_nobody_reads_stops_nobody() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::with_capacity(1, child.stderr.take().unwrap());
    let http = loop {
        let mut line = String::new();
        assert!(log.read_line(&mut line).unwrap() > 0, "it ended");
        if let Some(rest) = line.split("intake=\"http\" address=\"").nth(1) {
            break rest.trim_end().trim_end_matches('"').parse().unwrap();
        }
    };
    let write = |body: &str| send(http, "POST", "/write", "", body.as_bytes()).status;
    assert_eq!(write("m f=1\n"), 204);
    // Each says a line of more than 100 bytes; a pipe holds 64 KiB and the queue 1,000 lines.
    for number in 0..3_000 {
        assert_eq!(write(&format!("m f=\"text {number}\"\n")), 204);
    }
    let page = send(http, "GET", "/metrics", "", b"").body;
    assert_eq!(metric(&page, "loadline_quarantined_rows"), 3_000.0);
    assert!(metric(&page, "loadline_log_lines_dropped_total") > 500.0, "{page}");
    assert!(page.contains("loadline_build_info{version=\""), "{page}");
    assert!(metric(&page, "process_resident_memory_bytes") > 1e6);
    assert_eq!(send(http, "GET", "/ready", "", b"").status, 200);
    // SAFETY: kill takes no pointer; the process is the child that this test has started and not waited for.
    unsafe { libc::kill(child.id() as libc::pid_t, libc::SIGTERM) };
    assert_eq!(child.wait().unwrap().code(), Some(0), "records in quarantine are no failure");
    let mut rest = String::new();
    log.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("records are quarantined"), "{rest}");
    assert_eq!(target.query("SELECT COUNT(*) FROM m_values"), ["1"]);
}

/// Many bad lines in few bytes make no more of themselves than they were.
pub fn bad_lines_cost_little_more_than_their_bytes() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "columns_max = 8\n");
    let process = Process::start(&config, "");
    let post = |body: &[u8], headers: &str| send(process.http, "POST", "/write", headers, body).status;
    assert_eq!(post(b"m a=1,b=1,c=1,d=1,e=1,f=1,g=1,h=1\n", ""), 204);
    let wrong_kind = format!("m f=\"{}\"\n", "x".repeat(150)).repeat(60_000);
    let name = "\u{1}".repeat(480);
    let no_column: String = (0..20_000).map(|number| format!("m {name}{number}=1\n")).collect();
    let mut said_before = process.said().len();
    for (body, lines) in [(wrong_kind, 60_000.0), (no_column, 20_000.0)] {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(body.as_bytes()).unwrap();
        let packed = packed.finish().unwrap();
        assert!(packed.len() < body.len() / 100);
        let page = send(process.http, "GET", "/metrics", "", b"").body;
        let (rows, bytes) = (metric(&page, "loadline_quarantined_rows"), metric(&page, "loadline_quarantined_bytes"));
        assert_eq!(post(&packed, "Content-Encoding: gzip\r\n"), 204);
        let page = send(process.http, "GET", "/metrics", "", b"").body;
        assert_eq!(metric(&page, "loadline_quarantined_rows") - rows, lines);
        let kept = metric(&page, "loadline_quarantined_bytes") - bytes;
        assert!(kept < 4.0 * body.len() as f64, "{kept} bytes are kept of {}", body.len());
        let said = process.said().len();
        assert!(said - said_before < 200_000, "{} bytes are said", said - said_before);
        said_before = said;
    }
    // What it has in memory is looked at as well.
    assert_eq!(process.stop(), Some(0));
}

/// Strangers at the ticket office are refused and counted, and do not fill its audit file.
pub fn strangers_do_not_fill_the_audit_file() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let audit = directory.path("audit");
    let office = format!(
        "[office]\nlisten = \"127.0.0.1:0\"\naudit = \"{audit}\"\nreaders = {{ desk = \"desk-token-0123456789\" }}\nimages = \"{}\"\n",
        directory.path("images")
    );
    let process = Process::start(&config_file(&directory, &database_of(&target), &office), "");
    let begun = Instant::now();
    let address = loop {
        if let Some(rest) = process.said().split("intake=\"office\" address=\"").nth(1) {
            break rest.split('"').next().unwrap().parse().unwrap();
        }
        assert!(begun.elapsed() < Duration::from_secs(240));
        std::thread::sleep(Duration::from_millis(5));
    };
    let begun = Instant::now();
    let path = format!("/violations?plate={}", "x".repeat(4_000));
    for _ in 0..500 {
        assert_eq!(send(address, "GET", &path, "Authorization: Bearer wrong\r\n", b"").status, 401);
    }
    let lines_max = 11 + begun.elapsed().as_secs();
    assert_eq!(send(process.http, "POST", "/write", "", b"m f=1\n").status, 204);
    assert_eq!(process.stop(), Some(0));
    let audit = std::fs::read_to_string(audit).unwrap();
    let lines: Vec<serde_json::Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let written = lines.iter().filter(|line| line["status"] == 401).count() as u64;
    let left_out: u64 = lines.iter().filter_map(|line| line["left_out"].as_u64()).sum();
    assert_eq!(written + left_out, 500, "{audit}");
    assert!(written <= lines_max && audit.len() < 1_000 * lines.len(), "{audit}");
}

/// Passwords and tokens stand neither in the log nor in what is said of a configuration.
pub fn secrets_are_told_to_nobody() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let nats = "[intake.nats]\nurl = \"nats://user:geheim@127.0.0.1:1\"\nstream = \"s\"\nconsumer = \"c\"\n";
    let config = config_file(&directory, &database_of(&target), nats);
    let process = Process::start(&config, "");
    let begun = Instant::now();
    while !process.said().contains("waiting for NATS") {
        assert!(begun.elapsed() < Duration::from_secs(240), "{}", process.said());
        std::thread::sleep(Duration::from_millis(5));
    }
    let said = process.said();
    assert!(said.contains("nats://***@127.0.0.1:1") && !said.contains("geheim"), "{said}");
    assert_eq!(process.stop(), Some(0));
    for wrong in [
        "[intake.nats]\nurl = \"mqtt://user:geheim@h\"\nstream = \"s\"\nconsumer = \"c\"\n",
        "[intake.tcp]\nlisten = \"127.0.0.1:0\"\ntokens = \"geheim\"\n",
        "[intake.tcp]\nlisten = \"127.0.0.1:0\"\ntoken = \"geheim\"\n",
        "[office]\nlisten = \"127.0.0.1:0\"\nreaders = { desk = \"geheim\" }\n",
    ] {
        let config = config_file(&directory, &database_of(&target), wrong);
        let output = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && !said.contains("geheim"), "{wrong}: {said}");
    }
}
