//! The file that says which recorder is tested: the configuration of `loadline record`, or a file that says how another recorder is started.
//!
//! Main type: [`Tested`]. Invariant: whatever the file says, the recorder writes only to the disk that fails and to a store that loadline started.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};

use crate::fault::fault;
use crate::file;
use crate::layout::recorded::Shape;
use crate::recorder::config;
use crate::trial::DatabaseSettings;
use crate::written::place::{Errors, Source};
use crate::written::section::Section;
use crate::written::tree::{Node, Table};
use crate::written::{Absent, Kind, Part, Setting, Span, StudyErrors};

/// How long a recorder may bring nothing new to the store, once everything runs again, before what is missing counts as lost, in seconds.
const PATIENCE_S: f64 = 10.0;

/// The file of a recorder other than loadline's.
pub static OTHER_RECORDER: Part = Part {
    name: "",
    help: "How `loadline durability --recorder` starts a recorder that is not loadline's own. In `command`, `version` and the text of files, {port} is the port on which it listens at 127.0.0.1, {store} the address of the store that it writes to (http://127.0.0.1:PORT, which takes line protocol as InfluxDB does), {data} its directory on the disk that fails, and {files} the directory of its files, which are not on that disk.",
    settings: &[
        Setting::new("name", Kind::Text, Absent::Refused, "Its name in results."),
        Setting::new("command", Kind::Texts, Absent::Refused, "The program and its arguments."),
        Setting::new(
            "version",
            Kind::Texts,
            Absent::Means("not stated"),
            "The program and arguments that print the version; the first line is kept.",
        ),
        Setting::new(
            "patience",
            Kind::Duration(Span::Within(1.0, 600.0)),
            Absent::Text("10s"),
            "How long it may bring nothing new to the store, once everything runs again, before what is missing counts as lost.",
        ),
        Setting::new("intake", Kind::Part(&INTAKE), Absent::Refused, "How sources send."),
        Setting::new("file", Kind::Parts(&FILE), Absent::Means("none"), "Files that it reads."),
    ],
};

/// `[intake]` of that file.
pub static INTAKE: Part = Part {
    name: "intake",
    help: "How sources send: line protocol in requests of HTTP. Any 2xx is an acknowledgement of all lines of the request.",
    settings: &[
        Setting::new("path", Kind::Text, Absent::Text("/write"), "The path of the requests, with its parameters."),
        Setting::new(
            "headers",
            Kind::Texts,
            Absent::Means("none"),
            "Further header lines, as in `Authorization: Token x`.",
        ),
    ],
};

/// `[[file]]` of that file.
pub static FILE: Part = Part {
    name: "file",
    help: "A file that the recorder reads; it is written before the recorder starts.",
    settings: &[
        Setting::new("name", Kind::Text, Absent::Refused, "Its name."),
        Setting::new("text", Kind::Text, Absent::Refused, "Its content."),
    ],
};

/// A recorder under test.
#[derive(Debug, Clone)]
pub struct Tested {
    /// Its name in results.
    pub name: String,
    /// How it is started.
    pub command: Vec<String>,
    /// The command that prints its version; empty if none is known.
    pub version: Vec<String>,
    /// The files that it reads, by name with their text.
    pub files: Vec<(String, String)>,
    /// Path of the sources' requests.
    pub path: String,
    /// Header lines of the sources' requests.
    pub headers: Vec<String>,
    /// How long nothing new may reach the store before what is missing counts as lost.
    pub patience: Duration,
    /// What is particular to loadline's own; `None` for another recorder.
    pub own: Option<Own>,
}

/// What is particular to loadline's own recorder.
#[derive(Debug, Clone)]
pub struct Own {
    /// The kind of database behind it, without a place or an address: a new one is made for the test.
    pub database: DatabaseSettings,
    /// The layout of its tables.
    pub shape: Shape,
}

/// Reads a recorder's file.
///
/// # Errors
/// All errors of the file, with their places.
pub fn read(path: &Path) -> anyhow::Result<Tested> {
    let shown = path.display().to_string();
    let text = file::read_text(path, file::WRITTEN_MOST).with_context(|| shown.clone())?;
    let is_other = text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("command"));
    if is_other { Ok(read_other(&text, &shown)?) } else { read_own(&text, &shown) }
}

fn read_other(text: &str, shown: &str) -> Result<Tested, StudyErrors> {
    let mut errors = Errors::default();
    let root = Table::parse(text, &mut errors);
    let top = Section::top(&root, &OTHER_RECORDER, &mut errors);
    let intake = Section::open(&root, &INTAKE, &mut errors);
    let tested = Tested {
        name: top.read("name", &mut errors),
        command: top.texts("command", &mut errors),
        version: top.texts("version", &mut errors),
        files: top.list("file", &mut errors).iter().filter_map(|node| read_file(node, &mut errors)).collect(),
        path: intake.read("path", &mut errors),
        headers: intake.texts("headers", &mut errors),
        patience: Duration::from_secs_f64(top.find("patience", &mut errors).unwrap_or(PATIENCE_S)),
        own: None,
    };
    if tested.command.is_empty() {
        errors.push(top.place, fault!("command is empty"; "write the program and its arguments, as in command = [\"telegraf\", \"--config\", \"{{files}}/telegraf.conf\"]"));
    }
    if tested.name.is_empty() {
        errors.push(top.place, fault!("name is missing"; "write one, as in name = \"telegraf\""));
    }
    if !tested.path.starts_with('/') || tested.path.contains(char::is_whitespace) {
        errors.push(
            intake.place,
            fault!("intake.path is \"{}\"", tested.path; "it must be a path, as in \"/api/v2/write\""),
        );
    }
    errors.into_result(&Source { file: shown.to_owned(), arguments: Vec::new() })?;
    Ok(tested)
}

fn read_file(node: &Node, errors: &mut Errors) -> Option<(String, String)> {
    let section = Section::of_node(node, "file", &FILE, errors)?;
    let (name, text): (String, String) = (section.read("name", errors), section.read("text", errors));
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        errors.push(
            section.place,
            fault!("file.name is \"{name}\""; "it must be the name of a file, without a directory"),
        );
    }
    Some((name, text))
}

/// Reads loadline's own configuration, and makes it that of a test: one intake on this machine, the spool on the disk that fails, a store of its own.
fn read_own(text: &str, shown: &str) -> anyhow::Result<Tested> {
    let config = config::read(text, shown)?;
    if !config.takes_lines() {
        bail!("{shown}: a recorder of blocks is not tested here; name one with [intake.http]");
    }
    let shape = Shape::named(&config.layout.name).with_context(|| format!("{shown}: layout.name"))?;
    let mut table: toml::Table = text.parse().with_context(|| shown.to_owned())?;
    for key in ["database", "intake", "access", "inbox", "processing", "forward", "office", "metrics", "log"] {
        table.remove(key);
    }
    let part = |table: &mut toml::Table, key: &str| match table
        .entry(key)
        .or_insert_with(|| toml::Value::Table(toml::Table::new()))
    {
        toml::Value::Table(inner) => Some(std::mem::take(inner)),
        _ => None,
    };
    let mut spool = part(&mut table, "spool").unwrap_or_default();
    spool.insert("path".to_owned(), "{data}/spool".into());
    table.insert("spool".to_owned(), spool.into());
    if let Some(model) = table.get_mut("admission").and_then(|admission| admission.get_mut("model"))
        && let Some(path) = model.as_str().map(std::path::absolute).transpose()?
    {
        *model = path.display().to_string().into();
    }
    if config.layout.name == "star-hot" {
        let layout: toml::Table = [("name", toml::Value::from("star-hot")), ("hot", vec!["number"].into())]
            .map(|(key, value)| (key.to_owned(), value))
            .into_iter()
            .collect();
        table.insert("layout".to_owned(), layout.into());
    }
    let rest = toml::to_string(&table)?;
    let own = std::env::current_exe().context("this program's own file")?.display().to_string();
    let DatabaseSettings { name, config: settings, engine, .. } = config.database;
    Ok(Tested {
        name: "loadline".to_owned(),
        command: [own.as_str(), "record", "{files}/recorder.toml"].map(str::to_owned).to_vec(),
        version: vec![own, "--version".to_owned()],
        files: vec![("recorder.toml".to_owned(), format!("{rest}\n[intake.http]\nlisten = \"127.0.0.1:{{port}}\"\n"))],
        path: "/write".to_owned(),
        headers: Vec::new(),
        patience: Duration::from_secs_f64(PATIENCE_S),
        own: Some(Own {
            database: DatabaseSettings { name, config: settings, engine, ..DatabaseSettings::default() },
            shape,
        }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_in_a_file_is_named() {
        let said = |text: &str| read_other(text, "t.toml").map(drop).map_err(|errors| errors.to_string());
        let good = "name = \"t\"\ncommand = [\"t\"]\n[intake]\npath = \"/x\"\n";
        assert_eq!(said(good), Ok(()));
        for (text, says) in [
            ("command = []\nname = \"t\"\n", "command is empty"),
            ("command = [\"t\"]\n", "name"),
            ("name = \"t\"\ncommand = [\"t\"]\n[intake]\npath = \"x\"\n", "t.toml:3: intake.path is \"x\""),
            ("name = \"t\"\ncommand = [\"t\"]\ncolour = 1\n", "t.toml:3: unknown key \"colour\""),
            ("name = \"t\"\ncommand = [\"t\"]\n[[file]]\nname = \"../x\"\ntext = \"\"\n", "file.name is \"../x\""),
        ] {
            let told = said(text).unwrap_err();
            assert!(told.contains(says), "{told}");
        }
    }

    #[test]
    fn an_own_recorder_is_tested_with_places_of_the_test() {
        let text = "[database]\nname = \"postgres\"\nurl = \"postgres://me@db.example/x\"\n[spool]\npath = \"/var/spool/x\"\nbound = \"8MiB\"\n\
                    [layout]\nname = \"wide\"\n[intake.http]\nlisten = \"0.0.0.0:8086\"\ninsecure = true\ntokens = [\"secret-of-sixteen\"]\n[intake.tcp]\nlisten = \"127.0.0.1:1\"\n";
        let tested = read_own(text, "r.toml").unwrap();
        let (_, made) = &tested.files[0];
        for gone in ["db.example", "secret", "0.0.0.0", "/var/spool", "[intake.tcp]"] {
            assert!(!made.contains(gone), "{made}");
        }
        for there in ["path = \"{data}/spool\"", "bound = \"8MiB\"", "listen = \"127.0.0.1:{port}\"", "name = \"wide\""]
        {
            assert!(made.contains(there), "{made}");
        }
        let own = tested.own.unwrap();
        assert_eq!((own.database.name.as_str(), own.database.url, own.shape.name()), ("postgres", None, "wide"));
        assert!(read_own("[intake.http]\nlisten = 3\n", "r.toml").unwrap_err().to_string().contains("r.toml:2"));
    }
}
