//! `loadline watch`: what a run is told of the machine of a server elsewhere, and who is told nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "recorder/nats.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod nats;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Stdio};
use std::time::Duration;

use harness::Target;
use loadline::database::tls::private;
use nats::Nats;
use program::Scratch;
use serde_json::Value;

const TOKEN: &str = "a-token-of-the-watcher";

/// A watcher of this machine.
struct Watcher {
    process: Child,
    address: String,
}

impl Watcher {
    fn start(scratch: &Scratch, token: &str, more: &[&str]) -> Self {
        let arguments = [&["watch", "--listen", "127.0.0.1:0", "--json"], more].concat();
        let mut command = scratch.command(&arguments);
        let mut process = command.env("LOADLINE_WATCH_TOKEN", token).stdout(Stdio::piped()).spawn().unwrap();
        let mut told = String::new();
        // The document ends with a bracket in a line of its own.
        for line in BufReader::new(process.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            told += &line;
            if line.starts_with('}') {
                break;
            }
        }
        let told: Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["token"], &told["tls"]), (&(!token.is_empty()).into(), &(!more.is_empty()).into()));
        Watcher { process, address: told["listen"].as_str().unwrap().to_owned() }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // SAFETY: the process is a child that was not waited for yet.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
        let ended = self.process.wait().unwrap();
        assert!(ended.success() || std::thread::panicking(), "{ended}");
    }
}

/// A study of one trial on a server that exists.
fn study(target: &Target, watch: &str) -> String {
    let (host, port) = target.endpoint.as_ref().unwrap().tcp.clone().unwrap();
    let endpoint = target.endpoint.as_ref().unwrap();
    let (user, password, database) = (&endpoint.user, &endpoint.password, &endpoint.database);
    format!(
        "name = \"there\"\n[database]\nname = \"postgres\"\nurl = \"postgres://{user}:{password}@{host}:{port}/{database}?sslmode=disable\"\n\
         watch = \"{watch}\"\n[workload]\nname = \"sql\"\nstatements = [{{ sql = \"SELECT count(*) FROM generate_series(1, 2000)\" }}]\n\
         [load]\nclients = 2\nduration = \"1s\"\nwarmup = \"0s\"\n[repeat]\nrule = \"fixed\"\nleast = 1\nmost = 1\n"
    )
}

#[test]
fn the_machine_of_a_server_elsewhere_is_watched_there() {
    let scratch = Scratch::new();
    let target = Target::server("postgres");
    for (name, content) in private::files(Ipv4Addr::LOCALHOST).unwrap() {
        scratch.write(name, &content);
    }
    let files = ["--tls-certificate", private::CERTIFICATE_FILE, "--tls-key", private::KEY_FILE];
    for (number, (token, more)) in [("", &[][..]), (TOKEN, &[]), (TOKEN, &files)].into_iter().enumerate() {
        let watcher = Watcher::start(&scratch, token, more);
        let tls = if more.is_empty() {
            String::new()
        } else {
            format!("?sslmode=verify-full&sslrootcert={}", private::CERTIFICATE_FILE)
        };
        let watch = format!("watch://{}{tls}", watcher.address);
        scratch.write("s.toml", &study(&target, &watch));
        let run = format!("run{number}");
        let mut command = scratch.command(&["run", "s.toml", "--out", &run]);
        program::outcome(command.env("LOADLINE_WATCH_TOKEN", token)).expect(0);
        let stored = &scratch.stored(&run)[0];
        let used = stored.resources.as_ref().unwrap();
        assert!(
            !used.server_unknown && used.others_cpu.is_some() && used.cpus.is_some_and(|cpus| cpus > 0),
            "{used:?}"
        );
        // Two clients that wait for nothing but the server: it is busy, and so is loadline a little.
        assert!(
            used.mean.server_cpu > 0.1 && used.mean.client_cpu > 0.0 && used.mean.memory_used_bytes > 0.0,
            "{used:?}"
        );
        assert!(used.mean.server_cpu <= f64::from(used.cpus.unwrap()) + 0.1, "{used:?}");
        assert!((used.mean.at_s - stored.measured_s).abs() < 0.3, "{used:?}");
        let shares = used.mean.user + used.mean.system + used.mean.iowait + used.mean.idle + used.mean.stolen;
        assert!((shares - 1.0).abs() < 0.01, "{used:?}");
        let written = std::fs::read_to_string(scratch.path(&run).join("run.toml")).unwrap();
        assert!(written.contains("CPUs") && !written.contains(TOKEN), "{written}");
        if !token.is_empty() && more.is_empty() {
            scratch.run(&["run", "s.toml", "--out", "no"]).refused(&[
                "database.watch",
                "asks for a token",
                "LOADLINE_WATCH_TOKEN",
            ]);
            let mut command = scratch.command(&["run", "s.toml", "--out", "no"]);
            let wrong = program::outcome(command.env("LOADLINE_WATCH_TOKEN", "another-token-of-it"));
            wrong.refused(&["database.watch", "the token is wrong"]);
        }
        if !more.is_empty() {
            scratch.write("s.toml", &study(&target, &format!("watch://{}", watcher.address)));
            scratch.run(&["run", "s.toml", "--out", "no"]).refused(&["database.watch"]);
        }
        drop(watcher);
        scratch.run(&["run", "s.toml", "--out", "gone"]).refused(&["database.watch", "loadline watch --listen"]);
    }
}

#[test]
fn whoever_asks_wrongly_gets_nothing_and_keeps_nobody_waiting() {
    let scratch = Scratch::new();
    let watcher = Watcher::start(&scratch, TOKEN, &[]);
    let connect = || {
        let stream = TcpStream::connect(&watcher.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    };
    let answer = |ask: &[u8]| {
        let mut stream = connect();
        // Whoever listens may have closed it already.
        let _ = stream.write_all(ask);
        let mut told = String::new();
        let _ = stream.read_to_string(&mut told);
        told
    };
    for (ask, told) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "not understood"),
        (b"{\"proof\":\"\",\"processes\":[],\"interval_ms\":100}\n", "the token is wrong"),
        (b"{\"proof\":\"00\",\"processes\":[\"postgres\"],\"interval_ms\":100}\n", "the token is wrong"),
    ] {
        let told_here = answer(ask);
        assert!(told_here.contains(told) && !told_here.contains("at_ns"), "{told_here}");
    }
    // A line without an end is not read to it.
    assert!(!answer(&vec![b'x'; 1 << 20]).contains("at_ns"));
    // Somebody who asks a letter at a time does not get more time than others.
    let mut slow = connect();
    let begun = std::time::Instant::now();
    while slow.write_all(b" ").is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(120), "it is still listened to");
        std::thread::sleep(Duration::from_millis(300));
    }
    // Eight who say nothing take no place from anybody at another address, and go after a while; a ninth of them is not served.
    let silent: Vec<TcpStream> = (0..8).map(|_| connect()).collect();
    let mut hello = [0; 1];
    for mut stream in &silent {
        stream.read_exact(&mut hello).unwrap();
    }
    let mut ninth = connect();
    assert!(matches!(ninth.read(&mut hello), Ok(0) | Err(_)));
    drop(silent);
    // Their places are free again.
    program::wait_for("a place", || {
        let mut stream = connect();
        matches!(stream.read(&mut hello), Ok(1))
    });
}

#[test]
fn nobody_is_watched_for_strangers() {
    let scratch = Scratch::new();
    let refused = |token: &str, arguments: &[&str], words: &[&str]| {
        let mut command = scratch.command(&[&["watch"], arguments].concat());
        program::outcome(command.env("LOADLINE_WATCH_TOKEN", token)).refused(words);
    };
    refused("", &["--listen", "0.0.0.0:0"], &["other machines", "LOADLINE_WATCH_TOKEN"]);
    refused("short", &["--listen", "127.0.0.1:0"], &["fewer than 16 characters", "loadline password --token"]);
    refused(TOKEN, &["--listen", "127.0.0.1:0", "--tls-certificate", "a.pem", "--tls-key", "b.pem"], &["a.pem", "PEM"]);
    refused(TOKEN, &["--listen", "somewhere"], &["somewhere"]);
    refused(TOKEN, &[], &["--listen", "--nats"]);
    refused(TOKEN, &["--listen", "127.0.0.1:0", "--nats", "nats://127.0.0.1:1"], &["--listen", "--nats"]);
    refused(TOKEN, &["--nats", "127.0.0.1:1"], &["nats://host:4222"]);
    refused(TOKEN, &["--nats", "nats://127.0.0.1:1", "--name", "a.b"], &["--name", "a.b", "letters, digits"]);
    scratch.write("s.toml", "name = \"s\"\n[database]\nwatch = \"watch://a\"\n");
    scratch.run(&["plan", "s.toml"]).refused(&["s.toml:3", "database.watch", "database.url"]);
    scratch.write(
        "s.toml",
        "name = \"s\"\n[database]\nname = \"postgres\"\nurl = \"postgres://me@a/b\"\nwatch = \"http://a\"\n",
    );
    scratch.run(&["plan", "s.toml"]).refused(&["database.watch", "watch://HOST:PORT"]);
}

/// A watcher at a NATS server. It says when it is there.
fn at_nats(scratch: &Scratch, url: &str, name: &str, token: &str) -> Watcher {
    let mut command = scratch.command(&["watch", "--nats", url, "--name", name]);
    let mut process = command.env("LOADLINE_WATCH_TOKEN", token).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut told).unwrap();
    let address = format!("nats:{name}");
    assert!(told.contains(&address) && told.contains(url), "{told}");
    Watcher { process, address }
}

#[test]
fn the_machine_of_a_server_elsewhere_is_watched_over_nats() {
    let scratch = Scratch::new();
    let (target, server) = (Target::server("postgres"), Nats::start(scratch.path("nats").display().to_string()));
    let url = server.url();
    let run = |token: &str, out: &str| {
        let mut command = scratch.command(&["run", "s.toml", "--nats", &url, "--out", out]);
        program::outcome(command.env("LOADLINE_WATCH_TOKEN", token))
    };
    for (number, token) in ["", TOKEN].into_iter().enumerate() {
        let watcher = at_nats(&scratch, &url, "db-1", token);
        scratch.write("s.toml", &study(&target, &watcher.address));
        let out = format!("run{number}");
        run(token, &out).expect(0);
        let used = scratch.stored(&out)[0].resources.clone().unwrap();
        assert!(!used.server_unknown && used.others_cpu.is_some(), "{used:?}");
        assert!(used.mean.server_cpu > 0.1 && used.mean.client_cpu > 0.0, "{used:?}");
        let shares = used.mean.user + used.mean.system + used.mean.iowait + used.mean.idle + used.mean.stolen;
        assert!((shares - 1.0).abs() < 0.01, "{used:?}");
        let written = std::fs::read_to_string(scratch.path(&out).join("run.toml")).unwrap();
        assert!(written.contains("CPUs") && !written.contains(TOKEN), "{written}");
        if !token.is_empty() {
            run("another-token-of-it", "no").refused(&["database.watch", "the token is wrong"]);
            run("", "no").refused(&["database.watch", "asks for a token"]);
        }
        let second = at_nats(&scratch, &url, "db-1", token);
        run(token, "no").refused(&["database.watch", "several watchers have the name db-1", "--name"]);
        drop(second);
        scratch.run(&["run", "s.toml", "--out", "no"]).refused(&["database.watch", "--nats"]);
    }
    run("", "gone").refused(&["database.watch", "no watcher of the name db-1", "loadline watch --nats"]);
}
