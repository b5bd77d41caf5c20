//! The choice among a study's own tables and statements, by the design and the database of a case.
//!
//! Main type: [`Chosen`].

use std::fmt;

use super::names::Names;
use crate::written::place::Errors;
use crate::written::section::Section;
use crate::written::tree::{Content, Node, Table};
use crate::written::{Absent, Kind, Setting};

/// The setting for the design that a table or a statement belongs to.
pub(super) const DESIGN: Setting = Setting::new(
    "design",
    Kind::Text,
    Absent::Means("it is in every design"),
    "The design to which it belongs. Cases with another `workload.design` do not use it.",
);

/// The setting for the databases that a table or a statement is for.
pub(super) const DATABASES: Setting = Setting::new(
    "databases",
    Kind::Texts,
    Absent::Means("all"),
    "The databases for which it is meant, as in `[\"mariadb\", \"mysql\"]`. Cases with another `database.name` do not use it.",
);

/// The design and the database of a case, by which tables and statements are chosen.
pub struct Chosen<'c> {
    design: Option<&'c str>,
    database: &'c str,
    names: &'c Names,
}

impl fmt::Display for Chosen<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.design {
            Some(design) => write!(out, "workload.design \"{design}\" on database.name \"{}\"", self.database),
            None => write!(out, "database.name \"{}\"", self.database),
        }
    }
}

impl<'c> Chosen<'c> {
    /// Reads the design and the database from a tree.
    pub fn of(root: &'c Table, names: &'c Names) -> Self {
        Chosen {
            design: text_at(root, "workload.design"),
            database: text_at(root, "database.name").unwrap_or("sqlite"),
            names,
        }
    }

    /// Returns whether a table or a statement is for the case.
    pub fn has(&self, section: &Section, errors: &mut Errors) -> bool {
        let design = section.text("design", errors);
        for Node { place, content } in section.list("databases", errors) {
            if let Content::Text(name) = content
                && let Err(fault) = self.names.databases.check(name)
            {
                errors.push(*place, fault);
            }
        }
        let databases = section.texts("databases", errors);
        let is_database = databases.is_empty() || databases.iter().any(|name| name == self.database);
        is_database && design.is_none_or(|design| self.design == Some(design))
    }
}

/// Returns the text of a setting.
pub(super) fn text_at<'t>(root: &'t Table, setting: &str) -> Option<&'t str> {
    match &root.find(setting)?.node.content {
        Content::Text(text) => Some(text),
        _ => None,
    }
}
