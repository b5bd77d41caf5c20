//! Placeholder that is replaced before anything is integrated.
fn main() {}
