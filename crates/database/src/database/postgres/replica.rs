//! PostgreSQL as a cluster: a primary, and replicas that its log is streamed to.
//!
//! Main type: [`Streaming`]. Invariant: a replica begins as a copy of the primary, whose log is kept until the replica has it.

use std::net::Ipv4Addr;
use std::path::Path;

use super::recipe::{COPIES, NAME, POSTGRES, RULES_FILE};
use crate::database::clustered::{Node, NodeRecipe};
use crate::database::recipe::{CommandLine, Reach, Recipe};
use crate::database::{Clustered, Endpoint, Member};
use crate::trial::DatabaseSettings;

/// Streaming replication.
#[derive(Debug)]
pub struct Streaming;

/// The clusters of `database.name = "postgres"`.
pub static STREAMING: Streaming = Streaming;

impl Clustered for Streaming {
    fn nodes_most(&self) -> u32 {
        4
    }

    fn ports(&self) -> usize {
        0
    }

    fn node(&self, number: u32, members: &[Member], _again: bool) -> Box<dyn Recipe> {
        let primary = members.first().filter(|_| number > 1);
        let host = members.get(number.saturating_sub(1) as usize).and_then(|member| member.host);
        let source = |member: &Member| Some(Source { endpoint: member.endpoint.clone()?, host: member.host });
        Box::new(NodeRecipe(StreamingNode { number, host, primary: primary.and_then(source) }))
    }

    fn is_member(&self, is_primary: bool) -> &'static str {
        match is_primary {
            true => "SELECT NOT pg_is_in_recovery()",
            false => {
                "SELECT pg_is_in_recovery() AND EXISTS (SELECT FROM pg_stat_wal_receiver WHERE status = 'streaming')"
            }
        }
    }

    fn position(&self) -> &'static str {
        "SELECT pg_current_wal_lsn()"
    }

    fn has_reached(&self, position: &str) -> String {
        format!("SELECT pg_is_in_recovery() AND pg_last_wal_replay_lsn() >= '{position}'")
    }

    /// The server gives up after a minute by itself.
    fn promotes(&self) -> Option<&'static str> {
        Some("SELECT pg_promote(true, 60)")
    }
}

/// A node: the primary, or a replica.
#[derive(Debug)]
struct StreamingNode {
    number: u32,
    /// The address of its own host; `None` if it has none.
    host: Option<Ipv4Addr>,
    /// The primary; `None` for the primary itself.
    primary: Option<Source>,
}

/// Where a replica gets its data.
#[derive(Debug)]
struct Source {
    endpoint: Endpoint,
    /// The address of the primary's own host; `None` if it has none.
    host: Option<Ipv4Addr>,
}

impl StreamingNode {
    /// Returns the command that copies the primary, keeps its log from then on, and marks the copy as a replica.
    fn copy(&self, primary: &Source, binary: &Path, directory: &Path) -> CommandLine {
        let Source { endpoint, host } = primary;
        // The socket is in the primary's private directory, and every user who reaches it may replicate. No network that could be cut leads to it.
        let socket = || endpoint.unix.as_deref().and_then(Path::parent).unwrap_or(Path::new("/")).display().to_string();
        // The copy keeps the password, with which it connects from then on.
        let password = host.map(|_| ("PGPASSWORD".to_owned(), endpoint.password.clone()));
        let host = host.map_or_else(socket, |address| address.to_string());
        let port = endpoint.tcp.as_ref().map_or(0, |(_, port)| *port);
        let arguments = vec![
            format!("--host={host}"),
            format!("--port={port}"),
            format!("--username={NAME}"),
            "--no-password".to_owned(),
            format!("--pgdata={}", directory.join("data").display()),
            "--checkpoint=fast".to_owned(),
            "--wal-method=stream".to_owned(),
            "--create-slot".to_owned(),
            format!("--slot=node_{}", self.number),
            "--write-recovery-conf".to_owned(),
        ];
        CommandLine {
            program: binary.with_file_name(COPIES),
            arguments,
            environment: password.into_iter().collect(),
            ..CommandLine::default()
        }
    }
}

impl Node for StreamingNode {
    fn alone(&self) -> &'static dyn Recipe {
        &POSTGRES
    }

    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        let mut files = POSTGRES.files(password, reach);
        if let Some([a, b, c, _]) = self.host.map(|address| address.octets()) {
            let rule = format!("host replication all {a}.{b}.{c}.0/24 scram-sha-256\n");
            files.iter_mut().filter(|(name, _)| *name == RULES_FILE).for_each(|(_, rules)| rules.push_str(&rule));
        }
        files
    }

    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine> {
        match &self.primary {
            None => POSTGRES.initialise(binary, directory, user),
            Some(primary) => vec![self.copy(primary, binary, directory)],
        }
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        // A replica that takes over has no replica that its commits could wait for.
        let replication = settings.replication.clone().filter(|_| self.number == 1);
        let mut line =
            POSTGRES.start(binary, directory, port, &DatabaseSettings { replication, ..settings.clone() }, reach);
        // The last of several values counts.
        let listens = self.host.map(|own| format!("listen_addresses={},{own}", reach.address));
        line.arguments.extend(listens.into_iter().flat_map(|value| ["-c".to_owned(), value]));
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members() -> [Member; 2] {
        let directory = Path::new("/d/1");
        let endpoint = POSTGRES.endpoint(directory, 4711, &DatabaseSettings::default(), &Reach::LOOPBACK);
        [Member { endpoint: Some(endpoint), ..Member::default() }, Member::default()]
    }

    #[test]
    fn a_replica_is_a_copy_of_the_primary_and_does_not_wait_for_itself() {
        let (binary, directory) = (Path::new("/pg/bin/postgres"), Path::new("/d/2"));
        let settings = DatabaseSettings { replication: Some("synchronous".to_owned()), ..DatabaseSettings::default() };
        let waits = |number| {
            let recipe = STREAMING.node(number, &members(), false);
            let line = recipe.start(binary, directory, 4712, &settings, &Reach::LOOPBACK);
            line.arguments.iter().any(|argument| argument.starts_with("synchronous_standby_names"))
        };
        assert_eq!((waits(1), waits(2)), (true, false));
        let commands = STREAMING.node(2, &members(), false).initialise(binary, directory, "");
        let [copy] = &commands[..] else { panic!("{commands:?}") };
        assert_eq!(copy.program, Path::new("/pg/bin/pg_basebackup"));
        for argument in ["--host=/d/1", "--port=4711", "--pgdata=/d/2/data", "--slot=node_2"] {
            assert!(copy.arguments.iter().any(|given| given == argument), "{copy:?}");
        }
        assert_eq!(copy.environment, []);
    }

    #[test]
    fn nodes_on_hosts_of_their_own_replicate_over_the_network_between_them() {
        let mut members = members();
        for (member, last) in members.iter_mut().zip(1..) {
            member.host = Some(Ipv4Addr::new(192, 0, 2, last));
        }
        members[0].endpoint.as_mut().unwrap().password = "secret".to_owned();
        let (binary, directory) = (Path::new("/pg/bin/postgres"), Path::new("/d/2"));
        let recipe = STREAMING.node(2, &members, false);
        let commands = recipe.initialise(binary, directory, "");
        let [copy] = &commands[..] else { panic!("{commands:?}") };
        assert!(copy.arguments.iter().any(|given| given == "--host=192.0.2.1"), "{copy:?}");
        assert_eq!(copy.environment, [("PGPASSWORD".to_owned(), "secret".to_owned())]);
        let line = recipe.start(binary, directory, 4712, &DatabaseSettings::default(), &Reach::LOOPBACK);
        assert_eq!(line.arguments.last().unwrap(), "listen_addresses=127.0.0.1,192.0.2.2");
        let files = STREAMING.node(1, &members, false).files("secret", &Reach::LOOPBACK);
        let rules = &files.iter().find(|(name, _)| *name == RULES_FILE).unwrap().1;
        assert!(rules.ends_with("host replication all 192.0.2.0/24 scram-sha-256\n"), "{rules}");
    }
}
