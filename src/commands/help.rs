//! `loadline help`: the usage of a command, or the meaning of a setting.
//!
//! Main function: [`run`]. Invariant: the text on a setting comes from the table row that also reads it from files.

use clap::CommandFactory;
use serde_json::{Value as Json, json};

use super::durability::OTHER_RECORDER;
use super::output::{print, print_json, table};
use super::{Failure, Refusal, Status};
use crate::cli::Cli;
use crate::fault::fault;
use crate::recorder::config::RECORDER_FILE;
use crate::statement::shortened;
use crate::study::STUDY;
use crate::written::closest;
use crate::written::reference::{Described, described};

/// Prints the help of a command, of a setting, or of all settings of a table.
///
/// # Errors
/// [`Failure::Usage`] for any other name, with the nearest one; [`Failure::Broken`] if stdout cannot be written.
pub fn run(what: &[String], is_json: bool) -> Result<Status, Failure> {
    if let Some(text) = of_command(what) {
        return print(&text).map(|()| Status::Valid);
    }
    let asked = what.join(" ");
    // The name as it is written in a file.
    let asked = asked.trim_start_matches('[').trim_end_matches(']');
    let found = find(asked);
    if found.is_empty() {
        return Err(unknown(asked));
    }
    let printed = if is_json { print_json(&json_of(&found)) } else { print(&text_of(&found)) };
    printed.map(|()| Status::Valid)
}

/// Returns the help of a command, or of all commands without a name; `None` if there is no such command.
fn of_command(what: &[String]) -> Option<String> {
    let mut whole = Cli::command();
    whole.build();
    let mut command = &mut whole;
    for name in what {
        command = command.find_subcommand_mut(name)?;
    }
    Some(if what.is_empty() { command.render_help() } else { command.render_long_help() }.to_string())
}

/// The database's own settings, under the names that the database gives them.
const CONFIG: &str = "database.config";

/// A result: a table of a file with all its settings, or one setting.
enum Found {
    Table { file: &'static str, name: String, about: &'static str, settings: Vec<Described> },
    Setting { file: &'static str, setting: Described },
}

/// Returns the tables and settings of both files with this name: the full name, or if there is none, the end of a name.
fn find(asked: &str) -> Vec<Found> {
    let is_of_names = asked.strip_prefix(CONFIG).is_some_and(|name| name.starts_with('.'));
    let asked = if is_of_names { CONFIG } else { asked };
    let ends = |path: &str| path.strip_suffix(asked).is_some_and(|rest| rest.ends_with('.'));
    let whole = matching(&|path| path == asked);
    if whole.is_empty() { matching(&ends) } else { whole }
}

fn matching(is_meant: &dyn Fn(&str) -> bool) -> Vec<Found> {
    let mut found = Vec::new();
    for (file, top) in
        [("study file", &STUDY), ("recorder's file", &RECORDER_FILE), ("file of another recorder", &OTHER_RECORDER)]
    {
        for (name, about, settings) in described(top) {
            let (is_table, chosen) = (!name.is_empty() && is_meant(&name), settings.iter());
            found.extend(
                chosen
                    .filter(|setting| is_meant(&setting.path) && !is_table_of(&setting.path, top))
                    .map(|setting| Found::Setting { file, setting: setting.clone() }),
            );
            if is_table {
                found.push(Found::Table { file, name, about, settings });
            }
        }
    }
    found
}

/// Returns whether a setting is a table, which has a description of its own.
fn is_table_of(path: &str, top: &'static crate::written::Part) -> bool {
    top.all().iter().any(|part| part.name == path)
}

fn text_of(found: &[Found]) -> String {
    let texts = found.iter().map(|one| match one {
        Found::Table { file, name, about, settings } => {
            let mut rows = vec![vec!["setting".to_owned(), "default".to_owned(), "what it says".to_owned()]];
            rows.extend(
                settings
                    .iter()
                    .map(|setting| vec![setting.key.to_owned(), plain(&setting.default), plain(&setting.says)]),
            );
            let heading = settings.first().map_or(name, |first| &first.table);
            format!("{heading}, of a {file}\n  {}\n\n{}", plain(about), table(rows))
        }
        Found::Setting { file, setting } => {
            let place = if setting.table.is_empty() { String::new() } else { format!(" in {}", setting.table) };
            let is_of_names = setting.path == CONFIG;
            let factor = match setting.can_be_factor || is_of_names {
                true => {
                    format!("in [factors], as \"{}{}\" = [ ... ]", setting.path, if is_of_names { ".NAME" } else { "" })
                }
                false => "no".to_owned(),
            };
            let mut rows = vec![vec![setting.path.clone(), format!("{}{place}, of a {file}", setting.key)]];
            rows.push(vec!["what it says".to_owned(), plain(&setting.says)]);
            rows.push(vec!["value".to_owned(), plain(&setting.value)]);
            rows.push(vec!["default".to_owned(), plain(&setting.default)]);
            if *file == "study file" {
                rows.push(vec!["can be varied".to_owned(), factor]);
            }
            table(rows)
        }
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// Returns text without the marks of the reference page.
fn plain(text: &str) -> String {
    text.replace('`', "")
}

fn json_of(found: &[Found]) -> Json {
    let one = |file: &str, setting: &Described| {
        json!({
            "file": file, "setting": setting.path, "says": setting.says, "value": setting.value, "default": setting.default,
            "can_be_factor": setting.can_be_factor
        })
    };
    let all: Vec<Json> = found
        .iter()
        .flat_map(|found| match found {
            Found::Table { file, settings, .. } => settings.iter().map(|setting| one(file, setting)).collect(),
            Found::Setting { file, setting } => vec![one(file, setting)],
        })
        .collect();
    json!({ "settings": all })
}

fn unknown(asked: &str) -> Failure {
    let command = Cli::command();
    let mut names: Vec<String> = command
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(|command| command.get_name().to_owned())
        .collect();
    for top in [&STUDY, &RECORDER_FILE, &OTHER_RECORDER] {
        for (table, _, settings) in described(top) {
            names.push(table);
            names.extend(settings.into_iter().flat_map(|setting| [setting.key.to_owned(), setting.path]));
        }
    }
    let remedy = match closest(asked, names.iter().map(String::as_str)) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => "loadline help lists the commands, and loadline schema study all settings".to_owned(),
    };
    let asked = shortened(asked, 60);
    Failure::refused(Refusal::about("help", fault!("there is no command and no setting \"{asked}\""; "{remedy}")))
}
