//! The programs compared with. The main type is [`Reference`]; those in C are compiled here.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A way to write many rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference {
    /// MariaDB's bulk execute of a prepared INSERT, through its C library.
    MariadbExecute,
    /// MariaDB's LOAD DATA LOCAL, through its C library.
    MariadbLoad,
    /// PostgreSQL's binary COPY, through libpq.
    PostgresCopy,
    /// A prepared INSERT through SQLite's C interface.
    SqliteInsert,
}

/// All references.
pub static ALL: [Reference; 4] =
    [Reference::MariadbExecute, Reference::MariadbLoad, Reference::PostgresCopy, Reference::SqliteInsert];

impl Reference {
    /// The database, as in the registry.
    pub fn database(self) -> &'static str {
        match self {
            Reference::MariadbExecute | Reference::MariadbLoad => "mariadb",
            Reference::PostgresCopy => "postgres",
            Reference::SqliteInsert => "sqlite",
        }
    }

    /// The statement used.
    pub fn statement(self) -> &'static str {
        match self {
            Reference::MariadbExecute => "execute",
            Reference::MariadbLoad => "load",
            Reference::PostgresCopy => "copy",
            Reference::SqliteInsert => "insert",
        }
    }
}

/// A program in C of this directory.
struct Source {
    name: &'static str,
    /// What tells where the headers are, and where they are on Debian.
    headers: (&'static [&'static str], &'static str),
    library: &'static str,
    package: &'static str,
}

const MARIADB: Source = Source {
    name: "mariadb_bulk",
    headers: (&["mariadb_config", "--include"], "-I/usr/include/mariadb"),
    library: "-lmariadb",
    package: "libmariadb-dev",
};

const POSTGRES: Source = Source {
    name: "postgres_bulk",
    headers: (&["pkg-config", "--cflags", "libpq"], "-I/usr/include/postgresql"),
    library: "-lpq",
    package: "libpq-dev",
};

/// Compiles the program that writes to a server.
pub fn compile(database: &str) -> PathBuf {
    let source = if database == "mariadb" { MARIADB } else { POSTGRES };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/bulk");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.name);
    let (asked, usual) = source.headers;
    let headers = Command::new(asked[0]).args(&asked[1..]).output().ok().filter(|output| output.status.success());
    let headers = headers.map_or(usual.to_owned(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let status = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-o"])
        .arg(&program)
        .arg(directory.join(source.name).with_extension("c"))
        .args(headers.split_whitespace())
        .arg(source.library)
        .status()
        .unwrap_or_else(|error| panic!("cc cannot be executed ({error}): install the Debian package gcc"));
    assert!(
        status.success(),
        "{}.c does not compile: is the Debian package {} installed (apt-get install {})?",
        source.name,
        source.package,
        source.package
    );
    program
}
