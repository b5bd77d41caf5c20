//! The transport of a loop with one connection: it waits in the read itself, which saves a system call per operation. Main
//! type: [`Single`].
//!
//! Invariant: a wait ends with at most one piece of what arrived, which [`Transport::next`] gives out once.

use std::os::fd::RawFd;
use std::time::Duration;

use super::event_loop::{Arrival, Chunk, Transport, WAIT_NS_MAX};
use super::socket::{INPUT_BYTES, is_to_be_repeated, set_nonblocking, write};

/// At most one connection.
pub struct Single {
    connection: Option<Connection>,
    input: Vec<u8>,
    /// What the last wait read, until it is given out.
    read: Option<std::io::Result<usize>>,
}

struct Connection {
    place: usize,
    fd: RawFd,
    /// Bytes that the socket did not take yet.
    unsent: Vec<u8>,
}

impl Single {
    /// A transport without connection.
    pub fn new() -> Self {
        Single { connection: None, input: vec![0; INPUT_BYTES], read: None }
    }

    /// Waits until the socket is ready for what is asked, for at most this time; whether it is.
    fn poll(fd: RawFd, events: libc::c_short, wait_ns: u64) -> bool {
        let mut poll = libc::pollfd { fd, events, revents: 0 };
        let timeout = libc::timespec {
            tv_sec: (wait_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: both pointers are to values of ours that outlive the call, and a null signal mask is allowed.
        unsafe { libc::ppoll(&mut poll, 1, &timeout, std::ptr::null()) > 0 }
    }

    /// Sends what is left, as far as the socket takes it.
    fn send_rest(&mut self) -> std::io::Result<()> {
        let Some(connection) = self.connection.as_mut() else { return Ok(()) };
        let count = write(connection.fd, &connection.unsent)?;
        connection.unsent.drain(..count);
        Ok(())
    }
}

impl Transport for Single {
    const NAME: &'static str = "recv";

    fn attach(&mut self, place: usize, fd: RawFd) -> std::io::Result<()> {
        let wait = libc::timeval {
            tv_sec: (WAIT_NS_MAX / 1_000_000_000) as libc::time_t,
            tv_usec: (WAIT_NS_MAX % 1_000_000_000 / 1000) as libc::suseconds_t,
        };
        set_nonblocking(fd, false)?;
        // SAFETY: the pointer is to a value of ours that outlives the call, and the length is that of the value.
        let result = unsafe {
            let length = size_of::<libc::timeval>() as libc::socklen_t;
            libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const wait).cast(), length)
        };
        if result < 0 {
            return Err(std::io::Error::last_os_error());
        }
        self.connection = Some(Connection { place, fd, unsent: Vec::new() });
        Ok(())
    }

    fn detach(&mut self, _: usize) {
        self.connection = None;
        self.read = None;
    }

    fn send(&mut self, _: usize, bytes: &[u8]) -> std::io::Result<()> {
        let Some(connection) = self.connection.as_mut() else { return Ok(()) };
        let count = if connection.unsent.is_empty() { write(connection.fd, bytes)? } else { 0 };
        connection.unsent.extend_from_slice(&bytes[count..]);
        Ok(())
    }

    fn wait(&mut self, wait_ns: u64) {
        self.read = None;
        let Some(connection) = &self.connection else { return std::thread::sleep(Duration::from_nanos(wait_ns)) };
        let fd = connection.fd;
        let is_sending = !connection.unsent.is_empty();
        if is_sending {
            Self::poll(fd, libc::POLLIN | libc::POLLOUT, wait_ns);
            if let Err(error) = self.send_rest() {
                self.read = Some(Err(error));
                return;
            }
        }
        // The read waits for WAIT_NS_MAX, as the socket was told; what is due earlier, or what is still to be sent, must not.
        let is_patient = !is_sending && wait_ns >= WAIT_NS_MAX;
        if is_patient || is_sending || Self::poll(fd, libc::POLLIN, wait_ns) {
            let flags = if is_patient { 0 } else { libc::MSG_DONTWAIT };
            // SAFETY: the pointer and length are those of a buffer of ours.
            let count = unsafe { libc::recv(fd, self.input.as_mut_ptr().cast(), self.input.len(), flags) };
            self.read = Some(if count < 0 { Err(std::io::Error::last_os_error()) } else { Ok(count as usize) });
        }
    }

    fn next(&mut self) -> Option<Arrival> {
        let place = self.connection.as_ref()?.place;
        match self.read.take()? {
            Ok(0) => Some(Arrival::Closed(place, "the server closed the connection".to_owned())),
            Ok(length) => Some(Arrival::Bytes(place, Chunk { buffer: 0, length })),
            Err(error) if is_to_be_repeated(&error) => None,
            Err(error) => Some(Arrival::Closed(place, error.to_string())),
        }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.input[..chunk.length]
    }

    fn release(&mut self, _: Chunk) {}
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn pair() -> (UnixStream, UnixStream, Single) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let mut single = Single::new();
        single.attach(0, ours.as_raw_fd()).unwrap();
        (ours, theirs, single)
    }

    #[test]
    fn what_arrives_is_given_out_once_whether_the_wait_is_long_or_short() {
        let (_ours, mut theirs, mut single) = pair();
        for wait_ns in [WAIT_NS_MAX, 1_000_000] {
            theirs.write_all(b"answer").unwrap();
            single.wait(wait_ns);
            let Some(Arrival::Bytes(0, chunk)) = single.next() else { panic!("nothing came") };
            assert_eq!(single.bytes(chunk), b"answer");
            assert!(single.next().is_none());
        }
        single.wait(1_000_000);
        assert!(single.next().is_none(), "nothing was sent");
        single.wait(WAIT_NS_MAX);
        assert!(single.next().is_none(), "a wait without an answer ends");
    }

    #[test]
    fn what_the_socket_does_not_take_at_once_is_sent_later() {
        let (_ours, mut theirs, mut single) = pair();
        let bytes: Vec<u8> = (0..4_000_000_u32).map(|number| number as u8).collect();
        single.send(0, &bytes[..3_000_000]).unwrap();
        single.send(0, &bytes[3_000_000..]).unwrap();
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; 4_000_000];
            theirs.read_exact(&mut read).unwrap();
            theirs.write_all(b"done").unwrap();
            read
        });
        let arrived = (0..10_000).any(|_| {
            single.wait(WAIT_NS_MAX);
            single.next().is_some()
        });
        assert!(arrived);
        assert!(reader.join().unwrap() == bytes, "the bytes came in another order");
    }

    #[test]
    fn the_end_of_the_connection_is_told() {
        let (_ours, theirs, mut single) = pair();
        drop(theirs);
        single.wait(WAIT_NS_MAX);
        assert!(matches!(single.next(), Some(Arrival::Closed(0, _))));
        single.detach(0);
        single.wait(1000);
        assert!(single.next().is_none());
    }
}
