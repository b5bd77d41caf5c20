//! A study drawn from a database that is there. See [`draft`].

#![cfg(not(fuzzing))]

use loadline_base::{operation, random, trial, units};
use loadline_database::database;

pub mod draft;
