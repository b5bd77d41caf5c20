//! What operators do with a recorder and see of it: reloading, the model that paces it, its quarantine, who is asked to wait.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/harness.rs"]
mod harness;
#[path = "recorder/model.rs"]
mod model;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "recorder/process.rs"]
mod process;
#[expect(dead_code, reason = "not every test file uses all of it")]
#[path = "report/synthetic.rs"]
mod synthetic;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use harness::{Directory, Started, Target, send, write};
use loadline::recorder::config;
use loadline::recorder::spool::{Refusal, SpoolFile, list};
use model::run_of;
use process::{Process, config_file, database_of};

/// Waits until something is so, however long a busy machine takes.
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A run at rising rates of an imagined M/M/1 server that takes 1,000 transactions of 50 rows a second.
fn run_of_a_model(directory: &Directory) -> String {
    run_of(directory, "run", 4, 50)
}

#[test]
fn the_load_line_of_a_run_paces_the_writers_and_moves_with_the_bound() {
    let directory = Directory::new();
    let run = run_of_a_model(&directory);
    let target = Target::sqlite(&directory);
    let admission = |below: &str| format!("[admission]\nmodel = \"{run}\"\nquantile = 0.99\nbelow = \"{below}\"\n");
    let config = config_file(&directory, &database_of(&target), &admission("20ms"));
    let process = Process::start(&config, "");
    let rate = || process.metric("loadline_admission_rate_rows_per_second");
    // 99 % of an M/M/1 server's response times are below t at mu - ln(100) / t arrivals a second.
    let line = |below_s: f64| 50.0 * (1000.0 - 100_f64.ln() / below_s);
    assert!((rate() / line(0.020) - 1.0).abs() < 0.1, "{} {}", rate(), line(0.020));
    assert_eq!(process.metric("loadline_admission_window_rows"), 50.0);
    config_file(&directory, &database_of(&target), &admission("10ms"));
    process.signal(libc::SIGHUP);
    wait_until("the bound is another one", || (rate() / line(0.010) - 1.0).abs() < 0.1);
    // No rate stays below this bound: it is said, and nothing is changed.
    config_file(&directory, &database_of(&target), &admission("1ms"));
    process.signal(libc::SIGHUP);
    wait_until("it is said", || process.said().contains("nothing is changed"));
    assert!((rate() / line(0.010) - 1.0).abs() < 0.1 && process.said().contains("raise admission.below"));
    let begun = Instant::now();
    for request in 0..20 {
        let body: String = (0..1_000).map(|row| format!("m,host=h f={}i\n", request * 1_000 + row)).collect();
        assert_eq!(write(process.http, &body).status, 204);
    }
    // The line bounds the rate from above; a bucket's content may come on top.
    let passed_s = begun.elapsed().as_secs_f64();
    assert!(20_000.0 <= 1.1 * line(0.010) * (passed_s + 0.2), "20,000 rows in {passed_s} s");
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert_eq!(target.query("SELECT COUNT(DISTINCT f) FROM m_values"), ["20000"]);
}

#[test]
fn a_model_that_permits_no_rate_is_refused_before_anything_is_started() {
    let directory = Directory::new();
    let (run, empty) = (run_of_a_model(&directory), run_of(&directory, "empty", 0, 50));
    let nowhere = ("/nowhere", "admission.model \"/nowhere\"");
    for (model, says) in [(run.as_str(), "raise admission.below"), (empty.as_str(), "has no valid trial"), nowhere] {
        let more = format!("[admission]\nmodel = \"{model}\"\nbelow = \"1ms\"\n");
        let config = config_file(&directory, &format!("path = \"{}\"", directory.path("m.db")), &more);
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.code() == Some(2) && said.contains(says), "{said}");
    }
}

#[test]
fn tokens_and_certificates_change_under_way_and_what_cannot_is_said() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let files = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorder/tls");
    let certificate = directory.path("certificate.pem");
    std::fs::copy(format!("{files}/certificate.pem"), &certificate).unwrap();
    let config = |token: &str, more: &str| {
        let tls = format!("certificate = \"{certificate}\"\nkey = \"{files}/key.pem\"");
        let more = format!("[intake.tcp]\nlisten = \"127.0.0.1:0\"\n{tls}\n{more}");
        let path = config_file(&directory, &database_of(&target), &more);
        let text = std::fs::read_to_string(&path).unwrap();
        let with = format!("listen = \"127.0.0.1:0\"\ntokens = [\"{token}\"]\n[schema]");
        std::fs::write(&path, text.replace("listen = \"127.0.0.1:0\"\n[schema]", &with)).unwrap();
        path
    };
    // As under nohup, which has the signal ignored.
    let [old, new] = ["the-old-token-of-all", "the-new-token-of-all"];
    let process = Process::start(&config(old, ""), "trap '' HUP;");
    let status = |token: &str| {
        let header = format!("Authorization: Token {token}\r\n");
        send(process.http, "POST", "/write", &header, b"m f=1 1").status
    };
    assert_eq!((status(old), status(new)), (204, 401));
    config(new, "[writer]\nbatch = 77\ndrain = \"1s\"\n");
    process.signal(libc::SIGHUP);
    wait_until("the new token is known", || status(new) == 204);
    assert_eq!(status(old), 401);
    wait_until("it is said", || process.said().contains("the configuration was read again"));
    let said = process.said();
    assert!(said.contains("take effect at the next start\" settings=\"[writer], but for drain\""), "{said}");
    assert!(said.contains("applied=\"tokens, writer.drain, certificates\""), "{said}");
    // With a certificate that cannot be read, and with a configuration that is wrong, nothing is changed.
    config(old, "");
    std::fs::write(&certificate, "nothing").unwrap();
    process.signal(libc::SIGHUP);
    wait_until("it is said", || process.said().contains("intake.tcp.certificate: "));
    assert_eq!((status(old), status(new)), (401, 204), "{}", process.said());
    std::fs::write(directory.path("recorder.toml"), "[database]\nname = \"sqlit\"\n").unwrap();
    process.signal(libc::SIGHUP);
    wait_until("it is said", || process.said().contains("unknown database.name"));
    assert!(process.said().contains("did you mean \\\"sqlite\\\"?"), "{}", process.said());
    assert_eq!(status(new), 204);
    for line in process.said().lines() {
        assert!(line.starts_with("time=") && line.contains(" level=") && line.contains(" event=\""), "{line}");
    }
    assert_eq!(process.stop(), Some(0));
}

/// Where a part of a recorder listens, as it says.
fn address_of(process: &Process, name: &str) -> std::net::SocketAddr {
    let begins = format!("intake=\"{name}\" address=\"");
    wait_until("it is said", || process.said().contains(&begins));
    let said = process.said();
    let rest = said.split(&begins).nth(1).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

/// What `loadline password` prints for what it is given.
fn hashed(arguments: &[&str], secret: &str) -> String {
    let mut child = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .arg("password")
        .args(arguments)
        .arg("--stdin")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(secret.as_bytes()).unwrap();
    String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
}

#[test]
fn senders_limits_cameras_and_readers_change_in_one_step_or_not_at_all() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let (users, inbox, audit) = (directory.path("cameras"), directory.path("inbox"), directory.path("audit"));
    let configure = |secret: &str, tags: &str| {
        let hash = hashed(&["--token"], &format!("token-of-the-probes-{secret}"));
        let office = format!("[office]\nlisten = \"127.0.0.1:0\"\naudit = \"{audit}\"\n");
        let readers = format!("readers = {{ desk = \"token-of-the-desk-{secret}\" }}\n");
        let blocks = format!("[inbox]\npath = \"{inbox}\"\n[intake.blocks]\nusers = \"{users}\"\n");
        let put = "[intake.put]\nlisten = \"127.0.0.1:0\"\n";
        let access = format!("[[access]]\nname = \"probes\"\n{hash}[limits]\ntags = {tags}\n");
        config_file(&directory, &database_of(&target), &(office + &readers + &blocks + put + &access))
    };
    let password = |secret: &str| std::fs::write(&users, hashed(&["GDA-018"], &format!("camera-{secret}"))).unwrap();
    password("old");
    let process = Process::start(&configure("old", "2"), "");
    let (put, office) = (address_of(&process, "put"), address_of(&process, "office"));
    let statuses = |secret: &str| {
        let token = format!("Authorization: Token token-of-the-probes-{secret}\r\n");
        let camera = format!("Authorization: Bearer camera-{secret}\r\n");
        let desk = format!("Authorization: Bearer token-of-the-desk-{secret}\r\n");
        [
            send(process.http, "POST", "/write", &token, b"m,a=1,b=2 f=1 1").status,
            send(put, "PUT", &format!("/blocks/GDA-018/{secret}.block"), &camera, b"block").status,
            send(office, "GET", "/violations/x", &desk, b"").status,
        ]
    };
    // What is let in is looked at: there are no violations.
    assert_eq!((statuses("old"), statuses("new")), ([204, 201, 404], [401, 401, 401]));
    let reload = |times: usize| {
        process.signal(libc::SIGHUP);
        let told = || process.said().matches("event=\"the configuration ").count();
        wait_until("it is said", || told() == times);
    };
    // One thing is wrong, and all stays as it was.
    password("new");
    configure("new", "0");
    reload(1);
    assert!(process.said().contains("limits.tags is 0"), "{}", process.said());
    configure("new", "1");
    std::fs::write(&users, "GDA-018 no-hash\n").unwrap();
    reload(2);
    assert!(process.said().contains("cameras:1: camera GDA-018 is no hash"), "{}", process.said());
    assert_eq!(statuses("old"), [204, 200, 404]);
    assert_eq!(statuses("new"), [401, 401, 401]);
    password("new");
    reload(3);
    assert!(process.said().contains("applied=\"[[access]], [limits], office.readers, cameras\""), "{}", process.said());
    assert_eq!(statuses("old"), [401, 401, 401]);
    assert_eq!(statuses("new"), [400, 201, 404], "a line may have one tag now");
    assert_eq!(process.stop(), Some(0));
}

#[test]
fn an_address_that_stays_open_is_not_left_without_a_token() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let configure = |listen: &str| {
        let path = config_file(&directory, &database_of(&target), "[limits]\ntags = 3\n");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace("listen = \"127.0.0.1:0\"", listen)).unwrap();
        path
    };
    let open = "listen = \"0.0.0.0:0\"\ntokens = [\"token-of-all-0123456789\"]\ninsecure = true";
    let process = Process::start(&configure(open), "");
    let http = std::net::SocketAddr::from(([127, 0, 0, 1], process.http.port()));
    let status =
        |token: &str| send(http, "POST", "/write", &format!("Authorization: Token {token}\r\n"), b"m f=1 1").status;
    assert_eq!((status("token-of-all-0123456789"), status("nobody")), (204, 401));
    // Good by itself: only this machine is listened to. But the old address stays until the restart.
    configure("listen = \"127.0.0.1:0\"");
    process.signal(libc::SIGHUP);
    wait_until("it is said", || process.said().contains("there is no token, and 0.0.0.0:0 is listened on"));
    assert!(process.said().contains("nothing is changed"));
    assert_eq!((status("token-of-all-0123456789"), status("nobody"), status("")), (204, 401, 401));
    assert_eq!(process.stop(), Some(0));
}

#[test]
fn greedy_sources_are_asked_to_wait_first_and_a_full_spool_refuses_everybody() {
    let directory = Directory::new();
    let text = format!(
        "[database]\nname = \"mariadb\"\nurl = \"mysql://nobody@127.0.0.1:1/nothing\"\n[spool]\npath = \"{}\"\nbound = \"1MiB\"\n\
         [intake.http]\nlisten = \"127.0.0.1:0\"\n[intake.tcp]\nlisten = \"127.0.0.1:0\"\n[writer]\ndrain = \"0s\"\n",
        directory.path("spool")
    );
    let config = config::read(&text, "test.toml").unwrap();
    let database = loadline::database::find("mariadb").unwrap().open_sql(
        &config.database,
        Some(&loadline::database::Endpoint { tcp: Some(("127.0.0.1".to_owned(), 1)), ..Default::default() }),
    );
    let started = Started::new(&config, std::sync::Arc::from(database.unwrap()));
    let post = |source: &str, bytes: usize| {
        let body = format!("m f=\"{}\"\n", "x".repeat(bytes));
        send(started.http, "POST", "/write", &format!("X-Loadline-Source: {source}\r\n"), body.as_bytes())
    };
    let mut greedy = 0;
    let refusal = loop {
        // Others are there, and send a little.
        (0..5).for_each(|modest| assert_eq!(post(&format!("modest {modest}"), 1_000).status, 204));
        let answer = post("greedy", 50_000);
        if answer.status != 204 {
            break answer;
        }
        greedy += 1;
    };
    assert!(refusal.status == 429 && refusal.head.contains("\r\nretry-after: "), "{refusal:?}");
    assert!((8..18).contains(&greedy), "{greedy} of 50 kB in 1 MiB: from half of it on");
    assert_eq!(post("modest 1", 1_000).status, 204, "the others go on");
    let mut source = 0;
    let refusal = loop {
        source += 1;
        let answer = post(&format!("another {source}"), 20_000);
        match answer.status {
            204 | 429 => assert!(source < 1_000),
            _ => break answer,
        }
    };
    assert!(refusal.status == 503 && refusal.head.contains("\r\nretry-after: "), "{refusal:?}");
    assert!(refusal.body.contains("takes in again at 75 %"), "{}", refusal.body);
    let ready = send(started.http, "GET", "/ready", "", b"");
    assert!(ready.status == 503 && ready.body.contains("the spool is full"), "{ready:?}");
    assert_eq!(send(started.http, "GET", "/health", "", b"").status, 200);
    let mut stream = TcpStream::connect(started.tcp).unwrap();
    stream.write_all(b"m f=1\n\n").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"busy ");
    drop(stream);
    started.stop();
}

#[test]
fn slow_requests_over_http_are_ended_and_those_in_memory_are_bounded() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "[intake]\nmemory = \"8MiB\"\nrequest = \"4MiB\"\n");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text.replace("[intake.http]", "[intake.http]\npatience = \"1s\"")).unwrap();
    let process = Process::start(&config, "");
    let connect = || TcpStream::connect(process.http).unwrap();
    let answer = |mut stream: TcpStream| {
        let mut said = String::new();
        // Whoever is cut off may hear of it as an error.
        let _ = stream.read_to_string(&mut said);
        said
    };
    let (mut slow_head, mut slow_body) = (connect(), connect());
    slow_head.write_all(b"POST /write HT").unwrap();
    slow_body.write_all(b"POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nm f=1\n").unwrap();
    assert!(!answer(slow_head).contains("204"));
    assert!(answer(slow_body).starts_with("HTTP/1.1 408 "));
    // Far more than may be in memory, and none of it whole.
    let head = format!("POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 3 << 20);
    let many: Vec<_> = (0..30)
        .map(|_| {
            let mut stream = connect();
            stream.set_write_timeout(Some(Duration::from_secs(10))).unwrap();
            let _ = stream.write_all(&[head.as_bytes(), &vec![b'#'; 2 << 20]].concat());
            stream
        })
        .collect();
    let refused = many.into_iter().map(answer).filter(|said| said.starts_with("HTTP/1.1 503 ")).count();
    assert!(refused > 0 && process.metric("loadline_turned_away_requests_total") >= 1.0, "{refused}");
    wait_until("there is memory again", || write(process.http, "m,host=h f=2\n").status == 204);
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert_eq!(target.query("SELECT DISTINCT f FROM m_values"), ["2"]);
}

#[test]
fn a_batch_with_a_bad_line_is_refused_as_a_whole_where_that_is_wanted() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let mut config = target.config(&directory, "name = \"wide\"", "");
    config.intake.keeps_good_lines = false;
    let started = Started::new(&config, target.open());
    let answer = write(started.http, "m f=1\nm f=\nm f=3\n");
    assert!(answer.status == 400 && answer.body.contains("nothing is stored: line 2, column 5"), "{answer:?}");
    assert_eq!(write(started.http, "m f=4\n").status, 204);
    assert_eq!(started.stop().counts.acknowledged, 1);
    assert_eq!(target.query("SELECT f FROM m"), ["4"]);
}

#[test]
fn what_was_quarantined_before_a_crash_is_not_stored_beside_it() {
    let directory = Directory::new();
    let target = Target::server("postgres");
    let started = target.start(&directory, "name = \"wide\"", "");
    assert_eq!(write(started.http, "q f=1i 1\n").status, 204);
    started.wait_until_committed();
    started.stop();
    // A recorder that came as far as the quarantine of the second of three records, and was killed then.
    let config = target.config(&directory, "name = \"wide\"", "");
    let mut file = SpoolFile::open(&config.spool.path, config.spool.bound_bytes, config.spool.remember).unwrap();
    let offer = loadline::recorder::spool::Offer {
        lane: 0,
        source: "s".into(),
        sender: "".into(),
        message_id: String::new(),
        received_ns: 7,
        precision: Default::default(),
        rows: 3,
        body: b"q f=2i 2\nq f=3i 3\nq f=4i 4\n".to_vec(),
        is_packed: false,
    };
    let mut group = file.begin().unwrap();
    let loadline::recorder::spool::Stored::New(sequence) = group.append(&offer).unwrap() else { panic!() };
    let refusal = Refusal { row: 1, rows: 1, body: b"q f=3i 3\n".to_vec(), reason: "it was bad then".to_owned() };
    let entry = loadline::recorder::spool::Entry { sequence, offer };
    group.quarantine(&entry, &refusal, 9).unwrap();
    group.commit().unwrap();
    drop(file);
    let started = target.start(&directory, "name = \"wide\"", "");
    started.wait_until_committed();
    let end = started.stop();
    assert_eq!((end.counts.committed, end.counts.spooled, end.counts.quarantined), (3, 0, 1));
    assert_eq!(target.query("SELECT f FROM q ORDER BY f"), ["1", "2", "4"]);
    assert_eq!(loadline::recorder::replay_quarantine(&config).unwrap().rows, 1);
    let started = target.start(&directory, "name = \"wide\"", "");
    started.wait_until_committed();
    started.stop();
    assert_eq!(target.query("SELECT f FROM q ORDER BY f"), ["1", "2", "3", "4"]);
}

#[test]
fn the_quarantine_is_listed_replayed_and_discarded_from_the_command_line() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    let process = Process::start(&config, "");
    // Of a column of floats, which a later text does not fit into.
    assert_eq!(write(process.http, "m,host=h f=1 1\n").status, 204);
    assert_eq!(write(process.http, "m,host=h f=\"x\" 2\nm,host=h f=2 3\n").status, 204);
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0), "what is in quarantine is no failure of the recorder");
    let run = |action: &str, more: &[&str]| {
        let program = env!("CARGO_BIN_EXE_loadline");
        let ended =
            Command::new(program).args(["record", &config, "--quarantine", action]).args(more).output().unwrap();
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
        String::from_utf8_lossy(&ended.stdout).into_owned()
    };
    let listed = run("list", &[]);
    assert!(listed.contains("m,host=h f=\"x\" 2") && listed.contains("its column holds float"), "{listed}");
    let listed: serde_json::Value = serde_json::from_str(&run("list", &["--json"])).unwrap();
    assert_eq!(listed["quarantined"][0]["line"], "m,host=h f=\"x\" 2");
    assert!(run("replay", &[]).starts_with("1 records wait in the spool again"));
    let process = Process::start(&config, "");
    wait_until("it is refused again", || process.metric("loadline_quarantined_rows") == 1.0);
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert!(run("discard", &[]).starts_with("1 records were removed"));
    assert!(list(&directory.0.join("disk/spool"), 10).unwrap().is_empty());
    let process = Process::start(&config, "");
    process.assert_conserved();
    assert_eq!(process.stop(), Some(0));
    assert_eq!(target.query("SELECT f FROM m_values ORDER BY f"), ["1", "2"]);
}

#[test]
fn what_a_recorder_keeps_can_be_read_by_its_user_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    let mode = |path: &str| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o644)).unwrap();
    let process = Process::start(&config, "umask 022;");
    assert_eq!(send(process.http, "POST", "/write", "", b"m f=1\n").status, 204);
    for place in ["disk/spool", "disk/spool/entries", "disk/spool/lasting"] {
        assert_eq!(mode(&directory.path(place)), 0o700);
    }
    let kept = ["entries/mark", "lasting/mark", "lasting/segment-0000000001"];
    let kept = kept.map(|file| directory.path(&format!("disk/spool/{file}")));
    for file in kept.into_iter().chain([directory.path("measurements.db")]) {
        assert_eq!(mode(&file), 0o600, "{file}");
    }
    assert!(process.said().contains("every user of this machine can read the configuration"), "{}", process.said());
    assert_eq!(process.stop(), Some(0));
    std::fs::set_permissions(&config, std::fs::Permissions::from_mode(0o640)).unwrap();
    let process = Process::start(&config, "umask 022;");
    assert!(!process.said().contains("can read the configuration"), "{}", process.said());
    assert_eq!(process.stop(), Some(0));
}

#[test]
fn what_strangers_send_never_commands_the_terminal_of_whoever_looks_at_it() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let config = config_file(&directory, &database_of(&target), "");
    let process = Process::start(&config, "");
    let lines = "m,host=h f=1 1\nm,host=h f=\"\x1b]0;owned\x07\x1b[2J\u{9b}31m\" 2\n";
    assert_eq!(write(process.http, lines).status, 204);
    assert_eq!(process.stop(), Some(0));
    let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config, "--quarantine", "list"]).output();
    let listed = String::from_utf8(ended.unwrap().stdout).unwrap();
    assert!(listed.contains("owned") && listed.contains("\\u{1b}"), "{listed}");
    assert!(!listed.contains(['\x1b', '\x07', '\u{9b}']), "{listed:?}");
}
