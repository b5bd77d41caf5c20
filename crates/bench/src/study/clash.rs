//! The result of the checks of single sections.

use crate::fault::Fault;

/// Settings that cannot be combined, and the reason.
pub type Clash = (&'static [&'static str], Fault);
