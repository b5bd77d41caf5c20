//! `[processing]` and `[office]`: what becomes of blocks, and who may look at it. Main types: [`ProcessingConfig`], [`OfficeConfig`].

use std::path::PathBuf;
use std::time::Duration;

use super::ListenConfig;
use super::intake::{read_address, read_insecure, read_per_address, read_tls};
use super::read::read_duration;
use crate::recorder::processing::{Dates, Form};
use crate::study::place::Errors;
use crate::study::section::Section;
use crate::study::tree::{Content, Table};

/// `[processing]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessingConfig {
    /// File with the data centre's secret keys.
    pub identity: PathBuf,
    /// File with the cameras' public keys, in the form of `allowed_signers`.
    pub signers: PathBuf,
    /// Where images are kept.
    pub images: ImagesConfig,
    /// The most blocks of a transaction.
    pub batch: u32,
    /// Threads that open blocks.
    pub workers: u32,
    /// How far from this machine's clock violations may be dated.
    pub dates: Dates,
}

/// Where images are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImagesConfig {
    /// In a folder, named by their content.
    Folder(PathBuf),
    /// In the database.
    Database,
}

/// `[office]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfficeConfig {
    /// Where it listens.
    pub listen: ListenConfig,
    /// Who may read: name and token.
    pub readers: Vec<(String, String)>,
    /// The file that every access is written to.
    pub audit: PathBuf,
    /// Where images are kept.
    pub images: ImagesConfig,
}

const DAY: Duration = Duration::from_secs(86_400);
/// How far away violations may be dated at most: 10,000 days.
const DATES_MAX_S: f64 = 864e6;

const PROCESSING_KEYS: &[&str] = &["identity", "signers", "images", "images_in", "batch", "workers", "age", "ahead"];
const OFFICE_KEYS: &[&str] = &[
    "listen",
    "readers",
    "audit",
    "images",
    "images_in",
    "certificate",
    "key",
    "client_authority",
    "insecure",
    "connections",
    "connections_per_address",
    "patience",
];

pub(super) fn read_processing(root: &Table, layout: &str, errors: &mut Errors) -> Option<ProcessingConfig> {
    root.get("processing")?;
    let section = Section::open(root, "processing", PROCESSING_KEYS, errors);
    let needed = |key: &str, example: &str, errors: &mut Errors| {
        if section.get(key).is_none() {
            errors.push(
                section.place,
                format!("processing.{key} is missing; name the file, as in {key} = \"{example}\""),
            );
        }
        PathBuf::from(section.text(key, errors).unwrap_or_default())
    };
    check_layout(&section, layout, errors);
    Some(ProcessingConfig {
        identity: needed("identity", "centre.key", errors),
        signers: needed("signers", "cameras.allowed_signers", errors),
        images: read_images(&section, errors),
        batch: section.count("batch", 1, 1_000, errors).unwrap_or(64),
        workers: section.count("workers", 1, 256, errors).unwrap_or(1),
        dates: Dates {
            age: read_duration(&section, "age", 1.0, DATES_MAX_S, errors).unwrap_or(366 * DAY),
            ahead: read_duration(&section, "ahead", 1.0, DATES_MAX_S, errors).unwrap_or(DAY),
        },
    })
}

pub(super) fn read_office(
    root: &Table,
    layout: &str,
    processing: Option<&ProcessingConfig>,
    errors: &mut Errors,
) -> Option<OfficeConfig> {
    root.get("office")?;
    let section = Section::open(root, "office", OFFICE_KEYS, errors);
    check_layout(&section, layout, errors);
    let own_images = section.get("images").is_some() || section.get("images_in").is_some();
    if let (true, Some(_)) = (own_images, processing) {
        errors.push(section.place, "office.images is that of [processing] here; leave it out");
    }
    let images = processing.map_or_else(|| read_images(&section, errors), |processing| processing.images.clone());
    let readers = read_readers(&section, errors);
    let listen = read_address(&section, "listen", &None, errors);
    let connections = section.count("connections", 1, 10_000, errors).unwrap_or(100);
    let patience = read_duration(&section, "patience", 0.01, 3600.0, errors).unwrap_or(Duration::from_secs(30));
    let tls = read_tls(&section, errors);
    let audit = PathBuf::from(section.text("audit", errors).unwrap_or("office.audit"));
    let is_insecure = read_insecure(&section, listen, tls.is_some(), errors);
    let connections_per_address = read_per_address(&section, errors);
    let (listen, tokens) = (listen?, Vec::new());
    let listen = ListenConfig { listen, tokens, is_insecure, tls, connections, connections_per_address, patience };
    Some(OfficeConfig { listen, readers, audit, images })
}

fn check_layout(section: &Section<'_>, layout: &str, errors: &mut Errors) {
    if Form::named(layout).is_none() {
        let remedy = "write layout.name = \"star\" or \"wide\"";
        errors.push(section.place, format!("violations are not stored in layout \"{layout}\"; {remedy}"));
    }
}

fn read_images(section: &Section<'_>, errors: &mut Errors) -> ImagesConfig {
    let path = section.text("images", errors).map(PathBuf::from);
    match section.one_of("images_in", &["folder", "database"], errors) {
        Some("database") => {
            if let Some(entry) = section.get("images") {
                let what = format!("{} is a folder and images_in is \"database\"", section.path("images"));
                errors.push(entry.place, format!("{what}; leave one of them out"));
            }
            ImagesConfig::Database
        }
        _ => ImagesConfig::Folder(path.unwrap_or_else(|| PathBuf::from("images"))),
    }
}

fn read_readers(section: &Section<'_>, errors: &mut Errors) -> Vec<(String, String)> {
    let remedy = "name each reader with a token of 16 characters or more, as in readers = { desk-1 = \"...\" }";
    let Some(entry) = section.get("readers") else {
        errors.push(section.place, format!("office.readers is missing; {remedy}"));
        return Vec::new();
    };
    let Content::Table(table) = &entry.node.content else {
        errors.push(entry.place, format!("office.readers is no table; {remedy}"));
        return Vec::new();
    };
    let mut readers = Vec::new();
    for reader in &table.entries {
        match &reader.node.content {
            Content::Text(token) if token.len() >= 16 => readers.push((reader.key.clone(), token.clone())),
            // The token itself is not shown.
            _ => errors.push(reader.place, format!("office.readers.{} has no good token; {remedy}", reader.key)),
        }
    }
    if table.entries.is_empty() {
        errors.push(entry.place, format!("office.readers is empty; {remedy}"));
    }
    readers
}
