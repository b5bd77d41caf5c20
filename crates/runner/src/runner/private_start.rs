//! Starts the private server of a study and removes those of earlier runs.
//!
//! Main functions: [`start_private`] and [`remove_leftovers`]. Invariant: a server has a disk or hosts of loadline's own only where an event of the study needs them.

use std::path::Path;

use anyhow::Context;

use super::notes::note;
use crate::database::Entry;
use crate::database::recipe::{Reach, Recipe};
use crate::link::open_hosts;
use crate::server::{Cluster, KeptData, PowerDisk, ServerError, remove_orphans, root};
use crate::study::cluster::nodes_of;
use crate::study::plan::private_server;
use crate::study::{need_own_disk, need_own_hosts};
use crate::trial::{DatabaseSettings, EventSettings};

/// What a private server has of loadline's own, so that events can happen to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Means {
    /// Whether its data is on a disk that can lose power.
    pub disk: bool,
    /// Whether each of its nodes is on a host that can be cut off.
    pub hosts: bool,
}

impl Means {
    /// Returns what the events need.
    pub fn of_events(events: &[EventSettings]) -> Self {
        Means { disk: need_own_disk(events), hosts: need_own_hosts(events) }
    }

    /// Returns what a server has; nothing without a server.
    pub fn of_server(server: Option<&Cluster>) -> Self {
        let has = |what: fn(&Cluster) -> bool| server.is_some_and(what);
        Means { disk: has(Cluster::can_lose_power), hosts: has(|server| server.host(1).is_some()) }
    }
}

/// Starts a private server, or all of its nodes, with its data in the run directory if the server's user may access it, or with the means that its events need.
///
/// # Errors
/// Fails if the server does not start.
pub fn start_private(
    (entry, recipe, settings): (&Entry, &dyn Recipe, &DatabaseSettings),
    (run, means): (&Path, Means),
    reach: &Reach,
    kept: Option<&KeptData>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Cluster> {
    let own = private_server(settings).unwrap_or_else(|| settings.clone());
    let servers = (recipe, entry.clustered);
    let hosts = if means.hosts { open_hosts(nodes_of(&own))? } else { Vec::new() };
    let reach = (reach, &*hosts);
    let start = |parent: Option<&Path>| {
        if !means.disk {
            return Cluster::start(reach, servers, &own, parent, kept);
        }
        let disk = PowerDisk::mount(parent)?;
        Ok(Cluster::start(reach, servers, &own, Some(&disk.path()), kept)?.on(disk))
    };
    let server = match start(Some(run)) {
        Err(ServerError::Barred { user, directory, .. }) => {
            let (run, root) = (run.display(), root());
            notes.push(format!(
                "the server runs as user {user}, who may not enter {}: its data are in {}, not in {run}; choose another \
                 run directory with --out if that is not the disk to be measured",
                directory.display(),
                root.display()
            ));
            start(None)?
        }
        server => server?,
    };
    notes.extend(server.warnings().iter().map(|warning| format!("{} warns: {warning}", settings.name)));
    Ok(server)
}

/// Ends the private servers that earlier runs left behind when they were killed, and removes their files.
///
/// # Errors
/// Fails if the leftovers cannot be read or removed.
pub fn remove_leftovers() -> anyhow::Result<()> {
    let removed = remove_orphans(&root()).context("servers left by an earlier run could not be removed")?;
    if removed > 0 {
        let s = if removed == 1 { "" } else { "s" };
        note(&format!("note: removed what {removed} private server{s} of earlier runs had left behind"));
    }
    Ok(())
}
