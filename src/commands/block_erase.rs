//! `loadline block erase`: erases violations on somebody's order. Main function: [`run`].
//!
//! Invariant: the audit file records who has what erased, and why, before anything is erased; a wrong number means that nothing is erased.

use std::path::Path;
use std::sync::Arc;

use serde_json::json;

use super::output::{print, print_json};
use super::record_config::{open_server, read_config};
use super::{Failure, Refusal, Status};
use crate::database::Database;
use crate::fault::fault;
use crate::recorder::config::{Config, ImagesConfig};
use crate::recorder::office::{Erasure, note_erasure};
use crate::recorder::processing::{EraseError, Erased, Erasing, Form};
use crate::runner::entry::entry_of;
use crate::server::keep_files_private;

/// Who orders the erasure, and why.
pub(super) struct Order<'a> {
    pub(super) by: &'a str,
    pub(super) reason: &'a str,
}

/// Erases violations.
///
/// # Errors
/// [`Failure::Usage`] if a number or the configuration is wrong or the database cannot be opened, and nothing is erased;
/// [`Failure::Broken`] if the database, the folder of images or the audit file fails.
pub(super) fn run(path: &Path, numbers: &[i64], order: &Order<'_>, is_json: bool) -> Result<Status, Failure> {
    for (option, text) in [("--by", order.by), ("--reason", order.reason)] {
        if text.trim().is_empty() {
            return Err(Failure::refused(Refusal::at(option, "it is empty", "write what the audit file is to say")));
        }
    }
    let config = read_config(path)?;
    let place = path.display().to_string();
    let Some(office) = &config.office else {
        let fault = fault!("there is no [office], whose audit file says what is erased"; "name the file of the office");
        return Err(Failure::refused(Refusal::about(place, fault)));
    };
    if let ImagesConfig::Folder(folder) = &office.images
        && !folder.is_dir()
    {
        let fault = fault!(
            "the folder of images {} is not there", folder.display(); "start this where the recorder is started"
        );
        return Err(Failure::refused(Refusal::about(place, fault)));
    }
    keep_files_private();
    let database = open(&config, &place)?;
    let form = Form::named(&config.layout.name).unwrap_or(Form::Star);
    let refuse = |error: EraseError| match error {
        EraseError::Unknown(_) => {
            let fault = fault!("{error}"; "the ticket office shows the numbers: GET /violations");
            Failure::refused(Refusal::about("NUMBER", fault))
        }
        other => Failure::usage(other),
    };
    let mut erasing = Erasing::open(&*database, form, &office.images).map_err(refuse)?;
    let found = numbers.iter().map(|number| erasing.find(*number));
    let found = found.collect::<Result<Vec<Erased>, _>>().map_err(refuse)?;
    let note = |is_done| {
        let erasure = Erasure { numbers, by: order.by, reason: order.reason, is_done };
        note_erasure(&office.audit, erasure).map_err(|error| Failure::broken(anyhow::Error::msg(error)))
    };
    note(false)?;
    let mut erased = Vec::new();
    for one in found {
        erased.push(erasing.erase(one).map_err(|error| Failure::broken(anyhow::Error::from(error)))?);
    }
    erasing.finish().map_err(|error| Failure::broken(anyhow::Error::from(error)))?;
    note(true)?;
    say(&erased, is_json)
}

/// Opens the database of a recorder, which may be running. Refuses a private server, which keeps nothing after the recorder has stopped.
fn open(config: &Config, place: &str) -> Result<Arc<dyn Database>, Failure> {
    let settings = &config.database;
    if let Some(server) = open_server(settings)? {
        return Ok(server);
    }
    let entry = entry_of(settings).map_err(Failure::usage)?;
    if entry.recipe.is_some() {
        let fault = fault!("a private server keeps nothing"; "give the database.url of the server with the violations");
        return Err(Failure::refused(Refusal::about(place, fault)));
    }
    Ok(Arc::from(entry.open_sql(settings, None).map_err(Failure::usage)?))
}

fn say(erased: &[Erased], is_json: bool) -> Result<Status, Failure> {
    if is_json {
        print_json(&json!({ "erased": erased }))?;
        return Ok(Status::Valid);
    }
    for Erased { number, camera, sequence, had_record, had_image, .. } in erased {
        let what = match (had_record, had_image) {
            (false, _) => "was erased before",
            (true, true) => "is erased: its record and its image",
            (true, false) => {
                "is erased: its record; its image is that of another violation too, and stays, or was gone"
            }
        };
        print(&format!("violation {number} (camera {camera}, sequence {sequence}) {what}\n"))?;
    }
    Ok(Status::Valid)
}
