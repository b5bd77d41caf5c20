//! A study drawn from a database that is there. See [`draft`].

use loadline_base::{operation, random, statement, trial, units};
use loadline_database::database;

pub mod draft;
