//! Checks within `[database]`.

use super::Rules;
use crate::fault::{Fault, fault};

impl Rules<'_> {
    /// Checks the settings of `[database]` against each other: engines, private servers, addresses.
    pub(super) fn database(&mut self) {
        let database = &self.settings.database;
        let Some(facts) = self.names.database(&database.name) else { return };
        let name = &database.name;
        if let Some(engine) = &database.engine {
            let keys = ["database.engine", "database.name"];
            if facts.engines.is_empty() {
                self.refuse(&keys, fault!("database.engine is \"{engine}\" and {name} has no engines"; "leave it out"));
            } else if !facts.engines.contains(engine) {
                let engines: Vec<&str> = facts.engines.iter().map(String::as_str).collect();
                let remedy = match crate::written::closest(engine, engines.iter().copied()) {
                    Some(meant) => format!("did you mean \"{meant}\"?"),
                    None => format!("available: {}", engines.join(", ")),
                };
                self.refuse(&keys, fault!("unknown engine \"{engine}\" of {name}"; "{remedy}"));
            }
        }
        if database.watch.is_some() && database.url.is_none() {
            let what = "database.watch is given and there is no database.url";
            self.refuse(&["database.watch"], Fault::new(what, "a private server is watched without it; leave it out"));
        }
        let given = |value: &Option<String>| value.is_some();
        let server_settings = [
            ("database.binary", given(&database.binary)),
            ("database.base", given(&database.base)),
            ("database.socket", given(&database.socket)),
            ("database.cpus", given(&database.cpus)),
            ("database.memory", database.memory_bytes.is_some()),
            ("database.nodes", database.nodes.is_some() && given(&database.url)),
            ("database.encryption", given(&database.encryption)),
            ("database.tls", given(&database.tls)),
        ];
        for (key, _) in server_settings.iter().filter(|(_, given)| *given) {
            if !facts.has_private_server {
                let remedy = "leave it out";
                self.refuse(
                    &[key, "database.name"],
                    fault!("{key} is for a private server and {name} has none"; "{remedy}"),
                );
            } else if given(&database.url) {
                let remedy = "leave one of them out";
                self.refuse(
                    &[key, "database.url"],
                    fault!("{key} is for a private server and database.url names one that exists"; "{remedy}"),
                );
            }
        }
        let is_over_tcp = database.socket.as_deref() == Some("tcp") || self.settings.linked().is_some();
        if given(&database.tls) && facts.has_private_server && !is_over_tcp {
            self.refuse(
                &["database.tls", "database.socket"],
                fault!("database.tls is for connections over TCP and clients come through a unix socket"; "add socket = \"tcp\" to [database]"),
            );
        }
        self.own_settings();
        if given(&database.path) && !facts.is_embedded() {
            let remedy = "leave it out; database.url names a server that exists";
            self.refuse(
                &["database.path", "database.name"],
                fault!("database.path is a file and {name} is a server"; "{remedy}"),
            );
        }
        self.url();
    }

    /// Checks the settings of the server itself, which loadline can set only on its own servers.
    fn own_settings(&mut self) {
        let database = &self.settings.database;
        if database.url.is_none() {
            return;
        }
        if database.durability.is_some() {
            let remedy = "set it up there, and leave database.durability out: what is found says what it survives";
            self.refuse(
                &["database.durability", "database.url"],
                fault!("database.durability cannot be set on a server that exists"; "{remedy}"),
            );
        } else if let Some(setting) = database.config.keys().next() {
            let remedy = "set it on that server, or leave database.url out";
            let key = format!("database.config.{setting}");
            self.refuse(&[&key, "database.url"], fault!("{key} cannot be set on a server that exists"; "{remedy}"));
        }
    }

    fn url(&mut self) {
        let database = &self.settings.database;
        let (Some(url), Some(facts)) = (&database.url, self.names.database(&database.name)) else { return };
        let keys = ["database.url", "database.name"];
        match facts.read_url {
            None => {
                let remedy = "use database.path for its file";
                self.refuse(&keys, fault!("database.url is for servers and {} is none", database.name; "{remedy}"));
            }
            Some(read) => {
                if let Err(sentence) = read(url) {
                    self.refuse(&keys, format!("database.url: {sentence}"));
                }
                if facts.is_embedded() && database.path.is_some() {
                    let remedy = "leave one of them out";
                    let name = &database.name;
                    self.refuse(
                        &["database.path", "database.url"],
                        fault!("database.path and database.url both say where the data of {name} is"; "{remedy}"),
                    );
                }
            }
        }
    }
}
