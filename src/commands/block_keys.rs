//! `loadline block keys`: makes keys for a data centre and its cameras. Main function: [`run`].
//!
//! Invariant: an existing key is never replaced, because everything encrypted or signed with it would be lost.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, anyhow};

use super::output::print;
use super::{Failure, Status};
use crate::block::NAMESPACE;
use crate::block::age::{Identity, read_identities};
use crate::block::ssh::SigningKey;
use crate::recorder::inbox::check_camera;

/// Makes the keys that are missing.
///
/// # Errors
/// Fails for an invalid name or a file that cannot be written.
pub(super) fn run(out: &Path, cameras: &[String]) -> Result<Status, Failure> {
    cameras.iter().try_for_each(|camera| check_camera(camera)).map_err(Failure::usage)?;
    make(out, cameras).map_err(Failure::usage)
}

fn make(out: &Path, cameras: &[String]) -> anyhow::Result<Status> {
    std::fs::create_dir_all(out).with_context(|| format!("--out: {} cannot be made", out.display()))?;
    let centre = out.join("centre.key");
    if centre.exists() {
        print_line(&format!("{} is there already and stays", centre.display()))?;
    } else {
        let identity = Identity::generate()?;
        let recipient = identity.recipient();
        write_new(&centre, &format!("# public key: {recipient}\n{}\n", identity.secret_text()), 0o600)?;
    }
    let identities = read_identities(&std::fs::read_to_string(&centre)?)
        .map_err(|error| anyhow!("{}: {error}", centre.display()))?;
    let public = out.join("centre.pub");
    let recipient = identities.first().map(|identity| identity.recipient().to_string()).unwrap_or_default();
    if !public.exists() {
        write_new(&public, &format!("{recipient}\n"), 0o644)?;
    }
    print_line(&format!(
        "data centre: {} decrypts; cameras encrypt to {recipient} ({})",
        centre.display(),
        public.display()
    ))?;
    let signers = out.join("cameras.allowed_signers");
    for camera in cameras {
        let path = out.join(camera);
        if path.exists() {
            print_line(&format!("{} is there already and stays", path.display()))?;
            continue;
        }
        let key = SigningKey::generate()?;
        let line = key.public().to_line();
        write_new(&path, &key.to_file(camera), 0o600)?;
        write_new(&out.join(format!("{camera}.pub")), &format!("{line} {camera}\n"), 0o644)?;
        let mut file = std::fs::File::options().create(true).append(true).open(&signers)?;
        file.write_all(format!("{camera} namespaces=\"{NAMESPACE}\" {line}\n").as_bytes())?;
        print_line(&format!("camera {camera}: {} signs, {} lets it in", path.display(), signers.display()))?;
    }
    Ok(Status::Valid)
}

fn write_new(path: &Path, text: &str, mode: u32) -> anyhow::Result<()> {
    let open = std::fs::File::options().create_new(true).write(true).mode(mode).open(path);
    let written = open.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn print_line(line: &str) -> anyhow::Result<()> {
    print(&format!("{line}\n")).map_err(|failure| anyhow!("{failure}"))
}
