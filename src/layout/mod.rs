//! layout.
