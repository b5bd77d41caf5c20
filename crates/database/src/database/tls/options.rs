//! TLS settings in the addresses of servers, under the names that PostgreSQL, MySQL and MariaDB clients use. Main type: [`TlsOption`].

use std::path::PathBuf;

use super::{ChannelBinding, Tls, TlsMode};

/// A TLS setting of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsOption {
    /// Whether connections are protected, and what the server must prove.
    Mode,
    /// The file with the certificates of the trusted authorities.
    Authorities,
    /// The file of the client's own certificate.
    Certificate,
    /// The file of the certificate's key.
    Key,
    /// Whether the login is bound to the connection.
    ChannelBinding,
}

/// The TLS settings of an address as given, before they are checked together.
#[derive(Debug, Default)]
pub struct TlsParts {
    mode: Option<TlsMode>,
    authorities: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    channel_binding: ChannelBinding,
}

impl TlsOption {
    /// Returns the setting that a name stands for, in any of the usual spellings.
    pub fn of(name: &str) -> Option<Self> {
        let plain: String = name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect();
        Some(match plain.to_ascii_lowercase().as_str() {
            "sslmode" => TlsOption::Mode,
            "sslrootcert" | "sslca" => TlsOption::Authorities,
            "sslcert" => TlsOption::Certificate,
            "sslkey" => TlsOption::Key,
            "channelbinding" => TlsOption::ChannelBinding,
            _ => return None,
        })
    }
}

impl TlsParts {
    /// Stores a setting.
    ///
    /// # Errors
    /// A sentence that names the permitted values.
    pub fn set(&mut self, option: TlsOption, name: &str, value: &str) -> Result<(), String> {
        let file = || match value {
            "" => Err(format!("{name} in the address names no file")),
            file => Ok(PathBuf::from(file)),
        };
        match option {
            TlsOption::Mode => self.mode = Some(mode(name, value)?),
            // PostgreSQL has this value from version 16 on.
            TlsOption::Authorities if value == "system" => self.authorities = None,
            TlsOption::Authorities => self.authorities = Some(file()?),
            TlsOption::Certificate => self.certificate = Some(file()?),
            TlsOption::Key => self.key = Some(file()?),
            TlsOption::ChannelBinding => {
                self.channel_binding = match value {
                    "disable" => ChannelBinding::Disable,
                    "prefer" => ChannelBinding::Prefer,
                    "require" => ChannelBinding::Require,
                    _ => return Err(format!("{name}={value} in the address is not disable, prefer or require")),
                }
            }
        }
        Ok(())
    }

    /// Returns the resulting TLS settings; the mode is `usual` unless the address sets another. Naming authorities implies verification by them.
    ///
    /// # Errors
    /// A sentence that names what is missing.
    pub fn tls(self, usual: TlsMode) -> Result<Tls, String> {
        let identity = match (self.certificate, self.key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            (Some(_), None) => return Err("sslcert in the address needs sslkey, the file of its key".to_owned()),
            (None, Some(_)) => {
                return Err("sslkey in the address needs sslcert, the file of the certificate".to_owned());
            }
        };
        let mode = match (self.mode, &self.authorities) {
            (None | Some(TlsMode::Require), Some(_)) => TlsMode::VerifyCa,
            (mode, _) => mode.unwrap_or(usual),
        };
        Ok(Tls { mode, authorities: self.authorities, identity, channel_binding: self.channel_binding })
    }
}

fn mode(name: &str, value: &str) -> Result<TlsMode, String> {
    Ok(match value.to_ascii_lowercase().replace('_', "-").as_str() {
        "disable" | "disabled" => TlsMode::Disable,
        "allow" => TlsMode::Allow,
        "prefer" | "preferred" => TlsMode::Prefer,
        "require" | "required" | "trust" => TlsMode::Require,
        "verify-ca" => TlsMode::VerifyCa,
        "verify-full" | "verify-identity" => TlsMode::VerifyFull,
        _ => {
            return Err(format!(
                "{name}={value} in the address is not known; it is disable, allow, prefer, require, verify-ca or verify-full"
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Tls, String> {
        let mut parts = TlsParts::default();
        for (name, value) in pairs {
            parts.set(TlsOption::of(name).unwrap(), name, value)?;
        }
        parts.tls(TlsMode::Prefer)
    }

    #[test]
    fn the_words_of_both_worlds_mean_the_same() {
        for (name, value, mode) in [
            ("sslmode", "verify-full", TlsMode::VerifyFull),
            ("ssl-mode", "VERIFY_IDENTITY", TlsMode::VerifyFull),
            ("sslMode", "verify_ca", TlsMode::VerifyCa),
            ("ssl_mode", "DISABLED", TlsMode::Disable),
            ("sslmode", "allow", TlsMode::Allow),
            ("ssl-mode", "PREFERRED", TlsMode::Prefer),
            ("ssl-mode", "REQUIRED", TlsMode::Require),
        ] {
            assert_eq!(read(&[(name, value)]).unwrap().mode, mode, "{name}={value}");
        }
        assert_eq!(read(&[]).unwrap().mode, TlsMode::Prefer);
        assert_eq!(TlsOption::of("ssl"), None);
    }

    #[test]
    fn whoever_names_authorities_has_them_asked_and_files_come_in_pairs() {
        for pairs in [&[("sslrootcert", "ca.pem")][..], &[("ssl-ca", "ca.pem"), ("ssl-mode", "REQUIRED")]] {
            let tls = read(pairs).unwrap();
            assert_eq!((tls.mode, tls.authorities), (TlsMode::VerifyCa, Some("ca.pem".into())));
        }
        let system = read(&[("sslrootcert", "system"), ("sslmode", "verify-full")]).unwrap();
        assert_eq!((system.mode, system.authorities), (TlsMode::VerifyFull, None));
        assert!(read(&[("sslcert", "a.pem")]).unwrap_err().contains("needs sslkey"));
        assert!(read(&[("sslkey", "a.pem")]).unwrap_err().contains("needs sslcert"));
        assert!(read(&[("sslmode", "yes")]).unwrap_err().contains("sslmode=yes"));
        assert!(read(&[("channel_binding", "yes")]).unwrap_err().contains("disable, prefer or require"));
        assert!(read(&[("sslrootcert", "")]).unwrap_err().contains("names no file"));
    }
}
