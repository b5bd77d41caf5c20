//! How much CPU time a hypervisor, or other processes, may take from a trial, where the environment says it.
//!
//! Main function: [`stolen_permitted`]. It belongs to the machine, and not to the study that runs there.

use std::env::VarError;

use anyhow::bail;

const VARIABLE: &str = "LOADLINE_STOLEN";

/// Share of the CPU time, 0..1, that a hypervisor may take from a trial, or other processes from a load thread; none for the usual one.
///
/// # Errors
/// A sentence, when the variable is no share.
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
