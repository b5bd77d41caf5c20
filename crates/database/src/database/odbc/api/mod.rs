//! ODBC's C interface as types that own their memory. Main types: [`Library`], [`Connection`] and [`Statement`].
//!
//! All code that the compiler cannot check is in this module. Invariant: each handle has one owner, which frees it, and owns what it was made from. No length that a driver
//! states is used before it is compared with the buffer.

mod connection;
mod parameters;
mod refusal;
mod statement;
mod symbols;

use std::path::Path;

use crate::database::loading::Loaded;

pub use connection::{Connection, Executing, Info};
pub use refusal::Record;
pub use statement::Statement;

use connection::is_done;
use symbols::{Handle, Symbols, kind, load};

/// `SQL_ATTR_ODBC_VERSION` and `SQL_OV_ODBC3`
const ODBC_VERSION: (i32, usize) = (200, 3);

/// A loaded driver manager with its environment. It stays loaded until the process ends.
#[derive(Debug)]
pub struct Library {
    symbols: Symbols,
    environment: Environment,
}

/// The handle of an environment.
#[derive(Debug)]
struct Environment(Handle);

// SAFETY: driver managers lock their environment, so that any thread may make connections in it.
unsafe impl Send for Environment {}
// SAFETY: as above.
unsafe impl Sync for Environment {}

/// The driver managers that this process has loaded.
static LOADED: Loaded<Library> = Loaded::new();

impl Library {
    /// Returns the driver manager in a file, loaded now if it is not loaded yet.
    ///
    /// # Errors
    /// Fails with a sentence if the file is no driver manager.
    pub fn at(path: &Path) -> Result<&'static Library, String> {
        LOADED.at(path, || {
            let symbols = load(path)?;
            let environment = Environment::new(&symbols);
            let environment = environment.ok_or_else(|| format!("{} has no environment to give", path.display()))?;
            Ok(Library { symbols, environment })
        })
    }
}

impl Environment {
    fn new(symbols: &Symbols) -> Option<Self> {
        let mut handle = std::ptr::null_mut();
        let (attribute, version) = ODBC_VERSION;
        // SAFETY: an environment is made from nothing, and the result is a place on this stack. The attribute is a number in the place of a pointer.
        let is_made = unsafe {
            is_done((symbols.AllocHandle)(kind::ENVIRONMENT, std::ptr::null_mut(), &mut handle))
                && is_done((symbols.SetEnvAttr)(handle, attribute, std::ptr::without_provenance_mut(version), 0))
        };
        is_made.then_some(Environment(handle))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::sync::{Arc, OnceLock};
    use std::time::Duration;

    use super::*;
    use crate::database::DatabaseError;
    use crate::record::Cells;

    /// A connection to a driver that lies about what the text of a statement says.
    fn liar() -> Arc<Connection> {
        static LIAR: OnceLock<&'static Library> = OnceLock::new();
        let library = LIAR.get_or_init(|| {
            let file = std::env::temp_dir().join(format!("loadline-lying-{}.so", std::process::id()));
            let source = concat!(env!("CARGO_MANIFEST_DIR"), "/src/database/odbc/api/lying.c");
            let built = Command::new("cc").args(["-shared", "-fPIC", "-O1", "-o"]).arg(&file).arg(source).status();
            assert!(built.unwrap().success(), "cc is installed; ./check does that");
            let library = Library::at(&file).unwrap();
            std::fs::remove_file(file).unwrap();
            library
        });
        Connection::open(library, "Driver=liar", Duration::from_secs(1)).unwrap()
    }

    fn read_of_liar(sql: &str) -> Result<Cells, DatabaseError> {
        let connection = liar();
        assert_eq!(connection.info(Info::System), "PostgreSQL");
        let mut statement = connection.execute_text(sql)?;
        let mut rows = Cells::new();
        while statement.is_query()? && statement.fetch()? {
            statement.read(&mut rows, false)?;
        }
        Ok(rows)
    }

    #[test]
    fn what_a_driver_states_is_compared_with_what_there_is() {
        for (lie, part) in [
            ("length", "no value, or no length"),
            ("total", "no value, or no length"),
            ("odd", "no UTF-16"),
            ("half", "no UTF-16"),
            ("endless", "more than 64 MiB"),
            ("number", "BBB"),
            ("failed", "BBB"),
        ] {
            let told = read_of_liar(lie).unwrap_err().to_string();
            assert!(told.contains(part) && told.len() < 3_000, "{lie}: {told}");
        }
        assert!(read_of_liar("columns").unwrap().is_empty(), "less than no columns are none");
        let untold = read_of_liar("untold").unwrap();
        assert_eq!(untold.text_bytes(), 3 * (64 << 10), "pieces of unknown length are whole");
        assert_eq!(read_of_liar("nothing").unwrap().text_bytes(), 8);
    }

    #[test]
    fn parameters_and_changes_that_a_driver_does_not_count_are_errors() {
        let connection = liar();
        let told = Statement::prepared(&connection, "parameters", Vec::new(), true).unwrap_err().to_string();
        assert!(told.contains("-3 parameters where there are 0 values"), "{told}");
        let mut statement = Statement::prepared(&connection, "changes", Vec::new(), true).unwrap();
        statement.execute(&Cells::new(), 0).unwrap();
        assert!(!statement.is_query().unwrap());
        assert!(statement.changed().unwrap_err().to_string().contains("how many rows"));
    }

    #[test]
    fn a_file_that_loads_no_drivers_is_refused() {
        let told = Library::at(Path::new("/nonexistent/libodbc.so.2")).unwrap_err();
        assert!(told.starts_with("/nonexistent/libodbc.so.2 cannot be loaded"), "{told}");
        let told = Library::at(Path::new("libc.so.6")).unwrap_err();
        assert!(told.contains("it has no function SQLAllocHandle"), "{told}");
    }
}
