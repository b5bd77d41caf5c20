//! Network namespaces: separate networks inside the machine, each with its own interfaces, addresses and ports.
//!
//! Main type: [`Namespace`]. Invariant: a namespace has no name and lives as long as a process has it open or is in it: even if loadline
//! crashes, the kernel removes it, with all its interfaces, when the last of them is gone.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The calling thread's own network namespace.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace that is kept open. Clones are the same namespace.
#[derive(Debug, Clone)]
pub struct Namespace {
    file: Arc<File>,
}

impl PartialEq for Namespace {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.file, &other.file)
    }
}

impl Eq for Namespace {}

impl Namespace {
    /// Creates a namespace with only a loopback interface that is down.
    ///
    /// # Errors
    /// The operating system's error; needs root or the capability CAP_SYS_ADMIN.
    pub fn create() -> io::Result<Namespace> {
        let before = File::open(OWN)?;
        // SAFETY: unshare has no conditions. It changes the calling thread only, which `outside` takes back.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        let outside = Returning { before, stays: PhantomData };
        let file = File::open(OWN);
        drop(outside);
        Ok(Namespace { file: Arc::new(file?) })
    }

    /// Moves the calling thread into the namespace until the returned value is dropped. Sockets opened and processes started meanwhile
    /// belong to the namespace for good; sockets that were open before stay in their network.
    ///
    /// # Errors
    /// The operating system's error; needs root or the capability CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<Inside> {
        let before = File::open(OWN)?;
        join(&self.file)?;
        Ok(Inside { _outside: Returning { before, stays: PhantomData } })
    }

    /// Returns a path that identifies the namespace to other processes, as accepted by `ip` and `nsenter --net=`, while loadline runs.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// Serialised as its path for another process of this machine; the path is valid while this process runs.
impl Serialize for Namespace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.path())
    }
}

impl<'de> Deserialize<'de> for Namespace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer)?;
        let file = File::open(&path).map_err(|error| D::Error::custom(format!("{path}: {error}")))?;
        Ok(Namespace { file: Arc::new(file) })
    }
}

/// The stay of the calling thread in a namespace; dropping the value moves the thread back to its former namespace.
#[derive(Debug)]
pub struct Inside {
    _outside: Returning,
}

/// The thread's former namespace. Must not be dropped by another thread.
#[derive(Debug)]
struct Returning {
    before: File,
    stays: PhantomData<*const ()>,
}

impl Drop for Returning {
    fn drop(&mut self) {
        // A thread that remained would open its next sockets in the wrong network.
        join(&self.before).expect("a thread can go back to the namespace that it came from");
    }
}

fn join(namespace: &File) -> io::Result<()> {
    // SAFETY: setns has no conditions on memory; the file is open during the call and is a network namespace or is refused.
    match unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_namespace_has_a_network_of_its_own_or_is_refused_for_want_of_permission() {
        let namespace = match Namespace::create() {
            Ok(namespace) => namespace,
            Err(error) => {
                println!("nothing was checked: this user may not make namespaces ({error})");
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                return;
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let inside = namespace.enter().unwrap();
        assert!(TcpStream::connect(address).is_err(), "its loopback interface is down, and nobody listens there");
        drop(inside);
        assert!(TcpStream::connect(address).is_ok(), "the thread is back");
        let handed: Namespace = serde_json::from_str(&serde_json::to_string(&namespace).unwrap()).unwrap();
        let inside = handed.enter().unwrap();
        assert!(TcpStream::connect(address).is_err(), "it is the same network in the form that other processes get");
        drop(inside);
    }
}
