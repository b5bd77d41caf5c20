//! Clients that must show a certificate: whoever shows none, or one that somebody else has signed, sends nothing.

use std::process::Command;
use std::time::{Duration, Instant};

use super::harness::{Directory, Target, send};
use super::process::{Process, config_file, database_of};

const TLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/recorder/tls");

/// What curl answers and says when it writes a line with such a certificate of its own, or with none.
fn write_as(process: &Process, own: Option<&str>, line: &str) -> (bool, String) {
    let url = format!("https://localhost:{}/api/v2/write", process.http.port());
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--noproxy", "*", "--max-time", "60", "--cacert", &format!("{TLS}/certificate.pem")]);
    if let Some(own) = own {
        let key = format!("{TLS}/{own}-key.pem");
        curl.args(["--cert", &format!("{TLS}/{own}.pem"), "--key", &key]);
    }
    let ended = curl.args(["-w", "%{http_code}", "--data-binary", line, &url]).output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout).into_owned() + &String::from_utf8_lossy(&ended.stderr);
    (ended.status.success(), said)
}

/// What a recorder has said, once that is among it.
fn said_at_last(process: &Process, what: &str) -> String {
    let begun = Instant::now();
    loop {
        let said = process.said();
        if said.contains(what) {
            return said;
        }
        assert!(begun.elapsed() < Duration::from_secs(240), "{what}: {said}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

pub fn only_clients_with_a_certificate_are_let_in() {
    let directory = Directory::new();
    let target = Target::sqlite(&directory);
    let tls = format!("certificate = \"{TLS}/certificate.pem\"\nkey = \"{TLS}/key.pem\"");
    let metrics = "[metrics]\nlisten = \"127.0.0.1:0\"\n";
    let config = config_file(&directory, &database_of(&target), metrics);
    let text = std::fs::read_to_string(&config).unwrap();
    let with = format!("[intake.http]\n{tls}\nclient_authority = \"{TLS}/client-authority.pem\"\n");
    std::fs::write(&config, text.replace("[intake.http]\n", &with)).unwrap();
    let process = Process::start(&config, "");
    assert_eq!(write_as(&process, Some("client"), "m f=1i 1"), (true, "204".to_owned()));
    for own in [None, Some("stranger")] {
        let (is_answered, said) = write_as(&process, own, "m f=2i 2");
        assert!(!is_answered && said.contains("000"), "{own:?}: {said}");
    }
    let said = said_at_last(&process, "why=\"this one showed no certificate that is trusted\"");
    let metrics = said.split("intake=\"metrics\" address=\"").nth(1).unwrap();
    let metrics = metrics.split('"').next().unwrap().parse().unwrap();
    let page = send(metrics, "GET", "/metrics", "", b"").body;
    let line = "loadline_connections_put_out_total{intake=\"http\",why=\"certificate\"} 2\n";
    assert!(page.contains(line), "{page}");
    assert_eq!(process.stop(), Some(0));
    assert_eq!(target.query("SELECT f FROM m_values"), ["1"]);
    std::fs::write(&config, text.replace("[intake.http]\n", &with.replace("client-authority.pem", "key.pem"))).unwrap();
    let refused = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["record", &config]).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && said.contains("key.pem cannot be read as PEM: there is no certificate"),
        "{said}"
    );
}
