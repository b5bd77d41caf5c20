//! A private recorder that takes blocks: cameras with keys and passwords, and the blocks they upload.
//!
//! Main function: [`start`]. Invariant: keys, passwords and certificates are made for one trial and known to nobody else; without a limit set
//! by the study, only the bound of the inbox holds uploads back.

use std::fmt::Write;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, bail};

use super::configuration::database_section;
use super::port::port_of;
use super::{Front, Running};
use crate::block::age::Identity;
use crate::block::image::{Scene, draw};
use crate::block::ssh::SigningKey;
use crate::block::{Limits, Sealer};
use crate::data::violation::{camera, generate};
use crate::database::recipe::{Reach, search_path};
use crate::database::recorder::recipe::{RecorderRecipe, Takes};
use crate::database::station::{Camera, Content, Sealing, StationDatabase, StationSettings, UploadWay};
use crate::random::Stream;
use crate::recorder::processing::Form;
use crate::recorder::upload::{Hashed, random_password};
use crate::runner::fixture::Fixture;
use crate::runner::stage::Current;
use crate::server::Server;
use crate::trial::{BlocksSettings, DatabaseSettings, RecorderPath, RecorderSettings, Settings};

/// Size of a block without its image: signature, header, record and the paddings of tar and age.
const BESIDE_IMAGE_BYTES: usize = 4 << 10;
/// Share of an image that is drawn; drawing does not hit a size exactly.
const DRAWN_SHARE: f64 = 0.95;
/// Size of marker and length of a JPEG comment, and of the longest comment with them.
const COMMENT_HEAD_BYTES: usize = 4;
const COMMENT_BYTES_MAX: usize = 60_000;
/// Number of image widths tried until a block has the requested size.
const WIDTHS_TRIED: u32 = 4;
const TLS: &str = "certificate = \"certificate.pem\"\nkey = \"key.pem\"\n";

/// The cameras of a trial, and the shared content and files of cameras and recorder.
struct Party {
    cameras: Vec<Camera>,
    content: Content,
    files: Vec<(&'static str, String)>,
}

/// Starts a recorder that takes blocks, in front of a database without the tables of violations.
///
/// # Errors
/// Fails if the recorder does not start, or keys or certificates cannot be made.
pub(super) fn start(settings: &Settings, recorder: &RecorderSettings, current: &mut Current) -> anyhow::Result<Front> {
    let blocks = settings.blocks.clone().unwrap_or_default();
    let form = Form::named(&settings.layout.name).context("violations are not stored in this layout")?;
    let tables = form.tables().into_iter().rev().map(|table| table.name).collect();
    current.fixture = Some(Fixture { tables, ..Fixture::empty() });
    let reach = current.reach_of_front();
    let has_tls = recorder.path == RecorderPath::Ftps;
    let mut party = Party::new(settings, &blocks)?;
    if has_tls {
        party.files.extend(certificate(&reach)?);
    }
    let (config, password) = configuration(settings, recorder, &blocks, current)?;
    let takes = Takes::Blocks(if has_tls { TLS.to_owned() } else { String::new() });
    let recipe = RecorderRecipe { config, password, takes, files: party.files };
    let server = Server::start_at(&reach, &recipe, &DatabaseSettings::default(), Some(current.directory()), None)
        .context("the recorder that takes blocks in")?;
    let (host, put_port) = server.endpoint().tcp.clone().context("the recorder has no address")?;
    let (way, port) = match recorder.path {
        RecorderPath::Put => (UploadWay::Put, put_port),
        RecorderPath::Ftps => (UploadWay::FtpTls, port_of(&server, "ftp")?),
        _ => (UploadWay::Ftp, port_of(&server, "ftp")?),
    };
    let uploads = StationDatabase::new(StationSettings {
        way,
        host,
        port,
        cameras: party.cameras,
        networks: current.link.as_ref().map_or_else(Vec::new, |link| link.network.client_namespaces()),
        certificate: has_tls.then(|| server.directory().join("certificate.pem")),
        content: party.content,
        connects_for_each: false,
    })?;
    Ok(Front::new(Box::new(uploads.clone()), vec![Running::new(server, &reach)], None).with_uploads(uploads))
}

impl Party {
    fn new(settings: &Settings, blocks: &BlocksSettings) -> anyhow::Result<Self> {
        let bytes = usize::try_from(blocks.bytes).context("blocks.size")?;
        let seed = settings.record.seed;
        let (mut cameras, mut sealers) = (Vec::new(), Vec::new());
        let (mut users, mut signers) = (String::new(), String::new());
        let identity = Identity::generate()?;
        for number in 0..u64::from(settings.load.clients) {
            let (name, password) = (camera(number), random_password().map_err(anyhow::Error::msg)?);
            // A random password cannot be guessed, however fast somebody tries.
            let hashed = Hashed::of_random(&password).map_err(anyhow::Error::msg)?;
            let _ = writeln!(users, "{name} {}", hashed.text());
            let key = SigningKey::generate()?;
            let _ = writeln!(signers, "{name} {}", key.public().to_line());
            sealers.push(Sealer::new(identity.recipient(), key));
            cameras.push(Camera { name, password });
        }
        let content = match blocks.process {
            true => {
                let image = image(bytes, seed, &sealers[0])?;
                Content::Sealed(Arc::new(Sealing { sealers, image, seed }))
            }
            false => Content::random(bytes, seed),
        };
        let files = vec![("cameras", users), ("signers", signers), ("centre.key", identity.secret_text())];
        Ok(Party { cameras, content, files })
    }
}

/// Draws an image that makes blocks of the requested size: somewhat smaller, and filled up with comments that viewers skip.
fn image(block_bytes: usize, seed: u64, sealer: &Sealer) -> anyhow::Result<Vec<u8>> {
    let wanted = DRAWN_SHARE * block_bytes.saturating_sub(BESIDE_IMAGE_BYTES).max(1 << 10) as f64;
    let (mut width, mut drawn) = (640.0_f64, Vec::new());
    for _ in 0..WIDTHS_TRIED {
        let scene = Scene { width: width as u16, ..Scene::default() };
        drawn = draw(&generate(seed, 0, 0), &scene, seed)?;
        let factor = (wanted / drawn.len() as f64).sqrt();
        if (0.98..1.02).contains(&factor) {
            break;
        }
        width = (width * factor).clamp(32.0, f64::from(u16::MAX) / 4.0).round();
    }
    let block = sealer.seal(&generate(seed, 0, 0), &drawn)?.len();
    Ok(filled_up(drawn, block_bytes.saturating_sub(block), seed))
}

/// Appends `more` incompressible bytes to a JPEG.
fn filled_up(mut image: Vec<u8>, mut more: usize, seed: u64) -> Vec<u8> {
    const BEHIND_MARKER: usize = 2;
    let mut random = Stream::seeded(seed);
    while more > COMMENT_HEAD_BYTES {
        let bytes = more.min(COMMENT_BYTES_MAX) - COMMENT_HEAD_BYTES;
        let mut comment = vec![0xff, 0xfe];
        comment.extend(((bytes + 2) as u16).to_be_bytes());
        comment.extend((0..bytes).map(|_| random.word() as u8));
        image.splice(BEHIND_MARKER..BEHIND_MARKER, comment);
        more -= bytes + COMMENT_HEAD_BYTES;
    }
    image
}

/// Returns the recorder's configuration without its listening addresses, and the database's password.
fn configuration(
    settings: &Settings,
    recorder: &RecorderSettings,
    blocks: &BlocksSettings,
    current: &Current,
) -> anyhow::Result<(String, String)> {
    let (mut text, password) = match blocks.process {
        true => database_section(settings, current)?,
        false => (String::new(), String::new()),
    };
    let largest = (2 * blocks.bytes).max(2 << 20);
    let bound = blocks.bound_bytes.max(4 * largest);
    let _ = write!(text, "[inbox]\npath = \"data/inbox\"\nbound = \"{bound}\"\nblock = \"{largest}\"\n");
    let _ = write!(text, "[intake.blocks]\nusers = \"cameras\"\n");
    if let Some(rate) = blocks.rate_bytes_per_s {
        let _ = writeln!(text, "rate = \"{}\"", rate as u64);
    }
    if blocks.process {
        let unpacked = Limits::default().bytes;
        if blocks.bytes as usize > unpacked / 2 {
            bail!(
                "blocks.size is {}; processing unpacks at most {unpacked} bytes, so take a smaller one",
                blocks.bytes
            );
        }
        let layout = &settings.layout.name;
        let batch = recorder.batch.map_or_else(String::new, |batch| format!("batch = {batch}\n"));
        let _ = write!(
            text,
            "[layout]\nname = \"{layout}\"\n[processing]\nidentity = \"centre.key\"\nsigners = \"signers\"\n\
             images = \"data/images\"\nage = \"10000d\"\nahead = \"10000d\"\nworkers = {}\n{batch}",
            recorder.writers
        );
    }
    Ok((text, password))
}

/// Makes a certificate for the recorder's address and its key, which only this trial trusts.
fn certificate(reach: &Reach) -> anyhow::Result<[(&'static str, String); 2]> {
    let program = search_path("openssl").into_iter().next();
    let program = program
        .context("recorder.path asks for TLS and there is no openssl on the PATH; install Debian's package openssl")?;
    let name = format!("subjectAltName=IP:{},DNS:localhost", reach.address);
    let made = Command::new(program)
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=recorder", "-addext", &name, "-addext", "basicConstraints=critical,CA:FALSE"])
        .args(["-keyout", "/dev/stdout", "-out", "/dev/stdout"])
        .output()
        .context("openssl")?;
    let text = String::from_utf8_lossy(&made.stdout);
    let part = |label: &str| {
        let (begin, end) = (format!("-----BEGIN {label}-----"), format!("-----END {label}-----"));
        let from = text.find(&begin)?;
        let to = from + text[from..].find(&end)? + end.len();
        Some(format!("{}\n", &text[from..to]))
    };
    match (part("CERTIFICATE"), part("PRIVATE KEY")) {
        (Some(certificate), Some(key)) => Ok([("certificate.pem", certificate), ("key.pem", key)]),
        _ => bail!("openssl made no certificate: {}", String::from_utf8_lossy(&made.stderr).trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_large_as_asked_for_and_their_images_are_images() {
        let sealer = Sealer::new(Identity::generate().unwrap().recipient(), SigningKey::generate().unwrap());
        for bytes in [20_000, 100_000, 400_000] {
            let image = image(bytes, 1, &sealer).unwrap();
            let block = sealer.seal(&generate(1, 3, 7), &image).unwrap().len();
            assert!((0.99..1.01).contains(&(block as f64 / bytes as f64)), "{bytes}: {block}");
            assert!(crate::block::image::check(&image, 50_000_000).is_ok());
        }
    }
}
