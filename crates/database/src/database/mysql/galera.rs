//! MariaDB as a Galera cluster: nodes that all take writes, and agree on their order before each commit is acknowledged.
//!
//! Main type: [`Galera`]. Invariant: only the first start of node 1 begins a cluster; every other start joins it.

use std::path::Path;

use super::recipe::{MARIADB, STATEMENTS};
use super::wsrep;
use crate::database::clustered::{Node, NodeRecipe};
use crate::database::recipe::{CommandLine, Reach, Recipe};
use crate::database::{Clustered, Member};
use crate::trial::DatabaseSettings;

/// Replication by Galera.
#[derive(Debug)]
pub struct Galera;

/// The clusters of `database.name = "mariadb"`.
pub static GALERA: Galera = Galera;

/// Gets the position of the data that a crash has left, and starts the server with it, so that the node needs only what it has missed since. The server's command is
/// `$@`; only its first start may write to the log what it found.
const START_AGAIN: &str = r#"position=$("$@" --wsrep-recover 2>&1 | sed -n 's/.*Recovered position: *//p' | tail -n 1)
exec "$@" ${position:+--wsrep-start-position="$position"}"#;

/// Fills the accounts from the file of statements, in the server's own mode for that.
const MAKE_ACCOUNTS: &str = r#"exec "$@" < "$0""#;

impl Clustered for Galera {
    fn nodes_most(&self) -> u32 {
        5
    }

    fn ports(&self) -> usize {
        wsrep::PORTS
    }

    fn node(&self, number: u32, members: &[Member], again: bool) -> Box<dyn Recipe> {
        Box::new(NodeRecipe(GaleraNode { number, members: members.to_vec(), again }))
    }

    fn is_member(&self, _is_primary: bool) -> &'static str {
        "SELECT VARIABLE_VALUE = 'Synced' FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LOCAL_STATE_COMMENT'"
    }

    fn position(&self) -> &'static str {
        "SELECT VARIABLE_VALUE FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LAST_COMMITTED'"
    }

    fn has_reached(&self, position: &str) -> String {
        format!(
            "SELECT VARIABLE_VALUE + 0 >= {position} FROM information_schema.GLOBAL_STATUS WHERE VARIABLE_NAME = 'WSREP_LAST_COMMITTED'"
        )
    }

    fn promotes(&self) -> Option<&'static str> {
        None
    }

    fn conflicts(&self) -> Option<&'static str> {
        Some(
            "SELECT CAST(SUM(VARIABLE_VALUE) AS UNSIGNED) FROM information_schema.GLOBAL_STATUS \
             WHERE VARIABLE_NAME IN ('WSREP_LOCAL_CERT_FAILURES', 'WSREP_LOCAL_BF_ABORTS')",
        )
    }

    fn explains(&self, code: &str) -> Option<&'static str> {
        match code {
            "1213" => Some("another transaction, perhaps on another node, had changed the same rows first"),
            "1047" => Some("the node belongs to no majority of nodes, or has not received their data yet"),
            "1180" => Some("the node lost the majority of nodes while it committed"),
            _ => None,
        }
    }
}

/// A node.
#[derive(Debug)]
struct GaleraNode {
    number: u32,
    members: Vec<Member>,
    /// Whether the node has been a member before.
    again: bool,
}

impl Node for GaleraNode {
    fn alone(&self) -> &'static dyn Recipe {
        &MARIADB
    }

    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        let mut files = MARIADB.files(password, reach);
        // In the mode in which accounts are made, the server knows of none before this statement.
        files
            .iter_mut()
            .filter(|(name, _)| *name == STATEMENTS)
            .for_each(|(_, sql)| sql.insert_str(0, "FLUSH PRIVILEGES;\n"));
        files
    }

    /// Only node 1 makes a data directory. The others get the data of a node that is there, accounts included.
    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine> {
        if self.number > 1 {
            return Vec::new();
        }
        let mut commands = MARIADB.initialise(binary, directory, user);
        let place = directory.display();
        let arguments = ["-c", MAKE_ACCOUNTS].map(str::to_owned).into_iter().chain([
            format!("{place}/{STATEMENTS}"),
            binary.display().to_string(),
            "--no-defaults".to_owned(),
            format!("--datadir={place}/data"),
            format!("--tmpdir={place}"),
            "--bootstrap".to_owned(),
        ]);
        commands.push(CommandLine {
            program: "/bin/sh".into(),
            arguments: arguments.collect(),
            ..CommandLine::default()
        });
        commands
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let mut line = MARIADB.start(binary, directory, port, &wsrep::without_options(settings), reach);
        // A node that joins takes no statements of its own while it starts.
        line.arguments.retain(|argument| !argument.starts_with("--init-file="));
        let begins = self.number == 1 && !self.again;
        // Behind --no-defaults, which must be the first, and in front of the study's own settings, which win.
        line.arguments.splice(1..1, wsrep::options(self.number, &self.members, begins, settings));
        if !self.again {
            return line;
        }
        let server = [line.program.display().to_string()].into_iter().chain(line.arguments);
        let arguments = ["-c", START_AGAIN, "sh"].map(str::to_owned).into_iter().chain(server).collect();
        CommandLine { program: "/bin/sh".into(), arguments, ..CommandLine::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_begun_once_and_then_started_from_where_it_was() {
        let members: Vec<Member> =
            (1..=3).map(|port| Member { ports: vec![port, port, port], ..Member::default() }).collect();
        let (binary, directory) = (Path::new("/usr/sbin/mariadbd"), Path::new("/d"));
        let line = |number, again| {
            let recipe = GALERA.node(number, &members, again);
            recipe.start(binary, directory, 4711, &DatabaseSettings::default(), &Reach::LOOPBACK)
        };
        let first = line(1, false);
        assert_eq!(first.program, binary);
        assert_eq!(first.arguments.first().map(String::as_str), Some("--no-defaults"));
        assert!(first.arguments.iter().any(|argument| argument == "--wsrep-new-cluster"));
        assert!(!first.arguments.iter().any(|argument| argument.starts_with("--init-file")), "{first:?}");
        let again = line(1, true);
        assert_eq!(again.program, Path::new("/bin/sh"));
        assert!(again.arguments[1].contains("--wsrep-recover"), "{again:?}");
        assert!(!again.arguments.iter().any(|argument| argument == "--wsrep-new-cluster"), "{again:?}");
        assert_eq!(GALERA.node(2, &members, false).initialise(binary, directory, "mysql"), []);
        let made = GALERA.node(1, &members, false).initialise(binary, directory, "mysql");
        assert!(made.last().unwrap().arguments.iter().any(|argument| argument == "--bootstrap"), "{made:?}");
    }
}
