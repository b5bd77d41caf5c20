//! What the checks of single sections find.

use crate::fault::Fault;

/// Settings that do not go together, and why.
pub type Clash = (&'static [&'static str], Fault);
