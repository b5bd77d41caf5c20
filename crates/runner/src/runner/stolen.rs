//! The CPU time that a hypervisor or other processes may take from a trial, if an environment variable states it.
//!
//! Main function: [`stolen_permitted`]. The value belongs to the machine, not to the study that runs on it.

use std::env::VarError;

use anyhow::bail;

const VARIABLE: &str = "LOADLINE_STOLEN";

/// Returns the share of CPU time, 0..1, that a hypervisor may take from a trial or other processes from a load thread; `None` for the default.
///
/// # Errors
/// Fails with a sentence if the variable is not a share.
pub fn stolen_permitted() -> anyhow::Result<Option<f64>> {
    let text = match std::env::var(VARIABLE) {
        Ok(text) => text,
        Err(VarError::NotPresent) => return Ok(None),
        Err(VarError::NotUnicode(text)) => text.to_string_lossy().into_owned(),
    };
    match text.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(Some(share)),
        _ => bail!("{VARIABLE} is \"{text}\"; set it to a share from 0 to 1, as in {VARIABLE}=0.3, or leave it unset"),
    }
}
