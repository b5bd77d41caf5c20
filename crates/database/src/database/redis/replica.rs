//! Redis as a cluster: a primary, and replicas that its commands are sent to.
//!
//! Main types: [`Copying`], and [`Question`], what nodes are asked. Invariant: a replica is one only while it says so, is connected to its primary, and has written its own log of what
//! it was given.

use std::net::Ipv4Addr;
use std::path::Path;

use super::recipe::{CONFIG_FILE, REDIS};
use super::reply::{Reply, ask};
use crate::database::clustered::{Node, NodeRecipe};
use crate::database::recipe::{CommandLine, Reach, Recipe};
use crate::database::session::Channel;
use crate::database::{Clustered, DatabaseError, Member};
use crate::trial::DatabaseSettings;

/// Redis's own replication, which is asynchronous.
#[derive(Debug)]
pub struct Copying;

/// The clusters of `database.name = "redis"`.
pub static COPYING: Copying = Copying;

/// How long a write may wait for a replica that acknowledges it, in milliseconds.
pub(super) const WAIT_MS: u32 = 5_000;
/// What stands behind the error of a write that no replica has acknowledged.
pub(super) const NOT_ACKNOWLEDGED: &str = "WAIT";

const IS_PRIMARY: &str = "ROLE master";
const IS_REPLICA: &str = "ROLE slave";
const OFFSET: &str = "ROLE offset";
const PROMOTE: &str = "REPLICAOF NO ONE";

impl Clustered for Copying {
    fn nodes_most(&self) -> u32 {
        4
    }

    /// Replicas connect to the primary as its clients do.
    fn ports(&self) -> usize {
        0
    }

    fn node(&self, number: u32, members: &[Member], _again: bool) -> Box<dyn Recipe> {
        let own = members.get(number.saturating_sub(1) as usize).and_then(|member| member.host);
        let primary = members.first().filter(|_| number > 1).and_then(address_of);
        Box::new(NodeRecipe(CopyingNode { number, own, primary }))
    }

    fn is_member(&self, is_primary: bool) -> &'static str {
        if is_primary { IS_PRIMARY } else { IS_REPLICA }
    }

    /// A replica may have all data before the primary has noticed that, and counts it.
    fn has_replicas(&self, count: u32) -> Option<String> {
        Some(format!("{IS_PRIMARY} {count}"))
    }

    fn position(&self) -> &'static str {
        OFFSET
    }

    fn has_reached(&self, position: &str) -> String {
        format!("{IS_REPLICA} {position}")
    }

    fn promotes(&self) -> Option<&'static str> {
        Some(PROMOTE)
    }

    fn explains(&self, code: &str) -> Option<&'static str> {
        match code {
            NOT_ACKNOWLEDGED => Some("the primary has acknowledged the write, and no replica has"),
            "NOREPLICAS" => Some("the primary refuses writes while too few replicas are connected to it"),
            _ => None,
        }
    }

    fn forgets_at_its_end(&self, settings: &DatabaseSettings) -> Option<String> {
        let given = |name: &str| settings.config.get(name).map(String::as_str);
        let has_no_log = given("appendonly").is_some_and(|value| value.eq_ignore_ascii_case("no"));
        let is_forgotten = has_no_log && given("save").unwrap_or_default().is_empty();
        is_forgotten.then(|| "appendonly is no".to_owned())
    }
}

/// What a node is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Whether it is a primary with at least this number of replicas.
    IsPrimary(usize),
    /// Whether it is a replica that is connected to its primary, has executed this many bytes of its commands, and is not writing its log anew.
    IsReplica(i64),
    /// How many bytes of commands the primary has given to replicas since it was started.
    Offset,
    /// Whether it is the primary once it was told to be.
    Promote,
}

/// The answer for what is so.
const YES: &str = "1";

impl Question {
    /// Returns the question that a text is; `None` for the name of a setting.
    pub(super) fn of(text: &str) -> Option<Self> {
        match text {
            IS_PRIMARY => Some(Question::IsPrimary(0)),
            IS_REPLICA => Some(Question::IsReplica(0)),
            OFFSET => Some(Question::Offset),
            PROMOTE => Some(Question::Promote),
            _ => match (text.strip_prefix(IS_PRIMARY), text.strip_prefix(IS_REPLICA)) {
                (Some(replicas), _) => replicas.trim().parse().ok().map(Question::IsPrimary),
                (_, Some(offset)) => offset.trim().parse().ok().map(Question::IsReplica),
                (None, None) => None,
            },
        }
    }

    /// Asks the server. An answer that is no yes says in words what is so.
    ///
    /// # Errors
    /// The server's error; [`DatabaseError::Lost`] when the connection breaks.
    pub(super) fn ask(self, channel: &mut Channel) -> Result<Option<String>, DatabaseError> {
        if self == Question::Promote {
            ask(channel, &[b"REPLICAOF", b"NO", b"ONE"])?;
        }
        let role = Role::of(&ask(channel, &[b"ROLE"])?)?;
        Ok(Some(match (self, role) {
            (Question::Offset, Role::Primary { offset, .. }) => offset.to_string(),
            (Question::Promote, Role::Primary { .. }) => YES.to_owned(),
            (Question::IsPrimary(least), Role::Primary { replicas, .. }) if replicas >= least => YES.to_owned(),
            (Question::IsPrimary(least), Role::Primary { replicas, .. }) => {
                format!("that it has {replicas} of {least} replicas")
            }
            (Question::IsReplica(least), Role::Replica { link, offset }) => match (link.as_str(), writes_log(channel)?)
            {
                ("connected", false) if offset >= least => YES.to_owned(),
                ("connected", false) => format!("that it has executed {offset} of {least} bytes"),
                ("connected", true) => "that it still writes its log of what it was given".to_owned(),
                _ => format!("that its link to the primary is not up: {link}"),
            },
            (_, Role::Primary { .. }) => "that it is a primary".to_owned(),
            (_, Role::Replica { .. }) => "that it is a replica".to_owned(),
        }))
    }
}

/// What a server says that it is.
enum Role {
    /// The primary, which has given replicas this many bytes of commands, and the number of replicas that it counts.
    Primary { offset: i64, replicas: usize },
    /// A replica, with the state of its link to the primary, and the number of bytes of commands that it has executed.
    Replica { link: String, offset: i64 },
}

impl Role {
    /// Reads the answer to ROLE.
    fn of(reply: &Reply) -> Result<Role, DatabaseError> {
        let unknown = || DatabaseError::Lost("the server answers to ROLE with something that is no role".to_owned());
        let Reply::List(parts) = reply else { return Err(unknown()) };
        let text = |place: usize| parts.get(place).and_then(Reply::text).ok_or_else(unknown);
        let number = |place: usize| text(place)?.parse::<i64>().map_err(|_| unknown());
        match text(0)?.as_str() {
            "master" => match parts.get(2) {
                Some(Reply::List(replicas)) => Ok(Role::Primary { offset: number(1)?, replicas: replicas.len() }),
                _ => Err(unknown()),
            },
            "slave" => Ok(Role::Replica { link: text(3)?, offset: number(4)? }),
            _ => Err(unknown()),
        }
    }
}

/// Returns whether the server writes its log anew, or is about to. A replica does so behind each copy of the primary's data, and until then the copy is in no log.
fn writes_log(channel: &mut Channel) -> Result<bool, DatabaseError> {
    let told = ask(channel, &[b"INFO", b"persistence"])?.text().unwrap_or_default();
    let is_one = |name: &str| told.lines().any(|line| line.strip_prefix(name) == Some(":1"));
    Ok(is_one("aof_rewrite_in_progress") || is_one("aof_rewrite_scheduled"))
}

/// Returns the address and the port at which other nodes reach a node.
fn address_of(member: &Member) -> Option<(String, u16)> {
    let (address, port) = member.endpoint.as_ref()?.tcp.clone()?;
    Some((member.host.map_or(address, |host| host.to_string()), port))
}

/// A node: the primary, or a replica.
#[derive(Debug)]
struct CopyingNode {
    number: u32,
    /// The address of its own host; `None` if it has none.
    own: Option<Ipv4Addr>,
    /// Where the primary is reached; `None` for the primary itself, and for a replica that has taken over.
    primary: Option<(String, u16)>,
}

impl Node for CopyingNode {
    fn alone(&self) -> &'static dyn Recipe {
        &REDIS
    }

    /// All nodes have one password, with which replicas log in too.
    fn files(&self, password: &str, reach: &Reach) -> Vec<(&'static str, String)> {
        let mut files = REDIS.files(password, reach);
        let configurations = files.iter_mut().filter(|(name, _)| *name == CONFIG_FILE);
        configurations.for_each(|(_, text)| text.push_str(&format!("masterauth {password}\n")));
        files
    }

    fn initialise(&self, binary: &Path, directory: &Path, user: &str) -> Vec<CommandLine> {
        REDIS.initialise(binary, directory, user)
    }

    fn start(
        &self,
        binary: &Path,
        directory: &Path,
        port: u16,
        settings: &DatabaseSettings,
        reach: &Reach,
    ) -> CommandLine {
        let mut line = REDIS.start(binary, directory, port, settings, reach);
        // In front of the study's own settings, which win: no replica waits for others that may come.
        line.arguments.splice(1..1, ["--repl-diskless-sync-delay", "0"].map(str::to_owned));
        if self.number > 1 {
            // A replica that takes over has no replica that its writes could wait for.
            line.arguments.extend(["--min-replicas-to-write", "0"].map(str::to_owned));
        }
        if let Some(own) = self.own {
            // Clients are on this host, too; the last of several values counts.
            line.arguments.extend(["--bind".to_owned(), reach.address.to_string(), own.to_string()]);
        }
        if let Some((host, port)) = &self.primary {
            line.arguments.extend(["--replicaof".to_owned(), host.clone(), port.to_string()]);
        }
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_follows_the_primary_and_one_that_took_over_follows_nobody() {
        let (binary, directory) = (Path::new("/bin/redis-server"), Path::new("/d/1"));
        let settings = DatabaseSettings {
            config: [("min-replicas-to-write".to_owned(), "1".to_owned())].into(),
            ..DatabaseSettings::default()
        };
        let endpoint = REDIS.endpoint(directory, 4711, &settings, &Reach::LOOPBACK);
        let mut members = [Member { endpoint: Some(endpoint), ..Member::default() }, Member::default()];
        let line = |number: u32, members: &[Member]| {
            let recipe = COPYING.node(number, members, true);
            recipe.start(binary, directory, 4712, &settings, &Reach::LOOPBACK).arguments.join(" ")
        };
        assert!(line(1, &members).ends_with("--min-replicas-to-write 1"), "{}", line(1, &members));
        assert!(line(2, &members).ends_with("--min-replicas-to-write 0 --replicaof 127.0.0.1 4711"));
        assert!(line(2, &[]).ends_with("--min-replicas-to-write 0"), "{}", line(2, &[]));
        (members[0].host, members[1].host) = (Some(Ipv4Addr::new(192, 0, 2, 1)), Some(Ipv4Addr::new(192, 0, 2, 2)));
        assert!(line(1, &members).ends_with("--bind 127.0.0.1 192.0.2.1"), "{}", line(1, &members));
        assert!(line(2, &members).ends_with("--bind 127.0.0.1 192.0.2.2 --replicaof 192.0.2.1 4711"));
        let files = COPYING.node(2, &members, false).files("secret", &Reach::LOOPBACK);
        assert_eq!(files, [(CONFIG_FILE, "requirepass secret\nmasterauth secret\n".to_owned())]);
    }

    #[test]
    fn questions_are_told_from_names_of_settings() {
        assert_eq!(Question::of(COPYING.is_member(true)), Some(Question::IsPrimary(0)));
        assert_eq!(COPYING.has_replicas(2).as_deref().and_then(Question::of), Some(Question::IsPrimary(2)));
        assert_eq!(Question::of(COPYING.is_member(false)), Some(Question::IsReplica(0)));
        assert_eq!(Question::of(&COPYING.has_reached("4711")), Some(Question::IsReplica(4711)));
        assert_eq!(Question::of(COPYING.position()), Some(Question::Offset));
        assert_eq!(COPYING.promotes().and_then(Question::of), Some(Question::Promote));
        assert_eq!(Question::of("appendonly"), None);
    }

    #[test]
    fn a_role_is_read_as_the_server_states_it() {
        let text = |text: &str| Reply::Bytes(Some(text.as_bytes().to_vec()));
        let role = |parts: Vec<Reply>| match Role::of(&Reply::List(parts)) {
            Ok(Role::Primary { offset, replicas }) => format!("primary {offset} {replicas}"),
            Ok(Role::Replica { link, offset }) => format!("replica {link} {offset}"),
            Err(error) => error.to_string(),
        };
        let list = || Reply::List(Vec::new());
        assert_eq!(role(vec![text("master"), Reply::Number(478), list()]), "primary 478 0");
        assert_eq!(role(vec![text("master"), Reply::Number(9), Reply::List(vec![list()])]), "primary 9 1");
        let replica = [text("slave"), text("127.0.0.1"), Reply::Number(1), text("connected"), Reply::Number(7)];
        assert_eq!(role(replica.to_vec()), "replica connected 7");
        assert!(role(vec![text("sentinel"), list()]).contains("no role"));
        assert!(role(replica[..3].to_vec()).contains("no role"));
    }

    #[test]
    fn a_primary_without_a_log_and_without_snapshots_comes_back_empty() {
        let forgets = |config: &[(&str, &str)]| {
            let config = config.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            COPYING.forgets_at_its_end(&DatabaseSettings { config, ..DatabaseSettings::default() }).is_some()
        };
        assert!(!forgets(&[]) && forgets(&[("appendonly", "no")]));
        assert!(!forgets(&[("appendonly", "no"), ("save", "60 1")]));
    }
}
