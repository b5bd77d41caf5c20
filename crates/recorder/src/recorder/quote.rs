//! Text of a client or a database, quoted for reasons and logs: see [`crate::quote`].

pub(in crate::recorder) use crate::quote::{in_quotes, quoted, shortened};
