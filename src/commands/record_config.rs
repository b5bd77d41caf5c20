//! Reads the configuration of a recorder for the commands that take one. Main function: [`read_config`].

use std::path::Path;

use anyhow::Context;

use super::Failure;
use crate::recorder::config::{self, Config};

pub(super) fn read_config(path: &Path) -> Result<Config, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{name} cannot be read; name a configuration file"))
        .map_err(Failure::usage)?;
    config::read(&text, &name).map_err(Failure::usage)
}
