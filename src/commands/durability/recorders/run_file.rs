//! What a test of a recorder keeps beside its result: how the recorder was started, its version, and the command that repeats the test.
//!
//! Main functions: [`begin`], [`note_version`]. Invariant: nothing kept has a secret of the recorder's file.

use std::path::Path;

use super::super::kept;
use super::tested::Tested;
use crate::store::RunDirectory;
use crate::study::{Patience, Repeat, RepeatRule, Shrunk, Study, without_passwords};
use crate::trial::{DatabaseSettings, DurabilityPlan, Settings};

/// Parts of the names of settings whose values are secrets.
const SECRET: [&str; 4] = ["password", "token", "secret", "credential"];

/// Creates the directory of a test of a recorder whose file is at `path`.
///
/// # Errors
/// Fails if the directory exists already or cannot be created.
pub fn begin(
    directory: &Path,
    tested: &[Tested],
    plan: &DurabilityPlan,
    (path, seed): (&Path, u64),
) -> anyhow::Result<RunDirectory> {
    let name = tested.first().map_or("", |tested| tested.name.as_str());
    let mut words: Vec<String> = ["loadline", "durability", "--recorder"].map(str::to_owned).to_vec();
    words.push(path.display().to_string());
    words.extend(["--cuts".to_owned(), plan.cuts.to_string(), "--seed".to_owned(), seed.to_string()]);
    words.extend(plan.faults.iter().flat_map(|fault| ["--fault".to_owned(), fault.name().to_owned()]));
    kept::begin(directory, &study(name, plan, seed), words)
}

/// Notes the version of the recorder.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn note_version(directory: &mut RunDirectory, name: &str, version: &str) -> anyhow::Result<()> {
    let settings = DatabaseSettings { name: name.to_owned(), ..DatabaseSettings::default() };
    Ok(directory.note_database(&settings, &[("version".to_owned(), version.to_owned())])?)
}

/// Returns how recorders were started: their commands and files, without secrets.
pub fn how_started(tested: &[Tested]) -> String {
    let mut text = String::new();
    for tested in tested {
        // The path of this program's own file is a place of this machine.
        let command =
            if tested.own.is_some() { "loadline record {files}/recorder.toml" } else { &tested.command.join(" ") };
        text += &format!("# {}\n{}\n", tested.way.name(), without_secrets(command));
        for (name, content) in &tested.files {
            text += &format!("\n# {{files}}/{name}\n{}\n", without_secrets(content.trim()));
        }
    }
    text
}

/// Returns a text with marks in the place of the passwords of addresses, and of values whose names say that they are secret.
fn without_secrets(text: &str) -> String {
    let line = |line: &str| match line.split_once(['=', ':']) {
        Some((name, value))
            if SECRET.iter().any(|secret| name.to_lowercase().contains(secret)) && !value.trim().is_empty() =>
        {
            format!("{name}= ***")
        }
        _ => without_passwords(line),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a study without cases: a run's file has one.
fn study(name: &str, plan: &DurabilityPlan, seed: u64) -> Study {
    Study {
        name: name.to_owned(),
        question: String::new(),
        source: String::new(),
        base: Settings::default(),
        factors: Vec::new(),
        repeat: Repeat { rule: RepeatRule::Fixed, within: 0.0, least: 1, most: 1, discard_first: false },
        goal: None,
        durability: Some(plan.clone()),
        claims: Vec::new(),
        quick: false,
        shrunk: Shrunk::default(),
        left_out: Vec::new(),
        patience: Patience::default(),
        seed,
        cases: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_has_no_secret() {
        let kept = without_secrets("url = \"http://me:word@host/x\"\napi_token = \"abc\"\nlisten: 1883\n");
        assert_eq!(kept, "url = \"http://me@host/x\"\napi_token = ***\nlisten: 1883");
    }
}
