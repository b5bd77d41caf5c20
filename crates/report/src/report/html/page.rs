//! What all pages have in common: that they need nothing else, and may do nothing but show themselves. Main function: [`whole`].
//!
//! Invariant: whatever a study, a database or a machine brought with it, a page loads nothing and executes only its own script.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::policy::{policy, script};

/// A page with its title, which the browser shows.
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
