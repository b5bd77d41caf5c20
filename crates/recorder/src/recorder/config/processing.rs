//! `[processing]` and `[office]`: how blocks are processed, and who may read the results. Main types: [`ProcessingConfig`], [`OfficeConfig`].

use std::path::PathBuf;

use serde_json::json;

use super::listening::{read_address, read_insecure, read_tls};
use super::{ListenConfig, rows};
use crate::fault::fault;
use crate::recorder::processing::{Dates, Form};
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Table};
use crate::written::{self, Absent, Kind, Part, Setting, Span};

/// `[processing]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessingConfig {
    /// File with the data centre's secret keys.
    pub identity: PathBuf,
    /// File with the cameras' public keys, in the form of `allowed_signers`.
    pub signers: PathBuf,
    /// The place where images are kept.
    pub images: ImagesConfig,
    /// File with the public key to which images are encrypted; `None` leaves them as they are.
    pub images_recipient: Option<PathBuf>,
    /// Maximum number of blocks per transaction.
    pub batch: u32,
    /// The number of threads that open blocks.
    pub workers: u32,
    /// How far from this machine's clock violations may be dated.
    pub dates: Dates,
}

/// The place where images are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImagesConfig {
    /// A folder, in which files are named by their content.
    Folder(PathBuf),
    /// The database.
    Database,
}

/// `[office]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfficeConfig {
    /// The address on which it listens, and its limits.
    pub listen: ListenConfig,
    /// The readers: name and token of each.
    pub readers: Vec<(String, String)>,
    /// The file in which every access is recorded.
    pub audit: PathBuf,
    /// The place where images are kept.
    pub images: ImagesConfig,
    /// File with the secret keys that decrypt images; `None` if images are not encrypted.
    pub images_identity: Option<PathBuf>,
}

/// The largest bound for the dates of violations: 10,000 days.
const DATES_MAX_S: f64 = 864e6;
const FOLDER: &str = "folder";

const IMAGES: Setting =
    Setting::new("images", Kind::Text, Absent::Means("`\"images\"`"), "The folder with the images.")
        .only("`images_in = \"folder\"`");
const IMAGES_IN: Setting = Setting::new(
    "images_in",
    Kind::OneOf(&[FOLDER, "database"]),
    Absent::Text(FOLDER),
    "Whether images are kept in a folder, named after their content, or in the database.",
);

/// `[processing]`
pub static PROCESSING: Part = Part {
    name: "processing",
    help: "How blocks are verified, decrypted and stored. See [blocks.md](blocks.md).",
    settings: &[
        Setting::new("identity", Kind::Text, Absent::Refused, "The file with the data centre's secret keys."),
        Setting::new(
            "signers",
            Kind::Text,
            Absent::Refused,
            "The file with the cameras' public keys, in the form of `allowed_signers`.",
        ),
        IMAGES,
        IMAGES_IN,
        Setting::new(
            "images_recipient",
            Kind::Text,
            Absent::Means("images are kept as they arrived"),
            "The file with the public key to which images are encrypted before they are stored.",
        ),
        Setting::new("batch", Kind::Whole(1, 1_000), Absent::Whole(64), "Maximum number of blocks per transaction."),
        Setting::new("workers", Kind::Whole(1, 256), Absent::Whole(1), "Number of threads that open blocks."),
        Setting::new(
            "age",
            Kind::Duration(Span::Within(1.0, DATES_MAX_S)),
            Absent::Text("366d"),
            "Maximum age of a violation, by this machine's clock.",
        ),
        Setting::new(
            "ahead",
            Kind::Duration(Span::Within(1.0, DATES_MAX_S)),
            Absent::Text("1d"),
            "How far in the future a violation may be dated, by this machine's clock.",
        ),
    ],
};

/// `[office]`
pub static OFFICE: Part = Part {
    name: "office",
    help: "Read-only HTTP access to what was stored from blocks. Every access is recorded first.",
    settings: &[
        rows::listen("Address and port."),
        Setting::new(
            "readers",
            Kind::Own(&READERS),
            Absent::Refused,
            "Who may read: names, each with a token of 16 characters or more.",
        ),
        Setting::new("audit", Kind::Text, Absent::Text("office.audit"), "The file in which every access is recorded."),
        IMAGES,
        IMAGES_IN,
        Setting::new(
            "images_identity",
            Kind::Text,
            Absent::Means("encrypted images are not returned"),
            "The file with the secret keys that decrypt images.",
        ),
        rows::CERTIFICATE,
        rows::KEY,
        rows::CLIENT_AUTHORITY,
        rows::INSECURE,
        rows::connections(10_000, 100),
        rows::connections_per_address(rows::HALF),
        rows::PATIENCE,
    ],
};

static READERS: written::Form = written::Form {
    says: "table of names with a token each",
    schema: || json!({ "type": "object", "additionalProperties": { "type": "string", "minLength": 16 }, "minProperties": 1 }),
    example: "{ desk = \"0123456789abcdef\" }",
};

pub(super) fn read_processing(root: &Table, layout: &str, errors: &mut Errors) -> Option<ProcessingConfig> {
    root.get("processing")?;
    let section = Section::open(root, &PROCESSING, errors);
    let needed = |key: &str, example: &str, errors: &mut Errors| {
        if section.get(key).is_none() {
            errors.push(
                section.place,
                fault!("processing.{key} is missing"; "name the file, as in {key} = \"{example}\""),
            );
        }
        section.read::<PathBuf>(key, errors)
    };
    check_layout(&section, layout, errors);
    Some(ProcessingConfig {
        identity: needed("identity", "centre.key", errors),
        signers: needed("signers", "cameras.allowed_signers", errors),
        images: read_images(&section, errors),
        images_recipient: section.read("images_recipient", errors),
        batch: section.read("batch", errors),
        workers: section.read("workers", errors),
        dates: Dates { age: section.read("age", errors), ahead: section.read("ahead", errors) },
    })
}

pub(super) fn read_office(
    root: &Table,
    layout: &str,
    processing: Option<&ProcessingConfig>,
    errors: &mut Errors,
) -> Option<OfficeConfig> {
    root.get("office")?;
    let section = Section::open(root, &OFFICE, errors);
    check_layout(&section, layout, errors);
    let own_images = section.get("images").is_some() || section.get("images_in").is_some();
    if let (true, Some(_)) = (own_images, processing) {
        errors.push(section.place, fault!("office.images is that of [processing] here"; "leave it out"));
    }
    let images = processing.map_or_else(|| read_images(&section, errors), |processing| processing.images.clone());
    let images_identity: Option<PathBuf> = section.read("images_identity", errors);
    let are_encrypted = processing.is_some_and(|processing| processing.images_recipient.is_some());
    if are_encrypted && images_identity.is_none() {
        let remedy = "name the file with the secret key, as in images_identity = \"image-keys/centre.key\"";
        errors.push(
            section.place,
            fault!("processing.images_recipient is given and office.images_identity is missing"; "{remedy}"),
        );
    }
    let readers = read_readers(&section, errors);
    let listen = read_address(&section, "listen", &None, errors);
    let connections = section.read("connections", errors);
    let patience = section.read("patience", errors);
    let tls = read_tls(&section, errors);
    let audit = section.read("audit", errors);
    let is_insecure = read_insecure(&section, listen, tls.is_some(), errors);
    let connections_per_address = section.read("connections_per_address", errors);
    let (listen, tokens) = (listen?, Vec::new());
    let listen = ListenConfig { listen, tokens, is_insecure, tls, connections, connections_per_address, patience };
    Some(OfficeConfig { listen, readers, audit, images, images_identity })
}

fn check_layout(section: &Section<'_>, layout: &str, errors: &mut Errors) {
    if Form::named(layout).is_none() {
        let remedy = "write layout.name = \"star\" or \"wide\"";
        errors.push(section.place, fault!("violations are not stored in layout \"{layout}\""; "{remedy}"));
    }
}

fn read_images(section: &Section<'_>, errors: &mut Errors) -> ImagesConfig {
    let path: Option<PathBuf> = section.read("images", errors);
    match section.find("images_in", errors) {
        Some("database") => {
            if let Some(entry) = section.get("images") {
                let what = format!("{} is a folder and images_in is \"database\"", section.path("images"));
                errors.push(entry.place, fault!("{what}"; "leave one of them out"));
            }
            ImagesConfig::Database
        }
        _ => ImagesConfig::Folder(path.unwrap_or_else(|| PathBuf::from("images"))),
    }
}

fn read_readers(section: &Section<'_>, errors: &mut Errors) -> Vec<(String, String)> {
    let remedy = "name each reader with a token of 16 characters or more, as in readers = { desk-1 = \"...\" }";
    let Some(entry) = section.get("readers") else {
        errors.push(section.place, fault!("office.readers is missing"; "{remedy}"));
        return Vec::new();
    };
    let Content::Table(table) = &entry.node.content else {
        errors.push(entry.place, fault!("office.readers is no table"; "{remedy}"));
        return Vec::new();
    };
    let mut readers = Vec::new();
    for reader in &table.entries {
        match &reader.node.content {
            Content::Text(token) if token.len() >= 16 => readers.push((reader.key.clone(), token.clone())),
            // The token itself is not shown.
            _ => errors.push(reader.place, fault!("office.readers.{} has no good token", reader.key; "{remedy}")),
        }
    }
    if table.entries.is_empty() {
        errors.push(entry.place, fault!("office.readers is empty"; "{remedy}"));
    }
    readers
}
