//! Databases behind TLS, as a user reaches them: at an address of their own, as private servers of a study, and from a recorder. Recorders and NATS servers
//! behind TLS in studies.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/harness.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod harness;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;

use std::collections::{BTreeMap, BTreeSet};

use harness::{Directory, Started, Target, write};
use loadline::database::conformance::conformance;
use loadline::database::{self, Endpoint};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use program::{Scratch, outcome, small_study};

const FAST: &str = "[load]\noperations = 200\nclients = 3\nwarmup = \"0s\"";

/// A server with a certificate, and the name of its database.
fn protected(name: &'static str) -> (Server, Target) {
    let settings = DatabaseSettings {
        name: name.to_owned(),
        socket: Some("tcp".to_owned()),
        tls: Some("verify".to_owned()),
        ..DatabaseSettings::default()
    };
    let server = Server::start(database::find(name).unwrap().recipe.unwrap(), &settings, None)
        .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
    let endpoint = Endpoint { unix: None, ..server.endpoint().clone() };
    let target = Target { name, settings, endpoint: Some(endpoint), server: None };
    (server, target)
}

/// Its address with these settings behind it.
fn url(target: &Target, account: &str, settings: &str) -> String {
    let Endpoint { database, tcp: Some((host, port)), .. } = target.endpoint.as_ref().unwrap() else {
        panic!("it listens on TCP")
    };
    let scheme = if target.name == "mariadb" { "mysql" } else { "postgres" };
    format!("{scheme}://{account}@{host}:{port}/{database}?{settings}")
}

/// Connections that the server calls protected, of those that there are besides the one that asks.
const PROTECTED: [(&str, &str); 2] = [
    (
        "postgres",
        "SELECT count(*) FILTER (WHERE ssl) || ' of ' || count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE backend_type = 'client backend'",
    ),
    ("mariadb", "SHOW SESSION STATUS LIKE 'Ssl_version'"),
];

#[test]
fn codecs_conform_over_tls() {
    for (name, query) in PROTECTED {
        let (_server, target) = protected(name);
        let database = target.open();
        let failures = conformance(&*database);
        assert!(failures.is_empty(), "{name}: {}", failures.join("\n"));
        let said = target.query(query).join(" ");
        assert!(said.contains("TLSv1.3") || said.contains("1 of 1"), "{name}: {said}");
        let protection = target.session().protection();
        assert!(
            protection.as_ref().is_some_and(|said| said.contains("has proven who it is")),
            "{name}: {protection:?}"
        );
    }
}

#[test]
fn a_server_at_an_address_is_measured_over_tls_and_says_so() {
    for name in ["postgres", "mariadb"] {
        let (_server, target) = protected(name);
        let scratch = Scratch::new();
        let own = target.endpoint.clone().unwrap();
        let account = format!("{}:{}", own.user, own.password);
        let authority = own.tls.authorities.clone().unwrap();
        let proven = format!("sslmode=verify-full&sslrootcert={}", authority.display());
        let study = |load: &str, url: &str| {
            let database = format!("[database]\nname = \"{name}\"\nurl = \"{url}\"");
            small_study(&format!("{database}\n[workload]\nname = \"write\"\n{FAST}\n{load}"))
        };
        for (number, (load, url)) in [
            ("", url(&target, &account, &proven)),
            ("connect = \"each\"", url(&target, &account, "sslmode=require")),
            ("statements = \"text\"", url(&target, &account, "")),
        ]
        .iter()
        .enumerate()
        {
            scratch.write("study.toml", &study(load, url));
            let out = format!("run{number}");
            scratch.run(&["run", "study.toml", "--out", &out]).expect(0);
            for file in ["run.toml", "report.html"] {
                let text = std::fs::read_to_string(scratch.path(&out).join(file)).unwrap();
                assert!(text.contains("TLS 1.3, AES 256 GCM"), "{name}, {load}: {text}");
                assert!(!text.contains(&own.password), "{name}");
            }
        }
        let refused = |settings: &str, words: &[&str]| {
            scratch.write("study.toml", &study("", &url(&target, &account, settings)));
            scratch.run(&["run", "study.toml", "--out", "refused"]).refused(words);
            assert!(!scratch.path("refused").exists());
        };
        refused("sslmode=verify-full", &["nobody who is trusted has signed", "sslrootcert=FILE"]);
        refused("sslmode=verify-full&sslrootcert=/nowhere.pem", &["/nowhere.pem cannot be read as PEM"]);
        refused("sslmode=maybe", &["sslmode=maybe", "verify-full"]);
    }
}

#[test]
fn a_server_without_tls_is_told_where_tls_is_asked_for() {
    for name in ["postgres", "mariadb"] {
        let settings = DatabaseSettings { name: name.to_owned(), ..DatabaseSettings::default() };
        let server = Server::start(database::find(name).unwrap().recipe.unwrap(), &settings, None).unwrap();
        let endpoint = Endpoint { unix: None, ..server.endpoint().clone() };
        let account = format!("{}:{}", endpoint.user, endpoint.password);
        let target = Target { name, settings, endpoint: Some(endpoint), server: None };
        let scratch = Scratch::new();
        let run = |settings: &str, out: &str| {
            let database = format!("[database]\nname = \"{name}\"\nurl = \"{}\"", url(&target, &account, settings));
            scratch.write("study.toml", &small_study(&format!("{database}\n{FAST}")));
            scratch.run(&["run", "study.toml", "--out", out])
        };
        run("sslmode=require", "refused").refused(&["the server has no TLS", "mode=require asks for it"]);
        run("sslmode=prefer", "plain").expect(0);
        let plain = std::fs::read_to_string(scratch.path("plain").join("run.toml")).unwrap();
        assert!(plain.contains("version") && !plain.contains("TLS 1."), "{plain}");
    }
}

/// An account that must use TLS is let in where the address says nothing of it, and is told the reason where it rules TLS out.
#[test]
fn an_account_that_must_use_tls_gets_it_unasked() {
    let (_server, target) = protected("mariadb");
    let mut session = target.session();
    session.run("CREATE USER strict@'%' IDENTIFIED BY 'pw' REQUIRE SSL").unwrap();
    session.run("GRANT ALL ON *.* TO strict@'%'").unwrap();
    let scratch = Scratch::new();
    let run = |settings: &str, out: &str| {
        let database = format!("[database]\nname = \"mariadb\"\nurl = \"{}\"", url(&target, "strict:pw", settings));
        scratch.write("study.toml", &small_study(&format!("{database}\n{FAST}")));
        scratch.run(&["run", "study.toml", "--out", out])
    };
    run("", "run").expect(0);
    run("ssl-mode=DISABLED", "refused").refused(&["REQUIRE SSL", "ssl-mode=REQUIRED"]);
}

#[test]
fn tls_is_a_factor_of_private_servers() {
    let scratch = Scratch::new();
    let factors =
        "[factors]\n\"database.tls\" = [\"none\", \"verify\"]\n\"database.name\" = [\"postgres\", \"mariadb\"]";
    scratch.write(
        "study.toml",
        &small_study(&format!("[database]\nname = \"postgres\"\nsocket = \"tcp\"\n{FAST}\n{factors}")),
    );
    scratch.run(&["run", "study.toml", "--out", "run"]).expect(0);
    let run: toml::Table = std::fs::read_to_string(scratch.path("run").join("run.toml")).unwrap().parse().unwrap();
    let servers = run["environment"]["servers"].as_array().unwrap();
    let told: BTreeMap<bool, usize> = servers.iter().fold(BTreeMap::new(), |mut told, server| {
        *told.entry(server.to_string().contains("TLS 1.3")).or_insert(0) += 1;
        told
    });
    assert_eq!(told, BTreeMap::from([(false, 2), (true, 2)]), "{servers:?}");
    scratch.write("unix.toml", &small_study("[database]\nname = \"postgres\"\ntls = \"verify\""));
    scratch.run(&["plan", "unix.toml"]).refused(&["database.tls", "socket = \"tcp\""]);
}

#[test]
fn a_recorder_writes_over_tls() {
    for name in ["postgres", "mariadb"] {
        let (_server, target) = protected(name);
        let directory = Directory::new();
        let started = Started::new(&target.config(&directory, "name = \"wide\"", ""), target.open());
        for request in 0..20 {
            let lines: String = (0..500).map(|row| format!("tls,probe=p n={}i\n", request * 500 + row)).collect();
            assert_eq!(write(started.http, &lines).status, 204);
        }
        started.wait_until_committed();
        assert_eq!(started.stop().counts.committed, 10_000);
        assert_eq!(target.query("SELECT COUNT(DISTINCT n) FROM tls"), ["10000"], "{name}");
    }
}

/// Nothing is taken in by whoever takes TLS only, and nothing is stored that the recorder was not given, over TLS too where a NATS server is in front of it.
#[test]
fn tls_is_a_factor_on_the_way_to_a_recorder() {
    for path in ["http", "nats"] {
        let scratch = Scratch::new();
        // Three connections are driven by epoll, ten by io_uring.
        let factors = "[factors]\n\"recorder.tls\" = [\"none\", \"verify\"]\n\"load.clients\" = [3, 10]";
        let recorder = format!("[workload]\nname = \"write\"\nbatch = 5\n[recorder]\npath = \"{path}\"");
        scratch.write("study.toml", &small_study(&format!("{recorder}\n{FAST}\n{factors}")));
        scratch.run_study("study.toml", "run").expect(0);
        let trials = scratch.stored("run");
        let (mut drivers, mut told) = (BTreeSet::new(), BTreeMap::new());
        for trial in &trials {
            let levels = &trial.trial.case.levels;
            let recorded = trial.recorded.as_ref().unwrap();
            assert_eq!(
                (recorded.acknowledged, recorded.found, recorded.committed),
                (1_000, 1_000, 1_000),
                "{levels:?}"
            );
            let is_protected = levels["recorder.tls"] == "verify";
            let proven = recorded.protection.as_deref().map(|said| said.contains("; the server has proven who it is"));
            assert_eq!(proven, is_protected.then_some(true), "{levels:?}");
            // Studies without it keep the ids of their trials.
            let stored = serde_json::to_value(&trial.trial.case.settings.recorder).unwrap();
            assert_eq!(stored.get("tls").is_some(), is_protected, "{stored}");
            *told.entry(is_protected).or_insert(0) += 1;
            drivers.extend(trial.loops.iter().map(|each| each.driver.clone()));
        }
        assert_eq!(told[&false], told[&true]);
        assert!(drivers.contains("epoll"), "{drivers:?}");
        let report = std::fs::read_to_string(scratch.path("run").join("report.html")).unwrap();
        assert!(report.contains("recorder.tls"), "{path}");
    }
}

#[test]
fn tls_on_the_way_to_a_recorder_is_refused_where_there_is_none_or_another() {
    for (path, remedy) in [
        ("direct", "leave it out: nothing is between clients and database, whose connections database.tls protects"),
        ("ftp", "take path = \"ftps\", which is the same with TLS"),
        ("ftps", "it has TLS by itself; leave recorder.tls out"),
        ("put", "studies upload over HTTP PUT without it; take path = \"ftps\", or leave recorder.tls out"),
    ] {
        let scratch = Scratch::new();
        let record = if path == "direct" { "" } else { "[record]\ntype = \"violation\"\n" };
        let study = |tls: &str| small_study(&format!("{record}[recorder]\npath = \"{path}\"\ntls = \"{tls}\"\n{FAST}"));
        scratch.write("study.toml", &study("verify"));
        let says = format!("recorder.tls is for the paths http and nats, and recorder.path is \"{path}\"; {remedy}");
        scratch.run(&["plan", "study.toml"]).refused(&["study.toml:", &says]);
        scratch.write("study.toml", &study("none"));
        scratch.run(&["plan", "study.toml"]).expect(0);
    }
}

#[test]
fn tls_is_a_factor_where_events_are_published() {
    let scratch = Scratch::new();
    // Readers that are threads, and such that are a process, over both ways; what is asked is whether all arrives, and not when.
    let study = "[record]\ntype = \"sensor\"\n[layout]\nname = \"wide\"\n[workload]\nname = \"freshness\"\n\
        [load]\narrivals = \"constant\"\nrate = 20\nclients = 2\nduration = \"1s\"\nwarmup = \"200ms\"\n\
        [freshness]\npath = \"subscribe\"\ngroups = 1\n\
        [factors]\n\"freshness.tls\" = [\"none\", \"verify\"]\n\"freshness.run_as\" = [\"threads\", \"processes\"]";
    scratch.write("study.toml", &small_study(study));
    outcome(scratch.command(&["run", "study.toml", "--out", "run", "--json"]).env("LOADLINE_STOLEN", "1"));
    let trials = scratch.stored("run");
    assert!(trials.len() >= 8);
    for trial in &trials {
        let told = format!("{:?}: {:?}", trial.trial.case.levels, trial.invalid_because);
        let seen = trial.freshness.as_ref().expect(&told);
        let is_protected = trial.trial.case.levels["freshness.tls"] == "verify";
        let proven = seen.protection.as_deref().map(|said| said.contains("; the server has proven who it is"));
        assert_eq!(proven, is_protected.then_some(true), "{told}");
        let group = &seen.groups["1 subscribing"];
        assert!(group.expected > 0 && (group.lost, group.duplicates) == (0, 0), "{told}");
        assert_eq!(seen.stored.as_ref().map(|stored| stored.lost), Some(0), "{told}");
    }
    scratch.write("polled.toml", &small_study(&study.replace("\"subscribe\"", "\"database\"")));
    let says = "freshness.tls is for the paths subscribe and both; leave it out";
    scratch.run(&["plan", "polled.toml"]).refused(&[says]);
}
