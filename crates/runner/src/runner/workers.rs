//! Further processes of loadline's own program: each gets an order as a line of JSON and answers `ready`, or the reason why not.
//!
//! Main functions: [`start_worker`], and [`order_of`] and [`say`], which the process uses.

use std::io::Write;

use anyhow::{Context, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::server::Worker;

/// Starts loadline's own program for a part of the work and waits until it is ready.
///
/// # Errors
/// Fails if the process cannot be started or ends early.
pub fn start_worker(what: &str, order: &impl Serialize) -> anyhow::Result<Worker> {
    let about = || format!("the process \"work {what}\"");
    let mut worker = Worker::start(&["work", what]).with_context(about)?;
    worker.tell(&serde_json::to_string(order)?).with_context(about)?;
    match worker.hear().with_context(about)?.as_str() {
        "ready" => Ok(worker),
        why => bail!("{}: {why}", about()),
    }
}

/// Reads the order at the start of the standard input.
///
/// # Errors
/// Fails if the first line is not an order.
pub fn order_of<T: DeserializeOwned>() -> anyhow::Result<T> {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    serde_json::from_str(&line).context("the order")
}

/// Writes a line to the process that started this one.
///
/// # Errors
/// Fails if the reader is gone: loadline has ended, and this process ends too.
pub fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
