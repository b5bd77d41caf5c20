//! Senders with names: what a token says about whoever has it, and that nobody's ids are found in place of another's.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;

use loadline::recorder::access::TokenHash;

use super::harness::{Answer, Directory, Started, Target, send};

const VICTIM: &str = "token-of-the-victim-0123456789";
const THIEF: &str = "token-of-the-thief-0123456789";
const OLD: &str = "token-without-a-name-0123456789";

/// `[[access]]` of a sender.
fn sender(name: &str, token: &str, more: &str) -> String {
    format!("[[access]]\nname = \"{name}\"\ntoken_hash = \"{}\"\n{more}\n", TokenHash::of(token).text())
}

fn post(started: &Started, token: &str, headers: &str, body: &str) -> Answer {
    let headers = format!("Authorization: Token {token}\r\n{headers}");
    send(started.http, "POST", "/api/v2/write", &headers, body.as_bytes())
}

/// Sends batches on one connection over TCP; the answers.
fn over_tcp(address: SocketAddr, batches: &[&str]) -> Vec<String> {
    let mut stream = TcpStream::connect(address).unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
    let mut answers = Vec::new();
    for batch in batches {
        // One that was refused before has ended the connection.
        let _ = stream.write_all(format!("{batch}\n\n").as_bytes());
        answers.extend(lines.next().and_then(Result::ok));
    }
    answers
}

/// Whoever calls itself like another, and takes the other's ids first, keeps nothing of the other's from being stored.
pub fn an_id_that_a_stranger_has_used_is_new(target: &Target) {
    let directory = Directory::new();
    let both = sender("victim", VICTIM, "") + &sender("thief", THIEF, "");
    let started = target.start(&directory, "name = \"star\"", &both);
    let headers = "X-Loadline-Source: victim\r\nIdempotency-Key: batch-1\r\n";
    assert_eq!(post(&started, THIEF, headers, "theft f=1i 1").status, 204);
    for _ in 0..3 {
        assert_eq!(post(&started, VICTIM, headers, "theft f=2i 2").status, 204);
    }
    let head = |token: &str, id: &str| format!("# token={token} source=victim id={id}\n");
    let stolen = head(THIEF, "batch-2") + "theft f=3i 3";
    assert_eq!(over_tcp(started.tcp, &[&stolen, &stolen]), ["ok 1", "duplicate"]);
    let own = head(VICTIM, "batch-2") + "theft f=4i 4";
    assert_eq!(over_tcp(started.tcp, &[&own]), ["ok 1"]);
    // The same sender is known by the same ids, whichever way it comes.
    let again = headers.replace("batch-1", "batch-2");
    assert_eq!(post(&started, VICTIM, &again, "theft f=5i 5").status, 204);
    started.wait_until_committed();
    started.stop();
    assert_eq!(target.query("SELECT f FROM theft_values ORDER BY f"), ["1", "2", "3", "4"], "{}", target.name);
}

/// Without tokens ids belong to addresses.
pub fn without_tokens_ids_belong_to_addresses(target: &Target) {
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    let url = format!("http://{}/write", started.http);
    for (from, value) in [("127.0.0.2", 1), ("127.0.0.1", 2), ("127.0.0.1", 3)] {
        let body = format!("addresses f={value}i {value}");
        let sent = Command::new("curl")
            .args(["-sS", "--noproxy", "*", "--interface", from, "-H", "X-Loadline-Source: victim"])
            .args(["-H", "Idempotency-Key: batch-1", "-w", "%{http_code}", "--data-binary", &body, &url])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8_lossy(&sent.stdout), "204", "{}", String::from_utf8_lossy(&sent.stderr));
    }
    started.wait_until_committed();
    started.stop();
    assert_eq!(target.query("SELECT f FROM addresses_values ORDER BY f"), ["1", "2"], "{}", target.name);
}

/// A sender that may send some measurements under some names sends no others.
pub fn senders_do_what_they_may_and_no_more(target: &Target) {
    let directory = Directory::new();
    let rules = "sources = [\"north-*\"]\nmeasurements = [\"qos\", \"cpu*\"]";
    let access = sender("probes-north", VICTIM, rules) + &sender("fast", THIEF, "rate = 1\nbytes = \"1MiB\"");
    let mut config = target.config(&directory, "name = \"star\"", &access);
    for listen in [&mut config.intake.http, &mut config.intake.tcp] {
        listen.as_mut().unwrap().tokens = vec![OLD.to_owned()];
    }
    let started = Started::new(&config, target.open());
    assert_eq!(post(&started, VICTIM, "X-Loadline-Source: north-1\r\n", "qos f=1i 1\ncpu7 f=1i 1").status, 204);
    let stranger = post(&started, VICTIM, "X-Loadline-Source: south-1\r\n", "qos f=2i 2");
    assert_eq!(stranger.status, 403);
    for part in ["source \\\"south-1\\\"", "sender \\\"probes-north\\\"", "\\\"north-*\\\"", "add it to sources"] {
        assert!(stranger.body.contains(part), "{part}: {}", stranger.body);
    }
    let other = post(&started, VICTIM, "", "qos f=3i 3\n\nbad line\nsecret f=3i 3\nqos f=4i 4");
    assert_eq!(other.status, 403);
    for part in ["nothing is stored: line 4: measurement \\\"secret\\\"", "add it to measurements", "\"line\":4"] {
        assert!(other.body.contains(part), "{part}: {}", other.body);
    }
    let head = |source: &str| format!("# token={VICTIM} source={source}\n");
    let answers =
        over_tcp(started.tcp, &[&(head("north-2") + "qos f=5i 5"), "secret f=6i 6", &(head("x") + "qos f=7i 7")]);
    assert_eq!(answers[0], "ok 1");
    assert!(answers[1].starts_with("error nothing is stored: line 1: measurement \"secret\""), "{answers:?}");
    assert!(answers[2].starts_with("error source \"x\" is none of sender \"probes-north\""), "{answers:?}");
    // As many rows as it likes at once, and then it waits for them.
    let rows: String = (0..5_000).map(|row| format!("qos f=8i {row}\n")).collect();
    assert_eq!(post(&started, THIEF, "", &rows).status, 204);
    let waits = post(&started, THIEF, "", "qos f=9i 9");
    assert_eq!(waits.status, 429, "{}", waits.body);
    let after = waits.head.split("retry-after: ").nth(1).and_then(|rest| rest.split("\r\n").next());
    assert!((4_000..=5_000).contains(&after.unwrap().parse::<u32>().unwrap()), "{}", waits.head);
    assert!(waits.body.contains("sender \\\"fast\\\"") && waits.body.contains("nothing is stored"), "{}", waits.body);
    let busy = over_tcp(started.tcp, &[&format!("# token={THIEF}\nqos f=9i 9")]);
    assert!(busy[0].starts_with("busy 4") || busy[0].starts_with("busy 5"), "{busy:?}");
    assert_eq!(post(&started, OLD, "X-Loadline-Source: anybody\r\n", "anything f=10i 10").status, 204, "it may do all");
    for token in ["token-of-nobody-0123456789", ""] {
        let refused = post(&started, token, "", "qos f=11i 11");
        assert!(refused.status == 401 && refused.head.contains("www-authenticate: token"), "{refused:?}");
    }
    assert!(
        over_tcp(started.tcp, &["# token=token-of-nobody\nqos f=12i 12"])[0].starts_with("error send a known token")
    );
    let page = started.recorder.metrics();
    for (intake, why, count) in [
        ("http", "token", 2),
        ("tcp", "token", 1),
        ("http", "source", 1),
        ("tcp", "source", 1),
        ("http", "measurement", 1),
        ("tcp", "measurement", 1),
        ("http", "rate", 1),
        ("tcp", "rate", 1),
    ] {
        let line = format!("loadline_strangers_refused_total{{intake=\"{intake}\",why=\"{why}\"}} {count}\n");
        assert!(page.contains(&line), "{line} {page}");
    }
    started.wait_until_committed();
    started.stop();
    assert_eq!(target.query("SELECT DISTINCT f FROM qos_values ORDER BY f"), ["1", "5", "8"], "{}", target.name);
    assert_eq!(target.query("SELECT f FROM anything_values"), ["10"]);
}

/// What `loadline password --token` prints is a token, once, and its hash.
pub fn a_token_is_made_with_its_hash() {
    let run = |arguments: &[&str]| {
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline")).args(["password", "--token"]).args(arguments).output();
        let ended = ended.unwrap();
        assert!(ended.status.success(), "{ended:?}");
        [ended.stdout, ended.stderr].map(|bytes| String::from_utf8(bytes).unwrap())
    };
    let [line, said] = run(&[]);
    let token = said.trim().rsplit(' ').next().unwrap();
    assert_eq!(line, format!("token_hash = \"{}\"\n", TokenHash::of(token).text()));
    assert!(token.len() >= 40 && run(&[])[1] != said);
    let told: serde_json::Value = serde_json::from_str(&run(&["--json"])[0]).unwrap();
    assert_eq!(told["token_hash"], TokenHash::of(told["token"].as_str().unwrap()).text());
}

/// A request that names two hosts or none is refused by all that speak HTTP.
pub fn requests_name_one_host(target: &Target) {
    use std::io::Read;
    let directory = Directory::new();
    let started = target.start(&directory, "name = \"star\"", "");
    let status = |head: &str| {
        let mut stream = TcpStream::connect(started.http).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).unwrap();
        String::from_utf8_lossy(&answer[9..]).into_owned()
    };
    assert_eq!(status("GET /health HTTP/1.1\r\n\r\n"), "400");
    assert_eq!(status("GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), "400");
    assert_eq!(status("GET /health HTTP/1.1\r\nHost: a\r\n\r\n"), "200");
    assert_eq!(status("GET /health HTTP/1.0\r\n\r\n"), "200");
    started.stop();
}
