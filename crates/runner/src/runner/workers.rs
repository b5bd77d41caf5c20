//! Further processes of loadline's own program: each is given an order as a line of JSON and answers `ready`, or why not.
//!
//! Main functions: [`start_worker`], and [`order_of`] and [`say`], which the process uses.

use std::io::Write;

use anyhow::{Context, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::server::Worker;

/// Starts loadline's own program for a part of the work, and waits until it is ready.
///
/// # Errors
/// When it cannot be started, or ends before.
pub fn start_worker(what: &str, order: &impl Serialize) -> anyhow::Result<Worker> {
    let about = || format!("the process \"work {what}\"");
    let mut worker = Worker::start(&["work", what]).with_context(about)?;
    worker.tell(&serde_json::to_string(order)?).with_context(about)?;
    match worker.hear().with_context(about)?.as_str() {
        "ready" => Ok(worker),
        why => bail!("{}: {why}", about()),
    }
}

/// The order that the standard input begins with.
///
/// # Errors
/// When it is none.
pub fn order_of<T: DeserializeOwned>() -> anyhow::Result<T> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    serde_json::from_str(&line).context("the order")
}

/// Says a line to whoever started this process.
///
/// # Errors
/// When nobody listens any more: loadline has ended, and this process ends too.
pub fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
