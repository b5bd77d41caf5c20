//! Blocks over HTTP PUT: the same inbox, the same promises, in HTTP's terms.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};

use loadline::recorder::inbox::{Faults, Step};

use crate::client::{CAMERA, PASSWORD, TLS, Try, block, secure, socket, tls, wait_until};
use crate::harness::{Answer, Directory, send};

fn put(address: SocketAddr, name: &str, bytes: &[u8]) -> Answer {
    let headers = format!("Authorization: Bearer {PASSWORD}\r\n");
    send(address, "PUT", &format!("/blocks/{CAMERA}/{name}"), &headers, bytes)
}

#[test]
fn a_block_is_created_once_and_every_refusal_has_its_status() {
    let tried = Try::with("block = \"100KiB\"", "", "", "", Faults::default());
    let address = tried.address("put");
    let bytes = block(1, 90_000);
    assert_eq!(put(address, "a.block", &bytes).status, 201);
    assert_eq!(put(address, "a.block", &bytes).status, 200, "the same again is recognised");
    assert_eq!(put(address, "a.block", &bytes[1..]).status, 409);
    assert_eq!(put(address, "b.block", &block(2, 102_401)).status, 413);
    for name in ["..%2fx", "%2e%2e", "a%00b", "a%0ab", "%ff", "a/b", "", ".hidden", "%zz"] {
        assert_eq!(put(address, name, &bytes).status, 400, "{name}");
    }
    let path = format!("/blocks/{CAMERA}/c.block");
    assert_eq!(send(address, "PUT", &path, "", &bytes).status, 401);
    for header in ["Authorization: Bearer wrong\r\n", "Authorization: Basic R0RBLTAxODphIHNlY3JldA==\r\n"] {
        assert_eq!(send(address, "PUT", &path, header, &bytes).status, 401, "{header}");
    }
    let mut headers = format!("Authorization: Bearer {PASSWORD}\r\n");
    assert_eq!(send(address, "PUT", "/blocks/nobody/c.block", &headers, &bytes).status, 401);
    assert_eq!(send(address, "GET", &path, &headers, b"").status, 405);
    assert_eq!(send(address, "DELETE", &path, &headers, b"").status, 405);
    assert_eq!(put(address, "empty.block", b"").status, 400);
    headers += "Transfer-Encoding: chunked\r\n";
    let mut stream = socket(address);
    write!(stream, "PUT {path} HTTP/1.1\r\nHost: x\r\n{headers}\r\n3\r\nabc\r\n0\r\n\r\n").unwrap();
    let mut answer = [0; 15];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer[9..12], b"411");
    assert_eq!(tried.received(CAMERA), [("a.block".to_owned(), bytes)]);
}

#[test]
fn a_body_that_is_cut_anywhere_leaves_nothing() {
    let tried = Try::new("", "");
    let bytes = block(3, 200_000);
    for end in [0, 1, 100_000, 199_999] {
        let mut stream = socket(tried.address("put"));
        let path = format!("/blocks/{CAMERA}/a.block");
        let head = format!("Host: x\r\nAuthorization: Bearer {PASSWORD}\r\nContent-Length: {}", bytes.len());
        write!(stream, "PUT {path} HTTP/1.1\r\n{head}\r\n\r\n").unwrap();
        stream.write_all(&bytes[..end]).unwrap();
        stream.shutdown(Shutdown::Both).unwrap();
    }
    wait_until("all are noticed", || tried.metric("loadline_upload_connections") == 0);
    assert_eq!(tried.names(CAMERA), [""; 0]);
    tried.assert_nothing_half();
    assert_eq!(put(tried.address("put"), "a.block", &bytes).status, 201);
}

#[test]
fn when_there_is_no_room_or_no_disk_the_sender_is_told_when_to_come_again() {
    let tried = Try::with("", "blocks_per_s_per_camera = 0.01", "", "", Faults::default());
    let address = tried.address("put");
    assert_eq!(put(address, "0.block", b"0").status, 201);
    assert_eq!(put(address, "1.block", b"1").status, 201);
    let answer = put(address, "2.block", b"2");
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("retry-after: "), "{answer:?}");

    let faults = Faults::new(|step| match step {
        Step::SyncFile => Err(std::io::Error::other("no disk")),
        _ => Ok(()),
    });
    let tried = Try::with("", "", "", "", faults);
    let address = tried.address("put");
    assert_eq!(send(address, "GET", "/ready", "", b"").status, 200);
    let answer = put(address, "0.block", b"0");
    assert!(answer.status == 503 && answer.head.contains("retry-after: "), "{answer:?}");
    let answer = send(address, "GET", "/ready", "", b"");
    assert!(answer.status == 503 && answer.body.contains("no disk"), "{answer:?}");
    let page = send(address, "GET", "/metrics", "", b"").body;
    assert!(page.contains("loadline_uploads_refused_total{reason=\"broken\"} 1\n"), "{page}");
    assert_eq!(send(address, "GET", "/health", "", b"").status, 200);
}

#[test]
fn a_certificate_that_was_renewed_is_shown_by_every_way() {
    let directory = Directory::new();
    let path = directory.path("chain.pem");
    let certificate = std::fs::read_to_string(format!("{TLS}/certificate.pem")).unwrap();
    std::fs::write(&path, &certificate).unwrap();
    let lines = format!("certificate = \"{path}\"\nkey = \"{TLS}/key.pem\"");
    let tried = Try::with("", "", &format!("implicit = \"127.0.0.1:0\"\n{lines}"), &lines, Faults::default());
    // How many certificates are shown to whoever connects.
    let shown = |socket: TcpStream| {
        let mut stream = secure(socket);
        stream.conn.complete_io(&mut stream.sock).unwrap();
        stream.conn.peer_certificates().unwrap().len()
    };
    let all = || {
        let mut ftp = tried.connect();
        ftp.expect("AUTH TLS", "234 ");
        [socket(tried.address("put")), socket(tried.address("ftps")), ftp.socket].map(shown)
    };
    assert_eq!(all(), [1, 1, 1]);
    std::fs::write(&path, "nothing").unwrap();
    let reason = tried.station().read_certificates().err().unwrap();
    assert!(reason.starts_with("intake.ftp.certificate: ") && reason.contains("chain.pem"), "{reason}");
    assert_eq!(all(), [1, 1, 1]);
    std::fs::write(&path, certificate.repeat(2)).unwrap();
    let renewal = tried.station().read_certificates().unwrap_or_else(|reason| panic!("{reason}"));
    assert_eq!(all(), [1, 1, 1], "what was read is not shown yet");
    assert!(renewal.show());
    assert_eq!(all(), [2, 2, 2]);
}

#[test]
fn over_tls_it_is_the_same_and_plain_requests_are_not_heard() {
    let certificate = tls().split_once('\n').unwrap().1.to_owned();
    let tried = Try::with("", "", "", &certificate, Faults::default());
    let mut stream = secure(socket(tried.address("put")));
    let head = format!("Host: x\r\nConnection: close\r\nAuthorization: Bearer {PASSWORD}\r\nContent-Length: 5");
    write!(stream, "PUT /blocks/{CAMERA}/a.block HTTP/1.1\r\n{head}\r\n\r\nblock").unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    assert_eq!(crate::harness::try_send(tried.address("put"), "GET", "/health", "", b""), None);
    assert_eq!(tried.received(CAMERA), [("a.block".to_owned(), b"block".to_vec())]);
}
