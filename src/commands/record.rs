//! `loadline record`: the recorder, until it is asked to stop; and its quarantine.
//!
//! Main function: [`run`]. Invariant: a configuration that is wrong is refused before anything is started.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow};
use serde_json::json;

use super::output::{note, print, print_json, table};
use super::record_model::model_line;
use super::stage::{Stage, endpoint_of, entry_of};
use super::{Failure, Status};
use crate::cli::{QuarantineAction, RecordArguments};
use crate::database::Database;
use crate::recorder::config::{self, Config};
use crate::recorder::upload::Station;
use crate::recorder::{End, Recorder, log, replay_quarantine, spool};
use crate::server::{install_signal_handlers_with_reload, interrupted, take_reload};
use crate::study::Passwords;
use crate::units::show_utc;

/// How often the signals are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Quarantined records that are listed.
const LISTED_MAX: u32 = 1_000;

/// Records until it is asked to stop, or does what is asked with the quarantine.
///
/// # Errors
/// [`Failure::Usage`] for a configuration that is wrong; [`Failure::Broken`] when it cannot go on.
pub fn run(arguments: &RecordArguments, is_json: bool) -> Result<Status, Failure> {
    let config = read_config(&arguments.config)?;
    match arguments.quarantine {
        Some(QuarantineAction::List) => list_quarantine(&config, is_json),
        Some(QuarantineAction::Replay) => replay(&config, is_json),
        None => record(&arguments.config, config, is_json),
    }
}

fn read_config(path: &Path) -> Result<Config, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{name} cannot be read; name a configuration file"))
        .map_err(Failure::usage)?;
    config::read(&text, &name).map_err(Failure::usage)
}

fn record(path: &Path, config: Config, is_json: bool) -> Result<Status, Failure> {
    install_signal_handlers_with_reload();
    let scratch = config.spool.path.join("server");
    let mut stage = Stage::new(&scratch, Passwords::default());
    let recorder = config.takes_lines().then(|| start_recorder(&config, &scratch, &mut stage)).transpose()?;
    let station = config.takes_blocks().then(|| Station::start(&config).map_err(Failure::Usage)).transpose();
    let station = match station {
        Ok(station) => station,
        Err(failure) => {
            recorder.map(Recorder::stop);
            stage.leave();
            return Err(failure);
        }
    };
    if let (Some(station), Some(recorder)) = (&station, &recorder) {
        recorder.show_also(Box::new(station.metrics()));
    }
    let own = recorder.iter().flat_map(Recorder::addresses);
    for (name, address) in own.chain(station.iter().flat_map(Station::addresses)) {
        log::info("taking in", &[("intake", name), ("address", &address.to_string())]);
    }
    let failure =
        || recorder.as_ref().and_then(Recorder::failure).or_else(|| station.as_ref().and_then(Station::failure));
    let mut current = config;
    while !interrupted() && failure().is_none() {
        std::thread::sleep(LOOK_EVERY);
        if take_reload() {
            current = reload(path, current, recorder.as_ref());
        }
    }
    let reason = failure();
    log::info("stopping", &[("reason", reason.as_deref().unwrap_or("asked to"))]);
    let uploaded = station.map(Station::stop);
    let mut end = recorder.map(Recorder::stop).unwrap_or_default();
    end.failures.extend(reason.filter(|reason| !end.failures.contains(reason)));
    stage.leave();
    finish(&end, uploaded, is_json)
}

fn start_recorder(config: &Config, scratch: &Path, stage: &mut Stage) -> Result<Recorder, Failure> {
    let line = config.admission.model.as_deref().map(|run| model_line(run, &config.admission)).transpose()?;
    let database = open_database(config, scratch, stage)?;
    Recorder::start(config, database, line).map_err(Failure::usage)
}

/// The database as it is configured. A server that exists need not answer yet.
fn open_database(config: &Config, scratch: &Path, stage: &mut Stage) -> Result<Arc<dyn Database>, Failure> {
    let settings = &config.database;
    let entry = entry_of(settings).map_err(Failure::usage)?;
    if let (Some(url), Some(read_url)) = (&settings.url, entry.read_url) {
        let endpoint = endpoint_of(url, read_url).map_err(Failure::usage)?;
        let database = (entry.open)(settings, Some(&endpoint)).map_err(Failure::usage)?;
        return Ok(Arc::from(database));
    }
    if entry.recipe.is_some() {
        std::fs::create_dir_all(scratch)
            .with_context(|| format!("spool.path: {} cannot be made", scratch.display()))
            .map_err(Failure::usage)?;
        let remedy = "give database.url to record into a server that stays";
        log::warning("the private server and everything in it are removed at the end", &[("remedy", remedy)]);
        super::stage::remove_leftovers().map_err(Failure::broken)?;
    }
    let current = stage.enter(settings).map_err(Failure::usage)?;
    if let Some(server) = &current.server {
        log::info("a private server runs", &[("endpoint", &format!("{:?}", server.endpoint().unix))]);
    }
    Ok(Arc::clone(&current.database))
}

/// Reads the configuration again and applies what can be applied while it runs.
fn reload(path: &Path, current: Config, recorder: Option<&Recorder>) -> Config {
    let new = match read_config(path) {
        Ok(new) => new,
        Err(error) => {
            log::error("the configuration is wrong; nothing is changed", &[("reason", &error.to_string())]);
            return current;
        }
    };
    let mut fixed = Vec::new();
    let mut stays = |name: &'static str, is_same: bool| {
        if !is_same {
            fixed.push(name);
        }
    };
    stays("[database]", new.database == current.database);
    stays("[layout]", new.layout == current.layout);
    stays("[spool]", new.spool == current.spool);
    stays("[intake]", new.intake == current.intake);
    stays("[inbox]", new.inbox == current.inbox);
    stays("[schema]", new.schema == current.schema);
    stays("[writer]", new.writer == current.writer);
    stays("admission.model", new.admission.model == current.admission.model);
    if !fixed.is_empty() {
        let fixed = fixed.join(", ");
        log::warning("these settings are only read at the start; restart to change them", &[("settings", &fixed)]);
    }
    if let Some(recorder) = recorder.filter(|_| new.admission != current.admission) {
        recorder.governor().reconfigure(&new.admission, current.writer.batch);
    }
    log::info("the configuration was read again", &[("applied", "admission.quantile, admission.below")]);
    Config { admission: new.admission, ..current }
}

fn finish(end: &End, uploaded: Option<u64>, is_json: bool) -> Result<Status, Failure> {
    let counts = end.counts;
    if is_json {
        print_json(&json!({
            "acknowledged": counts.acknowledged, "committed": counts.committed, "spooled": counts.spooled,
            "quarantined": counts.quarantined, "uploaded_blocks": uploaded, "failures": end.failures,
        }))?;
    } else {
        let facts =
            [counts.acknowledged, counts.committed, counts.spooled, counts.quarantined].map(|count| count.to_string());
        let names = ["acknowledged", "committed", "spooled", "quarantined"];
        let facts: Vec<_> = names.into_iter().zip(facts.iter().map(String::as_str)).collect();
        let uploaded = uploaded.map(|blocks| blocks.to_string());
        let uploaded = uploaded.as_deref().map(|blocks| ("uploaded_blocks", blocks));
        log::info("stopped", &facts.into_iter().chain(uploaded).collect::<Vec<_>>());
    }
    if !end.failures.is_empty() {
        return Err(Failure::broken(anyhow!("{}", end.failures.join("; "))));
    }
    if end.quarantined > 0 {
        note(&format!(
            "note: {} records were quarantined; loadline record CONFIG.toml --quarantine list shows why",
            end.quarantined
        ));
        return Ok(Status::Invalid);
    }
    Ok(Status::Valid)
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
    let replayed = replay_quarantine(config).map_err(Failure::usage)?;
    if is_json {
        print_json(&json!({ "replayed": replayed }))?;
    } else {
        print(&format!("{replayed} records wait in the spool again; they are written when the recorder is started\n"))?;
    }
    Ok(Status::Valid)
}
