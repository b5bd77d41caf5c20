//! The frame of all pages: they are self-contained, and may only show themselves. Main function: [`whole`].
//!
//! Invariant: whatever a study, a database or a machine contributed, a page loads nothing and executes only its own script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::policy::{policy, script};

/// Returns a page with its title, which the browser shows.
pub(super) fn whole(title: &str, header: &Markup, main: &Markup, footer: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                (policy())
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(include_str!("style.css"))) }
            }
            body {
                header { (header) }
                main { (main) }
                footer { (footer) }
                (script())
            }
        }
    };
    page.into_string()
}
