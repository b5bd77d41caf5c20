//! Counters of uploads. Main type: [`UploadMeter`].

use crate::recorder::meter::{Count, Times};

/// The reason why an upload was refused, or a client turned away; each is counted separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Why {
    /// The name is not allowed.
    Name,
    /// There is another block of this name.
    Exists,
    /// The block is too large.
    Large,
    /// There is no room.
    Full,
    /// More blocks per second than are admitted.
    Rate,
    /// The block did not arrive whole.
    Cut,
    /// The block did not arrive in time.
    Slow,
    /// Nothing can be made durable.
    Broken,
    /// Wrong camera or password.
    Login,
    /// Too many connections.
    Connections,
}

/// The names of the reasons on `/metrics`, in the order of [`Why`].
pub const REASONS: [&str; 10] =
    ["name", "exists", "large", "full", "rate", "cut", "slow", "broken", "login", "connections"];

/// Counters of uploads.
#[derive(Debug, Default)]
pub struct UploadMeter {
    /// Blocks acknowledged that were new.
    pub accepted: Count,
    /// Blocks acknowledged that waited already, with the same content.
    pub again: Count,
    /// Bytes of acknowledged blocks.
    pub bytes: Count,
    /// Connections that are open.
    pub open: Count,
    /// Time from the turn of the first byte to the acknowledgement.
    pub times: Times,
    refused: [Count; REASONS.len()],
}

impl UploadMeter {
    /// Counts a refusal.
    pub fn refuse(&self, why: Why) {
        self.refused[why as usize].add(1);
    }

    /// Returns how often each reason occurred.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        REASONS.iter().zip(&self.refused).map(|(reason, count)| (*reason, count.get()))
    }

    /// Counts a connection for as long as the returned value lives.
    pub fn connection(self: &std::sync::Arc<Self>) -> OpenConnection {
        self.open.add(1);
        OpenConnection(std::sync::Arc::clone(self))
    }
}

/// An open connection.
#[derive(Debug)]
pub struct OpenConnection(std::sync::Arc<UploadMeter>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.subtract(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_name_and_connections_are_counted_while_they_live() {
        let meter = std::sync::Arc::new(UploadMeter::default());
        meter.refuse(Why::Connections);
        meter.refuse(Why::Cut);
        let counted: Vec<_> = meter.refused().filter(|(_, count)| *count > 0).collect();
        assert_eq!(counted, [("cut", 1), ("connections", 1)]);
        let open = (meter.connection(), meter.connection());
        assert_eq!(meter.open.get(), 2);
        drop(open);
        assert_eq!(meter.open.get(), 0);
    }
}
