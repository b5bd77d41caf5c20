//! Restricts what a browser may do with a report: only show it. Main function: [`policy`].
//!
//! Invariant: whatever a study, a database or a machine contributed, a page loads nothing and executes only its own script.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use ring::digest::{SHA256, digest};

/// The script of every page, which shows values under the pointer.
const SCRIPT: &str = include_str!("script.js");

/// Returns the policy for the head of a page. Drawings have inline styles, which a hash could not permit; styles can fetch nothing.
pub(super) fn policy() -> Markup {
    let script = STANDARD.encode(digest(&SHA256, SCRIPT.as_bytes()));
    let policy = format!(
        "default-src 'none'; script-src 'sha256-{script}'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    );
    html! { meta http-equiv="Content-Security-Policy" content=(policy); }
}

/// Returns the script that the policy permits.
pub(super) fn script() -> Markup {
    html! { script { (PreEscaped(SCRIPT)) } }
}
