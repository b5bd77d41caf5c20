//! Passwords in addresses: taken out of a study before anything else reads it.
//!
//! Main type: [`Passwords`]. Invariant: nothing that is stored, shown or hashed of a study contains a password of
//! `database.url` or depends on one.

use std::collections::BTreeMap;
use std::fmt;

use super::unchecked::Unchecked;
use crate::written::tree::{Content, Node, Table};
use crate::written::{attributes, hidden};

/// The addresses of a study as they were written, keyed by the address without the password. Never stored and never shown.
#[derive(Clone, Default)]
pub struct Passwords(BTreeMap<String, String>);

impl Passwords {
    /// Returns the address with its password; the address itself if it was written without one.
    pub fn whole_address<'a>(&'a self, url: &'a str) -> &'a str {
        self.0.get(url).map_or(url, String::as_str)
    }

    /// Removes the passwords from a file: from the setting, from its levels as a factor, and from claims about them.
    pub(super) fn take_from(&mut self, root: &mut Table) {
        self.take_from_table("", root);
    }

    /// Removes the passwords from the settings that `--set` has written.
    pub(super) fn take_from_unchecked(&mut self, unchecked: &mut Unchecked) {
        self.take_from(&mut unchecked.root);
        let levels = unchecked
            .factors
            .iter_mut()
            .filter(|factor| factor.setting == SETTING)
            .flat_map(|factor| &mut factor.levels);
        levels.for_each(|level| self.take_from_node(SETTING, level));
    }

    fn take_from_table(&mut self, path: &str, table: &mut Table) {
        for entry in &mut table.entries {
            // Quoted or not, a dotted setting has the same path.
            self.take_from_node(&format!("{path}.{}", entry.key), &mut entry.node);
        }
    }

    fn take_from_node(&mut self, path: &str, node: &mut Node) {
        match &mut node.content {
            Content::Text(text) if path.ends_with(SETTING) => {
                let bare = without_password(text);
                if bare != *text {
                    self.0.insert(bare.clone(), std::mem::replace(text, bare));
                }
            }
            Content::List(items) => items.iter_mut().for_each(|item| self.take_from_node(path, item)),
            Content::Table(table) => self.take_from_table(path, table),
            _ => {}
        }
    }
}

impl fmt::Debug for Passwords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Passwords of {} addresses", self.0.len())
    }
}

const SETTING: &str = "database.url";

/// Returns an address without its password, whether that is before the host or among the options.
pub fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    if scheme == "odbc" {
        return format!("{scheme}://{}", attributes::without_passwords(rest));
    }
    let (place, options) = rest.split_once('?').map_or((rest, None), |(place, options)| (place, Some(options)));
    // A password may itself contain `:`, `/` and `@`, correctly encoded or not: it ends at the last `@`.
    let place = match place.rsplit_once('@').map(|(account, host)| (account.split_once(':'), host)) {
        Some((Some((user, _)), host)) => format!("{user}@{host}"),
        _ => place.to_owned(),
    };
    let is_kept = |option: &&str| !option.starts_with("password=");
    let options = options.map(|options| options.split('&').filter(is_kept).collect::<Vec<_>>().join("&"));
    let options = options.filter(|options| !options.is_empty()).map_or(String::new(), |options| format!("?{options}"));
    format!("{scheme}://{place}{options}")
}

/// Returns an argument of `--set` without the passwords in it: those of addresses, and those of settings named like passwords.
pub fn without_passwords(set: &str) -> String {
    let Some((key, value)) = set.split_once('=') else { return hidden(set) };
    if key.to_lowercase().contains("passw") {
        return format!("{key}=***");
    }
    if value.contains("odbc://") {
        // Connection strings may have the characters at which a list is split.
        return hidden(set);
    }
    // A list of addresses is split only at characters that end an address.
    let bare = value.split_inclusive([',', '[', ']', '"', ' ']).map(|part| {
        let address = part.trim_end_matches([',', '[', ']', '"', ' ']);
        format!("{}{}", without_password(address), &part[address.len()..])
    });
    hidden(&format!("{key}={}", bare.collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::written::place::{Errors, Place};

    #[test]
    fn addresses_lose_the_password_and_nothing_else() {
        for (url, bare) in [
            ("mysql://u:p@host:3306/db", "mysql://u@host:3306/db"),
            ("mysql://u:p@ss/w:d@host/db?socket=/a", "mysql://u@host/db?socket=/a"),
            ("postgres://u@host/db?password=p&port=9", "postgres://u@host/db?port=9"),
            ("postgres://u@host/db?password=p", "postgres://u@host/db"),
            ("mysql://u@host:3306/db", "mysql://u@host:3306/db"),
            ("postgres://u@/db?host=/run/a@b:c", "postgres://u@/db?host=/run/a@b:c"),
            ("nonsense", "nonsense"),
            ("odbc://Driver=A B;PWD={p;@q};UID=me", "odbc://Driver=A B;UID=me"),
        ] {
            assert_eq!(without_password(url), bare);
        }
    }

    #[test]
    fn passwords_are_taken_from_settings_levels_and_claims() {
        let text = "[database]\nurl = \"mysql://u:p1@a/d\"\n[factors]\n\"database.url\" = [\"mysql://u:p2@b/d\"]\n\
                    [[claims]]\nratio = { of = { \"database.url\" = \"mysql://u:p2@b/d\" }, to = { database.url = \"x\" } }\n\
                    [workload]\nstatements = [ { params = [ { text = \"mysql://u:p@c/d\" } ] } ]\n";
        let mut errors = Errors::default();
        let mut root = Table::parse(text, &mut errors);
        let mut passwords = Passwords::default();
        passwords.take_from(&mut root);
        assert!(errors.is_empty());
        let shown = format!("{root:?}");
        assert!(!shown.contains(":p1@") && !shown.contains(":p2@"), "{shown}");
        assert!(shown.contains("mysql://u:p@c/d"), "only addresses of databases are touched: {shown}");
        assert_eq!(passwords.whole_address("mysql://u@b/d"), "mysql://u:p2@b/d");
        assert_eq!(passwords.whole_address("mysql://u@elsewhere/d"), "mysql://u@elsewhere/d");
        assert_eq!(format!("{passwords:?}"), "Passwords of 2 addresses");

        let mut unchecked = Unchecked::new(root, &mut errors);
        unchecked.set("database.url=[mysql://u:p3@c/d, mysql://u:p4@e/d]", Place::Argument(0), &mut errors);
        passwords.take_from_unchecked(&mut unchecked);
        let shown = format!("{unchecked:?}");
        assert!(errors.is_empty() && !shown.contains(":p3@") && !shown.contains(":p4@"), "{shown}");
        assert_eq!(passwords.whole_address("mysql://u@e/d"), "mysql://u:p4@e/d");
    }

    #[test]
    fn what_is_set_is_shown_without_passwords() {
        for (set, shown) in [
            ("load.clients=[1, 4]", "load.clients=[1, 4]"),
            ("database.url=mysql://u:p@h/d", "database.url=mysql://u@h/d"),
            (
                "database.url=[mysql://u:p@a/d, \"postgres://u@b/d?password=q&x=1\"]",
                "database.url=[mysql://u@a/d, \"postgres://u@b/d?x=1\"]",
            ),
            ("db.passwd=secret", "db.passwd=***"),
            ("database.url=odbc://Driver=A B;PWD=p, q;UID=me", "database.url=odbc://Driver=A B;PWD=***;UID=me"),
        ] {
            assert_eq!(without_passwords(set), shown);
        }
    }
}
