//! PostgreSQL.

pub mod recipe;
