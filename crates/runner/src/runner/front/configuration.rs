//! The configuration of a private recorder: the database behind it, layout, spool and writers.
//!
//! Main functions: [`configuration`], for a recorder that takes lines; [`database_section`]. Invariant: no configuration contains a password.

use std::fmt::Write;

use anyhow::bail;

use super::STREAM;
use crate::database::Endpoint;
use crate::runner::stage::Current;
use crate::trial::{RecorderSettings, Settings};

/// Returns the recorder's configuration without its listening addresses, and the database's password.
pub(super) fn configuration(
    settings: &Settings,
    recorder: &RecorderSettings,
    current: &Current,
    hot: &[String],
    broker: Option<&Endpoint>,
) -> anyhow::Result<(String, String)> {
    let (mut text, password) = database_section(settings, current)?;
    let _ = write!(text, "[layout]\nname = {}\n", quoted(&settings.layout.name));
    let _ = writeln!(text, "time_index = {}", settings.layout.recorded_index);
    if settings.layout.name == "star-hot" {
        let hot: Vec<_> = hot.iter().map(|name| quoted(name)).collect();
        let _ = writeln!(text, "hot = [{}]", hot.join(", "));
    }
    let _ = write!(text, "[spool]\npath = \"data/spool\"\n[writer]\ncount = {}\ndrain = \"60s\"\n", recorder.writers);
    if let Some(batch) = recorder.batch {
        let _ = writeln!(text, "batch = {batch}");
    }
    text += &broker.map(|broker| nats_section(broker, recorder)).unwrap_or_default();
    Ok((text, password))
}

/// Returns the section on the NATS server that messages are taken from, or whose stream recorders share. With a file of authorities the recorder uses TLS.
fn nats_section(broker: &Endpoint, recorder: &RecorderSettings) -> String {
    let Some((host, port)) = &broker.tcp else { return String::new() };
    let url = quoted(&format!("nats://{host}:{port}"));
    let authority = broker.tls.authorities.as_ref();
    let authority = authority.map(|file| format!("authority = {}\n", quoted(&file.display().to_string())));
    let shared = if recorder.is_shared() { "shared = true\npublish = true\n" } else { "" };
    let parts = recorder.parts.map(|parts| format!("partitions = {parts}\n"));
    format!(
        "[intake.nats]\nurl = {url}\nstream = \"{STREAM}\"\nconsumer = \"loadline\"\n{shared}{}{}",
        parts.unwrap_or_default(),
        authority.unwrap_or_default()
    )
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// Returns the section on the database, and the database's password.
///
/// # Errors
/// Fails if a recorder cannot write to this database.
pub fn database_section(settings: &Settings, current: &Current) -> anyhow::Result<(String, String)> {
    let database = &settings.database;
    let mut text = format!("[database]\nname = {}\n", quoted(&database.name));
    let mut password = String::new();
    match (current.endpoint(), current.file()) {
        (Some(endpoint), _) => {
            password.clone_from(&endpoint.password);
            let _ = writeln!(text, "url = {}", quoted(&url(&database.name, endpoint)));
        }
        (None, Some(file)) => {
            let _ = writeln!(text, "path = {}", quoted(&std::path::absolute(file)?.display().to_string()));
            if !database.config.is_empty() {
                text.push_str("[database.config]\n");
            }
            for (name, value) in &database.config {
                let _ = writeln!(text, "{} = {}", quoted(name), quoted(value));
            }
        }
        (None, None) => bail!("a recorder cannot write to {}", database.name),
    }
    Ok((text, password))
}

/// Returns the address of a server, without its password.
fn url(name: &str, endpoint: &Endpoint) -> String {
    let encoded = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
        let one = |byte: u8| if plain(byte) { (byte as char).to_string() } else { format!("%{byte:02X}") };
        text.bytes().map(one).collect::<String>()
    };
    let (scheme, option) = if name == "postgres" { ("postgres", "host") } else { ("mysql", "socket") };
    let (user, database) = (encoded(&endpoint.user), encoded(&endpoint.database));
    match (&endpoint.unix, &endpoint.tcp) {
        (Some(socket), _) => {
            let path = match socket.parent().filter(|_| name == "postgres") {
                Some(directory) => directory.display().to_string(),
                None => socket.display().to_string(),
            };
            let port =
                socket.extension().filter(|_| name == "postgres").map(|port| format!("&port={}", port.display()));
            let authority = if name == "postgres" { "" } else { "localhost" };
            format!("{scheme}://{user}@{authority}/{database}?{option}={}{}", encoded(&path), port.unwrap_or_default())
        }
        (None, Some((host, port))) => {
            let tls = &endpoint.tls;
            let files = [
                ("sslrootcert", tls.authorities.as_ref()),
                ("sslcert", tls.identity.as_ref().map(|(certificate, _)| certificate)),
                ("sslkey", tls.identity.as_ref().map(|(_, key)| key)),
            ];
            let mut url = format!("{scheme}://{user}@{host}:{port}/{database}?sslmode={}", tls.mode.name());
            for (name, file) in files {
                file.iter().for_each(|file| url += &format!("&{name}={}", encoded(&file.display().to_string())));
            }
            url
        }
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::tls::{Tls, TlsMode};
    use crate::database::{mysql, postgres};

    #[test]
    fn addresses_of_sockets_are_read_as_they_were() {
        let _ = (&mysql::MARIADB, &postgres::POSTGRES);
        let read = |name: &str| crate::database::find(name).and_then(|entry| entry.read_url).unwrap();
        let user = ("load line".to_owned(), "m@".to_owned());
        let socket = |path: &str| Endpoint {
            unix: Some(path.into()),
            user: user.0.clone(),
            database: user.1.clone(),
            ..Endpoint::default()
        };
        for (name, path) in [("mariadb", "/tmp/a b/x.sock"), ("postgres", "/tmp/a b/.s.PGSQL.5433")] {
            let endpoint = socket(path);
            let read = read(name)(&url(name, &endpoint)).unwrap();
            assert_eq!(
                (read.unix, read.user, read.database),
                (endpoint.unix, endpoint.user, endpoint.database),
                "{name}"
            );
        }
        let tcp = Endpoint { unix: None, tcp: Some(("127.0.0.1".to_owned(), 3307)), ..socket("/x") };
        assert_eq!(read("mariadb")(&url("mariadb", &tcp)).unwrap().tcp, tcp.tcp);
        let identity = Some(("/a b/me.pem".into(), "/a b/me.key".into()));
        let authorities = Some("/a b/ca.pem".into());
        for (tls, name) in [
            (Tls::default(), "postgres"),
            (Tls { mode: TlsMode::VerifyFull, authorities, identity, ..Tls::default() }, "mariadb"),
        ] {
            let asked = Endpoint { tls: tls.clone(), ..tcp.clone() };
            assert_eq!(read(name)(&url(name, &asked)).unwrap().tls, tls);
        }
    }
}
