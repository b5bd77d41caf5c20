//! The file that says which recorder is tested: the configuration of `loadline record`, or a file that says how another recorder is started.
//!
//! Main function: [`read`]. Invariant: whatever the file says, the recorder writes only to the disk that fails and to a store that loadline started.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;

use super::intake::Way;
use super::own;
use super::source::MEASUREMENT;
use super::tested::{PATIENCE_S, Tested};
use crate::fault::fault;
use crate::file;
use crate::written::place::{Errors, Source};
use crate::written::section::Section;
use crate::written::tree::{Node, Table};
use crate::written::{Absent, Kind, Part, Setting, Span, StudyErrors};

/// The most bytes of a measurement's name.
const MEASUREMENT_BYTES_MAX: usize = 100;
/// The most bytes of a topic.
const TOPIC_BYTES_MAX: usize = 1000;

/// The file of a recorder other than loadline's.
pub static OTHER_RECORDER: Part = Part {
    name: "",
    help: "How `loadline durability --recorder` starts a recorder that is not loadline's own. In `command`, `version` and the text of files, {port} is the port on which it listens at 127.0.0.1, {store} the address of the store that it writes to (http://127.0.0.1:PORT, which takes line protocol as InfluxDB does; behind `protocol = \"nats\"` and `\"mqtt\"` the store takes from it), {data} its directory on the disk that fails, and {files} the directory of its files, which are not on that disk.",
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
        Setting::new(
            "measurement",
            Kind::Text,
            Absent::Text(MEASUREMENT),
            "The measurement as which the records reach the store: an OpenTelemetry collector appends the name of their field, as in `durability_number`.",
        ),
        Setting::new("intake", Kind::Part(&INTAKE), Absent::Refused, "How sources send."),
        Setting::new("file", Kind::Parts(&FILE), Absent::Means("none"), "Files that it reads."),
    ],
};

/// `[intake]` of that file.
pub static INTAKE: Part = Part {
    name: "intake",
    help: "How sources send line protocol, at most ten lines at a time.",
    settings: &[
        Setting::new(
            "protocol",
            Kind::OneOf(&Way::NAMES),
            Absent::Text("http"),
            "The protocol, and with it what acknowledges all lines of a request: any 2xx of `http`; `ok` and the number of lines for a batch over `tcp`, which ends with an empty line; JetStream's answer to a message of `nats`, in the stream `measurements`, which loadline makes in files and whose messages the store takes from it; PUBACK for a message of `mqtt` with quality of service 1, which a subscriber with a session that the broker keeps brings to the store.",
        ),
        Setting::new("path", Kind::Text, Absent::Text("/write"), "The path of the requests, with its parameters.")
            .only("`protocol = \"http\"`"),
        Setting::new(
            "headers",
            Kind::Texts,
            Absent::Means("none"),
            "Further header lines, as in `Authorization: Token x`.",
        )
        .only("`protocol = \"http\"`"),
        Setting::new("topic", Kind::Text, Absent::Text("durability"), "The topic below which each source has its own.")
            .only("`protocol = \"mqtt\"`"),
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

/// Reads a recorder's file. Loadline's own recorder is one under test for each of its intakes.
///
/// # Errors
/// All errors of the file, with their places.
pub fn read(path: &Path) -> anyhow::Result<Vec<Tested>> {
    let shown = path.display().to_string();
    let text = file::read_text(path, file::WRITTEN_MOST).with_context(|| shown.clone())?;
    let is_other = text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("command"));
    if is_other { Ok(vec![read_other(&text, &shown)?]) } else { own::read(&text, &shown) }
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
        way: read_way(&intake, &mut errors),
        measurement: top.read("measurement", &mut errors),
        patience: Duration::from_secs_f64(top.find("patience", &mut errors).unwrap_or(PATIENCE_S)),
        own: None,
    };
    if tested.command.is_empty() {
        errors.push(top.place, fault!("command is empty"; "write the program and its arguments, as in command = [\"telegraf\", \"--config\", \"{{files}}/telegraf.conf\"]"));
    }
    if tested.name.is_empty() {
        errors.push(top.place, fault!("name is missing"; "write one, as in name = \"telegraf\""));
    }
    if tested.measurement.is_empty() || tested.measurement.len() > MEASUREMENT_BYTES_MAX {
        let must = format!("it must have 1 to {MEASUREMENT_BYTES_MAX} bytes, as in \"durability_number\"");
        errors.push(top.place, fault!("measurement is \"{}\"", tested.measurement; "{must}"));
    }
    errors.into_result(&Source { file: shown.to_owned(), arguments: Vec::new() })?;
    Ok(tested)
}

fn read_way(intake: &Section<'_>, errors: &mut Errors) -> Way {
    let protocol: String = intake.read("protocol", errors);
    for (key, whose) in [("path", "http"), ("headers", "http"), ("topic", "mqtt")] {
        if let Some(entry) = intake.get(key).filter(|_| protocol != whose) {
            let remedy = format!("leave it out, or write protocol = \"{whose}\"");
            errors.push(entry.place, fault!("intake.{key} is for {whose}, and the protocol is {protocol}"; "{remedy}"));
        }
    }
    match protocol.as_str() {
        "tcp" => Way::Tcp,
        "nats" => Way::Nats,
        "mqtt" => Way::Mqtt { topic: read_topic(intake, errors) },
        _ => {
            let path: String = intake.read("path", errors);
            if !path.starts_with('/') || path.contains(char::is_whitespace) {
                errors.push(
                    intake.place,
                    fault!("intake.path is \"{path}\""; "it must be a path, as in \"/api/v2/write\""),
                );
            }
            Way::Http { path, headers: intake.texts("headers", errors) }
        }
    }
}

fn read_topic(intake: &Section<'_>, errors: &mut Errors) -> String {
    let topic: String = intake.read("topic", errors);
    let is_plain = !topic.is_empty() && !topic.contains(['+', '#', '\0']) && !topic.starts_with('$');
    if !is_plain || topic.len() > TOPIC_BYTES_MAX {
        let must =
            format!("it must be 1 to {TOPIC_BYTES_MAX} bytes without +, # and a $ in front, as in \"durability\"");
        errors.push(intake.place, fault!("intake.topic is \"{topic}\""; "{must}"));
    }
    topic
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
            (
                "name = \"t\"\ncommand = [\"t\"]\n[intake]\nprotocol = \"nats\"\npath = \"/x\"\n",
                "t.toml:5: intake.path is for http, and the protocol is nats; leave it out, or write protocol = \"http\"",
            ),
            ("name = \"t\"\ncommand = [\"t\"]\n[intake]\ntopic = \"x\"\n", "t.toml:4: intake.topic is for mqtt"),
            (
                "name = \"t\"\ncommand = [\"t\"]\n[intake]\nprotocol = \"mqtt\"\ntopic = \"a/#\"\n",
                "intake.topic is \"a/#\"",
            ),
            (
                "name = \"t\"\ncommand = [\"t\"]\n[intake]\nprotocol = \"mqt\"\n",
                "t.toml:4: unknown intake.protocol \"mqt\"; did you mean \"mqtt\"?",
            ),
            ("name = \"t\"\ncommand = [\"t\"]\ncolour = 1\n", "t.toml:3: unknown key \"colour\""),
            ("name = \"t\"\ncommand = [\"t\"]\n[[file]]\nname = \"../x\"\ntext = \"\"\n", "file.name is \"../x\""),
        ] {
            let told = said(text).unwrap_err();
            assert!(told.contains(says), "{told}");
        }
    }
}
