//! Members of the registry: a database's name, abilities and settings before it is opened, and the function that opens it. Main type: [`Entry`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::level::Deciding;
use super::recipe::Recipe;
use super::{Capabilities, Capability, Clustered, Database, DatabaseError, Endpoint, Known, Level, Target, with};
use crate::fault::Fault;
use crate::statement::{Program, Request};
use crate::trial::DatabaseSettings;

/// Opens a database with its settings; servers also get an endpoint.
pub type OpenSql = fn(&DatabaseSettings, Option<&Endpoint>) -> Result<Box<dyn Database>, DatabaseError>;
/// Opens a store that speaks no SQL; arguments as in [`OpenSql`].
pub type OpenStore = fn(&DatabaseSettings, Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError>;

/// The function that opens a member of the registry.
pub enum Opens {
    /// For a database that speaks SQL.
    Sql(OpenSql),
    /// For a store that speaks no SQL.
    Store(OpenStore),
}

/// Finds the file of a library. The error says how to get it.
pub type FindLibrary = fn() -> Result<PathBuf, Fault>;

/// Returns why a database with these settings cannot execute a program; `None` where it can.
pub type Refuses = fn(&Program, &DatabaseSettings) -> Option<String>;

/// Returns why a database cannot store the rows of a request of a program; `None` where it can.
pub type RefusesRows = fn(&Program, &Request) -> Option<String>;

/// Reads `database.url`.
pub type ReadUrl = fn(&str) -> Result<Endpoint, String>;

/// A member of the registry.
pub struct Entry {
    /// Name in studies.
    pub name: &'static str,
    /// One line for `loadline list databases`.
    pub summary: &'static str,
    /// Storage engines that can be chosen, the default first; empty where there is no choice.
    pub engines: &'static [&'static str],
    /// The function that opens it. Servers get the endpoint of the private server or of `database.url`; embedded databases get none.
    pub opens: Opens,
    /// The recipe of a private server; `None` for embedded databases.
    pub recipe: Option<&'static dyn Recipe>,
    /// Finds the library that the database is loaded from at run time, or says how to get it; `None` where it needs none.
    pub library: Option<FindLibrary>,
    /// How its private servers become the nodes of a cluster; `None` where loadline starts no clusters of it.
    pub clustered: Option<&'static dyn Clustered>,
    /// Reads `database.url`; `None` for embedded databases.
    pub read_url: Option<ReadUrl>,
    /// The abilities of the database.
    pub capabilities: Capabilities,
    /// Returns why the database cannot execute a program although it has all capabilities that the program needs; `None` where there is nothing of that kind.
    pub refuses: Option<Refuses>,
    /// Returns why the database cannot store the first rows of a study; `None` where it stores every value of the types that it has.
    pub refuses_rows: Option<RefusesRows>,
    /// The names of its server processes; empty where it has none of its own.
    pub processes: &'static [&'static str],
    /// The function that returns what an acknowledged write survives, from the known settings and whether loadline makes the tables; `None` where the
    /// level of this database is not known.
    pub level: Option<fn(&Known<'_>, bool) -> Option<Level>>,
    /// The settings that give each level to tables of the default engine, for `database.durability`; a level without an entry cannot be reached by settings.
    pub levels: &'static [LevelSettings],
}

/// A level and the settings of the database that give it.
pub type LevelSettings = (Level, &'static [(&'static str, &'static str)]);

impl Entry {
    /// Returns what an acknowledged write survives with these settings; `None` where it is not known. `facts` are the settings that the server told; `makes_tables` is
    /// true if loadline makes the tables, so that their engine is known.
    pub fn level(
        &self,
        settings: &DatabaseSettings,
        facts: &BTreeMap<String, String>,
        makes_tables: bool,
    ) -> Option<Level> {
        self.level.and_then(|level| level(&Known::new(settings, facts), makes_tables))
    }

    /// Returns the settings that give a level; `None` where no settings give it.
    pub fn settings_for(&self, level: Level) -> Option<&'static [(&'static str, &'static str)]> {
        self.levels.iter().find(|(known, _)| *known == level).map(|(_, settings)| *settings)
    }

    /// Returns the settings that decide the level, for tables made by loadline.
    pub fn deciding(&self, settings: &DatabaseSettings, facts: &BTreeMap<String, String>) -> Deciding {
        let known = Known::new(settings, facts);
        self.level.and_then(|level| level(&known, true));
        known.into_asked()
    }

    /// Opens the database or store.
    ///
    /// # Errors
    /// [`DatabaseError::Unavailable`] with the setting that is wrong, and [`DatabaseError::NoFile`].
    pub fn open(
        &self,
        settings: &DatabaseSettings,
        endpoint: Option<&Endpoint>,
    ) -> Result<Box<dyn Target>, DatabaseError> {
        match self.opens {
            Opens::Sql(open) => Ok(open(settings, endpoint)?),
            Opens::Store(open) => open(settings, endpoint),
        }
    }

    /// Opens the database for use with SQL.
    ///
    /// # Errors
    /// The errors of [`Entry::open`], and [`DatabaseError::Unavailable`] when it speaks no SQL.
    pub fn open_sql(
        &self,
        settings: &DatabaseSettings,
        endpoint: Option<&Endpoint>,
    ) -> Result<Box<dyn Database>, DatabaseError> {
        match self.opens {
            Opens::Sql(open) => open(settings, endpoint),
            Opens::Store(_) => {
                let others = with(Capability::Sql).map_or(String::new(), |names| format!("; take {names}"));
                Err(DatabaseError::Unavailable(format!("{} speaks no SQL{others}", self.name)))
            }
        }
    }
}
