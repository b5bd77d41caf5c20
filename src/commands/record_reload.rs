//! SIGHUP: the configuration is read again, and what can be changed while the recorder runs is changed.
//!
//! Main function: [`reload`]. Invariant: a configuration that is wrong changes nothing, and what is not changed is said.

use std::path::Path;

use super::record::read_config;
use super::record_model::model_line;
use super::record_parts::say_line;
use crate::recorder::config::{Config, IntakeConfig};
use crate::recorder::{Recorder, log};

/// Reads the configuration again and applies what can be applied; the configuration as it holds from now on.
pub(super) fn reload(path: &Path, current: Config, recorder: Option<&Recorder>) -> Config {
    let new = match read_config(path) {
        Ok(new) => new,
        Err(error) => {
            log::error("the configuration is wrong; nothing is changed", &[("reason", &error.to_string())]);
            return current;
        }
    };
    let fixed = fixed(&new, &current);
    if !fixed.is_empty() {
        let fixed = fixed.join(", ");
        log::warning("these settings are only read at the start; restart to change them", &[("settings", &fixed)]);
    }
    let mut held = current.clone();
    let mut applied = Vec::new();
    if let Some(recorder) = recorder {
        apply(&new, &mut held, recorder, &mut applied);
    }
    let applied = if applied.is_empty() { "nothing is different".to_owned() } else { applied.join(", ") };
    log::info("the configuration was read again", &[("applied", &applied)]);
    held
}

/// Settings that are different and stay as they were.
fn fixed(new: &Config, current: &Config) -> Vec<&'static str> {
    let mut writer = new.writer;
    writer.drain = current.writer.drain;
    let settings = [
        ("[database]", new.database == current.database),
        ("[layout]", new.layout == current.layout),
        ("[spool]", new.spool == current.spool),
        ("[intake], but for tokens", without_tokens(&new.intake) == without_tokens(&current.intake)),
        ("[inbox]", new.inbox == current.inbox),
        ("[processing]", new.processing == current.processing),
        ("[forward]", new.forward == current.forward),
        ("[office]", new.office == current.office),
        ("[schema]", new.schema == current.schema),
        ("[writer], but for drain", writer == current.writer),
    ];
    settings.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect()
}

fn without_tokens(intake: &IntakeConfig) -> IntakeConfig {
    let mut intake = intake.clone();
    for listen in [&mut intake.http, &mut intake.tcp].into_iter().flatten() {
        listen.tokens.clear();
    }
    intake
}

fn tokens(intake: &IntakeConfig) -> [Option<&Vec<String>>; 2] {
    [&intake.http, &intake.tcp].map(|listen| listen.as_ref().map(|listen| &listen.tokens))
}

/// Applies what can be, to the recorder and to the configuration that holds.
fn apply(new: &Config, held: &mut Config, recorder: &Recorder, applied: &mut Vec<&'static str>) {
    if new.admission != held.admission {
        match new.admission.model.as_deref().map(|run| model_line(run, &new.admission)).transpose() {
            Ok(line) => {
                line.iter().for_each(|line| say_line(line, &new.admission));
                recorder.governor().reconfigure(&new.admission, held.writer.batch, line);
                held.admission = new.admission.clone();
                applied.push("[admission]");
            }
            Err(error) => log::error("[admission] stays as it was", &[("reason", &error.to_string())]),
        }
    }
    // An intake that was not there at the start has nothing to change.
    let mut intake = held.intake.clone();
    for (own, other) in [(&mut intake.http, &new.intake.http), (&mut intake.tcp, &new.intake.tcp)] {
        if let (Some(own), Some(other)) = (own, other) {
            own.tokens.clone_from(&other.tokens);
        }
    }
    if tokens(&intake) != tokens(&held.intake) {
        applied.push("tokens");
    }
    if new.writer.drain != held.writer.drain {
        applied.push("writer.drain");
    }
    held.intake = intake;
    held.writer.drain = new.writer.drain;
    let wrong = recorder.reconfigure(held);
    for reason in &wrong {
        log::error("a certificate stays as it was", &[("reason", reason)]);
    }
    let has_tls = [&held.intake.http, &held.intake.tcp].into_iter().flatten().any(|listen| listen.tls.is_some());
    if has_tls && wrong.is_empty() {
        applied.push("certificates");
    }
}
