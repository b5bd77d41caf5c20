//! `loadline block`: transport blocks at both ends, and the quarantine of refused blocks. Main function: [`run`].

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use serde_json::{Value, json};

use super::block_erase::{self, Order};
use super::output::{print, print_json, table};
use super::record_config::read_config;
use super::{Failure, Refusal, Status, block_keys};
use crate::block::age::{Recipient, read_identities};
use crate::block::image::{Scene, draw};
use crate::block::ssh::SigningKey;
use crate::block::{Limits, Opener, Sealer, Signers, xml};
use crate::cli::{BlockAction, MakeArguments};
use crate::data::violation::generate;
use crate::file;
use crate::recorder::inbox::{self, Inbox, check_camera};
use crate::units::{show_bytes, show_utc};

/// Carries out the action.
///
/// # Errors
/// [`Failure::Usage`] for keys and files that are wrong.
pub fn run(action: &BlockAction, is_json: bool) -> Result<Status, Failure> {
    match action {
        BlockAction::Keys { out, cameras } => block_keys::run(out, cameras),
        BlockAction::Make(arguments) => make(arguments, is_json),
        BlockAction::Verify { blocks, signers, camera } => verify(blocks, signers, camera.as_deref(), is_json),
        BlockAction::Open { blocks, signers, identity, camera, out } => {
            open(blocks, signers, identity, camera.as_deref(), out, is_json)
        }
        BlockAction::Quarantine { config, replay, camera } => quarantine(config, *replay, camera.as_deref(), is_json),
        BlockAction::Erase { config, numbers, by, reason } => {
            block_erase::run(config, numbers, &Order { by, reason }, is_json)
        }
    }
}

fn make(arguments: &MakeArguments, is_json: bool) -> Result<Status, Failure> {
    let sealer = sealer(arguments).map_err(Failure::usage)?;
    std::fs::create_dir_all(&arguments.out)
        .with_context(|| format!("--out: {} cannot be made", arguments.out.display()))
        .map_err(Failure::usage)?;
    let mut made = Vec::new();
    if let (Some(record), Some(image)) = (&arguments.record, &arguments.image) {
        let violation = xml::read(&read(record)?).map_err(|error| wrong("--record", record, &error))?;
        let block = sealer.seal(&violation, &read(image)?).map_err(|error| wrong("--image", image, &error))?;
        made.push(write_block(&arguments.out, &violation.camera, violation.sequence, &block)?);
    } else {
        let camera = arguments.camera.as_deref().unwrap_or_default();
        check_camera(camera).map_err(Failure::usage)?;
        let number = u64::from_le_bytes(first_eight(camera));
        let scene = Scene { width: arguments.width, ..Scene::default() };
        for sequence in (arguments.first..).take(usize::try_from(arguments.count).unwrap_or(usize::MAX)) {
            let mut violation = generate(arguments.seed, number, sequence);
            camera.clone_into(&mut violation.camera);
            let image = draw(&violation, &scene, arguments.seed).map_err(Failure::broken)?;
            let block = sealer.seal(&violation, &image).map_err(Failure::broken)?;
            made.push(write_block(&arguments.out, camera, sequence, &block)?);
        }
    }
    if is_json {
        let blocks: Vec<_> = made.iter().map(|(path, bytes)| json!({ "file": path, "bytes": bytes })).collect();
        print_json(&json!({ "blocks": blocks }))?;
        return Ok(Status::Valid);
    }
    for (path, bytes) in &made {
        print(&format!("{} {}\n", path.display(), show_bytes(*bytes as f64)))?;
    }
    Ok(Status::Valid)
}

/// Returns eight bytes of a name's hash: the number from which the violations of that name are generated.
fn first_eight(name: &str) -> [u8; 8] {
    let hash = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

fn sealer(arguments: &MakeArguments) -> anyhow::Result<Sealer> {
    let MakeArguments { recipient, key, .. } = arguments;
    let text = match recipient.starts_with("age1") {
        true => recipient.clone(),
        false => file::read_text(recipient, file::WRITTEN_MOST).with_context(|| {
            format!("--recipient: \"{recipient}\" is no key (age1...) and no file that can be read")
        })?,
    };
    let recipient = Recipient::parse(text.trim()).map_err(|error| anyhow!("--recipient: {error}"))?;
    let text =
        file::read_text(key, file::WRITTEN_MOST).with_context(|| format!("--key: {} cannot be read", key.display()))?;
    let key = SigningKey::parse(&text).map_err(|error| anyhow!("--key: {}: {error}", key.display()))?;
    Ok(Sealer::new(recipient, key))
}

fn write_block(out: &Path, camera: &str, sequence: u64, block: &[u8]) -> Result<(PathBuf, usize), Failure> {
    let path = out.join(format!("{camera}-{sequence}.block"));
    write(&path, block)?;
    Ok((path, block.len()))
}

fn verify(blocks: &[PathBuf], signers: &Path, camera: Option<&str>, is_json: bool) -> Result<Status, Failure> {
    let signers = read_signers(signers)?;
    conclude(blocks, is_json, |path| {
        let camera = signers.verify(&read(path)?, camera);
        Ok(camera.map(|camera| json!({ "camera": camera })).map_err(|error| error.to_string()))
    })
}

fn open(
    blocks: &[PathBuf],
    signers: &Path,
    identity: &Path,
    camera: Option<&str>,
    out: &Path,
    is_json: bool,
) -> Result<Status, Failure> {
    let signers = read_signers(signers)?;
    let text = file::read_text(identity, file::WRITTEN_MOST)
        .with_context(|| format!("--identity: {} cannot be read", identity.display()))
        .map_err(Failure::usage)?;
    let identities = read_identities(&text).map_err(|error| wrong("--identity", identity, &error))?;
    std::fs::create_dir_all(out)
        .with_context(|| format!("--out: {} cannot be made", out.display()))
        .map_err(Failure::usage)?;
    let mut opener = Opener::new(identities, Limits::default()).map_err(Failure::broken)?;
    conclude(blocks, is_json, |path| {
        let mut block = read(path)?;
        let signed = signers.verify(&block, camera);
        let camera = match &signed {
            Ok(cameras) => cameras.split(',').next().unwrap_or_default(),
            Err(error) => return Ok(Err(error.to_string())),
        };
        let opened = match opener.open(&mut block, &signers, camera) {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let violation = &opened.violation;
        let name = format!("{}-{}", violation.camera, violation.sequence);
        let (record, image) = (out.join(format!("{name}.xml")), out.join(format!("{name}.jpg")));
        write(&record, opened.record)?;
        write(&image, opened.image)?;
        Ok(Ok(json!({ "camera": violation.camera, "sequence": violation.sequence, "record": record, "image": image })))
    })
}

/// Checks each block, prints the result for each, and returns the combined status.
fn conclude(
    blocks: &[PathBuf],
    is_json: bool,
    mut look: impl FnMut(&Path) -> Result<Result<Value, String>, Failure>,
) -> Result<Status, Failure> {
    let mut documents = Vec::new();
    let mut status = Status::Valid;
    for path in blocks {
        let (mut document, line) = match look(path)? {
            Ok(found) => {
                let facts = found.as_object().into_iter().flatten();
                let facts: Vec<_> = facts.map(|(name, value)| format!("{name} {}", plain(value))).collect();
                (found, format!("{}: good: {}\n", path.display(), facts.join(", ")))
            }
            Err(reason) => {
                status = Status::Invalid;
                (json!({ "refused": reason }), format!("{}: refused: {reason}\n", path.display()))
            }
        };
        document["file"] = json!(path);
        documents.push(document);
        if !is_json {
            print(&line)?;
        }
    }
    if is_json {
        print_json(&json!({ "blocks": documents }))?;
    }
    Ok(status)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn quarantine(config: &Path, replay: bool, camera: Option<&str>, is_json: bool) -> Result<Status, Failure> {
    let config = read_config(config)?;
    let inbox = Inbox::open(&config.inbox.path, config.inbox.bounds).map_err(Failure::usage)?;
    if replay {
        let replayed = inbox::replay(&inbox, camera).map_err(Failure::broken)?;
        match is_json {
            true => print_json(&json!({ "replayed": replayed }))?,
            false => print(&format!("{replayed} blocks wait in the inbox again\n"))?,
        }
        return Ok(Status::Valid);
    }
    let mut listed = inbox::list(&inbox).map_err(Failure::usage)?;
    listed.retain(|one| camera.is_none_or(|camera| camera == one.camera));
    if is_json {
        print_json(&json!({ "quarantined": listed }))?;
        return Ok(Status::Valid);
    }
    if listed.is_empty() {
        print("nothing is in quarantine\n")?;
        return Ok(Status::Valid);
    }
    let mut rows = vec![["when", "camera", "name", "reason"].map(str::to_owned).to_vec()];
    for one in listed {
        let when = show_utc(u64::try_from(one.quarantined_ns / 1_000_000_000).unwrap_or(0));
        rows.push(vec![when, one.camera, one.name, one.reason]);
    }
    print(&table(rows))?;
    Ok(Status::Valid)
}

fn read_signers(path: &Path) -> Result<Signers, Failure> {
    let text = file::read_text(path, file::WRITTEN_MOST)
        .with_context(|| format!("--signers: {} cannot be read", path.display()))
        .map_err(Failure::usage)?;
    Signers::parse(&text).map_err(|error| wrong("--signers", path, &error))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    file::read(path, file::MADE_MOST)
        .with_context(|| format!("{} cannot be read", path.display()))
        .map_err(Failure::usage)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes)
        .with_context(|| format!("{} cannot be written", path.display()))
        .map_err(Failure::broken)
}

fn wrong(argument: &str, path: &Path, error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(Refusal::about(argument, format!("{}: {error}", path.display())))
}
