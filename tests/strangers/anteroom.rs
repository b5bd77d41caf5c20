//! Those who have shown no token hold nothing that the others need: neither memory, nor places, nor time. And they see no metrics.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use loadline::recorder::access::TokenHash;
use loadline::server::raise_descriptors;

use super::harness::{Answer, Directory, Target, send};
use super::process::{Process, database_of};

const TOKEN: &str = "token-of-the-sender-0123456789";
const WATCHER: &str = "token-of-the-watcher-0123456789";

/// A recorder into SQLite, as a process of its own.
struct Attacked {
    process: Process,
    target: Target,
    tcp: SocketAddr,
    stored: u32,
    _directory: Directory,
}

impl Attacked {
    /// One that needs a token; `listen` goes into both intakes, `more` behind all.
    fn new(listen: &str, more: &str) -> Self {
        Self::with(&format!("tokens = [\"{TOKEN}\"]\n{listen}"), more)
    }

    fn with(listen: &str, more: &str) -> Self {
        raise_descriptors();
        let directory = Directory::new();
        let target = Target::sqlite(&directory);
        let path = directory.path("recorder.toml");
        let text = format!(
            "[database]\n{}\n[layout]\nname = \"wide\"\n[spool]\npath = \"{}\"\n[intake.http]\nlisten = \"127.0.0.1:0\"\n\
             {listen}\n[intake.tcp]\nlisten = \"127.0.0.1:0\"\n{listen}\n{more}",
            database_of(&target),
            directory.path("spool")
        );
        std::fs::write(&path, text).unwrap();
        let process = Process::start(&path, "");
        let tcp = address(&process, "tcp");
        Attacked { process, target, tcp, stored: 0, _directory: directory }
    }

    fn post(&self, headers: &str, body: &str) -> Answer {
        let headers = format!("Authorization: Token {TOKEN}\r\n{headers}");
        send(self.process.http, "POST", "/write", &headers, body.as_bytes())
    }

    /// What whoever has a token asks of a recorder, over connections of its own: all of it is done.
    fn serves_those_with_a_token(&mut self, times: u32) {
        for _ in 0..times {
            let (first, second) = (self.stored, self.stored + 1);
            assert_eq!(self.post("", &format!("m f={first}\n")).status, 204);
            let mut client = Client::new(self.tcp, &format!("# token={TOKEN}\n"));
            assert_eq!(client.ask(&format!("m f={second}\n\n")), "ok 1\n");
            self.stored += 2;
        }
    }

    /// Everything that was acknowledged is in the table, once, and nothing else.
    fn stop(self) {
        assert_eq!(self.process.stop(), Some(0));
        let counts = self.target.query("SELECT COUNT(*), COUNT(DISTINCT f), MIN(f), MAX(f) FROM m");
        let all = self.stored;
        assert_eq!(counts[0].replace(".0", ""), format!("{all}|{all}|0|{}", all - 1));
    }
}

/// Where an intake listens.
fn address(process: &Process, intake: &str) -> SocketAddr {
    let mut said = String::new();
    wait_until(|| {
        said = process.said();
        said.contains(&format!("intake=\"{intake}\" address=\""))
    });
    let rest = said.split(&format!("intake=\"{intake}\" address=\"")).nth(1).unwrap();
    rest.split('"').next().unwrap().parse().unwrap()
}

fn wait_until(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(240), "it does not come");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A connection over TCP that is answered.
struct Client {
    stream: TcpStream,
    answers: BufReader<TcpStream>,
}

impl Client {
    fn new(address: SocketAddr, head: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let answers = BufReader::new(stream.try_clone().unwrap());
        Client { stream, answers }
    }

    fn ask(&mut self, batch: &str) -> String {
        let _ = self.stream.write_all(batch.as_bytes());
        let mut answer = String::new();
        let _ = self.answers.read_line(&mut answer);
        answer
    }
}

/// Connections that send something at first and then a byte again and again, each of them, until they are put out.
#[derive(Default)]
struct Slow(Mutex<Vec<TcpStream>>);

impl Slow {
    fn add(&self, to: SocketAddr, connections: usize, first: &str) {
        for _ in 0..connections {
            let mut stream = TcpStream::connect(to).unwrap();
            stream.set_nonblocking(true).unwrap();
            let _ = stream.write_all(first.as_bytes());
            self.0.lock().unwrap().push(stream);
        }
    }

    fn go_on(&self, until: &AtomicBool) {
        while !until.load(Ordering::Relaxed) {
            let is_open = |stream: &mut TcpStream| match stream.write(b"x") {
                Ok(_) => true,
                Err(error) => error.kind() == std::io::ErrorKind::WouldBlock,
            };
            self.0.lock().unwrap().retain_mut(is_open);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// A thousand connections that say nothing, and a thousand and more whose heads and first lines never end.
pub fn silent_and_slow_connections_keep_nobody_out() {
    let mut attacked = Attacked::new("patience = \"60s\"", "");
    let (http, tcp) = (attacked.process.http, attacked.tcp);
    let mut early = Client::new(tcp, &format!("# token={TOKEN}\n"));
    assert_eq!(early.ask("early f=1\n\n"), "ok 1\n");
    let silent: Vec<_> =
        [http, tcp].into_iter().flat_map(|to| (0..1_000).map(move |_| TcpStream::connect(to))).collect();
    attacked.serves_those_with_a_token(5);
    let (slow, is_over) = (Slow::default(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| slow.go_on(&is_over));
        for _ in 0..4 {
            slow.add(http, 300, "POST /write HTTP/1.1\r\nHost: x\r\nX-Slow: ");
            slow.add(tcp, 300, "# token=");
            attacked.serves_those_with_a_token(5);
        }
        is_over.store(true, Ordering::Relaxed);
    });
    for intake in ["http", "tcp"] {
        let metric = |name: &str| attacked.process.metric(&format!("loadline_connections_{name}"));
        wait_until(|| metric(&format!("put_out_total{{intake=\"{intake}\",why=\"room\"}}")) >= 1_950.0);
        assert!(metric(&format!("waiting{{intake=\"{intake}\"}}")) <= 250.0);
        assert_eq!(metric(&format!("refused_total{{intake=\"{intake}\",why=\"all\"}}")), 0.0);
    }
    assert_eq!(early.ask("early f=2\n\n"), "ok 1\n", "who was let in is not disturbed");
    drop((silent, slow));
    assert!(attacked.process.said().contains("connections are refused or put out"));
    attacked.stop();
}

/// Connections without a token that send whatever they can, and none of it comes into the memory of requests.
pub fn nothing_that_all_share_is_taken_before_a_token_is_known() {
    let mut attacked = Attacked::new("patience = \"60s\"", "");
    let (http, tcp) = (attacked.process.http, attacked.tcp);
    let endless = "x".repeat(1 << 20);
    let attack = |number: usize| {
        let stream = TcpStream::connect(if number.is_multiple_of(2) { tcp } else { http }).unwrap();
        stream.set_write_timeout(Some(Duration::from_millis(20))).unwrap();
        let first = match number % 6 {
            0 => "m f=\"",
            2 => "# token=wrong-token-0123456789\nm f=\"",
            4 => "# source=a\nm f=1\n\nm f=\"",
            1 => "POST /write HTTP/1.1\r\nHost: x\r\nContent-Length: 16000000\r\n\r\n",
            3 => "POST /write HTTP/1.1\r\nHost: x\r\nAuthorization: Token wrong\r\nContent-Length: 16000000\r\n\r\n",
            _ => "POST /write HTTP/1.1\r\nHost: x\r\nX-Endless: ",
        };
        // It may be cut off while it sends.
        let _ = (&stream).write_all(first.as_bytes());
        let _ = (&stream).write_all(endless.as_bytes());
        stream
    };
    let held: Vec<_> = (0..2 * 94).map(attack).collect();
    assert_eq!(attacked.process.metric("loadline_memory_request_bytes"), 0.0);
    attacked.serves_those_with_a_token(10);
    for (number, mut stream) in held.into_iter().enumerate() {
        let mut said = Vec::new();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let _ = stream.read_to_end(&mut said);
        let said = String::from_utf8_lossy(&said);
        // Who is cut off while it sends may hear of it as an error, and of nothing else.
        let may_say = match number % 6 {
            0 => "error the first line",
            2 | 4 => "error send a known token first",
            1 | 3 => "HTTP/1.1 401 ",
            _ => "HTTP/1.1 431 ",
        };
        assert!(said.is_empty() || said.starts_with(may_say), "{number}: {said}");
    }
    assert_eq!(attacked.process.metric("loadline_memory_request_bytes"), 0.0);
    attacked.stop();
}

/// Requests that announce much and send little hold little; those that send it all are stored.
pub fn what_is_only_announced_holds_nothing() {
    let mut attacked = Attacked::new("", "[intake]\nmemory = \"32MiB\"\n");
    let head = |bytes: usize| {
        format!("POST /write HTTP/1.1\r\nHost: x\r\nAuthorization: Token {TOKEN}\r\nContent-Length: {bytes}\r\n\r\n")
    };
    let connect = |first: &str| {
        let mut stream = TcpStream::connect(attacked.process.http).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        stream
    };
    let announced: Vec<_> = (0..8).map(|number| connect(&(head(16 << 20) + &"#".repeat(number % 4 * 1_000)))).collect();
    let mut too_large = String::new();
    let mut stream = connect(&head((16 << 20) + 1));
    let _ = stream.read_to_string(&mut too_large);
    assert!(too_large.starts_with("HTTP/1.1 413 "), "{too_large}");
    let held = |attacked: &Attacked| attacked.process.metric("loadline_memory_request_bytes");
    wait_until(|| held(&attacked) > 0.0);
    assert!(held(&attacked) <= 8.0 * 16_384.0, "{} bytes are held", held(&attacked));
    // One of as many bytes as there may be is stored beside them, in pieces.
    let first = attacked.stored;
    let rows: Vec<_> =
        (first..first + 2_000).map(|row| format!("m f={row},text=\"{}\"\n", "x".repeat(8_000))).collect();
    let body = rows.concat();
    assert!(body.len() > 15 << 20);
    let mut stream = connect(&head(body.len()));
    body.as_bytes().chunks(300_001).for_each(|piece| stream.write_all(piece).unwrap());
    let mut answer = [0; 13];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 204 ");
    drop((stream, announced));
    attacked.stored += 2_000;
    attacked.serves_those_with_a_token(2);
    wait_until(|| held(&attacked) == 0.0);
    attacked.stop();
}

/// A head, a body, a first line and a batch each have one patience, however often a byte of them comes.
pub fn a_patience_does_not_begin_anew_with_each_byte() {
    let mut attacked = Attacked::new("patience = \"3s\"", "");
    let (http, tcp) = (attacked.process.http, attacked.tcp);
    let trickle = |to: SocketAddr, first: &str| {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.write_all(first.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        let (begun, mut said) = (Instant::now(), Vec::new());
        let mut piece = [0; 1_000];
        loop {
            assert!(begun.elapsed() < Duration::from_secs(240), "it goes on for ever: {first}");
            // One that was ended is read to its end.
            let _ = stream.write_all(b"x");
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => said.extend_from_slice(&piece[..read]),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        String::from_utf8(said).unwrap()
    };
    let token = format!("Authorization: Token {TOKEN}\r\n");
    for (to, first, says) in [
        (http, "POST /write HTTP/1.1\r\nHost: x\r\nX-Slow: ".to_owned(), "HTTP/1.1 408 "),
        (http, format!("POST /write HTTP/1.1\r\nHost: x\r\n{token}Content-Length: 100000\r\n\r\n"), "HTTP/1.1 408 "),
        (tcp, "# token=".to_owned(), "error the first line took longer than intake.tcp.patience"),
        (tcp, format!("# token={TOKEN} id=1\nm f=99 "), "busy 1 the batch took longer than intake.tcp.patience"),
    ] {
        let said = trickle(to, &first);
        assert!(said.starts_with(says), "{first}: {said}");
    }
    attacked.serves_those_with_a_token(3);
    let slow = |intake: &str| format!("loadline_connections_put_out_total{{intake=\"{intake}\",why=\"slow\"}}");
    assert_eq!((attacked.process.metric(&slow("http")), attacked.process.metric(&slow("tcp"))), (2.0, 2.0));
    attacked.stop();
}

/// Connections from another address of this machine, held by another program: those that say `head` at first.
fn hold_from(from: &str, to: SocketAddr, connections: usize, head: &str) -> std::process::Child {
    let program = "import socket, sys\n\
        held = []\n\
        for _ in range(int(sys.argv[3])):\n    \
            one = socket.socket()\n    \
            one.bind((sys.argv[1], 0))\n    \
            one.connect(('127.0.0.1', int(sys.argv[2])))\n    \
            held.append(one)\n    \
            try:\n        \
                one.sendall(sys.argv[4].encode())\n    \
            except OSError:\n        \
                pass  # It was refused.\n\
        print('held', flush=True)\n\
        sys.stdin.read()\n";
    let arguments = ["-c", program, from, &to.port().to_string(), &connections.to_string(), head];
    let mut child =
        Command::new("python3").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "held\n");
    child
}

/// One address has as many connections as it may, whether it says something or not.
pub fn an_address_has_its_own_bound() {
    let mut attacked = Attacked::new("connections = 40\nconnections_per_address = 6", "");
    let tcp = attacked.tcp;
    let mut silent = hold_from("127.0.0.2", tcp, 30, "");
    let count = |attacked: &Attacked, what: &str| {
        attacked.process.metric(&format!("loadline_connections_{what}{{intake=\"tcp\"}}"))
    };
    let of_tcp = |attacked: &Attacked, what: &str, why: &str| {
        attacked.process.metric(&format!("loadline_connections_{what}_total{{intake=\"tcp\",why=\"{why}\"}}"))
    };
    wait_until(|| of_tcp(&attacked, "put_out", "room") == 24.0);
    assert_eq!((count(&attacked, "open"), of_tcp(&attacked, "refused", "address")), (6.0, 0.0));
    attacked.serves_those_with_a_token(3);
    let mut known = hold_from("127.0.0.3", tcp, 6, &format!("# token={TOKEN}\n"));
    wait_until(|| (count(&attacked, "open"), count(&attacked, "waiting")) == (12.0, 6.0));
    let mut more = hold_from("127.0.0.3", tcp, 4, &format!("# token={TOKEN}\n"));
    wait_until(|| of_tcp(&attacked, "refused", "address") == 4.0);
    attacked.serves_those_with_a_token(3);
    for child in [&mut silent, &mut known, &mut more] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    attacked.stop();
}

/// Where nobody needs a token there is room for a benchmark, and silence keeps nobody out either.
pub fn without_tokens_there_is_room_for_many_and_silence_keeps_nobody_out() {
    let mut attacked = Attacked::with("", "");
    let mut clients: Vec<_> = (0..400).map(|_| Client::new(attacked.tcp, "")).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.ask(&format!("m f={number}\n\n")), "ok 1\n");
    }
    attacked.stored = 400;
    for what in ["refused_total{intake=\"tcp\",why=\"all\"}", "refused_total{intake=\"tcp\",why=\"address\"}"] {
        assert_eq!(attacked.process.metric(&format!("loadline_connections_{what}")), 0.0);
    }
    let put_out = "loadline_connections_put_out_total{intake=\"tcp\",why=\"room\"}";
    assert_eq!(attacked.process.metric(put_out), 0.0);
    let silent: Vec<_> = (0..1_000).map(|_| TcpStream::connect(attacked.tcp).unwrap()).collect();
    wait_until(|| attacked.process.metric(put_out) == 400.0);
    attacked.serves_those_with_a_token(10);
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(
            client.ask(&format!("m f={}\n\n", attacked.stored + number as u32)),
            "ok 1\n",
            "it was there before"
        );
    }
    attacked.stored += 400;
    drop((silent, clients));
    attacked.stop();
}

/// `/metrics` is shown to whoever has its token, at its own address alone.
pub fn metrics_have_an_address_and_a_token_of_their_own() {
    let hash = TokenHash::of(WATCHER).text();
    let metrics = format!("[metrics]\nlisten = \"127.0.0.1:0\"\ntoken_hash = \"{hash}\"\n");
    let mut attacked = Attacked::new("", &metrics);
    let at = address(&attacked.process, "metrics");
    attacked.serves_those_with_a_token(1);
    let ask = |to: SocketAddr, path: &str, headers: &str| send(to, "GET", path, headers, b"");
    let own = format!("Authorization: Bearer {WATCHER}\r\n");
    let senders = format!("Authorization: Bearer {TOKEN}\r\n");
    for headers in ["", &own, &senders] {
        let answer = ask(attacked.process.http, "/metrics", headers);
        assert!(answer.status == 404 && answer.body.contains("[metrics]"), "{answer:?}");
    }
    assert_eq!(ask(attacked.process.http, "/health", "").status, 200);
    for headers in ["", &senders] {
        let answer = ask(at, "/metrics", headers);
        assert!(answer.status == 401 && !answer.body.contains("loadline_"), "{answer:?}");
    }
    let silent: Vec<_> = (0..300).map(|_| TcpStream::connect(at).unwrap()).collect();
    let page = ask(at, "/metrics", &own).body;
    for line in [
        "loadline_acknowledged_rows_total 2\n",
        "loadline_connections_waiting{intake=\"http\"} 0\n",
        "loadline_connections_put_out_total{intake=\"tcp\",why=\"room\"} 0\n",
        "loadline_build_info{version=",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    let mut names: Vec<_> = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all, "each name stands once");
    assert_eq!((ask(at, "/write", &own).status, send(at, "POST", "/metrics", &own, b"").status), (404, 405));
    drop(silent);
    attacked.stop();
}

/// The office and those who upload by PUT are found by whoever has a token, however many are silent there.
pub fn silent_connections_keep_nobody_from_the_office_and_from_uploading() {
    let directory = Directory::new();
    let (audit, images, inbox) = (directory.path("audit"), directory.path("images"), directory.path("inbox"));
    let reader = "desk-token-0123456789";
    let more = format!(
        "[office]\nlisten = \"127.0.0.1:0\"\naudit = \"{audit}\"\nimages = \"{images}\"\npatience = \"60s\"\n\
         readers = {{ desk = \"{reader}\" }}\n[inbox]\npath = \"{inbox}\"\n[intake.put]\nlisten = \"127.0.0.1:0\"\n\
         patience = \"60s\"\n"
    );
    let mut attacked = Attacked::new("", &more);
    let (office, put) = (address(&attacked.process, "office"), address(&attacked.process, "put"));
    let silent: Vec<_> =
        [office, put].into_iter().flat_map(|to| (0..400).map(move |_| TcpStream::connect(to))).collect();
    for number in 0..5 {
        let headers = format!("Authorization: Bearer {reader}\r\n");
        // There are no violations, nor a table for them; it is answered all the same.
        assert_ne!(send(office, "GET", "/violations", &headers, b"").status, 401);
        let path = format!("/blocks/GDA-017/{number}.block");
        assert_eq!(send(put, "PUT", &path, "", b"a block").status, 201);
    }
    attacked.serves_those_with_a_token(2);
    let page = send(attacked.process.http, "GET", "/metrics", "", b"").body;
    for name in
        ["office_connections_put_out_total{intake=\"office\"", "upload_connections_put_out_total{intake=\"put\""]
    {
        let line = page.lines().find(|line| line.starts_with(&format!("loadline_{name},why=\"room\"}}")));
        assert!(line.is_some_and(|line| !line.ends_with(" 0")), "{name}: {page}");
    }
    drop(silent);
    attacked.stop();
}
