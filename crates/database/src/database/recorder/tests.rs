//! Tests of clients that use TLS to a recorder and to a NATS server, against rustls servers that are correct, have another certificate, use plain text, or lie.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::fuzzed::record_type;
use super::*;
use crate::database::tls::private::{self, CERTIFICATE_FILE, KEY_FILE};

use crate::statement::{Expect, Request, Step};

const GREETING: &str = "INFO {\"version\":\"2.9.10\",\"tls_required\":true}\r\n";

/// Takes a connection and returns it protected by TLS.
type Sealing = Box<dyn FnOnce(TcpStream) -> Sealed + Send>;
type Sealed = BufReader<StreamOwned<ServerConnection, TcpStream>>;

/// A certificate like those of private servers, in a directory of its own.
struct Own(PathBuf);

impl Own {
    fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("loadline-recorder-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        for (name, content) in private::files(Ipv4Addr::LOCALHOST).unwrap() {
            std::fs::write(directory.join(name), content).unwrap();
        }
        Own(directory)
    }

    /// Returns a function that protects a connection with this certificate.
    fn over(&self) -> Sealing {
        let certificate = CertificateDer::from_pem_file(self.0.join(CERTIFICATE_FILE)).unwrap();
        sealing(certificate, PrivateKeyDer::from_pem_file(self.0.join(KEY_FILE)).unwrap())
    }
}

/// Returns a function that protects a connection with a certificate for the same address, signed by an authority that is not trusted.
fn by_a_stranger() -> Sealing {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "stranger");
    let stranger = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec![Ipv4Addr::LOCALHOST.to_string()]).unwrap();
    let certificate = certificate.signed_by(&key, &stranger).unwrap();
    sealing(certificate.der().clone(), PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

fn sealing(certificate: CertificateDer<'static>, key: PrivateKeyDer<'static>) -> Sealing {
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    Box::new(|stream| BufReader::new(StreamOwned::new(ServerConnection::new(config).unwrap(), stream)))
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Starts a server for one connection. Returns its endpoint for clients that trust a certificate.
fn served<T: Send + 'static>(
    trusted: &Own,
    serve: impl FnOnce(TcpStream) -> T + Send + 'static,
) -> (Endpoint, JoinHandle<T>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || serve(listener.accept().unwrap().0));
    let tcp = Some((Ipv4Addr::LOCALHOST.to_string(), port));
    (Endpoint { tcp, tls: private::trust(&trusted.0), ..Endpoint::default() }, server)
}

/// Returns an insert of one record, whose number is 7.
fn request() -> Request {
    let mut request = Request::default();
    [7, 80, -3].into_iter().for_each(|value| request.cells.int(value));
    request.steps.push(Step { statement: 0, rows: 1, first_cell: 0, expect: Expect::Changed(1) });
    request
}

const LINE: &str = "t,port=80 lost=-3i 1700000000007000000\n";

fn open(endpoint: &Endpoint, way: Way) -> Result<Box<dyn TargetSession>, DatabaseError> {
    RecorderDatabase::new(endpoint.clone(), way, "t", &record_type(), 1).open()
}

fn nats() -> Way {
    Way::Nats("s".to_owned())
}

/// Returns the error of a connection that must fail.
fn why_not(endpoint: &Endpoint, way: Way) -> String {
    match open(endpoint, way) {
        Err(DatabaseError::Unavailable(why)) => why,
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it let us in"),
    }
}

fn line_of(stream: &mut impl BufRead) -> String {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    line
}

/// Stores the record over a protected connection.
fn stores(mut session: Box<dyn TargetSession>) {
    let protection = session.protection();
    assert!(protection.as_ref().is_some_and(|said| said.contains("has proven who it is")), "{protection:?}");
    for _ in 0..2 {
        assert_eq!(session.execute(&request(), None).unwrap().changed, 1);
    }
}

#[test]
fn records_go_to_a_recorder_over_tls_as_they_go_without() {
    let own = Own::new();
    let over = own.over();
    let (endpoint, server) = served(&own, |stream| {
        let mut stream = over(stream);
        for _ in 0..2 {
            let head: String =
                std::iter::repeat_with(|| line_of(&mut stream)).take_while(|line| line != "\r\n").collect();
            assert!(head.starts_with("POST /write HTTP/1.1\r\n") && head.contains("Token secret\r\n"), "{head}");
            let mut body = vec![0; LINE.len()];
            stream.read_exact(&mut body).unwrap();
            assert_eq!(String::from_utf8(body).unwrap(), LINE);
            stream.get_mut().write_all(b"HTTP/1.1 204 No Content\r\n\r\n").unwrap();
        }
    });
    stores(open(&Endpoint { password: "secret".to_owned(), ..endpoint }, Way::Http).unwrap());
    server.join().unwrap();
}

#[test]
fn records_go_to_a_nats_server_over_tls_which_begins_behind_its_greeting() {
    let own = Own::new();
    let over = own.over();
    let (endpoint, server) = served(&own, |mut stream| {
        stream.write_all(GREETING.as_bytes()).unwrap();
        let mut stream = over(stream);
        assert!(line_of(&mut stream).starts_with("CONNECT {"));
        assert!(line_of(&mut stream).starts_with("SUB _INBOX."));
        assert_eq!(line_of(&mut stream), "PING\r\n");
        stream.get_mut().write_all(b"PONG\r\n").unwrap();
        for _ in 0..2 {
            let published = line_of(&mut stream);
            let reply = published.strip_prefix("PUB s.m7 ").unwrap().split(' ').next().unwrap().to_owned();
            assert_eq!((line_of(&mut stream).as_str(), line_of(&mut stream).as_str()), (LINE, "\r\n"));
            let answer = r#"{"stream":"s","seq":3}"#;
            write!(stream.get_mut(), "PING\r\nMSG {reply} 1 {}\r\n{answer}\r\n", answer.len()).unwrap();
            assert_eq!(line_of(&mut stream), "PONG\r\n");
        }
    });
    let mut session = open(&endpoint, nats()).unwrap();
    assert_eq!(session.version().unwrap(), "2.9.10");
    stores(session);
    server.join().unwrap();
}

#[test]
fn a_certificate_of_somebody_else_is_refused_and_named() {
    let (own, other) = (Own::new(), Own::new());
    let trusted_by_none = "nobody who is trusted has signed the server's certificate";
    // All certificates of private servers have the same name.
    let by_another = "the server's certificate names somebody who is trusted, and somebody else has signed it";
    for (over, says) in [(other.over(), by_another), (by_a_stranger(), trusted_by_none)] {
        let (endpoint, server) = served(&own, |stream| over(stream).read(&mut [0]).map(drop));
        let why = why_not(&endpoint, Way::Http);
        let (_, port) = endpoint.tcp.unwrap();
        let right = format!("no connection over TLS to the recorder at 127.0.0.1:{port}: {says}");
        assert!(why.starts_with(&right), "{why}");
        assert!(server.join().unwrap().is_err(), "it learns that it is not trusted");
    }
    for (over, says) in [(other.over(), by_another), (by_a_stranger(), trusted_by_none)] {
        let (endpoint, server) = served(&own, |mut stream| {
            stream.write_all(GREETING.as_bytes()).unwrap();
            over(stream).read(&mut [0]).map(drop)
        });
        let why = why_not(&endpoint, nats());
        let (_, port) = endpoint.tcp.unwrap();
        let right = format!("no connection over TLS to the NATS server at 127.0.0.1:{port}: {says}");
        assert!(why.starts_with(&right), "{why}");
        assert!(server.join().unwrap().is_err(), "it is told nothing but that it is not trusted");
    }
}

#[test]
fn a_server_without_tls_is_told_where_tls_is_asked_for() {
    let own = Own::new();
    let (endpoint, server) = served(&own, |mut stream| {
        let _ = stream.read(&mut [0; 4_096]);
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").unwrap();
    });
    let why = why_not(&endpoint, Way::Http);
    assert!(why.contains("127.0.0.1 does not speak TLS there"), "{why}");
    server.join().unwrap();
    for (greeting, says) in [
        ("INFO {\"version\":\"2.9.10\"}\r\n", "it has no TLS, and TLS is asked for; start it with a certificate"),
        ("INFO nothing\r\n", "it does not greet as a NATS server does"),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "it does not greet as a NATS server does"),
        ("INFO {", "closed the connection"),
    ] {
        let (endpoint, server) = served(&own, |mut stream| {
            stream.write_all(greeting.as_bytes()).unwrap();
            // Nothing is sent to a server without TLS, neither user nor password.
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            stream.read(&mut [0]).map_or(0, |bytes| bytes)
        });
        let why = why_not(&endpoint, nats());
        assert!(
            why.starts_with("no connection over TLS to the NATS server at 127.0.0.1:") && why.contains(says),
            "{why}"
        );
        assert_eq!(server.join().unwrap(), 0, "{greeting}");
    }
}

/// An attacker in between could have sent it in plain text, to be taken for sealed data of the server.
#[test]
fn what_a_nats_server_says_in_the_clear_behind_its_greeting_ends_the_connection() {
    let own = Own::new();
    let over = own.over();
    // Together with the greeting; the server itself would continue with TLS.
    let (endpoint, server) = served(&own, |mut stream| {
        stream.write_all(format!("{GREETING}PONG\r\n").as_bytes()).unwrap();
        over(stream).read(&mut [0]).map_or(0, |bytes| bytes)
    });
    let why = why_not(&endpoint, nats());
    assert!(why.contains("the server sent something before TLS that was not asked for"), "{why}");
    assert_eq!(server.join().unwrap(), 0);

    // After the client's first TLS message.
    let (endpoint, server) = served(&own, |mut stream| {
        stream.write_all(GREETING.as_bytes()).unwrap();
        let _ = stream.read(&mut [0; 4_096]);
        stream.write_all(b"PONG\r\nPONG\r\n").unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        String::from_utf8_lossy(&rest).into_owned()
    });
    let why = why_not(&endpoint, nats());
    assert!(why.contains("127.0.0.1 does not speak TLS there"), "{why}");
    assert!(!server.join().unwrap().contains("CONNECT"), "nothing is said in the clear");
}
