//! `loadline record`: runs the recorder until it is asked to stop; and shows or releases its quarantine.
//!
//! Main function: [`run`]. Invariant: a wrong configuration is refused before anything is started.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::json;

use super::output::{note, print, print_json, table};
use super::record_config::{open_server, read_config};
use super::record_parts::{Ended, Parts};
use super::record_reload::reload;
use super::record_supervised::Supervised;
use super::{Failure, Status};
use crate::cli::{QuarantineAction, RecordArguments};
use crate::database::Database;
use crate::recorder::config::Config;
use crate::recorder::supervisor::Supervisor;
use crate::recorder::{Cleared, discard_quarantine, log, memory, replay_quarantine, spool};
use crate::runner::entry::entry_of;
use crate::runner::stage::Stage;
use crate::server::{Cluster, install_signal_handlers_with_reload, interrupted, keep_files_private, take_reload};
use crate::study::Passwords;
use crate::units::show_utc;

/// Interval between two checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Largest number of quarantined records that are listed.
const LISTED_MAX: u32 = 1_000;

/// Records until it is asked to stop, or carries out an action on the quarantine.
///
/// # Errors
/// [`Failure::Usage`] for a wrong configuration; [`Failure::Broken`] if the recorder cannot go on.
pub fn run(arguments: &RecordArguments, is_json: bool) -> Result<Status, Failure> {
    let config = read_config(&arguments.config)?;
    match arguments.quarantine {
        Some(QuarantineAction::List) => list_quarantine(&config, is_json),
        Some(QuarantineAction::Replay) => replay(&config, is_json),
        Some(QuarantineAction::Discard) => discard(&config, is_json),
        None => record(&arguments.config, config, is_json),
    }
}

fn record(path: &Path, config: Config, is_json: bool) -> Result<Status, Failure> {
    install_signal_handlers_with_reload();
    memory::keep_freed();
    log::configure(config.log);
    log::never_wait();
    let mut supervised = Supervised::new(Supervisor::from_environment().map_err(Failure::refused)?);
    let scratch = config.spool.path.join("server");
    let mut stage = Stage::new(&scratch, Passwords::default());
    let needs_database =
        config.takes_lines() || config.processing.is_some() || config.office.is_some() || config.query.is_some();
    let database = needs_database.then(|| open_database(&config, &scratch, &mut stage)).transpose()?;
    keep_files_private();
    warn_of_readers(path);
    let parts = match Parts::start(&config, database) {
        Ok(parts) => parts,
        Err(failure) => {
            stage.leave();
            return Err(failure);
        }
    };
    for (name, address) in parts.addresses() {
        let event = if ["office", "metrics", "query"].contains(&name) { "answering" } else { "taking in" };
        log::info(event, &[("intake", name), ("address", &address.to_string())]);
    }
    let mut current = config;
    while !interrupted() && parts.failure().is_none() {
        std::thread::sleep(LOOK_EVERY);
        supervised.look(&parts);
        if take_reload() {
            supervised.begin_reload();
            current = reload(path, current, &parts);
            supervised.end_reload();
        }
    }
    let reason = parts.failure();
    let why = reason.as_deref().unwrap_or("asked to");
    log::info("stopping", &[("reason", why)]);
    supervised.stopping(why, current.writer.drain);
    let mut ended = parts.stop();
    ended.end.failures.extend(reason.filter(|reason| !ended.end.failures.contains(reason)));
    stage.leave();
    finish(&ended, is_json)
}

/// Warns if other users may read the configuration, which holds tokens and passwords.
fn warn_of_readers(path: &Path) {
    let mode = std::fs::metadata(path).map_or(0, |metadata| metadata.permissions().mode());
    if mode & 0o004 != 0 {
        let (path, remedy) = (path.display().to_string(), format!("chmod 640 {}", path.display()));
        log::warning("every user of this machine can read the configuration", &[("path", &path), ("remedy", &remedy)]);
    }
}

/// Opens the configured database. An existing server need not answer yet.
fn open_database(config: &Config, scratch: &Path, stage: &mut Stage) -> Result<Arc<dyn Database>, Failure> {
    let settings = &config.database;
    if let Some(server) = open_server(settings)? {
        return Ok(server);
    }
    let entry = entry_of(settings).map_err(Failure::usage)?;
    if entry.recipe.is_none() {
        keep_files_private();
    } else {
        // A private server runs as another user, who must be able to enter its directory.
        std::fs::create_dir_all(scratch)
            .with_context(|| format!("spool.path: {} cannot be made", scratch.display()))
            .map_err(Failure::usage)?;
        let remedy = "give database.url to record into a server that stays";
        log::warning("the private server and everything in it are removed at the end", &[("remedy", remedy)]);
        crate::runner::private_start::remove_leftovers().map_err(Failure::broken)?;
    }
    let current = stage.enter(settings).map_err(Failure::usage)?;
    if let Some(server) = current.server.as_ref().and_then(Cluster::first) {
        log::info(
            "a private server runs",
            &[("socket", &server.endpoint().unix.as_deref().unwrap_or(Path::new("none")).display().to_string())],
        );
    }
    let opening = current.reach();
    Ok(Arc::from(entry.open_sql(&opening.settings, opening.endpoint.as_ref()).map_err(Failure::usage)?))
}

fn finish(ended: &Ended, is_json: bool) -> Result<Status, Failure> {
    let (end, counts) = (&ended.end, ended.end.counts);
    if is_json {
        print_json(&json!({
            "acknowledged": counts.acknowledged, "committed": counts.committed, "spooled": counts.spooled,
            "quarantined": counts.quarantined, "retired": counts.retired, "uploaded_blocks": ended.uploaded, "forwarded_blocks": ended.forwarded, "blocks": ended.blocks,
            "failures": end.failures,
        }))?;
    } else {
        let blocks = ended.blocks.unwrap_or_default();
        let facts = [
            ("acknowledged", Some(counts.acknowledged)),
            ("committed", Some(counts.committed)),
            ("spooled", Some(counts.spooled)),
            ("quarantined", Some(counts.quarantined)),
            ("retired", Some(counts.retired)),
            ("uploaded_blocks", ended.uploaded),
            ("forwarded_blocks", ended.forwarded),
            ("blocks_committed", ended.blocks.map(|_| blocks.committed)),
            ("blocks_replayed", ended.blocks.map(|_| blocks.replayed)),
            ("blocks_waiting", ended.blocks.map(|_| blocks.waiting)),
            ("blocks_quarantined", ended.blocks.map(|_| blocks.quarantined)),
        ];
        let facts = facts.into_iter().filter_map(|(name, count)| Some((name, count?.to_string())));
        let facts: Vec<_> = facts.collect();
        log::info("stopped", &facts.iter().map(|(name, count)| (*name, count.as_str())).collect::<Vec<_>>());
    }
    if !end.failures.is_empty() {
        return Err(Failure::broken(anyhow!("{}", end.failures.join("; "))));
    }
    let blocks = ended.blocks.map_or(0, |blocks| blocks.quarantined_since);
    if blocks > 0 {
        note(&format!("note: {blocks} blocks were quarantined; loadline block quarantine CONFIG.toml shows why"));
    }
    if end.quarantined > 0 {
        note(&format!(
            "note: {} records were quarantined; loadline record CONFIG.toml --quarantine list shows why",
            end.quarantined
        ));
    }
    // Records in quarantine are kept and shown on `/metrics` and `/ready`: the run has not failed because of them.
    Ok(if blocks > 0 { Status::Invalid } else { Status::Valid })
}

fn list_quarantine(config: &Config, is_json: bool) -> Result<Status, Failure> {
    let listed = spool::list(&config.spool.path, LISTED_MAX).map_err(Failure::usage)?;
    if is_json {
        print_json(&json!({ "quarantined": listed }))?;
        return Ok(Status::Valid);
    }
    if listed.is_empty() {
        print("nothing is in quarantine\n")?;
        return Ok(Status::Valid);
    }
    let mut rows = vec![["id", "when", "source", "reason", "line"].map(str::to_owned).to_vec()];
    for one in &listed {
        let when = show_utc(u64::try_from(one.quarantined_ns / 1_000_000_000).unwrap_or(0));
        let line: String = one.line.chars().take(200).collect();
        rows.push(vec![one.id.to_string(), when, one.source.clone(), one.reason.clone(), line]);
    }
    print(&table(rows))?;
    Ok(Status::Valid)
}

fn replay(config: &Config, is_json: bool) -> Result<Status, Failure> {
    let Cleared { rows, is_running } = replay_quarantine(config).map_err(Failure::usage)?;
    if is_json {
        print_json(&json!({ "replayed": rows }))?;
    } else {
        let when = if is_running {
            "the recorder, which runs, writes them"
        } else {
            "they are written when the recorder is started"
        };
        print(&format!("{rows} records wait in the spool again; {when}\n"))?;
    }
    Ok(Status::Valid)
}

fn discard(config: &Config, is_json: bool) -> Result<Status, Failure> {
    let Cleared { rows, .. } = discard_quarantine(config).map_err(Failure::usage)?;
    if is_json {
        print_json(&json!({ "discarded": rows }))?;
    } else {
        print(&format!("{rows} records were removed from the quarantine; they are nowhere any more\n"))?;
    }
    Ok(Status::Valid)
}
