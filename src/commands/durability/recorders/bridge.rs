//! Brings what a broker of MQTT has taken to the store behind it: a subscriber with a session that the broker keeps, which acknowledges a message when the store
//! has it.
//!
//! Main type: [`Bridge`]. Invariant: a message is acknowledged to the broker only when the store has answered 2xx, so that nothing can be lost here.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};

use super::connection::{Connection, Said};
use super::http::HttpConnection;
use super::mqtt::{Message, Session};
use crate::load::no_thread;

/// The name under which the broker keeps the session.
const NAME: &str = "loadline-bridge";
/// Where the store takes in.
const PATH: &str = "/write";
/// Pause before the next attempt.
const AGAIN_AFTER: Duration = Duration::from_millis(20);
/// How long messages are waited for before it is looked whether the life is over.
const WAITS: Duration = Duration::from_millis(100);

/// A bridge that works until it is dropped.
pub struct Bridge {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<anyhow::Result<()>>>,
}

impl Bridge {
    /// Subscribes to all messages below a topic, and brings them to a store from then on.
    ///
    /// # Errors
    /// Fails if the broker cannot be reached or refuses.
    pub fn start(broker: SocketAddr, topic: &str, store: SocketAddr) -> anyhow::Result<Self> {
        let first = Session::open(broker, NAME, topic).context("the bridge behind the recorder")?;
        let is_over = Arc::new(AtomicBool::new(false));
        let work = Work { broker, topic: topic.to_owned(), store, is_over: Arc::clone(&is_over), connection: None };
        let thread = std::thread::Builder::new().name("bridge".to_owned()).spawn(move || work.run(first));
        let thread = thread.map_err(|error| anyhow!(no_thread("a bridge", &error)))?;
        Ok(Bridge { is_over, thread: Some(thread) })
    }

    /// Checks that the bridge works.
    ///
    /// # Errors
    /// Fails with the reason for which it has ended.
    pub fn check(&mut self) -> anyhow::Result<()> {
        match self.thread.take_if(|thread| thread.is_finished()) {
            Some(thread) => thread.join().map_err(|_| anyhow!("the bridge behind the recorder panicked"))?,
            None => Ok(()),
        }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // What it has to say is of no use any more.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

struct Work {
    broker: SocketAddr,
    topic: String,
    store: SocketAddr,
    is_over: Arc<AtomicBool>,
    connection: Option<HttpConnection>,
}

impl Work {
    fn run(mut self, first: Session) -> anyhow::Result<()> {
        let mut session = Some(first);
        while !self.is_over.load(Ordering::Relaxed) {
            let Some(mut open) = session.take().or_else(|| Session::open(self.broker, NAME, &self.topic).ok()) else {
                std::thread::sleep(AGAIN_AFTER);
                continue;
            };
            let Ok(messages) = open.receive(WAITS) else { continue };
            if self.bring(&messages)? && open.acknowledge(&messages).is_ok() {
                session = Some(open);
            }
        }
        Ok(())
    }

    /// Brings messages to the store, however long it is away; returns false if the life is over before.
    fn bring(&mut self, messages: &[Message]) -> anyhow::Result<bool> {
        let lines: Vec<&str> =
            messages.iter().filter_map(|message| std::str::from_utf8(&message.payload).ok()).collect();
        let lines = lines.concat();
        let count = lines.lines().count() as u64;
        if count == 0 {
            return Ok(true);
        }
        while !self.is_over.load(Ordering::Relaxed) {
            let open = || HttpConnection::open(self.store, PATH.to_owned(), Vec::new()).ok();
            let said = match self.connection.take().or_else(open) {
                Some(mut connection) => {
                    let answered = connection.send(&lines, count);
                    let goes_on = answered.as_ref().is_ok_and(|(_, goes_on)| *goes_on);
                    self.connection = Some(connection).filter(|_| goes_on);
                    answered.map_or(Said::Later, |(said, _)| said)
                }
                None => Said::Later,
            };
            match said {
                Said::Acknowledged => return Ok(true),
                Said::Refused(says) => bail!("the store refuses what the broker has brought: {says}"),
                Said::Later => std::thread::sleep(AGAIN_AFTER),
            }
        }
        Ok(false)
    }
}
