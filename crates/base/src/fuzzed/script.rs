//! A client that sends the bytes of a script, and then closes the connection. Main type: [`Script`].

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How often other tasks get a turn between the last byte and the end of the connection, so that requests are answered before.
const TURNS: u32 = 64;

/// The connection to such a client.
pub struct Script {
    says: Vec<u8>,
    at: usize,
    piece: usize,
    turns: u32,
    heard: Arc<Mutex<Vec<u8>>>,
}

impl Script {
    /// Creates a connection whose client sends these bytes in pieces of at most `piece` bytes, and the buffer of the bytes that the client receives.
    pub fn new(says: &[u8], piece: usize) -> (Self, Arc<Mutex<Vec<u8>>>) {
        let heard = Arc::default();
        let script =
            Script { says: says.to_vec(), at: 0, piece: piece.max(1), turns: TURNS, heard: Arc::clone(&heard) };
        (script, heard)
    }
}

/// Takes the bytes that a client has received.
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
