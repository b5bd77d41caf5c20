//! `[inbox]`, `[intake.blocks]`, `[intake.ftp]` and `[intake.put]`: how blocks are uploaded. Main types: [`BlocksConfig`], [`FtpConfig`].

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::listening::{read_address, read_insecure, read_tls};
use super::{ListenConfig, rows};
use crate::fault::fault;
use crate::recorder::inbox::Bounds;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Form, Kind, Part, Setting, Span};

/// `[inbox]`: the folder between intake and processing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InboxConfig {
    /// The directory of the inbox.
    pub path: PathBuf,
    /// The bounds on sizes.
    pub bounds: Bounds,
}

/// `[intake.blocks]`: settings of every way to upload blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct BlocksConfig {
    /// The file with the cameras and the hashes of their passwords; `None` admits everybody, from this machine only.
    pub users: Option<PathBuf>,
    /// The limits on rates.
    pub rates: RateLimits,
    /// Bytes per second below which an upload is broken off.
    pub slowest_per_s: f64,
    /// Maximum number of connections of a camera.
    pub connections_per_camera: u32,
}

/// Limits on rates; `None` for no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct RateLimits {
    /// Bytes per second of all cameras together.
    pub bytes_per_s: Option<f64>,
    /// Bytes per second of each camera.
    pub camera_bytes_per_s: Option<f64>,
    /// Blocks per second of all cameras together.
    pub blocks_per_s: Option<f64>,
    /// Blocks per second of each camera.
    pub camera_blocks_per_s: Option<f64>,
}

/// `[intake.ftp]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FtpConfig {
    /// The address on which it listens, the certificate, the bounds on connections, and the patience with silent clients.
    pub listen: ListenConfig,
    /// The address on which it listens for TLS from the first byte.
    pub implicit: Option<SocketAddr>,
    /// The first and last port for data connections; `None` takes any free port.
    pub passive_ports: Option<(u16, u16)>,
    /// The address for data connections that clients are told, if a router stands between.
    pub passive_address: Option<IpAddr>,
    /// True if passwords and blocks are accepted over TLS only.
    pub requires_tls: bool,
    /// Maximum silence of a session between two commands.
    pub idle: Duration,
    /// The most wrong passwords in a session.
    pub attempts: u32,
    /// The most commands in a session without a block.
    pub commands: u32,
}

/// `[inbox]`
pub static INBOX: Part = Part {
    name: "inbox",
    help: "The folder between the intake of blocks and their processing. A block must fit into a camera's share, and the share into the whole.",
    settings: &[
        Setting::new("path", Kind::Text, Absent::Text("inbox"), "Its directory."),
        Setting::new("bound", Kind::Bytes(1 << 20, 1 << 50), Absent::Text("10GiB"), "Maximum size of its content."),
        Setting::new(
            "bound_per_camera",
            Kind::Bytes(1 << 20, 1 << 50),
            Absent::Means("as much as `bound`"),
            "Maximum size of one camera's blocks.",
        ),
        Setting::new("block", Kind::Bytes(1 << 10, 1 << 30), Absent::Text("2MiB"), "Maximum size of a block."),
    ],
};

const fn rate(key: &'static str, help: &'static str) -> Setting {
    Setting::new(key, Kind::Bytes(1 << 10, 1 << 40), Absent::Means("no limit"), help)
}

const fn blocks_per_s(key: &'static str, help: &'static str) -> Setting {
    Setting::new(key, Kind::Number(0.001, 1e6), Absent::Means("no limit"), help)
}

/// `[intake.blocks]`
pub static BLOCKS: Part = Part {
    name: "intake.blocks",
    help: "Settings of all ways to upload blocks.",
    settings: &[
        Setting::new(
            "users",
            Kind::Text,
            Absent::Means("none: everybody on this machine may upload, and nobody else"),
            "The file with the cameras and the hashes of their passwords. `loadline password CAMERA` makes its lines.",
        ),
        rate("rate", "Maximum bytes per second of all cameras together."),
        rate("rate_per_camera", "Maximum bytes per second of each camera."),
        blocks_per_s("blocks_per_s", "Maximum number of blocks per second of all cameras together."),
        blocks_per_s("blocks_per_s_per_camera", "Maximum number of blocks per second of each camera."),
        Setting::new(
            "slowest",
            Kind::Bytes(1, 1 << 30),
            Absent::Text("1KiB"),
            "Bytes per second below which an upload is aborted.",
        ),
        Setting::new(
            "connections_per_camera",
            Kind::Whole(1, 10_000),
            Absent::Whole(10),
            "Maximum number of connections of a camera.",
        ),
    ],
};

static PORTS: Form = Form {
    says: "first and last port, as in `\"50000-50199\"`",
    schema: || json!({ "type": "string", "pattern": "^[0-9]+ *- *[0-9]+$" }),
    example: "\"50000-50199\"",
};

static REACHED: Form = Form {
    says: "address, as in `\"203.0.113.5\"`",
    schema: || json!({ "type": "string", "pattern": "^[0-9a-fA-F.:]+$" }),
    example: "\"203.0.113.5\"",
};

/// The default of the bound per address: many cameras may connect from behind one router, and each has a bound of its own.
const PER_ADDRESS: &str = "as many as `connections`";

/// `[intake.ftp]`
pub static FTP: Part = Part {
    name: "intake.ftp",
    help: "Blocks by FTP, and by FTP with TLS where there is a certificate.",
    settings: &[
        rows::listen("Address and port."),
        Setting::new(
            "implicit",
            Kind::Own(&rows::ADDRESS),
            Absent::Means("none"),
            "Address and port for TLS from the first byte.",
        )
        .only("TLS"),
        rows::CERTIFICATE,
        rows::KEY,
        rows::CLIENT_AUTHORITY,
        Setting::new(
            "require_tls",
            Kind::Truth,
            Absent::Means("`true` with a certificate, else `false`"),
            "Whether passwords and blocks are accepted over TLS only.",
        ),
        rows::INSECURE,
        Setting::new(
            "passive_ports",
            Kind::Own(&PORTS),
            Absent::Means("any free ports"),
            "The ports for data. Every connection needs one.",
        ),
        Setting::new(
            "passive_address",
            Kind::Own(&REACHED),
            Absent::Means("the address to which the client connected"),
            "The address for data that clients are told, if a router is between them and the recorder.",
        ),
        rows::connections(100_000, 200),
        rows::connections_per_address(PER_ADDRESS),
        rows::PATIENCE,
        Setting::new(
            "idle",
            Kind::Duration(Span::Within(0.1, 86_400.0)),
            Absent::Text("5m"),
            "Maximum silence of a session between two commands.",
        ),
        Setting::new(
            "attempts",
            Kind::Whole(1, 100),
            Absent::Whole(3),
            "Number of wrong passwords after which a session ends.",
        ),
        Setting::new(
            "commands",
            Kind::Whole(20, 1_000_000),
            Absent::Whole(200),
            "Number of commands without a block after which a session ends.",
        ),
    ],
};

/// `[intake.put]`
pub static PUT: Part = Part {
    name: "intake.put",
    help: "Blocks by HTTP PUT.",
    settings: &[
        rows::listen("Address and port."),
        rows::CERTIFICATE,
        rows::KEY,
        rows::CLIENT_AUTHORITY,
        rows::INSECURE,
        rows::connections(100_000, 200),
        rows::connections_per_address(PER_ADDRESS),
        rows::PATIENCE,
    ],
};

pub(super) fn read_inbox(root: &Table, errors: &mut Errors) -> InboxConfig {
    let section = Section::open(root, &INBOX, errors);
    let all = section.read("bound", errors);
    let camera = section.find("bound_per_camera", errors).unwrap_or(all);
    let block = section.read("block", errors);
    if block > camera || camera > all {
        let remedy = "inbox.block, inbox.bound_per_camera and inbox.bound must each be larger than the one before";
        errors.push(section.place, fault!("no block would fit into the inbox"; "{remedy}"));
    }
    InboxConfig { path: section.read("path", errors), bounds: Bounds { all, camera, block } }
}

pub(super) fn read_blocks(tables: &Table, errors: &mut Errors) -> BlocksConfig {
    let section = Section::open(tables, &BLOCKS, errors);
    BlocksConfig {
        users: section.read("users", errors),
        rates: RateLimits {
            bytes_per_s: section.read("rate", errors),
            camera_bytes_per_s: section.read("rate_per_camera", errors),
            blocks_per_s: section.read("blocks_per_s", errors),
            camera_blocks_per_s: section.read("blocks_per_s_per_camera", errors),
        },
        slowest_per_s: section.read("slowest", errors),
        connections_per_camera: section.read("connections_per_camera", errors),
    }
}

pub(super) fn read_ftp(tables: &Table, has_users: bool, errors: &mut Errors) -> Option<FtpConfig> {
    tables.get("ftp")?;
    let section = Section::open(tables, &FTP, errors);
    let listen = read_address(&section, "listen", &users_remedy(has_users), errors);
    let implicit =
        section.get("implicit").and_then(|_| read_address(&section, "implicit", &users_remedy(has_users), errors));
    let tls = read_tls(&section, errors);
    let require_tls: Option<bool> = section.read("require_tls", errors);
    if tls.is_none() {
        for key in ["implicit", "require_tls"] {
            if let Some(entry) = section.get(key).filter(|_| key != "require_tls" || require_tls == Some(true)) {
                let remedy = "add certificate and key, or leave it out";
                errors.push(entry.place, fault!("intake.ftp.{key} needs TLS and there is no certificate"; "{remedy}"));
            }
        }
    }
    let requires_tls = require_tls.unwrap_or(tls.is_some());
    if let Some(entry) = section.get("client_authority").filter(|_| tls.is_some() && !requires_tls) {
        let remedy = "who comes without TLS shows no certificate; leave require_tls out";
        errors.push(entry.place, fault!("intake.ftp.client_authority is given and require_tls is false"; "{remedy}"));
    }
    let is_insecure = read_insecure(&section, listen, requires_tls, errors);
    let connections = section.read("connections", errors);
    Some(FtpConfig {
        implicit,
        passive_ports: read_ports(&section, connections, errors),
        passive_address: read_passive_address(&section, errors),
        requires_tls,
        idle: section.read("idle", errors),
        attempts: section.read("attempts", errors),
        commands: section.read("commands", errors),
        listen: ListenConfig {
            listen: listen?,
            tokens: Vec::new(),
            is_insecure,
            tls,
            connections,
            connections_per_address: section.find("connections_per_address", errors).or(Some(connections)),
            patience: section.read("patience", errors),
        },
    })
}

pub(super) fn read_put(tables: &Table, has_users: bool, errors: &mut Errors) -> Option<ListenConfig> {
    tables.get("put")?;
    let section = Section::open(tables, &PUT, errors);
    let listen = read_address(&section, "listen", &users_remedy(has_users), errors);
    let tls = read_tls(&section, errors);
    let is_insecure = read_insecure(&section, listen, tls.is_some(), errors);
    let connections = section.read("connections", errors);
    Some(ListenConfig {
        listen: listen?,
        tokens: Vec::new(),
        is_insecure,
        tls,
        connections,
        connections_per_address: section.find("connections_per_address", errors).or(Some(connections)),
        patience: section.read("patience", errors),
    })
}

/// Returns what is missing for listening to other machines, and its remedy; `None` if nothing is.
fn users_remedy(has_users: bool) -> Option<(&'static str, &'static str)> {
    (!has_users).then_some(("there is no list of cameras", "add users to [intake.blocks]"))
}

fn read_ports(section: &Section<'_>, connections: u32, errors: &mut Errors) -> Option<(u16, u16)> {
    let entry = section.get("passive_ports")?;
    let text = section.text("passive_ports", errors)?;
    let ports =
        text.split_once('-').and_then(|(first, last)| Some((first.trim().parse().ok()?, last.trim().parse().ok()?)));
    let ports = ports.filter(|(first, last): &(u16, u16)| *first > 0 && first <= last);
    let Some((first, last)) = ports else {
        let must = "it must be the first and the last port, as in \"50000-50199\"";
        errors.push(entry.node.place, fault!("intake.ftp.passive_ports is {}", entry.node; "{must}"));
        return None;
    };
    let count = u32::from(last - first) + 1;
    if count < connections {
        let remedy = "every upload needs one: give more ports or fewer connections";
        errors.push(
            entry.node.place,
            fault!("intake.ftp.passive_ports has {count} ports for {connections} connections"; "{remedy}"),
        );
    }
    Some((first, last))
}

fn read_passive_address(section: &Section<'_>, errors: &mut Errors) -> Option<IpAddr> {
    let entry = section.get("passive_address")?;
    let address = section.text("passive_address", errors)?.parse().ok();
    if address.is_none() {
        let must = "it must be an address that clients reach, as in \"203.0.113.5\"";
        errors.push(entry.node.place, fault!("intake.ftp.passive_address is {}", entry.node; "{must}"));
    }
    address
}

#[cfg(test)]
mod tests {
    use crate::recorder::config::read;

    /// Returns the errors of a configuration, or its FTP settings.
    fn said(text: &str) -> String {
        read(text, "c.toml").map_or_else(|errors| errors.to_string(), |config| format!("{:?}", config.intake.ftp))
    }

    #[test]
    fn blocks_need_no_database_and_defaults_are_filled_in() {
        let config =
            read("[intake.ftp]\nlisten = \"127.0.0.1:21\"\n[intake.put]\nlisten = \"[::1]:80\"", "c.toml").unwrap();
        assert!(config.takes_blocks() && !config.takes_lines());
        let ftp = config.intake.ftp.unwrap();
        assert!(!ftp.requires_tls && ftp.passive_ports.is_none() && ftp.listen.connections == 200);
        assert_eq!(config.inbox.bounds.block, 2 << 20);
        assert!(said("[intake.blocks]\nrate = \"1MB\"").contains("there is no intake"));
    }

    #[test]
    fn listening_for_others_needs_cameras_and_protection() {
        let ftp = "[intake.ftp]\nlisten = \"0.0.0.0:21\"\n";
        let says = said(ftp);
        assert!(says.contains("c.toml:2") && says.contains("add users to [intake.blocks]"), "{says}");
        assert!(says.contains("write insecure = true where something else protects the way"), "{says}");
        let users = "[intake.blocks]\nusers = \"u\"\n";
        assert!(!said(&format!("{users}{ftp}")).contains("add users"));
        assert!(said(&format!("{users}{ftp}insecure = true")).starts_with("Some("));
        let open = "certificate = \"c\"\nkey = \"k\"\nrequire_tls = false";
        assert!(said(&format!("{users}{ftp}{open}")).contains("clients would come without TLS"));
        assert!(said(&format!("{users}{ftp}{open}\ninsecure = true")).contains("requires_tls: false"));
        assert!(said(&format!("{users}{ftp}certificate = \"c\"\nkey = \"k\"")).contains("requires_tls: true"));
        let put = said("[intake.put]\nlisten = \"0.0.0.0:80\"");
        assert!(put.contains("there is no list of cameras") && put.contains("clients would come without TLS"), "{put}");
    }

    #[test]
    fn what_is_wrong_is_said_with_place_value_and_remedy() {
        let ftp = "[intake.ftp]\nlisten = \"127.0.0.1:21\"\n";
        for (line, says) in [
            ("passive_ports = \"50000\"", "must be the first and the last port"),
            ("passive_ports = \"2-1\"", "must be the first and the last port"),
            ("passive_ports = \"50000-50009\"", "has 10 ports for 200 connections"),
            ("passive_address = \"here\"", "must be an address that clients reach"),
            ("require_tls = true", "intake.ftp.require_tls needs TLS"),
            ("implicit = \"127.0.0.1:990\"", "intake.ftp.implicit needs TLS"),
            ("certificate = \"c\"", "needs both certificate and key"),
            ("tokens = []", "tokens"),
        ] {
            let said = said(&format!("{ftp}{line}"));
            assert!(said.contains("c.toml:") && said.contains(says), "{line}: {said}");
        }
        let said = said(&format!("{ftp}[inbox]\nblock = \"2GiB\"\nbound = \"1GiB\""));
        assert!(said.contains("inbox.block"), "{said}");
    }
}
