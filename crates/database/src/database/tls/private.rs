//! A certificate made for a server that loadline starts, trusted by its clients only. Main functions: [`files`] and [`trust`].

use std::net::Ipv4Addr;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, KeyPair};

use super::{Tls, TlsMode};

/// The value of `database.tls` that enables TLS.
pub const VERIFY: &str = "verify";
/// The name of the certificate's file, in the server's directory.
pub const CERTIFICATE_FILE: &str = "certificate.pem";
/// The name of the key's file, in the server's directory.
pub const KEY_FILE: &str = "certificate-key.pem";

/// Returns the files for a server at an address, by name with their content: a new key (ECDSA, P-256) and a certificate signed with it.
///
/// # Errors
/// The reason why no certificate can be made.
pub fn files(address: Ipv4Addr) -> Result<Vec<(&'static str, String)>, String> {
    let unmade = |error: rcgen::Error| format!("no certificate can be made for a private server: {error}");
    let key = KeyPair::generate().map_err(unmade)?;
    let params = CertificateParams::new(vec![address.to_string(), "localhost".to_owned()]).map_err(unmade)?;
    let certificate = params.self_signed(&key).map_err(unmade)?;
    let certificate = pem("CERTIFICATE", certificate.der());
    Ok(vec![(CERTIFICATE_FILE, certificate), (KEY_FILE, pem("PRIVATE KEY", key.serialized_der()))])
}

/// Encodes bytes as text between two lines that name their kind (RFC 7468).
pub(super) fn pem(label: &str, bytes: &[u8]) -> String {
    let text = STANDARD.encode(bytes);
    let lines: Vec<String> =
        text.as_bytes().chunks(64).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Returns the TLS settings of clients of such a server: they trust its certificate and no other.
pub fn trust(directory: &Path) -> Tls {
    Tls { mode: TlsMode::VerifyFull, authorities: Some(directory.join(CERTIFICATE_FILE)), ..Tls::default() }
}
