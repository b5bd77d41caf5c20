//! Verification of servers' certificates, and the messages when it fails. Main functions: [`verifier`] and [`sentence`].

use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use super::certificate::validity;
use super::{Tls, TlsMode, certificates};
use crate::units::show_utc;

/// Returns the verifier of servers' certificates.
///
/// # Errors
/// A sentence: a file cannot be used, or the system knows no authority.
pub(super) fn verifier(tls: &Tls, provider: &CryptoProvider) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let algorithms = provider.signature_verification_algorithms;
    let (roots, trusted) = match &tls.authorities {
        _ if tls.mode < TlsMode::VerifyCa => (RootCertStore::empty(), Vec::new()),
        Some(path) => {
            let trusted = certificates(path)?;
            let mut roots = RootCertStore::empty();
            // A certificate that is no authority may still be the server's own.
            trusted.iter().for_each(|one| drop(roots.add(one.clone())));
            (roots, trusted)
        }
        None => (system_roots()?, Vec::new()),
    };
    Ok(Arc::new(Verifier { mode: tls.mode, roots, trusted, algorithms }))
}

/// Returns the authorities that the system trusts.
fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added == 0 {
        let remedy = "install them (on Debian: ca-certificates), or name a file of authorities with sslrootcert";
        return Err(format!("no authority is known that could have signed the server's certificate; {remedy}"));
    }
    Ok(roots)
}

#[derive(Debug)]
struct Verifier {
    mode: TlsMode,
    roots: RootCertStore,
    /// Certificates that are trusted whether or not they are authorities.
    trusted: Vec<CertificateDer<'static>>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Verifier {
    fn verify(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        now: UnixTime,
    ) -> Result<(), Error> {
        if self.mode < TlsMode::VerifyCa {
            return Ok(());
        }
        if self.trusted.iter().any(|trusted| trusted == own) {
            is_valid_at(own, now)?;
        } else {
            let parsed = ParsedCertificate::try_from(own)?;
            verify_server_cert_signed_by_trust_anchor(&parsed, &self.roots, others, now, self.algorithms.all)?;
        }
        match self.mode {
            TlsMode::VerifyFull => verify_server_name(&ParsedCertificate::try_from(own)?, host),
            _ => Ok(()),
        }
    }
}

/// Checks that a certificate which is itself trusted is valid now.
fn is_valid_at(own: &CertificateDer<'_>, now: UnixTime) -> Result<(), Error> {
    let (from, until) = validity(own).ok_or(CertificateError::BadEncoding)?;
    let seconds = now.as_secs() as i64;
    let time = |seconds: i64| UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds.max(0) as u64));
    if seconds < from {
        return Err(CertificateError::NotValidYetContext { time: now, not_before: time(from) }.into());
    }
    if seconds > until {
        return Err(CertificateError::ExpiredContext { time: now, not_after: time(until) }.into());
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.verify(own, others, host, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, own, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        own: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, own, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// Describes a TLS error and its remedy.
pub(super) fn sentence(error: &Error, host: &str) -> String {
    match error {
        Error::InvalidCertificate(wrong) => of_certificate(wrong, host),
        Error::AlertReceived(alert) => of_alert(*alert),
        Error::InvalidMessage(_) => format!("{host} does not speak TLS there ({error})"),
        Error::PeerIncompatible(_) => format!(
            "the server has no version or cipher of TLS in common with loadline, which speaks TLS 1.2 and 1.3 ({error})"
        ),
        other => format!("TLS failed: {other}"),
    }
}

fn of_certificate(wrong: &CertificateError, host: &str) -> String {
    const UNPROVEN: &str = "sslmode=require encrypts without asking who answers";
    match wrong {
        CertificateError::UnknownIssuer => format!(
            "nobody who is trusted has signed the server's certificate; name the authority's certificate, or the server's own, with sslrootcert=FILE ({UNPROVEN})"
        ),
        CertificateError::BadSignature => format!(
            "the server's certificate names somebody who is trusted, and somebody else has signed it; name the right authority's certificate, or the server's own, with sslrootcert=FILE ({UNPROVEN})"
        ),
        CertificateError::NotValidForNameContext { presented, .. } if presented.is_empty() => format!(
            "the server's certificate names no host (it has no subjectAltName), so that it cannot be for {host:?}; have it made with its names, or ask with sslmode=verify-ca only who signed it"
        ),
        CertificateError::NotValidForNameContext { presented, .. } => {
            let names: Vec<&str> = presented.iter().take(8).map(|name| name_of(name)).collect();
            format!(
                "the server's certificate is for {}, not for {host:?}; connect by a name that it has, or ask with sslmode=verify-ca only who signed it",
                names.join(", ")
            )
        }
        CertificateError::NotValidForName => {
            format!("the server's certificate is not for {host:?}; ask with sslmode=verify-ca only who signed it")
        }
        CertificateError::ExpiredContext { not_after, .. } => format!(
            "the server's certificate is valid no more, since {}; have it renewed, and look at the clock of this machine ({UNPROVEN})",
            day(*not_after)
        ),
        CertificateError::NotValidYetContext { not_before, .. } => format!(
            "the server's certificate is not valid before {}; look at the clocks of this machine and of the one that made it ({UNPROVEN})",
            day(*not_before)
        ),
        other => {
            let said = format!("{other:?}");
            if said.contains("CaUsedAsEndEntity") {
                return format!(
                    "the server has signed its certificate itself, as an authority; name that certificate with sslrootcert=FILE ({UNPROVEN})"
                );
            }
            if said.contains("UnsupportedCertVersion") {
                return format!(
                    "the server's certificate is of version 1 of X.509, which has no names of hosts; name that very certificate with sslrootcert=FILE and sslmode=verify-ca ({UNPROVEN})"
                );
            }
            format!("the server's certificate cannot be trusted: {other} ({UNPROVEN})")
        }
    }
}

/// Returns the name in a text such as `DnsName("db.example")`: db.example.
fn name_of(presented: &str) -> &str {
    let inner = presented.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    inner.map_or(presented, |inner| inner.trim_matches('"'))
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired | AlertDescription::BadCertificate | AlertDescription::UnknownCA => {
            format!(
                "the server asks for a certificate of ours and does not take what it got ({alert:?}); name one that its authority signed with sslcert=FILE and sslkey=FILE"
            )
        }
        other => format!("the server ended TLS: {other:?}"),
    }
}

/// Returns a day in the form 2026-11-26.
fn day(time: UnixTime) -> String {
    show_utc(time.as_secs()).chars().take_while(|letter| *letter != 'T').collect()
}
