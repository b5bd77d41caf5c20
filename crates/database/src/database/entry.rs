//! Members of the registry: what there is to know of a database before it is opened, and how it is. Main type: [`Entry`].

use std::collections::BTreeMap;

use super::level::Deciding;
use super::recipe::Recipe;
use super::{Capabilities, Capability, Database, DatabaseError, Endpoint, Known, Level, Target, with};
use crate::trial::DatabaseSettings;

/// Opens a database with its settings, at an endpoint where it is a server.
pub type OpenSql = fn(&DatabaseSettings, Option<&Endpoint>) -> Result<Box<dyn Database>, DatabaseError>;
/// The same of a store that speaks no SQL.
pub type OpenStore = fn(&DatabaseSettings, Option<&Endpoint>) -> Result<Box<dyn Target>, DatabaseError>;

/// How a member of the registry is opened, with its settings, and at an endpoint where it is a server.
pub enum Opens {
    /// As a database that speaks SQL.
    Sql(OpenSql),
    /// As a store that speaks none.
    Store(OpenStore),
}

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
    /// How it is opened. Servers get the endpoint of the private server or of `database.url`; embedded databases get none.
    pub opens: Opens,
    /// How a private server is started; none for embedded databases.
    pub recipe: Option<&'static dyn Recipe>,
    /// Reads `database.url`; none for embedded databases.
    pub read_url: Option<ReadUrl>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// Names of its processes, where they are looked for; empty where it has none of its own.
    pub processes: &'static [&'static str],
    /// What an acknowledged write survives by what is known of the settings that decide it, and whether tables are of loadline's making; none where nothing is
    /// said of it.
    pub level: Option<fn(&Known<'_>, bool) -> Option<Level>>,
    /// The settings that give each level to tables of its default engine, for `database.durability`; a level without an entry cannot be had by settings.
    pub levels: &'static [LevelSettings],
}

/// A level, and the settings of the database that give it.
pub type LevelSettings = (Level, &'static [(&'static str, &'static str)]);

impl Entry {
    /// What an acknowledged write survives with these settings; none where it is not known. `facts` is what the server told, `makes_tables` whether they are
    /// of loadline's making, whose engine is known.
    pub fn level(
        &self,
        settings: &DatabaseSettings,
        facts: &BTreeMap<String, String>,
        makes_tables: bool,
    ) -> Option<Level> {
        self.level.and_then(|level| level(&Known::new(settings, facts), makes_tables))
    }

    /// The settings that give a level; none where none do.
    pub fn settings_for(&self, level: Level) -> Option<&'static [(&'static str, &'static str)]> {
        self.levels.iter().find(|(known, _)| *known == level).map(|(_, settings)| *settings)
    }

    /// The settings that decide this, for tables of loadline's making.
    pub fn deciding(&self, settings: &DatabaseSettings, facts: &BTreeMap<String, String>) -> Deciding {
        let known = Known::new(settings, facts);
        self.level.and_then(|level| level(&known, true));
        known.into_asked()
    }

    /// Opens it.
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

    /// Opens it as something that speaks SQL.
    ///
    /// # Errors
    /// As [`Entry::open`], and when it speaks none.
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
