//! Reload on SIGHUP: reads the configuration again and applies the settings that can change while the recorder runs.
//!
//! Main function: [`reload`]. Invariants: a reload changes everything or nothing, and reports settings that stay as they were. The result is as safe as a
//! configuration at the start: a listening address stays until the restart, so changed settings are judged with the old address.

use std::path::Path;

use super::record_config::read_config;
use super::record_model::model_line;
use super::record_parts::{Parts, say_line};
use crate::recorder::admission::ModelLine;
use crate::recorder::config::{Config, ListenConfig};
use crate::recorder::intake::Renewal;
use crate::recorder::log;
use crate::recorder::upload::CameraList;

/// Reads the configuration and the files that it names again, applies what can be applied, and returns the configuration in force.
pub(super) fn reload(path: &Path, current: Config, parts: &Parts) -> Config {
    let prepared = read_config(path)
        .map_err(|error| error.to_string())
        .and_then(|new| Ok((Prepared::read(path, &new, &current, parts)?, new)));
    let (prepared, new) = match prepared {
        Ok(prepared) => prepared,
        Err(reason) => {
            log::error("the configuration is wrong; nothing is changed", &[("reason", &reason)]);
            return current;
        }
    };
    let fixed = fixed(&new, &prepared.held);
    if !fixed.is_empty() {
        log::warning("these settings take effect at the next start", &[("settings", &fixed.join(", "))]);
    }
    let mut applied = different(&prepared.held, &current);
    let held = prepared.apply(&current, parts, &mut applied);
    let applied = if applied.is_empty() { "nothing is different".to_owned() } else { applied.join(", ") };
    log::info("the configuration was read again", &[("applied", &applied)]);
    held
}

/// All changes, read and checked.
struct Prepared {
    held: Config,
    line: Option<ModelLine>,
    certificates: Vec<Renewal>,
    cameras: Option<CameraList>,
}

impl Prepared {
    fn read(path: &Path, new: &Config, current: &Config, parts: &Parts) -> Result<Self, String> {
        let held = merge(new, current);
        check_doors(path, &held)?;
        let is_other_line = new.admission != current.admission;
        let model = new.admission.model.as_deref().filter(|_| is_other_line);
        let line = model.map(|run| model_line(run, &new.admission)).transpose().map_err(|error| error.to_string())?;
        // Passwords are read even if the configuration is unchanged: they are in a separate file.
        let users = held.intake.blocks.users.as_deref().filter(|_| held.takes_blocks());
        let cameras = users.map(|users| CameraList::read(Some(users))).transpose()?;
        Ok(Prepared { certificates: parts.read_certificates()?, held, line, cameras })
    }

    /// Applies the changes. This cannot fail.
    fn apply(self, current: &Config, parts: &Parts, applied: &mut Vec<&'static str>) -> Config {
        let Prepared { held, line, certificates, cameras } = self;
        log::configure(held.log);
        if let Some(recorder) = parts.recorder() {
            recorder.reconfigure(&held);
            if held.admission != current.admission {
                line.iter().for_each(|line| say_line(line, &held.admission));
                recorder.governor().reconfigure(&held.admission, held.writer.batch, line);
            }
        }
        if let Some(cameras) = cameras {
            applied.push("cameras");
            parts.renew_cameras(cameras);
        }
        if let Some(office) = &held.office {
            parts.renew_readers(&office.readers);
        }
        let mut are_any = false;
        certificates.into_iter().for_each(|renewal| are_any |= renewal.show());
        if are_any {
            applied.push("certificates");
        }
        held
    }
}

/// Returns the configuration in force: new values of the settings that can change, old values of the others. An intake that did not exist at the start
/// has nothing to change.
fn merge(new: &Config, current: &Config) -> Config {
    let mut held = current.clone();
    let listening = |config: &Config| [config.intake.http.clone(), config.intake.tcp.clone()];
    let own = [&mut held.intake.http, &mut held.intake.tcp];
    for (own, other) in own.into_iter().zip(listening(new)) {
        if let (Some(own), Some(other)) = (own, other) {
            own.tokens = other.tokens;
        }
    }
    if let (Some(own), Some(other)) = (&mut held.office, &new.office) {
        own.readers.clone_from(&other.readers);
    }
    held.access.clone_from(&new.access);
    held.limits = new.limits;
    held.admission = new.admission.clone();
    held.writer.drain = new.writer.drain;
    held.log = new.log;
    held
}

/// Fails if anybody could use an address that stays until the restart.
fn check_doors(path: &Path, held: &Config) -> Result<(), String> {
    for (name, listen) in [("http", &held.intake.http), ("tcp", &held.intake.tcp)] {
        let Some(ListenConfig { listen, tokens, .. }) = listen else { continue };
        if !listen.ip().is_loopback() && tokens.is_empty() && held.access.is_empty() {
            let file = path.display();
            let remedy = "leave one in it until then, or restart now";
            return Err(format!(
                "{file}: intake.{name}.tokens: there is no token, and {listen} is listened on until the restart; {remedy}"
            ));
        }
    }
    Ok(())
}

/// Returns the names of changed settings.
fn different(held: &Config, current: &Config) -> Vec<&'static str> {
    let tokens = |config: &Config| {
        [&config.intake.http, &config.intake.tcp].map(|listen| listen.as_ref().map(|listen| listen.tokens.clone()))
    };
    let settings = [
        ("tokens", tokens(held) == tokens(current)),
        ("[[access]]", held.access == current.access),
        ("[limits]", held.limits == current.limits),
        ("[admission]", held.admission == current.admission),
        ("writer.drain", held.writer.drain == current.writer.drain),
        ("office.readers", held.office == current.office),
        ("[log]", held.log == current.log),
    ];
    others(&settings)
}

/// Returns the names of settings in the new file that are not in force yet.
fn fixed(new: &Config, held: &Config) -> Vec<&'static str> {
    let (intake, own) = (&new.intake, &held.intake);
    let rest =
        |config: &Config| (config.intake.memory_bytes, config.intake.request_bytes, config.intake.keeps_good_lines);
    let settings = [
        ("[database]", new.database == held.database),
        ("[layout]", new.layout == held.layout),
        ("[spool]", new.spool == held.spool),
        ("[quarantine]", new.quarantine_bound_bytes == held.quarantine_bound_bytes),
        ("intake.memory, request or partial", rest(new) == rest(held)),
        ("[intake.http]", intake.http == own.http),
        ("[intake.tcp]", intake.tcp == own.tcp),
        ("[intake.nats]", intake.nats == own.nats),
        ("[intake.blocks]", intake.blocks == own.blocks),
        ("[intake.ftp]", intake.ftp == own.ftp),
        ("[intake.put]", intake.put == own.put),
        ("[intake.store]", intake.store == own.store),
        ("[inbox]", new.inbox == held.inbox),
        ("[processing]", new.processing == held.processing),
        ("[forward]", new.forward == held.forward),
        ("[office], but for readers", new.office == held.office),
        ("[metrics]", new.metrics == held.metrics),
        ("[query]", new.query == held.query),
        ("[retention]", new.retention == held.retention),
        ("[schema]", new.schema == held.schema),
        ("[writer], but for drain", new.writer == held.writer),
    ];
    others(&settings)
}

/// Returns the names of settings that differ.
fn others(settings: &[(&'static str, bool)]) -> Vec<&'static str> {
    settings.iter().filter(|(_, is_same)| !is_same).map(|(name, _)| *name).collect()
}
