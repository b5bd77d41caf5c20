//! Starts a server: checks first, then makes the directory, the data and the process, and waits until it answers.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::directory::{PrivateDirectory, at, random_hex, root};
use super::memory::MemoryGroup;
use super::port::HeldPort;
use super::process::{self, Conditions, MainProcess, ProcessIdentity};
use super::readiness::{Outcome, adjustments, await_server, relevant_lines};
use super::user::{User, own_uid};
use super::{CpuList, INTERRUPTED_WITHIN, KeptData, STOP_WITHIN, Server, ServerError, free_disk_bytes, interrupted};
use crate::database::Endpoint;
use crate::database::recipe::{CommandLine, Reach, Recipe};
use crate::database::tls::private;
use crate::trial::DatabaseSettings;
use crate::units::show_bytes;

/// Cassandra calculates for half a minute before it answers, and other work may leave it a fifth of a CPU.
const READY_WITHIN: Duration = Duration::from_secs(180);
const INITIALISED_WITHIN: Duration = Duration::from_secs(180);
/// Free space in MiB that an empty data directory needs with its logs.
const LEAST_FREE_MIB: u64 = 400;
/// How many ports are tried when another program, which was told to, listens on the one that was held.
const PORT_ATTEMPTS: u32 = 5;
const MOST_LOG_BYTES: u64 = 1 << 20;

/// Checks everything that can be checked before anything is made: the binary, the names of the settings, the CPUs and the user.
///
/// # Errors
/// The first fault found.
pub fn check(recipe: &dyn Recipe, settings: &DatabaseSettings) -> Result<(), ServerError> {
    Plan::new(recipe, settings, &Reach::LOOPBACK).map(|_| ())
}

/// Everything that a start needs to know.
pub(super) struct Plan<'a> {
    recipe: &'a dyn Recipe,
    settings: &'a DatabaseSettings,
    reach: &'a Reach,
    binary: PathBuf,
    conditions: Conditions,
}

impl<'a> Plan<'a> {
    pub(super) fn new(
        recipe: &'a dyn Recipe,
        settings: &'a DatabaseSettings,
        reach: &'a Reach,
    ) -> Result<Plan<'a>, ServerError> {
        let binary = recipe.find_binary(settings).map_err(ServerError::NotFound)?;
        for (name, value) in &settings.config {
            check_setting(recipe, name, value)?;
        }
        check_encryption(recipe, settings)?;
        if settings.tls.is_some() && !recipe.has_tls() {
            return Err(ServerError::NoTls);
        }
        let cpus = settings.cpus.as_deref().map(CpuList::parse).transpose()?;
        cpus.as_ref().map(CpuList::check).transpose()?;
        let user = match own_uid() {
            0 if !recipe.users().is_empty() => {
                let none = || ServerError::NoUser(recipe.users().join(" or "));
                Some(User::first_of(recipe.users()).ok_or_else(none)?)
            }
            _ => None,
        };
        let (death_signal, namespace) = (recipe.stop_signal(), reach.namespace.clone());
        let conditions = Conditions { user, cpus, namespace, ..Conditions::own(death_signal) };
        Ok(Plan { recipe, settings, reach, binary, conditions })
    }

    fn user(&self) -> Option<&User> {
        self.conditions.user.as_ref()
    }

    fn write_files(&self, directory: &mut PrivateDirectory, password: &str) -> Result<(), ServerError> {
        let of_tls = self.settings.tls.as_ref().map(|_| private::files(self.reach.address)).transpose();
        let of_tls = of_tls.map_err(ServerError::NoCertificate)?.unwrap_or_default();
        for (name, content) in self.recipe.files(password, self.reach).into_iter().chain(of_tls) {
            directory.write(name, &content, self.user())?;
        }
        Ok(())
    }

    /// Fills the directory with the database of an earlier server.
    fn adopt(&self, directory: &mut PrivateDirectory, kept: &KeptData) -> Result<(), ServerError> {
        self.write_files(directory, &kept.password)?;
        directory.adopt(&kept.path)
    }

    /// Fills the directory with an empty database.
    fn initialise(&self, directory: &mut PrivateDirectory, password: &str) -> Result<(), ServerError> {
        self.write_files(directory, password)?;
        let name = self.user().map(|user| user.name.as_str()).unwrap_or_default();
        for line in self.recipe.initialise(&self.binary, &directory.server(), name) {
            // Half a data directory is of no use: the programs that make it need not end in order when loadline dies.
            let conditions = Conditions { death_signal: libc::SIGKILL, ..self.conditions.clone() };
            let mut child = execute(&line, directory, &conditions)?;
            let ended = process::wait_until(INITIALISED_WITHIN, || process::has_ended(&child) || interrupted());
            let is_complete = ended && !interrupted();
            process::end(&mut child, libc::SIGKILL, Duration::ZERO);
            directory.set_server(None)?;
            if interrupted() {
                return Err(ServerError::Interrupted);
            }
            if !is_complete || !child.wait().is_ok_and(|status| status.success()) {
                let log = read_log(&directory.log());
                let remedy = self.remedy(&log);
                return Err(ServerError::Initialise { program: line.program, log: relevant_lines(&log), remedy });
            }
        }
        Ok(())
    }

    /// Starts the process; tries another port if another program listens on the one that was held.
    fn run(
        &self,
        directory: &mut PrivateDirectory,
        password: &str,
        memory: Option<&MemoryGroup>,
    ) -> Result<(Child, HeldPort), ServerError> {
        let conditions = memory.map_or_else(|| self.conditions.clone(), |memory| memory.around(&self.conditions));
        let mut attempt = 1;
        loop {
            let port = HeldPort::take()?;
            File::create(directory.log()).map_err(at(&directory.log(), "write"))?;
            match self.run_on(directory, password, &conditions, port.number()) {
                Err(failed) if failed.is_port_taken && attempt < PORT_ATTEMPTS => {
                    attempt += 1;
                }
                Err(failed) => return Err(*failed.error),
                Ok(child) => return Ok((child, port)),
            }
        }
    }

    /// Starts the process again on a port that it had before, and appends to the existing log.
    pub(super) fn run_again(
        &self,
        directory: &mut PrivateDirectory,
        password: &str,
        memory: Option<&MemoryGroup>,
        port: u16,
    ) -> Result<Child, ServerError> {
        let conditions = memory.map_or_else(|| self.conditions.clone(), |memory| memory.around(&self.conditions));
        self.run_on(directory, password, &conditions, port).map_err(|failed| *failed.error)
    }

    /// Starts the process on a port. If it does not come up, returns the reason.
    fn run_on(
        &self,
        directory: &mut PrivateDirectory,
        password: &str,
        conditions: &Conditions,
        port: u16,
    ) -> Result<Child, NotStarted> {
        let line = self.recipe.start(&self.binary, &directory.server(), port, self.settings, self.reach);
        let started = execute(&line, directory, conditions);
        let mut child = started.map_err(NotStarted::for_good)?;
        // Both sockets must answer, whichever of them clients will use.
        let all = DatabaseSettings { socket: None, ..self.settings.clone() };
        let endpoint = self.recipe.endpoint(&directory.server(), port, &all, self.reach);
        let endpoint = Endpoint { password: password.to_owned(), ..endpoint };
        let outcome = await_server(self.recipe, &endpoint, &child, READY_WITHIN);
        if outcome == Outcome::Ready {
            return Ok(child);
        }
        // Nobody needs the data of a server whose start was interrupted, and a node that waits for those of others does not end by itself.
        let within = if outcome == Outcome::Interrupted { INTERRUPTED_WITHIN } else { STOP_WITHIN };
        process::end(&mut child, self.recipe.stop_signal(), within);
        let log = read_log(&directory.log());
        let what = match &outcome {
            Outcome::Interrupted => return Err(NotStarted::for_good(ServerError::Interrupted)),
            Outcome::Refused(reason) => format!("refuses connections ({reason})"),
            Outcome::TimedOut => format!("was not ready within {} s", READY_WITHIN.as_secs()),
            Outcome::Exited | Outcome::Ready => match child.wait() {
                Ok(status) => format!("ended at once ({status})"),
                Err(_) => "ended at once".to_owned(),
            },
        };
        let remedy = self.remedy(&log);
        let error = ServerError::NotUp { program: line.program, what, log: relevant_lines(&log), remedy };
        let is_port_taken = outcome == Outcome::Exited && is_port_taken(&log);
        Err(NotStarted { error: Box::new(error), is_port_taken })
    }

    /// Returns what to do about the errors in a log; `None` if that is not known.
    fn remedy(&self, log: &str) -> Option<String> {
        let plain = |text: &str| text.to_lowercase().replace('-', "_");
        let lines = plain(&relevant_lines(log));
        // MariaDB writes only the number of the error.
        if lines.contains("no space left") || lines.contains("error 28") {
            return Some("free some room, or choose another place (--out, TMPDIR)".to_owned());
        }
        if let (true, Some(bytes)) = (lines.contains("memory"), self.settings.memory_bytes) {
            let given = show_bytes(bytes as f64);
            return Some(format!(
                "raise database.memory, which is {given}, or have the server take less with database.config"
            ));
        }
        let named = self.settings.config.iter().find(|(name, _)| lines.contains(&plain(name)));
        if let Some((name, value)) = named {
            return Some(format!("correct or remove database.config.{name} = \"{value}\""));
        }
        let engine = self.settings.engine.as_ref().filter(|engine| lines.contains(&plain(engine)))?;
        Some(format!("this server may not have database.engine = \"{engine}\": choose another"))
    }
}

/// The reason why a process did not come up.
struct NotStarted {
    error: Box<ServerError>,
    /// Whether the port was taken, so that another port may work.
    is_port_taken: bool,
}

impl NotStarted {
    fn for_good(error: ServerError) -> Self {
        NotStarted { error: Box::new(error), is_port_taken: false }
    }
}

/// Returns whether a log says that the port is taken by another process.
fn is_port_taken(log: &str) -> bool {
    log.to_lowercase().contains("address already in use")
}

/// The data that a server begins with.
#[derive(Clone, Copy)]
pub(super) enum Source<'a> {
    /// An empty database, with an account that has a new password.
    New,
    /// What the recipe makes of another node's data, whose account has this password.
    Copied(&'a str),
    /// The data that an earlier server has left.
    Kept(&'a KeptData),
}

pub(super) fn start(
    recipe: &dyn Recipe,
    settings: &DatabaseSettings,
    parent: Option<&Path>,
    source: Source<'_>,
    reach: &Reach,
) -> Result<Server, ServerError> {
    let plan = Plan::new(recipe, settings, reach)?;
    let root = root();
    let mut directory = PrivateDirectory::create(&root, parent, plan.user(), recipe.stop_signal())?;
    check_room(parent.unwrap_or(&root))?;
    let password = match source {
        Source::Kept(kept) => kept.password.clone(),
        Source::Copied(password) => password.to_owned(),
        Source::New => random_hex(16)?,
    };
    match source {
        Source::Kept(kept) => plan.adopt(&mut directory, kept)?,
        Source::Copied(_) | Source::New => plan.initialise(&mut directory, &password)?,
    }
    // The group is made only now, for the server alone: the pages of the data made before lie in the page cache of whoever wrote them, and count there.
    let memory = settings.memory_bytes.map(MemoryGroup::create).transpose().map_err(ServerError::Memory)?;
    let (child, port) = plan.run(&mut directory, &password, memory.as_ref())?;
    let mut endpoint = recipe.endpoint(&directory.server(), port.number(), settings, reach);
    endpoint.password = password;
    let warnings = adjustments(&read_log(&directory.log()), settings.config.keys());
    let main = MainProcess::of(child.id());
    Ok(Server {
        child: Some(child),
        main,
        directory,
        endpoint,
        stop_signal: recipe.stop_signal(),
        warnings,
        memory,
        power: None,
        _port: port,
    })
}

/// Starts a program in the directory, with its output appended to the log and without the environment variables of
/// loadline that could change what it does.
pub(super) fn execute(
    line: &CommandLine,
    directory: &mut PrivateDirectory,
    conditions: &Conditions,
) -> Result<Child, ServerError> {
    let path = directory.log();
    let log = File::options().create(true).append(true).open(&path).map_err(at(&path, "write"))?;
    let mut command = Command::new(&line.program);
    command.args(&line.arguments).env_clear().current_dir(directory.server());
    command.envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "LD_LIBRARY_PATH"));
    command.env("LC_ALL", "C").env("TZ", "UTC").env("HOME", directory.server()).env("TMPDIR", directory.server());
    command.envs(line.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(if line.input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(log.try_clone().map_err(at(&path, "write"))?).stderr(log);
    let failed = |source| ServerError::Execute { program: line.program.clone(), source };
    let mut child = process::spawn(command, conditions).map_err(failed)?;
    if let Err(error) = directory.set_server(ProcessIdentity::of(child.id())) {
        process::end(&mut child, libc::SIGKILL, Duration::ZERO);
        return Err(error);
    }
    if let Some(mut input) = child.stdin.take() {
        // A program that ends without reading its input shows that by its exit status.
        let _ = input.write_all(line.input.as_bytes());
    }
    Ok(child)
}

/// Returns the end of a log, at most 1 MiB; empty if there is no log.
pub(super) fn read_log(path: &Path) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(MOST_LOG_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(MOST_LOG_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    String::from_utf8_lossy(&read().unwrap_or_default()).into_owned()
}

/// Checks that the database can encrypt its files as asked: not every database can.
fn check_encryption(recipe: &dyn Recipe, settings: &DatabaseSettings) -> Result<(), ServerError> {
    let Some(asked) = settings.encryption.as_ref().filter(|asked| !recipe.encryptions().contains(&asked.as_str()))
    else {
        return Ok(());
    };
    let remedy = match recipe.encryptions() {
        [] => "leave it out, or choose MariaDB".to_owned(),
        known => format!("choose one of: none, {}", known.join(", ")),
    };
    Err(ServerError::Encryption { asked: asked.clone(), remedy })
}

/// Checks a setting: names become options on a command line, and some options would take the server out of its directory.
fn check_setting(recipe: &dyn Recipe, name: &str, value: &str) -> Result<(), ServerError> {
    let refuse = |reason: &str| Err(ServerError::Setting { name: name.to_owned(), reason: reason.to_owned() });
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-' || byte == b'.';
    if !name.bytes().all(is_plain) || !name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic()) {
        return refuse("is no name of a setting; use letters, digits, underscores and dashes");
    }
    if value.contains(['\0', '\n']) {
        return refuse("has a value with a line break or a zero byte; write it on one line");
    }
    // Servers also accept unambiguous beginnings of names, and prefixes.
    let mut plain = name.to_lowercase().replace('-', "_");
    for prefix in ["loose_", "skip_", "enable_", "disable_", "maximum_"] {
        plain = plain.strip_prefix(prefix).map(str::to_owned).unwrap_or(plain);
    }
    let is_reserved = |reserved: &&&str| {
        let reserved = reserved.to_lowercase().replace('-', "_");
        reserved.starts_with(&plain) || reserved == name.to_lowercase().replace('-', "_")
    };
    match recipe.reserved_settings().iter().find(is_reserved) {
        Some(_) => refuse("is set by loadline, which keeps the server private; remove it"),
        None => Ok(()),
    }
}

fn check_room(path: &Path) -> Result<(), ServerError> {
    let free_mib = free_disk_bytes(path).map_err(at(path, "find room in"))? >> 20;
    if free_mib < LEAST_FREE_MIB {
        return Err(ServerError::NoRoom { path: path.to_owned(), free_mib, needed_mib: LEAST_FREE_MIB });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::mysql::recipe::MARIADB;
    use crate::database::postgres::recipe::POSTGRES;

    #[test]
    fn settings_that_would_break_the_servers_privacy_are_refused() {
        for name in [
            "datadir",
            "DataDir",
            "loose-datadir",
            "bind-address",
            "skip-networking",
            "init_file",
            "plugin dir",
            "-x",
            "",
            "a;b",
        ] {
            let error = check_setting(&MARIADB, name, "1").unwrap_err();
            assert!(error.to_string().starts_with(&format!("database.config: \"{name}\"")), "{error}");
        }
        for name in [
            "innodb_flush_log_at_trx_commit",
            "innodb-io-capacity",
            "skip-innodb-doublewrite",
            "sync_binlog",
            "log-bin",
        ] {
            assert!(check_setting(&MARIADB, name, "1").is_ok(), "{name}");
        }
        assert!(check_setting(&MARIADB, "sql_mode", "a\nb").is_err());
        assert!(check_setting(&POSTGRES, "port", "1").is_err());
        assert!(check_setting(&POSTGRES, "pg_stat_statements.max", "100").is_ok());
    }
}
