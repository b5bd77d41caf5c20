//! The cameras' keys in the format of `allowed_signers` (ssh-keygen(1)). Main type: [`Signers`].

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::ssh::{ALGORITHM, PublicKey};
use super::{KeyError, NAMESPACE};
use crate::quote::quoted;

/// The keys that sign for each camera.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Signers {
    keys: BTreeMap<String, Vec<PublicKey>>,
}

impl Signers {
    /// Parses a file: each line has the names of cameras, options, an algorithm, a key and a comment. An unknown option that would restrict a key is an
    /// error: ignoring it would allow more than the file says.
    ///
    /// # Errors
    /// The line, what is wrong with it, and the remedy.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let mut signers = Signers::default();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            signers.add(line).map_err(|wrong| KeyError(format!("line {}: {wrong}", number + 1)))?;
        }
        Ok(signers)
    }

    fn add(&mut self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let cameras = words.next().unwrap_or_default();
        let mut word = words.next().unwrap_or_default();
        if word != ALGORITHM && !word.starts_with("ssh-") && !word.starts_with("ecdsa-") && !word.starts_with("sk-") {
            let namespaces = word.strip_prefix("namespaces=\"").and_then(|rest| rest.strip_suffix('"'));
            let Some(namespaces) = namespaces else {
                return Err(format!("option {} is not known here; there is namespaces=\"{NAMESPACE}\"", quoted(word)));
            };
            if !namespaces.split(',').any(|namespace| namespace == NAMESPACE) {
                return Err(format!("namespaces do not contain {NAMESPACE}; such a key signs no block, leave it out"));
            }
            word = words.next().unwrap_or_default();
        }
        if word != ALGORITHM {
            return Err(format!("the key is of \"{}\"; keys of cameras are {ALGORITHM}", quoted(word)));
        }
        let key = words.next().and_then(|text| STANDARD.decode(text).ok());
        let key = key.and_then(|bytes| PublicKey::from_wire(&bytes)).ok_or("the key is damaged")?;
        for camera in cameras.split(',') {
            let is_plain = camera.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter));
            if camera.is_empty() || !is_plain {
                return Err(format!("\"{}\" is no name of a camera; patterns are not known here", quoted(camera)));
            }
            self.keys.entry(camera.to_owned()).or_default().push(key.clone());
        }
        Ok(())
    }

    /// Returns the keys that sign for a camera; none for an unknown camera.
    pub fn of(&self, camera: &str) -> &[PublicKey] {
        self.keys.get(camera).map_or(&[], Vec::as_slice)
    }

    /// Returns the cameras that a key signs for.
    pub fn cameras_of(&self, key: &PublicKey) -> Vec<&str> {
        let signs = |keys: &Vec<PublicKey>| keys.contains(key);
        self.keys.iter().filter(|(_, keys)| signs(keys)).map(|(camera, _)| camera.as_str()).collect()
    }

    /// Returns the number of cameras.
    pub fn cameras(&self) -> usize {
        self.keys.len()
    }
}
