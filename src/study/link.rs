//! `[link]`: what lies between load and server.
//!
//! Main functions: [`read_link`], [`check_link`]. Invariant: without the section load and server are on one host, as ever.

use super::names::Names;
use super::place::Errors;
use super::section::Section;
use super::tree::{Content, Table};
use crate::trial::{LinkHosts, LinkSettings, Settings, TUNNELS};
use crate::units::parse_bit_rate;

const KEYS: &[&str] = &["rate", "delay", "tunnel", "hosts", "server_rate"];
/// What stands for no limit.
const UNLIMITED: &str = "unlimited";
/// What stands for no tunnel.
const NONE: &str = "none";
/// What stands for a host of its own for each connection.
const EACH: &str = "each";
/// What stands for the rate of the hosts' links.
const SAME: &str = "same";
/// More hosts would not find an address ([`crate::link`]).
const HOSTS_MAX: u32 = 250;
/// Slower links would not carry a packet in a second, and faster ones no machine makes.
const RATES_BITS_PER_S: std::ops::RangeInclusive<f64> = 16e3..=100e9;
const DELAY_S_MAX: f64 = 10.0;

/// The settings of the section; none where it is not written. What is missing or wrong has its default.
pub fn read_link(root: &Table, errors: &mut Errors) -> Option<LinkSettings> {
    root.get("link")?;
    let section = Section::open(root, "link", KEYS, errors);
    let choices: Vec<&str> = [NONE].into_iter().chain(TUNNELS).collect();
    let tunnel = section.one_of("tunnel", &choices, errors).filter(|tunnel| *tunnel != NONE);
    let delay_s = section.seconds("delay", errors).unwrap_or(0.0);
    if let (true, Some(entry)) = (delay_s > DELAY_S_MAX, section.get("delay")) {
        errors.push(entry.node.place, format!("link.delay is {}; it must be at most 10 s", entry.node));
    }
    let rate_bits_per_s = read_rate(&section, "rate", errors);
    let is_same = section
        .get("server_rate")
        .is_some_and(|entry| matches!(&entry.node.content, Content::Text(text) if text == SAME));
    let server_rate_bits_per_s = if is_same { rate_bits_per_s } else { read_rate(&section, "server_rate", errors) };
    let hosts = read_hosts(&section, errors);
    Some(LinkSettings { rate_bits_per_s, delay_s, tunnel: tunnel.map(str::to_owned), hosts, server_rate_bits_per_s })
}

fn read_rate(section: &Section, key: &str, errors: &mut Errors) -> Option<f64> {
    let text = section.text(key, errors).filter(|text| *text != UNLIMITED)?;
    let place = section.get(key)?.node.place;
    match parse_bit_rate(text) {
        Ok(rate) if RATES_BITS_PER_S.contains(&rate) => Some(rate),
        Ok(_) => {
            errors.push(place, format!("link.{key} is \"{text}\"; it must be from 16 kbit/s to 100 Gbit/s"));
            None
        }
        Err(sentence) => {
            errors.push(place, format!("link.{key}: {sentence}; or write \"{UNLIMITED}\""));
            None
        }
    }
}

fn read_hosts(section: &Section, errors: &mut Errors) -> LinkHosts {
    let is_each =
        section.get("hosts").is_some_and(|entry| matches!(&entry.node.content, Content::Text(text) if text == EACH));
    if is_each {
        return LinkHosts::Each;
    }
    let count = section.count("hosts", 1, HOSTS_MAX, errors).and_then(|count| u16::try_from(count).ok());
    count.map_or_else(LinkHosts::default, LinkHosts::Count)
}

/// A link has a private server at its other end: which settings speak against it, and why. Of a recorder whose path is not known it is not known
/// either what goes over the link.
pub fn check_link(
    settings: &Settings,
    names: &Names,
    is_path_known: bool,
) -> Option<(&'static [&'static str], String)> {
    let link = settings.link.as_ref()?;
    if link.hosts == LinkHosts::Each && settings.load.clients > HOSTS_MAX {
        let remedy = "take fewer clients, or a number of hosts that they share";
        let message = format!(
            "link.hosts is \"each\" and load.clients is {}; at most {HOSTS_MAX}; {remedy}",
            settings.load.clients
        );
        return Some((&["link.hosts", "load.clients"], message));
    }
    let uploads = settings.recorded().is_some_and(|recorder| recorder.path.is_upload());
    if link.hosts != LinkHosts::default() && !uploads && is_path_known {
        let remedy = "connections to databases come from one host; leave it out";
        return Some((&["link.hosts", "recorder.path"], format!("link.hosts is for uploads of blocks; {remedy}")));
    }
    if settings.freshness.as_ref().is_some_and(|freshness| freshness.path.publishes()) {
        let remedy = "write path = \"database\", or leave [link] out";
        let message = format!(
            "[link] is set and freshness.path publishes; a link has two hosts, and broker and historian a place on neither; {remedy}"
        );
        return Some((&["freshness.path", "link.rate"], message));
    }
    let database = &settings.database;
    let name = &database.name;
    if let Some(url) = &database.url {
        let remedy = "leave one of them out; a server elsewhere has a link of its own";
        let message = format!("[link] goes with a private server and database.url is \"{url}\"; {remedy}");
        return Some((&["link.rate", "database.url"], message));
    }
    if settings.recorded().is_some() {
        return match database.socket.as_deref() {
            Some("tcp") => {
                let remedy = "a recorder on a link reaches its database by a unix socket; leave it out";
                Some((&["database.socket"], format!("database.socket is \"tcp\" and there is a [link]; {remedy}")))
            }
            _ => None,
        };
    }
    if !names.database(name)?.has_private_server {
        let remedy = "choose a server, as in name = \"mariadb\", or leave [link] out";
        return Some((
            &["link.rate", "database.name"],
            format!("[link] goes with a private server and {name} has none; {remedy}"),
        ));
    }
    if database.socket.as_deref() == Some("unix") {
        let message = "database.socket is \"unix\" and a link carries TCP; leave it out".to_owned();
        return Some((&["database.socket"], message));
    }
    None
}

/// The value of a setting of the section, as a study file states it.
pub fn value(settings: &Settings, setting: &str) -> Option<serde_json::Value> {
    let link = settings.link.as_ref()?;
    match setting {
        "link.rate" => Some(link.rate_bits_per_s.map_or_else(|| UNLIMITED.into(), Into::into)),
        "link.delay" => Some(link.delay_s.into()),
        "link.tunnel" => Some(link.tunnel.as_deref().unwrap_or(NONE).into()),
        "link.hosts" => Some(match link.hosts {
            LinkHosts::Each => EACH.into(),
            LinkHosts::Count(count) => count.into(),
        }),
        "link.server_rate" => Some(link.server_rate_bits_per_s.map_or_else(|| UNLIMITED.into(), Into::into)),
        _ => None,
    }
}
