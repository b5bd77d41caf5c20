//! Checks of names that come from outside and become names of files. Main functions: [`check_name`] and [`check_camera`].

use super::InboxError;

/// The longest name of a block, in bytes; with the additions of the quarantine it is still a valid name of a file.
const NAME_MAX: usize = 200;
/// The longest name of a camera, in bytes.
const CAMERA_MAX: usize = 64;

/// Checks the name of a block: printable ASCII without `/` and `\`, no leading dot, no space at either end.
///
/// # Errors
/// [`InboxError::Name`] with what is wrong.
pub fn check_name(name: &str) -> Result<(), InboxError> {
    let is_allowed = |character: char| (' '..='~').contains(&character) && character != '/' && character != '\\';
    check(name, NAME_MAX, "block", "printable ASCII without / and \\", is_allowed)
}

/// Checks the name of a camera: ASCII letters, digits, `-`, `_` and `.`, no leading dot.
///
/// # Errors
/// [`InboxError::Name`] with what is wrong.
pub fn check_camera(camera: &str) -> Result<(), InboxError> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || "-_.".contains(character);
    check(camera, CAMERA_MAX, "camera", "letters, digits, -, _ and .", is_allowed)
}

fn check(name: &str, most: usize, what: &str, allowed: &str, is_allowed: fn(char) -> bool) -> Result<(), InboxError> {
    let must = if name.is_empty() {
        "it is empty".to_owned()
    } else if name.len() > most {
        format!("it has {} bytes; at most {most}", name.len())
    } else if let Some(character) = name.chars().find(|character| !is_allowed(*character)) {
        format!("it has the character {character:?}; allowed are {allowed}")
    } else if name.starts_with('.') {
        "it begins with a dot".to_owned()
    } else if name.trim() != name {
        "it begins or ends with a space".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(40).collect();
    Err(InboxError::Name(format!("{what} name {shown:?}: {must}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_or_cannot_be_shown_are_refused() {
        let long = "a".repeat(201);
        let tricks =
            ["", ".", "..", "../x", "/etc/passwd", "a/b", "a\\b", ".hidden", "a\0b", "a\nb", "ä", " a", "a ", &long];
        for name in tricks {
            let error = check_name(name).unwrap_err().to_string();
            assert!(error.starts_with("block name"), "{error}");
            assert!(check_camera(name).is_err(), "{name}");
        }
        for name in ["a", "2026-11-22T10:00:00 GDA-017 42.block", "-rf", "a..b", "lock", &"a".repeat(200)] {
            check_name(name).unwrap();
        }
        check_camera("GDA-017.left_2").unwrap();
        assert!(check_camera("GDA 017").is_err());
    }
}
