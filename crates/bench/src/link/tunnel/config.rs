//! The daemons' configuration, as text.

use std::fs::File;
use std::io::{self, Read};

use crate::link::Host;

/// Plugins that the daemon loads: the ciphers, and nothing that changes the machine.
pub const PLUGINS: [&str; 13] = [
    "random",
    "nonce",
    "openssl",
    "pem",
    "hmac",
    "kdf",
    "sha1",
    "sha2",
    "aes",
    "gcm",
    "kernel-libipsec",
    "kernel-netlink",
    "vici",
];
/// A plugin of the same packages that must come last.
const SOCKET: &str = "socket-default";

/// A choice of encryption and authentication of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Suite {
    /// Value of `link.tunnel`.
    pub name: &'static str,
    /// strongSwan's name for the suite.
    pub esp: &'static str,
    /// One line for people.
    pub summary: &'static str,
}

/// Values of `link.tunnel`: the ciphers of Staszkiwicz et al., table III, and one of today.
pub const SUITES: [Suite; 4] = [
    Suite { name: "3des-sha1", esp: "3des-sha1", summary: "3DES in CBC mode with HMAC-SHA-1" },
    Suite { name: "aes128-sha1", esp: "aes128-sha1", summary: "AES-128 in CBC mode with HMAC-SHA-1" },
    Suite { name: "aes256-sha1", esp: "aes256-sha1", summary: "AES-256 in CBC mode with HMAC-SHA-1" },
    Suite { name: "aes256gcm", esp: "aes256gcm16", summary: "AES-256-GCM, which authenticates by itself" },
];

/// Key exchange: the same for all suites, because it happens once.
const KEY_EXCHANGE: &str = "aes256-sha256-modp2048";

/// Returns the content of `strongswan.conf`.
pub fn configuration() -> String {
    let plugins = PLUGINS.join(" ");
    format!(
        "charon {{\n  load = {plugins} {SOCKET}\n  install_virtual_ip = no\n  syslog {{\n    identifier = loadline\n    \
         daemon {{\n      default = -1\n    }}\n    auth {{\n      default = -1\n    }}\n  }}\n  filelog {{\n    stderr {{\n      \
         default = 1\n    }}\n  }}\n  plugins {{\n    vici {{\n      socket = unix:///run/charon.vici\n    }}\n  }}\n}}\n\
         swanctl {{\n  load = random openssl pem\n}}\n"
    )
}

/// Returns `swanctl.conf` of the server's host, which accepts every client that knows the secret.
pub fn server_connection(suite: &Suite, server: &Host, secret: &str) -> String {
    let [a, b, c, _] = server.address.octets();
    let remote = format!("{a}.{b}.{c}.0/24");
    connection(suite, server, "%any", &remote, "server", secret)
}

/// Returns `swanctl.conf` of a client's host.
pub fn client_connection(suite: &Suite, client: &Host, server: &Host, number: usize, secret: &str) -> String {
    let remote = format!("{}/32", server.address);
    connection(suite, client, &server.wire_address.to_string(), &remote, &format!("client{number}"), secret)
}

fn connection(suite: &Suite, own: &Host, peer: &str, remote: &str, name: &str, secret: &str) -> String {
    let Host { address, wire_address, .. } = own;
    let esp = suite.esp;
    format!(
        "connections {{\n  link {{\n    version = 2\n    local_addrs = {wire_address}\n    remote_addrs = {peer}\n    \
         proposals = {KEY_EXCHANGE}\n    rekey_time = 0s\n    local {{\n      auth = psk\n      id = {name}\n    }}\n    \
         remote {{\n      auth = psk\n    }}\n    children {{\n      link {{\n        mode = tunnel\n        \
         local_ts = {address}/32\n        remote_ts = {remote}\n        esp_proposals = {esp}\n        \
         rekey_time = 0s\n      }}\n    }}\n  }}\n}}\nsecrets {{\n  ike-link {{\n    secret = {secret}\n  }}\n}}\n"
    )
}

/// Returns a random secret, in hexadecimal digits.
pub fn secret(bytes: usize) -> io::Result<String> {
    let mut buffer = vec![0; bytes];
    File::open("/dev/urandom")?.read_exact(&mut buffer)?;
    Ok(buffer.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suites_are_those_of_the_paper_and_one_of_today() {
        let names = SUITES.map(|suite| suite.name);
        assert_eq!(names, crate::trial::TUNNELS, "what studies may name");
    }

    #[test]
    fn the_daemon_says_nothing_to_the_machines_log() {
        let text = configuration();
        assert!(text.contains("kernel-libipsec kernel-netlink vici socket-default"), "{text}");
        assert_eq!(text.matches("default = -1").count(), 2);
        assert_eq!(text.matches('{').count(), text.matches('}').count());
    }

    #[test]
    fn secrets_differ() {
        let (one, other) = (secret(24).unwrap(), secret(24).unwrap());
        assert_eq!(one.len(), 48);
        assert_ne!(one, other);
    }
}
