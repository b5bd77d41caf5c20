//! What came from a client or a database, as it stands in reasons and logs: see [`crate::quote`].

pub(in crate::recorder) use crate::quote::{in_quotes, quoted, shortened};
