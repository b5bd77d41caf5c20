//! Tests of protected channels against rustls servers with valid and invalid certificates.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, date_time_ymd};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{
    ALL_VERSIONS, RootCertStore, ServerConfig, ServerConnection, StreamOwned, SupportedProtocolVersion, version,
};

use super::*;
use crate::database::DatabaseError;
use crate::database::session::Channel;

static OLD: &[&SupportedProtocolVersion] = &[&version::TLS12];
static NEW: &[&SupportedProtocolVersion] = &[&version::TLS13];

/// An authority, and a directory for its certificates.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    directory: PathBuf,
}

/// A server's certificate and its key.
struct Own {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    pem: String,
    key_pem: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let directory = std::env::temp_dir().join(format!("loadline-tls-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("ca.pem"), private::pem("CERTIFICATE", issuer.der())).unwrap();
        Authority { issuer, directory }
    }

    fn signs(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Own {
        let key = KeyPair::generate().unwrap();
        let mut params =
            CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
        change(&mut params);
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        own(&certificate, &key)
    }

    fn tls(&self, mode: TlsMode) -> Tls {
        Tls { mode, authorities: Some(self.directory.join("ca.pem")), ..Tls::default() }
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

fn own(certificate: &rcgen::Certificate, key: &KeyPair) -> Own {
    Own {
        certificate: certificate.der().clone(),
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        pem: private::pem("CERTIFICATE", certificate.der()),
        key_pem: private::pem("PRIVATE KEY", key.serialized_der()),
    }
}

fn self_signed(names: &[&str], is_authority: bool) -> Own {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.is_ca = if is_authority { IsCa::Ca(BasicConstraints::Unconstrained) } else { IsCa::NoCa };
    own(&params.self_signed(&key).unwrap(), &key)
}

/// The behaviour of a server besides its certificate.
#[derive(Default)]
struct Manner {
    versions: Option<&'static [&'static SupportedProtocolVersion]>,
    /// The authorities whose certificates it requests from clients.
    asks: Option<RootCertStore>,
}

/// Performs a handshake with a server as `tls` says, for the host db.example, and has it send everything back once. Returns the agreed protection.
fn meet(own: &Own, manner: Manner, tls: &Tls) -> Result<String, DatabaseError> {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let provider = Arc::new(ring::default_provider());
    let versions = manner.versions.unwrap_or(ALL_VERSIONS);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_protocol_versions(versions).unwrap();
    let builder = match manner.asks {
        None => builder.with_no_client_auth(),
        Some(roots) => builder.with_client_cert_verifier(
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
        ),
    };
    let config = builder.with_single_cert(vec![own.certificate.clone()], own.key.clone_key()).unwrap();
    let server = std::thread::spawn(move || {
        let connection = ServerConnection::new(Arc::new(config)).unwrap();
        let mut stream = StreamOwned::new(connection, theirs);
        let mut bytes = vec![0; 100_000];
        let _ = stream.read_exact(&mut bytes).and_then(|()| stream.write_all(&bytes)).and_then(|()| stream.flush());
    });
    let mut channel = Channel::new(ours.as_raw_fd());
    channel.set_timeout(Some(Duration::from_secs(20)));
    let met = channel.protect(tls, "db.example").and_then(|secure| {
        let said: Vec<u8> = (0..100_000).map(|byte| (byte % 251) as u8).collect();
        channel.send(&said)?;
        while channel.input().len() < said.len() {
            channel.receive()?;
        }
        assert_eq!(channel.input(), said);
        Ok(secure.agreed())
    });
    drop((channel, ours));
    server.join().unwrap();
    met
}

fn refused(own: &Own, tls: &Tls) -> String {
    match meet(own, Manner::default(), tls) {
        Err(DatabaseError::Unavailable(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn both_versions_carry_what_is_sent_whatever_is_proven() {
    let authority = Authority::new("carries");
    let own = authority.signs(&["db.example"], |_| {});
    for (versions, name) in [(OLD, "TLS 1.2"), (NEW, "TLS 1.3")] {
        for (mode, proven) in [
            (TlsMode::Require, "nobody has asked"),
            (TlsMode::VerifyCa, "an authority has signed"),
            (TlsMode::VerifyFull, "has proven who it is"),
        ] {
            let manner = Manner { versions: Some(versions), asks: None };
            let agreed = meet(&own, manner, &authority.tls(mode)).unwrap();
            assert!(agreed.starts_with(name) && agreed.contains(proven), "{agreed}");
        }
    }
}

#[test]
fn each_wrong_certificate_has_a_sentence_of_its_own() {
    let authority = Authority::new("wrong");
    let other = Authority::new("stranger");
    let elsewhere = authority.signs(&["db.elsewhere", "10.0.0.7"], |_| {});
    let nameless = authority.signs(&[], |_| {});
    let expired = authority.signs(&["db.example"], |params| {
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 2, 3));
    });
    let early = authority.signs(&["db.example"], |params| params.not_before = date_time_ymd(2199, 1, 1));
    let strange = other.signs(&["db.example"], |_| {});
    let full = authority.tls(TlsMode::VerifyFull);
    for (own, right) in [
        (&elsewhere, "the server's certificate is for db.elsewhere, 10.0.0.7, not for \"db.example\""),
        (&nameless, "the server's certificate names no host (it has no subjectAltName)"),
        (&expired, "the server's certificate is valid no more, since 2021-02-03"),
        (&early, "the server's certificate is not valid before 2199-01-01"),
        (&strange, "nobody who is trusted has signed the server's certificate"),
        (&self_signed(&["db.example"], false), "nobody who is trusted has signed the server's certificate"),
        (&self_signed(&["db.example"], true), "the server has signed its certificate itself, as an authority"),
    ] {
        let why = refused(own, &full);
        assert!(why.starts_with(right), "{why}");
        assert!(why.contains("sslmode="), "without a remedy: {why}");
        // A client that does not verify gets no error.
        assert!(meet(own, Manner::default(), &authority.tls(TlsMode::Require)).is_ok());
    }
    let authority_alone = authority.tls(TlsMode::VerifyCa);
    for own in [&elsewhere, &nameless] {
        assert!(meet(own, Manner::default(), &authority_alone).is_ok());
    }
    for own in [&expired, &early, &strange] {
        refused(own, &authority_alone);
    }
}

#[test]
fn a_certificate_that_is_named_itself_is_trusted_as_it_is_and_no_longer_than_it_says() {
    let authority = Authority::new("named");
    let pinned = |own: &Own, mode| {
        std::fs::write(authority.directory.join("ca.pem"), &own.pem).unwrap();
        // Files are read again after a while; the new name makes it happen at once here.
        Tls { identity: None, authorities: Some(numbered(&authority.directory)), ..authority.tls(mode) }
    };
    for is_authority in [false, true] {
        let own = self_signed(&["db.example"], is_authority);
        assert!(meet(&own, Manner::default(), &pinned(&own, TlsMode::VerifyFull)).is_ok());
        let elsewhere = self_signed(&["db.elsewhere"], is_authority);
        assert!(refused(&elsewhere, &pinned(&elsewhere, TlsMode::VerifyFull)).contains("is for db.elsewhere"));
        assert!(meet(&elsewhere, Manner::default(), &pinned(&elsewhere, TlsMode::VerifyCa)).is_ok());
        // The same names with another key.
        let impostor = self_signed(&["db.example"], is_authority);
        refused(&impostor, &pinned(&own, TlsMode::VerifyCa));
    }
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["db.example".to_owned()]).unwrap();
    (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(2021, 2, 3));
    let expired = own(&params.self_signed(&key).unwrap(), &key);
    assert!(refused(&expired, &pinned(&expired, TlsMode::VerifyCa)).contains("since 2021-02-03"));
}

/// Copies the authority's file to a name that was not used before.
fn numbered(directory: &Path) -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = directory.join(format!("ca-{number}.pem"));
    std::fs::copy(directory.join("ca.pem"), &path).unwrap();
    path
}

#[test]
fn a_server_that_asks_for_our_certificate_gets_it_or_we_are_told_to_name_one() {
    let authority = Authority::new("asks");
    let own = authority.signs(&["db.example"], |_| {});
    let us = authority.signs(&["client"], |_| {});
    let asks = || {
        let mut roots = RootCertStore::empty();
        roots.add(authority.issuer.der().clone()).unwrap();
        Manner { versions: None, asks: Some(roots) }
    };
    let full = authority.tls(TlsMode::VerifyFull);
    let why = meet(&own, asks(), &full).unwrap_err().to_string();
    assert!(why.contains("sslcert=FILE and sslkey=FILE"), "{why}");
    let [certificate, key] = ["me.pem", "me.key"].map(|name| authority.directory.join(name));
    std::fs::write(&certificate, &us.pem).unwrap();
    std::fs::write(&key, &us.key_pem).unwrap();
    let known = Tls { identity: Some((certificate.clone(), key)), ..full.clone() };
    assert!(meet(&own, asks(), &known).is_ok());
    // Another certificate's key, and no key at all.
    std::fs::write(authority.directory.join("other.key"), &own.key_pem).unwrap();
    let other = Tls { identity: Some((certificate.clone(), authority.directory.join("other.key"))), ..full.clone() };
    let why = meet(&own, asks(), &other).unwrap_err().to_string();
    assert!(why.contains("do not belong together"), "{why}");
    let none = Tls { identity: Some((certificate, authority.directory.join("ca.pem"))), ..full };
    assert!(meet(&own, asks(), &none).unwrap_err().to_string().contains("cannot be read as a key in PEM"));
}

#[test]
fn what_is_no_tls_is_said_and_what_came_before_it_is_not_taken() {
    let tls = Tls { mode: TlsMode::Require, ..Tls::default() };
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").unwrap();
    let why = Channel::new(ours.as_raw_fd()).protect(&tls, "db.example").unwrap_err().to_string();
    assert!(why.contains("db.example does not speak TLS there"), "{why}");

    let (ours, mut theirs) = UnixStream::pair().unwrap();
    theirs.write_all(b"E something in the clear").unwrap();
    let mut channel = Channel::new(ours.as_raw_fd());
    channel.receive().unwrap();
    let why = channel.protect(&tls, "db.example").unwrap_err().to_string();
    assert!(why.contains("before TLS that was not asked for"), "{why}");

    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    assert!(Channel::new(ours.as_raw_fd()).protect(&tls, "db.example").unwrap_err().is_lost());
    let why = Channel::new(ours.as_raw_fd()).protect(&tls, "not a host").unwrap_err().to_string();
    assert!(why.contains("no name that a certificate could be for"), "{why}");
}

#[test]
fn a_changed_bit_ends_the_connection_and_is_never_taken_for_an_answer() {
    let authority = Authority::new("bit");
    let own = authority.signs(&["db.example"], |_| {});
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![own.certificate.clone()], own.key.clone_key()).unwrap());
    let (answer, mut refused) = (b"an answer of the server", 0);
    for at in 0..60 {
        let mut server = ServerConnection::new(Arc::clone(&config)).unwrap();
        let client = SharedSecure::begin(&authority.tls(TlsMode::VerifyFull), "db.example").unwrap();
        let mut plain = Vec::new();
        while client.is_beginning() || server.is_handshaking() {
            let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
            client.seal(b"", &mut to_server).unwrap();
            server.read_tls(&mut &to_server[..]).unwrap();
            server.process_new_packets().unwrap();
            while server.wants_write() {
                server.write_tls(&mut to_client).unwrap();
            }
            client.open(&to_client, &mut plain).unwrap();
        }
        let mut sealed = Vec::new();
        server.writer().write_all(answer).unwrap();
        while server.wants_write() {
            server.write_tls(&mut sealed).unwrap();
        }
        let place = at * sealed.len() / 60;
        sealed[place] ^= 1 << (at % 8);
        let outcome = client.open(&sealed, &mut plain);
        // The type and version of a record are not checked; a record with a length that grew is waited for.
        assert!(plain.is_empty() || outcome.is_ok() && plain == answer, "{at}: {plain:?}");
        refused += u32::from(outcome.is_err());
    }
    assert!(refused > 50, "{refused}");
}
