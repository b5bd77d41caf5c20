//! SQLite does what every database must do.

use loadline::database::conformance::conformance;
use loadline::database::sqlite::Sqlite;
use loadline::trial::DatabaseSettings;

#[test]
fn sqlite_conforms_with_and_without_a_write_ahead_log() {
    for mode in ["wal", "delete"] {
        let path = std::env::temp_dir().join(format!("loadline-conformance-{mode}-{}.db", std::process::id()));
        let remove = || {
            for suffix in ["", "-wal", "-shm", "-journal"] {
                let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
            }
        };
        remove();
        let database = Sqlite::open(&DatabaseSettings {
            path: Some(path.to_string_lossy().into_owned()),
            config: [("journal_mode".to_owned(), mode.to_owned())].into(),
            ..DatabaseSettings::default()
        });
        let failures = conformance(&database.unwrap());
        remove();
        assert!(failures.is_empty(), "journal_mode {mode}:\n{}", failures.join("\n"));
    }
}
