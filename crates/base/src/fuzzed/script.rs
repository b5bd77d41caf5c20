//! A client that says what stands in a script, and then leaves. Main type: [`Script`].

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often others get a turn between the last byte and the end, so that what was asked is answered before.
const TURNS: u32 = 64;

/// A connection to such a client.
pub struct Script {
    says: Vec<u8>,
    at: usize,
    piece: usize,
    turns: u32,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Script {
    /// Says these bytes in pieces of so many at most, and keeps what it hears.
    pub fn new(says: &[u8], piece: usize) -> (Self, Arc<Mutex<Vec<u8>>>) {
        let heard = Arc::default();
        let script =
            Script { says: says.to_vec(), at: 0, piece: piece.max(1), turns: TURNS, heard: Arc::clone(&heard) };
        (script, heard)
    }
}

/// What a client has heard.
pub fn heard(heard: &Mutex<Vec<u8>>) -> Vec<u8> {
    std::mem::take(&mut *heard.lock().unwrap_or_else(PoisonError::into_inner))
}

impl AsyncRead for Script {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.at == self.says.len() && self.turns > 0 {
            self.turns -= 1;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let end = self.says.len().min(self.at + self.piece.min(into.remaining()));
        into.put_slice(&self.says[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Script {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
