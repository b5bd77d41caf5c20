//! Checks what `database.nodes` and the settings of clusters can be combined with.
//!
//! Main functions: [`check_cluster`] and [`clash_with_nodes`]. Invariant: what a cluster does not have, or what is not done with one yet, is refused and never left out
//! in silence.

use super::clash::Clash;
use crate::database::{Clustered, REGISTRY, count_of, find};
use crate::fault::{Fault, fault};
use crate::trial::{DatabaseSettings, EventKind, Settings};
use crate::workload::keeps_records;

/// The engine whose rows the nodes of a cluster have in common.
const INNODB: &str = "innodb";

const NODES: &[&str] = &["database.nodes", "database.name"];

/// Returns how the servers of a database form a cluster; `None` for a server that exists already, and where loadline starts no clusters.
pub fn clustered_of(database: &DatabaseSettings) -> Option<&'static dyn Clustered> {
    find(&database.name).filter(|_| database.url.is_none())?.clustered
}

/// Returns the number of nodes of the private server; 1 where there is none.
pub fn nodes_of(database: &DatabaseSettings) -> u32 {
    count_of(database, clustered_of(database))
}

/// Returns the settings that cannot be combined with the nodes of the server.
pub fn check_cluster(settings: &Settings) -> Vec<Clash> {
    let database = &settings.database;
    let mut found = own_settings(database);
    let nodes = nodes_of(database);
    if nodes == 1 || !found.is_empty() {
        return found;
    }
    let mut refuse = |keys: &'static [&'static str], what: &str| {
        found.push((keys, fault!("the server has {nodes} nodes and {what}"; "leave one of them out")));
    };
    if settings.link.is_some() {
        refuse(&["link", "database.nodes"], "there is a [link], which leads to one server");
    }
    if settings.recorder.is_some() {
        refuse(&["recorder", "database.nodes"], "there is a [recorder], which writes to one server");
    }
    if settings.load.agents.is_some() {
        refuse(&["load.agents", "database.nodes"], "load.agents is given, whose agents know of one server");
    }
    if database.read_from.is_some() {
        let key: &'static [&'static str] = &["database.read_from"];
        if settings.background.is_some() {
            refuse(key, "database.read_from is \"replica\", and there is a [background], which may write");
        } else if settings.freshness.is_none() && !keeps_records(settings) {
            let what = format!(
                "database.read_from is \"replica\", and workload.name = \"{}\" writes over the connections that it reads from",
                settings.workload.name
            );
            let remedy = "take a workload that only reads, or \"freshness\", whose writers and readers have connections of their own";
            found.push((key, Fault::new(what, remedy)));
        }
        if settings.freshness.as_ref().is_some_and(|freshness| freshness.results) {
            let what = "database.read_from is \"replica\" and freshness.results is true, so that readers write what they found, and replicas take no writes";
            found.push((&["freshness.results", "database.read_from"], Fault::new(what, "leave one of them out")));
        }
    }
    found
}

/// Checks the settings of a cluster against the database.
fn own_settings(database: &DatabaseSettings) -> Vec<Clash> {
    let mut found: Vec<Clash> = Vec::new();
    let (name, nodes) = (&database.name, nodes_of(database));
    let clustered = clustered_of(database);
    let given = database.nodes.unwrap_or(nodes);
    match clustered {
        // That it needs a server of loadline's own is reported with the other settings of private servers.
        None if database.url.is_some() => {}
        None if given > 1 => {
            let able = REGISTRY.iter().filter(|entry| entry.clustered.is_some());
            let able = able.map(|entry| format!("\"{}\"", entry.name)).collect::<Vec<_>>().join(" or ");
            found.push((NODES, fault!("database.nodes is {given} and {name} has no clusters here"; "take database.name = {able}, or leave it out")));
        }
        Some(clustered) if given > clustered.nodes_most() => {
            let most = clustered.nodes_most();
            found.push((
                NODES,
                fault!("database.nodes is {given} and {name} has at most {most} here"; "take {most} or fewer"),
            ));
        }
        _ => {}
    }
    let engine = database.engine.as_deref().unwrap_or(INNODB);
    if nodes > 1 && has_engines(name) && !engine.eq_ignore_ascii_case(INNODB) {
        let what =
            format!("database.engine is \"{engine}\", and nodes of {name} have each other's rows only in innodb");
        found.push((
            &["database.engine", "database.nodes"],
            Fault::new(what, "take innodb, or leave database.nodes out"),
        ));
    }
    let is_cluster = nodes > 1 && clustered.is_some();
    let has_replicas = nodes > 1 && clustered.is_some_and(|clustered| clustered.promotes().is_some());
    let of_replicas: [(&'static [&'static str], &Option<String>); 2] = [
        (&["database.replication", "database.nodes"], &database.replication),
        (&["database.read_from", "database.nodes"], &database.read_from),
    ];
    for (keys, value) in of_replicas {
        if let (Some(value), false) = (value, has_replicas) {
            let what = format!("{} is \"{value}\" and there is no replica", keys[0]);
            found.push((keys, Fault::new(what, "write nodes = 2 to [database] of postgres or redis")));
        }
    }
    let of_writers: [(&'static [&'static str], &Option<String>, bool, &str); 2] = [
        (
            &["database.connect_to", "database.nodes"],
            &database.connect_to,
            is_cluster && !has_replicas,
            "there are not several nodes that take writes",
        ),
        (
            &["database.reconnect_to", "database.nodes"],
            &database.reconnect_to,
            is_cluster && (!has_replicas || database.read_from.is_some()),
            "there is no other node that would do what its clients ask for",
        ),
    ];
    for (keys, value, is_possible, what) in of_writers {
        if let (Some(value), false) = (value, is_possible) {
            let remedy = "leave it out, or write nodes = 3 to [database] of mariadb";
            found.push((keys, fault!("{} is \"{value}\" and {what}", keys[0]; "{remedy}")));
        }
    }
    found
}

fn has_engines(name: &str) -> bool {
    find(name).is_some_and(|entry| !entry.engines.is_empty())
}

/// Returns why the events cannot happen to the nodes of the server; `None` if they can.
pub fn clash_with_nodes(settings: &Settings) -> Option<Fault> {
    let nodes = nodes_of(&settings.database);
    let promotes = clustered_of(&settings.database).is_some_and(|clustered| clustered.promotes().is_some());
    let mut is_promoted = false;
    for event in &settings.events {
        let what = event.what.name();
        if event.node > nodes {
            let number = event.node;
            let remedy = if nodes == 1 { "leave node out".to_owned() } else { format!("take 1 to {nodes}") };
            return Some(
                fault!("the {what} of [[events]] happens to node {number} and the server has {nodes}"; "{remedy}"),
            );
        }
        if nodes > 1 && event.what.needs_own_disk() {
            let remedy = "leave one of them out";
            return Some(
                fault!("the {what} of [[events]] needs a disk of loadline's own, and the server has {nodes} nodes"; "{remedy}"),
            );
        }
        if event.what.needs_own_hosts() && (nodes == 1 || is_promoted) {
            let why = if is_promoted { "after the promote before it there is none" } else { "the server has one node" };
            let remedy = "write nodes = 3 to [database] of mariadb, or nodes = 2 of postgres, or leave the event out";
            return Some(fault!("the {what} of [[events]] cuts a node off from others, and {why}"; "{remedy}"));
        }
        if is_promoted && event.node == 1 {
            let remedy = "write node = 2, or leave it out";
            return Some(
                fault!("the {what} of [[events]] happens to node 1, which was killed by the promote before it"; "{remedy}"),
            );
        }
        if event.what != EventKind::Promote {
            continue;
        }
        if nodes != 2 || !promotes {
            let remedy = "write nodes = 2 to [database] of postgres or redis";
            return Some(fault!("the promote of [[events]] needs one primary and one replica"; "{remedy}"));
        }
        if event.node != 1 {
            let remedy = "leave node out";
            return Some(fault!("the promote of [[events]] kills the primary, which is node 1"; "{remedy}"));
        }
        is_promoted = true;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{BackgroundSettings, EventSettings, FreshnessSettings};

    fn settings(name: &str, nodes: Option<u32>) -> Settings {
        let mut settings = Settings::default();
        (settings.database.name, settings.database.nodes) = (name.to_owned(), nodes);
        settings.workload.name = "write".to_owned();
        settings
    }

    fn refused(settings: &Settings) -> String {
        check_cluster(settings).iter().map(|(_, fault)| fault.to_string()).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_has_no_nodes_is_refused() {
        assert_eq!(refused(&settings("postgres", Some(2))), "");
        assert!(refused(&settings("postgres", Some(9))).contains("has at most 4 here"));
        assert_eq!(refused(&settings("redis", Some(4))), "");
        let refusal = refused(&settings("mysql", Some(2)));
        assert!(refusal.contains("mysql has no clusters here") && refusal.contains("\"postgres\""), "{refusal}");
        let mut alone = settings("postgres", None);
        alone.database.read_from = Some("replica".to_owned());
        assert!(refused(&alone).contains("database.read_from is \"replica\" and there is no replica"));
        let mut galera = settings("mariadb", Some(3));
        galera.database.connect_to = Some("all".to_owned());
        galera.database.reconnect_to = Some("other".to_owned());
        assert_eq!(refused(&galera), "");
        galera.database.engine = Some("aria".to_owned());
        assert!(refused(&galera).contains("rows only in innodb"), "{}", refused(&galera));
        let mut replicas = settings("postgres", Some(2));
        replicas.database.connect_to = Some("all".to_owned());
        assert!(refused(&replicas).contains("not several nodes that take writes"), "{}", refused(&replicas));
        (replicas.database.connect_to, replicas.database.reconnect_to) = (None, Some("other".to_owned()));
        assert!(refused(&replicas).contains("no other node that would do"), "{}", refused(&replicas));
        (replicas.database.read_from, replicas.workload.name) = (Some("replica".to_owned()), "read".to_owned());
        assert_eq!(refused(&replicas), "");
    }

    #[test]
    fn only_who_only_reads_reads_from_a_replica() {
        let mut reading = settings("postgres", Some(2));
        reading.database.read_from = Some("replica".to_owned());
        assert!(refused(&reading).contains("workload.name = \"write\" writes over"), "{}", refused(&reading));
        reading.workload.name = "read".to_owned();
        assert_eq!(refused(&reading), "");
        reading.background = Some(BackgroundSettings { workload: "write".to_owned(), ..BackgroundSettings::default() });
        assert!(refused(&reading).contains("[background], which may write"));
        let mut fresh = settings("postgres", Some(2));
        fresh.database.read_from = Some("replica".to_owned());
        (fresh.workload.name, fresh.freshness) = ("freshness".to_owned(), Some(FreshnessSettings::default()));
        assert_eq!(refused(&fresh), "");
        fresh.freshness = Some(FreshnessSettings { results: true, ..FreshnessSettings::default() });
        assert!(refused(&fresh).contains("replicas take no writes"), "{}", refused(&fresh));
    }

    #[test]
    fn events_happen_to_nodes_that_are_there() {
        let clash = |nodes, events: &[(EventKind, u32)]| {
            let mut settings = settings("postgres", nodes);
            let event =
                |(what, node): &(EventKind, u32)| EventSettings { node: *node, ..EventSettings::new(1.0, *what) };
            settings.events = events.iter().map(event).collect();
            clash_with_nodes(&settings).map(|fault| fault.to_string()).unwrap_or_default()
        };
        assert_eq!(clash(None, &[(EventKind::Kill, 1), (EventKind::CutPower, 1)]), "");
        assert!(
            clash(None, &[(EventKind::Kill, 2)]).contains("happens to node 2 and the server has 1; leave node out")
        );
        assert_eq!(clash(Some(2), &[(EventKind::Promote, 1), (EventKind::Pause, 2)]), "");
        assert!(clash(Some(2), &[(EventKind::Promote, 1), (EventKind::Pause, 1)]).contains("killed by the promote"));
        assert!(clash(Some(2), &[(EventKind::Promote, 2)]).contains("leave node out"));
        assert!(clash(Some(3), &[(EventKind::Promote, 1)]).contains("one primary and one replica"));
        assert_eq!(clash(Some(2), &[(EventKind::CutNode, 2), (EventKind::Promote, 1)]), "");
        assert!(clash(None, &[(EventKind::CutNode, 1)]).contains("the server has one node; write nodes = 3"));
        assert!(clash(Some(2), &[(EventKind::Promote, 1), (EventKind::CutNode, 2)]).contains("there is none"));
        assert!(clash(Some(2), &[(EventKind::CutPower, 1)]).contains("disk of loadline's own"));
    }
}
