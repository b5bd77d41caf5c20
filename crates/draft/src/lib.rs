//! A study drawn from a database that is there. See [`draft`].

#[cfg(test)]
use loadline_base::record;
use loadline_base::{operation, random, statement, trace, trial, units};
use loadline_database::database;

pub mod draft;
