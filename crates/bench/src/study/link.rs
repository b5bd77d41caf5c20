//! `[link]`: the network between load and server.
//!
//! Main: [`LINK`], [`read_link`] and [`check_link`]. Invariant: without the section, load and server are on one host, as always.

use super::clash::Clash;
use super::names::Names;
use crate::fault::fault;
use crate::trial::{LinkHosts, LinkSettings, Settings, TUNNELS};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::Table;
use crate::written::{Absent, Kind, Part, Setting, Span};

/// The value for no limit.
const UNLIMITED: &str = "unlimited";
/// The value for no tunnel.
const NONE: &str = "none";
/// The value for a host of its own for each connection.
const EACH: &str = "each";
/// The value for the same rate as the hosts' links.
const SAME: &str = "same";
/// Maximum number of hosts, limited by the addresses available ([`crate::link`]).
const HOSTS_MAX: u32 = 250;
/// Minimum rate: slower links would not carry a packet in a second.
const RATE_BITS_PER_S_LEAST: f64 = 16e3;
/// Maximum rate: no machine reaches more.
const RATE_BITS_PER_S_MOST: f64 = 100e9;
const DELAY_S_MAX: f64 = 10.0;

/// The settings of the section.
pub static LINK: Part = Part {
    name: "link",
    help: "The load and the private server run on two hosts, which are network namespaces of this machine, joined by a link. It needs root. See [links.md](links.md).",
    settings: &[
        Setting::new(
            "rate",
            Kind::BitRate(RATE_BITS_PER_S_LEAST, RATE_BITS_PER_S_MOST, &[UNLIMITED]),
            Absent::Text(UNLIMITED),
            "Rate of the link in each direction.",
        )
        .factor(|settings| Some(link(settings)?.rate_bits_per_s.map_or_else(|| UNLIMITED.into(), Into::into))),
        Setting::new(
            "delay",
            Kind::Duration(Span::AtMost(DELAY_S_MAX)),
            Absent::Text("0s"),
            "Additional time that a frame takes in each direction.",
        )
        .factor(|settings| Some(link(settings)?.delay_s.into())),
        Setting::new(
            "tunnel",
            Kind::Listed(|| [NONE].into_iter().chain(TUNNELS).collect()),
            Absent::Text(NONE),
            "How an IPsec tunnel over the link encrypts and authenticates.",
        )
        .factor(|settings| Some(link(settings)?.tunnel.as_deref().unwrap_or(NONE).into())),
        Setting::new(
            "hosts",
            Kind::WholeOr(1, HOSTS_MAX as i64, &[EACH]),
            Absent::Whole(1),
            "Number of hosts to which connections are distributed, each with its own link. `each` means one host for each connection.",
        )
        .only("uploads of blocks")
        .factor(|settings| {
            Some(match link(settings)?.hosts {
                LinkHosts::Each => EACH.into(),
                LinkHosts::Count(count) => count.into(),
            })
        }),
        Setting::new(
            "server_rate",
            Kind::BitRate(RATE_BITS_PER_S_LEAST, RATE_BITS_PER_S_MOST, &[UNLIMITED, SAME]),
            Absent::Text(UNLIMITED),
            "Rate of the server's own link to all hosts; `same` means that of `rate`.",
        )
        .factor(|settings| Some(link(settings)?.server_rate_bits_per_s.map_or_else(|| UNLIMITED.into(), Into::into))),
    ],
};

fn link(settings: &Settings) -> Option<&LinkSettings> {
    settings.link.as_ref()
}

/// Reads the section; `None` if it is not written.
pub fn read_link(root: &Table, errors: &mut Errors) -> Option<LinkSettings> {
    root.get("link")?;
    let section = Section::open(root, &LINK, errors);
    let tunnel: Option<String> = section.find("tunnel", errors);
    let rate_bits_per_s = section.read("rate", errors);
    let is_same = section.find("server_rate", errors) == Some(SAME);
    let is_each = section.find("hosts", errors) == Some(EACH);
    Some(LinkSettings {
        rate_bits_per_s,
        delay_s: section.read("delay", errors),
        tunnel: tunnel.filter(|tunnel| tunnel != NONE),
        hosts: if is_each { LinkHosts::Each } else { LinkHosts::Count(section.read("hosts", errors)) },
        server_rate_bits_per_s: if is_same { rate_bits_per_s } else { section.read("server_rate", errors) },
    })
}

/// Returns the settings that a link cannot be combined with, and why: it has a private server at its other end. If the
/// path of a recorder is not known, it is not known either what goes over the link.
pub fn check_link(settings: &Settings, names: &Names, is_path_known: bool) -> Option<Clash> {
    let link = settings.link.as_ref()?;
    if link.hosts == LinkHosts::Each && settings.load.clients > HOSTS_MAX {
        let remedy = "take fewer clients, or a number of hosts that they share";
        let message = fault!(
            "link.hosts is \"each\" and load.clients is {}; at most {HOSTS_MAX}", settings.load.clients; "{remedy}"
        );
        return Some((&["link.hosts", "load.clients"], message));
    }
    let uploads = settings.recorded().is_some_and(|recorder| recorder.path.is_upload());
    if link.hosts != LinkHosts::default() && !uploads && is_path_known {
        let remedy = "connections to databases come from one host; leave it out";
        return Some((&["link.hosts", "recorder.path"], fault!("link.hosts is for uploads of blocks"; "{remedy}")));
    }
    if settings.freshness.as_ref().is_some_and(|freshness| freshness.path.publishes()) {
        let message = fault!(
            "[link] is set and freshness.path publishes; a link has two hosts, and broker and historian a place on neither";
            "write path = \"database\", or leave [link] out"
        );
        return Some((&["freshness.path", "link.rate"], message));
    }
    let database = &settings.database;
    let name = &database.name;
    if let Some(url) = &database.url {
        let remedy = "leave one of them out; a server elsewhere has a link of its own";
        let message = fault!("[link] goes with a private server and database.url is \"{url}\""; "{remedy}");
        return Some((&["link.rate", "database.url"], message));
    }
    if settings.has_recorders_on_hosts() {
        return None;
    }
    if settings.recorded().is_some() {
        return match database.socket.as_deref() {
            Some("tcp") => {
                let remedy = "a recorder on a link reaches its database by a unix socket; leave it out";
                Some((&["database.socket"], fault!("database.socket is \"tcp\" and there is a [link]"; "{remedy}")))
            }
            _ => None,
        };
    }
    if !names.database(name)?.has_private_server {
        let remedy = "choose a server, as in name = \"mariadb\", or leave [link] out";
        return Some((
            &["link.rate", "database.name"],
            fault!("[link] goes with a private server and {name} has none"; "{remedy}"),
        ));
    }
    if database.socket.as_deref() == Some("unix") {
        let message = fault!("database.socket is \"unix\" and a link carries TCP"; "leave it out");
        return Some((&["database.socket"], message));
    }
    None
}
