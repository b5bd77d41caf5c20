//! `loadline init`: writes a first study from three answers.
//!
//! Main function: [`run`]. Invariant: the written study can be run as it is.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use serde_json::json;

use super::output::{note, print, print_json};
use super::{Failure, Refusal, Status};
use crate::cli::{Aim, InitArguments};
use crate::study::{self, Names};

/// Largest number of times that a question is asked.
const ASKED_MOST: usize = 3;

/// A possible answer and its meaning.
type Choice = (&'static str, &'static str);

const AIMS: [Choice; 3] = [
    ("layout", "which table layout takes the most records per second"),
    ("line", "the highest rate of records at which 99 % are stored within 20 ms"),
    ("clients", "how throughput grows with the number of clients that read and write"),
];
const RECORDS: [Choice; 4] = [
    ("qos", "network measurements: 61 columns, once a second"),
    ("sensor", "sensor events with content"),
    ("usertable", "a key and ten text fields, as YCSB has them"),
    ("custom", "columns of your own: the study has three to begin with"),
];
const DATABASES: [Choice; 4] = [
    ("sqlite", "in this process; needs no server"),
    ("mariadb", "a private server, where it is installed"),
    ("postgres", "a private server, where it is installed"),
    ("mysql", "a private server, where it is installed"),
];

/// Asks the questions and writes the study.
///
/// # Errors
/// [`Failure::Usage`] for an invalid answer or a file that already exists.
pub fn run(arguments: &InitArguments, is_json: bool, names: &Names) -> Result<Status, Failure> {
    let out = &arguments.out;
    let file = out.display().to_string();
    if out.exists() {
        let why = "the file is there already, and may have been changed by hand";
        return Err(Failure::refused(Refusal::at(file, why, "name another one with --out, or remove it")));
    }
    let asks = !is_json && std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let aim = arguments.find.map(|aim| match aim {
        Aim::Layout => "layout",
        Aim::Line => "line",
        Aim::Clients => "clients",
    });
    let aim = answer("--find", "What is to be found out?", &AIMS, aim, asks)?;
    let record = answer("--record", "What is recorded?", &RECORDS, arguments.record.as_deref(), asks)?;
    let database = answer("--database", "In which database?", &DATABASES, arguments.database.as_deref(), asks)?;
    let text = study_text(aim, record, database);
    if let Err(errors) = study::load_text(&file, &text, &[], None, false, names) {
        return Err(Failure::Broken(format!("the study cannot be read, which is a fault of loadline: {errors}")));
    }
    write_new(out, &text)?;
    if is_json {
        print_json(&json!({ "study": file, "find": aim, "record": record, "database": database }))?;
        return Ok(Status::Valid);
    }
    print(&format!(
        "{file} is written: {}.\nRehearse it in a minute with: loadline run {file} --quick\nThen run it with: loadline run {file}\n",
        meaning(&AIMS, aim)
    ))?;
    Ok(Status::Valid)
}

/// Writes a file that does not exist yet.
pub fn write_new(path: &Path, text: &str) -> Result<(), Failure> {
    let refused = |error: std::io::Error| {
        let what = format!("it cannot be written: {error}");
        Failure::refused(Refusal::at(path.display().to_string(), what, "name another file with --out"))
    };
    let mut file = std::fs::File::options().write(true).create_new(true).open(path).map_err(refused)?;
    file.write_all(text.as_bytes()).map_err(|error| {
        // A partly written study is useless and would block the next attempt.
        let _ = std::fs::remove_file(path);
        refused(error)
    })
}

fn meaning(choices: &[Choice], chosen: &str) -> &'static str {
    choices.iter().find(|(name, _)| *name == chosen).map_or("", |(_, meaning)| meaning)
}

/// Returns the answer given as an option or on the terminal; the first choice if nobody can be asked.
fn answer(
    option: &str,
    question: &str,
    choices: &'static [Choice],
    given: Option<&str>,
    asks: bool,
) -> Result<&'static str, Failure> {
    let find = |text: &str| {
        let numbered = text.parse::<usize>().ok().and_then(|number| choices.get(number.checked_sub(1)?));
        numbered.or_else(|| choices.iter().find(|(name, _)| name.eq_ignore_ascii_case(text))).map(|(name, _)| *name)
    };
    let names = choices.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    if let Some(given) = given {
        return find(given).ok_or_else(|| {
            Failure::refused(Refusal::at(
                option,
                format!("\"{given}\" is none of what it can be"),
                format!("write one of {names}"),
            ))
        });
    }
    let first = choices[0].0;
    if !asks {
        note(&format!("{option} is not given: {first}, {}", choices[0].1));
        return Ok(first);
    }
    for _ in 0..ASKED_MOST {
        note(question);
        for (number, (name, meaning)) in choices.iter().enumerate() {
            note(&format!("  {} {name:<10} {meaning}", number + 1));
        }
        eprint!("[{first}] ");
        let mut line = String::new();
        let read =
            std::io::stdin().lock().read_line(&mut line).map_err(|error| Failure::broken(anyhow::Error::new(error)))?;
        match line.trim() {
            "" if read > 0 => return Ok(first),
            text => match find(text) {
                Some(found) => return Ok(found),
                None => note(&format!("\"{text}\" is none of them: write a number or a name")),
            },
        }
        if read == 0 {
            break;
        }
    }
    Err(Failure::refused(Refusal::at(option, "no answer was given", format!("give it as an option, one of {names}"))))
}

fn study_text(aim: &str, record: &str, database: &str) -> String {
    let (question, workload) = match aim {
        "layout" => ("Which table layout takes the most records per second?", layouts(record)),
        "line" => ("At which rate of records are 99 % still stored within 20 ms?", line()),
        _ => ("How does throughput grow with the number of clients?", clients()),
    };
    let server = match database {
        "sqlite" => String::new(),
        name => format!(
            "# url = \"{}://me@localhost/d\"     # a server of your own; without it a private one is started and removed again\n\
             # config = {{ … }}                # settings of the private server; each can be a factor\n",
            if name == "postgres" { name } else { "mysql" }
        ),
    };
    format!(
        "# Every setting: docs/reference.md, or loadline schema study.\n\
         name     = \"{aim}-{record}\"\n\
         question = \"{question}\"\n\n\
         [database]\nname = \"{database}\"        # sqlite, mariadb, mysql, postgres; also a factor: \"database.name\" = [\"sqlite\", \"mariadb\"]\n{server}\n\
         {}\n{workload}",
        records(record, aim)
    )
}

fn records(record: &str, aim: &str) -> String {
    // Clients that read need existing records.
    let rows = if aim == "clients" { "rows = 100000              # that are there when a trial begins\n" } else { "" };
    let columns = match record {
        "custom" => {
            "identity = [ { name = \"probe\", kind = \"int\", fill = { uniform = [1, 500] } } ]\n\
             values   = [ { name = \"rtt_ms\", kind = \"float\", fill = { normal = [20.0, 5.0] } },\n             \
             { name = \"note\", kind = \"text\", fill = { random_text = 40 }, hot = false } ]\n"
        }
        "sensor" => "length = 200               # bytes of content of an event\n",
        _ => "",
    };
    format!("[record]\ntype = \"{record}\"\n{rows}{columns}")
}

/// The part that all these studies share.
const REPEAT: &str = "\n[repeat]                   # until the interval of each figure is within 5 %\nrule   = \"interval\"\nwithin = 0.05\nleast  = 5\nmost   = 15\n";

fn layouts(record: &str) -> String {
    let layouts =
        if record == "usertable" { "\"wide\", \"json\", \"eav\"" } else { "\"wide\", \"star\", \"star-hot\"" };
    format!(
        "[workload]\nname  = \"write\"\nbatch = 50                 # records of a transaction\n\n[load]\nduration = \"2s\"\n\n\
         [factors]                  # every combination is measured, in random order\n\"layout.name\"  = [{layouts}]\n\"load.clients\" = [1, 4, 16]\n{REPEAT}"
    )
}

fn line() -> String {
    "[layout]\nname = \"wide\"\n\n[workload]\nname = \"write\"\n\n\
     [load]                     # records arrive whether or not the database keeps up\narrivals = \"poisson\"\nclients  = 16             # connections that serve them\nrate     = 200            # where the search begins\nduration = \"2s\"\n\n\
     [goal]\nquantile = 0.99\nbelow    = \"20ms\"\n"
        .to_owned()
}

fn clients() -> String {
    format!(
        "[layout]\nname = \"wide\"\n\n[workload]\nname = \"mix\"\nmix  = {{ read = 80, update = 20 }}\n\n[load]\nduration = \"2s\"\n\n\
         [factors]\n\"load.clients\" = [1, 2, 4, 8, 16, 32]\n{REPEAT}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_gives_a_study_that_can_be_read() {
        let names = super::super::names();
        for (aim, _) in AIMS {
            for (record, _) in RECORDS {
                for (database, _) in DATABASES {
                    let text = study_text(aim, record, database);
                    if let Err(errors) = study::load_text("study.toml", &text, &[], None, false, &names) {
                        panic!("{aim}, {record}, {database}: {errors}\n{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn answers_are_names_or_numbers() {
        let given = |text| answer("--record", "", &RECORDS, Some(text), false);
        assert_eq!((given("2"), given("Custom")), (Ok("sensor"), Ok("custom")));
        assert!(given("0").is_err() && given("5").is_err());
        let refused = given("csv").unwrap_err().to_string();
        assert_eq!(refused, "--record: \"csv\" is none of what it can be; write one of qos, sensor, usertable, custom");
        assert_eq!(answer("--record", "", &RECORDS, None, false), Ok("qos"));
    }
}
