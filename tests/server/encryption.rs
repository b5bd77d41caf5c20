//! Encryption of a database's files: what is in a table can be read on the disk without it, and not with it.

use std::path::Path;

use loadline::database::mysql::recipe::MARIADB;
use loadline::database::{self, Session};
use loadline::server::Server;
use loadline::trial::DatabaseSettings;

const PLATE: &str = "GD 7731X plain as day";

/// The files below a directory that contain the plate, by name.
fn files_with_plate(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files_with_plate(&entry));
        } else if std::fs::read(&entry).unwrap().windows(PLATE.len()).any(|bytes| bytes == PLATE.as_bytes()) {
            found.push(entry.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

/// The files of a server, stopped in order, that contain what was stored in a table of it.
fn files_of(encryption: Option<&str>) -> Vec<String> {
    let settings = DatabaseSettings { encryption: encryption.map(str::to_owned), ..DatabaseSettings::default() };
    let server = Server::start(&MARIADB, &settings, None)
        .unwrap_or_else(|error| panic!("this test needs an installed server: {error}"));
    let mariadb = database::find("mariadb").unwrap();
    let opened = mariadb.open_sql(&settings, Some(server.endpoint())).unwrap();
    let mut session: Box<dyn Session> = opened.connect().unwrap();
    session.run("CREATE TABLE violation (camera INT PRIMARY KEY, plate VARCHAR(40)) ENGINE=InnoDB").unwrap();
    session.run(&format!("INSERT INTO violation VALUES (1, '{PLATE}')")).unwrap();
    assert_eq!(session.query("SELECT plate FROM violation").unwrap()[0][0].as_deref(), Some(PLATE));
    // Without this the row may be in the log alone, which a later server would read.
    session.run("FLUSH TABLES violation FOR EXPORT").unwrap();
    session.run("UNLOCK TABLES").unwrap();
    drop(session);
    let name = encryption.unwrap_or("none");
    let kept = std::env::temp_dir().join(format!("loadline-encryption-{name}-{}", std::process::id()));
    server.stop_and_keep(&kept).unwrap().unwrap();
    let found = files_with_plate(&kept);
    std::fs::remove_dir_all(&kept).unwrap();
    found
}

#[test]
fn what_is_stored_can_be_read_on_the_disk_only_without_encryption() {
    let plain = files_of(None);
    assert!(plain.iter().any(|name| name == "violation.ibd"), "{plain:?}");
    for cipher in ["aes128", "aes256"] {
        assert_eq!(files_of(Some(cipher)), Vec::<String>::new(), "{cipher}");
    }
}
