//! Clients that others have written upload without knowing whom to: curl, lftp, Python's ftplib.

use std::process::Command;

use crate::client::{CAMERA, PASSWORD, TLS, Try, block, tls};

/// Runs a program; what it says goes into the failure.
fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{program} {arguments:?}: {said}");
}

fn a_file(tried: &Try) -> (String, Vec<u8>) {
    let (path, bytes) = (tried.directory.path("a.block"), block(7, 700_001));
    std::fs::write(&path, &bytes).unwrap();
    (path, bytes)
}

#[test]
fn curl_uploads_in_every_way() {
    let (plain, protected) = (Try::new("", ""), Try::new("", &tls()));
    let (path, bytes) = a_file(&plain);
    let user = format!("{CAMERA}:{PASSWORD}");
    let certificate = format!("{TLS}/certificate.pem");
    let port = |tried: &Try, name: &str| tried.address(name).port();
    let curl = |arguments: &[&str]| {
        run("curl", &[&["-sS", "--max-time", "60", "--cacert", &certificate, "-T", &path], arguments].concat());
    };
    curl(&["-u", &user, &format!("ftp://127.0.0.1:{}/curl.block", port(&plain, "ftp"))]);
    curl(&["--disable-epsv", "-u", &user, &format!("ftp://127.0.0.1:{}/pasv.block", port(&plain, "ftp"))]);
    let bearer = format!("Authorization: Bearer {PASSWORD}");
    curl(&["-f", "-H", &bearer, &format!("http://127.0.0.1:{}/blocks/{CAMERA}/put.block", port(&plain, "put"))]);
    curl(&["-f", "-u", &user, &format!("http://127.0.0.1:{}/blocks/{CAMERA}/basic.block", port(&plain, "put"))]);
    let names = ["basic.block", "curl.block", "pasv.block", "put.block"];
    assert_eq!(plain.received(CAMERA), names.map(|name| (name.to_owned(), bytes.clone())));
    curl(&["--ssl-reqd", "-u", &user, &format!("ftp://localhost:{}/explicit.block", port(&protected, "ftp"))]);
    curl(&["-u", &user, &format!("ftps://localhost:{}/implicit.block", port(&protected, "ftps"))]);
    let names = ["explicit.block", "implicit.block"];
    assert_eq!(protected.received(CAMERA), names.map(|name| (name.to_owned(), bytes.clone())));
}

#[test]
fn cameras_show_a_certificate_where_one_is_asked_for() {
    let asked = format!("{}\nclient_authority = \"{TLS}/client-authority.pem\"", tls());
    let tried = Try::new("", &asked);
    let (path, bytes) = a_file(&tried);
    let upload = |own: &str, kind: &str, name: &str| {
        let url = format!("{kind}://localhost:{}/{name}", tried.address(kind).port());
        let (certificate, key) = (format!("{TLS}/{own}.pem"), format!("{TLS}/{own}-key.pem"));
        let authority = format!("{TLS}/certificate.pem");
        let user = format!("{CAMERA}:{PASSWORD}");
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "60", "--ssl-reqd", "--cacert", &authority, "-u", &user, "-T", &path]);
        if !own.is_empty() {
            curl.args(["--cert", &certificate, "--key", &key]);
        }
        curl.arg(&url).output().unwrap().status.success()
    };
    for (own, is_taken) in [("client", true), ("stranger", false), ("", false)] {
        for kind in ["ftp", "ftps"] {
            assert_eq!(upload(own, kind, &format!("{kind}-{own}.block")), is_taken, "{kind} as {own:?}");
        }
    }
    let names = ["ftp-client.block", "ftps-client.block"];
    assert_eq!(tried.received(CAMERA), names.map(|name| (name.to_owned(), bytes.clone())));
    let unproven = |intake: &str| {
        tried.metric(&format!("loadline_upload_connections_put_out_total{{intake=\"{intake}\",why=\"certificate\"}}"))
    };
    assert_eq!((unproven("ftp"), unproven("ftps")), (2, 2));
}

#[test]
fn lftp_uploads_in_every_way() {
    let (plain, protected) = (Try::new("", ""), Try::new("", &tls()));
    let (path, bytes) = a_file(&plain);
    let lftp = |tried: &Try, kind: &str, name: &str| {
        let port = tried.address(if kind == "ftps" { "ftps" } else { "ftp" }).port();
        let script = format!(
            "set net:max-retries 3; set net:timeout 30; set net:reconnect-interval-base 1; set ssl:ca-file {TLS}/certificate.pem; \
             set ftp:ssl-force {}; open -u {CAMERA},\"{PASSWORD}\" {kind}://localhost:{port}; put {path} -o {name}; exit",
            !std::ptr::eq(tried, &plain)
        );
        run("lftp", &["--norc", "-c", &script]);
    };
    lftp(&plain, "ftp", "plain.block");
    assert_eq!(plain.received(CAMERA), [("plain.block".to_owned(), bytes.clone())]);
    lftp(&protected, "ftp", "explicit.block");
    lftp(&protected, "ftps", "implicit.block");
    let names = ["explicit.block", "implicit.block"];
    assert_eq!(protected.received(CAMERA), names.map(|name| (name.to_owned(), bytes.clone())));
}

const PYTHON: &str = "
import ftplib, ssl, sys
plain, protected, user, password, certificate, path = sys.argv[1:]
def upload(ftp, name):
    assert ftp.storbinary('STOR ' + name, open(path, 'rb')).startswith('226')
    try:
        ftp.storbinary('STOR ' + name, open(certificate, 'rb'))
        sys.exit('it was overwritten')
    except ftplib.error_perm as refused:
        assert str(refused).startswith('553'), refused
    ftp.quit()
ftp = ftplib.FTP()
ftp.connect('127.0.0.1', int(plain), timeout=60)
ftp.login(user, password)
upload(ftp, 'plain.block')
ftp = ftplib.FTP_TLS(context=ssl.create_default_context(cafile=certificate))
ftp.connect('localhost', int(protected), timeout=60)
ftp.login(user, password)
ftp.prot_p()
upload(ftp, 'protected.block')
";

#[test]
fn pythons_ftplib_uploads_with_tls_and_without() {
    let (plain, protected) = (Try::new("", ""), Try::new("", &tls()));
    let (path, bytes) = a_file(&plain);
    let port = |tried: &Try| tried.address("ftp").port().to_string();
    let certificate = format!("{TLS}/certificate.pem");
    run("python3", &["-c", PYTHON, &port(&plain), &port(&protected), CAMERA, PASSWORD, &certificate, &path]);
    assert_eq!(plain.received(CAMERA), [("plain.block".to_owned(), bytes.clone())]);
    assert_eq!(protected.received(CAMERA), [("protected.block".to_owned(), bytes)]);
}
