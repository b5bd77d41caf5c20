//! Drafts a study from an existing database. See [`draft`].

#[cfg(test)]
use loadline_base::record;
use loadline_base::{operation, random, statement, trace, trial, units};
use loadline_database::database;

pub mod draft;
