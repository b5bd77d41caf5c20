//! Agents over NATS, as users start them: what becomes of a trial that has lost one, hosts, and credentials.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails with the place")]

#[path = "recorder/nats.rs"]
#[expect(dead_code, reason = "not every test file uses all of it")]
mod nats;
#[path = "cli/program.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod program;
#[path = "agents/shared.rs"]
mod shared;

use std::process::Stdio;
use std::time::Duration;

use loadline::database::{self, Endpoint};
use loadline::reason::Reason;
use loadline::server::Server;
use loadline::trial::DatabaseSettings;
use nats::Nats;
use program::{Scratch, outcome, wait_for};
use shared::{Agent, ONCE, SLOW, adds_up, shares_of, signal, study};

#[test]
fn agents_over_nats_measure_as_those_here_do_and_one_that_is_lost_ends_its_trial_only() {
    let scratch = Scratch::new();
    let nats = Nats::start(scratch.path("jetstream").display().to_string());
    let repeat = "[repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n";
    let load = "clients = 6\nduration = \"3s\"\narrivals = \"poisson\"\nrate = 100\n";
    scratch.write("s.toml", &study(SLOW, "name = \"write\"", load).replace(ONCE, repeat));
    let alone = ["run", "s.toml", "--agents", "3", "--nats", &nats.url()];
    scratch
        .run(&[&alone[..], &["--out", "nobody"]].concat())
        .refused(&["0 of 3 agents answered", "loadline agent --nats"]);
    let agents: Vec<Agent> = (0..3).map(|_| Agent::start(&scratch, &nats.url(), &[])).collect();
    let ran = outcome(scratch.command(&[&alone[..], &["--out", "run"]].concat()).env("LOADLINE_STOLEN", "1"));
    let told = ran.expect(0);
    let trials = scratch.stored("run");
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        adds_up(trial, 3);
        for agent in &trial.agents {
            assert!(agent.host.is_some() && agent.clock_error_s > 0.0, "{agent:?}");
            // Both clocks are the same one here.
            assert!(agent.clock_drift_s.unwrap().abs() < 0.5 && agent.others_cpu_before.is_some(), "{agent:?}");
            let used = agent.resources.as_ref().unwrap();
            assert!(used.cpus.unwrap() >= 1 && used.mean.client_cpu > 0.0 && used.mean.client_memory_bytes > 1e6);
        }
        assert_eq!(trial.agents.iter().map(|agent| agent.load_threads as usize).sum::<usize>(), trial.loops.len());
        let own = trial.resources.as_ref().unwrap().mean.client_cpu;
        assert!(trial.client_cpus().unwrap() > own, "the agents' CPU time counts as loadline's");
    }
    assert!(told.stdout.contains("Hosts of agents"), "{told:?}");
    let page = std::fs::read_to_string(scratch.path("run/report.html")).unwrap();
    assert!(page.contains("Their hosts in the measured phase"));
    // One of the agents dies in the first trial; another one waits.
    let spare = Agent::start(&scratch, &nats.url(), &[]);
    let mut command = scratch.command(&[&alone[..], &["--set", "load.duration=6s", "--out", "lost"]].concat());
    let running = command.env("LOADLINE_STOLEN", "1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let all = || agents.iter().chain([&spare]);
    let at_work =
        || all().filter(|agent| !shares_of(agent.0.id()).is_empty()).map(|agent| agent.0.id()).collect::<Vec<_>>();
    wait_for("three agents at work", || at_work().len() == 3);
    std::thread::sleep(Duration::from_secs(2));
    signal(at_work()[0], libc::SIGKILL);
    let told = program::Outcome::of(running.wait_with_output().unwrap()).expect(0);
    assert!(told.stderr.contains("lost, and driven once more"), "{told:?}");
    let trials = scratch.stored("lost");
    assert_eq!(trials.len(), 3);
    assert!(matches!(&trials[0].invalid_because[..], [Reason::AgentLost { of: 3, host: Some(_), .. }]), "{trials:?}");
    adds_up(&trials[1], 3);
    adds_up(&trials[2], 3);
    wait_for("all shares to be over", || at_work().is_empty());
}

#[test]
fn a_run_whose_nats_server_ends_ends_too_and_its_agents_wait_for_the_next_one() {
    let scratch = Scratch::new();
    let store = scratch.path("jetstream").display().to_string();
    let nats = Nats::start(store.clone());
    let (url, port) = (nats.url(), nats.port);
    let agents: Vec<Agent> = (0..2).map(|_| Agent::start(&scratch, &url, &[])).collect();
    let at_work = || agents.iter().filter(|agent| !shares_of(agent.0.id()).is_empty()).count();
    let run = |seconds: u32, out: &str| {
        scratch.write("s.toml", &study(SLOW, "name = \"write\"", &format!("clients = 4\nduration = \"{seconds}s\"\n")));
        let arguments = ["run", "s.toml", "--agents", "2", "--nats", &url, "--out", out];
        let mut command = scratch.command(&arguments);
        command.env("LOADLINE_STOLEN", "1").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let running = run(60, "cut");
    wait_for("two agents at work", || at_work() == 2);
    // Their load begins within moments.
    std::thread::sleep(Duration::from_secs(2));
    drop(nats);
    program::Outcome::of(running.wait_with_output().unwrap()).expect(1);
    let trials = scratch.stored("cut");
    assert_eq!((trials.len(), trials[0].trial.lost_attempt), (2, Some(1)), "{trials:?}");
    let trial = &trials[0];
    assert!(matches!(&trial.invalid_because[..], [Reason::AgentLost { of: 2, .. }]), "{:?}", trial.invalid_because);
    wait_for("all shares to be over", || at_work() == 0);
    let without = program::Outcome::of(run(1, "without").wait_with_output().unwrap());
    without.refused(&["the NATS server at nats://127.0.0.1", "Connection refused"]);
    let _nats = Nats::start_at(port, store);
    // Agents connect again after a while.
    let mut tries = 0;
    wait_for("a run with both agents", || {
        tries += 1;
        run(1, &format!("again-{tries}")).wait_with_output().unwrap().status.success()
    });
    adds_up(&scratch.stored(&format!("again-{tries}"))[0], 2);
}

#[test]
fn agents_speak_to_a_nats_server_that_asks_for_a_token_over_tls() {
    let scratch = Scratch::new();
    let nats = Nats::start_with_token(scratch.path("jetstream").display().to_string());
    let url = format!("tls://secret@localhost:{}", nats.port);
    let authority = format!("{}/certificate.pem", nats::TLS_FILES);
    let ca = ["--nats-ca", authority.as_str()];
    scratch.write("s.toml", &study("name = \"simulated\"", "name = \"write\"", "clients = 2\nduration = \"1s\"\n"));
    let _agents = [Agent::start(&scratch, &url, &ca), Agent::start(&scratch, &url, &ca)];
    let arguments = [&["run", "s.toml", "--out", "run", "--agents", "2", "--nats", &url], &ca[..]].concat();
    outcome(scratch.command(&arguments).env("LOADLINE_STOLEN", "1")).expect(0);
    adds_up(&scratch.stored("run")[0], 2);
    let wrong = url.replace("secret", "guess");
    let arguments = [&["run", "s.toml", "--out", "wrong", "--agents", "2", "--nats", &wrong], &ca[..]].concat();
    scratch.run(&arguments).refused(&["the NATS server at tls://***@localhost"]);
}

#[test]
fn a_run_waits_for_agents_or_goes_on_with_those_that_are_left_as_it_is_told() {
    let scratch = Scratch::new();
    let nats = Nats::start(scratch.path("jetstream").display().to_string());
    let url = nats.url();
    let repeat = "[repeat]\nrule = \"fixed\"\nleast = 2\nmost = 2\n";
    let text = study(SLOW, "name = \"write\"", "clients = 5\nduration = \"4s\"\n").replace(ONCE, repeat);
    scratch.write("s.toml", &text);
    scratch.write("f.toml", &(text + "[factors]\n\"load.agents\" = [1, 2]\n"));
    let fewer = ["--nats", &url, "--agents-lost", "fewer"];
    scratch.run(&[&["run", "f.toml"], &fewer[..]].concat()).refused(&["several levels"]);
    for what in ["wait", "fewer"] {
        let mut agents: Vec<Agent> = (0..3).map(|_| Agent::start(&scratch, &url, &[])).collect();
        let arguments = ["run", "s.toml", "--agents", "3", "--nats", &url, "--agents-lost", what, "--out", what];
        let mut command = scratch.command(&arguments);
        let log = scratch.path(&format!("{what}.log"));
        command.env("LOADLINE_STOLEN", "1").stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
        let running = command.spawn().unwrap();
        wait_for("three agents at work", || {
            agents.iter().filter(|agent| !shares_of(agent.0.id()).is_empty()).count() == 3
        });
        std::thread::sleep(Duration::from_secs(1));
        drop(agents.remove(1));
        if what == "wait" {
            let said = || std::fs::read_to_string(&log).unwrap();
            wait_for("the run to wait", || said().contains("2 of 3 agents are there"));
            agents.push(Agent::start(&scratch, &url, &[]));
        }
        let told = program::Outcome::of(running.wait_with_output().unwrap()).expect(0);
        let trials = scratch.stored(what);
        assert_eq!(trials.len(), 3, "{told:?}");
        assert_eq!(trials[0].trial.lost_attempt, Some(1));
        let left = if what == "wait" { 3 } else { 2 };
        trials[1..].iter().for_each(|trial| adds_up(trial, left));
        let is_noted = told.stdout.contains("2 of 2 trials were driven by fewer agents");
        assert_eq!(is_noted, what == "fewer", "{told:?}");
    }
}

#[test]
fn agents_with_another_clock_begin_together_and_readers_there_know_how_far_it_is_known() {
    let scratch = Scratch::new();
    let nats = Nats::start(scratch.path("jetstream").display().to_string());
    let settings = DatabaseSettings { name: "postgres".to_owned(), ..DatabaseSettings::default() };
    let server = Server::start(database::find("postgres").unwrap().recipe.unwrap(), &settings, None).unwrap();
    let Endpoint { user, database, password, tcp: Some((host, port)), .. } = server.endpoint() else {
        panic!("it listens on TCP")
    };
    let own = format!("name = \"postgres\"\nurl = \"postgres://{user}@{host}:{port}/{database}\"");
    let _agents = [1_000, 77_000].map(|ahead_s| Agent::start_ahead(&scratch, &nats.url(), ahead_s, password));
    let run = |study: &str, out: &str| {
        scratch.write("s.toml", study);
        let arguments = ["run", "s.toml", "--nats", &nats.url(), "--out", out];
        let mut command = scratch.command(&arguments);
        outcome(command.env("LOADLINE_STOLEN", "1").env("LOADLINE_PASSWORD", password))
    };
    let load = "clients = 4\nagents = 2\noperations = 200\n";
    run(&study(&own, "name = \"write\"", load), "load").expect(0);
    let trial = scratch.stored("load").remove(0);
    adds_up(&trial, 2);
    // By their own clocks they would have begun hours apart.
    assert!(trial.agents.iter().all(|agent| agent.began_late_s < 0.5 && agent.clock_error_s < 1.0), "{trial:?}");

    let fresh = "[freshness]\ngroups = 2\nreaders = 1\nrun_as = \"agents\"\nevery = \"400ms\"\n";
    let load = "clients = 2\nduration = \"3s\"\narrivals = \"poisson\"\nrate = 20\ndrain = \"20s\"\n";
    let text = study(&own, "name = \"freshness\"\nbatch = 1", load).replace("rows = 200\n", "") + fresh;
    let told = run(&text, "fresh").expect(0);
    let trial = scratch.stored("fresh").remove(0);
    let groups = &trial.freshness.as_ref().unwrap().groups;
    assert_eq!(groups.len(), 2, "{told:?}");
    for group in groups.values() {
        assert!(group.host.is_some() && group.clock_error_s > 0.0 && group.lost == 0, "{group:?}");
        // They look every 400 ms, and their clocks are 1,000 s and 77,000 s ahead.
        let seconds = |quantile| group.freshness.quantile_ns(quantile) as f64 / 1e9;
        assert!(group.freshness.count() > 20 && seconds(0.5) > 0.05 && seconds(1.0) < 60.0, "{group:?}");
    }
    let said = told.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("each of their times is right to ±"), "{told:?}");

    scratch.write("s.toml", &text);
    scratch.run(&["run", "s.toml"]).refused(&["no agents are named", "--nats"]);
    let path = ["run", "s.toml", "--nats", &nats.url(), "--set", "freshness.path=subscribe"];
    scratch.run(&path).refused(&["freshness.run_as is \"agents\"", "path"]);
    scratch.write("s.toml", &text.replace(&own, "name = \"postgres\""));
    scratch.run(&["run", "s.toml", "--nats", &nats.url()]).refused(&["started here", "database.url"]);
}

/// Seeds of keys for these tests: of an operator, an account and a user.
const SEEDS: [&str; 3] = [
    "SOAACAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIATA",
    "SAAAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAQCAIBAEAUN5U",
    "SUAAGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGAYDAMBQGA6BEM",
];

/// A JWT as NATS understands it: what an issuer says of a subject.
fn jwt(issuer: &nkeys::KeyPair, subject: &nkeys::KeyPair, name: &str, says: &serde_json::Value) -> String {
    use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
    let head = serde_json::json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let (iss, sub) = (issuer.public_key(), subject.public_key());
    let claims =
        serde_json::json!({ "jti": "T", "iat": 1_700_000_000, "iss": iss, "name": name, "sub": sub, "nats": says });
    let text = [head, claims].map(|part| BASE64_URL_SAFE_NO_PAD.encode(part.to_string())).join(".");
    let signature = BASE64_URL_SAFE_NO_PAD.encode(issuer.sign(text.as_bytes()).unwrap());
    format!("{text}.{signature}")
}

#[test]
fn agents_show_keys_and_credentials_to_a_nats_server_that_asks_for_them() {
    let scratch = Scratch::new();
    let [operator, account, user] = SEEDS.map(|seed| nkeys::KeyPair::from_seed(seed).unwrap());
    scratch.write("s.toml", &study("name = \"simulated\"", "name = \"write\"", "clients = 2\nduration = \"1s\"\n"));
    let limits = serde_json::json!({
        "subs": -1, "conn": -1, "leaf": -1, "imports": -1, "exports": -1, "data": -1, "payload": -1, "wildcards": true
    });
    let operator_jwt = jwt(&operator, &operator, "o", &serde_json::json!({ "type": "operator", "version": 2 }));
    let account_jwt =
        jwt(&operator, &account, "a", &serde_json::json!({ "type": "account", "version": 2, "limits": limits }));
    let unlimited = serde_json::json!({ "type": "user", "version": 2, "subs": -1, "data": -1, "payload": -1 });
    let user_jwt = jwt(&account, &user, "u", &unlimited);
    scratch.write(
        "u.creds",
        &format!(
            "-----BEGIN NATS USER JWT-----\n{user_jwt}\n------END NATS USER JWT------\n\n-----BEGIN USER NKEY SEED-----\n{}\n\
             ------END USER NKEY SEED------\n",
            SEEDS[2]
        ),
    );
    scratch.write("u.nk", &format!("# a user\n{}\n", SEEDS[2]));
    let public = account.public_key();
    let of_jwts =
        format!("operator: {operator_jwt}\nresolver: MEMORY\nresolver_preload: {{ {public}: {account_jwt} }}\n");
    let of_keys = format!("authorization: {{ users: [ {{ nkey: {} }} ] }}\n", user.public_key());
    for (kind, file, config) in [("--nats-creds", "u.creds", of_jwts), ("--nats-nkey", "u.nk", of_keys)] {
        scratch.write("nats.conf", &config);
        let nats = Nats::start_configured(
            scratch.path("nats").display().to_string(),
            &scratch.path("nats.conf").display().to_string(),
        );
        let url = nats.url();
        let (file_name, file) = (&kind[2..], scratch.path(file).display().to_string());
        let shown = [kind, file.as_str()];
        let _agents = [Agent::start(&scratch, &url, &shown), Agent::start(&scratch, &url, &shown)];
        let arguments = [&["run", "s.toml", "--out", file_name, "--agents", "2", "--nats", &url], &shown[..]].concat();
        outcome(scratch.command(&arguments).env("LOADLINE_STOLEN", "1")).expect(0);
        adds_up(&scratch.stored(file_name)[0], 2);
        let without = ["run", "s.toml", "--out", "without", "--agents", "2", "--nats", &url];
        scratch.run(&without).refused(&["the NATS server at nats://127.0.0.1"]);
        scratch.write("empty", "nothing\n");
        let empty = scratch.path("empty").display().to_string();
        scratch.run(&[&without[..], &[kind, &empty]].concat()).refused(&["empty contains no"]);
        scratch.run(&["agent", "--nats", &url, kind, "absent"]).refused(&["absent"]);
        scratch.run(&["run", "s.toml", kind, &file]).refused(&["--nats"]);
    }
}
