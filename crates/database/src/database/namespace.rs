//! Network namespaces: a machine's network inside the machine, with interfaces, addresses and ports of its own.
//!
//! Main type: [`Namespace`]. Invariant: a namespace lives as long as somebody has it open or a process is in it, and has no
//! name: whatever becomes of loadline, the kernel removes it, with all its interfaces, when the last of them is gone.

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
    /// A new one, with nothing in it but a loopback interface that is down.
    ///
    /// # Errors
    /// As the operating system says; it takes root, or the capability CAP_SYS_ADMIN.
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

    /// Takes the calling thread into the namespace until the value is dropped. Sockets opened and processes started meanwhile
    /// belong to the namespace for good; what was open before stays where it is.
    ///
    /// # Errors
    /// As the operating system says; it takes root, or the capability CAP_SYS_ADMIN.
    pub fn enter(&self) -> io::Result<Inside> {
        let before = File::open(OWN)?;
        join(&self.file)?;
        Ok(Inside { _outside: Returning { before, stays: PhantomData } })
    }

    /// A path that names it to other processes, as `ip` and `nsenter --net=` take one, while loadline runs.
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd())
    }
}

/// Handed to another process of this machine as its path, which is good while this process runs.
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

/// The calling thread is in a namespace; dropping takes it back to where it was.
#[derive(Debug)]
pub struct Inside {
    _outside: Returning,
}

/// Where a thread was. It must not be dropped by another thread.
#[derive(Debug)]
struct Returning {
    before: File,
    stays: PhantomData<*const ()>,
}

impl Drop for Returning {
    fn drop(&mut self) {
        // A thread that stayed would open its next sockets in the wrong network.
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
