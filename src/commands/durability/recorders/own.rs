//! Loadline's own recorder under test: its configuration, with places and addresses of the test.
//!
//! Main function: [`read`]. Invariant: what decides what survives is that of the file; nothing that the file names by a place or an address is touched.

use std::time::Duration;

use anyhow::{Context, bail};

use super::intake::Way;
use super::source::MEASUREMENT;
use super::stream::{CONSUMER, STREAM};
use super::tested::{Own, PATIENCE_S, Tested};
use crate::layout::recorded::Shape;
use crate::recorder::config;
use crate::trial::DatabaseSettings;

/// Sections that name places, addresses and people, or have nothing to do with what survives. Retention would remove what is looked for.
const REMOVED: [&str; 11] = [
    "database",
    "intake",
    "access",
    "inbox",
    "processing",
    "forward",
    "office",
    "metrics",
    "log",
    "query",
    "retention",
];

/// After how long the server delivers messages again that a recorder took and did not store before it was killed, in seconds.
const DELIVERED_AGAIN_S: f64 = 30.0;

/// Reads loadline's own configuration, and makes it that of a test: the spool on the disk that fails, a store of its own. Each intake of the file is tested by
/// itself, without the others.
///
/// # Errors
/// All errors of the file, with their places, and intakes that are not tested.
pub fn read(text: &str, shown: &str) -> anyhow::Result<Vec<Tested>> {
    let config = config::read(text, shown)?;
    if !config.takes_lines() {
        bail!("{shown}: a recorder of blocks is not tested here; name one with [intake.http]");
    }
    if config.intake.nats.as_ref().is_some_and(|nats| nats.shared.is_some()) {
        bail!("{shown}: recorders that share a stream are not tested here; leave intake.nats.shared out");
    }
    let shape = Shape::named(&config.layout.name).with_context(|| format!("{shown}: layout.name"))?;
    let mut table: toml::Table = text.parse().with_context(|| shown.to_owned())?;
    for key in REMOVED {
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
    let program = std::env::current_exe().context("this program's own file")?.display().to_string();
    let DatabaseSettings { name, config: settings, engine, .. } = config.database;
    let database = DatabaseSettings { name, config: settings, engine, ..DatabaseSettings::default() };
    let of_way = |way: Way| {
        let (intake, patience_s) = section(&way);
        Tested {
            name: "loadline".to_owned(),
            command: [program.as_str(), "record", "{files}/recorder.toml"].map(str::to_owned).to_vec(),
            version: vec![program.clone(), "--version".to_owned()],
            files: vec![("recorder.toml".to_owned(), format!("{rest}\n{intake}"))],
            way,
            measurement: MEASUREMENT.to_owned(),
            patience: Duration::from_secs_f64(patience_s),
            own: Some(Own { database: database.clone(), shape }),
        }
    };
    let http = || Way::Http { path: "/write".to_owned(), headers: Vec::new() };
    let intakes = [
        config.intake.http.is_some().then(http),
        config.intake.tcp.is_some().then_some(Way::Tcp),
        config.intake.nats.is_some().then_some(Way::Nats),
    ];
    Ok(intakes.into_iter().flatten().map(of_way).collect())
}

/// Returns the sections of an intake, and how long nothing new may come from it. Behind another intake than HTTP, the recorder says over HTTP when it is ready.
fn section(way: &Way) -> (String, f64) {
    let watched = "[intake.http]\nlisten = \"127.0.0.1:{watched}\"\n";
    match way {
        Way::Tcp => (format!("[intake.tcp]\nlisten = \"127.0.0.1:{{port}}\"\n{watched}"), PATIENCE_S),
        Way::Nats => {
            let nats = format!(
                "[intake.nats]\nurl = \"{{broker}}\"\nstream = \"{STREAM}\"\nconsumer = \"{CONSUMER}\"\n{watched}"
            );
            (nats, DELIVERED_AGAIN_S + PATIENCE_S)
        }
        Way::Http { .. } | Way::Mqtt { .. } => (watched.replace("{watched}", "{port}"), PATIENCE_S),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_own_recorder_is_tested_with_places_of_the_test() {
        let text = "[database]\nname = \"postgres\"\nurl = \"postgres://me@db.example/x\"\n[spool]\npath = \"/var/spool/x\"\nbound = \"8MiB\"\n\
                    [layout]\nname = \"wide\"\n[intake.http]\nlisten = \"0.0.0.0:8086\"\ninsecure = true\ntokens = [\"secret-of-sixteen\"]\n[intake.tcp]\nlisten = \"127.0.0.1:1\"\n";
        let [http, tcp] = read(text, "r.toml").unwrap().try_into().unwrap();
        let (_, made) = &http.files[0];
        for gone in ["db.example", "secret", "0.0.0.0", "/var/spool", "[intake.tcp]"] {
            assert!(!made.contains(gone), "{made}");
        }
        for there in ["path = \"{data}/spool\"", "bound = \"8MiB\"", "listen = \"127.0.0.1:{port}\"", "name = \"wide\""]
        {
            assert!(made.contains(there), "{made}");
        }
        assert!(!made.contains("watched") && tcp.files[0].1.contains("listen = \"127.0.0.1:{watched}\""));
        assert_eq!((http.way.name(), &tcp.way), ("http", &Way::Tcp));
        let own = http.own.unwrap();
        assert_eq!((own.database.name.as_str(), own.database.url, own.shape.name()), ("postgres", None, "wide"));
        assert!(read("[intake.http]\nlisten = 3\n", "r.toml").unwrap_err().to_string().contains("r.toml:2"));
    }
    #[test]
    fn messages_come_from_a_server_of_the_test_and_a_shared_stream_is_refused() {
        let text = "[database]\nname = \"sqlite\"\npath = \"m.db\"\n[layout]\nname = \"star\"\n\
                    [intake.nats]\nurl = \"nats://me:secret@far:4222\"\nstream = \"s\"\nconsumer = \"c\"\n";
        let [tested] = read(text, "r.toml").unwrap().try_into().unwrap();
        let (_, made) = &tested.files[0];
        assert!(!made.contains("far") && made.contains("url = \"{broker}\"\nstream = \"measurements\""), "{made}");
        assert_eq!(tested.way, Way::Nats);
        assert!(tested.patience > Duration::from_secs(30), "the server delivers again after 30 s");
        let shared = text.replace("sqlite\"\npath = \"m.db", "postgres").replace("star", "wide");
        let shared = format!("{shared}shared = true\n");
        assert!(read(&shared, "r.toml").unwrap_err().to_string().contains("leave intake.nats.shared out"));
    }
}
