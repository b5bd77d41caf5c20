//! Starts the private server of a study and removes those of earlier runs. Main functions: [`start_private`] and [`remove_leftovers`].

use std::path::Path;

use anyhow::Context;

use super::notes::note;
use crate::database::Entry;
use crate::database::recipe::{Reach, Recipe};
use crate::server::{Cluster, KeptData, PowerDisk, ServerError, remove_orphans, root};
use crate::study::plan::private_server;
use crate::trial::DatabaseSettings;

/// Starts a private server, or all of its nodes, with its data in the run directory if the server's user may access it, or on a disk that can lose power if it is to lose it.
///
/// # Errors
/// Fails if the server does not start.
pub fn start_private(
    (entry, recipe, settings): (&Entry, &dyn Recipe, &DatabaseSettings),
    (run, loses_power): (&Path, bool),
    reach: &Reach,
    kept: Option<&KeptData>,
    notes: &mut Vec<String>,
) -> anyhow::Result<Cluster> {
    let own = private_server(settings).unwrap_or_else(|| settings.clone());
    let servers = (recipe, entry.clustered);
    let start = |parent: Option<&Path>| {
        if !loses_power {
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
