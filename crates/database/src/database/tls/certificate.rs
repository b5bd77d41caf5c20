//! Reader of X.509 certificates (RFC 5280, in DER): the signature's algorithm and the period of validity. Main functions: [`end_point`] and [`validity`].
//!
//! A server's bytes are read within their bounds; nothing here decides whether a certificate is trusted.

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::units::unix_seconds;

const SEQUENCE: u8 = 0x30;
const OBJECT: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
/// The tag of the version, which is optional.
const VERSION: u8 = 0xa0;

/// The prefixes of the identifiers of RSA with PKCS #1 and of ECDSA (RFC 8017, RFC 5758).
const RSA: &[u8] = b"\x2a\x86\x48\x86\xf7\x0d\x01\x01";
const ECDSA_SHA2: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x03";
const ECDSA_SHA1: &[u8] = b"\x2a\x86\x48\xce\x3d\x04\x01";

/// Takes an element off the front. Returns its tag, its content and the bytes behind it.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let [tag, first, rest @ ..] = bytes else { return None };
    let (length, rest) = match first {
        0..=0x7f => (usize::from(*first), rest),
        0x81..=0x83 => {
            let (long, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (long.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    let (body, behind) = rest.split_at_checked(length)?;
    Some((*tag, body, behind))
}

/// Takes an element off the front. Returns the bytes behind it, and its content if it has the wanted tag.
fn take(bytes: &[u8], wanted: u8) -> Option<(&[u8], &[u8])> {
    element(bytes).filter(|(tag, ..)| *tag == wanted).map(|(_, body, behind)| (body, behind))
}

/// Returns the hash of a certificate by its signature's algorithm, or by SHA-256 where that is weaker than SHA-256 (RFC 5929, section 4.1);
/// `None` for algorithms without a hash.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (body, _) = take(certificate, SEQUENCE)?;
    let (_, behind) = take(body, SEQUENCE)?;
    let (algorithm, _) = take(behind, SEQUENCE)?;
    let (object, _) = take(algorithm, OBJECT)?;
    let sha256 = || Sha256::digest(certificate).to_vec();
    let sha384 = || Sha384::digest(certificate).to_vec();
    let sha512 = || Sha512::digest(certificate).to_vec();
    match (object.strip_prefix(RSA), object.strip_prefix(ECDSA_SHA2)) {
        // MD5, SHA-1, SHA-256.
        (Some([4 | 5 | 11]), _) => Some(sha256()),
        (Some([12]), _) => Some(sha384()),
        (Some([13]), _) => Some(sha512()),
        (_, Some([2])) => Some(sha256()),
        (_, Some([3])) => Some(sha384()),
        (_, Some([4])) => Some(sha512()),
        _ if object == ECDSA_SHA1 => Some(sha256()),
        _ => None,
    }
}

/// Returns the start and the end of a certificate's validity, in seconds since 1970.
pub(super) fn validity(certificate: &[u8]) -> Option<(i64, i64)> {
    let (body, _) = take(certificate, SEQUENCE)?;
    let (mut signed, _) = take(body, SEQUENCE)?;
    if let Some((_, behind)) = take(signed, VERSION) {
        signed = behind;
    }
    // Serial number, algorithm and issuer.
    for _ in 0..3 {
        signed = element(signed)?.2;
    }
    let (times, _) = take(signed, SEQUENCE)?;
    let (tag, from, behind) = element(times)?;
    let (until_tag, until, _) = element(behind)?;
    Some((seconds(tag, from)?, seconds(until_tag, until)?))
}

/// Returns the seconds since 1970 of a certificate's time: `YYMMDDhhmmssZ`, where years 50 to 99 are of the last century, or `YYYYMMDDhhmmssZ`.
fn seconds(tag: u8, text: &[u8]) -> Option<i64> {
    let digits = text.strip_suffix(b"Z")?;
    let number = |from: usize, to: usize| -> Option<i64> {
        let part = digits.get(from..to)?;
        part.iter()
            .all(u8::is_ascii_digit)
            .then(|| part.iter().fold(0, |sum, digit| 10 * sum + i64::from(digit - b'0')))
    };
    let (year, behind) = match (tag, digits.len()) {
        (UTC_TIME, 12) => (number(0, 2).map(|year| year + if year < 50 { 2000 } else { 1900 })?, 2),
        (GENERALIZED_TIME, 14) => (number(0, 4)?, 4),
        _ => return None,
    };
    let part = |place: usize| number(behind + 2 * place, behind + 2 * place + 2);
    unix_seconds([year, part(0)?, part(1)?, part(2)?, part(3)?, part(4)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        let mut out = vec![tag];
        match body.len() {
            0..0x80 => out.push(body.len() as u8),
            length => out.extend([0x82, (length >> 8) as u8, length as u8]),
        }
        out.extend(body);
        out
    }

    fn certificate(object: &[u8], from: (u8, &[u8]), until: (u8, &[u8])) -> Vec<u8> {
        let times = der(SEQUENCE, &[&der(from.0, &[from.1]), &der(until.0, &[until.1])]);
        let version = der(VERSION, &[&der(2, &[&[2]])]);
        let issuer = der(SEQUENCE, &[&[7; 300]]);
        let algorithm = der(SEQUENCE, &[&der(OBJECT, &[object])]);
        let signed = der(SEQUENCE, &[&version, &der(2, &[&[9]]), &algorithm, &issuer, &times]);
        der(SEQUENCE, &[&signed, &algorithm, &der(3, &[&[0; 64]])])
    }

    const OLD: (u8, &[u8]) = (UTC_TIME, b"990228235959Z");
    const NEW: (u8, &[u8]) = (GENERALIZED_TIME, b"20500301000000Z");

    #[test]
    fn times_are_those_of_the_calendar() {
        // date -u -d '1999-02-28 23:59:59' +%s, and so on.
        let found = validity(&certificate(RSA, OLD, NEW));
        assert_eq!(found, Some((920_246_399, 2_529_705_600)));
        let leap = validity(&certificate(RSA, (UTC_TIME, b"000229000000Z"), (UTC_TIME, b"700101000000Z")));
        assert_eq!(leap, Some((951_782_400, 0)));
        assert_eq!(validity(&certificate(RSA, (UTC_TIME, b"001329000000Z"), NEW)), None);
        assert_eq!(validity(&certificate(RSA, (UTC_TIME, b"0002290000+0Z"), NEW)), None);
    }

    #[test]
    fn a_certificate_is_hashed_as_it_was_signed_and_never_by_less_than_sha_256() {
        for (object, bytes) in [
            (&b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05"[..], Some(32)),
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", Some(32)),
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", Some(48)),
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", Some(64)),
            (b"\x2a\x86\x48\xce\x3d\x04\x03\x02", Some(32)),
            (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", Some(48)),
            // Ed25519, and RSA by PSS, whose hash is stated elsewhere.
            (b"\x2b\x65\x70", None),
            (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", None),
        ] {
            let found = end_point(&certificate(object, OLD, NEW));
            assert_eq!(found.map(|hash| hash.len()), bytes, "{object:?}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), at in 0..500_usize, bit in 0..8) {
            let _ = (end_point(&bytes), validity(&bytes));
            let mut damaged = certificate(RSA, OLD, NEW);
            let at = at % damaged.len();
            damaged[at] ^= 1_u8 << bit;
            let _ = (end_point(&damaged), validity(&damaged));
            damaged.truncate(at);
            let _ = (end_point(&damaged), validity(&damaged));
        }
    }
}
