//! The transport over epoll. Only readability is watched; writability is watched only while a request did not fit into the
//! socket's buffer, because a unix socket would otherwise wake the loop once more per operation.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::event_loop::{Arrival, Chunk, Transport};

/// Bytes read at once; longer answers take several reads.
const INPUT_BYTES: usize = 64 * 1024;
/// Events taken at once.
const EVENTS: usize = 64;

/// Connections watched by an epoll instance.
pub struct Epoll {
    poll: OwnedFd,
    connections: Vec<Option<Connection>>,
    events: [libc::epoll_event; EVENTS],
    ready: std::ops::Range<usize>,
    input: Vec<u8>,
}

struct Connection {
    fd: RawFd,
    /// Bytes that the socket did not take yet.
    unsent: Vec<u8>,
}

impl Epoll {
    /// An instance without connections.
    ///
    /// # Errors
    /// As the kernel answers.
    pub fn new() -> std::io::Result<Self> {
        // SAFETY: epoll_create1 takes no pointer.
        let poll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if poll < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the descriptor was made above and is owned by nobody else.
        let poll = unsafe { OwnedFd::from_raw_fd(poll) };
        let events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Epoll { poll, connections: Vec::new(), events, ready: 0..0, input: vec![0; INPUT_BYTES] })
    }

    fn control(&self, operation: libc::c_int, place: usize, fd: RawFd, events: libc::c_int) -> std::io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: place as u64 };
        // SAFETY: the event outlives the call; both descriptors are open.
        let result = unsafe { libc::epoll_ctl(self.poll.as_raw_fd(), operation, fd, &mut event) };
        if result < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    }

    fn send_rest(&mut self, place: usize) -> std::io::Result<()> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        let count = write(connection.fd, &connection.unsent)?;
        connection.unsent.drain(..count);
        let (fd, is_sent) = (connection.fd, connection.unsent.is_empty());
        if is_sent { self.control(libc::EPOLL_CTL_MOD, place, fd, libc::EPOLLIN) } else { Ok(()) }
    }
}

impl Transport for Epoll {
    const NAME: &'static str = "epoll";

    fn attach(&mut self, place: usize, fd: RawFd) -> std::io::Result<()> {
        // SAFETY: fcntl with these commands takes no pointer; the descriptor is open.
        unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        self.control(libc::EPOLL_CTL_ADD, place, fd, libc::EPOLLIN)?;
        if self.connections.len() <= place {
            self.connections.resize_with(place + 1, || None);
        }
        self.connections[place] = Some(Connection { fd, unsent: Vec::new() });
        Ok(())
    }

    fn detach(&mut self, place: usize) {
        if let Some(connection) = self.connections[place].take() {
            // Closing the descriptor takes it out of the instance in any case.
            let _ = self.control(libc::EPOLL_CTL_DEL, place, connection.fd, 0);
        }
    }

    fn send(&mut self, place: usize, bytes: &[u8]) -> std::io::Result<()> {
        let Some(connection) = self.connections[place].as_mut() else { return Ok(()) };
        if !connection.unsent.is_empty() {
            connection.unsent.extend_from_slice(bytes);
            return Ok(());
        }
        let count = write(connection.fd, bytes)?;
        if count < bytes.len() {
            connection.unsent.extend_from_slice(&bytes[count..]);
            let fd = connection.fd;
            self.control(libc::EPOLL_CTL_MOD, place, fd, libc::EPOLLIN | libc::EPOLLOUT)?;
        }
        Ok(())
    }

    fn wait(&mut self, wait_ns: u64) {
        let timeout = libc::timespec {
            tv_sec: (wait_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (wait_ns % 1_000_000_000) as libc::c_long,
        };
        // SAFETY: both pointers are to values of ours that outlive the call, the count is the length of the array, and a null
        // signal mask is allowed.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.poll.as_raw_fd(),
                self.events.as_mut_ptr(),
                EVENTS as libc::c_int,
                &timeout as *const libc::timespec,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        self.ready = 0..count.max(0) as usize;
    }

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let event = self.events[self.ready.next()?];
            let (place, events) = (event.u64 as usize, event.events);
            if events & libc::EPOLLOUT as u32 != 0
                && let Err(error) = self.send_rest(place)
            {
                return Some(Arrival::Closed(place, error.to_string()));
            }
            if events & !(libc::EPOLLOUT as u32) == 0 {
                continue;
            }
            let Some(connection) = self.connections[place].as_ref() else { continue };
            match read(connection.fd, &mut self.input) {
                Ok(0) => return Some(Arrival::Closed(place, "the server closed the connection".to_owned())),
                Ok(length) => return Some(Arrival::Bytes(place, Chunk { buffer: 0, length })),
                Err(error) if is_to_be_repeated(&error) => {}
                Err(error) => return Some(Arrival::Closed(place, error.to_string())),
            }
        }
    }

    fn bytes(&self, chunk: Chunk) -> &[u8] {
        &self.input[..chunk.length]
    }

    fn release(&mut self, _: Chunk) {}
}

fn is_to_be_repeated(error: &std::io::Error) -> bool {
    matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::Interrupted)
}

fn read(fd: RawFd, into: &mut [u8]) -> std::io::Result<usize> {
    // SAFETY: the pointer and length are those of a slice of ours.
    let count = unsafe { libc::read(fd, into.as_mut_ptr().cast(), into.len()) };
    if count < 0 { Err(std::io::Error::last_os_error()) } else { Ok(count as usize) }
}

/// Writes what the socket takes; 0 when its buffer is full.
fn write(fd: RawFd, from: &[u8]) -> std::io::Result<usize> {
    // SAFETY: the pointer and length are those of a slice of ours.
    let count = unsafe { libc::send(fd, from.as_ptr().cast(), from.len(), libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT) };
    if count >= 0 {
        return Ok(count as usize);
    }
    let error = std::io::Error::last_os_error();
    if is_to_be_repeated(&error) { Ok(0) } else { Err(error) }
}
