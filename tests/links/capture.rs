//! Captures what passes a host's interface to its link.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use loadline::database::Namespace;
use loadline::link::WIRE;

const ETHERNET_BYTES: usize = 14;
const UDP: u8 = 17;
const ESP: u8 = 50;
const ENCAPSULATED_ESP: u16 = 4500;
const KEY_EXCHANGE: u16 = 500;

/// A running capture.
pub struct Capture {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Vec<u8>>>,
}

/// What was captured.
pub struct Captured {
    frames: Vec<Vec<u8>>,
    /// IP packets of ESP, in UDP or not.
    pub esp_packets: usize,
    /// IP packets that are neither ESP nor of its key exchange, in hexadecimal digits.
    pub other_packets: Vec<String>,
}

impl Capture {
    /// Starts it; every frame from now on is seen.
    pub fn start(namespace: &Namespace) -> Capture {
        let socket = open(namespace).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut frames = Vec::new();
            let mut buffer = vec![0; 70_000];
            loop {
                // SAFETY: the buffer is as long as is said.
                let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
                match usize::try_from(length) {
                    Ok(length) => frames.push(buffer[..length].to_vec()),
                    // The time is up that it waits for a frame.
                    Err(_) if seen.load(Ordering::Acquire) => return frames,
                    Err(_) => {}
                }
            }
        });
        Capture { stop, thread }
    }

    /// Ends it when nothing has passed for a moment.
    pub fn stop(self) -> Captured {
        self.stop.store(true, Ordering::Release);
        let frames = self.thread.join().unwrap();
        let of = |wanted| frames.iter().filter(move |frame| kind(frame) == Some(wanted));
        let esp_packets = of(Kind::Esp).count();
        let hexadecimal = |frame: &Vec<u8>| frame.iter().map(|byte| format!("{byte:02x}")).collect();
        let other_packets = of(Kind::Other).map(hexadecimal).collect();
        Captured { esp_packets, other_packets, frames }
    }
}

impl Captured {
    /// Whether a text is in any frame.
    pub fn contains(&self, text: &[u8]) -> bool {
        self.frames.iter().any(|frame| frame.windows(text.len()).any(|window| window == text))
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Esp,
    KeyExchange,
    Other,
}

/// What an IP packet is; none for frames of other protocols, such as ARP.
fn kind(frame: &[u8]) -> Option<Kind> {
    let packet = frame.get(ETHERNET_BYTES..).filter(|_| frame[12..14] == [8, 0])?;
    let header = usize::from(packet[0] & 0xf) * 4;
    let port = |at: usize| u16::from_be_bytes([packet[header + at], packet[header + at + 1]]);
    Some(match packet[9] {
        ESP => Kind::Esp,
        // Four zero bytes mark the key exchange on the port of encapsulated ESP.
        UDP if port(2) == ENCAPSULATED_ESP && packet[header + 8..].starts_with(&[0; 4]) => Kind::KeyExchange,
        UDP if port(2) == ENCAPSULATED_ESP => Kind::Esp,
        UDP if port(2) == KEY_EXCHANGE => Kind::KeyExchange,
        _ => Kind::Other,
    })
}

fn open(namespace: &Namespace) -> io::Result<OwnedFd> {
    let _inside = namespace.enter()?;
    let every_protocol = (libc::ETH_P_ALL as u16).to_be();
    // SAFETY: takes numbers.
    let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from(every_protocol)) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was opened just now and belongs to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    let name = std::ffi::CString::new(WIRE).unwrap();
    // SAFETY: sockaddr_ll is plain data; zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = every_protocol;
    // SAFETY: the name ends with a zero byte.
    address.sll_ifindex = unsafe { libc::if_nametoindex(name.as_ptr()) } as i32;
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address outlives the call and has the length that is said.
    if unsafe { libc::bind(fd, (&raw const address).cast(), length) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let patience = Duration::from_millis(200);
    let timeout = libc::timeval { tv_sec: 0, tv_usec: patience.as_micros() as libc::suseconds_t };
    let length = size_of::<libc::timeval>() as libc::socklen_t;
    // SAFETY: the value outlives the call and has the length that is said.
    unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_RCVTIMEO, (&raw const timeout).cast(), length) };
    Ok(socket)
}
