//! MySQL and MariaDB.

pub mod recipe;
